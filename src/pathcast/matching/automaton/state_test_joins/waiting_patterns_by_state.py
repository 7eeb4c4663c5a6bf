"""The regions of states (`waiting_patterns_by_state_kernels.py`), built when documents first reach their states.

A state's patterns are those behind its gates. A gate with very many patterns has a region of its own, shared by all
states with that gate.

Invariant: arrays that documents read are replaced, or appended to beyond the visible end, never changed; they belong to
one object of states. Cost: some 30 bytes per pattern of each visited state.
"""

import numpy as np

from pathcast.kernels import Int32s, Int64s
from pathcast.kernels.hash_table_kernels import MIX_A
from pathcast.store import offsets_of

from ...arrays.growing_array import Growing
from ...arrays.ragged_arrays import gathered
from ...tuning import Tuning
from ..paths.lazy_determinisation import States
from .ancestor_value_test_arrays import JoinRows
from .state_value_join_kernels import (
    CALLED,
    CHAIN,
    NONE,
    JoinPatterns,
    OtherTests,
)
from .unbranched_path_search_kernels import (
    Chains,
)
from .waiting_patterns_by_state_kernels import (
    NO_RUN,
    P_COLUMNS,
    PURE,
    R_BASE,
    R_COLUMNS,
    R_END,
    R_FIRST,
    R_MASK,
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
    Regions,
    RunRows,
    place_runs,
)

_ONE = np.uint64(1)


class StateRegions:
    """Regions of some states, growing; one call at a time."""

    def __init__(self, of: States, rows: JoinRows, tuning: Tuning) -> None:
        self.of, self._by, self._tuning = of, rows, tuning
        self._spans = np.zeros((0, S_COLUMNS), dtype=np.int32)
        self._list, self._regions = Growing(np.int32), Growing(np.int64, width=R_COLUMNS)
        self._places = Growing(np.int64, width=P_COLUMNS)
        self._tables, self._rows = Growing(np.int64, width=T_COLUMNS), Growing(np.int64, width=W_COLUMNS)
        self._seconds = Growing(np.int64, width=W_COLUMNS)
        self._of_gate: dict[int, int] = {}  # the regions of heavy gates
        self._others = OtherTests(rows.rest_begin, rows.rests, rows.rest_limits)
        self._chains = Chains(
            rows.chain_begin,
            rows.chain_codes,
            rows.chain_limits,
            rows.chain_patterns,
            rows.chain_uppers,
        )
        self.patterns = self._captured()

    def _captured(self) -> JoinPatterns:
        """The arrays that documents read."""
        rows, seconds = self._rows.room, self._seconds.room
        return JoinPatterns(
            Regions(self._spans, self._list.room, self._regions.room, self._places.room, self._tables.room),
            RunRows(rows.view(np.int32), rows.view(np.float64), seconds, seconds.view(np.float64)),
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
        rows, seconds = _rows(by, patterns)
        is_pure = (seconds[:, W_SECOND] == NONE) & (rows.view(np.int32)[:, W_ENTRY] > CALLED)
        pure = np.logical_and.reduceat(is_pure, begin) if len(begin) else is_pure
        runs = begin + self._rows.size << RUN_BITS | end - begin | np.where(pure, PURE, 0)
        run_keys, run_owner = keys[begin], owner[begin]
        sizes = 1 << np.ceil(np.log2(1.5 * np.bincount(run_owner, minlength=count) + 1)).astype(np.int64)
        bases = self._tables.size + np.concatenate([[0], np.cumsum(sizes)[:-1]])
        first = self._regions.size
        ends = self._add_places(count, run_owner, run_keys)
        regions = np.zeros((count, R_COLUMNS), dtype=np.int64)
        regions[:, R_BASE], regions[:, R_MASK] = bases, sizes - 1
        regions[:, R_FIRST], regions[:, R_END] = ends[:-1], ends[1:]
        self._regions.extend(regions)
        self._tables.extend(np.full((int(sizes.sum()), T_COLUMNS), NO_RUN, dtype=np.int64))
        self._rows.extend(rows)
        self._seconds.extend(seconds)
        region_of = (run_owner + first).astype(np.int32)
        place_runs(self._regions.room, region_of, run_keys, runs, self._tables.room)

    def _add_places(self, count: int, owner: Int64s, keys: Int64s) -> Int64s:
        """Append the places of the runs of `count` regions, sorted by region and key; return their bounds."""
        before, places = self._places.size, keys >> TEST_BITS
        starts = np.ones(len(keys), dtype=np.bool_)
        starts[1:] = (places[1:] != places[:-1]) | (owner[1:] != owner[:-1])
        begin = np.flatnonzero(starts)
        tests = (keys & (1 << TEST_BITS) - 1).astype(np.uint64)
        signs = np.bitwise_or.reduceat(_ONE << (tests * MIX_A >> np.uint64(58)), begin) if len(begin) else tests
        self._places.extend(np.column_stack([places[begin], signs.view(np.int64)]))
        return before + offsets_of(np.bincount(owner[begin], minlength=count))

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


def _rows(by: JoinRows, patterns: Int64s) -> tuple[Int64s, Int64s]:
    """The rows of patterns, and their second tests."""
    rows, seconds = (np.full((len(patterns), W_COLUMNS), NONE, dtype=np.int64) for _ in range(2))
    numbers, limits, second_limits = rows.view(np.int32), rows.view(np.float64), seconds.view(np.float64)
    begin = by.rest_begin[patterns]
    tests = by.rest_begin[patterns + 1] - begin
    second = tests > 0
    numbers[:, W_ENTRY] = by.entries[patterns]
    numbers[:, W_MORE] = np.where(tests > 1, patterns, NONE)
    limits[:, W_LIMIT] = by.limits[patterns]
    seconds[second, W_SECOND] = by.rests[begin[second]]
    second_limits[second, W_SECOND_LIMIT] = by.rest_limits[begin[second]]
    chains = by.chain_begin[patterns + 1] > by.chain_begin[patterns]
    seconds[chains, W_SECOND] = CHAIN
    seconds[chains, W_SECOND_LIMIT] = by.chain_briefs[patterns[chains]]
    numbers[chains, W_MORE] = patterns[chains]
    return rows, seconds
