"""Access predicates: the value tests that a pattern waits for, in addition to its gate.

Of the clauses that a pattern demands (`required_value_tests.py`), it waits for the one that documents have fulfilled
least often (`required_value_test_arrays.py`): for one test or, for an `or`, for one test of each alternative. The
pattern is a candidate for documents that pass one of these tests and open its gate (`required_path_gate.py`); a pattern
without a clause waits behind its gate alone.

Invariant: a document that matches passes one of the tests, so nothing is missed.
Cost: one or two hash look-ups per value that some pattern tests, and a binary search per group of ranges for which a
value was found.
"""

import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pathcast.documents import DocumentBatch
from pathcast.kernels import Bools, Floats, Int32s, Int64s
from pathcast.store import grown

from ...arrays.bitsets import new_marks
from ..state_test_joins.state_value_join import JoinedEntries
from .access_predicate_index_kernels import (
    S_COUNTS,
    AccessPatterns,
    AccessScratch,
    CalledPatterns,
    CallScratch,
    GatePatterns,
    ListedGates,
    RangedPatterns,
    TestedPatterns,
    candidates_of,
)
from .required_value_test_arrays import Choice
from .value_test_table import new_cache
from .value_test_table_kernels import D_KIND, HIGH, LOW, ValueTests

_FIRST_OUT = 1 << 12


class _Scratch(threading.local):
    """The buffers of a thread."""

    room: AccessScratch | None = None


class AccessRows(NamedTuple):
    """Patterns by access predicate, as arrays that can be saved.

    `gate_of` has the gate of each pattern. Per gate, the patterns that wait behind it alone (`behind`), and all
    patterns (`all`); per test, those that wait for it (`patterns`, with their gates); per group of ranges, those that
    wait for a value beyond a threshold (with their gates, too).
    """

    gate_of: Int32s
    behind_begin: Int64s
    behind: Int32s
    all_begin: Int64s
    all: Int32s
    begin: Int64s
    patterns: Int32s
    pattern_gates: Int32s
    range_kinds: Int32s
    range_begin: Int64s
    thresholds: Floats
    range_patterns: Int32s
    range_gates: Int32s

    def grouped(self) -> AccessPatterns:
        """The same arrays, as the kernel reads them."""
        return AccessPatterns(
            self.gate_of,
            GatePatterns(self.behind_begin, self.behind),
            GatePatterns(self.all_begin, self.all),
            TestedPatterns(self.begin, self.patterns, self.pattern_gates),
            RangedPatterns(self.range_kinds, self.range_begin, self.thresholds, self.range_patterns, self.range_gates),
        )


def laid_out(tests: ValueTests, gate_of: Int32s, gates: int, choice: Choice, decided: Bools) -> AccessRows:
    """Patterns by their gates, of which there are `gates`, and by access predicate.

    The `decided` patterns are left out: joins find them (`state_value_join.py`).
    """
    counts = np.where(decided, 0, np.diff(choice.begin))
    owner, chosen = np.repeat(np.arange(len(counts)), np.diff(choice.begin)), choice.tests
    owner, chosen = owner[~decided[owner]], chosen[~decided[owner]]
    table = tests.table
    kinds = table.rows[D_KIND][chosen]
    ranged = (kinds == LOW) | (kinds == HIGH)
    groups, limits = table.group_of[: table.size], table.numbers[: table.size]
    range_kinds = np.full(table.groups, LOW, dtype=np.int32)
    known = np.flatnonzero(groups >= 0)
    range_kinds[groups[known]] = table.rows[D_KIND][known]
    waiting = np.flatnonzero(ranged)
    waiting = waiting[np.lexsort((limits[chosen[waiting]], groups[chosen[waiting]]))]
    begin, order = _rows(chosen, np.flatnonzero(~ranged), table.size)
    patterns, range_patterns = (owner[places].astype(np.int32) for places in (order, waiting))
    behind_begin, behind = _rows(gate_of, np.flatnonzero((counts == 0) & ~decided), gates)
    all_begin, all_patterns = _rows(gate_of, np.arange(len(gate_of)), gates)
    return AccessRows(
        gate_of=gate_of,
        behind_begin=behind_begin,
        behind=behind,
        all_begin=all_begin,
        all=all_patterns,
        begin=begin,
        patterns=patterns,
        pattern_gates=gate_of[patterns],
        range_kinds=range_kinds,
        range_begin=np.searchsorted(groups[chosen[waiting]], np.arange(table.groups + 1)).astype(np.int64),
        thresholds=np.ascontiguousarray(limits[chosen[waiting]]),
        range_patterns=range_patterns,
        range_gates=gate_of[range_patterns],
    )


