"""The overlay: routers joined by links; subscribers subscribe at routers, and documents are published at a router.

    overlay = Overlay.tree(levels=4, fanout=2)
    overlay.subscribe(router="r7", xpath="/nitf//p", subscriber="ada")
    overlay.advertise(keep=0.25)
    overlay.publish(document, policy="L+s-sd").deliveries

Routers run in this process, one after another. They do the same work, and send the same bytes, as on separate machines,
and their work is timed; the transmission package models the time on links.

Invariant: for every policy and engine, a document reaches exactly the subscribers that one matcher over all
subscriptions would return, at the routers where they subscribed. Advertisements are updated before anything is
published.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any

from pathcast.documents import Document, Entities, Limits, Readable, content
from pathcast.errors import MappingError, PathcastError
from pathcast.matching import engine_class, engines
from pathcast.matching.subscriptions import check_namespaces
from pathcast.mediation import Mediator
from pathcast.mediation.mappings import original
from pathcast.patterns import Namespaces, Pattern, parse
from pathcast.patterns.parsing import MAX_STEPS
from pathcast.transmission import Ledger, Topology

from .advertising.subscription_advertisement_propagation import Advertising
from .annotation_header_codec import encode, split
from .annotations.document_annotations import NOTHING
from .document_forwarding import DocumentForwarding
from .document_route_report import Delivery, Report, RouterReport
from .forwarding_policy import Policy
from .router import Router
from .router_processing_time import Clock

Receiver = Callable[[Delivery, bytes], None]


class Overlay:
    """Routers and links.

    A topology with cycles is broken by a spanning tree of shortest paths from its root. `untrusted` links, as pairs of
    names (sender, receiver), may carry annotations that lie: they can cost time but no delivery. With
    `entities="expand"` routers read documents whose DOCTYPE declares internal entities, within `limits.amplification`.

    >>> overlay = pathcast.routing.Overlay.tree(levels=2, fanout=2)
    >>> overlay.subscribe("r3", "//title", "ada")
    1
    >>> [(each.subscriber, each.router) for each in overlay.publish("<news><title/></news>", "L+s").deliveries]
    [('ada', 'r3')]
    """

    def __init__(
        self,
        topology: Topology,
        *,
        namespaces: Namespaces = None,
        limits: Limits | None = None,
        entities: Entities = "refuse",
        untrusted: Iterable[tuple[str, str]] = (),
        mediator: Mediator | None = None,
    ) -> None:
        check_namespaces(namespaces)
        if not isinstance(topology, Topology):
            raise TypeError(f"topology must be a Topology, such as Topology.tree(…), got {topology!r}")
        self.topology = topology if topology.is_tree else topology.spanning_tree()
        self.limits = Limits.given(limits)
        self.entities: Entities = entities
        self.namespaces = namespaces
        self._routers = {
            name: Router(name, namespaces, MAX_STEPS, self.limits, entities=entities)
            for name in map(self.topology.nodes.__getitem__, self.topology.rooted().order.tolist())
        }
        self._advertising = Advertising(self.topology, self._routers)
        self.ledger = Ledger(self.topology)  # the traffic of documents on the links
        self._router_of: dict[int, str] = {}
        self._next_id = 1
        self._lock = threading.RLock()
        for sender, receiver in untrusted:
            self.distrust(sender, receiver)
        self.mediator = mediator
        for router in self._routers.values():
            router.mediated.mediator = mediator

    @classmethod
    def tree(
        cls,
        levels: int,
        fanout: int = 2,
        *,
        bandwidth: str | float = "10MB/s",
        latency: str | float = "0ms",
        **options: Any,
    ) -> "Overlay":
        """A complete tree of routers, r1 its root."""
        return cls(Topology.tree(levels, fanout, bandwidth=bandwidth, latency=latency), **options)

    @classmethod
    def from_graph(
        cls,
        graph: Any,
        *,
        bandwidth: str | float = "10MB/s",
        latency: str | float = "0ms",
        root: Any = None,
        **options: Any,
    ) -> "Overlay":
        """The routers and links of a networkx graph; edges may have attributes `bandwidth` and `latency`."""
        return cls(Topology.from_graph(graph, bandwidth=bandwidth, latency=latency, root=root), **options)

    @classmethod
    def from_file(cls, file: str | PathLike[str], **options: Any) -> "Overlay":
        """The topology that a TOML file describes."""
        return cls(Topology.from_file(file), **options)

    @property
    def routers(self) -> list[str]:
        """The names of all routers, the root first, each after its parent."""
        return list(self._routers)

    @property
    def root(self) -> str:
        """The router where documents are published by default."""
        return self.topology.root

    def __len__(self) -> int:
        """The number of subscriptions."""
        return len(self._router_of)

    def __repr__(self) -> str:
        return f"<Overlay: {len(self._routers):,} routers, {len(self):,} subscriptions>"

    def router(self, name: str) -> Router:
        """The router with this name."""
        return self._routers[self.topology.name(name)]

    # Subscriptions.

    def subscribe(self, router: str, xpath: str, subscriber: str) -> int:
        """Subscribe at a router; return the subscription's id."""
        pattern = parse(xpath, self.namespaces, max_steps=MAX_STEPS)
        with self._lock:
            at = self.router(router)
            id = self._next_id
            at.subscribe(id, pattern, subscriber)
            self._next_id += 1
            self._router_of[id] = at.name
            self._advertising.changed(at.name)
            return id

    def subscribe_many(self, router: str, xpaths: Sequence[str], subscribers: Sequence[str] | str) -> list[int]:
        """Add many subscriptions, for one subscriber or one per expression: all or none; return their ids."""
        if isinstance(xpaths, str):
            raise TypeError(f"xpaths must be a list of expressions, got {xpaths!r:.80}; use subscribe for a single one")
        names = [subscribers] * len(xpaths) if isinstance(subscribers, str) else list(subscribers)
        if len(names) != len(xpaths):
            raise ValueError(
                f"got {len(xpaths):,} expressions but {len(names):,} subscribers; give one subscriber per expression"
            )
        patterns = []
        for index, xpath in enumerate(xpaths):
            try:
                patterns.append(parse(xpath, self.namespaces, max_steps=MAX_STEPS))
            except PathcastError as error:
                error.index = index
                raise
        with self._lock:
            at = self.router(router)
            ids = list(range(self._next_id, self._next_id + len(patterns)))
            at.subscribe_many(dict(zip(ids, patterns, strict=True)), dict(zip(ids, names, strict=True)))
            self._next_id += len(ids)
            self._router_of.update(dict.fromkeys(ids, at.name))
            self._advertising.changed(at.name)
            return ids

    def subscribe_patterns(self, wanted: Iterable[tuple[str, Pattern, str]]) -> None:
        """Add parsed subscriptions: router, pattern and subscriber of each."""
        with self._lock:
            of_router: dict[str, tuple[dict[int, Pattern], dict[int, str]]] = {}
            for id, (router, pattern, subscriber) in enumerate(wanted, self._next_id):
                patterns, names = of_router.setdefault(self.router(router).name, ({}, {}))
                patterns[id], names[id] = pattern, subscriber
                self._next_id = id + 1
            for router, (patterns, names) in of_router.items():
                self._routers[router].subscribe_many(patterns, names)
                self._router_of.update(dict.fromkeys(patterns, router))
                self._advertising.changed(router)

    def unsubscribe(self, id: int) -> None:
        """Remove a subscription; `KeyError` for an unknown id."""
        with self._lock:
            name = self._router_of.pop(id, None)
            if name is None:
                raise KeyError(
                    f"unknown subscription id {id}: the subscription was never added or has been removed; give the id "
                    "of an existing subscription"
                )
            self._routers[name].unsubscribe(id)
            self._advertising.changed(name)

    def advertise(self, keep: float = 0.25) -> None:
        """Aggregate the subscriptions to this part of their steps, and advertise them upstream, from the leaves up.

        Later changes update the advertisements incrementally; call `advertise` again to aggregate from scratch.
        """
        if not 0.0 < keep <= 1.0:
            raise ValueError(f"keep must be above 0 and at most 1, got {keep}")
        with self._lock:
            self._advertising.advertise(keep, self.root)

    @property
    def keep(self) -> float:
        """The part of the steps that advertisements keep."""
        return self._advertising.keep

    def follow(self, source: str | None = None) -> str:
        """Update the advertisements on the way of documents from a router (default: the root); return its name."""
        with self._lock:
            name = self.router(self.root if source is None else source).name
            self._advertising.follow(name)
            return name

    def distrust(self, sender: str, receiver: str) -> None:
        """Make the link from `sender` to `receiver` untrusted: its annotations cannot cost a delivery."""
        self.topology.link(sender, receiver)
        self.router(receiver).untrusted.add(self.topology.name(sender))

    # Documents.

    def publish(
        self,
        document: Readable | Document,
        policy: str | Policy = "L+s-sd",
        engine: str | None = None,
        *,
        at: str | None = None,
        repeats: int = 1,
        receive: Receiver | None = None,
        schema: str | None = None,
        with_mapping: bool = True,
    ) -> Report:
        """Publish a document at a router (default: the root), and deliver it to its subscribers.

        `engine` may be any engine for policies that read to the end; `ES` and `adaptive` need one that runs as a stream
        (`streaming_engines`). Each step is timed `repeats` times, and the fastest counts. `receive` gets each delivery
        with the document's original bytes.

        A document with a publisher's `schema`, which the overlay's mediator knows, is matched in the global schema. Its
        mapping travels with the document; without one, routers use the mapping that they hold.
        """
        policy = Policy.read(policy)
        name = engine_for(policy, engine)
        if repeats < 1:
            raise ValueError(f"repeats must be at least 1, got {repeats}")
        data, text = _content(document, self.limits)
        if schema is not None:
            data = self._packed(data, schema, policy, with_mapping=with_mapping)
        with self._lock:
            source = self.router(self.root if at is None else at).name
            self._advertising.follow(source)
            errors = self._routers[source].read(data, text=text).errors
            if errors:
                raise errors[0]
            return self._publish(data, text, source, policy, name, Clock(repeats), receive)

    def _packed(self, data: bytes, schema: str, policy: Policy, *, with_mapping: bool) -> bytes:
        """The message for a document of another schema."""
        if self.mediator is None:
            raise MappingError(f"schema '{schema}' needs a mediator; create the overlay with mediator=…")
        if policy.forwarding != "L" or "t" in policy.positive:
            raise ValueError(
                f"policy '{policy}' does not support documents of another schema; use 'L' with any of +s +d -s -d"
            )
        return self.mediator.pack(data, schema, with_mapping=with_mapping)

    def _publish(
        self,
        data: bytes,
        text: bool,
        source: str,
        policy: Policy,
        engine: str,
        clock: Clock,
        receive: Receiver | None,
    ) -> Report:
        deliveries: list[Delivery] = []
        reports: dict[str, RouterReport] = {}
        first = encode(NOTHING, text=text).header + data
        waiting: list[tuple[float, str, str | None, bytes]] = [(0.0, source, None, first)]
        while waiting:
            waiting.sort(key=lambda each: each[0], reverse=True)
            arrived, name, sender, message = waiting.pop()
            report = reports[name] = RouterReport(arrived, len(message))
            outcome = DocumentForwarding(self._routers[name], sender, policy, engine, clock, report).run(message)
            if outcome.signal is not None and sender is not None:
                report.sent += len(outcome.signal)
                self.ledger.carry(name, sender, len(outcome.signal), "signal")
                self._routers[sender].structures.hear(name, outcome.signal)
            report.moments = {arrived + after: spent for after, spent in outcome.moments.items()}
            for subscriber, after in outcome.deliveries:
                deliveries.append(Delivery(subscriber, name, arrived + after))
                if receive is not None:
                    receive(deliveries[-1], original(split(message)[1]))
            for sending in outcome.sendings:
                copy = sending.header.header + split(message)[1]
                left = arrived + sending.after
                report.sent += len(copy)
                report.forwarded[sending.neighbour] = left
                header = len(sending.header.header)
                sizes = {"document": len(copy) - header, "annotations": header}
                self.ledger.carry(name, sending.neighbour, sizes)
                there = left + self.topology.time(name, sending.neighbour, len(copy))
                waiting.append((there, sending.neighbour, name, copy))
        deliveries.sort(key=lambda each: (each.time, each.router, each.subscriber))
        return Report(str(policy), engine, tuple(deliveries), reports)


def streaming_engines() -> tuple[str, ...]:
    """The names of the engines that run as a stream and can forward early."""
    return tuple(name for name in engines() if isinstance(engine_class(name), type) and _streams(name))


def _streams(name: str) -> bool:
    return hasattr(engine_class(name), "match_stream")


def engine_for(policy: Policy, engine: str | None) -> str:
    """The engine's name; the default is one that supports the policy."""
    needs_stream = policy.forwarding != "L"
    if engine is None:
        return streaming_engines()[0] if needs_stream else engines()[0]
    name = engine_class(engine).name
    if needs_stream and not _streams(name):
        raise ValueError(
            f"policy '{policy}' forwards early, but engine '{name}' reads a document to its end first; "
            f"use one of {', '.join(streaming_engines())}"
        )
    return name


def _content(document: Readable | Document, limits: Limits) -> tuple[bytes, bool]:
    """The document's original bytes, and whether they are text: UTF-8, whatever encoding they declare."""
    if isinstance(document, Document):
        if document.error is not None:
            raise document.error
        return document.data, document.index not in document.batch.encodings
    data, encoding = content(document, limits)
    return data, encoding is not None
