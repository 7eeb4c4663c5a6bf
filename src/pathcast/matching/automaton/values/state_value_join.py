"""Joins of states and tests: the patterns that one element decides, by the state of its label path and a bound test.

A state's patterns are those behind its gates. Laid out as runs (`state_value_join_kernels.py`), they are a *region*: a
table from place and test to the patterns that wait for it. Regions are made when documents come to their states, and
kept with these. A gate with very many patterns has a region of its own, which all states with that gate share.

Invariant: what documents read is replaced, or appended to beyond what they see, never changed; it belongs to one object
of states. Cost: some 30 bytes for each pattern of each state that documents came to, up to a bound; beyond it regions
are forgotten, and a document whose own would be too many is left to the verifier.
"""

import threading
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch, Largest
from pathcast.kernels import Bools, Floats, Int32s, Int64s

from ...arrays.growing_array import Growing
from ...arrays.ragged_arrays import gathered
from ..paths.states import States
from .ancestor_test_rows import JoinRows
from .passed_tests_kernels import J_COUNTS, J_LOOKED, J_WHY
from .state_value_join_kernels import (
    CHAIN,
    CROWDED,
    DEEPEST,
    MISS,
    N_COLUMNS,
    NO_RUN,
    NONE,
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
    join_documents,
    place_runs,
)
from .value_hash_kernels import KINDS, V_COLUMNS, VALUES
from .value_index import Tests

# A gate with more patterns than this has a region of its own.
HEAVY = 512
# Rows of all regions together.
MOST_ROWS = 1 << 23
_QUEUED = 1 << 12
_ONE = np.uint64(1)


class _Runs(NamedTuple):
    """What documents read: of each state its regions, and these."""

    spans: Int32s
    region_list: Int32s
    regions: Int64s
    tables: Int64s
    rows: Int32s
    numbered: Int64s
    limits: Floats


class _Regions:
    """Regions of some states, growing; one call at a time."""

    def __init__(self, of: States, rows: JoinRows) -> None:
        self.of, self._by = of, rows
        self._spans = np.zeros((0, S_COLUMNS), dtype=np.int32)
        self._list, self._regions = Growing(np.int32), Growing(np.int64, width=R_COLUMNS)
        self._tables, self._rows = Growing(np.int64, width=T_COLUMNS), Growing(np.int64, width=W_COLUMNS)
        self._of_gate: dict[int, int] = {}  # the regions of heavy gates
        self.runs = self._captured()

    def _captured(self) -> _Runs:
        rows = self._rows.room
        return _Runs(
            self._spans, self._list.room, self._regions.room, self._tables.room,
            rows.view(np.int32), rows, rows.view(np.float64),
        )  # fmt: skip

    def cover(self, states: Int64s) -> bool:
        """Make the regions of states that have none yet; False when they would be too many."""
        if not len(states):
            return True  # another thread has made them
        by, automaton = self._by, self.of.automaton
        owners, gates = gathered(automaton.gates_begin, automaton.gates, states)
        owner = np.repeat(np.arange(len(states)), np.diff(owners))
        sizes = by.gate_begin[gates + 1] - by.gate_begin[gates]
        heavy = sizes > HEAVY
        begin, patterns = gathered(by.gate_begin, by.of_gate, gates[~heavy])
        shared = [gate for gate in np.unique(gates[heavy]).tolist() if gate not in self._of_gate]
        needed = len(patterns) + int(sum(by.gate_begin[gate + 1] - by.gate_begin[gate] for gate in shared))
        if self._rows.size + needed > MOST_ROWS:
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
        """Append so many regions with these patterns, which are sorted by region and number."""
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
        """Give each state its regions: its own, if there is anything in it, and those of its heavy gates."""
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
        # A copy: whoever reads an older one must not come to regions that its arrays lack.
        self._spans = self._wider()
        self._spans[states, S_FIRST], self._spans[states, S_END], self._spans[states, S_BELOW] = begins, ends, below
        self.runs = self._captured()

    def refuse(self, states: Int64s) -> None:
        """Documents with these states are left to the verifier."""
        self._spans = self._wider()
        self._spans[states, S_FIRST] = TOO_LARGE
        self.runs = self._captured()

    def _wider(self) -> Int32s:
        known = len(self.of)
        spans = np.full((known, S_COLUMNS), UNKNOWN, dtype=np.int32)
        spans[: len(self._spans)] = self._spans
        return spans


