"""Joins of states and tests: finds the patterns that one element decides, by its state and a bound test.

A state's patterns are those behind its gates. Laid out as runs, they form a *region*: a table from place and test to
the patterns that wait for it (`waiting_patterns_by_state.py`). Regions are bounded; beyond the bound they are dropped,
and a document that needs too many is left to the verifier.
"""

import threading
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Bools, Int32s, Int64s

from ...arrays.bitset_kernels import Marks
from ...arrays.bitsets import new_marks
from ...tuning import Tuning
from ..paths.lazy_determinisation import States
from ..values.value_test_table import new_cache
from ..values.value_test_table_kernels import KINDS, ValueTests
from .ancestor_value_test_arrays import JoinRows
from .satisfied_value_tests_kernels import J_COUNTS, J_LOOKED, J_PASSED, J_WHY, L_COLUMNS, NO_KEY, PassedTests
from .state_value_join_kernels import (
    BLOCK,
    CROWDED,
    MISS,
    MISS_DELTA,
    O_CALLED,
    O_ENTRIES,
    O_ROWS,
    IndexedPatterns,
    JoinedRoom,
    JoinMarks,
    JoinScratch,
    SeenPlaces,
    join_documents,
)
from .unbranched_path_search_kernels import (
    DEEPEST,
    K_COLUMNS,
    KNOWN_BITS,
    N_COLUMNS,
    ChainRoom,
)
from .waiting_patterns_by_state import StateRegions
from .waiting_patterns_by_state_kernels import (
    PLACES,
    Q_COLUMNS,
    RECENT,
    RECENT_COLUMNS,
    S_FIRST,
    TEST_BITS,
    UNKNOWN,
    UPS,
    LastElements,
    Queue,
    RecentRuns,
)


class _Scratch(threading.local):
    """Buffers of a join; one set per thread."""

    def __init__(self, queued: int) -> None:
        self.tests: ValueTests | None = None
        self.room = _new_room(queued)

    def fit(
        self, tests: ValueTests, states: int, elements: int, values: int, entries: int, patterns: int, names: int
    ) -> None:
        """Make room for `states` states, and the rest; what is cached of values belongs to `tests`."""
        if self.tests is not tests:
            self.tests = tests
            self.room.cache.rows.fill(0)
        room = self.room
        if len(room.chains.named) < max(names + 1, elements):
            named = np.zeros((2 * max(names + 1, elements), N_COLUMNS), dtype=np.int64)
            room = room._replace(chains=room.chains._replace(named=named))
        if len(room.passed.heads) < elements or len(room.passed.links) < KINDS * values:
            room = room._replace(passed=_new_passed(2 * elements, 2 * KINDS * values))
            room.counts[J_PASSED] = 0
        if len(room.last.elements) < states:
            room = room._replace(last=_new_last(2 * states))
        marks = room.marks
        if 64 * len(marks.matched.bits) < entries:
            marks = marks._replace(matched=new_marks(entries), looked=new_marks(entries))
            spare, out = _room_for(marks.matched), _room_for(marks.matched)
            room = room._replace(marks=marks, spare=spare, out=out if len(out) > len(room.out) else room.out)
        if 64 * len(marks.called.bits) < patterns:
            marks = marks._replace(called=new_marks(patterns))
            room = room._replace(marks=marks, called_out=_room_for(marks.called))
        self.room = room

    def fit_text(self, longest: int) -> None:
        """Make room for string-values."""
        if len(self.room.text) < longest + 16:
            self.room = self.room._replace(text=np.zeros(longest + 16, dtype=np.uint8))

    def lengthen_queue(self) -> None:
        """Make room for more look-ups."""
        self.room = self.room._replace(queue=_new_queue(2 * len(self.room.queue.rows)))

    def lengthen_out(self) -> None:
        """Make room for more entries and patterns, keeping the existing ones."""
        out, called_out = (np.resize(array, 2 * len(array)) for array in (self.room.out, self.room.called_out))
        self.room = self.room._replace(out=out, called_out=called_out)


