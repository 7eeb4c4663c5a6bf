"""Schemas: the elements of a kind of document, with their content and attributes.

A schema is a set of element declarations. The content of an element is a tree of particles (sequence, choice, element,
text), each with an occurrence, as a DTD writes them: `(title, (section | note)*)`. From them follow the children graph
(parent → child, in declared order), the elements that can be the root, and how deep an element must at least be.

Height: the number of levels of the lowest valid tree with that element on top; an element whose content may be empty
has height 1. An element that cannot be finished (`<!ELEMENT a (a)>`, or a required child without declaration) has no
height. `shallowest(name)` are the children in a lowest tree: each is strictly lower than `name`, so that
expanding by it always ends, in recursive schemas too.

Invariant: a schema does not change once made; equal declarations make equal schemas; it pickles.
Cost: building is linear in the declarations (heights by rounds over the parents of what was found last).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from pathcast.errors import DocumentError

Occurrence = Literal["", "?", "*", "+"]
AttributeType = Literal[
    "CDATA", "ID", "IDREF", "IDREFS", "ENTITY", "ENTITIES", "NMTOKEN", "NMTOKENS", "NOTATION", "enumeration"
]


@dataclass(frozen=True, slots=True)
class Particle:
    """A part of a content model. `name` belongs to an element, `parts` to a sequence or choice; text has neither."""

    kind: Literal["element", "sequence", "choice", "text"]
    occurrence: Occurrence = ""
    name: str = ""
    parts: tuple["Particle", ...] = ()

    @property
    def optional(self) -> bool:
        """Whether it may be omitted."""
        return self.occurrence in ("?", "*")

    @property
    def repeats(self) -> bool:
        """Whether it may occur more than once in a row."""
        return self.occurrence in ("*", "+")

    def names(self) -> Iterator[str]:
        """The elements in it, in declared order, with repetitions."""
        if self.kind == "element":
            yield self.name
        for part in self.parts:
            yield from part.names()

    def __str__(self) -> str:
        if self.kind == "element":
            return self.name + self.occurrence
        if self.kind == "text":
            return "#PCDATA"
        separator = ", " if self.kind == "sequence" else " | "
        return "(" + separator.join(map(str, self.parts)) + ")" + self.occurrence


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of an element. `value` is the fixed or default one; `choices` are those of an enumeration."""

    name: str
    type: AttributeType = "CDATA"
    use: Literal["required", "implied", "fixed", "default"] = "implied"
    value: str | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Element:
    """An element declaration. `content` is None for `empty`, a choice of text and every declared element for `any`."""

    name: str
    kind: Literal["empty", "any", "mixed", "children"] = "empty"
    content: Particle | None = None
    attributes: tuple[Attribute, ...] = ()

    @property
    def has_text(self) -> bool:
        """Whether it may contain text directly."""
        return self.kind in ("any", "mixed")


