"""Advice for a condition outside a predicate: the same condition as a predicate of the root element.

For `not(//a)`, the advice is `/*[not(//a)]`. A relative path matches anywhere, so the advice for `not(a)` is
`/*[not(//a)]`, too.
"""

from collections.abc import Sequence
from itertools import pairwise

from .xpath_tokens import Token

_BEFORE_A_PATH = frozenset({"", "(", ",", "=", "!=", "<", "<=", ">", ">=", "and", "or"})


def as_predicate(expression: str, tokens: Sequence[Token]) -> str:
    """The expression as a predicate of the root element, its relative paths with `//` before them."""
    written, done, before, brackets = "/*[", 0, "", 0
    for token, after in pairwise(tokens):
        brackets += (token.text == "[") - (token.text == "]")
        is_function = after.text == "(" and token.text != "text"
        begins = before in _BEFORE_A_PATH and (token.kind == "name" or token.text in ("*", "@"))
        if brackets == 0 and begins and not is_function:
            written += expression[done : token.at] + "//"
            done = token.at
        before = token.text
    return f"{written}{expression[done:].strip()}]"
