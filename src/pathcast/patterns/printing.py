"""Printing: a tree pattern as XPath that parses back to the same pattern.

Names in a namespace print as `Q{uri}local`, which needs no table of prefixes. Of the nodes that a node demands, the
tallest plain one continues the path, the others stand in brackets: `/a[b]/c/d`, not `/a[b][c/d]`.
"""

import re

from .model import AllOf, AnyOf, Compare, Condition, First, Node, Not, Pattern, Root, StringTest

_OR, _AND = 0, 1
_NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")


def pattern_text(pattern: Pattern) -> str:
    """The pattern as an absolute XPath expression."""
    return "/" if pattern.root is None else _path(pattern.root, "/", "//")


def condition_text(condition: Condition) -> str:
    """A condition as it stands inside a predicate."""
    return _condition(condition, _OR)


def _path(node: Node, child: str, descendant: str) -> str:
    """The path that starts at `node`, its first axis written as given."""
    text = ""
    current: Node | None = node
    while current is not None:
        follow = _continuation(current)
        text += (child if current.axis == "/" else descendant) + _test(current.test)
        text += "".join(f"[{_condition(c, _OR)}]" for c in current.conditions if c is not follow)
        child, descendant, current = "/", "//", follow
    return text


def _continuation(node: Node) -> Node | None:
    """The demanded node that continues the path."""
    plain = [c for c in node.conditions if isinstance(c, Node) and (c.is_element or not c.conditions)]
    return max(plain, key=_height) if plain else None


def _height(node: Node) -> int:
    return 1 + max((_height(c) for c in node.conditions if isinstance(c, Node)), default=0)


def _condition(condition: Condition, around: int) -> str:
    match condition:
        case Node():
            return _demand(condition, "", ".//")
        case Root():
            return _demand(condition.node, "/", "//")
        case Compare():
            return f". {condition.operator} {_literal(condition)}"
        case StringTest():
            return f"{condition.function}(., {_quoted(condition.text)})"
        case First():
            return f"{condition.test.function}({_steps(condition)}, {_quoted(condition.test.text)})"
        case Not():
            return f"not({_condition(condition.condition, _OR)})"
        case AllOf(parts):
            if not parts:
                return "."
            return " and ".join(_condition(part, _AND) for part in parts)
        case AnyOf(parts):
            if not parts:
                return "not(.)"
            text = " or ".join(_condition(part, _AND) for part in parts)
            return f"({text})" if around > _OR else text


def _demand(node: Node, child: str, descendant: str) -> str:
    """A path inside a predicate; a lone comparison of an attribute or text node is written as one."""
    if not node.is_element and len(node.conditions) == 1:
        test = node.conditions[0]
        if isinstance(test, Compare):
            bare = _path(Node(node.axis, node.test), child, descendant)
            return f"{bare} {test.operator} {_literal(test)}"
    return _path(node, child, descendant)


def _steps(first: First) -> str:
    text = ""
    child, descendant = ("/", "//") if first.absolute else ("", ".//")
    for step in first.steps:
        text += (child if step.axis == "/" else descendant) + _test(step.test)
        text += "".join(f"[{_condition(c, _OR)}]" for c in step.conditions)
        child, descendant = "/", "//"
    return text or "/"


def _test(test: str) -> str:
    return test.replace("{", "Q{", 1)


def _literal(test: Compare) -> str:
    """The literal as written; a string that stood for a number, where that is no XPath number, stays a string."""
    return test.text if test.number is not None and _NUMBER.fullmatch(test.text) else _quoted(test.text)


def _quoted(text: str) -> str:
    return f'"{text}"' if "'" in text else f"'{text}'"
