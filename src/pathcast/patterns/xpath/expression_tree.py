"""Expression trees: any XPath 1.0 expression, with names expanded and abbreviations written out.

`//a` is `/descendant-or-self::node()/child::a`, `@a` is `attribute::a`, `.` is `self::node()`, and `..` is
`parent::node()`.
Operators of the same precedence are one `Chain`, so a long sum is as deep as a short one.

Invariant: every expression has one kind, known before any document: a set of nodes, a number, a string or a boolean.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["nodes", "number", "string", "boolean"]
Axis = Literal[
    "child",
    "descendant",
    "descendant-or-self",
    "attribute",
    "self",
    "parent",
    "ancestor",
    "ancestor-or-self",
    "following",
    "following-sibling",
    "preceding",
    "preceding-sibling",
    "namespace",
]
TestKind = Literal["name", "any", "node", "text", "comment", "processing-instruction"]


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written."""

    value: float
    text: str


@dataclass(frozen=True, slots=True)
class String:
    """A string literal."""

    value: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments."""

    function: str
    arguments: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Negative:
    """`- operand`."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Chain:
    """`first op a op b …`, evaluated from left to right; all operators have the same precedence."""

    first: "Expression"
    rest: tuple[tuple[str, "Expression"], ...]


class NodeTest(NamedTuple):
    """What a step selects: `name` is an expanded name, or the target of processing instructions."""

    kind: TestKind
    name: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path."""

    axis: Axis
    test: NodeTest
    predicates: tuple["Expression", ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the context node, from the document (`absolute`), or from the nodes of an expression (`start`)."""

    absolute: bool
    steps: tuple[Step, ...]
    start: "Expression | None" = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Predicates after an expression in parentheses, or after a function; they count in document order."""

    nodes: "Expression"
    predicates: tuple["Expression", ...]


Expression = Number | String | Call | Negative | Chain | Path | Filter

ANY_NODE = NodeTest("node")
ANYWHERE = Step("descendant-or-self", ANY_NODE)

_PRECEDENCE = (("or",), ("and",), ("=", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "div", "mod"), (), ("|",))
LEVELS = {symbol: level for level, symbols in enumerate(_PRECEDENCE, 1) for symbol in symbols}
"""Binary operators by precedence; 7 is the unary minus."""


class Signature(NamedTuple):
    """The arguments of a function, `any` for those of any kind, the number that it needs, and its result's kind.

    The last kind of `arguments` repeats if the function takes any number.
    """

    arguments: tuple[Kind | Literal["any"], ...]
    least: int
    result: Kind
    repeats: bool = False


FUNCTIONS: dict[str, Signature] = {
    "last": Signature((), 0, "number"),
    "position": Signature((), 0, "number"),
    "count": Signature(("nodes",), 1, "number"),
    "id": Signature(("any",), 1, "nodes"),
    "local-name": Signature(("nodes",), 0, "string"),
    "namespace-uri": Signature(("nodes",), 0, "string"),
    "name": Signature(("nodes",), 0, "string"),
    "string": Signature(("any",), 0, "string"),
    "concat": Signature(("string", "string"), 2, "string", repeats=True),
    "starts-with": Signature(("string", "string"), 2, "boolean"),
    "contains": Signature(("string", "string"), 2, "boolean"),
    "substring-before": Signature(("string", "string"), 2, "string"),
    "substring-after": Signature(("string", "string"), 2, "string"),
    "substring": Signature(("string", "number", "number"), 2, "string"),
    "string-length": Signature(("string",), 0, "number"),
    "normalize-space": Signature(("string",), 0, "string"),
    "translate": Signature(("string", "string", "string"), 3, "string"),
    "boolean": Signature(("any",), 1, "boolean"),
    "not": Signature(("boolean",), 1, "boolean"),
    "true": Signature((), 0, "boolean"),
    "false": Signature((), 0, "boolean"),
    "lang": Signature(("string",), 1, "boolean"),
    "number": Signature(("any",), 0, "number"),
    "sum": Signature(("nodes",), 1, "number"),
    "floor": Signature(("number",), 1, "number"),
    "ceiling": Signature(("number",), 1, "number"),
    "round": Signature(("number",), 1, "number"),
    "ends-with": Signature(("string", "string"), 2, "boolean"),
    "lower-case": Signature(("string",), 0, "string"),
    "upper-case": Signature(("string",), 0, "string"),
    "matches": Signature(("string", "string"), 2, "boolean"),
    "date": Signature(("string",), 0, "number"),
}
"""The functions of XPath 1.0, and at the end those that it lacks: three of XPath 2.0, and two of our own rules.

`matches` searches with RE2, whose time is linear; its second argument is a literal. `date` is a number of seconds.
"""


def kind_of(expression: Expression) -> Kind:
    """The kind of an expression's value."""
    match expression:
        case Path() | Filter():
            return "nodes"
        case Number() | Negative():
            return "number"
        case String():
            return "string"
        case Call(function=function):
            return FUNCTIONS[function].result
        case Chain(rest=rest):
            level = LEVELS[rest[0][0]]
            return "nodes" if level == LEVELS["|"] else "number" if level >= LEVELS["+"] else "boolean"


def operands(expression: Expression) -> list[Expression]:
    """The expressions that are evaluated in the same context; those in predicates have one of their own."""
    match expression:
        case Call(arguments=arguments):
            return list(arguments)
        case Negative(operand=operand):
            return [operand]
        case Chain(first=first, rest=rest):
            return [first, *[operand for _, operand in rest]]
        case Path(start=start):
            return [] if start is None else [start]
        case Filter(nodes=nodes):
            return [nodes]
        case _:
            return []


def predicates_of(expression: Expression) -> list[Expression]:
    """The predicates of an expression's own steps."""
    match expression:
        case Path(steps=steps):
            return [predicate for step in steps for predicate in step.predicates]
        case Filter(predicates=predicates):
            return list(predicates)
        case _:
            return []


def parts(expression: Expression) -> Iterator[Expression]:
    """The expression and all expressions in it."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += operands(part)
        waiting += predicates_of(part)


def height(expression: Expression) -> int:
    """How deep expressions are nested in one another."""
    level, deep = [expression], 0
    while level:
        deep += 1
        level = [below for part in level for below in (*operands(part), *predicates_of(part))]
    return deep


def is_positional(predicate: Expression) -> bool:
    """Whether a predicate depends on the position of its node, or on the number of nodes."""
    if kind_of(predicate) == "number":
        return True
    waiting = [predicate]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.function in ("position", "last"):
            return True
        waiting += operands(part)
    return False
