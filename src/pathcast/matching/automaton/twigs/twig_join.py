"""Twigs in documents: finds matching twigs by the branches of the elements' states (`twig_join_kernels.py`).

Invariant: arrays that documents read never change, except for the counts of how often branches occurred.
Cost: some nanoseconds per branch that ends at an element, and per twig whose rarest branch occurs.
"""

import threading
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Bools, Int32s, Int64s

from ...tuning import Tuning
from ..paths.lazy_determinisation import States
from ..state_test_joins.unbranched_path_search_kernels import DEEPEST
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
    LastElements,
    OpenPath,
    TwigRows,
    TwigScratch,
    join_twigs,
)


class _Scratch(threading.local):
    """Buffers of a join; one set per thread, for one object of states."""

    def __init__(self, tuning: Tuning) -> None:
        self.last_stamp = tuning.last_stamp
        self.of: States | None = None
        self.buffers = TwigScratch(
            counts=np.zeros(X_COUNTS, dtype=np.int64),
            known=np.zeros((0, K_COLUMNS), dtype=np.int32),
            listed=np.zeros((tuning.listed_elements, 2), dtype=np.int32),
            touched=np.zeros(0, dtype=np.int32),
            marks=np.zeros((2, 0), dtype=np.int64),
            queue=np.zeros((QUEUED, 2), dtype=np.int32),
            next_twig=np.zeros(2, dtype=np.int64),
            path=OpenPath(
                elements=np.zeros(DEEPEST + 2, dtype=np.int32),
                names=np.zeros(DEEPEST + 2, dtype=np.int32),
                depths_of=np.zeros(0, dtype=np.uint64),
            ),
            last=_last_elements(0),
        )
        self.out = np.zeros(tuning.twigs_found, dtype=np.int32)

    def fit(self, states: States, rows: TwigRows, elements: int, names: int) -> None:
        """Make room; stamps restart with other states."""
        counts = self.buffers.counts
        if self.of is not states or counts[X_STAMP] > self.last_stamp:
            self.of = states
            counts[X_STAMP] = 0
            known = np.zeros((len(rows.keys), K_COLUMNS), dtype=np.int32)
            known[:, K_TWIG] = rows.waiting
            touched = np.zeros(len(rows.keys) + 1, dtype=np.int32)
            self.buffers = self.buffers._replace(known=known, touched=touched, last=_last_elements(0))
        if len(self.buffers.last.elements) < len(states):
            self.buffers = self.buffers._replace(last=_last_elements(2 * len(states)))
        path = self.buffers.path
        if len(path.depths_of) < names + 1:
            path.names.fill(NONE)
            path = path._replace(depths_of=np.zeros(2 * names + 1, dtype=np.uint64))
            self.buffers = self.buffers._replace(path=path)
        if self.buffers.marks.shape[1] < elements:
            self.buffers = self.buffers._replace(marks=np.zeros((2, 2 * elements), dtype=np.int64))

    def enlarge_lists(self) -> None:
        """Double the room for lists of elements; the document that needs it restarts."""
        listed = np.zeros((2 * len(self.buffers.listed), 2), dtype=np.int32)
        self.buffers = self.buffers._replace(listed=listed)


def _last_elements(states: int) -> LastElements:
    return LastElements(np.zeros(states, dtype=np.int32), np.zeros(states, dtype=np.int64))


class TwigsFound(NamedTuple):
    """For a batch: each document's entries, whether it is left to the verifier, and how many twigs were tried."""

    offsets: Int64s
    entries: Int32s
    unknown: Bools
    looked_at: int


class TwigJoins:
    """Twigs by their branches."""

    def __init__(self, rows: TwigRows, tuning: Tuning) -> None:
        self.rows = rows
        self.scratch = _Scratch(tuning)

    def __len__(self) -> int:
        return len(self.rows.twigs)

    def match(
        self, batch: DocumentBatch, longest: int, translation: Int32s, states: States, of: Int32s, names: int
    ) -> TwigsFound:
        """The twigs that match; `of` has the state of each element of the batch, -1 for none.

        A document has at most `longest` elements, and `names` is larger than every number in `translation`.
        """
        count = len(batch)
        offsets = np.zeros(count + 1, dtype=np.int64)
        unknown = np.zeros(count, dtype=np.bool_)
        if not len(self):
            return TwigsFound(offsets, of[:0], unknown, 0)
        scratch, automaton = self.scratch, states.automaton
        scratch.fit(states, self.rows, longest, names)
        counts = scratch.buffers.counts
        counts[X_LOOKED] = 0
        done = 0
        while done < count:
            done = join_twigs(
                batch.elements,
                translation,
                of,
                automaton,
                self.rows,
                scratch.buffers,
                unknown,
                offsets,
                scratch.out,
                done,
            )
            if done < count and counts[X_WHY] == CROWDED:
                scratch.enlarge_lists()
            elif done < count:
                scratch.out = np.resize(scratch.out, 2 * len(scratch.out))
        return TwigsFound(offsets, scratch.out[: offsets[-1]], unknown, int(counts[X_LOOKED]))
