"""Joins of states and tests: finds the patterns that one element decides, by its state and a bound test.

A state's patterns are those behind its gates. Laid out as runs (`state_value_join_kernels.py`), they form a *region*: a
table from place and test to the patterns that wait for it. Regions are built when documents first reach their states,
and kept with the states. A gate with very many patterns has a region of its own, shared by all states with that gate.

Invariant: arrays that documents read are replaced, or appended to beyond the visible end, never changed; they belong to
one object of states. Cost: some 30 bytes per pattern of each visited state, up to a bound; beyond it regions are
dropped, and a document that needs too many is left to the verifier.
"""

import threading
from typing import NamedTuple

import numpy as np

from pathcast.documents import BatchMaxima, DocumentBatch
from pathcast.kernels import Bools, Int32s, Int64s

from ...arrays.bitset_kernels import Marks
from ...arrays.bitsets import new_marks
from ...arrays.growing_array import Growing
from ...arrays.ragged_arrays import gathered
from ...tuning import Tuning
from ..paths.automaton_states import States
from .ancestor_value_test_arrays import JoinRows
from .passed_value_tests_kernels import J_COUNTS, J_LOOKED, J_WHY, L_COLUMNS, PassedTests
from .state_value_join_kernels import (
    CHAIN,
    CROWDED,
    MISS,
    NO_RUN,
    NONE,
    O_CALLED,
    O_ENTRIES,
    O_ROWS,
    Q_COLUMNS,
    R_COLUMNS,
    RUN_BITS,
    S_BELOW,
    S_COLUMNS,
    S_END,
    S_FIRST,
    T_COLUMNS,
    TEST_BITS,
    TOO_LARGE,
    UNKNOWN,
    W_COLUMNS,
    W_ENTRY,
    W_LIMIT,
    W_MORE,
    W_SECOND,
    W_SECOND_LIMIT,
    JoinMarks,
    JoinPatterns,
    JoinScratch,
    LastElements,
    OtherTests,
    Queue,
    Regions,
    RunRows,
    join_documents,
    place_runs,
)
from .unbranched_path_search_kernels import DEEPEST, N_COLUMNS, ChainRoom, Chains
from .value_test_table import new_cache
from .value_test_table_kernels import KINDS, ValueTests

_ONE = np.uint64(1)