class _Scratch(threading.local):
    """Buffers of a join; one set a thread, for one object of regions."""

    def __init__(self) -> None:
        self.of: _Regions | None = None
        self.counts = np.zeros(J_COUNTS, dtype=np.int64)
        self.values = np.zeros((VALUES + 1, V_COLUMNS), dtype=np.int64)
        self.value_numbers = np.zeros(VALUES + 1)
        self.joined = np.zeros(0, dtype=np.uint8)
        self.path = np.zeros(DEEPEST + 2, dtype=np.int32)
        self.named = np.zeros((0, N_COLUMNS), dtype=np.int64)
        self.heads = np.zeros(0, dtype=np.int32)
        self.passed, self.passed_values = np.zeros((0, 2), dtype=np.int32), np.zeros(0)
        self.last_of = np.zeros(0, dtype=np.int32)
        self.last_stamps = np.zeros(0, dtype=np.int64)
        self.queue, self.queue_values = np.zeros((_QUEUED, Q_COLUMNS), dtype=np.int64), np.zeros(_QUEUED)
        self.marks = self.summary = self.looked = self.looked_summary = np.zeros(0, dtype=np.uint64)
        self.called = self.called_summary = np.zeros(0, dtype=np.uint64)
        self.spare = self.out = self.called_out = np.zeros(0, dtype=np.int32)

    def fit(
        self, regions: _Regions, runs: _Runs, elements: int, values: int, entries: int, patterns: int, names: int
    ) -> None:
        """Make room; stamps begin again with other regions."""
        if self.of is not regions:
            self.of = regions
            self.last_of, self.last_stamps = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
        if len(self.named) < max(names + 1, elements):
            self.named = np.zeros((2 * max(names + 1, elements), N_COLUMNS), dtype=np.int64)
        if len(self.heads) < elements:
            self.heads = np.zeros(2 * elements, dtype=np.int32)
        if len(self.passed) < KINDS * values:
            self.passed = np.zeros((2 * KINDS * values, 2), dtype=np.int32)
            self.passed_values = np.zeros(2 * KINDS * values)
        states = len(runs.spans)
        if len(self.last_of) < states:
            self.last_of = np.zeros(2 * states, dtype=np.int32)
            self.last_stamps = np.zeros(2 * states, dtype=np.int64)
        if 64 * len(self.marks) < entries:
            self.marks, self.looked = (np.zeros((entries >> 6) + 64, dtype=np.uint64) for _ in range(2))
            self.summary, self.looked_summary = (
                np.zeros((len(self.marks) >> 6) + 1, dtype=np.uint64) for _ in range(2)
            )
            self.spare = np.zeros(64 * len(self.marks) + 8, dtype=np.int32)
            self.out = np.zeros(max(len(self.out), len(self.spare)), dtype=np.int32)
        if 64 * len(self.called) < patterns:
            self.called = np.zeros((patterns >> 6) + 64, dtype=np.uint64)
            self.called_summary = np.zeros((len(self.called) >> 6) + 1, dtype=np.uint64)
            self.called_out = np.zeros(2 * 64 * len(self.called), dtype=np.int32)


class Joined(NamedTuple):
    """Of a batch: the entries of each document, and the patterns that have to be verified if their gate is open; the
    documents that are left to the verifier as a whole, and how many patterns were looked at.
    """

    offsets: Int64s
    entries: Int32s
    called_offsets: Int64s
    called: Int32s
    unknown: Bools
    looked_at: int


