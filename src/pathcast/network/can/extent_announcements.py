"""How nodes of a content-addressable network tell each other of the extents of their filters (`filter_extents.py`).

When the extent of a cell's filters has changed, its node tells all nodes behind the last cut. If with theirs the extent
of both together is another than before, it tells all behind the cut before that, and so on: as nodes of a content-based
network tell a filter that no other covers. Changes are told together, at the latest before the next message or change
of members: a node waits for those behind deeper cuts, so that each box of the tree of cuts is told of once.

Invariant: when all is told, every node knows, for each box of its cells' paths, the extent of the filters that stand in
it (`check` says so). So nothing is lost by passing on no message where extents hold nobody.
Locality: a node reads its own filters and what it was told; whom to tell is reached as messages are, from neighbour to
neighbour. A node's backup has what the node knows.
Cost: a filter within the extent of its cell is told nobody, and of n that come one by one O(log n) are not within that
of a box. Telling those behind a cut takes about a hop a node.
"""

from collections.abc import Sequence

import numpy as np

from pathcast.kernels import Int64s

from ..link_traffic import Traffic
from .can_node import ZoneNode
from .filter_extents import Cell, Extent, both, extent_size
from .zones import Box, boxes_size

# Bytes of a notice without what it is about.
NOTICE = 9
# Who tells of a box, the boxes cut off from it, its extent, and the extents before, of it and of what it was cut from.
Change = tuple[int, tuple[Box, ...], Extent | None, list[Extent | None]]


class Telling:
    """All nodes, those that are members, and who of them has something to tell."""

    def __init__(self, nodes: Sequence[ZoneNode], members: set[int], traffic: Traffic) -> None:
        self.nodes = nodes
        self.members = members
        self.traffic = traffic
        self.changed: set[int] = set()

    def tell(self) -> None:
        """Let nodes tell of the extents of their filters that have changed, those behind the deepest cuts first."""
        levels: dict[int, dict[Box, Change]] = {}
        for number in sorted(self.changed & self.members):
            node = self.nodes[number]
            for cell in node.untold():
                depth = len(cell.path)
                levels.setdefault(depth, {})[cell.box] = number, cell.path, node.hulls[cell.box], node.levels(cell)
            node.settled()
        self.changed.clear()
        for depth in range(max(levels, default=0), 0, -1):
            changed = {box: one for box, one in levels.pop(depth, {}).items() if one[2] != one[3][0]}
            for box, (number, path, extent, _) in changed.items():
                self._spread(number, path[-1], box, extent)
            for box, (number, path, extent, before) in changed.items():
                whole = box.joined(path[-1])
                assert whole is not None
                together = both(extent, self.nodes[number].extents[path[-1]])
                levels.setdefault(depth - 1, {}).setdefault(whole, (number, path[:-1], together, before[1:]))

    def _spread(self, start: int, target: Box, box: Box, extent: Extent | None) -> None:
        """A node tells all who own part of a target what the extent of a box is; they tell their backups."""
        size = NOTICE + boxes_size((box,)) + extent_size(extent)
        waiting: list[tuple[int, tuple[Box, ...]]] = [(start, (target,))]
        while waiting:
            at, clips = waiting.pop()
            node = self.nodes[at]
            served, further = node.passed([target], clips, everywhere=True)
            if served:
                node.extents[box] = extent
                if node.backup is not None:
                    self.nodes[node.backup].backups[at].extents[box] = extent
                    self.traffic.carry(at, node.backup, size, "control")
            for other, parts in further.items():
                self.traffic.carry(at, other, size + boxes_size(tuple(parts)), "control")
                waiting.append((other, tuple(parts)))

    def expect(self, points: Int64s) -> Int64s:
        """Let all nodes know extents as if filters stood at these points and nowhere else, to see how they would route;
        the owners of the points.

        Nobody has told them: with the points of the filters that are there, all is again as it was.
        """
        self.tell()
        cells = [(cell, number) for number in sorted(self.members) for cell in self.nodes[number].cells]
        owners = np.empty(len(points), np.int64)
        self._expect(cells, points, np.arange(len(points)), 0, owners)
        return owners

    def _expect(
        self, cells: list[tuple[Cell, int]], points: Int64s, rows: Int64s, depth: int, owners: Int64s
    ) -> Extent | None:
        """Fill in the extents of the boxes below one that cells and rows of points are in; its own."""
        if len(cells) == 1:
            owners[rows] = cells[0][1]
            return Extent.of(points[rows])
        cut = cells[0][0].path[depth]
        behind, inside = [cell.box.meets(cut) for cell, _ in cells], cut.rows(points[rows])
        parts = []
        for side in (False, True):
            these = [one for one, there in zip(cells, behind, strict=True) if there == side]
            parts.append((these, self._expect(these, points, rows[inside == side], depth + 1, owners)))
        for (these, _), (_, extent) in zip(parts, reversed(parts), strict=True):
            for cell, number in these:
                self.nodes[number].extents[cell.path[depth]] = extent
        return both(parts[0][1], parts[1][1])

    def check(self) -> None:
        """Raise unless nodes know the extents of the filters that stand, as far as all is told: for tests."""
        standing = [one.point for number in self.members for one in self.nodes[number].members.values()]
        for number in self.members:
            node = self.nodes[number]
            whole = node.space.whole
            points = np.array(standing, np.int64).reshape(-1, node.space.dimensions)
            assert sum(cell.box.volume for cell in node.cells) == sum(zone.volume for zone in node.zones)
            for cell in node.cells:
                assert sum(box.volume for box in (cell.box, *cell.path)) == whole.volume
                assert number in self.changed or node.told[cell.box] == Extent.of(points[cell.box.rows(points)])
            if not self.changed:
                boxes = [box for cell in node.cells for box in cell.path]
                assert node.extents == {box: Extent.of(points[box.rows(points)]) for box in boxes}