class _Regions:
    """Regions of some states, growing; one call at a time."""

    def __init__(self, of: States, rows: JoinRows, tuning: Tuning) -> None:
        self.of, self._by, self._tuning = of, rows, tuning
        self._spans = np.zeros((0, S_COLUMNS), dtype=np.int32)
        self._list, self._regions = Growing(np.int32), Growing(np.int64, width=R_COLUMNS)
        self._tables, self._rows = Growing(np.int64, width=T_COLUMNS), Growing(np.int64, width=W_COLUMNS)
        self._of_gate: dict[int, int] = {}  # the regions of heavy gates
        self._others = OtherTests(rows.rest_begin, rows.rests, rows.rest_limits)
        self._chains = Chains(rows.chain_begin, rows.chain_codes, rows.chain_limits, rows.chain_patterns)
        self.patterns = self._captured()

    def _captured(self) -> JoinPatterns:
        """The arrays that documents read."""
        rows = self._rows.room
        return JoinPatterns(
            Regions(self._spans, self._list.room, self._regions.room, self._tables.room),
            RunRows(rows.view(np.int32), rows, rows.view(np.float64)),
            self._others,
            self._chains,
        )

    def cover(self, states: Int64s) -> bool:
        """Build the missing regions of states; False if they would be too many."""
        if not len(states):
            return True  # another thread has built them
        by, automaton = self._by, self.of.automaton
        owners, gates = gathered(automaton.gates_begin, automaton.gates, states)
        owner = np.repeat(np.arange(len(states)), np.diff(owners))
        sizes = by.gate_begin[gates + 1] - by.gate_begin[gates]
        heavy = sizes > self._tuning.heavy_gate
        begin, patterns = gathered(by.gate_begin, by.of_gate, gates[~heavy])
        shared = [gate for gate in np.unique(gates[heavy]).tolist() if gate not in self._of_gate]
        needed = len(patterns) + int(sum(by.gate_begin[gate + 1] - by.gate_begin[gate] for gate in shared))
        if self._rows.size + needed > self._tuning.region_rows:
            return False
        first = self._regions.size
        pairs = np.repeat(owner[~heavy], np.diff(begin)) << 32 | patterns
        pairs.sort()
        self._make(len(states), pairs >> 32, pairs & 0xFFFFFFFF)
        for gate in shared:
            self._of_gate[gate] = self._regions.size
            own = by.of_gate[by.gate_begin[gate] : by.gate_begin[gate + 1]].astype(np.int64)
            self._make(1, np.zeros(len(own), dtype=np.int64), own)
        self._publish(states, first, owner[heavy], gates[heavy], pairs)
        return True

    def _make(self, count: int, owner: Int64s, patterns: Int64s) -> None:
        """Append `count` regions with these patterns, sorted by region and number."""
        by = self._by
        keys = by.keys[patterns]
        starts = np.ones(len(keys), dtype=np.bool_)
        starts[1:] = (keys[1:] != keys[:-1]) | (owner[1:] != owner[:-1])
        begin = np.flatnonzero(starts)
        end = np.append(begin, len(keys))[1:]
        runs = begin + self._rows.size << RUN_BITS | end - begin
        run_keys, run_owner = keys[begin], owner[begin]
        sizes = 1 << np.ceil(np.log2(1.5 * np.bincount(run_owner, minlength=count) + 1)).astype(np.int64)
        bases = self._tables.size + np.concatenate([[0], np.cumsum(sizes)[:-1]])
        places = np.zeros(count, dtype=np.uint64)
        np.bitwise_or.at(places, run_owner, _ONE << (run_keys >> TEST_BITS).astype(np.uint64))
        first = self._regions.size
        self._regions.extend(np.column_stack([bases, sizes - 1, places.view(np.int64)]))
        self._tables.extend(np.full((int(sizes.sum()), T_COLUMNS), NO_RUN, dtype=np.int64))
        self._rows.extend(_rows(by, patterns))
        region_of = (run_owner + first).astype(np.int32)
        place_runs(self._regions.room, region_of, run_keys, runs, self._tables.room)

    def _publish(self, states: Int64s, first: int, owner: Int64s, heavy: Int32s, pairs: Int64s) -> None:
        """Assign each state its regions: its own, unless it is empty, and those of its heavy gates."""
        by = self._by
        below = np.zeros(len(states), dtype=np.bool_)
        below[(pairs >> 32)[by.below[pairs & 0xFFFFFFFF]]] = True
        filled = np.flatnonzero(np.bincount(pairs >> 32, minlength=len(states)))
        owners = np.concatenate([filled, owner])
        regions = np.concatenate([filled + first, [self._of_gate[gate] for gate in heavy.tolist()]]).astype(np.int32)
        for gate in set(heavy.tolist()):
            if by.below[by.of_gate[by.gate_begin[gate] : by.gate_begin[gate + 1]]].any():
                below[owner[heavy == gate]] = True
        order = np.argsort(owners, kind="stable")
        ends = self._list.size + np.cumsum(np.bincount(owners, minlength=len(states)))
        begins = np.concatenate([[self._list.size], ends[:-1]])
        self._list.extend(regions[order])
        # A copy: a reader of an older one must not find regions that its arrays lack.
        self._spans = self._wider()
        self._spans[states, S_FIRST], self._spans[states, S_END], self._spans[states, S_BELOW] = begins, ends, below
        self.patterns = self._captured()

    def refuse(self, states: Int64s) -> None:
        """Leave documents with these states to the verifier."""
        self._spans = self._wider()
        self._spans[states, S_FIRST] = TOO_LARGE
        self.patterns = self._captured()

    def _wider(self) -> Int32s:
        known = len(self.of)
        spans = np.full((known, S_COLUMNS), UNKNOWN, dtype=np.int32)
        spans[: len(self._spans)] = self._spans
        return spans


class _Scratch(threading.local):
    """Buffers of a join; one set per thread, for one object of regions."""

    def __init__(self, queued: int) -> None:
        self.of: _Regions | None = None
        self.room = _new_room(queued)

    def fit(
        self, regions: _Regions, states: int, elements: int, values: int, entries: int, patterns: int, names: int
    ) -> None:
        """Make room for `states` states, and the rest; stamps restart with other regions."""
        if self.of is not regions:
            self.of = regions
            self.room = self.room._replace(last=_new_last(0))
        room = self.room
        if len(room.chains.named) < max(names + 1, elements):
            named = np.zeros((2 * max(names + 1, elements), N_COLUMNS), dtype=np.int64)
            room = room._replace(chains=room.chains._replace(named=named))
        if len(room.passed.heads) < elements or len(room.passed.links) < KINDS * values:
            room = room._replace(passed=_new_passed(2 * elements, 2 * KINDS * values))
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
        chains=ChainRoom(np.zeros((0, N_COLUMNS), dtype=np.int64), np.zeros(DEEPEST + 2, dtype=np.int32)),
        marks=marks,
        spare=_room_for(marks.matched),
        out=_room_for(marks.matched),
        called_out=_room_for(marks.called),
    )


def _room_for(marks: Marks) -> Int32s:
    """Room for all numbers of a set, and for those that reading it overwrites."""
    return np.zeros(64 * len(marks.bits) + 8, dtype=np.int32)


