"""Scratch: the buffers of a walk, one set for each thread."""

import threading

import numpy as np

from pathcast.kernels import Int32s, Int64s, UInt64s

from ..updates.delta_paths_kernels import PLANES
from .states import States
from .walk_kernels import C_COUNTS, C_ENTRIES, C_GATES, Visited, WalkScratch

# Levels of a deep document for fresh paths have no more cells than this, unless one document needs them.
LEVEL_CELLS = 1 << 22


class Scratch:
    """Buffers that fit the generation and the batch at hand; they are kept from batch to batch."""

    def __init__(self) -> None:
        self._of: States | None = None
        nothing = Visited(_int32s(0), _int64s(0), _int32s(0))
        self.buffers = WalkScratch(
            visited=nothing,
            recent=nothing,
            marks=_uint64s(0),
            summary=_uint64s(0),
            gate_stamps=_int64s(0),
            levels=_uint64s(PLANES, 1, 1),
            counts=_int64s(C_COUNTS),
            entries=_int32s(1 << 14),
            gates=_int32s(1 << 10),
        )

    def fit(self, states: States, count: int, entries: int, gates: int, longest: int) -> None:
        """Make room for `count` states, for entries and gates, and for documents of so many elements."""
        if self._of is not states:
            self._of = states
            visited = self.buffers.visited._replace(stamps=_int64s(0))
            self.buffers = self.buffers._replace(visited=visited, gate_stamps=_int64s(gates))
        if 64 * len(self.buffers.marks) < entries:
            marks = _uint64s(entries + entries // 8 + 63 >> 6)
            self.buffers = self.buffers._replace(marks=marks, summary=_uint64s(len(marks) + 63 >> 6))
        visited = self.buffers.visited
        if len(visited.stamps) < count + 1 or len(visited.states) < longest:
            self.buffers = self.buffers._replace(visited=_fitted(visited, count, longest))

    def fit_recent(self, count: int, longest: int) -> None:
        """Make room for `count` recent states, and for documents of so many elements."""
        recent = self.buffers.recent
        if len(recent.stamps) < count + 1 or len(recent.states) < longest:
            self.buffers = self.buffers._replace(recent=_fitted(recent, count, longest))

    def fit_levels(self, depth: int, words: int) -> None:
        """Make room for fresh paths of so many words on documents of this depth."""
        _, levels, width = self.buffers.levels.shape
        if levels < depth + 1 or width < words + 1:
            levels, width = max(levels, depth + 1), max(width, words + 1)
            if levels * width > LEVEL_CELLS:
                levels, width = depth + 1, words + 1
            self.buffers = self.buffers._replace(levels=_uint64s(PLANES, levels, width))

    def enlarge(self) -> None:
        """Double the room for entries and gates, and keep those that there are."""
        entries, gates = self.buffers.entries, self.buffers.gates
        entries, gates = np.resize(entries, 2 * len(entries)), np.resize(gates, 2 * len(gates))
        self.buffers = self.buffers._replace(entries=entries, gates=gates)

    def append(self, entries: Int32s, gates: Int32s) -> None:
        """Add the entries and gates of one document to those of the documents before it."""
        counts = self.buffers.counts
        written, gated = int(counts[C_ENTRIES]), int(counts[C_GATES])
        while written + len(entries) > len(self.buffers.entries) or gated + len(gates) > len(self.buffers.gates):
            self.enlarge()
        self.buffers.entries[written : written + len(entries)] = entries
        self.buffers.gates[gated : gated + len(gates)] = gates
        counts[C_ENTRIES] += len(entries)
        counts[C_GATES] += len(gates)


def _fitted(visited: Visited, count: int, longest: int) -> Visited:
    """Room for `count` states and for documents of so many elements; stamps are kept."""
    states, stamps, found = visited
    if len(stamps) < count + 1:
        stamps = _int64s(2 * count + 64)
        stamps[: len(visited.stamps)] = visited.stamps
        found = _int32s(len(stamps))
    return Visited(_int32s(2 * longest) if len(states) < longest else states, stamps, found)


def _int32s(*shape: int) -> Int32s:
    return np.zeros(shape, dtype=np.int32)


def _int64s(*shape: int) -> Int64s:
    return np.zeros(shape, dtype=np.int64)


def _uint64s(*shape: int) -> UInt64s:
    return np.zeros(shape, dtype=np.uint64)


class Scratches(threading.local):
    """`mine`: the buffers of the thread that asks."""

    def __init__(self) -> None:
        self.mine = Scratch()
