"""Rewriting subscriptions instead of documents (QRA, §1): each pattern of the global schema as one of a local schema.

The *image* of a publisher is the part of the global schema that its documents fill. It is a tree: each of its nodes is
an element of the local schema, an attribute that becomes an element, or a new element of an insert. Each step of a
pattern, `*` and `//` included, is looked up in the image; the nodes found are written as paths of the local schema,
several as `or`. All operators except Exchange and Downgrade keep an element below its old ancestors, so local paths go
downwards, too.

Not expressible: Exchange and Downgrade; the string-value of an element whose content was moved; text nodes that may
have come together; the first node of a path. Such patterns are matched on the rewritten document (`NotExpressible`).

Invariant: on documents that have only elements of the local schema, a rewritten pattern matches exactly what the
pattern matches on the rewritten document.
Cost: one pattern per subscription and schema, as in the paper: 40 schemas take 40 times the space, and a new schema
needs a new index.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from pathcast.documents import DocumentBatch, local_part
from pathcast.kernels import Int32s
from pathcast.matching import Subscriptions
from pathcast.matching.table import PatternTable
from pathcast.patterns import (
    WILDCARD,
    AllOf,
    AnyOf,
    Compare,
    Condition,
    First,
    Node,
    Not,
    Pattern,
    Root,
    StringTest,
    condition_text,
    conditions_in,
    test_text,
)

from ..mappings.operators_by_schema_node import Into, Plan, Up
from ..schemas.schema_tree import name_of, parent_of, steps_of
from .label_path_rewriting import is_by_paths

# A condition as text; None: it cannot hold. The empty text always holds.
Formula = str | None
ALWAYS: Formula = ""


class NotExpressible(Exception):  # noqa: N818 - not an error: the rewritten document is matched instead
    """A pattern has no form in the local schema."""


@dataclass(slots=True)
class Image:
    """A node of the image; `local` is the local element that it is, or that contains it."""

    name: str
    local: tuple[str, ...]
    attribute: str | None = None
    is_new: bool = False
    above: "Image | None" = None
    below: "list[Image]" = field(default_factory=list)

    def child(self, made: "Image") -> "Image":
        made.above = self
        self.below.append(made)
        return made

    def held(self) -> "Iterator[Image]":
        """The elements that were put into a new element."""
        for each in self.below:
            if each.is_new:
                yield from each.held()
            else:
                yield each

    def walk(self) -> "Iterator[Image]":
        """All nodes below."""
        for each in self.below:
            yield each
            yield from each.walk()


class QueryRewriting:
    """Rewrites patterns by one plan; `ignore` when names are compared without their namespaces."""

    def __init__(self, plan: Plan, *, ignore: bool = False) -> None:
        self.plan = plan
        self._ignore = ignore
        self.possible = is_by_paths(plan)
        self._top = Image("", ())
        if self.possible:
            self._build()

    def rewrite(self, pattern: Pattern) -> str | None:
        """The pattern in the local schema; None when no document of it matches; or `NotExpressible`."""
        if not self.possible or pattern.expression:  # an opaque pattern is evaluated on the rewritten document
            raise NotExpressible
        if pattern.root is None:
            return "/"
        formula = self._absolute(pattern.root)
        if formula is None:
            return None
        root = f"/{test_text(self.plan.tree.root.name)}"
        return f"{root}[{formula}]" if formula else root

    # The image of the local schema.

    def _build(self) -> None:
        nodes: dict[str, Image] = {}
        for path, each in self.plan.nodes.items():
            above = nodes.get(parent_of(path))
            made = Image(each.name, steps_of(path))
            nodes[path] = made
            if above is None:
                self._top.child(made)
            else:
                self._place(above, parent_of(path), name_of(path)).child(made)
            for attribute, name in each.elements:
                made.child(Image(name, steps_of(path), attribute))

    def _place(self, above: Image, path: str, name: str) -> Image:
        """The image node that contains a child of a local node."""
        match self.plan.nodes[path].place(name):
            case Into(steps):
                for step in steps:
                    known = next((each for each in above.below if each.is_new and each.name == step), None)
                    above = known or above.child(Image(step, above.local, is_new=True))
                return above
            case Up():
                assert above.above is not None
                return above.above
        return above

    # Conditions, each written for a predicate of the local element that is, or contains, its context.

    def _absolute(self, node: Node) -> Formula:
        """A path from the document on, as a condition on the local root."""
        found = [
            self._demanded(node, image, steps_of(self.plan.tree.root.name)) for image in self._targets(node, self._top)
        ]
        return _any(found)

    def _condition(self, condition: Condition, at: Image) -> Formula:
        match condition:
            case Node():
                return self._node(condition, at)
            case Root(node):
                formula = self._absolute(node)
                root = f"/{test_text(self.plan.tree.root.name)}"
                return formula if formula is None else (f"{root}[{formula}]" if formula else root)
            case AllOf(conditions):
                return _all([self._condition(each, at) for each in conditions])
            case AnyOf(conditions):
                return _any([self._condition(each, at) for each in conditions])
            case Not(inner):
                formula = self._condition(inner, at)
                return ALWAYS if formula is None else None if formula == ALWAYS else f"not({formula})"
            case Compare() | StringTest():
                # Both begin with the node itself, a dot.
                return condition_text(condition).replace(".", self._value(at), 1)
            case First():
                raise NotExpressible

    def _value(self, at: Image) -> str:
        """The operand of a comparison with a node's string-value."""
        if at.attribute is not None:
            return f"@{test_text(at.attribute)}"
        if at.is_new or at.below or self.plan.tree["/".join(at.local)].children:
            raise NotExpressible
        return "."

    def _node(self, node: Node, at: Image) -> Formula:
        if node.is_attribute:
            places = [at, *at.walk()] if node.axis == "//" else [at]
            return _any([self._attribute(node, place, at.local) for place in places])
        if node.is_text:
            places = [at, *at.walk()] if node.axis == "//" else [at]
            return _any([self._text(node, place, at.local) for place in places])
        return _any([self._demanded(node, image, at.local) for image in self._targets(node, at)])

    def _targets(self, node: Node, at: Image) -> list[Image]:
        if not node.is_element:  # an attribute or text of any element
            return [] if node.axis == "/" else list(at.walk())
        return [each for each in (at.below if node.axis == "/" else at.walk()) if self._is_called(each.name, node.test)]

    def _is_called(self, name: str, test: str) -> bool:
        return test in (WILDCARD, name) or (self._ignore and local_part(name) == test)

    def _demanded(self, node: Node, image: Image, context: tuple[str, ...]) -> Formula:
        """That there is this node, with its conditions."""
        if not node.is_element:
            single = Node("/", node.test, node.conditions)
            return self._attribute(single, image, context) if node.is_attribute else self._text(single, image, context)
        inside = _all([self._condition(each, image) for each in node.conditions])
        if inside is None:
            return None
        if image.attribute is not None:
            return _at(image.local, context, _all([f"@{test_text(image.attribute)}", inside]))
        if image.is_new:
            held = [_at(each.local, image.local, ALWAYS) for each in image.held()]
            return _at(image.local, context, _all([_any(held), inside]))
        return _at(image.local, context, inside)

    def _attribute(self, node: Node, image: Image, context: tuple[str, ...]) -> Formula:
        """An attribute of the global element, whatever it is called in the local one."""
        if image.is_new or image.attribute is not None:
            return None
        wanted = node.test[1:]
        plan, known = self.plan.nodes["/".join(image.local)], self.plan.tree["/".join(image.local)].attributes
        gone = {attribute for attribute, _ in plan.elements}
        if wanted == WILDCARD:
            raise NotExpressible
        names = [
            each for each in known if each not in gone and self._is_called(plan.attributes.get(each, each), wanted)
        ]
        if not names and not any(self._is_called(each, wanted) for each in known):
            names = [wanted]  # one that the schema does not have is passed on
        tests = _tests(node)
        return _any([_at(image.local, context, f"@{test_text(name)}{tests}") for name in names])

    def _text(self, node: Node, image: Image, context: tuple[str, ...]) -> Formula:
        if image.is_new:
            return None
        if image.attribute is not None:
            return _at(image.local, context, f"@{test_text(image.attribute)}[. != '']{_tests(node)}")
        if node.conditions and self.plan.tree["/".join(image.local)].children:
            raise NotExpressible
        return _at(image.local, context, f"text(){_tests(node)}")


