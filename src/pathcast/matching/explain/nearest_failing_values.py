"""Nearest values: which values come nearest to passing a test that none passes, which part of them, and the difference.

The nearest number is the one with the smallest difference. For a comparison of a whole string or of its beginning, the
nearest value differs in case or spaces only, and otherwise has the longest common prefix. For `contains`, the nearest
value contains the text in other case or spaces, and otherwise the longest prefix of the text.

Cost: linear in the text; for `contains`, times the logarithm of the length of the searched text.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from pathcast.kernels import Floats
from pathcast.patterns import Compare, StringTest

from .document_node_sets import NodeSet
from .node_value_tests import Find, Span, Values, finding, first_spans

# How much of a value is read to compare beginnings: this, plus a few times the length of the wanted text.
_LOOKED_AT = 256
# Spaces may differ inside texts up to this length; it bounds the work of the search.
_WORDS = 256
# A prefix of fewer characters, or of less than half of the wanted text, is not worth showing.
_LEAST = 3


class Near(NamedTuple):
    """One of the nearest: its place in the set, and for `contains` the nearest bytes, if any."""

    place: int
    span: Span | None = None


class Nearness:
    """Finds the nearest values of one document."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self._folded = cache(folded)
        self._plain = cache(_plain)

    def nearest(self, test: Compare | StringTest, nodes: NodeSet, count: int) -> list[Near]:
        """The nodes that come nearest to passing a test that none passes, best first."""
        if isinstance(test, Compare) and test.number is not None:
            number = test.number
            # A non-numeric value has distance NaN, which sorts last; infinity minus infinity needs care, too.
            distances = [0.0 if found == number else abs(found - number) for found in self.values.numbers(nodes)]
            return _least(np.array(distances), count)
        if isinstance(test, StringTest) and test.function == "contains":
            spans = self._standing(test.text, nodes)
            places = sorted(range(len(nodes)), key=lambda place: spans[place] is None)[:count]
            return [Near(place, spans[place]) for place in places]
        text, begin, end = self.values.slices(nodes)
        most = _LOOKED_AT + 4 * len(test.text.encode())
        looked_at = np.minimum(end, begin + most).tolist()
        values = [text[first:last] for first, last in zip(begin.tolist(), looked_at, strict=True)]
        likeness = self._likeness(test, set(values))
        return _least(-np.array([likeness[value] for value in values], dtype=np.float64), count)

    def _likeness(self, test: Compare | StringTest, values: set[bytes]) -> dict[bytes, int]:
        """The similarity of each value to the wanted one: equality without case and spaces, then the common prefix."""
        wanted, whole = test.text.encode(), isinstance(test, Compare)
        sought, found = _plain(wanted), {}
        for value in values:
            plain = self._plain(value)
            if plain == sought if whole else plain.startswith(sought):
                found[value] = len(wanted) + 1
            else:
                found[value] = _alike(wanted, value)
        return found

    def difference(self, test: Compare | StringTest, nodes: NodeSet, near: Near) -> str:
        """`only the case differs`, if only case or spaces keep a value from passing; otherwise empty."""
        if isinstance(test, Compare) and (test.number is not None or test.operator != "="):
            return ""
        text, begin, end = self.values.slices(nodes.only(near.place))
        first, last = near.span or (int(begin[0]), min(int(end[0]), int(begin[0]) + _LOOKED_AT + 4 * len(test.text)))
        found = text[first:last].decode(errors="ignore")
        spaced, sought = " ".join(found.split()), " ".join(test.text.split())
        if isinstance(test, StringTest) and test.function == "starts-with":
            found, spaced = found[: len(test.text)], spaced[: len(sought)]
        if spaced == sought:
            return "only spaces differ"
        if found.casefold() == test.text.casefold():
            return "only the case differs"
        return "only case and spaces differ" if spaced.casefold() == sought.casefold() else ""

    def _standing(self, wanted: str, nodes: NodeSet) -> Sequence[Span | None]:
        """For each node the position of the text in it, in other case or spaces, or otherwise its longest prefix."""
        text, begin, end = self.values.slices(nodes)
        text = self._folded(text)
        sought = folded(wanted.encode())

        def spans(find: Find) -> Sequence[Span | None]:
            return first_spans(find, text, begin, end)

        words = sought.split()
        alike = words and len(sought) <= _WORDS
        found = spans(_searching(rb"\s+".join(map(re.escape, words))) if alike else finding(sought))
        if any(found):
            return found
        characters = sought.decode()
        low, high = 0, len(characters) - 1
        while low < high:
            middle = (low + high + 1) // 2
            stands = any(spans(finding(characters[:middle].encode())))
            low, high = (middle, high) if stands else (low, middle - 1)
        if low < max(_LEAST, len(characters) / 2):
            return [None] * len(nodes)
        return spans(finding(characters[:low].encode()))


def folded(text: bytes) -> bytes:
    """Text in lower case, byte by byte in place: a character stays if its other case has another length."""
    if text.isascii():
        return text.lower()
    decoded = text.decode()
    cases = ((character, character.lower()) for character in set(decoded))
    same = {ord(one): other for one, other in cases if len(other) == 1 and len(one.encode()) == len(other.encode())}
    return decoded.translate(same).encode()


def _searching(pattern: bytes) -> Find:
    compiled = re.compile(pattern)

    def find(text: bytes, begin: int) -> Span | None:
        match = compiled.search(text, begin)
        return None if match is None else match.span()

    return find


def _least(scores: Floats, count: int) -> list[Near]:
    """The positions of the least scores; of equal ones, the first first."""
    return [Near(int(place)) for place in np.argsort(scores, kind="stable")[:count]]


def _plain(value: bytes) -> str:
    return " ".join(value.decode(errors="ignore").split()).casefold()


def _alike(one: bytes, other: bytes) -> int:
    """The length in bytes of the common prefix of two texts."""
    if one[:1] != other[:1]:
        return 0
    differing = (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))
