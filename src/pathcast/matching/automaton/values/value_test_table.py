"""All value tests that patterns demand (`required_value_tests.py`), in one table in which kernels look up values.

The table is append-only: a test keeps its number, and all patterns with this test share it. The table also counts the
documents that passed each test (`hits`), so that patterns can select the rarest of their tests. Tests loaded as arrays,
from a snapshot or from another process (`restore`, `merge`), are found by content (`condition_interning_kernels.py`).

Invariant: equal tests have one number. Cost: some 5 µs to add one, 0.1 µs to merge one together with many others.
"""

from collections.abc import Collection

import numpy as np

from pathcast.documents import Names
from pathcast.kernels import AnyArray, Floats, Int8s, Int32s
from pathcast.patterns import Pattern
from pathcast.store import grown

from ...arrays.growing_array import Growing
from .access_predicate_index_kernels import MOST_NUMBER, SAMPLES
from .condition_interning_kernels import (
    UNWANTED,
    ValueTestArrays,
    ValueTestRoom,
    find_interned,
    intern_tests,
    merge_tests,
)
from .required_value_tests import Demand, demands
from .value_test_table_kernels import (
    ANY,
    ASKED_ROWS,
    ASKS_NUMBER,
    ASKS_RANGE,
    ASKS_TEXT,
    D_ELEMENT,
    D_KIND,
    D_LENGTH,
    D_LITERAL,
    D_PLACE,
    D_ROWS,
    EQUAL_NUMBER,
    EQUAL_TEXT,
    GRAM,
    HIGH,
    LOW,
    OF_ATTRIBUTE,
    OF_SELF,
    OF_TEXT,
    SELF_VALUE,
    SPREAD,
    TEXT_VALUE,
    V_COLUMNS,
    VALUES,
    WHICHEVER,
    ValueCache,
    ValueFilter,
    ValueStatistics,
    ValueTests,
    ValueTestTable,
    index_tests,
)

_NO_SLOTS = np.full(256, -1, dtype=np.int32)
_FIRST = 64


