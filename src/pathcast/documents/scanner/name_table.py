"""Names as the scanner looks them up: those of a table, and those of documents after them."""

from collections.abc import Sequence

import numpy as np

from pathcast.kernels import Int64s, UInt8s
from pathcast.store import Texts, offsets_of

from ..expanded_name_table import Names
from ..expanded_name_table_kernels import NameIndex, index_names

# A table has room for this many names of documents, and this many bytes of them. For a batch with more it grows, up to
# the second number; beyond that, expat reads the documents.
OWN_NAMES, MOST_NAMES = 1 << 12, 1 << 20
OWN_BYTES, MOST_BYTES = 1 << 18, 1 << 26


class NameTable:
    """The names of a table at some moment, for look-ups by the kernel, with room for the batches' own after them.

    Names of documents stay for the next batches until one does not fit: then the table is reset. So names that were
    made to collide send documents of a batch or two to the expat reader, and are then dropped. A table that has grown
    is reset with the next batch, so that no other batch pays for the names of one.
    """

    def __init__(
        self, names: Names, before: "NameTable | None" = None, most: tuple[int, int] = (MOST_NAMES, MOST_BYTES)
    ) -> None:
        """`before` is an earlier table with fewer of the same names; its content is reused.

        `most`: the names and bytes of documents up to which the table may grow.
        """
        self.known = len(names)
        self._most = most
        first = 0 if before is None else before.known
        encoded = [names[number].encode() for number in range(first, self.known)]
        edges = offsets_of([len(name) for name in encoded])
        self._encoded, self._edges = np.frombuffer(b"".join(encoded), dtype=np.uint8), edges
        if before is not None:
            self._encoded = np.concatenate([before._encoded, self._encoded])
            self._edges = np.concatenate([before._edges, before._edges[-1] + edges[1:]])
        self.renew()

    def renew(self) -> None:
        """Drop the names of documents; existing batches keep theirs."""
        self.count, self.used, self.crowded = self.known, len(self._encoded), False
        self._make_room(OWN_NAMES, OWN_BYTES, self._encoded, self._edges)

    def grow(self) -> bool:
        """Make room for more names, keeping all numbers; False when there are already too many."""
        _, _, stored, offsets = self.index
        names, size = len(offsets) - 1 - self.known, len(stored) - len(self._encoded)
        if self.count + 1 >= len(offsets):
            names *= 4
        else:
            size *= 4
        most_names, most_bytes = self._most
        if names > most_names or size > most_bytes:
            return False
        self._make_room(names, size, stored[: self.used], offsets[: self.count + 1])
        return True

    def has_grown(self) -> bool:
        """Whether there is more room than a batch of ordinary documents needs."""
        _, _, stored, offsets = self.index
        return len(offsets) - 1 > self.known + OWN_NAMES or len(stored) > len(self._encoded) + OWN_BYTES

    def _make_room(self, names: int, size: int, encoded: UInt8s, edges: Int64s) -> None:
        """New arrays with these names, and room for this many names and bytes after the known ones."""
        room = self.known + names
        stored = np.zeros(len(self._encoded) + size, dtype=np.uint8)
        stored[: len(encoded)] = encoded
        offsets = np.zeros(room + 1, dtype=np.int64)
        offsets[: len(edges)] = edges
        keys = np.empty(2 * room, dtype=np.uint64)
        size = 64
        while size < 2 * room:
            size *= 2
        # Names of documents can be made to collide: a table that grows for them gets no more than it needs.
        largest = 16 * size if names == OWN_NAMES else size
        while True:
            slots = np.full(size, -1, dtype=np.int32)
            # Names that were made to collide do so at every size; documents that have one go to the expat reader.
            if index_names(stored, edges, slots, keys) == 0 or size == largest:
                break
            size *= 2
        self.index = NameIndex(slots, keys, stored, offsets)

    def own_names(self) -> Sequence[str]:
        """The names after the known ones, decoded on access; most batches never need them."""
        if self.count == self.known:
            return ()
        return Texts(self.index.stored, self.index.offsets[self.known : self.count + 1])
