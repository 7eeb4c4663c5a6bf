"""Buffers of a run, grown when it finds no room; one set an engine, so that one run is under way at a time."""

import numpy as np
import numpy.typing as npt

from ...documents import DocumentBatch
from ..contract import Mask
from ..selections import text_room
from .network import Arrays
from .run_kernels import FEW_ACTIVE, FEW_GATES, FEW_LOG, FEW_OUT, FEW_POOL, S_DEEP, STATE_SIZE

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


def packed(mask: Mask, size: int) -> npt.NDArray[np.uint64]:
    """A mask as marks: one bit an entry."""
    words = np.zeros(8 * (size + 63 >> 6), dtype=np.uint8)
    bits = np.packbits(mask[:size], bitorder="little")
    words[: len(bits)] = bits
    return words.view("<u8").astype(np.uint64)


class Scratch:
    """What a run writes; `fit` makes it large enough for a network and a batch."""

    def __init__(self) -> None:
        self.state: Int64s = np.zeros(STATE_SIZE, dtype=np.int64)
        self.serial: Int64s = np.zeros(1, dtype=np.int64)
        self.active: Int32s = np.zeros(1 << 12, dtype=np.int32)
        self.out: Int32s = np.zeros(1 << 12, dtype=np.int32)
        self.out_times: Int32s = np.zeros(0, dtype=np.int32)
        self.gates: Int32s = np.zeros(1 << 8, dtype=np.int32)
        self.pool: Int32s = np.zeros(1 << 10, dtype=np.int32)
        self.pending: Int32s = np.zeros((2, 1 << 8), dtype=np.int32)
        self.skips = np.zeros(0, dtype=np.uint64)
        self.link_stamps: Int64s = np.zeros(0, dtype=np.int64)
        self.joined = np.zeros(0, dtype=np.uint8)
        self._records = 1 << 10
        self._of: Arrays | None = None
        self.levels: Int32s = np.zeros((4, 0), dtype=np.int32)
        self.element_marks: Int64s = np.zeros((2, 0), dtype=np.int64)

    def forget(self) -> None:
        """The network has changed."""
        self._of = None

    def fit(self, network: Arrays, batch: DocumentBatch, entries: int) -> None:
        """Make room for this network and for the documents of this batch."""
        if self._of is not network:
            self._of = network
            self._fit_network(network, entries)
        deepest = int(batch.depth.max(initial=0)) + 2
        if self.levels.shape[1] < deepest:
            self.levels = np.zeros((4, 2 * deepest), dtype=np.int32)
            self.places = np.zeros((2, 2 * deepest), dtype=np.int32)
            self.times = np.zeros((2, 2 * deepest), dtype=np.int32)
        longest = int(np.diff(batch.offsets).max(initial=0))
        if len(network["path_join"]) and self.element_marks.shape[1] < longest:
            self.element_marks = np.zeros((2, 2 * longest), dtype=np.int64)
        if len(network["selects"]) and len(self.joined) < (room := text_room(batch.data_offsets, batch.arena)):
            self.joined = np.zeros(2 * room, dtype=np.uint8)

    def _fit_network(self, network: Arrays, entries: int) -> None:
        paths, joins = len(network["path_join"]), len(network["join_entry"])
        largest = int(np.diff(network["join_begin"]).max(initial=1))
        self.deep_stamps = np.zeros(int(np.count_nonzero(network["states"][:, S_DEEP] >= 0)), dtype=np.int64)
        self.marks = np.zeros(entries + 63 >> 6, dtype=np.uint64)
        self.summary = np.zeros(len(self.marks) + 63 >> 6, dtype=np.uint64)
        self._records = max(self._records, paths)
        self.log = np.zeros((3, self._records), dtype=np.int32)
        self.path_stamps = np.zeros(paths, dtype=np.int64)
        self.join_counts = np.zeros((2, joins), dtype=np.int32)
        self.join_stamps = np.zeros(joins, dtype=np.int64)
        self.ready = np.zeros(joins, dtype=np.int32)
        self.node_lists = np.zeros((3, largest), dtype=np.int32)
        self.gate_stamps = np.zeros(len(network["delegated"]), dtype=np.int64)

    def fit_stream(self, entries: int, link: Int32s | None) -> None:
        """Make room for a stream: it writes every entry once."""
        if len(self.out) < entries + 8:
            self.out = np.zeros(entries + 8, dtype=np.int32)
        if len(self.out_times) < entries + 8:
            self.out_times = np.zeros(entries + 8, dtype=np.int32)
        links = 0 if link is None else int(link.max(initial=-1)) + 1
        if len(self.link_stamps) < links:
            self.link_stamps = np.zeros(links, dtype=np.int64)

    def grow(self, why: int) -> None:
        """Double what was too small; what has been written stays."""
        if why == FEW_ACTIVE:
            self.active = np.zeros(2 * len(self.active), dtype=np.int32)
        elif why == FEW_OUT:
            self.out = np.resize(self.out, 2 * len(self.out))
        elif why == FEW_GATES:
            self.gates = np.resize(self.gates, 2 * len(self.gates))
        elif why == FEW_POOL:
            self.pool = np.zeros(2 * len(self.pool), dtype=np.int32)
        elif why == FEW_LOG:
            self._records *= 2
            self.log = np.zeros((3, self._records), dtype=np.int32)
            self.pending = np.zeros((2, 2 * self.pending.shape[1]), dtype=np.int32)
