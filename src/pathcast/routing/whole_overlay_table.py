"""The whole overlay as one table: one match finds the subscribers, routers and links of a document.

Under policy `L` the work of a router depends only on its own table, and all routers see the same document. So one table
has the distinct patterns of all routers; its targets are pairs of a router and a target there: a subscriber, or a
neighbour that the document is forwarded to.

    patterns of r1, r2, …  ──▶ one table ──match──▶ (r1 → r2), (r1 → r3), (r3: ada), …  ──▶ visits, from the source down

A document reaches a router if all routers before it forward it; that follows from the pairs without another match, and
so do the messages: headers are those of `L`.

Invariant: visits are those of `BulkRouting.handle`, router by router. A document that exceeds the limits in the one
table has an error, and is left to the routers themselves.
Cost: one match per document, regardless of the number of routers, and some nanoseconds per pair.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.errors import PathcastError
from pathcast.kernels import Bools, Int32s, Int64s

from .overlay import Overlay
from .table.routing_table import RoutingTable, Target, View

_BETWEEN = "\0"


@dataclass(frozen=True, slots=True)
class Pair:
    """A router, and a subscriber there or (`is_link`) a neighbour."""

    router: str
    target: str
    is_link: bool


class RouterVisits(NamedTuple):
    """The routers that documents reached: visit `i` is document `documents[i]` at router number `routers[i]`.

    The document was delivered to `names[subscribers[offsets[i] : offsets[i + 1]]]`. Visits are ordered by document, and
    for one document from the source down. `errors` has the documents without visits.
    """

    documents: Int64s
    routers: Int64s
    offsets: Int64s
    subscribers: Int64s
    names: list[str]
    order: list[str]  # routers by number
    errors: dict[int, PathcastError]


def whole_table(overlay: Overlay, source: str) -> RoutingTable:
    """One table of all routers, for documents that are published at `source`."""
    rooted = overlay.topology.rooted(source)
    names = overlay.topology.nodes
    first = overlay.router(source)
    table = RoutingTable(first.namespaces, first.max_steps, overlay.limits)
    for number in rooted.order.tolist():
        router = overlay.router(names[number])
        upstream = names[rooted.parent[number]] if rooted.parent[number] >= 0 else None
        wanted = list(router.table.wanted_by(upstream))
        patterns = [router.table.patterns.pattern(entry) for entry, _ in wanted]
        table.enter_each(patterns, [_paired(router.name, target) for _, target in wanted])
    return table


def _paired(router: str, target: Target) -> Target:
    return Target(f"{router}{_BETWEEN}{target.name}", target.is_router)


def pair_of(target: Target) -> Pair:
    """The pair of a target of the whole table."""
    router, _, name = target.name.partition(_BETWEEN)
    return Pair(router, name, target.is_router)


class WholeOverlay:
    """Routes batches of documents through all routers at once."""

    def __init__(self, table: RoutingTable, routers: list[str]) -> None:
        """`routers` are in the order in which documents reach them, the source first."""
        self.table, self.routers = table, routers
        self.view: View = table.view(None)
        number = {name: place for place, name in enumerate(routers)}
        pairs = [pair_of(target) for target in self.view.targets]
        self._router_of = np.array([number[pair.router] for pair in pairs], dtype=np.int64)
        self._links = [
            (place, number[pair.router], number[pair.target]) for place, pair in enumerate(pairs[: self.view.routers])
        ]
        self._links.sort(key=lambda link: link[2])
        self.names = [pair.target for pair in pairs[self.view.routers :]]

    def visits(self, batch: DocumentBatch, engine: str, *, links: bool) -> RouterVisits:
        """The visits and deliveries of a batch's documents; with `links` also visits without deliveries."""
        unreadable = set(batch.errors)
        offsets, entries = self.table.engine(engine).match_batch(batch)
        errors = {number: batch.errors.pop(number) for number in batch.errors.keys() - unreadable}
        chosen = np.ones(len(batch), dtype=np.bool_)
        chosen[[*unreadable, *errors]] = False
        edges, pairs = self.view.targets_of_each(offsets, entries, chosen)
        documents = np.repeat(np.arange(len(batch), dtype=np.int64), np.diff(edges))
        reached = self._reached(documents, pairs, chosen)
        local = pairs >= self.view.routers
        pairs, documents = pairs[local], documents[local]
        routers = self._router_of[pairs]
        came = reached[routers, documents]
        if not came.all():
            pairs, documents, routers = pairs[came], documents[came], routers[came]
        return self._ordered(documents, routers, pairs, reached, errors, links=links)

    def _reached(self, documents: Int64s, pairs: Int32s, chosen: Bools) -> Bools:
        """For each router and document whether the document reached it."""
        reached = np.zeros((len(self.routers), len(chosen)), dtype=np.bool_)
        reached[0] = chosen
        sent = pairs < self.view.routers
        pairs, documents = pairs[sent], documents[sent]
        order = np.argsort(pairs, kind="stable")
        pairs, documents = pairs[order], documents[order]
        begins = np.searchsorted(pairs, np.arange(self.view.routers + 1))
        for link, router, neighbour in self._links:  # routers come after their upstream router
            copies = documents[begins[link] : begins[link + 1]]
            reached[neighbour, copies] = reached[router, copies]
        return reached

    def _ordered(
        self,
        documents: Int64s,
        routers: Int64s,
        pairs: Int32s,
        reached: Bools,
        errors: dict[int, PathcastError],
        *,
        links: bool,
    ) -> RouterVisits:
        count = len(self.routers)
        place = documents * count + routers
        order = np.lexsort((pairs, place))
        if links:
            at, where = np.nonzero(reached.T)
            visits = at * count + where
        else:
            visits = np.unique(place)
        offsets = np.searchsorted(place[order], np.append(visits, np.iinfo(np.int64).max))
        subscribers = (pairs[order] - self.view.routers).astype(np.int64)
        return RouterVisits(visits // count, visits % count, offsets, subscribers, self.names, self.routers, errors)
