"""A prepared join of states and values: the kernel's arguments for single documents (`prepared_walk.py`).

Invariant: a call that returns True has done what `Joins.match` does (`state_value_join.py`). After one that returns
False everything starts from the beginning.
"""

import numpy as np

from pathcast.documents import BatchMaxima, DocumentBatch
from pathcast.kernels import Int32s

from ...engine_contract import Entries
from ..values.value_test_table_kernels import KINDS
from .satisfied_value_tests_kernels import J_LOOKED
from .state_value_join import ElementStates, JoinedEntries, Joins
from .state_value_join_kernels import O_CALLED, O_ENTRIES, O_ROWS, IndexedPatterns, JoinedRoom, join_documents


class PreparedJoin:
    """A join of states and values, for patterns of one or of two indexes."""

    def __init__(
        self,
        joins: Joins,
        mine: ElementStates,
        entries: int,
        patterns: int,
        names: int,
        beside: tuple[Joins, ElementStates] | None,
    ) -> None:
        other, states = beside or (joins, mine)
        self._joins, self._joins_beside, self._has_delta = joins, other, beside is not None
        self._regions, self._regions_beside = joins.regions_of(mine.states), other.regions_of(states.states)
        self._base = IndexedPatterns(mine.of, self._regions.patterns)
        self._delta = IndexedPatterns(states.of, self._regions_beside.patterns)
        # The later table has all tests of the earlier one, with the same numbers.
        self._tests = max(joins.tests, other.tests, key=lambda tests: tests.table.size)
        known = max(len(index.patterns.regions.spans) for index in (self._base, self._delta))
        scratch = joins.scratch
        scratch.fit_text(self._tests.filter.longest)
        scratch.fit(self._tests, known, 1, 1, entries, patterns, names)
        self._scratch, self._room = scratch, scratch.room
        self._counts = self._room.counts.data
        # A document may have up to this many elements, and values.
        self._elements = min(len(self._room.passed.heads), len(self._room.chains.named))
        self._values = len(self._room.passed.links) // KINDS
        self._found = JoinedRoom(np.zeros((O_ROWS, 2), dtype=np.int64), np.zeros(1, dtype=np.bool_))
        self._ends, self._unknown = self._found.offsets.data, self._found.unknown.data

    @classmethod
    def of(
        cls,
        joins: Joins,
        mine: ElementStates,
        entries: int,
        patterns: int,
        names: int,
        beside: tuple[Joins, ElementStates] | None = None,
    ) -> "PreparedJoin | None":
        """The same call as that of `Joins.match`, by this thread; None if no pattern is joined."""
        if beside is not None and not len(beside[0]):
            beside = None
        if beside is not None and not len(joins):
            return cls.of(*beside, entries, patterns, names)
        return cls(joins, mine, entries, patterns, names, beside) if len(joins) else None

    def match(self, batch: DocumentBatch, translation: Int32s, largest: BatchMaxima) -> bool:
        """Join the batch's only document."""
        elements, attributes, texts, _ = largest
        base, delta, room, tests = self._base, self._delta, self._room, self._tests
        regions, regions_beside, scratch = self._regions, self._regions_beside, self._scratch
        if (
            elements > self._elements
            or 2 * elements + attributes + texts > self._values
            or self._joins.regions is not regions
            or regions.patterns is not base.patterns
            or (self._has_delta and self._joins_beside.regions is not regions_beside)
            or regions_beside.patterns is not delta.patterns
            or scratch.room is not room
            or scratch.tests is not tests
        ):
            return False
        self._counts[J_LOOKED] = 0
        found, has_delta = self._found, self._has_delta
        return bool(
            join_documents(batch.elements, batch.values, translation, tests, base, delta, has_delta, room, found, 0)
        )

    @property
    def entries(self) -> Entries:
        """The entries that match, in a buffer of the thread."""
        return self._room.out[: self._ends[O_ENTRIES, 1]]

    @property
    def looked_at(self) -> int:
        """How many patterns were tried."""
        return self._counts[J_LOOKED]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to the verifier."""
        return not self._unknown[0] and not self._ends[O_CALLED, 1]

    def joined(self) -> JoinedEntries:
        """What `Joins.match` returns."""
        offsets, called = self._found.offsets, self._room.called_out[: self._ends[O_CALLED, 1]]
        return JoinedEntries(
            offsets[O_ENTRIES], self.entries, offsets[O_CALLED], called, self._found.unknown, self.looked_at
        )


def nothing_joined() -> JoinedEntries:
    """What `Joins.match` returns for a single document if no pattern is joined."""
    none, ends = np.zeros(0, dtype=np.int32), np.zeros(2, dtype=np.int64)
    return JoinedEntries(ends, none, ends, none, np.zeros(1, dtype=np.bool_), 0)