class DemandTable:
    """All distinct tests, in the arrays that kernels read."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._count = self._first = 0  # how many there are, and how many of them were loaded as arrays
        self._numbers: dict[Demand, int] = {}
        self.groups = 0
        self._groups: dict[tuple[int, int, int], int] = {}
        self._keys: dict[tuple[int, int], int] = {}  # numbers of the values that tests are about
        self._key_of = Growing(np.int32)
        self._key_counts = Growing(np.int64)  # distinct tests per value
        self._rows = np.zeros((D_ROWS, _FIRST), dtype=np.int32)
        self.numbers = Growing(np.float64)
        self.group_of = Growing(np.int32)  # the group of a range, otherwise -1
        self._literals = Growing(np.uint8)
        self._hashes = np.zeros(_FIRST, dtype=np.uint64)
        self._slots = np.full(256, -1, dtype=np.int32)
        self._indexed = 0
        self._interned, self._interned_slots = 0, _NO_SLOTS
        self._recalled = True
        self._asks = np.zeros((ASKED_ROWS, 256), dtype=np.int8)
        self._grams = np.zeros(1 << 10, dtype=np.uint64)
        self.hits = np.zeros(_FIRST, dtype=np.int64)
        self.samples = np.full((_FIRST, SAMPLES), np.nan)
        self.sampled = np.zeros(_FIRST, dtype=np.int64)
        self.longest = 0  # longest literal that a string-value is compared with
        self.has_grams = False

    def __len__(self) -> int:
        return self._count

    def add(self, pattern: Pattern, besides: Collection[Demand] = ()) -> list[list[list[int]]]:
        """The clauses that a pattern demands, by the numbers of their tests.

        Tests under no `or` that are among `besides` are left out: the pattern waits for them elsewhere.
        """
        others = {_of_any_element(demand) for demand in besides}
        (outright,), *more = demands(pattern, self._names)
        alone = [demand for demand in outright if _of_any_element(demand) not in others]
        return [[sorted({self.number(demand) for demand in tests}) for tests in clause] for clause in ([alone], *more)]

    def number(self, demand: Demand) -> int:
        """The number of a test."""
        number = self._numbers.get(demand)
        if number is None:
            number = self._find(demand) if self._first else -1
            if number < 0:
                number = self._append(demand)
            self._numbers[demand] = number
        return number

    def _append(self, demand: Demand) -> int:
        number = self._count
        self._make_room(1)
        begin = self._literals.size
        self._literals.extend(np.frombuffer(demand.text, dtype=np.uint8))
        self._rows[:, number] = (demand.element, demand.place, demand.kind, begin, len(demand.text))
        self.numbers.append(demand.number)
        self.group_of.append(self._group(demand.element, demand.place, demand.kind))
        key = self._key(demand.element, demand.place)
        self._key_of.append(key)
        self._key_counts.view[key] += demand.kind in (EQUAL_TEXT, EQUAL_NUMBER)
        if demand.kind == EQUAL_TEXT:
            self.longest = max(self.longest, len(demand.text))
        self.has_grams |= demand.kind == GRAM
        self._count += 1
        return number

    def _make_room(self, count: int) -> None:
        needed = self._count + count
        if needed > self._rows.shape[1] or not self._rows.flags.writeable:
            size = max(_FIRST, needed + (needed >> 1))
            self._rows = _wider(self._rows, size)
            self.hits = grown(self.hits, size)

    def _group(self, element: int, place: int, kind: int) -> int:
        """The group of a range test, -1 for any other test."""
        if kind not in (LOW, HIGH):
            return -1
        self._recall()
        group = self._groups.setdefault((element, place, kind), self.groups)
        self.groups = len(self._groups)
        if group >= len(self.samples):
            self.samples = np.vstack([self.samples, np.full_like(self.samples, np.nan)])
            self.sampled = grown(self.sampled, 2 * len(self.sampled))
        return group

    def _key(self, element: int, place: int) -> int:
        """The number of a value that tests are about."""
        self._recall()
        key = self._keys.setdefault((element, place), len(self._keys))
        if key == self._key_counts.size:
            self._key_counts.append(0)
        return key

    def prior(self) -> Floats:
        """The prior probability that a document passes each test: the more values are tested for, the lower."""
        values = self._key_counts.view[self._key_of.view]
        kinds = self._rows[D_KIND, : len(self)]
        return np.where((kinds == LOW) | (kinds == HIGH), 0.5, np.where(kinds == GRAM, 0.25, 1 / (values + 1)))

    def likely(self, documents: int) -> Floats:
        """The probability that a document passes each test, from the counts of `documents` documents."""
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

    def captured(self) -> ValueTests:
        """The table as of now; later additions do not change it."""
        self._index()
        return ValueTests(
            ValueTestTable(
                size=len(self),
                groups=self.groups,
                rows=self._rows,
                numbers=self.numbers.room,
                group_of=self.group_of.room,
                literals=self._literals.room,
                hashes=self._hashes,
                slots=self._slots,
            ),
            ValueFilter(max(self.longest, MOST_NUMBER), self._asks, self.has_grams, self._grams),
            ValueStatistics(self.hits, self.samples, self.sampled),
        )

    def _index(self) -> None:
        """Insert the new tests into the hash table."""
        count = len(self)
        if self._indexed == count:
            return
        names = len(self._names) + 2
        if names > self._asks.shape[1]:
            self._asks = self._asked(self._asks[:WHICHEVER], 2 * names)
        fresh = self._rows[:, self._indexed : count]
        flags = np.array([ASKS_TEXT, ASKS_NUMBER, ASKS_RANGE, ASKS_RANGE, 0], dtype=np.int8)[fresh[D_KIND]]
        places, elements = fresh[D_PLACE], fresh[D_ELEMENT]
        for row, chosen, of in (
            (OF_ATTRIBUTE, places >= 0, places),
            (OF_SELF, places == SELF_VALUE, elements),
            (OF_TEXT, places == TEXT_VALUE, elements),
        ):
            np.bitwise_or.at(self._asks[row], of[chosen] + 1, flags[chosen])
        self._ask_whichever(self._asks, self._indexed)
        first = self._indexed
        if 2 * count > len(self._slots):
            size = len(self._slots)
            while 2 * count > size:
                size *= 2
            self._slots, first = np.full(size, -1, dtype=np.int32), 0
        elif not self._slots.flags.writeable:
            self._slots = self._slots.copy()
        if count > len(self._hashes) or not self._hashes.flags.writeable:
            self._hashes = grown(self._hashes[: self._indexed], self._rows.shape[1])
        index_tests(
            self._rows, self.numbers.view, self._literals.room, first, count, self._hashes, self._slots, self._grams
        )
        self._indexed = count

    def _asked(self, asks: Int8s, width: int) -> Int8s:
        """The kinds of tests per name, with `width` places, and the filter that belongs to it."""
        found = np.zeros((ASKED_ROWS, width), dtype=np.int8)
        found[: len(asks), : asks.shape[1]] = asks
        self._ask_whichever(found, 0)
        return found

    def _ask_whichever(self, asks: Int8s, first: int) -> None:
        """Add the string-values that tests on any element compare with to the filter, from test `first` on."""
        rows = self._rows[:, first : self._count]
        rows = rows[:, (rows[D_ELEMENT] == ANY) & (rows[D_PLACE] == SELF_VALUE)]
        lengths = rows[D_LENGTH].astype(np.int64)
        last = np.zeros_like(lengths)
        last[lengths > 0] = self._literals.view[(rows[D_LITERAL] + lengths - 1)[lengths > 0]]
        asks[WHICHEVER, (lengths * SPREAD + last) % asks.shape[1]] = ASKS_TEXT

    # As arrays: on disk, and from other processes.

    def saved(self) -> dict[str, AnyArray]:
        """The table as arrays; `restore` reads them, `merge` merges the tests."""
        self._index()
        count, groups = self._count, self.groups
        return {
            "rows": np.ascontiguousarray(self._rows[:, :count]),
            "numbers": self.numbers.view,
            "literals": self._literals.view,
            "group_of": self.group_of.view,
            "key_of": self._key_of.view,
            "key_counts": self._key_counts.view.copy(),
            "hashes": self._hashes[:count],
            "slots": self._slots.copy(),
            "asks": self._asks[:WHICHEVER].copy(),
            "grams": self._grams.copy(),
            "hits": self.hits[:count].copy(),
            "samples": self.samples[:groups].copy(),
            "sampled": self.sampled[:groups].copy(),
            "whole": np.array([self.longest, self.has_grams], dtype=np.int64),
        }

    @classmethod
    def restore(cls, names: Names, arrays: dict[str, AnyArray]) -> "DemandTable":
        """The table that was saved as `arrays`, on the same memory until it changes; counters are copied."""
        table = cls(names)
        table._rows, table._hashes, table._slots = (np.asarray(arrays[name]) for name in ("rows", "hashes", "slots"))
        table._count = table._first = table._indexed = table._rows.shape[1]
        table.numbers, table.group_of = Growing.over(arrays["numbers"]), Growing.over(arrays["group_of"])
        table._literals, table._key_of = Growing.over(arrays["literals"]), Growing.over(arrays["key_of"])
        table._key_counts = Growing.over(np.array(arrays["key_counts"]))
        table._asks = table._asked(arrays["asks"], arrays["asks"].shape[1])
        table._grams = np.array(arrays["grams"])
        table.hits = np.array(arrays["hits"])
        table.groups = groups = len(arrays["samples"])
        table.samples = np.full((max(_FIRST, groups), SAMPLES), np.nan)
        table.samples[:groups] = arrays["samples"]
        table.sampled = grown(np.array(arrays["sampled"]), len(table.samples))
        table.longest, has_grams = arrays["whole"].tolist()
        table.has_grams = bool(has_grams)
        table._recalled = False
        return table

    def _recall(self) -> None:
        """Rebuild the groups of ranges, and the tested values, of tests that were loaded from a snapshot."""
        if self._recalled:
            return
        self._recalled = True
        for numbers, known, count in (
            (self.group_of.view, self._groups, 3),
            (self._key_of.view, self._keys, 2),
        ):
            found, first = np.unique(numbers, return_index=True)
            for number, test in zip(found.tolist(), first.tolist(), strict=True):
                if number >= 0:
                    known[tuple(self._rows[:count, test].tolist())] = number

    def merge(self, arrays: dict[str, AnyArray], names: Int32s, wanted: Int32s | None = None) -> Int32s:
        """Merge the tests of another table, or those `wanted`; `names` translates its names. Returns new numbers."""
        rows, numbers, literals = (np.asarray(arrays[name]) for name in ("rows", "numbers", "literals"))
        before, self._first = self._count, self._count
        self._make_room(rows.shape[1])
        self.numbers.make_room(len(numbers))
        self._literals.make_room(len(literals))
        self._intern(rows.shape[1])
        moved = np.full(rows.shape[1], -1 if wanted is None else UNWANTED, dtype=np.int32)
        if wanted is not None:
            moved[wanted] = -1
        sizes = np.array([before, self._literals.size, 0], dtype=np.int64)
        theirs = ValueTestArrays(rows, numbers.view(np.uint64), literals)
        merge_tests(theirs, names, moved, ValueTestRoom(*self._rooms()), self._interned_slots, sizes)
        self._count, self._literals.size, _ = sizes.tolist()
        self._first = self._interned = self.numbers.size = self._count
        fresh = self._rows[:3, before : self._count]
        distinct, of = np.unique(fresh, axis=1, return_inverse=True)
        triples = [tuple(triple) for triple in distinct.T.tolist()]
        of = of.reshape(-1)
        self.group_of.extend(np.array([self._group(*triple) for triple in triples], dtype=np.int32)[of])
        self._key_of.extend(np.array([self._key(*triple[:2]) for triple in triples], dtype=np.int32)[of])
        kinds, lengths = self._rows[D_KIND, before : self._count], self._rows[D_LENGTH, before : self._count]
        equal = (kinds == EQUAL_TEXT) | (kinds == EQUAL_NUMBER)
        np.add.at(self._key_counts.view, self._key_of.view[before:][equal], 1)
        self.longest = max(self.longest, int(lengths[kinds == EQUAL_TEXT].max(initial=0)))
        self.has_grams |= bool(np.any(kinds == GRAM))
        return moved

    def _find(self, demand: Demand) -> int:
        """The number of an equal test among those loaded as arrays, or -1."""
        self._intern(0)
        bits, literal = np.float64(demand.number).view(np.uint64), np.frombuffer(demand.text, dtype=np.uint8)
        key = demand.element, demand.place, demand.kind
        return find_interned(*key, bits, literal, self._rooms(), self._interned_slots)

    def _rooms(self) -> ValueTestArrays:
        """The table with all its capacity, for searches by the bits of numbers."""
        return ValueTestArrays(self._rows, self.numbers.room.view(np.uint64), self._literals.room)

    def _intern(self, more: int) -> None:
        """Index all tests loaded as arrays by content, and make room for more."""
        count = self._first
        if 2 * (count + more) > len(self._interned_slots) or not self._interned:
            size = max(len(self._interned_slots), 1 << (2 * (count + more)).bit_length())
            self._interned_slots, self._interned = np.full(size, -1, dtype=np.int32), 0
        if self._interned < count:
            intern_tests(self._rooms(), self._interned, count, self._interned_slots)
            self._interned = count


def new_cache() -> ValueCache:
    """Room for a thread's cache of values."""
    return ValueCache(np.zeros((VALUES + 1, V_COLUMNS), dtype=np.int64), np.zeros(VALUES + 1))


def _of_any_element(demand: Demand) -> tuple[int, int, bytes, float]:
    """A test without its element."""
    return demand.place, demand.kind, demand.text, demand.number


def _wider(rows: Int32s, size: int) -> Int32s:
    larger = np.zeros((rows.shape[0], size), dtype=np.int32)
    larger[:, : rows.shape[1]] = rows
    return larger
