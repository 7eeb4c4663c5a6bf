"""The tree pattern: the one form of an XPath subscription.

A subscription asks whether a document has something, so `/a[b]/c` and `/a[c]/b` ask the same: an `a` with a `b` and
with a `c` below. A pattern is therefore a tree, not a path with predicates: a node demands an element, attribute or
text node under its parent, and `conditions` that must all hold there.

    /news[@lang = 'en']//p/q        Node("/", "news", (Node("//", "p", (Node("/", "q"),)),
                                                       Node("/", "@lang", (Compare("=", "en"),))))

A comparison of a path with a literal is true when *some* node of the path compares, so it is a condition on the path's
last node and needs no form of its own. `contains` and `starts-with` look at the *first* node of a path: on the node
itself, or on an attribute of it, there is only one (`StringTest`); elsewhere `First` keeps the path.

Invariant: patterns are built by `normal_form_constructors.py` and `pattern_assembly.py` only, in normal form; equal
patterns are equal objects and print alike. A part is made after the parts that it holds and never changes, so patterns
contain no cycles. The garbage collector therefore need not scan them (`gc=False`): reference counts alone free them.
Cost: a node stores its hash when it is made, so hashing a pattern, or a part of it, takes one look at its top.
"""

from typing import Literal

from msgspec import Struct

Axis = Literal["/", "//"]
Operator = Literal["=", "!=", "<", "<=", ">", ">="]
StringFunction = Literal["contains", "starts-with"]

WILDCARD = "*"
TEXT = "text()"
_NO_NAMES = frozenset([WILDCARD, TEXT])


class _Part(Struct, frozen=True, gc=False, cache_hash=True):
    """A pattern or a part of one.

    The hash is taken at once. Taken later, it would descend through all parts below, on the C stack.
    """

    def __post_init__(self) -> None:
        hash(self)


class Node(_Part, frozen=True):
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
        return self.test[0] != "@" and self.test != TEXT


class Root(_Part, frozen=True):
    """Demands `node` below the document, whatever the context: an absolute path inside a predicate."""

    node: Node


class Compare(Struct, frozen=True, gc=False, eq=False):
    """Compares the node's string-value: as a number where `number` is set, else as the string `text`.

    `text` is how the literal was written; for a number it does not tell two comparisons apart.
    """

    operator: Operator
    text: str
    number: float | None = None
    string: str | None = None

    def __hash__(self) -> int:
        return hash((self.operator, self.number, self.string))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Compare):
            return NotImplemented
        return (self.operator, self.number, self.string) == (other.operator, other.number, other.string)

    def __ne__(self, other: object) -> bool:  # which a Struct does not derive from `__eq__`
        return not self == other

    @staticmethod
    def with_string(operator: Operator, text: str) -> "Compare":
        return Compare(operator, text, None, text)

    @staticmethod
    def with_number(operator: Operator, number: float, text: str) -> "Compare":
        return Compare(operator, text, number, None)


class StringTest(_Part, frozen=True):
    """`contains(., text)` or `starts-with(., text)`; `text` is never empty (that would always hold)."""

    function: StringFunction
    text: str


class First(_Part, frozen=True):
    """`test` on the first node, in document order, of a path; false when the path has none."""

    steps: tuple[Node, ...]
    test: StringTest
    absolute: bool = False


class AllOf(_Part, frozen=True):
    """All of these hold; two or more (one stands for itself), or none: always true."""

    conditions: tuple["Condition", ...]


class AnyOf(_Part, frozen=True):
    """At least one of these holds; two or more, or none: never true."""

    conditions: tuple["Condition", ...]


class Not(_Part, frozen=True):
    """The condition does not hold."""

    condition: "Condition"


Condition = Node | Root | Compare | StringTest | First | AllOf | AnyOf | Not

ALWAYS = AllOf(())
NEVER = AnyOf(())


class Pattern(_Part, frozen=True):
    """A subscription: `root` is demanded below the document; without one, every document matches (`/`)."""

    root: Node | None

    def __str__(self) -> str:
        from .pattern_text import pattern_text

        return pattern_text(self)

    @property
    def linear(self) -> tuple[Node, ...] | None:
        """The steps, when the pattern is a plain path of elements without any condition; else None."""
        steps: list[Node] = []
        node = self.root
        while node is not None:
            conditions = node.conditions
            if not node.is_element or len(conditions) > 1:
                return None
            steps.append(node)
            if not conditions:
                break
            if not isinstance(conditions[0], Node):
                return None
            node = conditions[0]
        return tuple([Node(step.axis, step.test) for step in steps])

    @property
    def names(self) -> frozenset[str]:
        """All names of elements and attributes that the pattern mentions."""
        return names_of(self.tests)

    @property
    def tests(self) -> set[str]:
        """What all its nodes are asked to be: names, `*`, attributes, `text()`."""
        return {each.test for each in conditions_in(self.root) if isinstance(each, Node)} if self.root else set()


def names_of(tests: set[str]) -> frozenset[str]:
    """The names of elements and attributes among tests."""
    return frozenset([test[1:] if test[0] == "@" else test for test in tests - _NO_NAMES])


def conditions_in(condition: Condition) -> list[Condition]:
    """The condition and all those that it is made of, each after the one that it belongs to."""
    found: list[Condition] = [condition]
    for current in found:  # which grows meanwhile
        if isinstance(current, Node):  # most are
            found += current.conditions
        elif isinstance(current, Compare):
            pass
        elif isinstance(current, (AllOf, AnyOf)):
            found += current.conditions
        elif isinstance(current, Not):
            found.append(current.condition)
        elif isinstance(current, Root):
            found.append(current.node)
        elif isinstance(current, First):
            found += (*current.steps, current.test)
    return found
