"""Expansion: from the patterns that match to the ids and subscribers that get told.

The ids behind each pattern lie together in one array (compressed rows), built once per version of the subscriptions. A
thousand equal subscriptions cost the engine one entry; their ids are written only if somebody asks for ids.

Cost: building sorts the subscriptions once, 0.1 µs each; expanding writes what it returns and sorts it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..store.texts import Texts

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """Ids and subscribers behind each pattern entry: row `e` is `begin[e] : begin[e + 1]`."""

    begin: Int64s
    ids: Int32s
    owners: Int32s
    names: Texts

    @classmethod
    def build(cls, ids: Int32s, entries: Int32s, owners: Int32s, entry_count: int, names: Texts) -> "Expansion":
        """From the subscriptions' columns; rows with entry -1 are gone."""
        order = np.lexsort((ids, entries))
        order = order[np.searchsorted(entries[order], 0) :]
        counts = np.bincount(entries[order], minlength=entry_count)
        begin = np.zeros(entry_count + 1, dtype=np.int64)
        np.cumsum(counts, out=begin[1:])
        return cls(begin, ids[order], owners[order], names)

    def _rows(self, entries: Int32s) -> Int64s:
        """The places in `ids` and `owners` of all rows of these entries."""
        starts = self.begin[entries]
        counts = self.begin[entries + 1] - starts
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        rows: Int64s = np.arange(total, dtype=np.int64) + np.repeat(starts - ends + counts, counts)
        return rows

    def count(self, entries: Int32s) -> int:
        """How many subscriptions stand behind these entries."""
        return int((self.begin[entries + 1] - self.begin[entries]).sum())

    def ids_of(self, entries: Int32s) -> Int32s:
        """Their ids, ascending, read-only."""
        ids = np.sort(self.ids[self._rows(entries)])
        ids.flags.writeable = False
        return ids

    def subscribers_of(self, entries: Int32s) -> list[str]:
        """The names of their subscribers, each once, sorted."""
        owners = np.unique(self.owners[self._rows(entries)])
        return sorted(self.names[owner] for owner in owners[owners >= 0].tolist())
