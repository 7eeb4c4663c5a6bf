"""Schema trees: a kind of document as a tree of element types, with cardinalities and attributes (§2.3).

A schema is a graph, since declarations are shared; a mapping must treat `teacher/name` and `student/name` differently.
So shared parts are unfolded: a node is a *path* of names from the root, and operators, files and messages use this path
as its name. Recursion cannot be unfolded: it is rejected, or cut where a name recurs below itself. Alternatives of a
choice become optional children: rewriting works on the elements that are present.

Invariant: nodes are in preorder, so a node's subtree is a range; siblings have different names.
Cost: linear in the unfolded tree, which is bounded (`limit`), since unfolding can be exponential.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pathcast.documents.schema import Attribute, Element, Occurrence, Particle, Schema
from pathcast.errors import LimitError, MappingError

from .node_samples import NodeSamples

Recursion = Literal["refuse", "cut"]
# Nodes of an unfolded tree.
LIMIT = 100_000
# A step of a path; a namespace URI may contain slashes.
_STEP = re.compile(r"@?(?:\{[^}]*\})?[^/{}]+")


@dataclass(frozen=True, slots=True)
class SchemaNode:
    """An element type at one place: its cardinality in its parent, whether it has text, its attributes and children."""

    name: str
    cardinality: Occurrence = ""
    has_text: bool = False
    attributes: tuple[str, ...] = ()
    children: tuple["SchemaNode", ...] = ()

    def child(self, name: str) -> "SchemaNode | None":
        """The child with a name."""
        return next((child for child in self.children if child.name == name), None)

    @property
    def repeats(self) -> bool:
        """Whether it may occur more than once in its parent."""
        return self.cardinality in ("*", "+")


@dataclass(frozen=True, slots=True)
class SchemaTree:
    """A kind of document; `paths` are its nodes, in preorder.

    What is known of nodes besides their place, their values in samples and their documentation, is evidence for
    correspondences; it is no part of the schema.
    """

    root: SchemaNode
    samples: Mapping[str, NodeSamples] = field(default_factory=dict, repr=False, compare=False)
    documentation: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    paths: Mapping[str, SchemaNode] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        paths: dict[str, SchemaNode] = {}
        for path, node in _walk(self.root):
            if path in paths:
                raise MappingError(f"the schema has two children '{path}'; rename one of them")
            paths[path] = node
        object.__setattr__(self, "paths", paths)

    @classmethod
    def unfold(cls, schema: Schema, *, recursion: Recursion = "refuse", limit: int = LIMIT) -> "SchemaTree":
        """The tree of a schema's declarations, from its root on."""
        return cls(_Unfolding(schema, recursion, limit).node(schema.root, "", ()))

    def folded(self) -> Schema:
        """A schema of declarations, one for each name: it allows what the nodes of that name have, taken together."""
        children: dict[str, dict[str, Occurrence]] = {}
        attributes: dict[str, dict[str, None]] = {}
        with_text: set[str] = set()
        for node in self.paths.values():
            for child in node.children:
                children.setdefault(node.name, {}).setdefault(child.name, child.cardinality)
            attributes.setdefault(node.name, {}).update(dict.fromkeys(node.attributes))
            with_text |= {node.name} if node.has_text else set()
        return Schema(
            (
                _declared(name, children.get(name, {}), list(known), name in with_text)
                for name, known in attributes.items()
            ),
            root=self.root.name,
        )

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, path: str) -> SchemaNode:
        """The node at a path; `MappingError` when there is none."""
        found = self.paths.get(path)
        if found is None:
            raise MappingError(f"the schema has no element '{path}'{_nearest(path, self.paths)}")
        return found

    def __contains__(self, path: object) -> bool:
        return path in self.paths

    def __str__(self) -> str:
        """The tree as an indented text."""
        lines, stack = [], [(0, self.root)]
        while stack:
            depth, node = stack.pop()
            lines.append("  " * depth + _line(node))
            stack.extend((depth + 1, child) for child in reversed(node.children))
        return "\n".join(lines)


def nodes_of(tree: SchemaTree) -> list[str]:
    """All nodes of a tree, attributes right after their elements."""
    return [
        found
        for path, node in tree.paths.items()
        for found in (path, *(f"{path}/@{attribute}" for attribute in node.attributes))
    ]


