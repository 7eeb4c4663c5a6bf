"""The tree pattern: the one form of an XPath subscription.

A subscription asks whether a document has something, so `/a[b]/c` and `/a[c]/b` ask the same: an `a` with a `b` and
with a `c` below. A pattern is therefore a tree, not a path with predicates: a node demands an element, attribute or
text node under its parent, and `conditions` that must all hold there.

    /news[@lang = 'en']//p/q        Node("/", "news", (Node("//", "p", (Node("/", "q"),)),
                                                       Node("/", "@lang", (Compare("=", "en"),))))

A comparison of a path with a literal is true when *some* node of the path compares, so it is a condition on the path's
last node and needs no form of its own. `contains` and `starts-with` look at the *first* node of a path: on the node
itself, or on an attribute of it, there is only one (`StringTest`); elsewhere `First` keeps the path.

Invariant: patterns are built by `normal.py` only, in normal form; equal patterns are equal objects and print alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Axis = Literal["/", "//"]
Operator = Literal["=", "!=", "<", "<=", ">", ">="]
StringFunction = Literal["contains", "starts-with"]

WILDCARD = "*"
TEXT = "text()"


@dataclass(frozen=True, slots=True)
class Node:
    """Demands a node below (`/`: a child, `//`: any depth) with these conditions.

    `test` is an element name (`local` or `{uri}local`), `*`, an attribute `@name`, or `text()`. `//@a` and `//text()`
    look at the parent itself too, as XPath's `//` does.
    """

    axis: Axis
    test: str
    conditions: tuple["Condition", ...] = ()

    @property
    def is_attribute(self) -> bool:
        return self.test[0] == "@"

    @property
    def is_text(self) -> bool:
        return self.test == TEXT

    @property
    def is_element(self) -> bool:
        return not self.is_attribute and not self.is_text


@dataclass(frozen=True, slots=True)
class Root:
    """Demands `node` below the document, whatever the context: an absolute path inside a predicate."""

    node: Node


@dataclass(frozen=True, slots=True)
class Compare:
    """Compares the node's string-value: as a number where `number` is set, else as the string `text`.

    `text` is how the literal was written; for a number it does not tell two comparisons apart.
    """

    operator: Operator
    text: str = field(compare=False)
    number: float | None = None
    string: str | None = None

    @staticmethod
    def with_string(operator: Operator, text: str) -> "Compare":
        return Compare(operator, text, None, text)

    @staticmethod
    def with_number(operator: Operator, number: float, text: str) -> "Compare":
        return Compare(operator, text, number, None)


@dataclass(frozen=True, slots=True)
class StringTest:
    """`contains(., text)` or `starts-with(., text)`; `text` is never empty (that would always hold)."""

    function: StringFunction
    text: str


@dataclass(frozen=True, slots=True)
class First:
    """`test` on the first node, in document order, of a path; false when the path has none."""

    steps: tuple[Node, ...]
    test: StringTest
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of these hold; two or more (one stands for itself), or none: always true."""

    conditions: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of these holds; two or more, or none: never true."""

    conditions: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The condition does not hold."""

    condition: "Condition"


Condition = Node | Root | Compare | StringTest | First | AllOf | AnyOf | Not

ALWAYS = AllOf(())
NEVER = AnyOf(())


@dataclass(frozen=True, slots=True)
class Pattern:
    """A subscription: `root` is demanded below the document; without one, every document matches (`/`)."""

    root: Node | None

    def __str__(self) -> str:
        from .printing import pattern_text

        return pattern_text(self)

    @property
    def linear(self) -> tuple[Node, ...] | None:
        """The steps, when the pattern is a plain path of elements without any condition; else None."""
        steps = []
        node = self.root
        while node is not None:
            if not node.is_element or len(node.conditions) > 1:
                return None
            steps.append(Node(node.axis, node.test))
            below = node.conditions[0] if node.conditions else None
            if below is not None and not isinstance(below, Node):
                return None
            node = below
        return tuple(steps)

    @property
    def names(self) -> frozenset[str]:
        """All names of elements and attributes that the pattern mentions."""
        found = set()
        for node in nodes(self.root):
            if node.is_attribute:
                found.add(node.test[1:])
            elif node.is_element and node.test != WILDCARD:
                found.add(node.test)
        return frozenset(found)


def nodes(condition: Condition | None) -> Iterator[Node]:
    """All nodes of a pattern or condition, in no particular order."""
    waiting: list[Condition] = [] if condition is None else [condition]
    while waiting:
        current = waiting.pop()
        match current:
            case Node():
                yield current
                waiting.extend(current.conditions)
            case Root():
                waiting.append(current.node)
            case First():
                waiting.extend(current.steps)
            case AllOf() | AnyOf():
                waiting.extend(current.conditions)
            case Not():
                waiting.append(current.condition)
            case Compare() | StringTest():
                pass
