"""Buffers of a run: stacks of live rows, occurrences and partial matchings, grown when a document finds no room."""

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import AnyArray, Int32s, Int64s

from ..streaming.streaming_engine import Arrays, EventScratch
from ..streaming.value_tests import text_room
from .layout_kernels import (
    FEW_LEVELS,
    FEW_LIVE,
    FEW_OCCURRENCES,
    FEW_PARTIAL,
    FEW_READY,
    L_ROWS,
    N_LEAF_END,
    N_OPEN,
    NOWHERE,
    P_COLUMNS,
    STATE_SIZE,
    V_ROWS,
    Y_ROWS,
)


class Scratch(EventScratch):
    """What a run writes. Between documents nothing is live: what the heads of stacks say is part of the invariant."""

    def __init__(self) -> None:
        super().__init__(STATE_SIZE)
        self.levels: Int32s = np.zeros((L_ROWS, 0), dtype=np.int32)
        self.live: Int32s = np.zeros((V_ROWS, 1 << 10), dtype=np.int32)
        self.occurrences: Int32s = np.zeros((V_ROWS, 1 << 8), dtype=np.int32)
        self.partial: Int64s = np.zeros((1 << 10, P_COLUMNS), dtype=np.int64)
        self.ready: Int32s = np.zeros((Y_ROWS, 1 << 10), dtype=np.int32)
        self.joined = np.zeros(0, dtype=np.uint8)

    def _fit_tables(self, tables: Arrays) -> None:
        rows = len(tables["rows"])
        self.first: Int32s = np.full(rows, NOWHERE, dtype=np.int32)
        self.head: Int32s = np.full(rows, -1, dtype=np.int32)
        self.hits: Int32s = np.zeros(rows + 1, dtype=np.int32)
        self.wanted = np.zeros(rows, dtype=np.uint8)
        self.chosen: Int32s = np.zeros(len(tables["nodes"]), dtype=np.int32)
        self.following: Int32s = np.zeros(int(tables["nodes"][:, N_LEAF_END].max(initial=0)), dtype=np.int32)
        stacks = int(np.count_nonzero(tables["nodes"][:, N_OPEN] >= 0))
        self.occurrence_head: Int32s = np.full(stacks, -1, dtype=np.int32)
        self.partial_head: Int32s = np.full(len(tables["twigs"]), -1, dtype=np.int32)
        self.known = np.zeros(len(tables["selection_rows"]), dtype=np.int64)

    @property
    def stacks(self) -> tuple[AnyArray, ...]:
        """The stacks of a document, as the kernel takes them."""
        return (
            self.levels, self.first, self.head, self.live, self.occurrence_head, self.occurrences, self.partial_head,
            self.partial, self.hits, self.ready,
        )  # fmt: skip

    def _fit_batch(self, tables: Arrays, batch: DocumentBatch) -> None:
        deepest = int(batch.depth.max(initial=0)) + 3
        if self.levels.shape[1] < deepest:
            self.levels = np.zeros((L_ROWS, 2 * deepest), dtype=np.int32)
        if len(tables["selects"]) and len(self.joined) < (room := text_room(batch.data_offsets, batch.arena)):
            self.joined = np.zeros(2 * room, dtype=np.uint8)

    def grow(self, why: int) -> None:
        super().grow(why)
        if why == FEW_LIVE:
            self.live = np.zeros((V_ROWS, 2 * self.live.shape[1]), dtype=np.int32)
        elif why == FEW_OCCURRENCES:
            self.occurrences = np.zeros((V_ROWS, 2 * self.occurrences.shape[1]), dtype=np.int32)
        elif why == FEW_PARTIAL:
            self.partial = np.zeros((2 * len(self.partial), P_COLUMNS), dtype=np.int64)
        elif why == FEW_LEVELS:
            self.levels = np.zeros((L_ROWS, 2 * self.levels.shape[1]), dtype=np.int32)
        elif why == FEW_READY:
            self.ready = np.zeros((Y_ROWS, 2 * self.ready.shape[1]), dtype=np.int32)
