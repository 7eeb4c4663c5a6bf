"""Buffers of a run, enlarged on demand; one set per engine, so that only one runs at a time."""

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s

from ..streaming.pattern_binding_buffers import binding_table, twice_as_large
from ..streaming.streaming_engine_frame import Arrays, EventScratch
from .document_matching_kernels import S_DEEP, V_ROWS, ActiveStates, RunScratch
from .match_output_kernels import FEW_ACTIVE, FEW_BINDINGS, FEW_PENDING, STATE_SIZE
from .nested_path_join_kernels import JoinScratch
from .postponed_selection_kernels import StepPlaces


class Scratch(EventScratch):
    """The buffers of a run; `fit` makes them large enough for a network and a batch."""

    def __init__(self) -> None:
        super().__init__(STATE_SIZE)
        bindings = binding_table()
        stamps = np.zeros(0, dtype=np.int64)
        self.buffers = RunScratch(
            active=ActiveStates(_int32s(1 << 12), _int32s(V_ROWS, 0), stamps),
            places=StepPlaces(_int32s(2, 0), _int32s(2, 0)),
            joins=JoinScratch(stamps, bindings, _int32s(2, len(bindings.slots))),
            pending=_int32s(2, 1 << 8),
        )

    def _fit_batch(self, batch: DocumentBatch) -> None:
        deepest = int(batch.depth.max(initial=0)) + 2
        active = self.buffers.active
        if active.levels.shape[1] < deepest:
            size = 2 * deepest
            self.buffers = self.buffers._replace(
                active=active._replace(levels=_int32s(V_ROWS, size)),
                places=StepPlaces(_int32s(2, size), _int32s(2, size)),
            )

    def _fit_tables(self, tables: Arrays) -> None:
        deep = int(np.count_nonzero(tables["states"][:, S_DEEP] >= 0))
        active, joins = self.buffers.active, self.buffers.joins
        self.buffers = self.buffers._replace(
            active=active._replace(deep_stamps=np.zeros(deep, dtype=np.int64)),
            joins=joins._replace(stamps=np.zeros(len(tables["join_entry"]), dtype=np.int64)),
        )

    def grow(self, why: int) -> None:
        super().grow(why)
        active, _, joins, pending = self.buffers
        if why == FEW_ACTIVE:
            self.buffers = self.buffers._replace(active=active._replace(states=_int32s(2 * len(active.states))))
        elif why == FEW_PENDING:
            self.buffers = self.buffers._replace(pending=_int32s(2, 2 * pending.shape[1]))
        elif why == FEW_BINDINGS:
            bindings = twice_as_large(joins.bindings)
            joins = joins._replace(bindings=bindings, waiting=_int32s(2, len(bindings.slots)))
            self.buffers = self.buffers._replace(joins=joins)


def _int32s(*shape: int) -> Int32s:
    return np.zeros(shape, dtype=np.int32)
