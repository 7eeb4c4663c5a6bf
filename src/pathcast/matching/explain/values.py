"""The values of a document's nodes: which pass a test, and which come nearest to passing it.

All text of the document is joined once; the string-value of an element is a slice of it. Tests look at slices in
place, and a search for `contains` goes on where the last one stopped, so that elements nested in each other do not
make the same text be read again and again.

Cost: linear in the text. Only where elements nested in each other hold nothing but one long number is that read once
for each of them.
"""

import re
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...patterns.model import Compare, StringTest
from ...patterns.values import compare_numbers, number_of
from .nodes import DocumentNodes, Int64s, Mask, NodeSet

VALUE_SHOWN = 200

_NOT_NUMERIC = re.compile(rb"[^ \t\r\n0-9.eE+-]+")
_MANY_DIGITS = re.compile(rb"(\.0*)?([0-9]{1000,})")
# Digits beyond these do not change a number: it is infinite, or they are beyond those of a fraction that count.
_DIGITS_THAT_COUNT = 400
# How much of a value is looked at when nearness is judged: this, and as much as a few times what is wanted.
_LOOKED_AT = 256
_NAN = float("nan")
_SHORT = 32


class Values:
    """Tests on values of nodes, as sets."""

    def __init__(self, nodes: DocumentNodes) -> None:
        self.nodes = nodes
        self._numbers: dict[bytes | tuple[bool, int, int], float] = {}

    @cached_property
    def _text_begin(self) -> Int64s:
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.nodes.batch.text_length, dtype=np.int64)])

    @cached_property
    def _text(self) -> bytes:
        batch = self.nodes.batch
        return b"".join(map(batch.text_node, range(self.nodes.count("text"))))

    @cached_property
    def _attribute_begin(self) -> Int64s:
        lengths = self.nodes.batch.attribute_length
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])

    @cached_property
    def _attributes(self) -> bytes:
        batch = self.nodes.batch
        return b"".join(map(batch.attribute_value, range(self.nodes.count("attribute"))))

    def _slices(self, nodes: NodeSet) -> tuple[bytes, Int64s, Int64s]:
        """The bytes that hold the values, and where each begins and ends; beginnings never descend."""
        if nodes.kind == "attribute":
            return self._attributes, self._attribute_begin[nodes.at], self._attribute_begin[nodes.at + 1]
        if nodes.kind == "text":
            return self._text, self._text_begin[nodes.at], self._text_begin[nodes.at + 1]
        batch = self.nodes.batch
        begin, end = batch.text_begin[nodes.at], batch.text_end[nodes.at]
        return self._text, self._text_begin[begin], self._text_begin[end]

    # Passing.

    def passes(self, test: Compare | StringTest, nodes: NodeSet) -> Mask:
        """Which of the nodes pass the test."""
        if isinstance(test, Compare) and test.number is not None:
            wanted = test.number
            found = (compare_numbers(test.operator, number, wanted) for number in self.numbers(nodes))
            return np.fromiter(found, dtype=np.bool_, count=len(nodes))
        if isinstance(test, Compare):
            assert test.string is not None
            equal = self._starting(test.string.encode(), nodes, exactly=True)
            return equal if test.operator == "=" else ~equal
        if test.function == "starts-with":
            return self._starting(test.text.encode(), nodes, exactly=False)
        return self._containing(test.text.encode(), nodes)

    def _starting(self, wanted: bytes, nodes: NodeSet, *, exactly: bool) -> Mask:
        text, begin, end = self._slices(nodes)
        length = end - begin
        mask: Mask = length == len(wanted) if exactly else length >= len(wanted)
        for index in np.flatnonzero(mask).tolist():
            mask[index] = text.startswith(wanted, int(begin[index]))
        return mask

    def _containing(self, wanted: bytes, nodes: NodeSet) -> Mask:
        text, begin, end = self._slices(nodes)
        mask = np.zeros(len(nodes), dtype=np.bool_)
        found = -1
        for index, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
            if found < first:
                found = text.find(wanted, first)
                if found < 0:
                    break
            mask[index] = found + len(wanted) <= last
        return mask

    @cached_property
    def _not_numeric(self) -> tuple[Int64s, Int64s]:
        """Where the document's text holds what no number has: beginnings and ends, ascending."""
        spans = [found.span() for found in _NOT_NUMERIC.finditer(self._text)]
        begin, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        return begin, end

    def _may_be_numbers(self, nodes: NodeSet) -> Mask:
        if nodes.kind == "attribute":
            return np.ones(len(nodes), dtype=np.bool_)
        _, begin, end = self._slices(nodes)
        span_begin, span_end = self._not_numeric
        # The first span that ends after the value's beginning must begin after its end.
        after = np.searchsorted(span_end, begin, side="right")
        return np.append(span_begin, np.iinfo(np.int64).max)[after] >= end

    def numbers(self, nodes: NodeSet) -> list[float]:
        """The values as numbers; NaN for one that is none."""
        text, begin, end = self._slices(nodes)
        numbers = [_NAN] * len(nodes)
        for index in np.flatnonzero(self._may_be_numbers(nodes)).tolist():
            where = int(begin[index]), int(end[index])
            # Short values recur all over a document, long ones in elements around each other.
            key = text[slice(*where)] if where[1] - where[0] < _SHORT else (nodes.kind == "attribute", *where)
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = _number(text[slice(*where)])
            numbers[index] = number
        return numbers

    # Looking.

    def value(self, nodes: NodeSet, index: int) -> str:
        """The value of one of the nodes; of a long one its beginning and `…`."""
        text, begin, end = self._slices(nodes.only(index))
        first, last = int(begin[0]), int(end[0])
        value = text[first : min(last, first + 4 * VALUE_SHOWN + 4)].decode(errors="ignore")
        return value if len(value) <= VALUE_SHOWN else value[:VALUE_SHOWN] + "…"

    def nearest(self, test: Compare | StringTest, nodes: NodeSet, count: int) -> list[int]:
        """The places in the set of those that come nearest to passing a test that none passes, best first."""
        if isinstance(test, Compare) and test.number is not None:
            number = test.number
            # What is no number is at no distance: NaN, which sorts last. What is infinite is not at none from itself.
            distances = [0.0 if found == number else abs(found - number) for found in self.numbers(nodes)]
            return _least(np.array(distances), count)
        wanted = test.text.encode()
        text, begin, end = self._slices(nodes)
        span = _LOOKED_AT + 4 * len(wanted)
        likeness = np.zeros(len(nodes), dtype=np.float64)
        plain = _plain(wanted)
        for index, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
            likeness[index] = _likeness(test, plain, wanted, text[first : min(last, first + span)])
        return _least(-likeness, count)