def _new_passed(elements: int, tests: int) -> PassedTests:
    return PassedTests(
        np.zeros(elements, dtype=np.int32), np.zeros((tests, L_COLUMNS), dtype=np.int32), np.zeros(tests)
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


class Joins:
    """Patterns by bound tests: those that one element decides, and others that are called for verification."""

    def __init__(self, tests: ValueTests, rows: JoinRows, tuning: Tuning) -> None:
        self._tests, self.rows, self._tuning = tests, rows, tuning
        self._lock = threading.Lock()
        self._regions: _Regions | None = None
        self._scratch = _Scratch(tuning.queued_tests)

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
        largest: BatchMaxima,
        translation: Int32s,
        states: States,
        of: Int32s,
        entries: int,
        patterns: int,
    ) -> JoinedEntries:
        """The patterns that match; `of` has the state of each element of the batch, -1 for none."""
        scratch, count = self._scratch, len(batch)
        offsets = np.zeros((O_ROWS, count + 1), dtype=np.int64)
        unknown = np.zeros(count, dtype=np.bool_)
        if not len(self.rows.keys):
            return JoinedEntries(offsets[O_ENTRIES], of[:0], offsets[O_CALLED], of[:0], unknown, 0)
        regions = self._of(states)
        # An upper bound of the values looked up: attributes, text nodes, and string-values, each twice.
        value_count = 2 * largest.elements + largest.attributes + largest.texts
        names = int(translation.max(initial=-1)) + 1
        scratch.fit_text(self._tests.filter.longest)
        scratch.room.counts[J_LOOKED] = 0
        elements, values, done = batch.elements, batch.values, 0
        while done < count:
            found = regions.patterns  # read once: another thread may publish more states at any moment
            states_found = len(found.regions.spans)
            scratch.fit(regions, states_found, largest.elements, value_count, entries, patterns, names)
            room = scratch.room
            done = join_documents(elements, values, translation, of, self._tests, found, room, unknown, offsets, done)
            if done < count:
                if room.counts[J_WHY] == MISS:
                    begin, end = batch.offsets[done], batch.offsets[-1]
                    regions = self._covering(regions, of[begin:end], of[begin : batch.offsets[done + 1]])
                elif room.counts[J_WHY] == CROWDED:
                    scratch.lengthen_queue()
                else:
                    scratch.lengthen_out()
        room = scratch.room
        entries_found, called = room.out[: offsets[O_ENTRIES, -1]], room.called_out[: offsets[O_CALLED, -1]]
        looked_at = int(room.counts[J_LOOKED])
        return JoinedEntries(offsets[O_ENTRIES], entries_found, offsets[O_CALLED], called, unknown, looked_at)

    def cover(self, states: States) -> None:
        """Build the regions of all existing states, as far as there is room."""
        self._of(states).cover(np.arange(len(states)))

    def cover_as(self, other: "Joins", states: States) -> None:
        """Build the regions of the states for which another object has them."""
        regions = other._regions
        if regions is not None and regions.of is states:
            self._of(states).cover(np.flatnonzero(regions.patterns.regions.spans[:, S_FIRST] >= 0))

    def _of(self, states: States) -> _Regions:
        """The regions of these states; only the latest are kept."""
        regions = self._regions
        if regions is None or regions.of is not states:
            self._regions = regions = _Regions(states, self.rows, self._tuning)
        return regions

    def _covering(self, regions: _Regions, wanted: Int32s, at_least: Int32s) -> _Regions:
        """Regions for the states of some elements; if those are too many, for the first document's states."""
        with self._lock:
            for some in (wanted, at_least):
                if regions.cover(_missing(regions, some)):
                    return regions
            regions = _Regions(regions.of, self.rows, self._tuning)
            self._regions = regions
            missing = _missing(regions, at_least)
            if not regions.cover(missing):
                regions.refuse(missing)
            return regions


def _rows(by: JoinRows, patterns: Int64s) -> Int64s:
    """The rows of patterns."""
    rows = np.full((len(patterns), W_COLUMNS), NONE, dtype=np.int64)
    numbers, limits = rows.view(np.int32), rows.view(np.float64)
    begin = by.rest_begin[patterns]
    tests = by.rest_begin[patterns + 1] - begin
    second = tests > 0
    numbers[:, W_ENTRY] = by.entries[patterns]
    numbers[:, W_MORE] = np.where(tests > 1, patterns, NONE)
    limits[:, W_LIMIT] = by.limits[patterns]
    rows[second, W_SECOND] = by.rests[begin[second]]
    limits[second, W_SECOND_LIMIT] = by.rest_limits[begin[second]]
    chains = by.chain_begin[patterns + 1] > by.chain_begin[patterns]
    rows[chains, W_SECOND] = CHAIN
    numbers[chains, W_MORE] = patterns[chains]
    return rows


def _missing(regions: _Regions, states: Int32s) -> Int64s:
    """The states that have no regions yet."""
    some = np.unique(states[states >= 0]).astype(np.int64)
    spans = regions.patterns.regions.spans
    known = some < len(spans)
    known[known] = spans[some[known], S_FIRST] != UNKNOWN
    return some[~known]
