"""Names of batches as numbers of a table of our own, which takes up whatever names there are.

Batches that one reader made share a table of names and have, besides, names of their own: what is shared is worked out
once, and names of their own once for as long as they stay the same.

Cost: nothing for a batch whose names are known; half a microsecond for each name that is new.
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
        """For each name of a batch its number."""
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
