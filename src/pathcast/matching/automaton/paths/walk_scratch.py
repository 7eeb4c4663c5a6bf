"""Scratch: the buffers of a walk, one set for each thread."""

import threading

import numpy as np
import numpy.typing as npt

from ..updates.delta_paths_kernels import PLANES
from .states import States
from .walk_kernels import C_COUNTS, C_ENTRIES, C_GATES

# Levels of a deep document for fresh paths have no more cells than this, unless one document needs them.
LEVEL_CELLS = 1 << 22


class Scratch:
    """Buffers that fit the generation and the batch at hand; they are kept from batch to batch."""

    def __init__(self) -> None:
        self._of: States | None = None
        self.counts = np.zeros(C_COUNTS, dtype=np.int64)
        self.out = np.empty(1 << 14, dtype=np.int32)
        self.gates = np.empty(1 << 10, dtype=np.int32)
        self.states = np.empty(0, dtype=np.int32)
        self.seen = np.zeros(0, dtype=np.int64)
        self.found = np.empty(0, dtype=np.int32)
        self.recent_states, self.recent_seen, self.recent_found = self.states, self.seen, self.found
        self.marks = np.zeros(0, dtype=np.uint64)
        self.summary = np.zeros(0, dtype=np.uint64)
        self.gate_stamps = np.zeros(0, dtype=np.int64)
        self.levels = np.zeros((PLANES, 1, 1), dtype=np.uint64)

    def fit(self, states: States, count: int, entries: int, gates: int, longest: int) -> None:
        """Make room for `count` states, for entries and gates, and for documents of so many elements."""
        if self._of is not states:
            self._of = states
            self.seen = np.zeros(0, dtype=np.int64)
            self.gate_stamps = np.zeros(gates, dtype=np.int64)
        if 64 * len(self.marks) < entries:
            self.marks = np.zeros(entries + entries // 8 + 63 >> 6, dtype=np.uint64)
            self.summary = np.zeros(len(self.marks) + 63 >> 6, dtype=np.uint64)
        if len(self.seen) < count + 1:
            larger = np.zeros(2 * count + 64, dtype=np.int64)
            larger[: len(self.seen)] = self.seen
            self.seen = larger
            self.found = np.empty(len(larger), dtype=np.int32)
        if len(self.states) < longest:
            self.states = np.empty(2 * longest, dtype=np.int32)

    def fit_recent(self, count: int, longest: int) -> None:
        """Make room for `count` recent states, and for documents of so many elements."""
        if len(self.recent_seen) < count + 1:
            # Stamps count on, so that older ones are never taken for those of a document.
            self.recent_seen = np.zeros(2 * count + 64, dtype=np.int64)
            self.recent_found = np.empty(len(self.recent_seen), dtype=np.int32)
        if len(self.recent_states) < longest:
            self.recent_states = np.empty(2 * longest, dtype=np.int32)

    def fit_levels(self, depth: int, words: int) -> None:
        """Make room for fresh paths of so many words on documents of this depth."""
        _, levels, width = self.levels.shape
        if levels < depth + 1 or width < words + 1:
            levels, width = max(levels, depth + 1), max(width, words + 1)
            if levels * width > LEVEL_CELLS:
                levels, width = depth + 1, words + 1
            self.levels = np.zeros((PLANES, levels, width), dtype=np.uint64)

    def enlarge(self) -> None:
        """Double the room for entries and gates, and keep those that there are."""
        self.out = np.resize(self.out, 2 * len(self.out))
        self.gates = np.resize(self.gates, 2 * len(self.gates))

    def append(self, entries: npt.NDArray[np.int32], gates: npt.NDArray[np.int32]) -> None:
        """Add the entries and gates of one document to those of the documents before it."""
        written, gated = int(self.counts[C_ENTRIES]), int(self.counts[C_GATES])
        while written + len(entries) > len(self.out) or gated + len(gates) > len(self.gates):
            self.enlarge()
        self.out[written : written + len(entries)] = entries
        self.gates[gated : gated + len(gates)] = gates
        self.counts[C_ENTRIES] += len(entries)
        self.counts[C_GATES] += len(gates)


class Scratches(threading.local):
    """`mine`: the buffers of the thread that asks."""

    def __init__(self) -> None:
        self.mine = Scratch()