def parent_of(path: str) -> str:
    """The path of a node's parent; empty for the root."""
    return path[: -len(_last(path)) - 1]


def name_of(path: str) -> str:
    """The last name of a path; of an attribute without its `@`."""
    return _last(path).removeprefix("@")


def is_attribute(path: str) -> bool:
    """Whether a path ends with an attribute."""
    return _last(path).startswith("@")


def steps_of(path: str) -> tuple[str, ...]:
    """The names of a path, from the root on."""
    return tuple(_STEP.findall(path))


def _last(path: str) -> str:
    found = _STEP.findall(path)
    return found[-1] if found else ""


def _declared(name: str, children: Mapping[str, Occurrence], attributes: list[str], has_text: bool) -> Element:
    known = tuple(map(Attribute, attributes))
    parts = tuple(Particle("element", "" if has_text else often, child) for child, often in children.items())
    if has_text:
        return Element(name, "mixed", Particle("choice", "*" if parts else "", "", (Particle("text"), *parts)), known)
    return (
        Element(name, "children", Particle("sequence", "", "", parts), known)
        if parts
        else Element(name, "empty", None, known)
    )


def _line(node: SchemaNode) -> str:
    attributes = "".join(f" @{name}" for name in node.attributes)
    return f"{node.name}{node.cardinality}{attributes}{' #text' if node.has_text else ''}"


def _nearest(path: str, paths: Mapping[str, SchemaNode]) -> str:
    """Suggestions: the paths with the same last name, or the parent's children."""
    same = [known for known in paths if name_of(known) == name_of(path)]
    above = parent_of(path)
    if not same and above in paths:
        same = [f"{above}/{child.name}" for child in paths[above].children]
    return f"; did you mean {' or '.join(same[:5])}?" if same else f"; its root is '{next(iter(paths))}'"


def _walk(root: SchemaNode) -> Iterator[tuple[str, SchemaNode]]:
    stack = [(root.name, root)]
    while stack:
        path, node = stack.pop()
        yield path, node
        stack.extend((f"{path}/{child.name}", child) for child in reversed(node.children))


@dataclass(slots=True)
class _Unfolding:
    schema: Schema
    recursion: Recursion
    limit: int
    made: int = 0

    def node(self, name: str, cardinality: Occurrence, above: tuple[str, ...]) -> SchemaNode:
        self.made += 1
        if self.made > self.limit:
            raise LimitError(f"the schema tree has more than {self.limit:,} nodes; raise limit=… or shorten the schema")
        element = self.schema[name]
        here = (*above, name)
        found = {} if element.content is None else cardinalities(element.content)
        children = []
        for child, occurrence in found.items():
            if child not in self.schema:
                children.append(SchemaNode(child, occurrence))
            elif child not in here:
                children.append(self.node(child, occurrence, here))
            elif self.recursion == "refuse":
                where = "/".join((*here, child))
                raise MappingError(
                    f"the schema is recursive at '{where}', but mappings need trees; cut the recursion with "
                    "recursion='cut'"
                )
        attributes = tuple(attribute.name for attribute in element.attributes)
        return SchemaNode(name, cardinality, element.has_text, attributes, tuple(children))


def cardinalities(content: Particle) -> dict[str, Occurrence]:
    """The number of possible occurrences of each element in a content model, in declared order."""
    return {name: _occurrence(least, most) for name, (least, most) in _counts(content).items()}


def _counts(particle: Particle) -> dict[str, tuple[int, int]]:
    """The least and the largest count of each element, the latter cut at 2."""
    found: dict[str, tuple[int, int]] = {}
    if particle.kind == "element":
        found[particle.name] = 1, 1
    for part in particle.parts:
        for name, (least, most) in _counts(part).items():
            before = found.get(name)
            if particle.kind == "choice":
                found[name] = 0, max(most, before[1] if before else 0)
            else:
                found[name] = (least, most) if before is None else (least + before[0], 2)
    if particle.kind == "choice" and len(particle.parts) == 1:
        found = _counts(particle.parts[0])
    return {
        name: (0 if particle.optional else min(least, 2), 2 if particle.repeats else most)
        for name, (least, most) in found.items()
    }


def _occurrence(least: int, most: int) -> Occurrence:
    if most > 1:
        return "+" if least else "*"
    return "" if least else "?"
