"""The content network: filters are registered at nodes, messages published at one, and all who match get them.

    network = ContentNetwork.build(topology, kind="cbn", payloads=True)
    network.register("r5", compare("per", ">", 45), "ada")
    trace = network.publish(Message({"symbol": "GOOG", "per": 52.1}))

Who gets a message is decided by evaluating the registered filters on it, without its payload (§2.1 of the select-join
paper). `kind` is "cbn" (`content.py`) or "can" (`addressing.py`); `payloads` makes it a CN* (`forwarder.py`).

Invariant: a subscriber gets a message once if one of its filters matches, and else not at all; with faults too.
Cost: as in the files named; publishing is single-threaded, and not safe for several threads at once.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol

from ..errors import TopologyError
from ..messages import Filter, Message, Term
from ..transmission import Topology, Underlay
from .address_space import AddressSpace
from .content_tree import ContentTree
from .faults import Faults
from .forwarder import Forwarder, Routing
from .homes import Homes
from .packets import Fetch, Letter, Publication, joined, units_of
from .payloads import PayloadLimits, UnderWay
from .shapes import Probe, Shaped, shape
from .space import Space
from .trace import Delivery, Registration, Trace
from .traffic import Traffic
from .transit import Distances, Transit
from .zones import Box

Node = str | int
KINDS = ("cbn", "can")
PATIENCE = 2.0


class Substrate(Protocol):
    """All nodes of a kind of network, and how subscriptions reach them."""

    @property
    def nodes(self) -> Sequence[Routing]: ...

    def header(self, node: int, probe: Probe) -> tuple[Box, ...]: ...

    def register(self, node: int, rows: Sequence[tuple[int, Shaped, int]], *, together: bool = False) -> None: ...

    def unregister(self, node: int, wanted: int, shaped: Shaped, registration: int) -> None: ...


class ContentNetwork:
    """Made by `build`."""

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
        self._numbers: dict[Filter, int] = {}
        self._shapes: dict[int, tuple[Shaped, int]] = {}
        self._next_filter = self._next_registration = 0
        self.registrations: dict[int, Registration] = {}
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
        sample: Iterable[Filter] = (),
        seed: int = 0,
    ) -> "ContentNetwork":
        """A network over the nodes of a topology.

        payloads: True, or limits, for a CN*, which sends no payload twice over a link; `plain` names nodes that know
        nothing of it. underlay: the physical network below, for what goes between nodes without a link.
        For a CAN: `space` has its axes; `members` the nodes that join, in order (all, the root first); `sample` filters
        like those that will be registered, so that zones are halved where they are many; `seed` where nodes join.
        """
        if kind not in KINDS:
            raise TopologyError(f"there is no kind of network {kind!r}; there are {', '.join(KINDS)}")
        topology.require_connected()
        limits = payloads if isinstance(payloads, PayloadLimits) else PayloadLimits() if payloads else None
        traffic = Traffic(topology)
        if kind == "cbn":
            if space is not None or members is not None:
                raise TopologyError("a content-based network has no space and no members; kind='can' has")
            substrate: Substrate = ContentTree(topology, traffic)
        else:
            substrate = _addressed(topology, traffic, space, members, sample, seed)
        return cls(topology, substrate, traffic, limits=limits, plain=plain, underlay=underlay)

    # Subscriptions.

    def register(self, node: Node, filter: Filter | Term, subscriber: Hashable = None) -> Registration:  # noqa: A002
        """Let a subscriber at a node have all messages that a filter matches."""
        return self.register_many([(node, filter, subscriber)])[0]

    def register_many(self, rows: Iterable[tuple[Node, Filter | Term, Hashable]]) -> list[Registration]:
        """Many at once, which is quicker than one after the other: (node, filter, subscriber) each."""
        made: list[Registration] = []
        by_node: dict[int, list[tuple[int, Shaped, int]]] = {}
        for node, given, subscriber in rows:
            number = self.topology.number(node)
            registration, row = self._registered(number, given, subscriber)
            made.append(registration)
            by_node.setdefault(number, []).append(row)
        for number, part in by_node.items():
            self.substrate.register(number, part)
        return made

    def register_together(
        self, node: Node, filters: Iterable[Filter | Term], subscriber: Hashable = None
    ) -> list[Registration]:
        """The filters of one subscription; in a CAN they stand at one point, so that one node dispatches for it."""
        number = self.topology.number(node)
        made = [self._registered(number, one, subscriber) for one in filters]
        self.substrate.register(number, [row for _, row in made], together=True)
        return [registration for registration, _ in made]

    def _registered(
        self, number: int, given: Filter | Term, subscriber: Hashable
    ) -> tuple[Registration, tuple[int, Shaped, int]]:
        one = given if isinstance(given, Filter) else Filter((given,))
        id = self._next_registration
        self._next_registration += 1
        found = self.registrations[id] = Registration(id, self.topology.nodes[number], one, subscriber)
        return found, (*self._numbered(one), id)

    def unregister(self, registration: Registration | int) -> None:
        """Forget a registration."""
        number = registration if isinstance(registration, int) else registration.number
        found = self.registrations.pop(number, None)
        if found is None:
            raise TopologyError(f"there is no registration {number}")
        assert isinstance(found.filter, Filter)
        wanted = self._numbers[found.filter]
        shaped, count = self._shapes[wanted]
        self.substrate.unregister(self.topology.number(found.node), wanted, shaped, number)
        if count > 1:
            self._shapes[wanted] = shaped, count - 1
        else:
            del self._numbers[found.filter], self._shapes[wanted]

    def _numbered(self, one: Filter) -> tuple[int, Shaped]:
        """A filter's number, the same for equal ones, and its shape."""
        number = self._numbers.get(one)
        if number is None:
            number = self._numbers[one] = self._next_filter
            self._next_filter += 1
            self._shapes[number] = shape(one), 0
        shaped, count = self._shapes[number]
        self._shapes[number] = shaped, count + 1
        return number, shaped

    # Members of a CAN.

    def join(self, node: Node, contact: Node | None = None) -> None:
        """A node joins a CAN, by way of a member."""
        number = self.topology.number(node)
        self._addresses().join(number, contact=None if contact is None else self.topology.number(contact))
        self.forwarders[number].down = False
        if number not in self.plain:
            self._homes.add(number)

    def leave(self, node: Node) -> None:
        """A node leaves a CAN in order; its zones and filters go to neighbours."""
        number = self.topology.number(node)
        self._addresses().leave(number)
        self.forwarders[number].crash()
        self._homes.discard(number)

    def fail(self, node: Node) -> None:
        """A node of a CAN is gone for good, and its neighbours have noticed: another takes its place."""
        number = self.topology.number(node)
        self._addresses().fail(number)
        self.forwarders[number].crash()
        self._homes.discard(number)

    def _addresses(self) -> AddressSpace:
        if not isinstance(self.substrate, AddressSpace):
            raise TopologyError("only a CAN has members that join and leave; a content-based network has its topology")
        return self.substrate

    # Messages.

    def publish(self, message: Message, at: Node | None = None, *, faults: Faults | None = None) -> Trace:
        """Send a message to all who match; `at` is the root unless told. Links and nodes fail as `faults` say."""
        return self.publish_all([message], at, faults=faults)

    def publish_all(
        self, messages: Iterable[Message], at: Node | None = None, *, faults: Faults | None = None, gap: float = 0.0
    ) -> Trace:
        """Send messages `gap` seconds after each other, without waiting for one to be everywhere before the next."""
        origin = self.topology.number(self.topology.root if at is None else at)
        transit = self._transit
        transit.faults, transit.traffic = faults, Traffic(self.topology)
        begin = transit.now
        self._deliveries = []
        for forwarder in self.forwarders:
            forwarder.patience = None if faults is None else PATIENCE
        for crash in faults.crashes if faults else ():
            self._schedule(self.topology.number(crash.node), crash.at, crash.down)
        for place, message in enumerate(messages):
            transit.after(place * gap, lambda message=message: self._inject(origin, message))  # type: ignore[misc]
        transit.run()
        if faults is None:
            for letter in list(self._outbox.values()):
                self._finished(letter)
        self._seen.clear()
        self._begun.clear()
        self.traffic.add(transit.traffic)
        return Trace(tuple(self._deliveries), transit.traffic, transit.now - begin)

    def _inject(self, origin: int, message: Message) -> None:
        """The server hands a message to the node that it stands at, and in a reliable network keeps at it."""
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
        header = self.substrate.header(letter.origin, letter.probe)
        uid = (-1, 0, letter.number)
        forwarder = self.forwarders[letter.origin]
        forwarder.receive(None, Publication(letter, units, None, header, 0, uid))
        if forwarder.patience is not None:
            wait = forwarder.patience * 2 ** min(attempt, 6)
            self._transit.after(wait, lambda: self._hand_over(letter, units, attempt + 1))

    def _finished(self, letter: Letter) -> None:
        """All have it; where nothing is acknowledged, that is when nothing is under way any more."""
        if self._outbox.pop(letter.number, None) is not None:
            self._payloads.end(letter.units)

    def _schedule(self, node: int, at: float, down: float | None) -> None:
        forwarder = self.forwarders[node]

        def rise() -> None:
            forwarder.down = False

        def noticed() -> None:
            if node in self._addresses().members and len(self._addresses().members) > 1:
                self.fail(node)
            else:
                rise()

        def fall() -> None:
            forwarder.crash()
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
        for number in registrations:
            found = self.registrations.get(number)
            if found is None or (letter.number, found.subscriber) in self._seen:
                continue
            self._seen.add((letter.number, found.subscriber))
            name = self.topology.nodes[node]
            self._deliveries.append(
                Delivery(found.subscriber, name, seconds, packet.hops, letter.number, bare, payload)
            )


def _addressed(
    topology: Topology,
    traffic: Traffic,
    space: Space | None,
    members: Iterable[Node] | None,
    sample: Iterable[Filter],
    seed: int,
) -> AddressSpace:
    """A CAN whose members have joined one after the other, while a sample of filters stood for the load."""
    if space is None:
        raise TopologyError("a CAN needs a space: Space.of(Axis('per', 0, 100), …)")
    found = AddressSpace(topology, traffic, space, seed=seed)
    root = topology.number(topology.root)
    others = [topology.number(node) for node in (topology.nodes if members is None else members)]
    order = [root, *(number for number in others if number != root)] if members is None else others
    if not order:
        raise TopologyError("a CAN has at least one member")
    found.join(order[0])
    points = found.weigh(order[0], sample)
    for number in order[1:]:
        found.join(number, contact=order[0], point=found.draw(points))
    found.unweigh()
    return found
