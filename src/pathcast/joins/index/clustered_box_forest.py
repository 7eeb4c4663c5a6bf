"""Forests: boxes in clusters, each cluster a tree, with insertion and removal.

A box is a range on x and a range on y (`clustered_box_forest_kernels.py`). All of a cluster have a common point on y,
its anchor: a stabbing partition (§3.1.1 of the select-join paper). A new box joins the first cluster whose anchor it
contains; otherwise a neighbour whose anchor may move into it; otherwise it begins a new cluster. Overlapping clusters
are merged when there are too many, and when that is not enough, all clusters are rebuilt.

`fewest` finds the fewest points that stab all ranges from the trees, by one or two searches per point, without a sort.

Invariant: anchors ascend, and every y range contains its cluster's anchor. At the last check, at most `_CHECKED`
changes ago (or as many as there are clusters), there were at most 1.5 times the fewest clusters, plus `_SPARE`.
Cost: a change takes O(log n), some ten microseconds; rebuilding O(n log n), half a second per million. A box takes 40
bytes in a block that is at least half full, and some 15 for nodes and its slot; disjoint ranges, each a cluster of its
own, some 350. There is room for 2³¹ places.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pathcast.kernels import Int32s, Int64s
from pathcast.store import grown

from .box_id_hash_kernels import any_known, enter, enter_again, place_of
from .box_update_kernels import graft, insert, remove, sprout
from .clustered_box_forest_kernels import (
    BLOCK,
    BLOCKS,
    CELL,
    CELLS,
    COUNT,
    FILL,
    FREE_BLOCK,
    FREE_CELL,
    FREE_NODE,
    NODES,
    SIZE,
    BoxForest,
    BoxRows,
    plant,
    read_out,
    rebuild,
)
from .mmap_scratch_arrays import scratch
from .stabbing_partition_kernels import Clusters, choose_cluster, fewest, partition, stab
from .window_query_kernels import BoxTrees

Words = Int64s
_CHECKED = 100
_SPARE = 8
# Trees are less deep: a child has at most three quarters of its parent's boxes, except small ones.
_DEPTH = 512
_FIRST_SLOTS = 64


class Forest:
    """Boxes with names, in clusters."""

    def __init__(self) -> None:
        self.anchors: Words = np.empty(0, np.int64)
        self.roots: Int32s = np.empty(0, np.int32)
        self.stack: Words = np.empty(_DEPTH, np.int64)
        self._box: Words = np.empty(4, np.int64)
        self._block = BoxRows(
            np.empty((BLOCK + 1, 4), np.int64), np.empty(BLOCK + 1, np.int64), np.empty(BLOCK + 1, np.int32)
        )
        self._clear(0)

    def _clear(self, count: int) -> None:
        """Make the forest empty, with room for at least this many boxes in as many blocks as `plant` needs."""
        self.arrays = BoxForest(
            bounds=np.empty((0, 8), np.int64),
            links=np.empty((0, 4), np.int32),
            boxes=np.empty((0, 4), np.int64),
            ids=np.empty(0, np.int64),
            owner=np.empty(0, np.int32),
            slots=np.full(_slot_count(count), -1, np.int32),
            head=np.zeros(8, np.int64),
        )
        self.arrays.head[[FREE_NODE, FREE_BLOCK, FREE_CELL]] = -1
        self._changes = 0
        self._bearable = _SPARE

    def __len__(self) -> int:
        return int(self.arrays.head[COUNT])

    def __contains__(self, id: int) -> bool:
        return int(place_of(self.arrays.slots, self.arrays.ids, id)) >= 0

    def box(self, id: int) -> list[int]:
        """The ends of a box; `KeyError` when it does not exist."""
        place = int(place_of(self.arrays.slots, self.arrays.ids, id))
        if place < 0:
            raise KeyError(
                f"unknown semijoin id {id}: the semijoin was never added or has been removed; give the id of an "
                "existing semijoin"
            )
        found: list[int] = self.arrays.boxes[place].tolist()
        return found

    @property
    def clusters(self) -> Clusters:
        """The boxes as arguments of search kernels; valid until the next change."""
        arrays = self.arrays
        trees = BoxTrees(arrays.bounds, arrays.links, arrays.boxes, self.stack)
        return Clusters(trees, self.anchors, self.roots)

    # Changes.

    def add(self, id: int, box: Sequence[int]) -> None:
        """Add a box; `KeyError` when its name is in use."""
        if id in self:
            raise KeyError(f"semijoin id {id} is already in use; choose another id")
        self._place(id, box)
        self._changed()

    def remove(self, id: int) -> None:
        """Remove a box; `KeyError` when it does not exist."""
        if id not in self:
            raise KeyError(
                f"unknown semijoin id {id}: the semijoin was never added or has been removed; give the id of an "
                "existing semijoin"
            )
        root = remove(self.arrays, id)
        if root >= 0:
            kept = self.roots != root
            self.anchors, self.roots = self.anchors[kept], self.roots[kept]
        self._changed()

    def add_many(self, ids: Words, boxes: Words) -> None:
        """Add boxes, one per row; `KeyError`, without any change, when a name is in use or occurs twice."""
        ascending = bool((ids[1:] > ids[:-1]).all())
        if not (ascending or len(np.unique(ids)) == len(ids)) or any_known(self.arrays.slots, self.arrays.ids, ids):
            taken = [id for id, count in Counter(ids.tolist()).items() if count > 1 or id in self]
            why = "already in use" if taken[0] in self else "given twice"
            raise KeyError(f"semijoin id {taken[0]} is {why}; give distinct unused ids")
        if len(ids) * 4 < len(self):
            for id, box in zip(ids.tolist(), boxes, strict=True):
                self._place(id, box)
                self._changed()
            return
        rows, names = self._all(len(ids))
        rows[len(self) :], names[len(self) :] = boxes, ids
        self._plant(rows, names)

    def _place(self, id: int, box: Sequence[int] | Words) -> None:
        self._make_room(2)
        self._box[:] = box
        low, high = int(self._box[2]), int(self._box[3])
        cluster = choose_cluster(self.arrays.bounds, self.anchors, self.roots, low, high)
        if cluster < 0:
            cluster = int(np.searchsorted(self.anchors, high))
            root = sprout(self.arrays)
            self.anchors = np.insert(self.anchors, cluster, high)
            self.roots = np.insert(self.roots, cluster, root)
        self._insert(int(self.roots[cluster]), id)

    def _insert(self, root: int, id: int) -> None:
        """Add `_box` to a tree."""
        heavy = insert(self.arrays, self._block, root, id, self._box, self.stack)
        if heavy >= 0:
            size = int(self.arrays.links[heavy, SIZE])
            # Full blocks become blocks with spare room.
            self._make_room(size // FILL - size // BLOCK + 2)
            rows = BoxRows(scratch((size, 4), np.int64), scratch((size,), np.int64), scratch((size,), np.int32))
            rebuild(self.arrays, rows, heavy, self.stack)

    def _make_room(self, count: int) -> None:
        """Make room for this many more blocks, their nodes, and a name."""
        bounds, links, boxes, ids, owner, slots, head = self.arrays
        blocks = int(head[BLOCKS]) + count
        if blocks * BLOCK > len(ids):
            size = max(blocks, len(ids) // BLOCK * 5 // 4)
            boxes, ids = grown(boxes, size * BLOCK), grown(ids, size * BLOCK)
            owner = grown(owner, size * CELLS + 1, -1)
            self.arrays = self.arrays._replace(boxes=boxes, ids=ids, owner=owner)
        nodes = int(head[NODES]) + 2 * count
        if nodes > len(links):
            size = max(nodes, len(links) * 5 // 4)
            self.arrays = self.arrays._replace(bounds=grown(bounds, size), links=grown(links, size))
        if _slot_count(len(self) + 1) > len(slots):
            more = np.full(_slot_count(len(self) + 1), -1, np.int32)
            enter_again(slots, ids, more)
            self.arrays = self.arrays._replace(slots=more)

    # Clusters.

    def _changed(self) -> None:
        """Check after a change whether there are too many clusters."""
        self._changes += 1
        if len(self.anchors) > self._bearable or self._changes >= max(_CHECKED, len(self.anchors)):
            self._changes = 0
            self._merge()
            least = fewest(self.clusters)
            if len(self.anchors) > _bearable(least):
                self._plant(*self._all(0))
            self._bearable = max(_bearable(least), len(self.anchors) + _SPARE // 2)

    def _merge(self) -> None:
        """Merge neighbouring clusters as long as all their ranges overlap."""
        anchors: list[int] = []
        roots: list[int] = []
        for anchor, root in zip(self.anchors.tolist(), self.roots.tolist(), strict=True):
            if roots:
                bounds = self.arrays.bounds
                low = max(bounds[roots[-1], 5], bounds[root, 5])
                high = min(bounds[roots[-1], 6], bounds[root, 6])
                if low <= high:
                    anchors[-1], roots[-1] = int(high), self._join(roots[-1], root)
                    continue
            anchors.append(anchor)
            roots.append(root)
        self.anchors, self.roots = np.array(anchors, np.int64), np.array(roots, np.int32)

    def _join(self, one: int, other: int) -> int:
        """Join two trees; return the root."""
        links = self.arrays.links
        small, large = sorted((one, other), key=lambda root: int(links[root, SIZE]))
        size = int(links[small, SIZE])
        if size * 3 >= links[large, SIZE] and size > BLOCK:
            self._make_room(1)
            graft(self.arrays, large, small)
            return large
        # With a much smaller sister a tree would be deep.
        rows, names = self._rows_of(np.array([small], np.int32), size)
        for id, box in zip(names.tolist(), rows, strict=True):
            remove(self.arrays, id)
            self._make_room(2)
            self._box[:] = box
            self._insert(large, id)
        return large

    def _rows_of(self, roots: Int32s, count: int) -> tuple[Words, Words]:
        """All boxes of some trees as rows, and their names, with room for this many rows in total."""
        rows, names = scratch((count, 4), np.int64), scratch((count,), np.int64)
        read_out(self.arrays, rows, names, roots, self.stack)
        return rows, names

    def _all(self, more: int) -> tuple[Words, Words]:
        """All boxes, and room for some more."""
        return self._rows_of(self.roots, len(self) + more)

    def _plant(self, rows: Words, names: Words) -> None:
        """Replace all boxes by these, in the fewest clusters; reorders the rows."""
        count = len(names)
        order = np.argsort(rows[:, 3])
        anchors = np.empty(stab(rows, order, np.empty(0, np.int64)), np.int64)
        stab(rows, order, anchors)
        del order
        starts = np.empty(len(anchors) + 1, np.int64)
        partition(rows, names, anchors, scratch((count,), np.int32), starts, np.empty(len(anchors), np.int64))
        self._clear(count)
        sizes = np.diff(starts)
        few = sizes <= CELL
        blocks = int(np.ceil(sizes[~few] / FILL).sum()) + -(-int(few.sum()) // CELLS)
        pairs = int(np.ceil(sizes / FILL).sum())
        self.arrays = self.arrays._replace(
            bounds=np.empty((2 * pairs, 8), np.int64),
            links=np.empty((2 * pairs, 4), np.int32),
            boxes=np.empty((blocks * BLOCK, 4), np.int64),
            ids=np.empty(blocks * BLOCK, np.int64),
            owner=np.full(blocks * CELLS + 1, -1, np.int32),
        )
        slots = scratch((count,), np.int32)
        enter(self.arrays.slots, names, slots)
        self.anchors, self.roots = anchors, np.empty(len(anchors), np.int32)
        plant(self.arrays, BoxRows(rows, names, slots), starts, self.roots, self.stack)
        self._bearable = _bearable(len(anchors))


def _bearable(fewest: int) -> int:
    """The largest acceptable number of clusters."""
    return fewest + fewest // 2 + _SPARE


def _slot_count(count: int) -> int:
    """The power of two for a table of this many names, at most two thirds full."""
    return int(max(_FIRST_SLOTS, 1 << (count * 3 // 2).bit_length()))
