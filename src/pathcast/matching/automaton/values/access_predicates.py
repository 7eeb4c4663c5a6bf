"""Access predicates: the value tests that a pattern waits for, besides its gate.

Of the clauses that a pattern demands (`required_tests.py`), it waits for the one that documents have met least often
(`access_clauses.py`): for one test, or, of an `or`, for one test of each alternative. The pattern is a candidate for
documents that pass one of these tests and open its gate (`path_gates.py`); a pattern without a clause waits behind its
gate alone.

Invariant: a document that matches passes one of the tests, so nothing is missed.
Cost: one or two hash look-ups for each value that some pattern asks about, a binary search for each group of ranges
that is met.
"""

import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pathcast.documents import DocumentBatch
from pathcast.kernels import Bools, Floats, Int32s, Int64s

from .access_clauses import Choice
from .state_value_join import Joined
from .value_hash_kernels import (
    D_KIND,
    HIGH,
    LOW,
    V_COLUMNS,
    VALUES,
)
from .value_index import Tests
from .value_index_kernels import S_COUNTS, candidates_of


class _Scratch(threading.local):
    def __init__(self) -> None:
        self.state = np.zeros(S_COUNTS, dtype=np.int64)
        self.out = np.empty(1 << 12, dtype=np.int32)
        self.test_stamps = self.group_stamps = np.zeros(0, dtype=np.int64)
        self.open_gates = self.marks = self.summary = np.zeros(0, dtype=np.uint64)
        self.extremes = np.zeros(0, dtype=np.float64)
        self.touched = np.zeros(0, dtype=np.int32)
        self.joined = np.zeros(0, dtype=np.uint8)
        self.values = np.zeros((VALUES + 1, V_COLUMNS), dtype=np.int64)
        self.value_numbers = np.zeros(VALUES + 1)


