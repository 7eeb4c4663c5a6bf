"""Buffers of a run, grown when it finds no room; one set an engine, so that one run is under way at a time."""

import numpy as np

from ...documents import DocumentBatch
from ..selections import text_room
from ..streaming import Arrays, EventScratch, Int32s, Int64s
from .run_kernels import FEW_ACTIVE, FEW_LOG, FEW_POOL, S_DEEP, STATE_SIZE


class Scratch(EventScratch):
    """What a run writes; `fit` makes it large enough for a network and a batch."""

    def __init__(self) -> None:
        super().__init__(STATE_SIZE)
        self.serial: Int64s = np.zeros(1, dtype=np.int64)
        self.active: Int32s = np.zeros(1 << 12, dtype=np.int32)
        self.pool: Int32s = np.zeros(1 << 10, dtype=np.int32)
        self.pending: Int32s = np.zeros((2, 1 << 8), dtype=np.int32)
        self.joined = np.zeros(0, dtype=np.uint8)
        self._records = 1 << 10
        self.levels: Int32s = np.zeros((4, 0), dtype=np.int32)
        self.element_marks: Int64s = np.zeros((2, 0), dtype=np.int64)

    def _fit_batch(self, tables: Arrays, batch: DocumentBatch) -> None:
        deepest = int(batch.depth.max(initial=0)) + 2
        if self.levels.shape[1] < deepest:
            self.levels = np.zeros((4, 2 * deepest), dtype=np.int32)
            self.places = np.zeros((2, 2 * deepest), dtype=np.int32)
            self.times = np.zeros((2, 2 * deepest), dtype=np.int32)
        longest = int(np.diff(batch.offsets).max(initial=0))
        if len(tables["path_join"]) and self.element_marks.shape[1] < longest:
            self.element_marks = np.zeros((2, 2 * longest), dtype=np.int64)
        if len(tables["selects"]) and len(self.joined) < (room := text_room(batch.data_offsets, batch.arena)):
            self.joined = np.zeros(2 * room, dtype=np.uint8)

    def _fit_tables(self, tables: Arrays) -> None:
        paths, joins = len(tables["path_join"]), len(tables["join_entry"])
        largest = int(np.diff(tables["join_begin"]).max(initial=1))
        self.deep_stamps = np.zeros(int(np.count_nonzero(tables["states"][:, S_DEEP] >= 0)), dtype=np.int64)
        self._records = max(self._records, paths)
        self.log = np.zeros((3, self._records), dtype=np.int32)
        self.path_stamps = np.zeros(paths, dtype=np.int64)
        self.join_counts = np.zeros((2, joins), dtype=np.int32)
        self.join_stamps = np.zeros(joins, dtype=np.int64)
        self.ready = np.zeros(joins, dtype=np.int32)
        self.node_lists = np.zeros((3, largest), dtype=np.int32)

    def grow(self, why: int) -> None:
        super().grow(why)
        if why == FEW_ACTIVE:
            self.active = np.zeros(2 * len(self.active), dtype=np.int32)
        elif why == FEW_POOL:
            self.pool = np.zeros(2 * len(self.pool), dtype=np.int32)
        elif why == FEW_LOG:
            self._records *= 2
            self.log = np.zeros((3, self._records), dtype=np.int32)
            self.pending = np.zeros((2, 2 * self.pending.shape[1]), dtype=np.int32)