def _number(text: bytes) -> float:
    if len(text) > 1000:
        text = _MANY_DIGITS.sub(lambda run: (run[1] or b"") + _that_count(run), text)
    return number_of(text.decode())


def _that_count(run: re.Match[bytes]) -> bytes:
    """As many digits of a long run as its number needs; zeros that lead count in a fraction, and stay there."""
    digits = run[2] if run[1] else run[2].lstrip(b"0")
    return digits[:_DIGITS_THAT_COUNT] or b"0"


def _least(scores: npt.NDArray[np.float64], count: int) -> list[int]:
    """Where the least scores stand, the first of equal ones first."""
    return [int(place) for place in np.argsort(scores, kind="stable")[:count]]


def _plain(value: bytes) -> str:
    return " ".join(value.decode(errors="ignore").split()).casefold()


def _likeness(test: Compare | StringTest, plain: str, wanted: bytes, value: bytes) -> int:
    """How like a value is to what is wanted: case and spaces apart first, then by how far it begins alike."""
    found = _plain(value)
    if isinstance(test, StringTest) and test.function == "contains":
        alike = plain in found
    else:
        alike = found == plain if isinstance(test, Compare) else found.startswith(plain)
    if alike:
        return len(wanted) + 1
    differing = (index for index, (one, other) in enumerate(zip(wanted, value, strict=False)) if one != other)
    return next(differing, min(len(wanted), len(value)))
