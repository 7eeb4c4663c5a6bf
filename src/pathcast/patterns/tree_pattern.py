"""The tree pattern: the single representation of an XPath subscription.

A subscription asks whether a document contains something, so `/a[b]/c` and `/a[c]/b` are equivalent: both ask for an
`a` with a `b` and a `c` below. A pattern is therefore a tree, not a path with predicates: a node demands an element,
attribute or text node under its parent, and holds `conditions` that must all hold there.

    /news[@lang = 'en']//p/q        Node("/", "news", (Node("//", "p", (Node("/", "q"),)),
                                                       Node("/", "@lang", (Compare("=", "en"),))))

A comparison of a path with a literal is true if *some* node of the path compares, so it is a condition on the path's
last node and needs no type of its own. `contains` and `starts-with` look at the *first* node of a path: for the node
itself, or one of its attributes, there is only one (`StringTest`); elsewhere `First` keeps the path.

Invariant: only `normal_form_constructors.py` and `cached_pattern_assembly.py` build patterns, always in normal form;
equal patterns compare equal and print alike. A part is built after the parts it holds and never changes, so
patterns contain no cycles. The garbage collector therefore need not scan them (`gc=False`): reference counts free them.
Cost: a node stores its hash when it is built, so hashing a pattern, or a part of it, reads only its top.
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

    The hash is computed at once. Later, it would recurse through all parts below, on the C stack.
    """

    def __post_init__(self) -> None:
        hash(self)


class Node(_Part, frozen=True):
    """Demand a node below (`/`: a child, `//`: any depth) with these conditions.

    `test` is an element name (`local` or `{uri}local`), `*`, an attribute `@name`, or `text()`. `//@a` and `//text()`
    also look at the parent itself, as XPath's `//` does.
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
    """Demand `node` below the document, whatever the context: an absolute path inside a predicate."""

    node: Node


class Compare(Struct, frozen=True, gc=False, eq=False):
    """Compare the node's string-value: as a number if `number` is set, otherwise as the string `text`.

    `text` is the literal as written; two numeric comparisons may differ in `text` and still be equal.
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

    def __ne__(self, other: object) -> bool:  # a Struct does not derive it from `__eq__`
        return not self == other

    @staticmethod
    def with_string(operator: Operator, text: str) -> "Compare":
        return Compare(operator, text, None, text)

    @staticmethod
    def with_number(operator: Operator, number: float, text: str) -> "Compare":
        return Compare(operator, text, number, None)


class StringTest(_Part, frozen=True):
    """`contains(., text)` or `starts-with(., text)`; `text` is never empty (an empty text would always hold)."""

    function: StringFunction
    text: str


class First(_Part, frozen=True):
    """`test` on the first node, in document order, of a path; false if the path has no node."""

    steps: tuple[Node, ...]
    test: StringTest
    absolute: bool = False


class AllOf(_Part, frozen=True):
    """All of these hold: two or more (a single condition stands for itself), or none: always true."""

    conditions: tuple["Condition", ...]


class AnyOf(_Part, frozen=True):
    """At least one of these holds: two or more, or none: never true."""

    conditions: tuple["Condition", ...]


class Not(_Part, frozen=True):
    """The condition does not hold."""

    condition: "Condition"


Condition = Node | Root | Compare | StringTest | First | AllOf | AnyOf | Not

ALWAYS = AllOf(())
NEVER = AnyOf(())


class Pattern(_Part, frozen=True):
    """A subscription: `root` is demanded below the document; without a root, every document matches (`/`).

    An *opaque* pattern has an `expression`, any XPath 1.0 as text. Every document that it matches has `root`, but not
    every document with `root` matches: this takes an evaluation of the expression. If only positions and counts make it
    opaque, `counted` is the tree that says the same with computed attributes (`computed_attributes.py`).
    """

    root: Node | None
    expression: str = ""
    counted: Node | None = None

    def __str__(self) -> str:
        if self.expression:
            return self.expression
        from .pattern_text import pattern_text

        return pattern_text(self)

    @property
    def linear(self) -> tuple[Node, ...] | None:
        """The steps if the pattern is a plain path of elements without conditions, otherwise None."""
        if self.expression:
            return None
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
        """The tests of all its nodes: names, `*`, attributes, `text()`."""
        return {each.test for each in conditions_in(self.root) if isinstance(each, Node)} if self.root else set()


def names_of(tests: set[str]) -> frozenset[str]:
    """The names of elements and attributes among tests."""
    return frozenset([test[1:] if test[0] == "@" else test for test in tests - _NO_NAMES])


def conditions_in(condition: Condition) -> list[Condition]:
    """The condition and all its parts, each after the condition that it belongs to."""
    found: list[Condition] = [condition]
    for current in found:  # grows during the loop
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
