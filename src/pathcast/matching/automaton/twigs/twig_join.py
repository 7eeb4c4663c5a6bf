"""Twigs in documents: those that match, by the branches that the states of elements have (`twig_join_kernels.py`).

Invariant: what documents read is never changed, but for counts of how often branches were there.
Cost: some nanoseconds for each branch that ends at an element, and for each twig whose rarest branch is there.
"""

import threading
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Bools, Int32s, Int64s

from ..paths.states import States
from ..values.state_value_join_kernels import DEEPEST
from .twig_join_kernels import (
    CROWDED,
    K_COLUMNS,
    K_TWIG,
    NONE,
    QUEUED,
    X_COUNTS,
    X_LOOKED,
    X_STAMP,
    X_WHY,
    join_twigs,
)
from .twig_rows import TwigRows

_LISTED = 1 << 13
_OUT = 1 << 14
# Stamps begin again before they outgrow their half of a word.
_LAST_STAMP = 1 << 30


class _Scratch(threading.local):
    """Buffers of a join; one set a thread, for one object of states."""

    def __init__(self) -> None:
        self.of: States | None = None
        self.counts = np.zeros(X_COUNTS, dtype=np.int64)
        self.known = np.zeros((0, K_COLUMNS), dtype=np.int32)
        self.listed = np.zeros((_LISTED, 2), dtype=np.int32)
        self.touched = np.zeros(0, dtype=np.int32)
        self.marks = np.zeros((2, 0), dtype=np.int64)
        self.queue = np.zeros((QUEUED, 2), dtype=np.int32)
        self.next_twig = np.zeros(2, dtype=np.int64)
        self.path, self.path_names = (np.zeros(DEEPEST + 2, dtype=np.int32) for _ in range(2))
        self.depths_of = np.zeros(0, dtype=np.uint64)
        self.last_of, self.last_stamps = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
        self.out = np.zeros(_OUT, dtype=np.int32)

    def fit(self, states: States, rows: TwigRows, elements: int, names: int) -> None:
        """Make room; stamps begin again with other states."""
        if self.of is not states or self.counts[X_STAMP] > _LAST_STAMP:
            self.of = states
            self.counts[X_STAMP] = 0
            self.known = np.zeros((len(rows.keys), K_COLUMNS), dtype=np.int32)
            self.known[:, K_TWIG] = rows.waiting
            self.touched = np.zeros(len(rows.keys) + 1, dtype=np.int32)
            self.last_of, self.last_stamps = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
        if len(self.last_of) < len(states):
            self.last_of = np.zeros(2 * len(states), dtype=np.int32)
            self.last_stamps = np.zeros(2 * len(states), dtype=np.int64)
        if len(self.depths_of) < names + 1:
            self.depths_of = np.zeros(2 * names + 1, dtype=np.uint64)
            self.path_names.fill(NONE)
        if self.marks.shape[1] < elements:
            self.marks = np.zeros((2, 2 * elements), dtype=np.int64)


class TwigsFound(NamedTuple):
    """Of a batch: each document's entries, whether it is left to the verifier, and how many twigs were looked at."""

    offsets: Int64s
    entries: Int32s
    unknown: Bools
    looked_at: int


class TwigJoins:
    """Twigs by their branches."""

    def __init__(self, rows: TwigRows) -> None:
        self.rows = rows
        self._scratch = _Scratch()

    def __len__(self) -> int:
        return len(self.rows.twigs)

    def match(
        self, batch: DocumentBatch, longest: int, translation: Int32s, states: States, of: Int32s, names: int
    ) -> TwigsFound:
        """The twigs that match; `of` has the state of each element of the batch, -1 where there is none.

        A document has at most `longest` elements, and `names` is more than all of `translation`.
        """
        count = len(batch)
        offsets = np.zeros(count + 1, dtype=np.int64)
        unknown = np.zeros(count, dtype=np.bool_)
        if not len(self):
            return TwigsFound(offsets, of[:0], unknown, 0)
        scratch, automaton = self._scratch, states.automaton
        scratch.fit(states, self.rows, longest, names)
        scratch.counts[X_LOOKED] = 0
        done = 0
        while done < count:
            done = join_twigs(
                batch.offsets, batch.name, batch.parent, batch.depth, translation, of, automaton.gates_begin,
                automaton.gates, *self.rows[:-3],
                scratch.counts, scratch.known, scratch.listed, scratch.touched, scratch.marks, scratch.queue,
                scratch.next_twig, scratch.path, scratch.path_names, scratch.depths_of, scratch.last_of,
                scratch.last_stamps,
                unknown, offsets, scratch.out, done,
            )  # fmt: skip
            if done < count and scratch.counts[X_WHY] == CROWDED:
                scratch.listed = np.zeros((2 * len(scratch.listed), 2), dtype=np.int32)
            elif done < count:
                scratch.out = np.resize(scratch.out, 2 * len(scratch.out))
        return TwigsFound(offsets, scratch.out[: offsets[-1]], unknown, int(scratch.counts[X_LOOKED]))
