"""Name translation: names of batches as numbers of one table, which grows as needed.

Batches of one reader share a table of names and have additional names of their own: the shared names are translated
once, and the additional names once for as long as they stay the same.

Cost: nothing for a batch whose names are known; half a microsecond per new name.
"""

from collections.abc import Sequence

import numpy as np

from pathcast.documents import DocumentBatch, Names
from pathcast.kernels import Int32s
from pathcast.store import Texts


class Naming:
    """Numbers of names in one table."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: Names | None = None
        self._numbers: Int32s = np.empty(0, np.int32)
        self._own: tuple[int, Sequence[str], Int32s] = (-1, (), self._numbers)

    def of(self, batch: DocumentBatch) -> Int32s:
        """The number of each name of a batch."""
        add = self._names.add
        if self._known is not batch.known:
            self._known, self._numbers = batch.known, np.empty(0, np.int32)
            self._own = (-1, (), self._numbers)
        known = self._numbers
        if len(known) < batch.known_count:
            more = [add(batch.known[number]) for number in range(len(known), batch.known_count)]
            self._numbers = known = np.concatenate([known, np.array(more, np.int32)])
        own = batch.own_names
        if not len(own):
            return known
        count, before, numbers = self._own
        if count != batch.known_count or not _same_names(before, own):
            numbers = np.concatenate([known[: batch.known_count], np.array([add(name) for name in own], np.int32)])
            self._own = (batch.known_count, own, numbers)
        return numbers


def _same_names(some: Sequence[str], others: Sequence[str]) -> bool:
    if isinstance(some, Texts) and isinstance(others, Texts):
        return some.lies_as(others)
    return some is others or (isinstance(some, list) and isinstance(others, list) and some == others)
