"""Equivalent expressions: the same question in the words of the tree patterns' fragment, where it has such words.

A subscription asks for a boolean, so `count(b) > 0` is `b`, a union is an `or`, `boolean(b)` is `b`, `descendant::b` is
`.//b`, and an expression that is no path is a condition of the root element: `not(//a)` is `/*[not(//a)]`.

Invariant: the result has the same boolean value as the expression, in every context. What is not rewritten stays.
"""

from dataclasses import replace

from .expression_tree import (
    ANYWHERE,
    Call,
    Chain,
    Expression,
    Filter,
    Number,
    Path,
    Step,
    String,
    is_positional,
    kind_of,
)

SELF = Step("self", ANYWHERE.test)
TRUE = Path(False, (SELF,))
FALSE = Call("not", (TRUE,))
ROOT_ELEMENT = "/*"

_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_AT_LEAST_ONE = {(">", 0.0), (">=", 1.0), ("!=", 0.0)}
_NONE = {("=", 0.0), ("<", 1.0), ("<=", 0.0)}


def as_condition(expression: Expression) -> Expression:
    """The expression where only its boolean value counts."""
    match expression:
        case Call(function="boolean", arguments=(argument,)):
            # A number alone would be a position in a predicate.
            return expression if kind_of(argument) == "number" else as_condition(argument)
        case Call(function="not", arguments=(argument,)):
            return Call("not", (as_condition(argument),))
        case Call(function="true"):
            return TRUE
        case Call(function="false"):
            return FALSE
        case String(value=value):
            return TRUE if value else FALSE
        case Filter(nodes=nodes, predicates=()):
            return as_condition(nodes)
        case Path():
            return _path(expression)
        case Chain(first=first, rest=((symbol, _), *_) as rest) if symbol in ("and", "or", "|"):
            word = "or" if symbol == "|" else symbol
            parts = [(word, as_condition(operand)) for _, operand in rest]
            return Chain(as_condition(first), tuple(parts))
        case Chain(first=first, rest=((symbol, second),)):
            return _comparison(expression, first, symbol, second)
        case _:
            return expression


def _comparison(expression: Expression, first: Expression, symbol: str, second: Expression) -> Expression:
    if isinstance(second, Call) and isinstance(first, Number) and symbol in _MIRRORED:
        first, second, symbol = second, first, _MIRRORED[symbol]
    if isinstance(first, Call) and first.function == "count" and isinstance(second, Number):
        if (symbol, second.value) in _AT_LEAST_ONE:
            return as_condition(first.arguments[0])
        if (symbol, second.value) in _NONE:
            return Call("not", (as_condition(first.arguments[0]),))
    if isinstance(first, Path) and not isinstance(second, Path):
        return Chain(_path(first), ((symbol, second),))
    if isinstance(second, Path) and not isinstance(first, Path):
        return Chain(first, ((symbol, _path(second)),))
    return expression


def _path(path: Path) -> Expression:
    """The path with child steps and `//`, and with conditions for predicates."""
    steps: list[Step] = []
    for step in path.steps:
        predicates = tuple([each if is_positional(each) else as_condition(each) for each in step.predicates])
        if step.axis == "descendant" and not any(map(is_positional, predicates)):
            begin = () if steps or path.absolute or path.start is not None else (SELF,)
            steps += (*begin, ANYWHERE, Step("child", step.test, predicates))
        else:
            steps.append(replace(step, predicates=predicates))
    return replace(path, steps=tuple(steps))


def at_the_document(expression: Expression) -> Expression:
    """The expression with absolute paths for those that are relative to the document; not inside predicates."""
    match expression:
        case Path(absolute=False, start=None, steps=steps):
            return Path(True, steps)
        case Path(start=start) if start is not None:
            return replace(expression, start=at_the_document(start))
        case Filter(nodes=nodes):
            return replace(expression, nodes=at_the_document(nodes))
        case Call(function=function, arguments=arguments):
            return Call(function, tuple([at_the_document(argument) for argument in arguments]))
        case Chain(first=first, rest=rest):
            return Chain(at_the_document(first), tuple([(each, at_the_document(operand)) for each, operand in rest]))
        case _:
            return expression


def subscription_text(condition: Expression) -> str:
    """A condition at the document as an expression whose answer does not depend on where it is evaluated."""
    from .expression_printing import expression_text

    rooted = at_the_document(condition)
    if isinstance(rooted, Path) and rooted.start is None:
        return expression_text(rooted)
    assert kind_of(rooted) != "number", "a number would be a position"
    return f"{ROOT_ELEMENT}[{expression_text(rooted)}]"
