"""Tokens: an XPath expression split into pieces, each with its column.

Cost: a regular expression with the characters of names takes about 5 ms to compile, so it is compiled on first use
(`compiled`): a process that opens an index and matches documents parses nothing.
"""

import re
from functools import cache
from typing import NamedTuple

from pathcast.errors import PatternError

_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NCNAME = rf"[{_START}][{_START}\-.0-9\u00b7\u0300-\u036f\u203f\u2040]*"
# A namespace between braces; a brace inside it is doubled.
_BRACED = r"Q\{[^{}]*(?:(?:\{\{|\}\})[^{}]*)*\}"
NAME = rf"(?:{_BRACED}|{NCNAME}:(?!:))?{NCNAME}"
NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
LITERAL = r"""(?:"[^"]*"|'[^']*')"""
SPACE = r"[ \t\r\n]*"

_TOKEN = rf"""(?x:{SPACE}(?:
      (?P<name>{NAME})
    | (?P<number>{NUMBER})
    | (?P<literal>{LITERAL})
    | (?P<symbol>//|/|\.\.|\.|::|:|!=|<=|>=|[=<>@*\[\](),|+$-])
    | (?P<end>\Z)
    | (?P<unreadable>(?s:.))
    ))"""

SURROGATE = re.compile("[\ud800-\udfff]")

SUPPORTED = "child (/), descendant (//), *, predicates on paths, attributes and text"


@cache
def compiled(expression: str) -> re.Pattern[str]:
    """A regular expression, compiled on first use."""
    return re.compile(expression)


class Token(NamedTuple):
    """A piece of an expression; `kind` is name, number, literal, symbol or end, `at` counts characters from 0."""

    kind: str
    text: str
    at: int

    @property
    def stop(self) -> int:
        return self.at + len(self.text)


def tokens(expression: str) -> list[Token]:
    """All tokens of an expression, and a final `end`."""
    surrogate = None if expression.isascii() else SURROGATE.search(expression)
    if surrogate:
        raise pattern_error(
            expression, surrogate.start(), surrogate.end(), "a lone surrogate is not a character; remove it"
        )
    found = []
    for match in compiled(_TOKEN).finditer(expression):
        kind = match.lastgroup
        assert kind is not None
        begin, end = match.span(kind)
        if kind == "unreadable":
            raise _unreadable(expression, begin)
        found.append(Token(kind, expression[begin:end], begin))
        if kind == "end":
            break
    return found


def _unreadable(expression: str, at: int) -> PatternError:
    if expression[at] in "\"'":
        return pattern_error(expression, at, len(expression), "the string has no closing quote", "'…' or \"…\"")
    character = expression[at]
    shown = f"'{character}'" if character.isprintable() else repr(character)
    return pattern_error(expression, at, at + 1, f"unexpected character {shown}")


def pattern_error(expression: str, begin: int, end: int, reason: str, supported: str = SUPPORTED) -> PatternError:
    """An error that points at `expression[begin:end]`."""
    offending = expression[begin:end]
    return PatternError(reason, column=begin + 1, expression=expression, offending=offending, supported=supported)
