"""Membership of a content-addressable network: nodes join, leave and fail, and zones change owners.

Join: the newcomer's request is routed to a point; its owner forwards it to the most loaded of itself and its
neighbours, which halves its zone and hands over the filters in the other half. Leave: each zone, with its filters,
passes to a neighbour whose zone forms one box with it, or otherwise to the smallest neighbour. Failure: every node has
a *backup*, the neighbour that would take its zones, which has copies of its filters and knows its neighbours; when the
neighbours detect a failure, the backup takes the zones. The network survives one failure at a time, until backups are
renewed.

The extents of filters behind a node's cuts belong to its cells; nodes learn them as in
`bounding_hull_announcements.py`.

Invariant: the zones of all members are a partition of the space; a node's neighbours are the nodes that share a face
with it, with their current zones; each filter is at the owner of its point and at the owner's backup; known extents
are those of the filters in their boxes (`check` verifies this).
Locality: a node decides each step from its own state and messages of its neighbours and the newcomer; this file only
carries these messages, and counts them.
Cost: a join or departure involves the neighbours of the zones that change owners, and copies of their filters.
"""

import random
from collections.abc import Iterable, Sequence

from pathcast.errors import TopologyError
from pathcast.messages import Filter
from pathcast.transmission import Topology

from ..link_traffic import Traffic
from .bounding_hull_announcements import NOTICE, Telling
from .can_coordinate_space import Space
from .can_node import Backup, Member, ZoneNode
from .filter_bounding_hulls import Cell
from .filter_point_transformation import Probe, Shaped, shape
from .zone_boxes import Box, boxes_size


