"""A node of a content-addressable network: its zones, neighbours and subscriptions, and the routing of messages.

The space (`can_coordinate_space.py`) is cut into zones; the owner of a zone has the filters whose points lie in it. A
message is for a region. Every copy has *clips*, the boxes of the space that it must serve, initially the whole space. A
node

  - that owns no part of region ∩ clip forwards the whole clip to the neighbour nearest to it: with whole numbers and
    Manhattan distances, a nearer neighbour always exists (the one across a face on the way);
  - that owns a part serves its own zones and cuts the rest of the clip along the cuts that created its zone, the last
    first; each piece that contains part of the region is forwarded. Other zones were created by the same cuts, so
    hardly any zone lies in two pieces.

So clips are disjoint and shrink, each zone in the region is served, and no filter is served twice: a node delivers only
to points within the clip, and need not remember messages.

A node knows the extent of the filters behind each of its cuts (`filter_bounding_hulls.py`), and drops a piece in which
no filter can match the message. Extents do not affect where the other pieces go, so the copies are a subset of those
sent without extents.

Locality: a node reads the packet, its zones, its neighbours' zones, its extents and its own table.
Cost: a distance per neighbour and clip, over arrays; a comparison of extents per piece.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pathcast.kernels import Int64s

from ..tree.filter_covering_index import FilterTable
from ..tree.forwarding_table_node import Step
from .can_coordinate_space import Space
from .filter_bounding_hulls import Cell, Extent, both, united
from .filter_point_transformation import Probe, Shaped
from .zone_boxes import Box

_CLIPS = 1_024


@dataclass(frozen=True, slots=True)
class Member:
    """A registration at the owner of its filter's point."""

    registration: int
    wanted: int
    shaped: Shaped
    point: tuple[int, ...]


@dataclass
class Backup:
    """The state that a node keeps for a neighbour, to take its place."""

    zones: tuple[Box, ...] = ()
    cells: tuple[Cell, ...] = ()
    extents: dict[Box, Extent | None] = field(default_factory=dict)
    members: dict[int, Member] = field(default_factory=dict)
    neighbours: dict[int, tuple[Box, ...]] = field(default_factory=dict)


