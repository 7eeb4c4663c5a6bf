"""The whole overlay as one table: one match finds the subscribers, routers and links of a document.

Under policies that forward late, a router sends a document to whatever its own table says, and all routers see the same
document. So one table has the distinct patterns of all routers; its targets are pairs of a router and a target there: a
subscriber, or a neighbour that the document is forwarded to.

    patterns of r1, r2, …  ──▶ one table ──match──▶ (r1 → r2), (r1 → r3), (r3: ada), …  ──▶ visits, from the source down

A document reaches a router if all routers before it forward it; that follows from the pairs without another match. The
headers of messages are those of `L`, or follow from the entries (`batch/link_annotations.py`).

Invariant: visits are those of `BulkRouting.handle`, router by router. A document that exceeds the limits in the one
table has an error, and is left to the routers themselves.
Cost: one match per document, regardless of the number of routers, and some nanoseconds per pair.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.errors import PathcastError
from pathcast.kernels import Bools, Int32s, Int64s, Matrix
from pathcast.store import offsets_of

from .overlay import Overlay
from .table.routing_table import RoutingTable, Target, View

_BETWEEN = "\0"


@dataclass(frozen=True, slots=True)
class Pair:
    """A router, and a subscriber there or (`is_link`) a neighbour."""

    router: str
    target: str
    is_link: bool


class OverlayMatches(NamedTuple):
    """The matches of a batch in the whole table.

    Those of document `i` are `entries[offsets[i] : offsets[i + 1]]`; `pairs` are their targets, ascending for each of
    `documents`. `reached[router, document]` by the routers' numbers; `errors` has documents that reached none.
    """

    offsets: Int64s
    entries: Int32s
    documents: Int64s
    pairs: Int32s
    reached: Matrix[Bools]
    errors: dict[int, PathcastError]


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


class Owners(NamedTuple):
    """The routers of each entry of the whole table, by number, with their own entries: from `begins[entry]` on."""

    begins: Int64s
    routers: Int32s
    entries: Int32s

    @classmethod
    def of(cls, triples: Int64s, count: int) -> "Owners":
        """The owners from distinct rows of an entry (of `count`), a router and the router's entry."""
        ordered = np.unique(triples.reshape(-1, 3), axis=0)
        begins = offsets_of(np.bincount(ordered[:, 0], minlength=count))
        return cls(begins, ordered[:, 1].astype(np.int32), ordered[:, 2].astype(np.int32))


def whole_table(overlay: Overlay, source: str) -> tuple[RoutingTable, Owners]:
    """One table of all routers, for documents that are published at `source`, and the owners of its entries."""
    rooted = overlay.topology.rooted(source)
    names = overlay.topology.nodes
    first = overlay.router(source)
    table = RoutingTable(first.namespaces, first.max_steps, overlay.limits)
    owners = [np.empty((0, 3), dtype=np.int64)]
    for place, number in enumerate(rooted.order.tolist()):
        router = overlay.router(names[number])
        upstream = names[rooted.parent[number]] if rooted.parent[number] >= 0 else None
        wanted = list(router.table.wanted_by(upstream))
        patterns = [router.table.patterns.pattern(entry) for entry, _ in wanted]
        entries = table.enter_each(patterns, [_paired(router.name, target) for _, target in wanted])
        own = [entry for entry, _ in wanted]
        owners.append(np.column_stack([entries, np.full(len(own), place), own]).astype(np.int64))
    return table, Owners.of(np.concatenate(owners), len(table))


def _paired(router: str, target: Target) -> Target:
    return Target(f"{router}{_BETWEEN}{target.name}", target.is_router)


def pair_of(target: Target) -> Pair:
    """The pair of a target of the whole table."""
    router, _, name = target.name.partition(_BETWEEN)
    return Pair(router, name, target.is_router)


class WholeOverlay:
    """Routes batches of documents through all routers at once."""

    def __init__(self, table: RoutingTable, routers: list[str], owners: Owners) -> None:
        """`routers` are in the order in which documents reach them, the source first; `owners` has their numbers."""
        self.table, self.routers, self.owners = table, routers, owners
        self.view: View = table.view(None)
        number = {name: place for place, name in enumerate(routers)}
        pairs = [pair_of(target) for target in self.view.targets]
        self._router_of = np.array([number[pair.router] for pair in pairs], dtype=np.int64)
        self._links = [
            (place, number[pair.router], number[pair.target]) for place, pair in enumerate(pairs[: self.view.routers])
        ]
        self._links.sort(key=lambda link: link[2])
        self.names = [pair.target for pair in pairs[self.view.routers :]]

    def match(self, batch: DocumentBatch, engine: str) -> OverlayMatches:
        """Match the documents of a batch, and find the routers that they reach."""
        unreadable = set(batch.errors)
        offsets, entries = self.table.engine(engine).match_batch(batch)
        errors = {number: batch.errors.pop(number) for number in batch.errors.keys() - unreadable}
        chosen = np.ones(len(batch), dtype=np.bool_)
        chosen[[*unreadable, *errors]] = False
        edges, pairs = self.view.targets_of_each(offsets, entries, chosen)
        documents = np.repeat(np.arange(len(batch), dtype=np.int64), np.diff(edges))
        return OverlayMatches(offsets, entries, documents, pairs, self._reached(documents, pairs, chosen), errors)

    def visits(self, found: OverlayMatches, *, links: bool) -> RouterVisits:
        """The visits and deliveries of the documents; with `links` also visits without deliveries."""
        pairs, documents = found.pairs, found.documents
        local = pairs >= self.view.routers
        pairs, documents = pairs[local], documents[local]
        routers = self._router_of[pairs]
        came = found.reached[routers, documents]
        if not came.all():
            pairs, documents, routers = pairs[came], documents[came], routers[came]
        return self._ordered(documents, routers, pairs, found, links=links)

    def _reached(self, documents: Int64s, pairs: Int32s, chosen: Bools) -> Matrix[Bools]:
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
        found: OverlayMatches,
        *,
        links: bool,
    ) -> RouterVisits:
        count = len(self.routers)
        place = documents * count + routers
        order = np.lexsort((pairs, place))
        if links:
            at, where = np.nonzero(found.reached.T)
            visits = at * count + where
        else:
            visits = np.unique(place)
        offsets = np.searchsorted(place[order], np.append(visits, np.iinfo(np.int64).max))
        subscribers = (pairs[order] - self.view.routers).astype(np.int64)
        return RouterVisits(
            visits // count, visits % count, offsets, subscribers, self.names, self.routers, found.errors
        )
