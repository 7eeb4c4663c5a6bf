"""The values of a document's nodes: which pass a test, and which part of a value is shown.

All text of the document is joined once; the string-value of an element is a slice of it. Tests read slices in place,
and a search for `contains` continues where the last one stopped, so that text in nested elements is not read again for
each of them.

Cost: linear in the text, except that a long number that is the whole content of nested elements is read once for each
of them.
"""

import re
from collections.abc import Callable
from functools import cached_property

import numpy as np

from pathcast.kernels import Int64s
from pathcast.patterns import Compare, StringTest, compare_numbers, number_of
from pathcast.store import offsets_of

from .document_node_sets import DocumentNodes, Mask, NodeSet

VALUE_SHOWN = 200
VALUE_PRINTED = 60
LEAD = 20

Span = tuple[int, int]
"""The start and end of a piece of text, in bytes."""

Find = Callable[[bytes, int], Span | None]
"""Finds the first occurrence in a text from a position on."""

_NOT_NUMERIC = re.compile(rb"[^ \t\r\n0-9.eE+-]+")
_MANY_DIGITS = re.compile(rb"(\.0*)?([0-9]{1000,})")
# Further digits do not change a number: it is infinite, or they are beyond the significant ones of a fraction.
_DIGITS_THAT_COUNT = 400
_NAN = float("nan")
_SHORT = 32


class Values:
    """Tests on values of nodes, as sets."""

    def __init__(self, nodes: DocumentNodes) -> None:
        self.nodes = nodes
        self._numbers: dict[bytes | tuple[bool, int, int], float] = {}

    @cached_property
    def _text_begin(self) -> Int64s:
        return offsets_of(self.nodes.batch.text_length)

    @cached_property
    def _text(self) -> bytes:
        batch = self.nodes.batch
        return b"".join(map(batch.text_node, range(self.nodes.count("text"))))

    @cached_property
    def _attribute_begin(self) -> Int64s:
        lengths = self.nodes.batch.attribute_length
        return offsets_of(lengths)

    @cached_property
    def _attributes(self) -> bytes:
        batch = self.nodes.batch
        return b"".join(map(batch.attribute_value, range(self.nodes.count("attribute"))))

    def slices(self, nodes: NodeSet) -> tuple[bytes, Int64s, Int64s]:
        """The bytes that hold the values, and the start and end of each; starts never descend."""
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
        text, begin, end = self.slices(nodes)
        length = end - begin
        mask: Mask = length == len(wanted) if exactly else length >= len(wanted)
        for index in np.flatnonzero(mask).tolist():
            mask[index] = text.startswith(wanted, int(begin[index]))
        return mask

    def _containing(self, wanted: bytes, nodes: NodeSet) -> Mask:
        spans = first_spans(finding(wanted), *self.slices(nodes))
        return np.array([span is not None for span in spans], dtype=np.bool_)

    @cached_property
    def _not_numeric(self) -> tuple[Int64s, Int64s]:
        """Where the document's text has characters that no number has: starts and ends, ascending."""
        spans = [found.span() for found in _NOT_NUMERIC.finditer(self._text)]
        begin, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        return begin, end

    def _may_be_numbers(self, nodes: NodeSet) -> Mask:
        if nodes.kind == "attribute":
            return np.ones(len(nodes), dtype=np.bool_)
        _, begin, end = self.slices(nodes)
        span_begin, span_end = self._not_numeric
        # The first span that ends after the value's start must begin after its end.
        after = np.searchsorted(span_end, begin, side="right")
        return np.append(span_begin, np.iinfo(np.int64).max)[after] >= end

    def numbers(self, nodes: NodeSet) -> list[float]:
        """The values as numbers; NaN for a non-numeric value."""
        text, begin, end = self.slices(nodes)
        numbers = [_NAN] * len(nodes)
        for index in np.flatnonzero(self._may_be_numbers(nodes)).tolist():
            where = int(begin[index]), int(end[index])
            # Short values recur throughout a document, long ones in nested elements.
            key = text[slice(*where)] if where[1] - where[0] < _SHORT else (nodes.kind == "attribute", *where)
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = _number(text[slice(*where)])
            numbers[index] = number
        return numbers

    # Showing values.

    def value(self, nodes: NodeSet, index: int, span: Span | None = None) -> str:
        """The value of one of the nodes; for a long one its beginning, or the text around `span`, and `…`."""
        text, begin, end = self.slices(nodes.only(index))
        first, last = int(begin[0]), int(end[0])
        lead = ""
        if span is not None and span[1] - first > VALUE_PRINTED:
            lead = text[max(first, span[0] - 4 * LEAD) : span[0]].decode(errors="ignore")[-LEAD:]
            first = span[0]
        value = lead + text[first : min(last, first + 4 * VALUE_SHOWN + 4)].decode(errors="ignore")
        cut = value if len(value) <= VALUE_SHOWN else value[:VALUE_SHOWN] + "…"
        return f"…{cut}" if lead else cut

    def span(self, test: Compare | StringTest, node: NodeSet) -> Span | None:
        """The position in a node's value of the text that it must contain."""
        if isinstance(test, Compare) or test.function != "contains":
            return None
        return first_spans(finding(test.text.encode()), *self.slices(node))[0]


def finding(wanted: bytes) -> Find:
    """A function that finds a text."""

    def find(text: bytes, begin: int) -> Span | None:
        at = text.find(wanted, begin)
        return None if at < 0 else (at, at + len(wanted))

    return find


def first_spans(find: Find, text: bytes, begin: Int64s, end: Int64s) -> list[Span | None]:
    """For each value, with ascending starts, the position of the first occurrence in it."""
    spans: list[Span | None] = [None] * len(begin)
    found = (-1, -1)
    for index, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        if found[0] < first:
            later = find(text, first)
            if later is None:
                break
            found = later
        if found[1] <= last:
            spans[index] = found
    return spans


def _number(text: bytes) -> float:
    if len(text) > 1000:
        text = _MANY_DIGITS.sub(lambda run: (run[1] or b"") + _that_count(run), text)
    return number_of(text.decode())


def _that_count(run: re.Match[bytes]) -> bytes:
    """As many digits of a long run as its number needs; leading zeros count in a fraction, and stay there."""
    digits = run[2] if run[1] else run[2].lstrip(b"0")
    return digits[:_DIGITS_THAT_COUNT] or b"0"