class ZoneNode:
    """The state of one node."""

    def __init__(self, number: int, space: Space) -> None:
        self.number = number
        self.space = space
        self.reset()

    def reset(self) -> None:
        """Clear all state; the node is not a member."""
        self.zones: tuple[Box, ...] = ()
        self.cells: tuple[Cell, ...] = ()
        # Extents of the filters in each box of the cells' paths; of those in each cell, current and as announced.
        self.extents: dict[Box, Extent | None] = {}
        self.hulls: dict[Box, Extent | None] = {}
        self.told: dict[Box, Extent | None] = {}
        self.neighbours: dict[int, tuple[Box, ...]] = {}
        self.loads: dict[int, int] = {}
        self.members: dict[int, Member] = {}
        self.backups: dict[int, Backup] = {}
        self.backup: int | None = None
        self.handled = 0
        self._table = FilterTable()
        self._faces: tuple[Int64s, list[int]] | None = None
        # Clips recur: cache what is left of them, for the cells that it was computed with.
        self._rests: tuple[tuple[Cell, ...], dict[Box, list[tuple[Box, Box]]]] = (), {}

    # Messages.

    def step(self, probe: Probe, header: tuple[Box, ...], came: int | None) -> Step:
        """Serve the part of the clips that this node owns, and forward the rest."""
        self.handled += 1
        served, further = self.passed(self.space.area(probe), header)
        return Step(self._matching(probe, served), [(target, tuple(clips)) for target, clips in further.items()])

    def passed(
        self, region: list[Box], header: tuple[Box, ...], *, everywhere: bool = False
    ) -> tuple[list[Box], dict[int, list[Box]]]:
        """The part of the clips that this node owns, and the pieces per neighbour; `everywhere` ignores extents."""
        served: list[Box] = []
        further: dict[int, list[Box]] = {}
        for clip in header:
            here = [zone & clip for zone in self.zones if zone.meets(clip)]
            mine = [box for box in here if any(box.meets(part) for part in region)]
            served += mine
            pieces = [
                piece
                for piece, cut in self._rest(clip)
                if everywhere or self._somebody(region, piece, self.extents[cut])
            ]
            for rest in pieces if mine or not pieces else [clip]:
                wanted = [part & rest for part in region if part.meets(rest)]
                if wanted:
                    further.setdefault(self.nearest(wanted, further), []).append(rest)
        return served, further

    def _somebody(self, region: list[Box], piece: Box, extent: Extent | None) -> bool:
        """Whether a piece can contain a filter in a region."""
        return extent is not None and any(part.meets(piece) and extent.holds(part & piece) for part in region)

    def reaches(self, target: int) -> bool:
        """Whether a node is still a neighbour."""
        return target in self.neighbours

    def towards(self, point: tuple[int, ...]) -> int | None:
        """The neighbour nearest to a point; None if this node owns it."""
        if any(point in zone for zone in self.zones):
            return None
        return self.nearest([Box(point, tuple(at + 1 for at in point))])

    @property
    def outgoing(self) -> set[int]:
        """Neighbours."""
        return set(self.neighbours)

    @property
    def serves(self) -> bool:
        """Whether this node has filters."""
        return bool(self.members)

    def _rest(self, clip: Box) -> list[tuple[Box, Box]]:
        """A clip without the node's own zones: the pieces that were cut off from the first cell, the last cut first."""
        if self._rests[0] is not self.cells or len(self._rests[1]) > _CLIPS:
            self._rests = self.cells, {}
        kept = self._rests[1]
        if clip not in kept:
            found = [(clip & cut, cut) for cut in reversed(self.cells[0].path) if clip.meets(cut)]
            for zone in self.zones:
                found = [(part, cut) for one, cut in found for part in one.minus(zone)]
            kept[clip] = found
        return kept[clip]

    def _matching(self, probe: Probe, served: list[Box]) -> list[int]:
        if not served or not self.members:
            return []
        found = self._table.match(probe)[0].tolist()
        return [one for one in found if any(self.members[one].point in box for box in served)]

    def nearest(self, boxes: list[Box], chosen: Iterable[int] = ()) -> int:
        """The neighbour with a zone nearest to any of some boxes; preferably one that gets a copy anyway, if it is
        nearer than this node.
        """
        faces, owners = self._neighbour_faces()
        distances = _distances(faces, boxes[0])
        for box in boxes[1:]:
            np.minimum(distances, _distances(faces, box), out=distances)
        among = set(chosen)
        if among:
            mine = min(zone.distance(box) for zone in self.zones for box in boxes)
            rows = [at for at, owner in enumerate(owners) if owner in among and distances[at] < mine]
            if rows:
                return owners[min(rows, key=lambda at: int(distances[at]))]
        return owners[int(distances.argmin())]

    def _neighbour_faces(self) -> tuple[Int64s, list[int]]:
        """The input of `_distances`: for each neighbour's zone, a row for its upper and lower faces; and its owner.

        A box from `low` to `high` is `low - upper face + 1` beyond the one, `lower face - high + 1` before the other.
        """
        if self._faces is None:
            rows = [(zone, number) for number, zones in sorted(self.neighbours.items()) for zone in zones]
            low = np.array([zone.low for zone, _ in rows], np.int64)
            high = np.array([zone.high for zone, _ in rows], np.int64)
            self._faces = np.ascontiguousarray(np.concatenate([1 - high, 1 + low], axis=1).T), [one for _, one in rows]
        return self._faces

    # Messages from other nodes.

    def hear_of(self, other: int, zones: tuple[Box, ...], load: int) -> None:
        """Record the zones of a node: it is a neighbour if one of them touches one of ours."""
        if other != self.number and any(one.touches(mine) for one in zones for mine in self.zones):
            self.neighbours[other] = zones
            self.loads[other] = load
        else:
            self.neighbours.pop(other, None)
            self.loads.pop(other, None)
        self._faces = None

    def own(self, cells: Iterable[Cell], extents: dict[Box, Extent | None]) -> None:
        """Replace the cells and extents; remove neighbours that touch none of the cells."""
        self.cells = united(cells)
        self.zones = merged(tuple(cell.box for cell in self.cells))
        known = self.extents | extents
        self.extents = {box: known[box] for cell in self.cells for box in cell.path}
        for other in list(self.neighbours):
            self.hear_of(other, self.neighbours[other], self.loads[other])
        self._measure()

    @property
    def load(self) -> int:
        """Filters here plus messages handled: the load by which zones are split."""
        return len(self.members) + self.handled

    # Subscriptions.

    def take(self, members: list[Member]) -> None:
        """Add filters."""
        fresh = [one for one in members if one.registration not in self.members]
        self.members |= {one.registration: one for one in fresh}
        self._table.add_many([one.registration for one in fresh], [one.shaped for one in fresh])
        for cell in self.cells:
            mine = [one.point for one in fresh if one.registration >= 0 and one.point in cell.box]
            if mine:
                self.hulls[cell.box] = both(self.hulls[cell.box], Extent.of(np.array(mine, np.int64)))

    def give(self, box: Box) -> list[Member]:
        """Hand over the filters in a box."""
        found = [one for one in self.members.values() if one.point in box]
        for one in found:
            del self.members[one.registration]
            self._table.remove(one.registration)
        return found

    def drop(self, registration: int) -> None:
        """Remove a filter."""
        gone = self.members.pop(registration)
        self._table.remove(registration)
        hull = next(self.hulls[cell.box] for cell in self.cells if gone.point in cell.box)
        if hull is not None and not hull.inside(gone.point):
            self._measure()

    def _measure(self) -> None:
        """Compute the extents of the filters in the node's cells."""
        points = np.array([one.point for one in self.members.values() if one.registration >= 0], np.int64)
        points = points.reshape(-1, self.space.dimensions)
        self.hulls = {cell.box: Extent.of(points[cell.box.rows(points)]) for cell in self.cells}

    def settled(self) -> None:
        """Record that other nodes know the current extents of this node."""
        self.told = dict(self.hulls)

    def untold(self) -> list[Cell]:
        """Cells whose extents must be announced."""
        return [cell for cell in self.cells if self.hulls[cell.box] != self.told[cell.box]]

    def levels(self, cell: Cell) -> list[Extent | None]:
        """The extents of a cell and of the boxes that it was cut from, the last first, as other nodes know them."""
        found = [self.told[cell.box]]
        for cut in reversed(cell.path):
            found.append(both(found[-1], self.extents[cut]))
        return found

    def cut(self, which: int) -> tuple[Box, Box]:
        """Cut a zone into two that share its filters so that few messages meet both; otherwise cut it in the middle.

        A message for ranges that contain a value meets a zone if the value is neither below the least low end nor
        above the greatest high end. A cut of low ends keeps values below it from the upper part; a cut of high ends
        keeps values above it from the lower part. The cut that keeps off the largest share of values is chosen, and
        even cuts are preferred.
        """
        zone = self.zones[which]
        points = np.array([one.point for one in self.members.values() if one.point in zone], np.int64)
        best: tuple[float, int, int] | None = None
        for at in range(self.space.dimensions if len(points) > 1 else 0):
            place = _median(points[:, at])
            if zone.low[at] < place < zone.high[at]:
                below = int((points[:, at] < place).sum())
                axis = at - at % 2
                least, most = zone.low[axis], zone.high[axis + 1]
                spared = place - least if at == axis else most - place
                score = min(below, len(points) - below) * spared / (most - least)
                if best is None or score > best[0]:
                    best = score, at, place
        if best is None:
            at = max(range(len(zone.low)), key=lambda one: zone.high[one] - zone.low[one])
            return zone.split(at, (zone.low[at] + zone.high[at]) // 2)
        return zone.split(best[1], best[2])


def _distances(faces: Int64s, box: Box) -> Int64s:
    """The distances of zones from a box, as `Box.distance` returns them."""
    beyond = faces + np.array((*box.low, *(-high for high in box.high)), np.int64)[:, np.newaxis]
    found: Int64s = np.maximum(beyond, 0, out=beyond).sum(axis=0)
    return found


def _median(values: Int64s) -> int:
    """A value with about half of the others, and at least one, below it."""
    ordered = np.sort(values)
    place = int(ordered[len(ordered) // 2])
    if place == ordered[0]:
        above = ordered[ordered > place]
        return int(above[0]) if len(above) else -1
    return place


def merged(zones: tuple[Box, ...]) -> tuple[Box, ...]:
    """The same points in fewer boxes: pairs that form one box are merged."""
    found = list(zones)
    again = True
    while again:
        again = False
        for at, one in enumerate(found):
            for other in range(at + 1, len(found)):
                both = one.joined(found[other])
                if both is not None:
                    found[at] = both
                    del found[other]
                    again = True
                    break
            if again:
                break
    return tuple(found)
