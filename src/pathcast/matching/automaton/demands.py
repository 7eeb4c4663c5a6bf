"""Demands: the value tests that a pattern makes outright, and that a document must pass to match it.

A test is demanded outright when it stands under no `or` and no `not`: the document then has an element, attribute or
text node that passes it. Three kinds can be looked up (`demand_kernels.py`):

    equal      @a = 'x', b = 3          by hash of the value
    range      @a > 5, b <= 3           by sorted thresholds
    part       contains(., 'some')      by hash of four bytes of what is looked for

The table is appended to and never changed: a test keeps its number, whoever asks for it. It also counts in how many
documents each test was met (`hits`), from which patterns choose the rarest of their tests.

Invariant: a document that matches a pattern passes all its tests, so nothing is missed by waiting for one of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...documents import Names
from ...patterns.model import WILDCARD, Compare, Node, Pattern, StringTest
from .demand_kernels import MOST_NUMBER, SAMPLES
from .growing import Growing
from .lookup_kernels import (
    ANY,
    ASKS_NUMBER,
    ASKS_RANGE,
    ASKS_TEXT,
    D_ELEMENT,
    D_KIND,
    D_PLACE,
    D_ROWS,
    EQUAL_NUMBER,
    EQUAL_TEXT,
    GRAM,
    GRAM_BYTES,
    HIGH,
    LOW,
    OF_ATTRIBUTE,
    OF_SELF,
    OF_TEXT,
    SELF_VALUE,
    TEXT_VALUE,
    index_tests,
)

Int32s = npt.NDArray[np.int32]

_RANGES = {">": LOW, ">=": LOW, "<": HIGH, "<=": HIGH}


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
            if element == ANY and any(isinstance(test, Compare) for test in node.conditions):
                continue  # every element's string-value would have to be looked at
        else:
            element = holder if node.axis == "/" else ANY
            place = names.add(node.test[1:]) if node.is_attribute else TEXT_VALUE
        for test in node.conditions:
            found = _demand(element, place, test) if isinstance(test, Compare | StringTest) else None
            if found is not None:
                yield found


def _demand(element: int, place: int, test: Compare | StringTest) -> Demand | None:
    if isinstance(test, StringTest):
        text = test.text.encode()
        # Four bytes from the middle: beginnings are alike more often.
        begin = (len(text) - GRAM_BYTES) // 2
        return None if begin < 0 else Demand(ANY, ANY, GRAM, text[begin : begin + GRAM_BYTES], 0.0)
    if test.number is None:
        if test.operator != "=":
            return None
        return Demand(element, place, EQUAL_TEXT, (test.string or "").encode(), 0.0)
    if test.operator == "=":
        return None if test.number != test.number else Demand(element, place, EQUAL_NUMBER, b"", test.number)
    if test.operator in _RANGES and test.number == test.number:
        return Demand(element, place, _RANGES[test.operator], b"", test.number)
    return None


class Tests(NamedTuple):
    """The tests that there were at some moment, in the arrays that the kernel reads (and three that it counts in)."""

    tests: int
    groups: int
    longest: int
    has_grams: bool
    asks: npt.NDArray[np.int8]
    grams: npt.NDArray[np.uint64]
    slots: Int32s
    rows: Int32s
    hashes: npt.NDArray[np.uint64]
    numbers: npt.NDArray[np.float64]
    group_of: Int32s
    literals: npt.NDArray[np.uint8]
    hits: npt.NDArray[np.int64]
    samples: npt.NDArray[np.float64]
    sampled: npt.NDArray[np.int64]


class DemandTable:
    """All distinct tests, in the arrays that kernels read."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._numbers: dict[Demand, int] = {}
        self._groups: dict[tuple[int, int, int], int] = {}
        self._keys: dict[tuple[int, int], int] = {}  # values that are asked about, numbered
        self._key_of = Growing(np.int32)
        self._key_counts = Growing(np.int64)  # how many different ones each is asked for
        self._rows = np.zeros((D_ROWS, 64), dtype=np.int32)
        self.numbers = Growing(np.float64)
        self.group_of = Growing(np.int32)  # of a range its group, else -1
        self._literals = Growing(np.uint8)
        self._hashes = np.zeros(64, dtype=np.uint64)
        self._slots = np.full(256, -1, dtype=np.int32)
        self._indexed = 0
        self._asks = np.zeros((3, 256), dtype=np.int8)
        self._grams = np.zeros(1 << 10, dtype=np.uint64)
        self.hits = np.zeros(64, dtype=np.int64)
        self.samples = np.full((64, SAMPLES), np.nan)
        self.sampled = np.zeros(64, dtype=np.int64)
        self.longest = 0  # literal that a string-value is compared with
        self.has_grams = False

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, pattern: Pattern) -> list[int]:
        """The numbers of the tests that a pattern demands."""
        return sorted({self._number(demand) for demand in demands(pattern, self._names)})

    def _number(self, demand: Demand) -> int:
        number = self._numbers.get(demand)
        if number is None:
            number = self._numbers[demand] = len(self._numbers)
            self._append(number, demand)
        return number

    def _append(self, number: int, demand: Demand) -> None:
        if number >= self._rows.shape[1]:
            self._rows = _wider(self._rows)
            self.hits = _longer(self.hits)
        begin = self._literals.size
        self._literals.extend(np.frombuffer(demand.text, dtype=np.uint8))
        self._rows[:, number] = (demand.element, demand.place, demand.kind, begin, len(demand.text))
        self.numbers.append(demand.number)
        group = -1
        if demand.kind in (LOW, HIGH):
            group = self._groups.setdefault((demand.element, demand.place, demand.kind), len(self._groups))
            if group >= len(self.samples):
                self.samples = np.vstack([self.samples, np.full_like(self.samples, np.nan)])
                self.sampled = _longer(self.sampled)
        self.group_of.append(group)
        key = self._keys.setdefault((demand.element, demand.place), len(self._keys))
        self._key_of.append(key)
        if key == self._key_counts.size:
            self._key_counts.append(0)
        self._key_counts.view[key] += demand.kind in (EQUAL_TEXT, EQUAL_NUMBER)
        if demand.kind == EQUAL_TEXT:
            self.longest = max(self.longest, len(demand.text))
        self.has_grams |= demand.kind == GRAM

    def prior(self) -> npt.NDArray[np.float64]:
        """How likely each test is met, before any document was seen: the more values are asked for, the less."""
        values = self._key_counts.view[self._key_of.view]
        kinds = self._rows[D_KIND, : len(self)]
        return np.where((kinds == LOW) | (kinds == HIGH), 0.5, np.where(kinds == GRAM, 0.25, 1 / (values + 1)))

    def likely(self, documents: int) -> npt.NDArray[np.float64]:
        """How likely each test is met, by what `documents` documents have shown."""
        count = len(self)
        prior = self.prior()
        met = (self.hits[:count] + prior) / (documents + 1)
        groups = self.group_of.view
        ranged = np.flatnonzero(groups >= 0)
        if len(ranged):
            samples = self.samples[groups[ranged]]
            limits = self.numbers.view[ranged, None]
            low = (self._rows[D_KIND, ranged] == LOW)[:, None]
            passed = np.where(low, samples >= limits, samples <= limits).sum(axis=1)
            known = np.isfinite(samples).sum(axis=1)
            rate = np.minimum(1.0, self.sampled[groups[ranged]] / (documents + 1))
            met[ranged] = np.where(known > 0, rate * (passed + prior[ranged]) / (known + 1), prior[ranged])
        return met

    def captured(self) -> "Tests":
        """The table as of now; what is added later does not change what it shows."""
        self._index()
        return Tests(
            len(self), len(self._groups), max(self.longest, MOST_NUMBER), self.has_grams,
            self._asks, self._grams, self._slots, self._rows, self._hashes, self.numbers.room, self.group_of.room,
            self._literals.room, self.hits, self.samples, self.sampled,
        )  # fmt: skip

    def _index(self) -> None:
        """Put the tests that came since into the hash table."""
        count = len(self)
        if self._indexed == count:
            return
        names = len(self._names) + 2
        if names > self._asks.shape[1]:
            larger = np.zeros((3, 2 * names), dtype=np.int8)
            larger[:, : self._asks.shape[1]] = self._asks
            self._asks = larger
        fresh = self._rows[:, self._indexed : count]
        flags = np.array([ASKS_TEXT, ASKS_NUMBER, ASKS_RANGE, ASKS_RANGE, 0], dtype=np.int8)[fresh[D_KIND]]
        places, elements = fresh[D_PLACE], fresh[D_ELEMENT]
        for row, chosen, of in (
            (OF_ATTRIBUTE, places >= 0, places),
            (OF_SELF, places == SELF_VALUE, elements),
            (OF_TEXT, places == TEXT_VALUE, elements),
        ):
            np.bitwise_or.at(self._asks[row], of[chosen] + 1, flags[chosen])
        first = self._indexed
        if 2 * count > len(self._slots):
            size = len(self._slots)
            while 2 * count > size:
                size *= 2
            self._slots, first = np.full(size, -1, dtype=np.int32), 0
        if count > len(self._hashes):
            hashes = np.zeros(self._rows.shape[1], dtype=np.uint64)
            hashes[: len(self._hashes)] = self._hashes
            self._hashes = hashes
        index_tests(
            self._rows, self.numbers.view, self._literals.room, first, count, self._hashes, self._slots, self._grams
        )
        self._indexed = count


def _wider(rows: Int32s) -> Int32s:
    larger = np.zeros((rows.shape[0], 2 * rows.shape[1]), dtype=np.int32)
    larger[:, : rows.shape[1]] = rows
    return larger


def _longer(column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([column, np.zeros_like(column)])