def no_access(tests: ValueTests) -> AccessRows:
    """The rows of no patterns."""
    none = Choice(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0))
    return laid_out(tests, np.zeros(0, dtype=np.int32), 0, none, np.zeros(0, dtype=np.bool_))


class Access:
    """Finds the candidates of documents: patterns by their gates and access predicates."""

    def __init__(self, tests: ValueTests, gates: int, rows: AccessRows) -> None:
        self._tests, self.gates, self.rows = tests, gates, rows
        self._patterns = rows.grouped()
        self.gate_of = rows.gate_of
        self._scratch = _Scratch()

    @property
    def values(self) -> int:
        """The number of distinct tests that patterns wait for."""
        ranges = np.diff(self.rows.range_begin)
        thresholds = self.rows.thresholds
        same = (thresholds[1:] == thresholds[:-1]) & (np.diff(np.repeat(np.arange(len(ranges)), ranges)) == 0)
        return int(np.count_nonzero(np.diff(self.rows.begin))) + len(thresholds) - int(np.count_nonzero(same))

    def candidates(
        self,
        batch: DocumentBatch,
        translation: Int32s,
        gate_offsets: Int64s,
        gates: Int32s,
        listed: int,
        patterns: int,
        joined: JoinedEntries,
        first: int = 0,
    ) -> tuple[Int64s, Int32s]:
        """The candidates of each document, ascending, given its open gates; `patterns` is their current number.

        Patterns called elsewhere are numbered from `first` on.

        Gates from `listed` on may be open although they are not listed.

        The candidates include patterns called elsewhere and, for documents left to the verifier, all patterns behind
        open gates.
        """
        if not len(gates) and not len(joined.called):
            return np.zeros(len(batch) + 1, dtype=np.int64), gates
        room = self._fitting(patterns)
        open_gates = ListedGates(gate_offsets, gates, listed)
        called = CalledPatterns(joined.called_offsets, joined.called, joined.unknown, first)
        elements, values = batch.elements, batch.values
        offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        done = 0
        while True:
            done = candidates_of(
                open_gates, called, elements, values, translation, self._tests, self._patterns, room, offsets, done
            )
            if done == len(batch):
                return offsets, room.out[: offsets[-1]].copy()
            self._scratch.room = room = room._replace(out=grown(room.out, 2 * len(room.out)))

    def _fitting(self, patterns: int) -> AccessScratch:
        """The buffers of this thread, with room for `patterns` patterns."""
        room = self._scratch.room
        if room is None:
            room = self._scratch.room = self._new_room(patterns)
        elif 64 * len(room.calls.marks.bits) < patterns:
            room = self._scratch.room = room._replace(calls=room.calls._replace(marks=new_marks(patterns)))
        return room

    def _new_room(self, patterns: int) -> AccessScratch:
        tests, groups = self._tests.table.size, self._tests.table.groups
        calls = CallScratch(
            state=np.zeros(S_COUNTS, dtype=np.int64),
            open_gates=np.zeros((self.gates >> 6) + 1, dtype=np.uint64),
            test_stamps=np.zeros(tests, dtype=np.int64),
            group_stamps=np.zeros(groups, dtype=np.int64),
            extremes=np.zeros(groups),
            touched=np.zeros(groups, dtype=np.int32),
            marks=new_marks(patterns),
        )
        text = np.zeros(self._tests.filter.longest + 16, dtype=np.uint8)
        return AccessScratch(calls, new_cache(), text, np.empty(_FIRST_OUT, dtype=np.int32))


def _rows(keys: Int32s, patterns: npt.NDArray[np.intp], count: int) -> tuple[Int64s, Int32s]:
    """Patterns by key: those of key `k` are `rows[begin[k] : begin[k + 1]]`."""
    order = patterns[np.argsort(keys[patterns], kind="stable")]
    return np.searchsorted(keys[order], np.arange(count + 1)).astype(np.int64), order.astype(np.int32)
