"""Subscriptions: who wants what. Each has an id, an XPath and, if you like, a subscriber's name.

Ids are positive 32-bit integers: 1, 2, 3, … as they come, or the caller's own; a number given out by `add` is never
given out again. Columns, not objects: a subscription is an id, the number of its pattern and the number of its
subscriber, 12 bytes, and its text only where it is not the pattern's normal form.

Invariant: all methods leave the set as it was when they raise. `version` grows with every change; matchers look at it.
"""

import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from ..documents import Limits
from ..documents.expat_reader import Entities
from ..errors import LimitError, PatternError
from ..patterns import Namespaces
from ..patterns.parse import MAX_STEPS
from ..store.snapshot import AnyArray
from ..store.texts import Texts, pack
from .expansion import Expansion
from .files import LARGEST_ID, read_rows
from .table import PatternTable

if TYPE_CHECKING:
    from .matcher import Matcher

_GONE = -1
_NOBODY = -1
_TABLE = "table_"
_SURROGATE = re.compile("[\ud800-\udfff]")


class Subscription(NamedTuple):
    """One standing query."""

    id: int
    xpath: str
    subscriber: str | None


class Subscriptions:
    """A changing set of XPath subscriptions.

    `namespaces` maps the prefixes that expressions use to URIs; `"ignore"` matches local names only. `max_steps` bounds
    the steps of one expression.
    """

    def __init__(self, namespaces: Namespaces = None, *, max_steps: int = MAX_STEPS) -> None:
        _check_namespaces(namespaces)
        self.namespaces: Namespaces = dict(namespaces) if isinstance(namespaces, Mapping) else namespaces
        self.table = PatternTable(self.namespaces, max_steps)
        self.version = 0
        self._ids = array("i")
        self._entries = array("i")
        self._owners = array("i")
        self._slots: dict[int, int] | None = None  # only once ids are no longer ascending
        self._texts: dict[int, str] = {}
        self._packed_texts: tuple[AnyArray, Texts] | None = None  # slots, ascending, and texts of a snapshot
        self._names = Texts()
        self._owner_of: dict[str, int] | None = {}
        self._count = 0
        self._next_id = 1
        self._expansion: Expansion | None = None

    # Changes.

    def add(self, xpath: str, subscriber: str | None = None, id: int | None = None) -> int:
        """Add one subscription; return its id."""
        added = self.add_many([xpath], None if subscriber is None else [subscriber], None if id is None else [id])
        return added[0]

    @overload
    def add_many(
        self,
        xpaths: Iterable[str],
        subscribers: Sequence[str | None] | None = None,
        ids: Sequence[int] | None = None,
        errors: Literal["raise"] = "raise",
    ) -> Sequence[int]: ...

    @overload
    def add_many(
        self,
        xpaths: Iterable[str],
        subscribers: Sequence[str | None] | None = None,
        ids: Sequence[int] | None = None,
        *,
        errors: Literal["collect"],
    ) -> list[PatternError | LimitError]: ...

    def add_many(
        self,
        xpaths: Iterable[str],
        subscribers: Sequence[str | None] | None = None,
        ids: Sequence[int] | None = None,
        errors: Literal["raise", "collect"] = "raise",
    ) -> Sequence[int] | list[PatternError | LimitError]:
        """Add many subscriptions.

        `errors="raise"`: all or none; returns the ids. `errors="collect"`: adds the good ones and returns the errors
        of the others, each with the `index` of its expression in `xpaths`.
        """
        if errors not in ("raise", "collect"):
            raise ValueError(f"errors={errors!r}: must be 'raise' or 'collect'")
        if isinstance(xpaths, str):
            raise TypeError("add_many takes several expressions; use add for one")
        xpaths = list(xpaths)
        owners = self._check_subscribers(subscribers, len(xpaths))
        self._check_ids(ids, len(xpaths))
        entered = self.table.enter(xpaths, collect=errors == "collect")
        good = entered.good
        if ids is None:
            if self._next_id + len(good) - 1 > LARGEST_ID:
                raise LimitError(f"ids beyond {LARGEST_ID:,} do not exist; give free ones with ids=…")
            given: Sequence[int] = range(self._next_id, self._next_id + len(good))
        else:
            given = [int(ids[index]) for index in good]
        first = len(self._ids)
        self._ids.extend(given)
        self._entries.frombytes(entered.entries.tobytes())
        if owners is None:
            self._owners.extend(array("i", [_NOBODY]) * len(good))
        else:
            self._owners.extend(self._owner(owners[index]) for index in good)
        self._texts.update((first + at, text) for at, text in entered.texts.items())
        self._index_slots(first)
        self._count += len(good)
        if len(given):
            self._next_id = max(self._next_id, (given[-1] if isinstance(given, range) else max(given)) + 1)
        self._changed()
        return entered.bad if errors == "collect" else given

    def remove(self, id: int) -> None:
        """Take one subscription away; `KeyError` when there is none with this id."""
        slot = self._slot(id)
        self._entries[slot] = _GONE
        self._forget_text(slot)
        if self._slots is not None:
            del self._slots[id]
        self._count -= 1
        if len(self._ids) > 64 and self._count < len(self._ids) // 2:
            self._compact()
        self._changed()

    def replace(self, id: int, xpath: str) -> None:
        """Give a subscription another expression; its id and subscriber stay."""
        slot = self._slot(id)
        entered = self.table.enter([xpath])
        self._entries[slot] = int(entered.entries[0])
        self._forget_text(slot)
        self._texts.update((slot, text) for text in entered.texts.values())
        self._changed()

    # Looking.

    def __len__(self) -> int:
        return self._count

    def __contains__(self, id: object) -> bool:
        return isinstance(id, Integral) and self._find(int(id)) is not None

    def __getitem__(self, id: int) -> Subscription:
        return self._subscription(self._slot(id))

    def __iter__(self) -> Iterator[Subscription]:
        """All subscriptions, in the order in which they were added."""
        slots = [slot for slot, entry in enumerate(self._entries) if entry != _GONE]
        return map(self._subscription, slots)

    def __repr__(self) -> str:
        return f"<Subscriptions: {len(self):,}, {len(self.table):,} distinct patterns>"

    def _subscription(self, slot: int) -> Subscription:
        owner = self._owners[slot]
        text = self._texts.get(slot) or self._packed_text(slot) or self.table.text(self._entries[slot])
        return Subscription(self._ids[slot], text, None if owner == _NOBODY else self._names[owner])

    @property
    def subscribers(self) -> list[str]:
        """The names of all subscribers, in the order of their first subscription."""
        return list(self._names)

    @property
    def bytes(self) -> int:
        """The memory of patterns, columns and rows; texts that differ from the normal form are not counted."""
        columns = sum(len(column) * column.itemsize for column in (self._ids, self._entries, self._owners))
        return self.table.bytes + columns + self.expansion().bytes

    def expansion(self) -> Expansion:
        """Which ids and subscribers stand behind each pattern, as of now."""
        if self._expansion is None:
            self._expansion = Expansion.build(
                np.array(self._ids, dtype=np.int32),
                np.array(self._entries, dtype=np.int32),
                np.array(self._owners, dtype=np.int32),
                len(self.table),
                self._names,
            )
        return self._expansion

    # Going on from here.

    def compile(
        self, engine: str | None = None, *, limits: Limits | None = None, entities: Entities = "refuse"
    ) -> "Matcher":
        """A matcher that follows these subscriptions: what is added or removed later is seen by its next match."""
        from .matcher import Matcher

        return Matcher(self, engine, limits=limits, entities=entities)

    @classmethod
    def read(cls, path: str | os.PathLike[str], namespaces: Namespaces = None) -> "Subscriptions":
        """Read subscriptions from a file.

        `.txt` (or any other ending): one XPath a line, its id is the line's number; blank lines count. `.csv` and
        `.parquet`: a column `xpath`, optionally `id` and `subscriber`. `.gz` of the first two is unpacked.
        """
        rows = read_rows(path)
        subscriptions = cls(namespaces)
        try:
            subscriptions.add_many(rows.xpaths, rows.subscribers, rows.ids)
        except (PatternError, LimitError) as error:
            if error.index is not None:
                error.line = rows.lines[error.index]
            raise
        return subscriptions

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Everything, as facts and arrays; `restore` takes them back."""
        facts: dict[str, Any] = {
            "namespaces": self.namespaces,
            "max_steps": self.table.max_steps,
            "next_id": self._next_id,
            "subscriptions": self._count,
            "ascending": bool(self._slots is None),
        }
        self._unpack_texts()
        expansion = self.expansion()
        names, name_offsets = pack(self._names)
        slots = sorted(self._texts)
        texts, text_offsets = pack(self._texts[slot] for slot in slots)
        arrays: dict[str, AnyArray] = {
            "ids": np.array(self._ids, dtype=np.int32),
            "entries": np.array(self._entries, dtype=np.int32),
            "owners": np.array(self._owners, dtype=np.int32),
            "owner_names": names,
            "owner_name_offsets": name_offsets,
            "texts": texts,
            "text_offsets": text_offsets,
            "text_slots": np.array(slots, dtype=np.int32),
            "row_begin": expansion.begin,
            "row_ids": expansion.ids,
            "row_owners": expansion.owners,
        }
        return facts, arrays | {_TABLE + name: array for name, array in self.table.arrays().items()}

    @classmethod
    def restore(cls, facts: dict[str, Any], arrays: dict[str, AnyArray]) -> "Subscriptions":
        """The subscriptions that `state` was taken of."""
        self = cls(facts["namespaces"], max_steps=facts["max_steps"])
        table = {name.removeprefix(_TABLE): column for name, column in arrays.items() if name.startswith(_TABLE)}
        self.table = PatternTable.restore(self.namespaces, self.table.max_steps, table)
        self._ids.frombytes(arrays["ids"].view(np.uint8).data)
        self._entries.frombytes(arrays["entries"].view(np.uint8).data)
        self._owners.frombytes(arrays["owners"].view(np.uint8).data)
        self._names = Texts(arrays["owner_names"], arrays["owner_name_offsets"])
        self._owner_of = None
        self._packed_texts = arrays["text_slots"], Texts(arrays["texts"], arrays["text_offsets"])
        begin, ids, owners = (np.asarray(arrays[name]) for name in ("row_begin", "row_ids", "row_owners"))
        self._expansion = Expansion.of(begin, ids, owners, self._names)
        self._count = facts["subscriptions"]
        self._next_id = facts["next_id"]
        if not facts["ascending"]:
            self._index_slots(0)
        return self

    # Inside.

    def _check_subscribers(self, subscribers: Sequence[str | None] | None, count: int) -> list[str | None] | None:
        if subscribers is None:
            return None
        if isinstance(subscribers, str):
            raise TypeError("subscribers is one name for each expression, not a single str")
        owners = list(subscribers)
        if len(owners) != count:
            raise ValueError(f"{count} expressions, but {len(owners)} subscribers")
        for owner in owners:
            if owner is not None and not is_text(owner):
                raise ValueError(f"subscriber {owner!r}: a name is a str that is not empty, or None")
        return owners

    def _check_ids(self, ids: Sequence[int] | None, count: int) -> None:
        if ids is None:
            return
        if len(ids) != count:
            raise ValueError(f"{count} expressions, but {len(ids)} ids")
        for number in ids:
            if isinstance(number, bool) or not isinstance(number, Integral) or not 0 < number <= LARGEST_ID:
                raise ValueError(f"id {number!r}: an id is a whole number from 1 to {LARGEST_ID:,}")
        if len(set(ids)) != count:
            raise ValueError("an id is given twice")
        if len(self._ids):
            for number in ids:
                if self._find(number) is not None:
                    raise ValueError(f"id {number} is in use")

    def _owner(self, name: str | None) -> int:
        if name is None:
            return _NOBODY
        if self._owner_of is None:
            self._owner_of = {known: owner for owner, known in enumerate(self._names)}
        owner = self._owner_of.setdefault(name, len(self._names))
        if owner == len(self._names):
            self._names.append(name)
        return owner

    def _index_slots(self, first: int) -> None:
        """Keep ids findable: by bisection while they ascend, by a dictionary from then on."""
        if self._slots is None:
            fresh = np.frombuffer(self._ids, dtype=np.int32)[max(0, first - 1) :]
            if bool(np.all(fresh[1:] > fresh[:-1])):
                return
            self._slots = {self._ids[slot]: slot for slot in range(first) if self._entries[slot] != _GONE}
        fresh_slots = range(first, len(self._ids))
        self._slots.update((self._ids[slot], slot) for slot in fresh_slots if self._entries[slot] != _GONE)

    def _find(self, id: int) -> int | None:
        if self._slots is not None:
            return self._slots.get(id)
        slot = bisect_left(self._ids, id)
        found = slot < len(self._ids) and self._ids[slot] == id and self._entries[slot] != _GONE
        return slot if found else None

    def _slot(self, id: int) -> int:
        slot = self._find(id)
        if slot is None:
            raise KeyError(f"there is no subscription {id}")
        return slot

    def _packed_text(self, slot: int) -> str | None:
        """The text that a snapshot holds for a slot."""
        if self._packed_texts is None:
            return None
        slots, texts = self._packed_texts
        at = int(np.searchsorted(slots, slot))
        return texts[at] if at < len(slots) and int(slots[at]) == slot else None

    def _unpack_texts(self) -> None:
        """Take a snapshot's texts into the dictionary, where they can change."""
        if self._packed_texts is not None:
            slots, texts = self._packed_texts
            self._packed_texts = None
            self._texts = dict(zip(slots.tolist(), texts, strict=True)) | self._texts

    def _forget_text(self, slot: int) -> None:
        self._unpack_texts()
        self._texts.pop(slot, None)

    def _compact(self) -> None:
        """Close the gaps that removed subscriptions left."""
        kept = [slot for slot, entry in enumerate(self._entries) if entry != _GONE]
        self._texts = {at: self._texts[slot] for at, slot in enumerate(kept) if slot in self._texts}
        self._ids = array("i", (self._ids[slot] for slot in kept))
        self._entries = array("i", (self._entries[slot] for slot in kept))
        self._owners = array("i", (self._owners[slot] for slot in kept))
        if self._slots is not None:
            self._slots = {number: slot for slot, number in enumerate(self._ids)}

    def _changed(self) -> None:
        self.version += 1
        self._expansion = None


def is_text(value: object) -> bool:
    """Whether a value is a str that is not empty and can be written as UTF-8."""
    return isinstance(value, str) and value != "" and not _SURROGATE.search(value)


def _check_namespaces(namespaces: Namespaces) -> None:
    if namespaces is None or namespaces == "ignore":
        return
    if not isinstance(namespaces, Mapping):
        raise TypeError(f"namespaces={namespaces!r}: must be a mapping from prefix to URI, 'ignore' or None")
    for prefix, uri in namespaces.items():
        if prefix == "":
            raise ValueError("namespaces: XPath 1.0 has no default namespace; give it a prefix and use that")
        if not (is_text(prefix) and is_text(uri)):
            raise TypeError(f"namespaces: {prefix!r} → {uri!r} is not a prefix and a URI")