def _tests(node: Node) -> str:
    """The conditions of an attribute or text node, in brackets, if they are about its value only."""
    for condition in node.conditions:
        if any(isinstance(each, Node | Root | First) for each in conditions_in(condition)):
            raise NotExpressible
    return "".join(f"[{condition_text(condition)}]" for condition in node.conditions)


def _at(local: tuple[str, ...], context: tuple[str, ...], formula: Formula) -> Formula:
    """A condition on an element at or below the context."""
    if formula is None:
        return None
    path = "/".join(map(test_text, local[len(context) :]))
    if not path:
        return formula
    return f"{path}[{formula}]" if formula else path


def _any(formulas: list[Formula]) -> Formula:
    found = list(dict.fromkeys(each for each in formulas if each is not None))
    if ALWAYS in found:
        return ALWAYS
    return None if not found else found[0] if len(found) == 1 else f"({' or '.join(found)})"


def _all(formulas: list[Formula]) -> Formula:
    if None in formulas:
        return None
    found = list(dict.fromkeys(each for each in formulas if each))
    return ALWAYS if not found else found[0] if len(found) == 1 else f"({' and '.join(found)})"


class QueryIndex:
    """The subscriptions of a view, rewritten for one schema, and those that have to see the rewritten document."""

    def __init__(self, plan: Plan, table: PatternTable) -> None:
        self.table = table
        self._rewriting = QueryRewriting(plan, ignore=table.namespaces == "ignore")
        self._subscriptions = Subscriptions(table.namespaces)
        self.matcher = self._subscriptions.compile()
        self._known = 0
        self._rest: list[int] = []

    def follow(self, size: int) -> Int32s:
        """Add the patterns below `size`; return those that are not expressible."""
        xpaths, ids = [], []
        for entry in range(self._known, size):
            try:
                xpath = self._rewriting.rewrite(self.table.pattern(entry))
            except NotExpressible:
                self._rest.append(entry)
                continue
            if xpath is not None:
                xpaths.append(xpath)
                ids.append(entry + 1)
        # A rewritten expression may exceed the length limit; then it is not expressible, either.
        refused = self._subscriptions.add_many(xpaths, ids=ids, errors="collect")
        self._rest.extend(ids[error.index] - 1 for error in refused if error.index is not None)
        self._known = max(self._known, size)
        return np.array(self._rest, dtype=np.int32)

    def match(self, batch: DocumentBatch) -> list[Int32s]:
        """The entries that each document matches, of those that are expressible."""
        offsets, ids = self.matcher.match_batch(batch)
        return np.split(ids - 1, offsets[1:-1]) if len(batch) else []

    @property
    def bytes(self) -> int:
        """The memory of the rewritten subscriptions."""
        return int(self.matcher.statistics()["index bytes"])
