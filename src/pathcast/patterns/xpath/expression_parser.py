"""Parsing any XPath 1.0 expression into an expression tree, with errors that point at the offending text.

A relative path that is the whole subscription, or a member of its outermost union, matches anywhere: it gets `//`
before it. Everything in parentheses, functions and predicates is plain XPath 1.0, as is every operand of an operator.

Checked while parsing: the names and arguments of functions, the kinds of their values, prefixes, steps and nesting.
Operators are reduced with a stack, so that only brackets nest. Cost: some 3 µs per token.
"""

from typing import cast

from pathcast.documents import XML_NAMESPACE, expanded
from pathcast.errors import LimitError, PatternError

from ..parsing.token_cursor import Cursor
from ..parsing.xpath_tokens import Token
from ..xpath_value_comparison import number_of, number_text
from .expression_tree import (
    ANY_NODE,
    ANYWHERE,
    FUNCTIONS,
    LEVELS,
    Axis,
    Call,
    Chain,
    Expression,
    Filter,
    Negative,
    NodeTest,
    Number,
    Path,
    Step,
    String,
    TestKind,
    height,
    kind_of,
)
from .regular_expressions import regular_expression

_AXES = frozenset(Axis.__args__)  # type: ignore[attr-defined]
_NODE_TYPES = frozenset({"node", "text", "comment", "processing-instruction"})
_WANTED = "a path, a literal or a function"
_SUPPORTED = "XPath 1.0 and the functions of docs/reference/xpath.md"
_UNION = LEVELS["|"]
MAX_HEIGHT = 80  # several calls of functions for each, when an expression is compiled


