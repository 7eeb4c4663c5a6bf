"""Required tests: the value tests that a document must pass to match a pattern.

A pattern demands *clauses*. A clause has alternatives, of which a matching document fulfils at least one; an
alternative is a list of tests, all of which such a document passes. Tests under no `or` and no `not` form one clause
with one alternative, and each `or` is a clause of its own:

    //p[@id = 'x' and contains(., 'some')]     ((@id = 'x', 'some'),)
    //p[. = 'x' or @a = 'y' and @b = 'z']      ((. = 'x',), (@a = 'y', @b = 'z'))

Three kinds of tests can be looked up (`access_predicate_index_kernels.py`):

    equal      @a = 'x', b = 3          by hash of the value
    range      @a > 5, b <= 3           by sorted thresholds
        part       contains(., 'some')      by hash of four bytes of the text: its beginning, middle and end, of which
                                            the rarest in documents is used; also for the first node of a path

Invariant: a document that matches a pattern fulfils each of its clauses, so waiting for one of them misses nothing.
An `or` with an alternative that has no such test is not a clause; conditions under `not` are ignored.
"""

import math
from collections.abc import Iterator

from msgspec import Struct

from pathcast.documents import Names
from pathcast.patterns import (
    WILDCARD,
    AllOf,
    AnyOf,
    Compare,
    Condition,
    First,
    Node,
    Pattern,
    Root,
    StringTest,
)

from .value_test_table_kernels import ANY, EQUAL_NUMBER, EQUAL_TEXT, GRAM, GRAM_BYTES, HIGH, LOW, SELF_VALUE, TEXT_VALUE

_RANGES = {">": LOW, ">=": LOW, "<": HIGH, "<=": HIGH}
_STRICT = {">": math.inf, "<": -math.inf}


class Demand(Struct, frozen=True, gc=False, cache_hash=True):
    """A value test: the element (`ANY`: any element), which of its values, the kind of test, and the literal.

    `place` is the name of an attribute, `SELF_VALUE` (the string-value) or `TEXT_VALUE` (a text node of its own).
    """

    element: int
    place: int
    kind: int
    text: bytes
    number: float


Clause = list[list[Demand]]


def demands(pattern: Pattern, names: Names) -> list[Clause]:
    """The clauses of a pattern; the first has one alternative, the tests under no `or`, possibly none."""
    if pattern.root is None:
        return [[[]]]
    tests, clauses = _demanded(pattern.root, ANY, ANY, names)
    return [[tests], *clauses]


def _demanded(condition: Condition, element: int, place: int, names: Names) -> tuple[list[Demand], list[Clause]]:
    """The mandatory tests of a condition, and its clauses; `element`, `place`: the value that it applies to."""
    tests, clauses = list[Demand](), list[Clause]()
    waiting = [(condition, element, place)]
    while waiting:
        current, element, place = waiting.pop()
        match current:
            case Node():
                waiting.extend((part, *_value_of(current, element, names)) for part in current.conditions)
            case Root():
                waiting.append((current.node, ANY, ANY))
            case AllOf():
                waiting.extend((part, element, place) for part in current.conditions)
            case AnyOf():
                clauses.extend(_alternatives(current, element, place, names))
            case Compare():
                found = demand_of(element, place, current)
                tests.extend([] if found is None else [found])
            case StringTest() | First():
                tests.extend(_grams(current if isinstance(current, StringTest) else current.test))
    return tests, clauses


def _value_of(node: Node, holder: int, names: Names) -> tuple[int, int]:
    """The element and the place of the value that a node's conditions test; `holder`: the element above it."""
    if node.is_element:
        return (ANY if node.test == WILDCARD else names.add(node.test)), SELF_VALUE
    return (holder if node.axis == "/" else ANY), (names.add(node.test[1:]) if node.is_attribute else TEXT_VALUE)


def _alternatives(condition: AnyOf, element: int, place: int, names: Names) -> list[Clause]:
    """The clause of an `or`; none if an alternative has no test. A part that is itself an `or` gives several."""
    clause: Clause = []
    for part in condition.conditions:
        tests, clauses = _demanded(part, element, place, names)
        if tests:
            clause.append(tests)
        elif clauses:
            shortest: Clause = min(clauses, key=len)
            clause += shortest
        else:
            return []
    return [clause] if clause else []


def _grams(test: StringTest) -> Iterator[Demand]:
    """Pieces of a text, the middle one first: beginnings are more often alike."""
    text = test.text.encode()
    last = len(text) - GRAM_BYTES
    if last >= 0:
        for begin in dict.fromkeys((last // 2, 0, last)):
            yield Demand(ANY, ANY, GRAM, text[begin : begin + GRAM_BYTES], 0.0)


def demand_of(element: int, place: int, test: Compare) -> Demand | None:
    """A comparison as a test that can be looked up; "more than x" is "at least the number after x".

    For the string-value of any element, only text tests are used: a value longer than all texts need not be assembled,
    whereas its number would have to be computed.
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
