"""Buffers of a run: stacks of live rows, occurrences and partial matchings, enlarged on demand."""

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s, UInt8s

from ..streaming.streaming_engine_frame import Arrays, EventScratch
from .table_and_stack_layout_kernels import (
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
    Stacks,
)


class Scratch(EventScratch):
    """The buffers of a run. Between documents nothing is live: the heads of stacks are part of the invariant."""

    def __init__(self) -> None:
        super().__init__(STATE_SIZE)
        nothing = _int32s(0)
        self.stacks = Stacks(
            levels=_int32s(L_ROWS, 0),
            first=nothing,
            head=nothing,
            live=_int32s(V_ROWS, 1 << 10),
            occurrence_head=nothing,
            occurrences=_int32s(V_ROWS, 1 << 8),
            partial_head=nothing,
            partial=np.zeros((1 << 10, P_COLUMNS), dtype=np.int64),
            hits=nothing,
            ready=_int32s(Y_ROWS, 1 << 10),
            known=np.zeros(0, dtype=np.int64),
        )
        self.wanted_rows: UInt8s = np.zeros(0, dtype=np.uint8)

    def _fit_tables(self, tables: Arrays) -> None:
        rows, nodes = len(tables["rows"]), tables["nodes"]
        self.wanted_rows = np.zeros(rows, dtype=np.uint8)
        self.chosen: Int32s = _int32s(len(nodes))
        self.following: Int32s = _int32s(int(nodes[:, N_LEAF_END].max(initial=0)))
        self.stacks = self.stacks._replace(
            first=np.full(rows, NOWHERE, dtype=np.int32),
            head=np.full(rows, -1, dtype=np.int32),
            hits=_int32s(rows + 1),
            occurrence_head=np.full(int(np.count_nonzero(nodes[:, N_OPEN] >= 0)), -1, dtype=np.int32),
            partial_head=np.full(len(tables["twigs"]), -1, dtype=np.int32),
            known=np.zeros(len(tables["selection_rows"]), dtype=np.int64),
        )

    def _fit_batch(self, batch: DocumentBatch) -> None:
        deepest = int(batch.depth.max(initial=0)) + 3
        if self.stacks.levels.shape[1] < deepest:
            self.stacks = self.stacks._replace(levels=_int32s(L_ROWS, 2 * deepest))

    def grow(self, why: int) -> None:
        super().grow(why)
        stacks = self.stacks
        if why == FEW_LIVE:
            self.stacks = stacks._replace(live=_int32s(V_ROWS, 2 * stacks.live.shape[1]))
        elif why == FEW_OCCURRENCES:
            self.stacks = stacks._replace(occurrences=_int32s(V_ROWS, 2 * stacks.occurrences.shape[1]))
        elif why == FEW_PARTIAL:
            self.stacks = stacks._replace(partial=np.zeros((2 * len(stacks.partial), P_COLUMNS), dtype=np.int64))
        elif why == FEW_LEVELS:
            self.stacks = stacks._replace(levels=_int32s(L_ROWS, 2 * stacks.levels.shape[1]))
        elif why == FEW_READY:
            self.stacks = stacks._replace(ready=_int32s(Y_ROWS, 2 * stacks.ready.shape[1]))


def _int32s(*shape: int) -> Int32s:
    return np.zeros(shape, dtype=np.int32)