class AccessRows(NamedTuple):
    """Patterns by what they wait for, in the arrays that the kernel reads.

    `gate_of` has the gate of each pattern. Of each gate the patterns that wait behind it alone (`behind`), and all
    (`all`); of each test those that wait for it (`patterns`, with their gates); of each group of ranges those that wait
    for a value beyond a threshold (with their gates, too).
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


def laid_out(tests: Tests, gate_of: Int32s, gates: int, choice: Choice, decided: Bools) -> AccessRows:
    """Patterns by their gates, of which there are so many, and by what they wait for.

    Those that are `decided` are not waited for here (`state_value_join.py`).
    """
    counts = np.where(decided, 0, np.diff(choice.begin))
    owner, chosen = np.repeat(np.arange(len(counts)), np.diff(choice.begin)), choice.tests
    owner, chosen = owner[~decided[owner]], chosen[~decided[owner]]
    kinds = tests.rows[D_KIND][chosen]
    ranged = (kinds == LOW) | (kinds == HIGH)
    groups, limits = tests.group_of[: tests.tests], tests.numbers[: tests.tests]
    range_kinds = np.full(tests.groups, LOW, dtype=np.int32)
    known = np.flatnonzero(groups >= 0)
    range_kinds[groups[known]] = tests.rows[D_KIND][known]
    waiting = np.flatnonzero(ranged)
    waiting = waiting[np.lexsort((limits[chosen[waiting]], groups[chosen[waiting]]))]
    begin, order = _rows(chosen, np.flatnonzero(~ranged), tests.tests)
    patterns, range_patterns = (owner[places].astype(np.int32) for places in (order, waiting))
    return AccessRows(
        gate_of,
        *_rows(gate_of, np.flatnonzero((counts == 0) & ~decided), gates),
        *_rows(gate_of, np.arange(len(gate_of)), gates),
        begin, patterns, gate_of[patterns],
        range_kinds,
        np.searchsorted(groups[chosen[waiting]], np.arange(tests.groups + 1)).astype(np.int64),
        np.ascontiguousarray(limits[chosen[waiting]]),
        range_patterns, gate_of[range_patterns],
    )  # fmt: skip


def no_access(tests: Tests) -> AccessRows:
    """For no patterns."""
    none = Choice(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0))
    return laid_out(tests, np.zeros(0, dtype=np.int32), 0, none, np.zeros(0, dtype=np.bool_))


class Access:
    """Candidates of documents: patterns by their gates and access predicates."""

    def __init__(self, tests: Tests, gates: int, rows: AccessRows) -> None:
        self._tests, self.gates, self.rows = tests, gates, rows
        self.gate_of = rows.gate_of
        self._scratch = _Scratch()

    @property
    def values(self) -> int:
        """How many different tests patterns wait for."""
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
        told_gates: int,
        patterns: int,
        joined: Joined,
    ) -> tuple[Int64s, Int32s]:
        """The candidates of each document, ascending, given its open gates; `patterns` is how many there are by now.

        Of gates from `told_gates` on nobody knows whether they are open.

        Those that were called elsewhere are among them; and all patterns behind open gates, of documents that were left
        to the verifier.
        """
        scratch, tests, rows = self._fitting(patterns), self._tests, self.rows
        offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        done = 0
        while True:
            done = candidates_of(
                gate_offsets, gates, told_gates, joined.called_offsets, joined.called, rows.gate_of,
                batch.offsets, batch.name, batch.attribute_begin, batch.attribute_name, batch.attribute_start,
                batch.attribute_length, batch.text_begin, batch.text_end, batch.text_parent, batch.text_start,
                batch.text_length, batch.data, batch.arena, translation,
                tests.longest, tests.has_grams, tests.asks, tests.grams, tests.slots, tests.rows, tests.hashes,
                tests.numbers, tests.group_of, tests.literals,
                rows.behind_begin, rows.behind, rows.all_begin, rows.all, rows.begin, rows.patterns, rows.pattern_gates,
                rows.range_kinds, rows.range_begin, rows.thresholds, rows.range_patterns, rows.range_gates,
                joined.unknown,
                scratch.state, scratch.open_gates, scratch.test_stamps, tests.hits, tests.samples, tests.sampled,
                scratch.extremes, scratch.group_stamps, scratch.touched, scratch.joined, scratch.values,
                scratch.value_numbers, scratch.marks, scratch.summary,
                offsets, scratch.out, done,
            )  # fmt: skip
            if done == len(batch):
                return offsets, scratch.out[: offsets[-1]].copy()
            larger = np.empty(2 * len(scratch.out), dtype=np.int32)
            larger[: offsets[done]] = scratch.out[: offsets[done]]
            scratch.out = larger

    def _fitting(self, patterns: int) -> _Scratch:
        scratch, tests = self._scratch, self._tests
        if not len(scratch.joined):
            scratch.open_gates = np.zeros((self.gates >> 6) + 1, dtype=np.uint64)
            scratch.test_stamps = np.zeros(tests.tests, dtype=np.int64)
            scratch.group_stamps = np.zeros(tests.groups, dtype=np.int64)
            scratch.extremes = np.zeros(tests.groups, dtype=np.float64)
            scratch.touched = np.zeros(tests.groups, dtype=np.int32)
            scratch.joined = np.zeros(tests.longest + 16, dtype=np.uint8)
        if 64 * len(scratch.marks) < patterns:
            scratch.marks = np.zeros((patterns >> 6) + 64, dtype=np.uint64)
            scratch.summary = np.zeros((len(scratch.marks) >> 6) + 1, dtype=np.uint64)
        return scratch


def _rows(keys: Int32s, patterns: npt.NDArray[np.intp], count: int) -> tuple[Int64s, Int32s]:
    """Patterns by key: those of key `k` are `rows[begin[k] : begin[k + 1]]`."""
    order = patterns[np.argsort(keys[patterns], kind="stable")]
    return np.searchsorted(keys[order], np.arange(count + 1)).astype(np.int64), order.astype(np.int32)
