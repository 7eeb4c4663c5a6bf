"""Announcements of filter extents between the nodes of a content-addressable network (`filter_bounding_hulls.py`).

When the extent of a cell's filters changes, its node announces it to all nodes behind the last cut. If this changes the
extent of both sides together, the node announces that to all nodes behind the cut before, and so on, as nodes of a
content-based network announce a filter that no other covers. Changes are announced in batches, at the latest before the
next message or change of members: deeper cuts come first, so that each box of the tree of cuts is announced once.

Invariant: after all announcements, every node knows, for each box of its cells' paths, the extent of the filters in it
(`check` verifies this). So no delivery is lost when a node drops a message where extents contain no filter.
Locality: a node reads its own filters and the announcements that it got; announcements travel as messages do, from
neighbour to neighbour. A node's backup knows what the node knows.
Cost: a filter within the extent of its cell is not announced, and of n filters added one by one, O(log n) are outside
the extent of a box. An announcement to the nodes behind a cut takes about one hop per node.
"""

from collections.abc import Sequence

import numpy as np

from pathcast.kernels import Int64s

from ..link_traffic import Traffic
from .can_node import ZoneNode
from .filter_bounding_hulls import Cell, Extent, both, extent_size
from .zone_boxes import Box, boxes_size

# Bytes of an announcement without its content.
NOTICE = 9
# The announcing node of a box, the boxes cut off from it, its extent, and the previous extents of it and its ancestors.
Change = tuple[int, tuple[Box, ...], Extent | None, list[Extent | None]]


class Telling:
    """All nodes, the members among them, and the nodes with pending announcements."""

    def __init__(self, nodes: Sequence[ZoneNode], members: set[int], traffic: Traffic) -> None:
        self.nodes = nodes
        self.members = members
        self.traffic = traffic
        self.changed: set[int] = set()

    def tell(self) -> None:
        """Announce changed extents, the deepest cuts first."""
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
        """Announce the extent of a box to all owners of parts of a target, and to their backups."""
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
        """Set the extents of all nodes as if filters were exactly at these points, to see how nodes would route; return
        the owners of the points.

        This sends no announcements: a call with the points of the actual filters restores the extents.
        """
        self.tell()
        cells = [(cell, number) for number in sorted(self.members) for cell in self.nodes[number].cells]
        owners = np.empty(len(points), np.int64)
        self._expect(cells, points, np.arange(len(points)), 0, owners)
        return owners

    def _expect(
        self, cells: list[tuple[Cell, int]], points: Int64s, rows: Int64s, depth: int, owners: Int64s
    ) -> Extent | None:
        """Fill in the extents of the boxes below a box, from its cells and rows of points; return its own extent."""
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
        """Raise unless nodes know the extents of the current filters, apart from pending announcements: for tests."""
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
