"""Recursive descent: the grammar of tree patterns, rule by rule, over the tokens of one expression.

It reads every expression of this fragment of XPath, raises a `PatternError` for any other, and so defines the fragment.
The quicker parsers (`cached_pattern_assembly.py`, `plain_path_encoder.py`) return the same pattern, or leave the
expression to it; what it rejects goes to `xpath/any_expression.py`, which words the errors that users see.

Cost: some 2 µs per token.
"""

from collections.abc import Mapping
from typing import Literal, cast

from pathcast.documents import XML_NAMESPACE, expanded
from pathcast.errors import LimitError, PatternError

from .. import normal_form_constructors as normal
from ..tree_pattern import (
    ALWAYS,
    NEVER,
    TEXT,
    WILDCARD,
    AllOf,
    AnyOf,
    Axis,
    Condition,
    First,
    Node,
    Not,
    Operator,
    Pattern,
    StringFunction,
)
from ..xpath_value_comparison import number_of
from .parsed_operands import LiteralValue, Operand, Path, Truth
from .token_cursor import Cursor
from .xpath_tokens import Token

Namespaces = Mapping[str, str] | Literal["ignore"] | None

MAX_STEPS = 256
MAX_TREE_STEPS = 100
MAX_NESTING = 64
_MIRRORED: dict[str, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FUNCTIONS = "not(), contains() and starts-with()"
_NODE_TESTS = frozenset({"text", "node", "comment", "processing-instruction"})


class Descent(Cursor):
    """Reads one expression, as a `pattern` or as a `predicate`."""

    def __init__(self, expression: str, namespaces: Namespaces, max_steps: int, max_nesting: int) -> None:
        super().__init__(expression, max_nesting)
        self.namespaces = namespaces
        self.max_steps = max_steps
        self.steps = 0
        self.plain = True
        self.printed = max_nesting > MAX_NESTING  # parsed before, within all limits

    # The whole expression.

    def pattern(self) -> Pattern:
        if self.token.kind == "end":
            raise self.error(
                0, len(self.expression), "the expression is empty", "a path such as /news/head/title or //title"
            )
        if self.token.kind == "name" and self.before("(") and self.token.text not in _NODE_TESTS:
            raise self.unexpected("a path")
        path = self.path()
        if self.token.kind != "end":
            raise self.unexpected("the end of the expression")
        if not path.steps:
            return Pattern(None)
        if not path.absolute:
            _, test, conditions = path.steps[0]
            path.steps[0] = ("//", test, conditions)
        root = normal.chain(path.steps)
        return Pattern(root if isinstance(root, Node) else Node("/", WILDCARD, (NEVER,)))

    # Paths.

    def path(self) -> Path:
        path = Path(absolute=self.sees("/", "//"), begin=self.token.at)
        axis: Axis = "/"
        if path.absolute:
            axis = cast(Axis, self.next().text)
            if axis == "/" and not self.at_step():
                path.end = path.begin + 1
                return path
        while True:
            closed = bool(path.steps) and _is_value(path.steps[-1][1])
            if self.sees("."):
                self.next()
                if self.sees("["):
                    raise self.error(
                        self.token.at, self.token.stop, "XPath does not allow a predicate after '.'", "*[…], [a and b]"
                    )
                path.loose = axis == "//"
            else:
                self.step(path, axis, closed)
                path.loose = False
            path.end = self.tokens[self.at - 1].stop
            if not self.sees("/", "//"):
                return path
            follows = cast(Axis, self.next().text)
            axis = "//" if follows == "//" or path.loose else "/"

    def at_step(self) -> bool:
        return self.token.kind == "name" or self.sees(".", "..", "@", "*")

    def step(self, path: Path, axis: Axis, closed: bool) -> None:
        begin = self.token
        if not self.at_step():
            raise self.unexpected("a step")
        self.steps += 1
        if self.steps > self.max_steps:
            raise LimitError(
                f"the subscription has more than {self.max_steps} steps "
                "(raise the limit with Subscriptions(max_steps=…))",
                column=begin.at + 1,
            )
        test = self.test()
        if closed:
            above = path.steps[-1][1]
            kind = "a text node" if above == TEXT else "an attribute"
            raise self.error(begin.at, self.tokens[self.at - 1].stop, f"{kind} has no children; end the path there")
        conditions: list[Condition] = []
        if _is_value(test):
            self.grow()
        while self.sees("["):
            conditions.append(self.predicate(inside_value=_is_value(test)))
        if not self.plain:
            self.grow()
        path.steps.append((axis, test, conditions))

    def grow(self) -> None:
        """The expression is more than a plain path: it becomes a tree, with bounded depth."""
        self.plain = False
        if self.steps > MAX_TREE_STEPS and not self.printed:
            raise LimitError(
                f"the subscription has more than {MAX_TREE_STEPS} steps and is not a plain path of elements; "
                "remove steps, or all predicates, attributes and text()",
                column=self.token.at + 1,
            )

    def test(self) -> str:
        token = self.next()
        if token.text == "..":
            raise self.error(
                token.at, token.stop, "'..' is not supported; write a predicate, such as /a[b]/c instead of /a/b/../c"
            )
        if token.text == "*":
            return WILDCARD
        if token.text == "@":
            if self.sees("*"):
                raise self.error(token.at, self.token.stop, "'@*' is not supported", "an attribute by its name, @a")
            if self.token.kind != "name":
                raise self.unexpected("an attribute name")
            return "@" + self.name(self.next())
        if self.sees("::"):
            raise self.error(token.at, self.token.stop, f"'{token.text}::' is not supported")
        if self.sees("("):
            return self.node_test(token)
        return self.name(token)

    def node_test(self, token: Token) -> str:
        opening = self.next()
        if token.text == "text" and self.sees(")"):
            self.next()
            return TEXT
        end = self.token.stop if self.sees(")") else opening.stop
        raise self.error(token.at, end, f"'{self.expression[token.at : end]}' is not supported here")

    def name(self, token: Token) -> str:
        """The expanded name of a token."""
        text = token.text
        if self.sees(":") and self.before("*"):
            raise self.error(token.at, token.stop + 2, f"'{text}:*' is not supported", "a name with its prefix, or *")
        if text.startswith("Q{"):
            uri, _, local = text[2:].rpartition("}")
            uri = uri.replace("{{", "{").replace("}}", "}")
            return local if self.namespaces == "ignore" else expanded(uri, local)
        prefix, colon, local = text.rpartition(":")
        if not colon or self.namespaces == "ignore":
            return local
        declared = self.namespaces or {}
        uri = declared.get(prefix, XML_NAMESPACE if prefix == "xml" else "")
        if not uri:
            known = ", ".join(sorted(declared)) or "none"
            raise self.error(
                token.at,
                token.at + len(prefix) + 1,
                f"the prefix '{prefix}:' is not declared",
                f"prefixes given with namespaces={{'{prefix}': 'http://…'}} (declared: {known})",
            )
        return expanded(uri, local)

    # Predicates.

    def predicate(self, *, inside_value: bool) -> Condition:
        self.grow()
        opening = self.next()
        self.nest(opening)
        truth = self.disjunction()
        self.expect("]", "']'")
        self.nesting -= 1
        if inside_value and _looks_below(truth):
            raise self.error(
                opening.at,
                self.tokens[self.at - 1].stop,
                "a predicate of an attribute or text node cannot contain a path",
                "[. = 5]",
            )
        return truth

    def disjunction(self, first: Condition | None = None) -> Condition:
        """`a and b or c`; `first` if the beginning is already read."""
        parts = [self.conjunction(first)]
        while self.sees("or"):
            self.next()
            parts.append(self.conjunction())
        return normal.any_of(parts)

    def conjunction(self, first: Condition | None = None) -> Condition:
        parts = [self.truth(self.comparison()) if first is None else first]
        while self.sees("and"):
            self.next()
            parts.append(self.truth(self.comparison()))
        return normal.all_of(parts)

    def comparison(self) -> Operand:
        left = self.operand()
        if self.token.text not in _MIRRORED:
            return left
        operator = cast(Operator, self.next().text)
        right = self.operand()
        if self.token.text in _MIRRORED:
            raise self.error(self.token.at, self.token.stop, "comparisons cannot be chained", "a = 1 and b = 2")
        if isinstance(left, Path) and isinstance(right, LiteralValue):
            return self.compared(left, operator, right)
        if isinstance(left, LiteralValue) and isinstance(right, Path):
            return self.compared(right, _MIRRORED[operator], left)
        raise self.error(
            left.begin,
            right.end,
            "a comparison must have a path on one side and a string or number on the other",
            "a/@b = 5",
        )

    def compared(self, path: Path, operator: Operator, literal: LiteralValue) -> Truth:
        begin, end = min(path.begin, literal.begin), max(path.end, literal.end)
        if path.loose:
            raise self.error(path.begin, path.end, "'//.' cannot be compared", "//* or //text()")
        test = normal.compare(operator, literal.value, literal.text)
        return Truth(self.at_the_end(path, test), begin, end)

    def at_the_end(self, path: Path, test: Condition) -> Condition:
        """`test` on the last node of the path."""
        if not path.steps:
            if not path.absolute:
                return test
            path.steps.append(("/", WILDCARD, []))  # the document's string-value is its root element's
        axis, name, conditions = path.steps[-1]
        path.steps[-1] = (axis, name, [*conditions, test])
        return self.existence(path)

    def existence(self, path: Path) -> Condition:
        if not path.steps:
            return ALWAYS
        demanded = normal.chain(path.steps)
        return normal.root(demanded) if path.absolute else demanded

    def truth(self, operand: Operand) -> Condition:
        match operand:
            case Truth():
                return operand.condition
            case Path():
                return self.existence(operand)
            case LiteralValue(value=value):
                what = "a string" if isinstance(value, str) else "a position"
                raise self.error(operand.begin, operand.end, f"{what} as a predicate is not supported", "[a], [@a = 5]")

    # Operands.

    def operand(self) -> Operand:
        token = self.token
        if token.kind == "literal":
            self.next()
            return LiteralValue(token.text[1:-1], token.text[1:-1], token.at, token.stop)
        if token.kind == "number" or self.sees("-"):
            return self.number()
        if self.sees("("):
            return self.parenthesis()
        if token.kind == "name" and self.before("(") and token.text != "text":
            return self.function()
        if self.at_step() or self.sees("/", "//"):
            return self.path()
        raise self.unexpected("a path, a literal or a function")

    def number(self) -> LiteralValue:
        begin = self.next()
        sign = ""
        if begin.text == "-":
            sign = "-"
            if self.token.kind != "number":
                raise self.unexpected("a number")
        text = self.next().text if sign else begin.text
        value = number_of(text)
        return LiteralValue(-value if sign else value, sign + text, begin.at, self.tokens[self.at - 1].stop)

    def parenthesis(self) -> Operand:
        opening = self.next()
        self.nest(opening)
        inner = self.comparison()
        if self.sees("and", "or"):
            inner = Truth(self.disjunction(self.truth(inner)), opening.at, opening.at)
        closing = self.expect(")", "')'")
        self.nesting -= 1
        if self.sees("/", "//", "["):
            raise self.error(
                opening.at, closing.stop, "a path cannot continue after parentheses; write the path without them"
            )
        if isinstance(inner, Truth):
            return Truth(inner.condition, opening.at, closing.stop)
        return inner

    def function(self) -> Truth:
        name = self.next()
        opening = self.next()
        self.nest(opening)
        if name.text == "not":
            condition = normal.negation(self.disjunction())
        elif name.text in ("contains", "starts-with"):
            condition = self.string_function(cast(StringFunction, name.text))
        else:
            raise self.unknown_function(name, opening)
        closing = self.expect(")", "')'")
        self.nesting -= 1
        return Truth(condition, name.at, closing.stop)

    def unknown_function(self, name: Token, opening: Token) -> PatternError:
        return self.error(name.at, opening.stop, f"the function '{name.text}()' is not supported", _FUNCTIONS)

    def string_function(self, function: StringFunction) -> Condition:
        path = self.operand()
        self.expect(",", "','")
        literal = self.operand()
        if not isinstance(path, Path):
            raise self.error(
                path.begin, path.end, f"the first argument of {function}() must be a path", f"{function}(@a, 'x')"
            )
        if not isinstance(literal, LiteralValue) or not isinstance(literal.value, str):
            raise self.error(
                literal.begin,
                literal.end,
                f"the second argument of {function}() must be a string",
                f"{function}(@a, 'x')",
            )
        if path.absolute and not path.steps:
            path.steps.append(("/", WILDCARD, []))
        steps = []
        for axis, test, conditions in path.steps:
            step = normal.node(axis, test, conditions) if test != WILDCARD else _wildcard(axis, conditions)
            if not isinstance(step, Node):
                return NEVER if literal.value else ALWAYS
            steps.append(step)
        one_attribute = self.namespaces != "ignore"
        text = literal.value
        return normal.string_test(function, tuple(steps), text, absolute=path.absolute, one_attribute=one_attribute)


def _is_value(test: str) -> bool:
    """Whether a test selects attributes or text, which have no children."""
    return test[0] == "@" or test == TEXT


def _wildcard(axis: Axis, conditions: list[Condition]) -> Node | None:
    """A `*` step of a path whose first node counts: its axis must not change."""
    holds = normal.node("/", WILDCARD, conditions)
    return Node(axis, WILDCARD, holds.conditions) if isinstance(holds, Node) else None


def _looks_below(condition: Condition) -> bool:
    """Whether a condition demands nodes below its context (an attribute or text node has none)."""
    match condition:
        case Node():
            return True
        case First(absolute=absolute):
            return not absolute
        case AllOf(conditions=parts) | AnyOf(conditions=parts):
            return any(map(_looks_below, parts))
        case Not(condition=part):
            return _looks_below(part)
        case _:
            return False
