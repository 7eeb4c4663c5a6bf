"""Buffers of the matching kernel, reused from batch to batch and enlarged on demand."""

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s

from ..streaming.pattern_binding_buffers import binding_table, twice_as_large
from .document_matching_kernels import Index, MatchScratch
from .publication_matching.attribute_filter_kernels import AttributeValues
from .publication_matching.publication_enumeration_kernels import K_ROWS, L_ROWS, OpenPath, Publication
from .publication_matching.satisfied_path_kernels import COUNTS, FULL_JOIN, FULL_OUT, WHY, WRITTEN


class Scratch:
    """Room for one batch at a time."""

    def __init__(self, index: Index, entries: int) -> None:
        predicates, paths = len(index.clusters.member_begins) - 1, len(index.clusters.entries)
        self.counts = np.zeros(COUNTS, dtype=np.int64)
        self.marks = np.zeros(entries + 63 >> 6, dtype=np.uint64)
        self.summary = np.zeros(len(self.marks) + 63 >> 6, dtype=np.uint64)
        self.out = np.empty(64 * len(self.marks) + 4096, dtype=np.int32)
        self._positions = np.empty(0, dtype=np.int32)
        self.buffers = MatchScratch(
            counts=self.counts,
            epochs=np.zeros(2 * predicates, dtype=np.int64),
            found=np.empty(2 * predicates, dtype=np.int32),
            hits=np.zeros(2 * paths, dtype=np.int32),
            matched=np.empty(paths, dtype=np.int32),
            path=_path(16),
            values=_values(64),
            bindings=binding_table(),
        )

    def fit(self, batch: DocumentBatch) -> None:
        """Make room for a batch's documents."""
        self.counts[WRITTEN] = 0
        depth = int(batch.depth.max(initial=0)) + 2
        if self.buffers.path.levels.shape[1] < depth:
            self.buffers = self.buffers._replace(path=_path(2 * depth))
        attributes = batch.largest().attributes
        if len(self.buffers.values.numbers) < attributes:
            self.buffers = self.buffers._replace(values=_values(2 * attributes))

    def positions(self, entries: int) -> Int32s:
        """Room for the position of each entry; old positions stay in it."""
        if not len(self._positions):
            self._positions = np.empty(max(1, entries), dtype=np.int32)
        return self._positions

    def enlarge(self) -> None:
        """Double the buffer in which the kernel ran out of room."""
        if self.counts[WHY] == FULL_OUT:
            self.out = np.concatenate([self.out, np.empty(len(self.out), dtype=np.int32)])
        elif self.counts[WHY] == FULL_JOIN:
            self.buffers = self.buffers._replace(bindings=twice_as_large(self.buffers.bindings))


def _path(depth: int) -> OpenPath:
    """Room for paths of `depth` levels."""
    elements, tags, occurrences, depths = np.empty((4, depth), dtype=np.int32)
    return OpenPath(
        levels=np.zeros((L_ROWS, depth), dtype=np.int64),
        elements=elements,
        stack=np.empty((K_ROWS, depth), dtype=np.int32),
        publication=Publication(tags, occurrences, depths),
    )


def _values(size: int) -> AttributeValues:
    """Room for the values of `size` attributes."""
    return AttributeValues(np.empty(size, dtype=np.float64), np.empty(size, dtype=np.int32))