class ExpressionParser(Cursor):
    """Reads one expression."""

    def __init__(self, expression: str, namespaces: object, max_steps: int, max_nesting: int) -> None:
        super().__init__(expression, max_nesting)
        self.namespaces = namespaces
        self.max_steps = max_steps
        self.steps = 0

    def error(self, begin: int, end: int, reason: str, supported: str = _SUPPORTED) -> PatternError:
        return super().error(begin, end, reason, supported)

    def subscription(self) -> Expression:
        """The whole expression; relative paths match anywhere."""
        if self.token.kind == "end":
            raise self.error(
                0, len(self.expression), "the expression is empty", "a path such as /news/head/title or //title"
            )
        whole = self.operators()
        if self.token.kind != "end":
            raise self.unexpected("the end of the expression")
        if height(whole) > MAX_HEIGHT:
            raise LimitError(
                f"predicates, parentheses, functions and operators are nested more than {MAX_HEIGHT} levels deep; "
                "reduce the nesting"
            )
        return _anywhere(whole)

    # Operators.

    def operators(self) -> Expression:
        """Operands and binary operators, by precedence."""
        values = [self.signed()]
        waiting: list[tuple[int, str]] = []
        while (level := LEVELS.get(self.token.text, 0)) and level != _UNION:
            while waiting and waiting[-1][0] > level:
                _reduce(values, waiting)
            waiting.append((level, self.next().text))
            values.append(self.signed())
        while waiting:
            _reduce(values, waiting)
        return values[0]

    def signed(self) -> Expression:
        """A union of paths, or any other operand, after any number of minus signs."""
        signs = 0
        while self.sees("-"):
            self.next()
            signs += 1
        begin = self.token
        value = self.operand()
        members: list[tuple[str, Expression]] = []
        while self.sees("|"):
            self.check_nodes(value, begin, "'|' joins paths")
            begin = self.next()
            begin = self.token
            members.append(("|", self.operand()))
            self.check_nodes(members[-1][1], begin, "'|' joins paths")
        if members:
            value = Chain(value, tuple(members))
        for _ in range(2 - signs % 2 if signs else 0):  # two signs are a conversion to a number
            value = Negative(value)
        return value

    def operand(self) -> Expression:
        """A path, perhaps one that starts with an expression."""
        begin = self.token
        if not self.at_primary():
            return self.path()
        outermost = self.nesting == 0
        value = self.primary()
        predicates: list[Expression] = []
        if self.sees("[", "/", "//"):
            what = "predicates belong to" if self.sees("[") else "a path continues from"
            self.check_nodes(value, begin, f"{what} a set of nodes")
        while self.sees("["):
            predicates.append(self.predicate())
        if predicates:
            value = Filter(value, tuple(predicates))
        if self.sees("/", "//"):
            return Path(False, self.following_steps(), value)
        if outermost and begin.text == "(" and not predicates and _anywhere(value) != value:
            return Filter(value, ())  # in parentheses, a relative path is relative to the document
        return value

    def at_primary(self) -> bool:
        token = self.token
        if token.kind == "name":
            return self.before("(") and token.text not in _NODE_TYPES
        return token.kind in ("number", "literal") or token.text in ("(", "$")

    def primary(self) -> Expression:
        token = self.next()
        if token.kind == "number":
            number = number_of(token.text)
            return Number(number, number_text(number) or token.text)
        if token.kind == "literal":
            return String(token.text[1:-1])
        if token.text == "(":
            self.nest(token)
            value = self.operators()
            self.expect(")", "')'")
            self.nesting -= 1
            return value
        if token.text == "$":
            if self.token.kind != "name":
                raise self.unexpected("the name of a variable")
            raise self.error(token.at, self.token.stop, f"the variable '${self.token.text}' has no value", "a literal")
        return self.call(token)

    def check_nodes(self, value: Expression, begin: Token, what: str) -> None:
        if kind_of(value) != "nodes":
            end = self.tokens[self.at - 1].stop
            raise self.error(begin.at, end, f"{what}; '{self.expression[begin.at : end]}' is none")

    # Functions.

    def call(self, name: Token) -> Call:
        opening = self.next()
        signature = FUNCTIONS.get(name.text)
        if signature is None:
            raise self.error(name.at, opening.stop, f"unknown function '{name.text}()'")
        self.nest(opening)
        arguments: list[Expression] = []
        while not self.sees(")"):
            if arguments:
                self.expect(",", "',' or ')'")
            begin = self.token
            if len(arguments) == len(signature.arguments) and not signature.repeats:
                raise self.error(begin.at, begin.stop, f"{name.text}() takes {_count(name.text)}")
            value = self.operators()
            if signature.arguments[min(len(arguments), len(signature.arguments) - 1)] == "nodes":
                self.check_nodes(value, begin, f"{name.text}() takes a set of nodes")
            arguments.append(value)
        closing = self.next()
        if name.text == "matches" and len(arguments) == 2:
            self.check_regular_expression(arguments[1], begin)
        if len(arguments) < signature.least:
            raise self.error(name.at, closing.stop, f"{name.text}() takes {_count(name.text)}")
        self.nesting -= 1
        return Call(name.text, tuple(arguments))

    def check_regular_expression(self, argument: Expression, begin: Token) -> None:
        end = self.tokens[self.at - 2].stop
        if not isinstance(argument, String):
            reason = "the second argument of matches() must be a string literal"
            raise self.error(begin.at, end, reason, "matches(@a, 'x')")
        try:
            regular_expression(argument.value)
        except ValueError as error:
            raise self.error(begin.at, end, f"RE2 rejects the regular expression: {error}", "syntax of RE2") from None

    # Paths.

    def path(self) -> Path:
        if not self.sees("/", "//"):
            if not self.at_step():
                raise self.unexpected(_WANTED if self.at else "a step")
            return Path(False, (*self.step(), *self.following_steps()))
        if self.sees("/"):
            opening = self.next()
            if not self.at_step():
                if self.sees("/", "//", "["):
                    raise self.unexpected("a step")
                return Path(True, ())
            assert opening
            return Path(True, (*self.step(), *self.following_steps()))
        return Path(True, self.following_steps())

    def following_steps(self) -> tuple[Step, ...]:
        steps: list[Step] = []
        while self.sees("/", "//"):
            if self.next().text == "//":
                steps.append(ANYWHERE)
            if not self.at_step():
                raise self.unexpected("a step")
            steps += self.step()
        return tuple(steps)

    def at_step(self) -> bool:
        return self.token.kind == "name" or self.sees(".", "..", "@", "*")

    def step(self) -> tuple[Step, ...]:
        begin = self.token
        self.steps += 1
        if self.steps > self.max_steps:
            raise LimitError(
                f"the subscription has more than {self.max_steps} steps "
                "(raise the limit with Subscriptions(max_steps=…))",
                column=begin.at + 1,
            )
        if self.sees(".", ".."):
            self.next()
            if self.sees("["):
                reason = f"XPath does not allow a predicate after '{begin.text}'"
                raise self.error(self.token.at, self.token.stop, reason, "*[…], [a and b]")
            return (Step("self" if begin.text == "." else "parent", ANY_NODE),)
        axis: Axis = "child"
        if self.sees("@"):
            self.next()
            axis = "attribute"
        elif begin.kind == "name" and self.before("::"):
            if begin.text not in _AXES:
                raise self.error(begin.at, begin.stop + 2, f"unknown axis '{begin.text}::'", ", ".join(sorted(_AXES)))
            axis = cast(Axis, self.next().text)
            self.next()
        test, predicates = self.test(axis)
        while self.sees("["):
            predicates.append(self.predicate())
        return (Step(axis, test, tuple(predicates)),)

    def predicate(self) -> Expression:
        self.nest(self.next())
        value = self.operators()
        self.expect("]", "']'")
        self.nesting -= 1
        return value

    def test(self, axis: Axis) -> tuple[NodeTest, list[Expression]]:
        """A node test; `f:*` is `*[namespace-uri() = 'uri']`."""
        token = self.token
        if self.sees("*"):
            self.next()
            return NodeTest("any"), []
        if token.kind != "name":
            raise self.unexpected("an attribute name" if axis == "attribute" else "a name or a node test")
        self.next()
        if self.sees("(") and token.text in _NODE_TYPES:
            return self.node_type(token), []
        if self.sees("("):
            reason = f"'{token.text}()' is not a step"
            raise self.error(token.at, self.token.stop, reason, "text(), node(), a name or *")
        if self.sees(":") and self.before("*"):
            self.next()
            self.next()
            if self.namespaces == "ignore":
                return NodeTest("any"), []
            uri = String(self.namespace(token, token.text))
            return NodeTest("any"), [Chain(Call("namespace-uri", ()), (("=", uri),))]
        return NodeTest("name", self.name(token)), []

    def node_type(self, token: Token) -> NodeTest:
        self.next()
        target = ""
        if token.text == "processing-instruction" and self.token.kind == "literal":
            target = self.next().text[1:-1]
            self.expect(")", "')'")
            return NodeTest("processing-instruction", target or " ")  # no target is empty
        self.expect(")", "')'")
        return NodeTest(cast(TestKind, token.text))

    def name(self, token: Token) -> str:
        """The expanded name of a token."""
        text = token.text
        if text.startswith("Q{"):
            uri, _, local = text[2:].rpartition("}")
            return local if self.namespaces == "ignore" else expanded(uri.replace("{{", "{").replace("}}", "}"), local)
        prefix, colon, local = text.rpartition(":")
        if not colon or self.namespaces == "ignore":
            return local
        return expanded(self.namespace(token, prefix), local)

    def namespace(self, token: Token, prefix: str) -> str:
        """The URI of a prefix."""
        declared = self.namespaces if isinstance(self.namespaces, dict) else dict(self.namespaces or {})  # type: ignore[call-overload]
        uri = declared.get(prefix, XML_NAMESPACE if prefix == "xml" else "")
        if not uri:
            known = ", ".join(sorted(declared)) or "none"
            raise self.error(
                token.at,
                token.at + len(prefix) + 1,
                f"the prefix '{prefix}:' is not declared",
                f"prefixes given with namespaces={{'{prefix}': 'http://…'}} (declared: {known})",
            )
        return cast(str, uri)