class Joins:
    """Patterns by bound tests: those that one element decides, and others that are called to be verified."""

    def __init__(self, tests: Tests, rows: JoinRows) -> None:
        self._tests, self.rows = tests, rows
        self._lock = threading.Lock()
        self._regions: _Regions | None = None
        self._scratch = _Scratch()

    def __len__(self) -> int:
        return len(self.rows.keys)

    @property
    def values(self) -> int:
        """How many different tests patterns wait for."""
        tests = (self.rows.keys & ((1 << TEST_BITS) - 1)) << 1
        ranged = np.unique(np.column_stack([tests, self.rows.limits])[tests & 2 > 0], axis=0)
        return len(np.unique(tests[tests & 2 == 0])) + len(ranged)

    def match(
        self,
        batch: DocumentBatch,
        largest: Largest,
        translation: Int32s,
        states: States,
        of: Int32s,
        entries: int,
        patterns: int,
    ) -> Joined:
        """The patterns that match; `of` has the state of each element of the batch, -1 where there is none."""
        scratch, tests, by, count = self._scratch, self._tests, self.rows, len(batch)
        offsets, called_offsets = np.zeros((2, count + 1), dtype=np.int64)
        unknown = np.zeros(count, dtype=np.bool_)
        if not len(by.keys):
            return Joined(offsets, of[:0], called_offsets, of[:0], unknown, 0)
        regions = self._of(states)
        # At most so many values are looked up: attributes, text nodes, and string-values, each twice.
        values = 2 * largest.elements + largest.attributes + largest.texts
        names = int(translation.max(initial=-1)) + 1
        if len(scratch.joined) < tests.longest + 16:
            scratch.joined = np.zeros(tests.longest + 16, dtype=np.uint8)
        scratch.counts[J_LOOKED] = 0
        done = 0
        while done < count:
            runs = regions.runs
            scratch.fit(regions, runs, largest.elements, values, entries, patterns, names)
            done = join_documents(
                batch.offsets, batch.name, batch.parent, batch.depth, batch.end, batch.attribute_begin,
                batch.attribute_name, batch.attribute_start, batch.attribute_length, batch.text_begin, batch.text_end,
                batch.text_parent, batch.text_start, batch.text_length, batch.data, batch.arena, translation, of,
                tests.longest, tests.tests, tests.groups, tests.asks, tests.slots, tests.rows, tests.hashes,
                tests.numbers, tests.group_of, tests.literals, tests.hits, tests.samples, tests.sampled,
                *runs, by.rest_begin, by.rests, by.rest_limits, by.chain_begin, by.chain_codes, by.chain_limits,
                by.chain_patterns, scratch.path, scratch.named, scratch.counts, scratch.values, scratch.value_numbers,
                scratch.joined, scratch.heads, scratch.passed, scratch.passed_values, scratch.last_of,
                scratch.last_stamps, scratch.queue, scratch.queue_values, scratch.marks, scratch.summary,
                scratch.looked, scratch.looked_summary, scratch.called, scratch.called_summary, scratch.spare, unknown,
                offsets, scratch.out, called_offsets, scratch.called_out, done,
            )  # fmt: skip
            if done < count:
                if scratch.counts[J_WHY] == MISS:
                    begin, end = batch.offsets[done], batch.offsets[-1]
                    regions = self._covering(regions, of[begin:end], of[begin : batch.offsets[done + 1]])
                elif scratch.counts[J_WHY] == CROWDED:
                    scratch.queue = np.zeros((2 * len(scratch.queue), Q_COLUMNS), dtype=np.int64)
                    scratch.queue_values = np.zeros(len(scratch.queue))
                else:
                    scratch.out = np.resize(scratch.out, 2 * len(scratch.out))
                    scratch.called_out = np.resize(scratch.called_out, 2 * len(scratch.called_out))
        entries_found, called = scratch.out[: offsets[-1]], scratch.called_out[: called_offsets[-1]]
        return Joined(offsets, entries_found, called_offsets, called, unknown, int(scratch.counts[J_LOOKED]))

    def cover(self, states: States) -> None:
        """Make the regions of all states that there are, as far as there is room."""
        self._of(states).cover(np.arange(len(states)))

    def cover_as(self, other: "Joins", states: States) -> None:
        """Make the regions of the states for which another one has them."""
        regions = other._regions
        if regions is not None and regions.of is states:
            self._of(states).cover(np.flatnonzero(regions.runs.spans[:, S_FIRST] >= 0))

    def _of(self, states: States) -> _Regions:
        """The regions of these states; only the latest are kept."""
        regions = self._regions
        if regions is None or regions.of is not states:
            self._regions = regions = _Regions(states, self.rows)
        return regions

    def _covering(self, regions: _Regions, wanted: Int32s, at_least: Int32s) -> _Regions:
        """Regions for the states of some elements; if those are too many, of the first document's."""
        with self._lock:
            for some in (wanted, at_least):
                if regions.cover(_missing(regions, some)):
                    return regions
            regions = _Regions(regions.of, self.rows)
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
    spans = regions.runs.spans
    known = some < len(spans)
    known[known] = spans[some[known], S_FIRST] != UNKNOWN
    return some[~known]