class Schema:
    """The declarations of one kind of document, and their derived properties."""

    def __init__(self, elements: Iterable[Element], *, root: str | None = None) -> None:
        self.elements: dict[str, Element] = {}
        for element in elements:
            if element.name in self.elements:
                raise DocumentError(f"element '{element.name}' is declared twice; remove one declaration")
            self.elements[element.name] = element
        if not self.elements:
            raise DocumentError("the schema declares no element; declare at least the root")
        if root is not None and root not in self.elements:
            some = ", ".join([*self.elements][:5]) + ", …" * (len(self.elements) > 5)
            raise DocumentError(
                f"the schema does not declare the root element '{root}'; choose one that it declares: {some}"
            )
        self._children = {name: self._declared_children(name) for name in self.elements}
        self._heights = self._find_heights()
        self.roots = self._find_roots()
        finite = [name for name in self.roots if name in self._heights]
        self.root = root if root is not None else (finite or self.roots)[0]

    def __contains__(self, name: object) -> bool:
        return name in self.elements

    def __getitem__(self, name: str) -> Element:
        return self.elements[name]

    def __len__(self) -> int:
        return len(self.elements)

    def __iter__(self) -> Iterator[Element]:
        return iter(self.elements.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.root == other.root and list(self) == list(other)

    def __hash__(self) -> int:
        return hash((self.root, tuple(self.elements)))

    def __repr__(self) -> str:
        return f"<Schema {self.root}: {len(self)} elements, {self.attribute_count} attributes>"

    def with_root(self, root: str) -> "Schema":
        """The same declarations with another element on top."""
        return Schema(self, root=root)

    @property
    def attribute_count(self) -> int:
        """The number of declared attributes, counted per element."""
        return sum(len(element.attributes) for element in self)

    @property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """Parent → its possible children: declared elements, each once, in the order of the content model."""
        return self._children

    @property
    def recursive(self) -> bool:
        """Whether an element can contain itself, at any depth."""
        try:
            TopologicalSorter(self._children).prepare()
        except CycleError:
            return True
        return False

    def reachable(self, name: str) -> set[str]:
        """The elements that can occur at or below `name`."""
        return _reach([name], self._children)

    def height(self, name: str) -> int | None:
        """Levels of the lowest valid tree under `name`, itself included; None when there is no finite one."""
        return self._heights.get(name)

    def shallowest(self, name: str) -> tuple[str, ...]:
        """The children of `name` in a lowest tree: what is required, once, by the lowest alternative of each choice."""
        if name not in self._heights:
            raise DocumentError(
                f"no finite document has an element '{name}': its required content is recursive; make it optional"
            )
        content = self.elements[name].content
        return () if content is None else tuple(self._lowest(content))

    def _declared_children(self, name: str) -> tuple[str, ...]:
        content = self.elements[name].content
        if content is None:
            return ()
        return tuple(child for child in dict.fromkeys(content.names()) if child in self.elements)

    def _find_heights(self) -> dict[str, int]:
        """Round h finds the elements of height h: all that can be finished with the elements found before."""
        heights: dict[str, int] = {}
        parents: dict[str, list[str]] = {name: [] for name in self.elements}
        for name, children in self._children.items():
            for child in children:
                parents[child].append(name)
        waiting: Iterable[str] = self.elements
        height = 1
        while waiting:
            found = [n for n in waiting if n not in heights and _can_finish(self.elements[n].content, heights)]
            heights.update(dict.fromkeys(found, height))
            waiting = dict.fromkeys(parent for name in found for parent in parents[name])
            height += 1
        return heights

    def lowest_alternative(self, choice: Particle) -> Particle:
        """The part of a choice that needs the fewest levels; the first declared of several."""
        return min(choice.parts, key=self._levels)

    def _levels(self, particle: Particle) -> float:
        """The smallest number of levels that a particle needs (0: it may be empty)."""
        if particle.optional or particle.kind == "text":
            return 0
        if particle.kind == "element":
            return self._heights.get(particle.name, float("inf"))
        levels = [self._levels(part) for part in particle.parts]
        return max(levels) if particle.kind == "sequence" else min(levels)

    def _lowest(self, particle: Particle) -> Iterator[str]:
        if particle.optional or particle.kind == "text":
            return
        if particle.kind == "element":
            yield particle.name
            return
        parts = particle.parts if particle.kind == "sequence" else (self.lowest_alternative(particle),)
        for part in parts:
            yield from self._lowest(part)

    def _find_roots(self) -> tuple[str, ...]:
        """The elements that need no parent: no element outside their own cycle holds them; the widest reach first."""
        parents: dict[str, list[str]] = {name: [] for name in self.elements}
        for name, children in self._children.items():
            for child in children:
                parents[child].append(name)
        order = {name: at for at, name in enumerate(self.elements)}
        reached: set[str] = set()
        roots: list[tuple[int, int, str]] = []
        for name in reversed(_finishing_order(self._children)):
            if name not in reached:
                below = self.reachable(name)
                cycle = below & _reach([name], parents)
                first = min(cycle, key=order.__getitem__)
                roots.append((-len(below), order[first], first))
                reached |= below
        return tuple(name for _, _, name in sorted(roots))


def _can_finish(particle: Particle | None, known: Mapping[str, int]) -> bool:
    """Can the particle be expanded with the elements in `known` alone?"""
    if particle is None or particle.optional or particle.kind == "text":
        return True
    if particle.kind == "element":
        return particle.name in known
    test = all if particle.kind == "sequence" else any
    return test(_can_finish(part, known) for part in particle.parts)


def _reach(start: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    seen = set(start)
    stack = list(seen)
    while stack:
        for name in edges[stack.pop()]:
            if name not in seen:
                seen.add(name)
                stack.append(name)
    return seen


def _finishing_order(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """All nodes in the order in which a depth-first search leaves them; without recursion, schemas may be deep."""
    seen: set[str] = set()
    order: list[str] = []
    for start in edges:
        if start in seen:
            continue
        seen.add(start)
        stack = [(start, iter(edges[start]))]
        while stack:
            name, children = stack[-1]
            for child in children:
                if child not in seen:
                    seen.add(child)
                    stack.append((child, iter(edges[child])))
                    break
            else:
                order.append(name)
                stack.pop()
    return order
