"""A router: its local subscriptions, and the advertisements that it received and made.

    neighbours' advertisements ──▶ routing table ◀── local subscriptions
                                        │
                                        ▼ the patterns that others want, aggregated
                              advertisement for a neighbour

A router knows its table, the advertisements that it received (only aggregates and derived information) and those that
it made (with the tables of §5, which interpret annotations). For documents see `document_forwarding.py`.

Invariant: an advertisement never changes; a change creates a new one with a higher version. Annotations that refer to
another version than the last are ignored.
"""

from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass

import numpy as np

from pathcast.documents import DocumentBatch, Entities, Limits, Reader
from pathcast.kernels import Int32s
from pathcast.mediation import MediatedReader
from pathcast.mediation.mappings import is_packed
from pathcast.patterns import Namespaces, Pattern

from .advertising.subscription_advertisement import Advertisement
from .annotations.advertised_annotation_hints import ChangingDerived
from .annotations.aggregate_wildcard_binder import Binder
from .annotations.data_pattern_occurrences import LabelMemory
from .structure.structure_coders_by_neighbour import Structures
from .table.routing_table import RoutingTable, Target


@dataclass(frozen=True, slots=True)
class LocalSubscription:
    """A subscription at its router: the table's entry and the subscriber."""

    entry: int
    target: Target


class Router:
    """One node of the overlay."""

    def __init__(
        self,
        name: str,
        namespaces: Namespaces,
        max_steps: int,
        limits: Limits,
        table: RoutingTable | None = None,
        *,
        entities: Entities = "refuse",
    ) -> None:
        self.name = name
        self.namespaces, self.max_steps, self.limits = namespaces, max_steps, limits
        self.entities: Entities = entities
        self.subscriptions: dict[int, LocalSubscription] = {}
        self.received: MutableMapping[str, Advertisement] = {}
        self.made: MutableMapping[str, Advertisement] = {}
        self.untrusted: set[str] = set()
        self.labels = LabelMemory(namespaces)
        self.structures = Structures(limits)
        # Its mediator, if there is one, holds the router's mappings.
        self.mediated = MediatedReader(limits=limits, entities=entities)
        self.aggregations: dict[str, ChangingDerived] = {}
        self._entries: dict[str, Int32s] = {}
        self._binders: dict[str, Binder] = {}
        self._numbers: dict[str, dict[int, int]] = {}
        self._open_table(RoutingTable(namespaces, max_steps, limits) if table is None else table)

    def _open_table(self, table: RoutingTable) -> None:
        self.table = table
        self._reader = Reader(self.table.patterns.names, self.limits, self.entities)

    # Changes.

    def subscribe(self, id: int, pattern: Pattern, subscriber: str) -> None:
        """Add a local subscription."""
        target = Target(subscriber, is_router=False)
        self.subscriptions[id] = LocalSubscription(self.table.enter([pattern], target)[0], target)

    def subscribe_many(self, patterns: dict[int, Pattern], subscriber_of: dict[int, str]) -> None:
        """Add local subscriptions, by id."""
        targets = {name: Target(name, is_router=False) for name in dict.fromkeys(subscriber_of.values())}
        wanting = [targets[subscriber_of[id]] for id in patterns]
        entries = self.table.enter_each(list(patterns.values()), wanting)
        for id, entry, target in zip(patterns, entries, wanting, strict=True):
            self.subscriptions[id] = LocalSubscription(entry, target)

    def unsubscribe(self, id: int) -> None:
        """Remove a local subscription."""
        gone = self.subscriptions.pop(id)
        self.table.release([gone.entry], gone.target)
        self._tidy()

    def receive(self, advertisement: Advertisement) -> None:
        """Replace the advertisement of a neighbour."""
        neighbour = advertisement.downstream
        target = Target(neighbour, is_router=True)
        old = self.received[neighbour].aggregates if neighbour in self.received else ()
        entry_of = dict(zip(old, self.entries_of(neighbour).tolist(), strict=True))
        fresh = [pattern for pattern in dict.fromkeys(advertisement.aggregates) if pattern not in entry_of]
        gone = entry_of.keys() - set(advertisement.aggregates)
        entry_of |= zip(fresh, self.table.enter(fresh, target), strict=True)
        self._entries[neighbour] = _column(entry_of[pattern] for pattern in advertisement.aggregates)
        self.table.release([entry_of[pattern] for pattern in gone], target)
        self.received[neighbour] = advertisement
        self._binders.pop(neighbour, None)
        self._numbers.pop(neighbour, None)
        self._tidy()

    def binder(self, neighbour: str) -> Binder:
        """The binder of the simple aggregates that a neighbour advertised."""
        if neighbour not in self._binders:
            received = self.received[neighbour]
            self._binders[neighbour] = Binder(received.aggregates, received.simple, self.table.patterns)
        return self._binders[neighbour]

    def know_entries(self, neighbour: str, entries: Int32s) -> None:
        """Restore the entries of a neighbour's aggregates from a snapshot."""
        self._entries[neighbour] = entries

    def entries_of(self, neighbour: str) -> Int32s:
        """The table's entry of each aggregate that a neighbour advertised, by the aggregate's number."""
        return self._entries[neighbour] if neighbour in self._entries else _column(())

    def numbers_of(self, neighbour: str) -> dict[int, int]:
        """The number of a neighbour's aggregate by the table's entry."""
        if neighbour not in self._numbers:
            self._numbers[neighbour] = {
                entry: number for number, entry in enumerate(self.entries_of(neighbour).tolist())
            }
        return self._numbers[neighbour]

    def _tidy(self) -> None:
        """Build a new table when most entries of this one are idle."""
        if not self.table.is_wasteful:
            return
        old, held = self.table, self.subscriptions
        self._open_table(RoutingTable(self.namespaces, self.max_steps, self.limits, old.patterns.tuning))
        self._binders.clear()
        self._numbers.clear()
        self.subscriptions = {}
        for id, local in held.items():
            self.subscribe(id, old.patterns.pattern(local.entry), local.target.name)
        for neighbour, advertisement in self.received.items():
            distinct = list(dict.fromkeys(advertisement.aggregates))
            entry_of = dict(zip(distinct, self.table.enter(distinct, Target(neighbour, is_router=True)), strict=True))
            self._entries[neighbour] = _column(entry_of[pattern] for pattern in advertisement.aggregates)
        to = old.moved_to(self.table)
        self.aggregations.clear()
        self.made = {neighbour: advertisement.moved(to) for neighbour, advertisement in self.made.items()}

    # Documents.

    def read(self, data: bytes, *, text: bool) -> DocumentBatch:
        """A document as a batch; `text`: the document is UTF-8, whatever encoding it declares.

        A document with a mapping, or with a reference to a mapping that the router holds, is read in the global schema.
        """
        if is_packed(data):
            return self.mediated.read(data, text=text)
        return self._reader.scanner.read([data], encodings={0: "utf-8"} if text else {})


def _column(numbers: Iterable[int]) -> Int32s:
    return np.fromiter(numbers, dtype=np.int32)
