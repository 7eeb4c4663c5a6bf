"""Tokens: an XPath expression cut into pieces, each with its column."""

import re
from dataclasses import dataclass

from ..errors import PatternError

_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NCNAME = rf"[{_START}][{_START}\-.0-9\u00b7\u0300-\u036f\u203f\u2040]*"

_TOKEN = re.compile(
    rf"""[ \t\r\n]*(?:
      (?P<name>(?:Q\{{[^{{}}]*\}}|{NCNAME}:(?!:))?{NCNAME})
    | (?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    | (?P<literal>"[^"]*"|'[^']*')
    | (?P<symbol>//|/|\.\.|\.|::|:|!=|<=|>=|[=<>@*\[\](),|+$-])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)

_SURROGATE = re.compile("[\ud800-\udfff]")

SUPPORTED = "child (/), descendant (//), *, predicates on paths, attributes and text"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an expression; `kind` is name, number, literal, symbol or end, `at` counts characters from 0."""

    kind: str
    text: str
    at: int

    @property
    def stop(self) -> int:
        return self.at + len(self.text)


def tokens(expression: str) -> list[Token]:
    """All tokens of an expression and one `end`."""
    surrogate = _SURROGATE.search(expression)
    if surrogate:
        raise pattern_error(expression, surrogate.start(), surrogate.end(), "a lone surrogate is no character")
    found = []
    at = 0
    while True:
        match = _TOKEN.match(expression, at)
        if match is None:
            raise _unreadable(expression, at)
        kind = match.lastgroup or "end"
        found.append(Token(kind, match[kind], match.start(kind)))
        if kind == "end":
            return found
        at = match.end()


def _unreadable(expression: str, at: int) -> PatternError:
    at += len(expression[at:]) - len(expression[at:].lstrip(" \t\r\n"))
    if expression[at] in "\"'":
        return pattern_error(expression, at, len(expression), "the string has no closing quote", "'…' or \"…\"")
    return pattern_error(expression, at, at + 1, f"'{expression[at]}' has no meaning in a subscription")


def pattern_error(expression: str, begin: int, end: int, reason: str, supported: str = SUPPORTED) -> PatternError:
    """An error that points at `expression[begin:end]`."""
    offending = expression[begin:end]
    return PatternError(reason, column=begin + 1, expression=expression, offending=offending, supported=supported)
