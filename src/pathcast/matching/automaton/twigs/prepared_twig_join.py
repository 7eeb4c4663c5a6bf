"""A prepared join of twigs: the kernel's arguments for single documents (`prepared_walk.py`).

Invariant: a call that returns True has done what `TwigJoins.match` does (`twig_join.py`). After one that returns False
everything starts from the beginning.
"""

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s

from ...engine_contract import Entries
from ..state_test_joins.state_value_join import ElementStates
from .twig_join import TwigJoins
from .twig_join_kernels import X_LOOKED, X_STAMP, join_twigs


class PreparedTwigJoin:
    """A join of twigs' branches, for the twigs of one index."""

    def __init__(self, joins: TwigJoins, of: ElementStates, names: int) -> None:
        self._automaton, self._of, self._rows = of.states.automaton, of.of, joins.rows
        scratch = joins.scratch
        scratch.fit(of.states, joins.rows, 1, names)
        self._scratch, self._buffers, self._out = scratch, scratch.buffers, scratch.out
        self._counts, self._elements = self._buffers.counts.data, self._buffers.marks.shape[1]
        self.offsets, self.unknown = np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.bool_)
        self._ends, self._unknown = self.offsets.data, self.unknown.data

    def match(self, batch: DocumentBatch, translation: Int32s, elements: int) -> bool:
        """Join the batch's only document, which has this number of elements, after a walk through the same states."""
        scratch, buffers, out, counts = self._scratch, self._buffers, self._out, self._counts
        if (
            elements > self._elements
            or scratch.buffers is not buffers
            or scratch.out is not out
            or counts[X_STAMP] > scratch.last_stamp
        ):
            return False
        counts[X_LOOKED] = 0
        return bool(
            join_twigs(
                batch.elements,
                translation,
                self._of,
                self._automaton,
                self._rows,
                buffers,
                self.unknown,
                self.offsets,
                out,
                0,
            )
        )

    @property
    def entries(self) -> Entries:
        """The entries that match, in a buffer of the thread."""
        return self._out[: self._ends[1]]

    @property
    def looked_at(self) -> int:
        """How many twigs were tried."""
        return self._counts[X_LOOKED]

    @property
    def is_complete(self) -> bool:
        """Whether the document is not left to the verifier."""
        return not self._unknown[0]
