"""Printing: a tree pattern as XPath that parses back to the same pattern.

Names in a namespace print as `Q{uri}local`, which needs no prefix table. Of the nodes that a node demands, the tallest
plain one continues the path, and the others are printed in brackets: `/a[b]/c/d`, not `/a[b][c/d]`.
"""

import re

from .tree_pattern import AllOf, AnyOf, Compare, Condition, First, Node, Not, Pattern, Root, StringTest, conditions_in
from .xpath_value_comparison import number_text

_OR, _AND = 0, 1
_NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")


def pattern_text(pattern: Pattern) -> str:
    """The pattern as an absolute XPath expression."""
    return "/" if pattern.root is None else _path(pattern.root, "/", "//")


def condition_text(condition: Condition) -> str:
    """A condition as printed inside a predicate."""
    return _condition(condition, _OR)


def has_one_text(condition: Condition) -> bool:
    """Whether all equal conditions have the same text; not so for a number without a shortest text."""
    for part in conditions_in(condition):
        if isinstance(part, Compare) and part.number is not None and number_text(part.number) is None:
            return False
    return True


def _path(node: Node, child: str, descendant: str) -> str:
    """The path that starts at `node`, with its first axis written as given."""
    text = ""
    current: Node | None = node
    while current is not None:
        follow = _continuation(current.conditions)
        text += (child if current.axis == "/" else descendant) + test_text(current.test)
        for condition in current.conditions:
            if condition is not follow:
                text += f"[{_condition(condition, _OR)}]"
        child, descendant, current = "/", "//", follow
    return text


def _continuation(conditions: tuple[Condition, ...]) -> Node | None:
    """The demanded node that continues the path: the first of the tallest."""
    plain = [c for c in conditions if isinstance(c, Node) and (not c.conditions or c.is_element)]
    if len(plain) < 2:
        return plain[0] if plain else None
    return max(plain, key=height)


def height(node: Node) -> int:
    """The number of nodes on the longest downward path, including the node itself."""
    found = 0
    level = [node]
    while level:
        found += 1
        level = [below for each in level for below in each.conditions if isinstance(below, Node)]
    return found


def _condition(condition: Condition, around: int) -> str:
    if isinstance(condition, Node):  # most are
        return _demand(condition, "", ".//")
    match condition:
        case Compare():
            return f". {condition.operator} {literal_text(condition)}"
        case Root():
            return _demand(condition.node, "/", "//")
        case StringTest():
            return f"{condition.function}(., {quoted(condition.text)})"
        case First():
            return f"{condition.test.function}({_steps(condition)}, {quoted(condition.test.text)})"
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
    """A path inside a predicate; a lone comparison of an attribute or text node prints as a comparison."""
    if len(node.conditions) == 1 and not node.is_element:
        test = node.conditions[0]
        if isinstance(test, Compare):
            axis = child if node.axis == "/" else descendant
            return f"{axis}{test_text(node.test)} {test.operator} {literal_text(test)}"
    return _path(node, child, descendant)


def _steps(first: First) -> str:
    text = ""
    child, descendant = ("/", "//") if first.absolute else ("", ".//")
    for step in first.steps:
        text += (child if step.axis == "/" else descendant) + test_text(step.test)
        text += "".join(f"[{_condition(c, _OR)}]" for c in step.conditions)
        child, descendant = "/", "//"
    return text or "/"


def test_text(test: str) -> str:
    """The printed test of a node."""
    begin, brace, name = test.partition("{")
    if not brace:
        return test
    uri, _, local = name.rpartition("}")
    if "{" in uri or "}" in uri:
        uri = uri.replace("{", "{{").replace("}", "}}")
    return f"{begin}Q{{{uri}}}{local}"


def literal_text(test: Compare) -> str:
    """The literal as written; a string compared as a number stays a string if it is not a valid XPath number."""
    return test.text if test.number is not None and _NUMBER.fullmatch(test.text) else quoted(test.text)


def quoted(text: str) -> str:
    """A string literal."""
    return f'"{text}"' if "'" in text else f"'{text}'"
