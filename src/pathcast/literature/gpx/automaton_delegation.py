"""Delegation: patterns that predicates cannot express, and documents with too many publications, go to `automaton`.

Its verifier tries delegated patterns on every document; the whole engine matches a delegated document, and is built
when the first one arrives. Both are counted.
"""

import numpy as np

from pathcast.documents import DocumentBatch, Limits
from pathcast.kernels import Int32s
from pathcast.matching import Entries, Mask, Offsets
from pathcast.matching.automaton import AutomatonEngine
from pathcast.matching.automaton.verify import Verifier
from pathcast.matching.table import PatternTable
from pathcast.store import offsets_of


class Delegate:
    """Answers for some patterns on all documents, and for all patterns on some documents."""

    def __init__(self, table: PatternTable, entries: int, delegated: Int32s) -> None:
        self._table = table
        self._entries = entries
        self.delegated = delegated
        self._verifier = Verifier(table, delegated.tolist()) if len(delegated) else None
        self._engine: AutomatonEngine | None = None
        self.documents = 0
        self.limits = Limits()

    def is_needed(self, over: Mask) -> bool:
        """Whether there is anything to add, given the documents `over` the limit."""
        return self._verifier is not None or bool(over.any())

    def answers(self, batch: DocumentBatch, over: Mask, skip: Mask | None) -> tuple[Offsets, Entries]:
        """The delegated patterns that match each document; for documents in `over`, all patterns that match."""
        asked = np.arange(len(self.delegated), dtype=np.int32)
        if skip is not None:
            asked = asked[~skip[self.delegated]]
        tried = ~over & (np.diff(batch.offsets) > 0)
        counts = np.where(tried, len(asked), 0)
        offsets = offsets_of(counts)
        candidates = np.tile(asked, int(np.count_nonzero(tried)))
        found: list[Entries] = [np.empty(0, dtype=np.int32)] * len(batch)
        if self._verifier is not None:
            holding = self._verifier.verify(batch, offsets, candidates)
            for index in np.flatnonzero(tried).tolist():
                mine = slice(*offsets[index : index + 2].tolist())
                found[index] = self.delegated[candidates[mine][holding[mine]]]
        for index in np.flatnonzero(over).tolist():
            found[index] = self._whole(batch, index, skip)
        sizes = [len(entries) for entries in found]
        ends = offsets_of(sizes)
        return ends, np.concatenate([np.empty(0, dtype=np.int32), *found]).astype(np.int32)

    def _whole(self, batch: DocumentBatch, index: int, skip: Mask | None) -> Entries:
        """All entries that match one document."""
        if self._engine is None:
            self._engine = AutomatonEngine.build(self._table)
        self.documents += 1
        self._engine.limits = self.limits
        alone = batch[index].alone()
        _, entries = self._engine.match_batch(alone)
        if 0 in alone.errors:
            batch.errors[index] = alone.errors[0]
        entries = entries[entries < self._entries]  # the table may have grown since
        return entries if skip is None else entries[~skip[entries]]
