"""Subscriptions: who wants what. Each has an id, an XPath and, optionally, a subscriber's name.

Ids are positive 32-bit integers: 1, 2, 3, … in order, or chosen by the caller; `add` never assigns a number again.
Subscriptions are stored as columns, not objects (`subscription_column_store.py`): an id, the number of its pattern and
the number of its subscriber, 12 bytes, and its text only if it differs from the pattern's normal form. For matching,
they are also stored by pattern (`subscriptions_by_pattern.py`).

Invariant: a method that raises leaves the set unchanged. Any thread may call all methods: changes are serialised, and
`expansion`, which matchers use, never waits. `version` grows by one with every change.
Cost: some 10 µs to add, remove or replace a plain path, one at a time; 2 µs in bulk.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload
from weakref import WeakSet

import numpy as np

from pathcast.documents import Entities, Limits
from pathcast.errors import LimitError, PatternError
from pathcast.kernels import AnyArray, Int32s
from pathcast.patterns import Namespaces
from pathcast.patterns.parsing import MAX_STEPS
from pathcast.store import Texts, pack

from ..results.match_expansion import Expansion
from ..results.subscriptions_by_pattern import Rows
from ..table.pattern_table import EnteredPatterns, PatternTable
from ..tuning import Tuning
from .bounded_decompression import AMPLIFICATION
from .id_and_subscriber_checks import (
    Ids,
    check_count,
    check_namespaces,
    check_next,
    check_subscriber,
    checked_id,
    checked_ids,
    checked_subscribers,
)
from .subscriber_names import NOBODY, Owners
from .subscription_column_store import Columns
from .subscription_files import read_rows

if TYPE_CHECKING:
    from ..matcher import Matcher

_TABLE = "table_"
_NONE = np.empty(0, dtype=np.int32)


class Subscription(NamedTuple):
    """One standing query."""

    id: int
    xpath: str
    subscriber: str | None


class Subscriptions:
    """A changing set of XPath subscriptions.

    `namespaces` maps the prefixes that expressions use to URIs; `"ignore"` matches local names only. `max_steps` bounds
    the steps of one expression, and its length: 65,536 characters, or 256 per step if that is more. Ids are assigned
    from `first_id` on. `tuning` has the thresholds at which matching changes its method; the defaults suit all.

    >>> subscriptions = pathcast.Subscriptions(namespaces={"f": "urn:f"})
    >>> subscriptions.add("//f:quote[@price > 5]", subscriber="ada")
    1
    >>> subscriptions.compile().match("<quote xmlns='urn:f' price='7'/>").subscribers
    ['ada']
    """

    def __init__(
        self,
        namespaces: Namespaces = None,
        *,
        max_steps: int = MAX_STEPS,
        first_id: int = 1,
        tuning: Tuning | None = None,
    ) -> None:
        check_namespaces(namespaces)
        check_count("max_steps", max_steps)
        check_count("first_id", first_id)
        self.namespaces: Namespaces = dict(namespaces) if isinstance(namespaces, Mapping) else namespaces
        self.table = PatternTable(self.namespaces, max_steps, tuning)
        self._lock = RLock()
        self._columns = Columns()
        self._owners = Owners()
        self._next_id = first_id
        self._holds = 0  # while positive, the table is not compacted
        self._rows = Rows(np.zeros(1, dtype=np.int64), _NONE, _NONE, self._owners.names, 0, self.table.tuning)
        self._rows.table = self.table
        self._expansion = Expansion(self._rows)
        self._matchers: WeakSet[Matcher] = WeakSet()

    # Changes.

    def add(self, xpath: str, subscriber: str | None = None, id: int | None = None) -> int:
        """Add one subscription; return its id."""
        check_subscriber(subscriber)
        with self._lock:
            if id is None:
                id = check_next(self._next_id, 1)
            else:
                id = checked_id(id)
                self._columns.check_free([id])
            self._compact()
            known = len(self.table)
            entry, text = self.table.enter_one(xpath)
            rows = self._open_rows(added=1)
            owner = self._owners.number(subscriber)
            self._columns.append(id, entry, owner, text)
            if rows.add(entry, id, owner) == 0 and entry < known:
                self.table.taken(entry)
            rows.publish()
            self._next_id = max(self._next_id, id + 1)
        self._keep_up()
        return id

    @overload
    def add_many(
        self,
        xpaths: Iterable[str],
        subscribers: Sequence[str | None] | None = None,
        ids: Ids | None = None,
        errors: Literal["raise"] = "raise",
    ) -> Sequence[int]: ...

    @overload
    def add_many(
        self,
        xpaths: Iterable[str],
        subscribers: Sequence[str | None] | None = None,
        ids: Ids | None = None,
        *,
        errors: Literal["collect"],
    ) -> list[PatternError | LimitError]: ...

    def add_many(
        self,
        xpaths: Iterable[str],
        subscribers: Sequence[str | None] | None = None,
        ids: Ids | None = None,
        errors: Literal["raise", "collect"] = "raise",
    ) -> Sequence[int] | list[PatternError | LimitError]:
        """Add many subscriptions.

        `errors="raise"`: all or none; returns the ids. `errors="collect"`: adds the good ones and returns the errors
        of the others, each with the `index` of its expression in `xpaths`.
        """
        if errors not in ("raise", "collect"):
            raise ValueError(f"errors must be 'raise' or 'collect', got {errors!r}")
        if isinstance(xpaths, str):
            raise TypeError("add_many() takes several expressions, got a single str; use add()")
        xpaths = list(xpaths)
        owners = checked_subscribers(subscribers, len(xpaths))
        numbers = None if ids is None else checked_ids(ids, len(xpaths))
        with self._lock:
            self._columns.check_free(numbers)
            self._compact()
            known = len(self.table)
            entered = self.table.enter(xpaths, collect=errors == "collect")
            try:
                first = check_next(self._next_id, len(entered.good)) if numbers is None else 0
            except LimitError:
                for entry in range(known, len(self.table)):
                    self.table.released(entry)
                raise
            given = range(first, first + len(entered.good)) if numbers is None else [numbers[at] for at in entered.good]
            owned = np.full(len(given), NOBODY, dtype=np.int32)
            if owners is not None:
                owned[:] = [self._owners.number(owners[at]) for at in entered.good]
            if len(given):
                self._add_many(entered, given, owned, known)
            return entered.bad if errors == "collect" else given

    def add_entered(
        self, entered: EnteredPatterns, known: int, names: Sequence[str], owners: Int32s, ids: Int32s | None
    ) -> Sequence[int]:
        """Add all that was entered into the table, which had `known` entries before; return the ids.

        `owners` are indices into `names`, or -1.
        """
        checked_subscribers(names, len(names))
        numbers = None if ids is None else checked_ids(ids.tolist(), len(entered.entries))
        with self._lock:
            self._columns.check_free(numbers)
            first = check_next(self._next_id, len(entered.entries)) if numbers is None else 0
            given = range(first, first + len(entered.entries)) if numbers is None else numbers
            owned = np.array([*map(self._owners.number, names), NOBODY], dtype=np.int32)[owners]
            if len(given):
                self._add_many(entered, given, owned, known)
            return given

    def _add_many(self, entered: EnteredPatterns, given: Sequence[int], owned: Int32s, known: int) -> None:
        """Add what was entered, with the given ids and owners; the table had `known` entries before."""
        ids = np.array(given, dtype=np.int32)
        again = self._rows.unused(np.unique(entered.entries[entered.entries < known]))
        self._columns.extend(ids, entered.entries, owned, entered.texts)
        self._next_id = max(self._next_id, int(ids.max()) + 1)
        if self._rows.has_room(len(ids), 0, len(self.table)):
            self._rows.open()
            self._rows.add_many(entered.entries, ids, owned)
            self._rows.publish()
        else:
            self._lay_out(self.version + 1)
        for entry in again:
            self.table.taken(entry)

    def remove(self, id: int) -> None:
        """Remove one subscription; `KeyError` if no subscription has this id."""
        with self._lock:
            slot = self._columns.slot(id)
            rows = self._open_rows(died=1)
            columns = self._columns
            entry = columns.entries[slot]
            left = rows.remove(entry, columns.ids[slot])
            columns.remove(slot)
            if left == 0:
                self.table.released(entry)
            rows.publish()
            self._compact()

    def replace(self, id: int, xpath: str) -> None:
        """Change the expression of a subscription; its id and subscriber stay."""
        with self._lock:
            self._compact()
            slot = self._columns.slot(id)
            known = len(self.table)
            entry, text = self.table.enter_one(xpath)
            rows = self._open_rows(added=1, died=1)
            columns = self._columns
            before, number = columns.entries[slot], columns.ids[slot]
            left = rows.remove(before, number)
            had = rows.add(entry, number, columns.owners[slot])
            columns.replace(slot, entry, text)
            if entry != before:
                if left == 0:
                    self.table.released(before)
                if had == 0 and entry < known:
                    self.table.taken(entry)
            rows.publish()
        self._keep_up()

    def _keep_up(self) -> None:
        """Let the matchers index what was added, here rather than in the next match."""
        with self._lock:
            matchers = list(self._matchers)
        for matcher in matchers:
            matcher.keep_up()

    def _open_rows(self, added: int = 0, died: int = 0) -> Rows:
        """The rows, with room for a change."""
        rows = self._rows
        if not rows.has_room(added, died, len(self.table)):
            rows = self._lay_out(self.version)
        rows.open()
        return rows

    def _lay_out(self, version: int) -> Rows:
        """Lay out all rows again, for a version, and publish them."""
        before, tuning = self._rows, self.table.tuning
        columns = self._columns
        moved = self._owners.drop_unused(columns.arrays()[2][columns.live()], tuning.subscriber_names)
        if moved is not None:
            columns.renumber_owners(moved)
        counts = columns.count, len(self.table)
        rows = Rows.laid_out(columns.by_id(), *columns.arrays(), counts, self._owners.names, version, tuning)
        if before.ranked is not None and before.names is rows.names:
            rows.name_order = before.ranked.order
        rows.table = self.table
        self._rows = rows
        return rows

    def _compact(self) -> None:
        """If most patterns are unused, continue with a table of the others."""
        if self.table.is_wasteful and not self._holds:
            table, moved = self.table.compacted(self.live_counts() > 0)
            # Matches continue with the old table until everything is ready.
            for matcher in list(self._matchers):
                matcher.prepare(self.table, table)
            self.table = table
            self._columns.renumber_entries(moved)
            self._lay_out(self.version)

    # Queries.

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return self._rows.version

    def __len__(self) -> int:
        return self._columns.count

    def __contains__(self, id: object) -> bool:
        with self._lock:
            return isinstance(id, Integral) and self._columns.find(int(id)) >= 0

    def __getitem__(self, id: int) -> Subscription:
        with self._lock:
            slot = self._columns.slot(id)
            columns = self._columns
            owner = columns.owners[slot]
            text = columns.text(slot) or self.table.text(columns.entries[slot])
            return Subscription(columns.ids[slot], text, self._owners.name(owner))

    def __iter__(self) -> Iterator[Subscription]:
        """All subscriptions, in the order in which they were added; those removed meanwhile may be left out."""
        with self._lock:
            ids = self._columns.arrays()[0][self._columns.live()]
        for id in ids.tolist():
            with self._lock:
                if id not in self:
                    continue
                found = self[id]
            yield found

    def columns(self) -> tuple[Int32s, list[str], list[str | None]]:
        """Ids, expressions and subscribers of all subscriptions: as by iteration, but in bulk."""
        with self._lock:
            live = np.flatnonzero(self._columns.live())
            ids, entries, owners = (column[live] for column in self._columns.arrays())
            slots, texts = self._columns.texts()
            own = dict(zip(slots.tolist(), texts, strict=True))
            shared = {entry: self.table.text(entry) for entry in np.unique(entries[~np.isin(live, slots)]).tolist()}
            names = {owner: self._owners.name(owner) for owner in np.unique(owners).tolist()}
        rows = zip(live.tolist(), entries.tolist(), strict=True)
        xpaths = [own[slot] if slot in own else shared[entry] for slot, entry in rows]
        return ids, xpaths, [names[owner] for owner in owners.tolist()]

    def __repr__(self) -> str:
        return f"<Subscriptions: {len(self):,}, {len(self.table):,} distinct patterns>"

    @property
    def subscribers(self) -> list[str]:
        """The names of all subscribers, in the order of their first subscriptions."""
        with self._lock:
            owners = self._columns.arrays()[2][self._columns.live()]
            found, first = np.unique(owners[owners >= 0], return_index=True)
            return [self._owners.names[owner] for owner in found[np.argsort(first)].tolist()]

    @property
    def bytes(self) -> int:
        """The memory of patterns, columns and rows; texts that differ from the normal form are not counted."""
        return self.table.bytes + self._columns.bytes + self._rows.bytes

    def live_counts(self) -> Int32s:
        """The current number of subscriptions per entry of the table."""
        with self._lock:
            return self._rows.live_counts(len(self.table))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """While the block runs, changes by other threads wait, and entries of the table keep their numbers."""
        with self._lock:
            self._holds += 1
            try:
                yield
            finally:
                self._holds -= 1

    def followed_by(self, matcher: "Matcher") -> None:
        """Notify a matcher when another table is about to replace the current one."""
        with self._lock:
            self._matchers.add(matcher)

    def expansion(self) -> Expansion:
        """The ids and subscribers of each pattern, as of now; later changes do not affect the result."""
        # Without the lock: first the rows, then their version; another thread may be ahead of us here.
        rows = self._rows
        expansion = self._expansion
        if expansion.rows is not rows or expansion.stamp != rows.published[0]:
            self._expansion = expansion = Expansion(rows)
        return expansion

    # Compiling, reading and saving.

    def compile(
        self, engine: str | None = None, *, limits: Limits | None = None, entities: Entities = "refuse"
    ) -> "Matcher":
        """A matcher that follows these subscriptions: its next match sees what is added or removed later."""
        from ..matcher import Matcher

        if engine is not None and not isinstance(engine, str):
            raise TypeError(f"engine must be the name of an engine, such as 'automaton', or None, got {engine!r}")
        return Matcher(self, engine, limits=limits, entities=entities)

    @overload
    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        namespaces: Namespaces = None,
        errors: Literal["raise"] = "raise",
        *,
        amplification: int = AMPLIFICATION,
    ) -> "Subscriptions": ...

    @overload
    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        namespaces: Namespaces = None,
        *,
        errors: Literal["collect"],
        amplification: int = AMPLIFICATION,
    ) -> tuple["Subscriptions", list[PatternError | LimitError]]: ...

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        namespaces: Namespaces = None,
        errors: Literal["raise", "collect"] = "raise",
        *,
        amplification: int = AMPLIFICATION,
    ) -> "Subscriptions | tuple[Subscriptions, list[PatternError | LimitError]]":
        """Read subscriptions from a file.

        `.txt` (or any other extension): one XPath per line, whose id is the number of its line; blank lines and lines
        that begin with `#` are skipped, but counted. `.csv` and `.parquet`: a column `xpath`, optionally `id` and
        `subscriber`. `.gz` of the first two is decompressed.

        `errors="raise"`: an invalid subscription is an exception. `errors="collect"`: returns the valid
        subscriptions and the errors of the others, each with its `line`.

        A compressed file, also Parquet, may unpack to `amplification` times its size, and always to 1 MiB.
        """
        check_count("amplification", amplification)
        if errors not in ("raise", "collect"):
            raise ValueError(f"errors must be 'raise' or 'collect', got {errors!r}")
        rows = read_rows(path, amplification)
        if errors == "raise" and rows.errors:
            raise min(rows.errors, key=lambda error: error.line or 0)
        subscriptions = cls(namespaces)
        if errors == "collect":
            invalid = subscriptions.add_many(rows.xpaths, rows.subscribers, rows.ids, errors="collect")
            for error in invalid:
                _set_line(error, rows.lines)
            return subscriptions, sorted([*invalid, *rows.errors], key=lambda error: error.line or 0)
        try:
            subscriptions.add_many(rows.xpaths, rows.subscribers, rows.ids)
        except (PatternError, LimitError) as error:
            _set_line(error, rows.lines)
            raise
        return subscriptions

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """The whole state, as facts and arrays; `restore` reads them."""
        with self._lock:
            columns = self._columns
            rows = self._lay_out(self.version) if self._rows.published[0] else self._rows
            facts: dict[str, Any] = {"namespaces": self.namespaces, "max_steps": self.table.max_steps}
            facts |= {"next_id": self._next_id, "subscriptions": len(self), "ascending": columns.ascending}
            names, name_offsets = pack(self._owners.names)
            named: dict[str, AnyArray] = {"owner_names": names, "owner_name_offsets": name_offsets}
            laid_out: dict[str, AnyArray] = {"row_begin": rows.begin, "row_ids": rows.ids, "row_owners": rows.owners}
            table = {_TABLE + name: array for name, array in self.table.arrays().items()}
            return facts, {**columns.saved(), **named, **laid_out, **table}

    @classmethod
    def restore(
        cls, facts: dict[str, Any], arrays: dict[str, AnyArray], tuning: Tuning | None = None
    ) -> "Subscriptions":
        """The subscriptions that were saved by `state`."""
        self = cls(facts["namespaces"], max_steps=facts["max_steps"], tuning=tuning)
        table = {name.removeprefix(_TABLE): column for name, column in arrays.items() if name.startswith(_TABLE)}
        self.table = PatternTable.restore(self.namespaces, self.table.max_steps, table, tuning)
        self._columns = Columns.restore(arrays, count=facts["subscriptions"], ascending=facts["ascending"])
        self._owners = Owners(Texts(arrays["owner_names"], arrays["owner_name_offsets"]))
        begin, ids, owners = (np.asarray(arrays[name]) for name in ("row_begin", "row_ids", "row_owners"))
        self._rows = Rows(begin, ids, owners, self._owners.names, 0, self.table.tuning)
        self._rows.table = self.table
        self._next_id = facts["next_id"]
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Subscriptions.restore, (*self.state(), self.table.tuning)


def _set_line(error: PatternError | LimitError, lines: Sequence[int]) -> None:
    if error.index is not None:
        error.line = lines[error.index]
