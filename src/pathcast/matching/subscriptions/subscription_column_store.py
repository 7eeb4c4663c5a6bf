"""Columns: the subscriptions in the order in which they were added, and an index by id.

A subscription is a slot: its id, its entry (-1 once it is gone) and the number of its subscriber, 12 bytes. Its text is
stored only if it differs from the entry's.

While ids ascend they are found by bisection; after the first that does not, by a hash table of slots. A removed slot
stays until half of the slots are removed; then the gaps are closed.

Cost: some 1 µs to add, find or remove; closing gaps takes some 10 ns per slot, without a Python loop.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from operator import index

import numpy as np

from pathcast.kernels import AnyArray, Bools, Int32s, Int64s
from pathcast.store import Texts, pack

from ..results.subscriptions_by_pattern_kernels import index_ids

GONE = -1
_SMALL = 64


class Columns:
    """Ids, entries, owners and texts by slot."""

    def __init__(self) -> None:
        self.ids = array("i")
        self.entries = array("i")
        self.owners = array("i")
        self.count = 0  # of live subscriptions
        self.ascending = True
        self._texts: dict[int, str | None] = {}  # by id; None: the entry's text, whatever the snapshot has
        self._packed: tuple[Int32s, Int64s, Texts] | None = None  # slots, ascending, with their indices in the texts
        self._cells = np.zeros(0, dtype=np.int32).data
        self._shift = 0

    # Changes.

    def append(self, id: int, entry: int, owner: int, text: str | None) -> None:
        """Add a subscription, whose id must be free."""
        slot = len(self.ids)
        if self.ascending and slot and id <= self.ids[-1]:
            self._index(0)
        self.ids.append(id)
        self.entries.append(entry)
        self.owners.append(owner)
        self.count += 1
        if text is not None:
            self._texts[id] = text
        if not self.ascending:
            if 2 * slot >= len(self._cells):
                self._index(0)
            else:
                self._cells[self._place(id)] = slot + 1

    def extend(self, ids: Int32s, entries: Int32s, owners: Int32s, texts: dict[int, str]) -> None:
        """Add subscriptions; `texts` by their index among them."""
        first = len(self.ids)
        self.ids.frombytes(ids.tobytes())
        self.entries.frombytes(entries.tobytes())
        self.owners.frombytes(owners.tobytes())
        self.count += len(ids)
        self._texts.update((int(ids[at]), text) for at, text in texts.items())
        last = self.ids[first - 1] if first else 0
        if not self.ascending:
            self._index(first)
        elif len(ids) and not (ids[0] > last and bool(np.all(ids[1:] > ids[:-1]))):
            self._index(0)

    def remove(self, slot: int) -> None:
        """Remove a subscription."""
        self.entries[slot] = GONE
        self._texts.pop(self.ids[slot], None)
        self.count -= 1
        if len(self.ids) > _SMALL and self.count < len(self.ids) // 2:
            self._close_gaps()

    def replace(self, slot: int, entry: int, text: str | None) -> None:
        """Change the entry and text of a subscription."""
        self.entries[slot] = entry
        if text is not None or self._packed is not None:
            self._texts[self.ids[slot]] = text
        else:
            self._texts.pop(self.ids[slot], None)

    def renumber_owners(self, numbers: Int32s) -> None:
        """Replace each owner by `numbers[owner]`."""
        owners = np.array(self.owners, dtype=np.int32)
        owners[owners >= 0] = numbers[owners[owners >= 0]]
        self.owners = _column(owners)

    def renumber_entries(self, numbers: Int32s) -> None:
        """Replace each entry by `numbers[entry]`."""
        entries = np.array(self.entries, dtype=np.int32)
        entries[entries >= 0] = numbers[entries[entries >= 0]]
        self.entries = _column(entries)

    # Looking.

    def find(self, id: int) -> int:
        """The slot of an id, or -1."""
        if self.ascending:
            slot = bisect_left(self.ids, id)
            if slot == len(self.ids) or self.ids[slot] != id:
                return -1
        else:
            slot = self._cells[self._place(id)] - 1
        return slot if slot >= 0 and self.entries[slot] != GONE else -1

    def slot(self, id: int) -> int:
        """The slot of an id; `KeyError` if there is none."""
        slot = self.find(index(id))
        if slot < 0:
            raise KeyError(
                f"unknown subscription id {id}: the subscription was never added or has been removed; give the id "
                "of an existing subscription"
            )
        return slot

    def check_free(self, ids: Sequence[int] | None) -> None:
        """Reject an id that is in use."""
        for number in ids if ids and self.count else ():
            if self.find(number) >= 0:
                raise ValueError(f"id {number} is already in use; remove its subscription first, or choose another id")

    def text(self, slot: int) -> str | None:
        """The text of a subscription; None if it is that of its entry."""
        id = self.ids[slot]
        if id in self._texts:
            return self._texts[id]
        if self._packed is None:
            return None
        slots, places, texts = self._packed
        at = int(np.searchsorted(slots, slot))
        return texts[int(places[at])] if at < len(slots) and int(slots[at]) == slot else None

    def arrays(self) -> tuple[Int32s, Int32s, Int32s]:
        """Ids, entries and owners, on the columns' own memory: nothing can be added while they are held."""
        return _array(self.ids), _array(self.entries), _array(self.owners)

    @property
    def bytes(self) -> int:
        """The memory of the columns, without texts."""
        return 4 * (3 * len(self.ids) + len(self._cells))

    def by_id(self) -> Int64s:
        """The slots, sorted by id."""
        return np.arange(len(self.ids)) if self.ascending else np.argsort(_array(self.ids), kind="stable")

    def live(self) -> Bools:
        """Which slots are live."""
        live: Bools = _array(self.entries) != GONE
        return live

    # On disk.

    def texts(self) -> tuple[Int32s, list[str]]:
        """The slots with a text of their own, ascending, and the texts."""
        own: dict[int, str | None] = {}
        if self._packed is not None:
            slots, places, texts = self._packed
            kept = self.live()[slots]
            unpacked = list(texts)
            own.update(
                (slot, unpacked[place]) for slot, place in zip(slots[kept].tolist(), places[kept].tolist(), strict=True)
            )
        own.update((self.find(id), text) for id, text in self._texts.items())
        chosen = sorted((slot, text) for slot, text in own.items() if text is not None)
        return np.array([slot for slot, _ in chosen], dtype=np.int32), [text for _, text in chosen]

    def saved(self) -> dict[str, AnyArray]:
        """The columns as arrays; `restore` reads them."""
        ids, entries, owners = (column.copy() for column in self.arrays())
        slots, own = self.texts()
        texts, offsets = pack(own)
        columns = {"ids": ids, "entries": entries, "owners": owners}
        return {**columns, "texts": texts, "text_offsets": offsets, "text_slots": slots}

    @classmethod
    def restore(cls, arrays: dict[str, AnyArray], *, count: int, ascending: bool) -> "Columns":
        """The columns of a snapshot; its texts are read in place."""
        self = cls()
        self.ids, self.entries, self.owners = (_column(arrays[name]) for name in ("ids", "entries", "owners"))
        self.count = count
        slots = np.asarray(arrays["text_slots"])
        if len(slots):
            self._packed = slots, np.arange(len(slots)), Texts(arrays["texts"], arrays["text_offsets"])
        if not ascending:
            self._index(0)
        return self

    # Inside.

    def _place(self, id: int) -> int:
        """The cell of an id: the one that has it, or the free one for it."""
        cells, ids = self._cells, self.ids
        place = (id * 0x9E3779B1 & 0xFFFFFFFF) >> self._shift
        mask = len(cells) - 1
        while (slot := cells[place]) and ids[slot - 1] != id:
            place = place + 1 & mask
        return place

    def _index(self, first: int) -> None:
        """Insert the slots from `first` on into the hash table; all of them if it is new or too small."""
        self.ascending = False
        if 2 * len(self.ids) >= len(self._cells):
            bits = min(32, max(8, (4 * len(self.ids)).bit_length()))
            self._cells, self._shift = np.zeros(1 << bits, dtype=np.int32).data, 32 - bits
            first = 0
        index_ids(_array(self.ids), _array(self.entries), first, self._shift, np.asarray(self._cells))

    def _close_gaps(self) -> None:
        """Drop the slots of removed subscriptions."""
        live = self.live()
        if self._packed is not None:
            slots, places, texts = self._packed
            kept = live[slots]
            moved = np.cumsum(live, dtype=np.int32) - 1
            self._packed = moved[slots[kept]].astype(np.int32), places[kept], texts
        ids, entries, owners = (_column(column[live]) for column in self.arrays())
        self.ids, self.entries, self.owners = ids, entries, owners
        if not self.ascending:
            self._cells = np.zeros(0, dtype=np.int32).data
            self._index(0)


def _array(column: "array[int]") -> Int32s:
    return np.frombuffer(column, dtype=np.int32) if column else np.empty(0, dtype=np.int32)


def _column(values: AnyArray) -> "array[int]":
    column = array("i")
    column.frombytes(np.ascontiguousarray(values, dtype=np.int32).view(np.uint8).data)
    return column
