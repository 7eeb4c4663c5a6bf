"""Buffers of a run, grown when it finds no room; one set an engine, so that one run is under way at a time."""

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s

from ..streaming.pattern_bindings import binding_table, twice_as_large
from ..streaming.streaming_engine import Arrays, EventScratch
from ..streaming.value_tests import text_room
from .result_kernels import FEW_ACTIVE, FEW_BINDINGS, FEW_PENDING, STATE_SIZE
from .run_kernels import S_DEEP, V_ROWS


class Scratch(EventScratch):
    """What a run writes; `fit` makes it large enough for a network and a batch."""

    def __init__(self) -> None:
        super().__init__(STATE_SIZE)
        self.active: Int32s = np.zeros(1 << 12, dtype=np.int32)
        self.pending: Int32s = np.zeros((2, 1 << 8), dtype=np.int32)
        self.joined = np.zeros(0, dtype=np.uint8)
        self.bindings = binding_table()
        self.waiting: Int32s = np.zeros((2, len(self.bindings.slots)), dtype=np.int32)
        self.levels: Int32s = np.zeros((V_ROWS, 0), dtype=np.int32)

    def _fit_batch(self, tables: Arrays, batch: DocumentBatch) -> None:
        deepest = int(batch.depth.max(initial=0)) + 2
        if self.levels.shape[1] < deepest:
            self.levels = np.zeros((V_ROWS, 2 * deepest), dtype=np.int32)
            self.places, self.times = np.zeros((2, 2, 2 * deepest), dtype=np.int32)
        if len(tables["selects"]) and len(self.joined) < (room := text_room(batch.data_offsets, batch.arena)):
            self.joined = np.zeros(2 * room, dtype=np.uint8)

    def _fit_tables(self, tables: Arrays) -> None:
        self.deep_stamps = np.zeros(int(np.count_nonzero(tables["states"][:, S_DEEP] >= 0)), dtype=np.int64)
        self.join_stamps = np.zeros(len(tables["join_entry"]), dtype=np.int64)

    def grow(self, why: int) -> None:
        super().grow(why)
        if why == FEW_ACTIVE:
            self.active = np.zeros(2 * len(self.active), dtype=np.int32)
        elif why == FEW_PENDING:
            self.pending = np.zeros((2, 2 * self.pending.shape[1]), dtype=np.int32)
        elif why == FEW_BINDINGS:
            self.bindings = twice_as_large(self.bindings)
            self.waiting = np.zeros((2, len(self.bindings.slots)), dtype=np.int32)
