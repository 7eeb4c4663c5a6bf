"""Printing: an expression tree as XPath that parses back to the same tree.

Names in a namespace print as `Q{uri}local` and abbreviations are used where they exist, so equal trees have one text.
"""

from ..pattern_text import quoted, test_text
from .expression_tree import (
    ANYWHERE,
    LEVELS,
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
)

_PARENT = Step("parent", NodeTest("node"))
_SELF = Step("self", NodeTest("node"))
_UNARY = 7


def expression_text(expression: Expression) -> str:
    """The expression as XPath."""
    return _text(expression, 0)


def _text(expression: Expression, around: int) -> str:
    """The expression, in parentheses if its operator binds less tightly than the one around it."""
    match expression:
        case Number(text=text):
            return text
        case String(value=value):
            return quoted(value)
        case Call(function=function, arguments=arguments):
            written = ""
            for argument in arguments:
                written += (", " if written else "") + _text(argument, 0)
            return f"{function}({written})"
        case Negative(operand=operand):
            text = "-" + _text(operand, _UNARY)
            return f"({text})" if around > _UNARY else text
        case Chain(first=first, rest=rest):
            level = LEVELS[rest[0][0]]
            text = _text(first, level + 1)
            for operator, operand in rest:
                text += f" {operator} " + _text(operand, level + 1)
            return f"({text})" if around > level else text
        case Filter(nodes=nodes, predicates=predicates):
            text = _text(nodes, 0)
            if not (isinstance(nodes, Call) and predicates):
                text = f"({text})"
            return text + _predicates(predicates)
        case Path():
            text = _path(expression)
            return "(/)" if text == "/" and around else text  # an operator after it would be the name of a step


def _path(path: Path) -> str:
    text = ""
    if path.start is not None:
        text = _text(path.start, 0)
        if not isinstance(path.start, Call | Filter):
            text = f"({text})"
    elif path.absolute and not path.steps:
        return "/"
    slash = path.absolute or path.start is not None
    last = len(path.steps) - 1
    for index, step in enumerate(path.steps):
        if step == ANYWHERE and slash and index < last and not text.endswith("//"):
            text += "//"
            continue
        if slash and not text.endswith("//"):
            text += "/"
        text += _step(step)
        slash = True
    return text


def _step(step: Step) -> str:
    if step == _SELF:
        return "."
    if step == _PARENT:
        return ".."
    axis = {"child": "", "attribute": "@"}.get(step.axis, f"{step.axis}::")
    return axis + _test(step.test) + _predicates(step.predicates)


def _test(test: NodeTest) -> str:
    match test.kind:
        case "name":
            return test_text(test.name)
        case "any":
            return "*"
        case "processing-instruction" if test.name:
            return f"processing-instruction({quoted(test.name.strip())})"
        case kind:
            return f"{kind}()"


def _predicates(predicates: tuple[Expression, ...]) -> str:
    text = ""
    for predicate in predicates:
        text += f"[{_text(predicate, 0)}]"
    return text