def _new_room(queued: int) -> JoinScratch:
    """Buffers with room for `queued` look-ups and few patterns, and for no elements yet."""
    marks = JoinMarks(new_marks(0), new_marks(0), new_marks(0))
    return JoinScratch(
        counts=np.zeros(J_COUNTS, dtype=np.int64),
        cache=new_cache(),
        text=np.zeros(0, dtype=np.uint8),
        passed=_new_passed(0, 0),
        last=_new_last(0),
        queue=_new_queue(queued),
        recent=RecentRuns(np.zeros((RECENT, RECENT_COLUMNS), dtype=np.int64), np.zeros(RECENT)),
        ups=np.zeros(UPS, dtype=np.int64),
        seen=SeenPlaces(np.zeros(PLACES, dtype=np.int64), np.zeros(PLACES, dtype=np.uint64)),
        kept=np.zeros(BLOCK, dtype=np.int64),
        chains=ChainRoom(
            np.zeros((0, N_COLUMNS), dtype=np.int64),
            np.zeros(DEEPEST + 2, dtype=np.int32),
            np.zeros((1 << KNOWN_BITS, K_COLUMNS), dtype=np.int64),
        ),
        marks=marks,
        spare=_room_for(marks.matched),
        out=_room_for(marks.matched),
        called_out=_room_for(marks.called),
    )


def _room_for(marks: Marks) -> Int32s:
    """Room for all numbers of a set, and for those that reading it overwrites."""
    return np.zeros(64 * len(marks.bits) + 8, dtype=np.int32)


def _new_passed(elements: int, tests: int) -> PassedTests:
    slots = 1 << max(6, tests.bit_length())
    return PassedTests(
        np.zeros(elements, dtype=np.int32),
        np.zeros(elements, dtype=np.uint64),
        np.zeros((tests, L_COLUMNS), dtype=np.int32),
        np.zeros(tests),
        np.full(slots, NO_KEY, dtype=np.int64),
        np.zeros(slots),
        np.zeros(1, dtype=np.int64),
    )


def _new_last(states: int) -> LastElements:
    return LastElements(np.zeros(states, dtype=np.int32), np.zeros(states, dtype=np.int64))


def _new_queue(size: int) -> Queue:
    return Queue(np.zeros((size, Q_COLUMNS), dtype=np.int64), np.zeros(size))


class JoinedEntries(NamedTuple):
    """For a batch: the entries of each document, and the patterns that must be verified if their gate is open; the
    documents that are left to the verifier as a whole, and how many patterns were tried.
    """

    offsets: Int64s
    entries: Int32s
    called_offsets: Int64s
    called: Int32s
    unknown: Bools
    looked_at: int


class ElementStates(NamedTuple):
    """The state of each element of a batch, -1 for none, as a number of `states`."""

    states: States
    of: Int32s