def _reduce(values: list[Expression], waiting: list[tuple[int, str]]) -> None:
    """Replace the operands of the last operators, all of one precedence, by their chain."""
    level = waiting[-1][0]
    count = 0
    while count < len(waiting) and waiting[-1 - count][0] == level:
        count += 1
    symbols = [symbol for _, symbol in waiting[-count:]]
    chain = Chain(values[-count - 1], tuple(zip(symbols, values[-count:], strict=True)))
    del waiting[-count:], values[-count - 1 :]
    values.append(chain)


def _anywhere(path: Expression) -> Expression:
    """A relative path, or each relative member of a union, with `//` before it."""
    if isinstance(path, Path) and not path.absolute and path.start is None:
        return Path(True, (ANYWHERE, *path.steps))
    if isinstance(path, Chain) and path.rest[0][0] == "|":
        return Chain(_anywhere(path.first), tuple([("|", _anywhere(member)) for _, member in path.rest]))
    return path


def _count(function: str) -> str:
    """The number of arguments of a function, in words."""
    signature = FUNCTIONS[function]
    most = len(signature.arguments)
    if signature.repeats:
        return f"at least {signature.least} arguments"
    if not most:
        return "no argument"
    number = f"{signature.least}" if signature.least == most else f"{signature.least} to {most}"
    return f"{number} argument{'s' if most > 1 else ''}"
