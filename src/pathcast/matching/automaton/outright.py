"""Outright demands: the value tests that a pattern makes outright, and that a document must pass to match it.

A test is demanded outright when it stands under no `or` and no `not`: the document then has an element, attribute or
text node that passes it. Three kinds can be looked up (`demand_kernels.py`):

    equal      @a = 'x', b = 3          by hash of the value
    range      @a > 5, b <= 3           by sorted thresholds
    part       contains(., 'some')      by hash of four bytes of what is looked for: its beginning, middle and end,
                                        of which documents show the rarest; the first node of a path as well

Invariant: a document that matches a pattern passes all its tests, so nothing is missed by waiting for one of them.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from ...documents import Names
from ...patterns.model import WILDCARD, Compare, First, Node, Pattern, StringTest
from .lookup_kernels import ANY, EQUAL_NUMBER, EQUAL_TEXT, GRAM, GRAM_BYTES, HIGH, LOW, SELF_VALUE, TEXT_VALUE

_RANGES = {">": LOW, ">=": LOW, "<": HIGH, "<=": HIGH}
_STRICT = {">": math.inf, "<": -math.inf}


class Demand(NamedTuple):
    """A value test: which element (`ANY`: whichever), which of its values, what kind of test, and the literal.

    `place` is the name of an attribute, `SELF_VALUE` (the string-value) or `TEXT_VALUE` (a text node of its own).
    """

    element: int
    place: int
    kind: int
    text: bytes
    number: float


def demands(pattern: Pattern, names: Names) -> Iterator[Demand]:
    """The value tests that a pattern demands outright and that can be looked up."""
    waiting = [(pattern.root, ANY)] if pattern.root is not None else []
    while waiting:
        node, holder = waiting.pop()
        if node.is_element:
            element, place = (ANY if node.test == WILDCARD else names.add(node.test)), SELF_VALUE
            waiting.extend((part, element) for part in node.conditions if isinstance(part, Node))
        else:
            element = holder if node.axis == "/" else ANY
            place = names.add(node.test[1:]) if node.is_attribute else TEXT_VALUE
        for test in node.conditions:
            if isinstance(test, Compare):
                found = demand_of(element, place, test)
                if found is not None:
                    yield found
            elif isinstance(test, StringTest | First):
                yield from _grams(test if isinstance(test, StringTest) else test.test)


def _grams(test: StringTest) -> Iterator[Demand]:
    """Pieces of a text, the one from the middle first: beginnings are alike more often."""
    text = test.text.encode()
    last = len(text) - GRAM_BYTES
    if last >= 0:
        for begin in dict.fromkeys((last // 2, 0, last)):
            yield Demand(ANY, ANY, GRAM, text[begin : begin + GRAM_BYTES], 0.0)


def demand_of(element: int, place: int, test: Compare) -> Demand | None:
    """A comparison as a test that can be looked up; "more than x" is "at least the number after x".

    Of whichever element's string-value texts alone are asked for: what is longer than all of them is not put together,
    but which number it is would have to be found out.
    """
    if test.number is not None and element == ANY and place == SELF_VALUE:
        return None
    if test.number is None:
        if test.operator != "=":
            return None
        return Demand(element, place, EQUAL_TEXT, (test.string or "").encode(), 0.0)
    if test.operator == "=":
        return None if test.number != test.number else Demand(element, place, EQUAL_NUMBER, b"", test.number)
    if test.operator in _RANGES and test.number == test.number:
        limit = test.number
        if test.operator in _STRICT:
            limit = math.nextafter(limit, _STRICT[test.operator])
        return Demand(element, place, _RANGES[test.operator], b"", limit)
    return None
