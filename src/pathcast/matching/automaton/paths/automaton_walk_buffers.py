"""The buffers of a walk, one set per thread."""

import threading

import numpy as np

from pathcast.kernels import Int32s, Int64s, UInt64s

from ..updates.pending_paths_kernels import PLANES
from .automaton_walk_kernels import C_COUNTS, C_ENTRIES, C_GATES, VisitedStates, WalkScratch
from .lazy_determinisation_kernels import Automaton


class Scratch:
    """Buffers that fit the current generation and batch, reused from batch to batch."""

    def __init__(self) -> None:
        nothing = VisitedStates(_int32s(0), _int64s(0), _int32s(0), _int32s(0), _int64s(0), _int64s(0))
        self.buffers = WalkScratch(
            base=nothing._replace(gates=_int32s(1 << 10)),
            delta=nothing._replace(gates=_int32s(1 << 10)),
            marks=_uint64s(0),
            summary=_uint64s(0),
            levels=_uint64s(PLANES, 1, 1),
            counts=_int64s(C_COUNTS),
            entries=_int32s(1 << 14),
            groups=_int32s(1 << 10),
        )
        self.counts = self.buffers.counts.data

    def fit_entries(self, entries: int) -> None:
        """Make room for `entries` entries."""
        if 64 * len(self.buffers.marks) < entries:
            marks = _uint64s(entries + entries // 8 + 63 >> 6)
            self.buffers = self.buffers._replace(marks=marks, summary=_uint64s(len(marks) + 63 >> 6))

    def fit_base(self, automaton: Automaton, gates: int, longest: int) -> None:
        """Make room for the base's states and gates, and for documents of up to `longest` elements."""
        base = self.buffers.base
        fitted = _fitted(base, automaton, gates, longest)
        if fitted is not base:
            self.buffers = self.buffers._replace(base=fitted)

    def fit_delta(self, automaton: Automaton, gates: int, longest: int) -> None:
        """Make room for the delta's states and gates, and for documents of up to `longest` elements."""
        delta = self.buffers.delta
        fitted = _fitted(delta, automaton, gates, longest)
        if fitted is not delta:
            self.buffers = self.buffers._replace(delta=fitted)

    def fit_levels(self, depth: int, words: int, most: int) -> None:
        """Make room for pending paths of `words` words on documents of this depth, within `most` if that suffices."""
        _, levels, width = self.buffers.levels.shape
        if levels < depth + 1 or width < words + 1:
            levels, width = max(levels, depth + 1), max(width, words + 1)
            if levels * width > most:
                levels, width = depth + 1, words + 1
            self.buffers = self.buffers._replace(levels=_uint64s(PLANES, levels, width))

    def enlarge(self) -> None:
        """Double the room for entries, groups and gates, keeping the existing ones."""
        entries, base, delta = self.buffers.entries, self.buffers.base, self.buffers.delta
        self.buffers = self.buffers._replace(
            entries=np.resize(entries, 2 * len(entries)),
            groups=np.resize(self.buffers.groups, 2 * len(self.buffers.groups)),
            base=base._replace(gates=np.resize(base.gates, 2 * len(base.gates))),
            delta=delta._replace(gates=np.resize(delta.gates, 2 * len(delta.gates))),
        )

    def append(self, entries: Int32s, gates: Int32s) -> None:
        """Append the entries and gates of one document to those of the documents before it."""
        counts = self.buffers.counts
        written, gated = int(counts[C_ENTRIES]), int(counts[C_GATES])
        while written + len(entries) > len(self.buffers.entries) or gated + len(gates) > len(self.buffers.base.gates):
            self.enlarge()
        self.buffers.entries[written : written + len(entries)] = entries
        self.buffers.base.gates[gated : gated + len(gates)] = gates
        counts[C_ENTRIES] += len(entries)
        counts[C_GATES] += len(gates)


def _fitted(visited: VisitedStates, automaton: Automaton, gates: int, longest: int) -> VisitedStates:
    """The same with room for an automaton's states, for gates, and for documents of up to `longest` elements.

    Stamps only grow, so old stamps of other states, gates and groups count as none.
    """
    known, groups = automaton.known, len(automaton.groups.begin)
    if len(visited.stamps) <= known:
        stamps = _int64s(2 * known + 64)
        visited = visited._replace(stamps=stamps, found=_int32s(len(stamps)))
    if len(visited.states) < longest:
        visited = visited._replace(states=_int32s(2 * longest))
    if len(visited.gate_stamps) < gates:
        visited = visited._replace(gate_stamps=_int64s(gates + gates // 8))
    if len(visited.group_stamps) < groups:
        visited = visited._replace(group_stamps=_int64s(groups + groups // 8))
    return visited


def _int32s(*shape: int) -> Int32s:
    return np.zeros(shape, dtype=np.int32)


def _int64s(*shape: int) -> Int64s:
    return np.zeros(shape, dtype=np.int64)


def _uint64s(*shape: int) -> UInt64s:
    return np.zeros(shape, dtype=np.uint64)


class Scratches(threading.local):
    """`mine`: the buffers of the calling thread."""

    def __init__(self) -> None:
        self.mine = Scratch()
