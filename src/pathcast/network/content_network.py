"""The content network: subscribers register filters at nodes; a published message reaches all matching subscribers.

    network = ContentNetwork.build(topology, kind="cbn", payloads=True)
    network.register("r5", compare("per", ">", 45), "ada")
    trace = network.publish(Message({"symbol": "GOOG", "per": 52.1}))

Filters are evaluated on the message without its payload (§2.1 of the select-join paper). `kind` is "cbn"
(`forwarding_table_node.py`) or "can" (`can_node.py`); `payloads` makes the network a CN* (`publication_forwarder.py`).

Invariant: a subscriber gets a message exactly once if one of its filters matches, otherwise never; also with faults.
Cost: see the files named above; publishing is single-threaded and not thread-safe.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from pathcast.errors import MessageError, PathcastError, TopologyError
from pathcast.messages import Filter, Message, Term
from pathcast.transmission import Topology, Underlay

from .content_addressable.can_coordinate_space import Space
from .content_addressable.can_membership import AddressSpace
from .content_addressable.filter_point_transformation import Probe, Shaped
from .content_addressable.zone_boxes import Box
from .fault_injection import Faults
from .filter_registrations import Made, Registrations, filter_of
from .link_traffic import Traffic
from .packets import Fetch, Letter, Publication, joined, units_of
from .payload_cache_and_directory import PayloadLimits, UnderWay
from .payload_home_nodes import Homes
from .publication_forwarder import Forwarder, Routing
from .publication_trace import Delivery, Registration, Trace
from .simulated_packet_delivery import Distances, Transit
from .tree.announcement_tree import ContentTree

Node = str | int
KINDS = ("cbn", "can")
PATIENCE = 2.0


class Substrate(Protocol):
    """The nodes of one kind of network, and the registration of filters at them."""

    @property
    def nodes(self) -> Sequence[Routing]: ...

    def require(self, node: int) -> None: ...

    def header(self, node: int, probe: Probe) -> tuple[Box, ...]: ...

    def register(self, node: int, rows: Sequence[tuple[int, Shaped, int]], *, together: bool = False) -> None: ...

    def unregister(self, node: int, wanted: int, shaped: Shaped, registration: int) -> None: ...


class ContentNetwork:
    """A content network; `build` creates one.

    >>> from pathcast.messages import Message, compare
    >>> network = pathcast.network.ContentNetwork.build(pathcast.transmission.Topology.tree(levels=3, fanout=2))
    >>> registration = network.register("r5", compare("per", ">", 50), "ada")
    >>> network.publish(Message({"per": 52.1})).subscribers, network.publish(Message({"per": 3})).links
    (['ada'], {})
    """

    def __init__(
        self,
        topology: Topology,
        substrate: Substrate,
        traffic: Traffic,
        *,
        limits: PayloadLimits | None,
        plain: Iterable[Node],
        underlay: Underlay | None,
    ) -> None:
        self.topology = topology
        self.substrate = substrate
        self.traffic = traffic
        self.plain = frozenset(topology.number(node) for node in plain)
        self._transit = Transit(Distances(topology, underlay), self._receive)
        self.forwarders = [
            Forwarder(
                number,
                routing,
                self._transit,
                self._deliver,
                self._finished,
                None if number in self.plain else limits,
                starred_network=limits is not None,
            )
            for number, routing in enumerate(substrate.nodes)
        ]
        self._books = Registrations(topology)
        self.registrations = self._books.all
        self._payloads = UnderWay()
        members = substrate.members if isinstance(substrate, AddressSpace) else range(len(self.forwarders))
        self._homes = Homes((number for number in members if number not in self.plain), limits)
        self._published = 0
        self._outbox: dict[int, Letter] = {}
        self._seen: set[tuple[int, Hashable]] = set()
        self._deliveries: list[Delivery] = []
        self._begun: dict[int, float] = {}

    @classmethod
    def build(
        cls,
        topology: Topology,
        kind: str = "cbn",
        *,
        payloads: bool | PayloadLimits = False,
        plain: Iterable[Node] = (),
        underlay: Underlay | None = None,
        space: Space | None = None,
        members: Iterable[Node] | None = None,
        sample: Iterable[Filter | Term] = (),
        seed: int = 0,
    ) -> "ContentNetwork":
        """A network over the nodes of a topology.

        payloads: True, or limits, for a CN*, which sends no payload twice over a link; `plain` names nodes that do not
        support CN*. underlay: the physical network, for packets between nodes without a link.
        For a CAN: `space` has its axes; `members` are the nodes that join, in order (default: all, the root first);
        `sample` has typical filters, so that zones are halved where filters are many; `seed` is for the join points.
        """
        if kind not in KINDS:
            raise TopologyError(f"unknown network kind {kind!r}; use one of {', '.join(KINDS)}")
        topology.require_connected()
        if not isinstance(payloads, bool | PayloadLimits):
            raise TopologyError(f"payloads must be True, False or PayloadLimits(…), got {payloads!r}")
        limits = payloads if isinstance(payloads, PayloadLimits) else PayloadLimits() if payloads else None
        traffic = Traffic(topology)
        wanted = [filter_of(one) for one in sample]
        if kind == "cbn":
            if space is not None or members is not None or wanted:
                given = {"space": space is not None, "members": members is not None, "sample": bool(wanted)}
                names = ", ".join(name for name, is_given in given.items() if is_given)
                raise TopologyError(f"kind 'cbn' does not support {names}; omit them, or use kind='can'")
            substrate: Substrate = ContentTree(topology, traffic)
        else:
            substrate = _addressed(topology, traffic, space, members, wanted, seed)
        return cls(topology, substrate, traffic, limits=limits, plain=plain, underlay=underlay)

    # Subscriptions.

    def register(self, node: Node, filter: Filter | Term, subscriber: Hashable = None) -> Registration:  # noqa: A002
        """Register a filter for a subscriber at a node: the subscriber gets all messages that the filter matches.

        A subscriber gets a message once, even if several of its filters match; None is one subscriber.
        """
        return self.register_many([(node, filter, subscriber)])[0]

    def register_many(self, rows: Iterable[tuple[Node, Filter | Term, Hashable]]) -> list[Registration]:
        """Register many filters, which is faster than one by one: (node, filter, subscriber) each."""
        made = self._books.add(rows)
        by_node: dict[int, list[Made]] = {}
        for one in made:
            by_node.setdefault(self.topology.number(one[0].node), []).append(one)
        self._place(by_node, together=False)
        return [registration for registration, _ in made]

    def register_together(
        self, node: Node, filters: Iterable[Filter | Term], subscriber: Hashable = None
    ) -> list[Registration]:
        """Register the filters of one subscription; in a CAN they share one point, so that one node handles them."""
        made = self._books.add((node, one, subscriber) for one in filters)
        self._place({self.topology.number(node): made}, together=True)
        return [registration for registration, _ in made]

    def _place(self, parts: Mapping[int, Sequence[Made]], *, together: bool) -> None:
        """Add filters to nodes: all of them, or none if one is rejected."""
        waiting = dict(parts)
        try:
            for number, part in parts.items():
                self.substrate.register(number, [row for _, row in part], together=together)
                del waiting[number]
        except PathcastError:
            for number, part in parts.items():
                for registration, _ in part:
                    (self._books.remove if number in waiting else self.unregister)(registration)
            raise

    def unregister(self, registration: Registration | int) -> None:
        """Remove a registration."""
        found = self._books.find(registration)
        self.substrate.unregister(self.topology.number(found.node), *self._books.remove(found), found.number)

    # Members of a CAN.

    def join(self, node: Node, contact: Node | None = None) -> None:
        """Let a node join a CAN through a member."""
        number = self.topology.number(node)
        self._addresses().join(number, contact=None if contact is None else self.topology.number(contact))
        self.forwarders[number].down = False
        if number not in self.plain:
            self._homes.add(number)

    def leave(self, node: Node) -> None:
        """Let a node leave a CAN gracefully; its zones and filters pass to neighbours."""
        number = self.topology.number(node)
        self._addresses().leave(number)
        self.forwarders[number].crash()
        self._homes.discard(number)

    def fail(self, node: Node) -> None:
        """Remove a node of a CAN that has failed permanently; its backup takes its place."""
        number = self.topology.number(node)
        self._addresses().fail(number)
        self.forwarders[number].crash()
        self._homes.discard(number)

    def _addresses(self) -> AddressSpace:
        if not isinstance(self.substrate, AddressSpace):
            raise TopologyError(
                "join, leave, fail and Crash(…, down=None) need a CAN, but this network has kind 'cbn'; build it with "
                "kind='can'"
            )
        return self.substrate

    # Messages.

    def publish(self, message: Message, at: Node | None = None, *, faults: Faults | None = None) -> Trace:
        """Publish a message at a node (default: the root). `faults` makes links and nodes fail."""
        return self.publish_all([message], at, faults=faults)

    def publish_all(
        self, messages: Iterable[Message], at: Node | None = None, *, faults: Faults | None = None, gap: float = 0.0
    ) -> Trace:
        """Publish messages `gap` seconds apart, without waiting until one has reached all before the next."""
        origin = self.topology.number(self.topology.root if at is None else at)
        self.substrate.require(origin)
        crashes = [(self.topology.number(one.node), one) for one in (faults.crashes if faults else ())]
        if any(one.down is None for _, one in crashes):
            self._addresses()
        given = [_message(message) for message in messages]
        if gap < 0:
            raise TopologyError(f"gap must be at least 0 seconds, got {gap}")
        transit = self._transit
        # Restart the random numbers of the faults from their seed, so that every run has the same faults.
        transit.faults = None if faults is None else replace(faults)
        transit.traffic = Traffic(self.topology)
        begin = transit.now
        self._deliveries = []
        patience = None if faults is None else PATIENCE
        if self.forwarders[0].patience != patience:
            for forwarder in self.forwarders:
                forwarder.patience = patience
        for number, crash in crashes:
            self._schedule(number, crash.at, crash.down)
        for place, message in enumerate(given):
            transit.after(place * gap, lambda message=message: self._inject(origin, message))  # type: ignore[misc]
        try:
            transit.run()
        except BaseException:
            self._abandon()
            raise
        if faults is None:
            self._finish_all()
        self._seen.clear()
        self._begun.clear()
        self.traffic.add(transit.traffic)
        return Trace(tuple(self._deliveries), transit.traffic, transit.now - begin)

    def _abandon(self) -> None:
        """Discard the packets and jobs of an aborted run, so that they do not affect the next run."""
        self._transit.clear()
        self._finish_all()
        self._seen.clear()
        self._begun.clear()
        for number, forwarder in enumerate(self.forwarders):
            forwarder.crash()
            self._rise(number)

    def _rise(self, number: int) -> None:
        """Restart a node, unless it is no longer a member."""
        addresses = self.substrate if isinstance(self.substrate, AddressSpace) else None
        self.forwarders[number].down = addresses is not None and number not in addresses.members

    def _inject(self, origin: int, message: Message) -> None:
        """Send a message from the server to its node; in a reliable network, retry until it is acknowledged."""
        units = units_of(message)
        letter = Letter.of(self._published, origin, message, units)
        self._published += 1
        self._payloads.begin(units)
        self._begun[letter.number] = self._transit.now
        self._outbox[letter.number] = letter
        self._hand_over(letter, units, 0)

    def _hand_over(self, letter: Letter, units: dict[bytes, Message], attempt: int) -> None:
        if letter.number not in self._outbox:
            return
        forwarder = self.forwarders[self._entrance(letter.origin)]
        header = self.substrate.header(forwarder.number, letter.probe)
        copy = Publication(letter, units, None, header, 0, (-1, 0, letter.number))
        if forwarder.number != letter.origin:
            self._transit.traffic.carry(
                letter.origin, forwarder.number, copy.size(self.topology.nodes, starred=False), "message"
            )
        forwarder.receive(None, copy)
        if forwarder.patience is not None:
            wait = forwarder.patience * 2 ** min(attempt, 6)
            self._transit.after(wait, lambda: self._hand_over(letter, units, attempt + 1))

    def _entrance(self, origin: int) -> int:
        """The node that the server sends messages to: its own, or the nearest member if that has failed permanently."""
        if not isinstance(self.substrate, AddressSpace) or origin in self.substrate.members:
            return origin
        distances = self._transit.distances
        return min(self.substrate.members, key=lambda member: (distances.between(origin, member)[0], member))

    def _finished(self, letter: Letter) -> None:
        """End a publication that has reached all; without acknowledgements, this is when no packet is in transit."""
        if self._outbox.pop(letter.number, None) is not None:
            self._payloads.end(letter.units)

    def _finish_all(self) -> None:
        for letter in list(self._outbox.values()):
            self._finished(letter)

    def _schedule(self, node: int, at: float, down: float | None) -> None:
        def rise() -> None:
            self._rise(node)

        def noticed() -> None:
            if node in self._addresses().members and len(self._addresses().members) > 1:
                self.fail(node)
            else:
                rise()

        def fall() -> None:
            self.forwarders[node].crash()
            self._transit.after(PATIENCE if down is None else down, noticed if down is None else rise)

        self._transit.after(at, fall)

    def _receive(self, target: int, source: int, packet: object) -> None:
        if isinstance(packet, Fetch) and packet.server:
            found = self._payloads.get(packet.payload)
            whom, answer = self._homes.answer(packet, source, found, self._published)
            self._transit.send(target, whom, answer, answer.size, "payload")
        else:
            self.forwarders[target].receive(source, packet)

    def _deliver(self, node: int, registrations: list[int], packet: Publication, units: dict[bytes, Message]) -> None:
        letter, payload = packet.letter, joined(units)
        seconds = self._transit.now - self._begun[letter.number]
        bare = letter.probe.message
        assert isinstance(bare, Message)
        name, number, hops, seen = self.topology.nodes[node], letter.number, packet.hops, self._seen
        for one in registrations:
            found = self.registrations.get(one)
            if found is None or (key := (number, found.subscriber)) in seen:
                continue
            seen.add(key)
            self._deliveries.append(Delivery(found.subscriber, name, seconds, hops, number, bare, payload))


def _addressed(
    topology: Topology,
    traffic: Traffic,
    space: Space | None,
    members: Iterable[Node] | None,
    sample: Iterable[Filter],
    seed: int,
) -> AddressSpace:
    """A CAN whose members have joined one by one, with a sample of filters as the load."""
    if not isinstance(space, Space):
        raise TopologyError(
            f"space must be a Space for kind 'can', such as Space.of(Axis('per', 0, 100)), got {space!r:.60}"
        )
    found = AddressSpace(topology, traffic, space, seed=seed)
    root = topology.number(topology.root)
    others = [topology.number(node) for node in (topology.nodes if members is None else members)]
    order = [root, *(number for number in others if number != root)] if members is None else others
    if not order:
        raise TopologyError("a CAN needs at least one member, but members is empty; name some nodes, or omit members")
    found.join(order[0])
    points = found.weigh(order[0], sample)
    for number in order[1:]:
        found.join(number, contact=order[0], point=found.draw(points))
    found.unweigh()
    return found


def _message(given: Message) -> Message:
    if not isinstance(given, Message):
        raise MessageError(f"a publication must be a Message, such as Message({{'per': 46}}), got {given!r:.80}")
    return given