class Joins:
    """Patterns by bound tests: those that one element decides, and others that are called for verification."""

    def __init__(self, tests: ValueTests, rows: JoinRows, tuning: Tuning) -> None:
        self.tests, self.rows, self._tuning = tests, rows, tuning
        self._lock = threading.Lock()
        self.regions: StateRegions | None = None
        self.scratch = _Scratch(tuning.queued_tests)

    def __len__(self) -> int:
        return len(self.rows.keys)

    @property
    def values(self) -> int:
        """The number of distinct tests that patterns wait for."""
        tests = (self.rows.keys & ((1 << TEST_BITS) - 1)) << 1
        ranged = np.unique(np.column_stack([tests, self.rows.limits])[tests & 2 > 0], axis=0)
        return len(np.unique(tests[tests & 2 == 0])) + len(ranged)

    def match(
        self,
        batch: DocumentBatch,
        translation: Int32s,
        mine: ElementStates,
        entries: int,
        patterns: int,
        names: int,
        beside: "tuple[Joins, ElementStates] | None" = None,
    ) -> JoinedEntries:
        """The patterns that match, and those of another index with the same table of tests, if one is `beside`.

        `names` is larger than every number in `translation`, `entries` and `patterns` than all that is found.
        """
        if beside is not None and not len(beside[0]):
            beside = None
        if beside is not None and not len(self):
            return beside[0].match(batch, translation, beside[1], entries, patterns, names)
        count, largest = len(batch), batch.largest()
        found = JoinedRoom(np.zeros((O_ROWS, count + 1), dtype=np.int64), np.zeros(count, dtype=np.bool_))
        offsets = found.offsets
        if not len(self):
            return JoinedEntries(offsets[O_ENTRIES], mine.of[:0], offsets[O_CALLED], mine.of[:0], found.unknown, 0)
        regions, tests, scratch = self.regions_of(mine.states), self.tests, self.scratch
        regions_beside = regions if beside is None else beside[0].regions_of(beside[1].states)
        # The later table has all tests of the earlier one, with the same numbers.
        if beside is not None and beside[0].tests.table.size > tests.table.size:
            tests = beside[0].tests
        # An upper bound of the values looked up: attributes, text nodes, and string-values, each twice.
        value_count = 2 * largest.elements + largest.attributes + largest.texts
        scratch.fit_text(tests.filter.longest)
        scratch.room.counts[J_LOOKED] = 0
        elements, values, done = batch.elements, batch.values, 0
        while done < count:
            # Regions are read once: another thread may publish more states at any moment.
            base = delta = IndexedPatterns(mine.of, regions.patterns)
            if beside is not None:
                delta = IndexedPatterns(beside[1].of, regions_beside.patterns)
            states = max(len(base.patterns.regions.spans), len(delta.patterns.regions.spans))
            scratch.fit(tests, states, largest.elements, value_count, entries, patterns, names)
            room, has_delta = scratch.room, beside is not None
            done = join_documents(elements, values, translation, tests, base, delta, has_delta, room, found, done)
            if done < count:
                begin, next_begin, end = batch.offsets[done], batch.offsets[done + 1], batch.offsets[-1]
                if room.counts[J_WHY] == MISS:
                    regions = self._covering(regions, mine.of[begin:end], mine.of[begin:next_begin])
                elif room.counts[J_WHY] == MISS_DELTA and beside is not None:
                    of = beside[1].of
                    regions_beside = beside[0]._covering(regions_beside, of[begin:end], of[begin:next_begin])
                elif room.counts[J_WHY] == CROWDED:
                    scratch.lengthen_queue()
                else:
                    scratch.lengthen_out()
        room = scratch.room
        entries_found, called = room.out[: offsets[O_ENTRIES, -1]], room.called_out[: offsets[O_CALLED, -1]]
        looked_at = int(room.counts[J_LOOKED])
        return JoinedEntries(offsets[O_ENTRIES], entries_found, offsets[O_CALLED], called, found.unknown, looked_at)

    def cover(self, states: States) -> None:
        """Build the regions of all existing states, as far as there is room."""
        self.regions_of(states).cover(np.arange(len(states)))

    def cover_as(self, other: "Joins", states: States) -> None:
        """Build the regions of the states for which another object has them."""
        regions = other.regions
        if regions is not None and regions.of is states:
            self.regions_of(states).cover(np.flatnonzero(regions.patterns.regions.spans[:, S_FIRST] >= 0))

    def regions_of(self, states: States) -> StateRegions:
        """The regions of these states; only the latest are kept."""
        regions = self.regions
        if regions is None or regions.of is not states:
            self.regions = regions = StateRegions(states, self.rows, self._tuning)
        return regions

    def _covering(self, regions: StateRegions, wanted: Int32s, at_least: Int32s) -> StateRegions:
        """Regions for the states of some elements; if those are too many, for the first document's states."""
        with self._lock:
            for some in (wanted, at_least):
                if regions.cover(_missing(regions, some)):
                    return regions
            regions = StateRegions(regions.of, self.rows, self._tuning)
            self.regions = regions
            missing = _missing(regions, at_least)
            if not regions.cover(missing):
                regions.refuse(missing)
            return regions


def _missing(regions: StateRegions, states: Int32s) -> Int64s:
    """The states that have no regions yet."""
    ordered = np.sort(states[states >= 0]).astype(np.int64)  # np.unique would import masked arrays
    some = ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]
    spans = regions.patterns.regions.spans
    known = some < len(spans)
    known[known] = spans[some[known], S_FIRST] != UNKNOWN
    return some[~known]