class AddressSpace:
    """Nodes with zones."""

    def __init__(self, topology: Topology, traffic: Traffic, space: Space, *, seed: int = 0) -> None:
        self.topology = topology
        self.traffic = traffic
        self.space = space
        self.nodes: list[ZoneNode] = [ZoneNode(number, space) for number in range(len(topology.nodes))]
        self.members: set[int] = set()
        self._draw = random.Random(seed)
        # The point of each registration's filter, as its subscriber knows it.
        self._points: dict[int, tuple[int, ...]] = {}
        self.telling = Telling(self.nodes, self.members, traffic)

    # Messages and subscriptions.

    def require(self, number: int) -> None:
        """Raise `TopologyError` unless a node is a member."""
        if number not in self.members:
            raise TopologyError(f"'{self.topology.nodes[number]}' is not a member of the network; call join first")

    def header(self, node: int, probe: Probe) -> tuple[Box, ...]:
        """The header of a new message: the whole space."""
        self.require(node)
        self.telling.tell()
        return (self.space.whole,)

    def register(self, node: int, rows: Sequence[tuple[int, Shaped, int]], *, together: bool = False) -> None:
        """Send filters of a node's subscribers to the owners of their points."""
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
        """Remove a filter."""
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
        """Add filters to an owner and to its backup."""
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
        """Route a packet to the owner of a point, from neighbour to neighbour; return the owner."""
        at = start
        while (following := self.nodes[at].towards(point)) is not None:
            self.traffic.carry(at, following, size, "subscription")
            at = following
        return at

    # Members.

    def join(self, number: int, *, contact: int | None = None, point: tuple[int, ...] | None = None) -> None:
        """Let a node join: it gets half of the zone of the most loaded node near a point."""
        if number in self.members:
            raise TopologyError(f"'{self.topology.nodes[number]}' is already a member of the network; call leave first")
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
            raise TopologyError(
                f"'{self.topology.nodes[number]}' cannot join: the zone to divide has a single point; use more axes or "
                "fewer nodes"
            )
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
        """Let a member leave gracefully: its zones and filters pass to neighbours."""
        self.require(number)
        if len(self.members) == 1:
            raise TopologyError(
                f"'{self.topology.nodes[number]}' is the last member and cannot leave; let another node join first"
            )
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
        """Let a member fail; its backup takes its place."""
        self.require(number)
        if len(self.members) == 1:
            raise TopologyError(
                f"'{self.topology.nodes[number]}' is the last member and cannot fail, because it has no backup; "
                "let another node join first"
            )
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
        """Announce new zones: nodes that have taken zones inform the old neighbours and their own."""
        concerned = concerned.union(takers, *(self.nodes[taker].neighbours for taker in takers))
        self._announce(sorted(takers), concerned)
        self._renew(concerned)

    def _gone(self, number: int, concerned: set[int]) -> None:
        """Remove a node from the members and from the state of its neighbours."""
        self.members.discard(number)
        for other in concerned:
            self.nodes[other].hear_of(number, (), 0)
            self.traffic.carry(number, other, NOTICE, "control")
        backup = self.nodes[number].backup
        if backup is not None:
            self.nodes[backup].backups.pop(number, None)
        self.nodes[number].reset()

    def _announce(self, changed: list[int], concerned: set[int]) -> None:
        """Exchange zones between nodes whose zones have changed and their possible neighbours."""
        for number in changed:
            node = self.nodes[number]
            for other in sorted(concerned - {number}):
                theirs = self.nodes[other]
                self.traffic.carry(number, other, boxes_size(node.zones) + NOTICE, "control")
                theirs.hear_of(number, node.zones, node.load)
                node.hear_of(other, theirs.zones, theirs.load)

    def _renew(self, concerned: Iterable[int]) -> None:
        """Choose new backups for nodes whose zones or neighbours have changed, and copy their state to the backups."""
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
        """Put sample filters at a node to represent the future load; return their points."""
        shaped = [shape(one) for one in sample]
        rows = [Member(-1 - at, -1, one, self.space.point(one.filter)) for at, one in enumerate(shaped)]
        self._settle(number, rows)
        return [one.point for one in rows]

    def draw(self, points: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """A random point: one of the given points, if any."""
        return self._draw.choice(points) if points else self._somewhere()

    def unweigh(self) -> None:
        """Remove the sample filters."""
        for number in self.members:
            node = self.nodes[number]
            for one in [registration for registration in node.members if registration < 0]:
                node.drop(one)
        self._renew(self.members)

    def _most_loaded(self, node: ZoneNode) -> int:
        """The most loaded of a node and its neighbours, which report their loads."""
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
        """Raise unless the invariant holds, with a view of all nodes: for tests."""
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
    """Give a newcomer a part of one of a node's zones, and the node's state about other nodes."""
    zone = owner.zones[which]
    halves = [cell.split(kept, given) for cell in owner.cells if cell.box.meets(zone)]
    mine = [cell for cell in owner.cells if not cell.box.meets(zone)] + [one for one, _ in halves if one]
    theirs = [one for _, one in halves if one]
    known = dict.fromkeys(box for cell in (*mine, *theirs) for box in cell.path) | owner.extents
    newcomer.own(theirs, known)
    owner.own(mine, known)


def _acquaint(one: ZoneNode, other: ZoneNode) -> None:
    """Exchange the extents of two nodes whose zones were one."""
    one.extents |= {box: hull for box, hull in other.hulls.items() if box in one.extents}
    other.extents |= {box: hull for box, hull in one.hulls.items() if box in other.extents}
    one.settled()
    other.settled()


def _taker(node: ZoneNode, zone: Box) -> int:
    """The neighbour that takes a zone: one whose zone forms a box with it, otherwise the one with the least volume."""
    near = {
        other: theirs for other, theirs in node.neighbours.items() if any(one.touches(zone) for one in theirs)
    } or node.neighbours
    fitting = [other for other, theirs in near.items() if any(one.joined(zone) for one in theirs)]
    return min(fitting or near, key=lambda other: (sum(one.volume for one in near[other]), other))


def _size(member: Member) -> int:
    return len(member.shaped.filter.encode())
