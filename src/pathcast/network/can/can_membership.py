"""All nodes of a content-addressable network: who joins, leaves and fails, and how zones pass from hand to hand.

Join: the newcomer's request is routed to a point; the owner there sends it to the most loaded of itself and its
neighbours, which halves its zone and hands over what lies in the other half. Leave: each zone goes to a neighbour with
whose zone it is one box, or else to the smallest one, and its filters with it. Failure: every node has a *backup*, the
neighbour that would take its zones, which has copies of its filters and knows its neighbours; when the neighbours
notice that a node is silent, its backup takes its zones. One failure at a time is survived, until backups are renewed.

What nodes know of the extents of filters behind their cuts goes with their cells; how they learn it is in
`extent_announcements.py`.

Invariant: zones of all members are a partition of the space; a node's neighbours are those that share a face with it,
with their zones as they are; each filter stands at the owner of its point and at its backup; extents that nodes know
are those of the filters that stand in their boxes (`check` says so).
Locality: each step is made by a node with what it, its neighbours and the newcomer have told it; this file only carries
what they say, and counts it.
Cost: a join or departure concerns the neighbours of the zones that change hands, and copies of their filters.
"""

import random
from collections.abc import Iterable, Sequence

from pathcast.errors import TopologyError
from pathcast.messages import Filter
from pathcast.transmission import Topology

from ..link_traffic import Traffic
from .can_node import Backup, Member, ZoneNode
from .extent_announcements import NOTICE, Telling
from .filter_extents import Cell
from .filter_points import Probe, Shaped, shape
from .filter_space import Space
from .zones import Box, boxes_size


