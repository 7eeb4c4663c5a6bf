"""Buffers of the matching kernel, kept from batch to batch and enlarged when a batch needs more."""

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import AnyArray, Int32s

from ..streaming.pattern_bindings import Bindings
from .publication_kernels import K_ROWS, L_ROWS
from .subscription_kernels import COUNTS, FULL_JOIN, FULL_OUT, WHY, WRITTEN
from .tables import Arrays


class Scratch:
    """Room for one batch at a time."""

    def __init__(self, index: Arrays, entries: int) -> None:
        predicates, paths = len(index["member_begin"]) - 1, len(index["path_entry"])
        self.counts = np.zeros(COUNTS, dtype=np.int64)
        self.truth = np.zeros(2 * predicates, dtype=np.int64)
        self.found = np.empty(2 * predicates, dtype=np.int32)
        self.hits = np.zeros(2 * paths, dtype=np.int32)
        self.matched = np.empty(paths, dtype=np.int32)
        self.marks = np.zeros(entries + 63 >> 6, dtype=np.uint64)
        self.summary = np.zeros(len(self.marks) + 63 >> 6, dtype=np.uint64)
        self.bindings = Bindings()
        self.out = np.empty(64 * len(self.marks) + 4096, dtype=np.int32)
        self._positions = np.empty(0, dtype=np.int32)
        self._depth(16)
        self._attributes(64)

    def _depth(self, depth: int) -> None:
        self.levels = np.zeros((L_ROWS, depth), dtype=np.int64)
        self.kept = np.empty((K_ROWS, depth), dtype=np.int32)
        self.kept_tag, self.kept_occurrence, self.kept_depth, self.path = np.empty((4, depth), dtype=np.int32)

    def _attributes(self, size: int) -> None:
        self.numbers = np.empty(size, dtype=np.float64)
        self.texts = np.empty(size, dtype=np.int32)

    def fit(self, batch: DocumentBatch) -> None:
        """Make room for a batch's documents."""
        self.counts[WRITTEN] = 0
        depth = int(batch.depth.max(initial=0)) + 2
        if self.levels.shape[1] < depth:
            self._depth(2 * depth)
        attributes = batch.largest().attributes
        if len(self.numbers) < attributes:
            self._attributes(2 * attributes)

    def positions(self, entries: int) -> Int32s:
        """Room for the position of each entry, with whatever was there."""
        if not len(self._positions):
            self._positions = np.empty(max(1, entries), dtype=np.int32)
        return self._positions

    def enlarge(self) -> None:
        """Double what the kernel came back for."""
        if self.counts[WHY] == FULL_OUT:
            self.out = np.concatenate([self.out, np.empty(len(self.out), dtype=np.int32)])
        elif self.counts[WHY] == FULL_JOIN:
            self.bindings.double()

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        """The buffers, in the kernel's order."""
        return (
            self.counts, self.truth, self.found, self.hits, self.matched, self.levels, self.kept,
            self.kept_tag, self.kept_occurrence, self.kept_depth, self.path, self.numbers, self.texts,
            *self.bindings.arrays, self.marks, self.summary,
        )  # fmt: skip
