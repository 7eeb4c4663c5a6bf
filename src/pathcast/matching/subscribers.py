"""Subscribers of whole batches: names as numbers in alphabetical order, written once a document.

Built from an expansion when subscribers are first asked for: for each entry the distinct subscribers behind it, by
the rank of their name. A document's subscribers are then the marked ranks of its entries, which come out distinct and
in the order of their names.
"""

import numpy as np
import numpy.typing as npt

from .expansion import Expansion
from .expansion_kernels import distinct_rows

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class SubscriberRows:
    """The distinct subscribers behind each entry, as ranks into `names`, which is sorted."""

    def __init__(self, expansion: Expansion) -> None:
        known = list(expansion.names)
        order = sorted(range(len(known)), key=known.__getitem__)
        self.names = [known[owner] for owner in order]
        rank = np.empty(len(known), dtype=np.int32)
        rank[order] = np.arange(len(known), dtype=np.int32)
        entries = np.repeat(np.arange(len(expansion.begin) - 1, dtype=np.int64), np.diff(expansion.begin))
        named = expansion.owners >= 0
        pairs = np.unique(entries[named] << 32 | rank[expansion.owners[named]])
        self.ranks: Int32s = (pairs & 0xFFFFFFFF).astype(np.int32)
        self.begin: Int64s = np.searchsorted(pairs >> 32, np.arange(len(expansion.begin))).astype(np.int64)
        self._marks = np.zeros(len(known) + 63 >> 6, dtype=np.uint64)

    def of_all(self, offsets: Int64s, entries: Int32s) -> tuple[Int64s, Int32s]:
        """The subscribers of many documents: those of document `i` are `ranks[offsets[i] : offsets[i + 1]]`, sorted."""
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        out = np.empty(1024 + 16 * len(offsets), dtype=np.int32)
        marks = self._marks.copy()
        done = 0
        while True:
            done = distinct_rows(offsets, entries, self.begin, self.ranks, marks, out_offsets, out, done)
            if done == len(offsets) - 1:
                return out_offsets, out[: out_offsets[-1]]
            larger = np.empty(2 * len(out) + 64 * len(marks), dtype=np.int32)
            larger[: out_offsets[done]] = out[: out_offsets[done]]
            out = larger