class AddressSpace:
    """Nodes with zones."""

    def __init__(self, topology: Topology, traffic: Traffic, space: Space, *, seed: int = 0) -> None:
        self.topology = topology
        self.traffic = traffic
        self.space = space
        self.nodes: list[ZoneNode] = [ZoneNode(number, space) for number in range(len(topology.nodes))]
        self.members: set[int] = set()
        self._draw = random.Random(seed)
        # Where each registration's filter stands, as its subscriber knows.
        self._points: dict[int, tuple[int, ...]] = {}
        self.telling = Telling(self.nodes, self.members, traffic)

    # Messages and subscriptions.

    def require(self, number: int) -> None:
        """Refuse a node that is no member."""
        if number not in self.members:
            raise TopologyError(f"'{self.topology.nodes[number]}' is no member of the network; let it join")

    def header(self, node: int, probe: Probe) -> tuple[Box, ...]:
        """A message begins with the whole space to serve."""
        self.require(node)
        self.telling.tell()
        return (self.space.whole,)

    def register(self, node: int, rows: Sequence[tuple[int, Shaped, int]], *, together: bool = False) -> None:
        """Filters of a node's subscribers go to the owners of their points."""
        self.require(node)
        by_point: dict[tuple[int, ...], list[Member]] = {}
        shared = self.space.point(*(shaped.filter for _, shaped, _ in rows)) if together else None
        for wanted, shaped, registration in rows:
            point = shared or self.space.point(shaped.filter)
            by_point.setdefault(point, []).append(Member(registration, wanted, shaped, point))
        by_owner: dict[int, list[Member]] = {}
        for point, members in by_point.items():
            owner = self._route(node, point, sum(_size(one) for one in members))
            by_owner.setdefault(owner, []).extend(members)
            self._points.update((one.registration, point) for one in members)
        for owner, members in by_owner.items():
            self._settle(owner, members)

    def unregister(self, node: int, wanted: int, shaped: Shaped, registration: int) -> None:
        """A filter goes."""
        start = node if node in self.members else min(self.members)
        point = self._points.pop(registration)
        owner = self._route(start, point, NOTICE)
        holder = self.nodes[owner]
        holder.drop(registration)
        self.telling.changed.add(owner)
        if holder.backup is not None:
            self.traffic.carry(owner, holder.backup, NOTICE, "subscription")
            self.nodes[holder.backup].backups[owner].members.pop(registration, None)

    def _settle(self, owner: int, members: list[Member]) -> None:
        """Filters stand at an owner from now on, and at its backup."""
        node = self.nodes[owner]
        node.take(members)
        self.telling.changed.add(owner)
        if node.backup is not None:
            self._copy(node, members)

    def _copy(self, node: ZoneNode, members: Iterable[Member]) -> None:
        assert node.backup is not None
        kept = self.nodes[node.backup].backups.setdefault(node.number, Backup())
        for one in members:
            kept.members[one.registration] = one
            self.traffic.carry(node.number, node.backup, _size(one), "subscription")

    def _route(self, start: int, point: tuple[int, ...], size: int) -> int:
        """Carry something to the owner of a point, from neighbour to neighbour; the owner."""
        at = start
        while (following := self.nodes[at].towards(point)) is not None:
            self.traffic.carry(at, following, size, "subscription")
            at = following
        return at

    # Members.

    def join(self, number: int, *, contact: int | None = None, point: tuple[int, ...] | None = None) -> None:
        """A node joins: half of the zone of the most loaded node near a point becomes its own."""
        if number in self.members:
            raise TopologyError(f"'{self.topology.nodes[number]}' is a member already")
        self.telling.tell()
        newcomer = self.nodes[number]
        newcomer.reset()
        if not self.members:
            self.members.add(number)
            newcomer.own([Cell(self.space.whole)], {})
            newcomer.settled()
            return
        start = contact if contact is not None else min(self.members)
        self.require(start)
        near = self.nodes[self._route(start, point or self._somewhere(), NOTICE)]
        owner = self.nodes[self._most_loaded(near)]
        which = max(range(len(owner.zones)), key=lambda at: self._held(owner, at))
        if owner.zones[which].volume < 2:
            raise TopologyError("a zone of one point can't be halved; the space has too few points for so many nodes")
        kept, given = owner.cut(which)
        handed = owner.give(given)
        concerned = {*owner.neighbours, owner.number}
        self.members.add(number)
        _divide(owner, newcomer, which, kept, given)
        self._announce([owner.number, number], concerned | {number})
        self._settle(number, handed)
        _acquaint(owner, newcomer)
        for one in handed:
            self.traffic.carry(owner.number, number, _size(one), "subscription")
        self._renew(concerned | {number})

    def leave(self, number: int) -> None:
        """A member leaves in order: its zones and filters go to neighbours."""
        self.require(number)
        if len(self.members) == 1:
            raise TopologyError("the last member can't leave")
        self.telling.tell()
        node = self.nodes[number]
        concerned = set(node.neighbours)
        takers = set()
        for zone in node.zones:
            taker = self.nodes[_taker(node, zone)]
            handed = node.give(zone)
            taker.own((*taker.cells, *(cell for cell in node.cells if cell.box.meets(zone))), node.extents)
            self._settle(taker.number, handed)
            taker.settled()
            for one in handed:
                self.traffic.carry(number, taker.number, _size(one), "subscription")
            takers.add(taker.number)
        self._gone(number, concerned)
        self._taken(takers, concerned)

    def fail(self, number: int) -> None:
        """A member falls silent; its backup takes its place."""
        self.require(number)
        if len(self.members) == 1:
            raise TopologyError("the last member can't be replaced")
        self.telling.tell()
        node = self.nodes[number]
        assert node.backup is not None
        taker = self.nodes[node.backup]
        kept = taker.backups.pop(number)
        self._gone(number, set(kept.neighbours))
        taker.own((*taker.cells, *kept.cells), kept.extents)
        for other, zones in kept.neighbours.items():
            if other != taker.number and other in self.members:
                taker.hear_of(other, zones, 0)
        self._settle(taker.number, list(kept.members.values()))
        taker.settled()
        self._taken({taker.number}, kept.neighbours.keys() & self.members)

    def _taken(self, takers: set[int], concerned: set[int]) -> None:
        """Nodes have taken zones of one that is gone: they tell its neighbours and their own."""
        concerned = concerned.union(takers, *(self.nodes[taker].neighbours for taker in takers))
        self._announce(sorted(takers), concerned)
        self._renew(concerned)

    def _gone(self, number: int, concerned: set[int]) -> None:
        """A node is no member any more: neighbours forget it."""
        self.members.discard(number)
        for other in concerned:
            self.nodes[other].hear_of(number, (), 0)
            self.traffic.carry(number, other, NOTICE, "control")
        backup = self.nodes[number].backup
        if backup is not None:
            self.nodes[backup].backups.pop(number, None)
        self.nodes[number].reset()

    def _announce(self, changed: list[int], concerned: set[int]) -> None:
        """Nodes with other zones tell those who may be their neighbours, and are told of them."""
        for number in changed:
            node = self.nodes[number]
            for other in sorted(concerned - {number}):
                theirs = self.nodes[other]
                self.traffic.carry(number, other, boxes_size(node.zones) + NOTICE, "control")
                theirs.hear_of(number, node.zones, node.load)
                node.hear_of(other, theirs.zones, theirs.load)

    def _renew(self, concerned: Iterable[int]) -> None:
        """Nodes whose zones or neighbours have changed choose their backups anew and tell them what they have."""
        for number in sorted(set(concerned) & self.members):
            node = self.nodes[number]
            wanted = _taker(node, node.zones[0]) if node.neighbours else None
            if node.backup is not None and node.backup != wanted:
                self.nodes[node.backup].backups.pop(number, None)
            fresh = node.backup != wanted
            node.backup = wanted
            if wanted is None:
                continue
            kept = self.nodes[wanted].backups.setdefault(number, Backup())
            kept.zones, kept.neighbours = node.zones, dict(node.neighbours)
            kept.cells, kept.extents = node.cells, dict(node.extents)
            for gone in kept.members.keys() - node.members.keys():
                del kept.members[gone]
            missing = node.members.values() if fresh else [node.members[m] for m in node.members.keys() - kept.members]
            self._copy(node, missing)

    # Load.

    def weigh(self, number: int, sample: Iterable[Filter]) -> list[tuple[int, ...]]:
        """Put filters at a node that stand for those to come; their points."""
        shaped = [shape(one) for one in sample]
        rows = [Member(-1 - at, -1, one, self.space.point(one.filter)) for at, one in enumerate(shaped)]
        self._settle(number, rows)
        return [one.point for one in rows]

    def draw(self, points: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """A point at random: one of those given, if there are any."""
        return self._draw.choice(points) if points else self._somewhere()

    def unweigh(self) -> None:
        """Take off what stood for filters to come."""
        for number in self.members:
            node = self.nodes[number]
            for one in [registration for registration in node.members if registration < 0]:
                node.drop(one)
        self._renew(self.members)

    def _most_loaded(self, node: ZoneNode) -> int:
        """Of a node and its neighbours, which it asks."""
        loads = {node.number: node.load}
        for other in sorted(node.neighbours):
            self.traffic.carry(node.number, other, NOTICE, "control")
            self.traffic.carry(other, node.number, NOTICE, "control")
            loads[other] = self.nodes[other].load
        return max(loads, key=lambda one: (loads[one], -one))

    def _held(self, node: ZoneNode, at: int) -> tuple[int, int]:
        zone = node.zones[at]
        return sum(one.point in zone for one in node.members.values()), zone.volume

    def _somewhere(self) -> tuple[int, ...]:
        whole = self.space.whole
        return tuple(self._draw.randrange(low, high) for low, high in zip(whole.low, whole.high, strict=True))

    def check(self) -> None:
        """Raise unless what the invariant says holds, looked at from outside: for tests."""
        zones = [(zone, number) for number in self.members for zone in self.nodes[number].zones]
        assert sum(zone.volume for zone, _ in zones) == self.space.whole.volume
        for at, (zone, number) in enumerate(zones):
            assert not any(zone.meets(other) for other, _ in zones[at + 1 :])
            near = {other for one, other in zones if other != number and one.touches(zone)}
            assert near <= self.nodes[number].neighbours.keys()
        for number in self.members:
            node = self.nodes[number]
            for other, theirs in node.neighbours.items():
                assert theirs == self.nodes[other].zones
                assert any(one.touches(mine) for one in theirs for mine in node.zones)
            assert all(any(one.point in zone for zone in node.zones) for one in node.members.values())
            if node.backup is not None:
                kept = self.nodes[node.backup].backups[number]
                assert (kept.zones, kept.neighbours) == (node.zones, node.neighbours)
                assert (kept.cells, kept.extents) == (node.cells, node.extents)
                assert kept.members == node.members
        self.telling.check()


def _divide(owner: ZoneNode, newcomer: ZoneNode, which: int, kept: Box, given: Box) -> None:
    """A newcomer gets a part of one of a node's zones, and what the node knows of others."""
    zone = owner.zones[which]
    halves = [cell.split(kept, given) for cell in owner.cells if cell.box.meets(zone)]
    mine = [cell for cell in owner.cells if not cell.box.meets(zone)] + [one for one, _ in halves if one]
    theirs = [one for _, one in halves if one]
    known = dict.fromkeys(box for cell in (*mine, *theirs) for box in cell.path) | owner.extents
    newcomer.own(theirs, known)
    owner.own(mine, known)


def _acquaint(one: ZoneNode, other: ZoneNode) -> None:
    """Two nodes that were one know of each other's filters, and others knew of both."""
    one.extents |= {box: hull for box, hull in other.hulls.items() if box in one.extents}
    other.extents |= {box: hull for box, hull in one.hulls.items() if box in other.extents}
    one.settled()
    other.settled()


def _taker(node: ZoneNode, zone: Box) -> int:
    """The neighbour that takes a zone: one with whose zone it is a box, or else the one with the least volume."""
    near = {
        other: theirs for other, theirs in node.neighbours.items() if any(one.touches(zone) for one in theirs)
    } or node.neighbours
    fitting = [other for other, theirs in near.items() if any(one.joined(zone) for one in theirs)]
    return min(fitting or near, key=lambda other: (sum(one.volume for one in near[other]), other))


def _size(member: Member) -> int:
    return len(member.shaped.filter.encode())
