"""Label paths: the tree of all root-to-element name sequences seen so far, each with a number.

    documents  <a><b/><b><c/></b></a>, <a><c/></a>        paths  0 /a
                                                                 1 /a/b
                                                                 2 /a/b/c
                                                                 3 /a/c

Documents of one kind repeat a few hundred label paths; work that depends on the path alone is done once per node
instead of once per element. Names are stored in full: a path means the same in every process and message.

Invariant: a node's number is larger than its parent's, and neither ever changes.
Cost: one hash probe per element, in a kernel; `capacity` bounds the nodes, so that hostile documents cannot grow the
tree without limit.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from pathcast.errors import LimitError
from pathcast.kernels import Int32s
from pathcast.store import grown

from .document_batch import DocumentBatch
from .expanded_name_table import Names
from .label_paths_kernels import NONE, place_edges, walk_paths

ROOT = NONE


class LabelPaths:
    """A growing tree of label paths."""

    def __init__(self, *, capacity: int = 1 << 20) -> None:
        self.names = Names()
        self.capacity = capacity
        self._count = np.zeros(1, dtype=np.int64)
        self._parent: Int32s = np.empty(min(64, capacity), dtype=np.int32)
        self._name: Int32s = np.empty(min(64, capacity), dtype=np.int32)
        self._slots: Int32s = np.full(256, NONE, dtype=np.int32)

    @classmethod
    def of(cls, names: Iterable[str], parents: Int32s, name_ids: Int32s, *, capacity: int = 1 << 20) -> "LabelPaths":
        """The tree with these nodes, `parents` and `names[name_ids]` of each; ValueError when they are not a tree."""
        paths = cls(capacity=capacity)
        for name in names:
            paths.names.add(name)
        count = len(parents)
        if count > capacity:
            raise LimitError(f"{count:,} label paths exceed the limit of {capacity:,}; raise it with capacity=…")
        numbers = np.arange(count)
        wrong = np.flatnonzero((parents < ROOT) | (parents >= numbers))
        if len(wrong):
            raise ValueError(
                f"label path {wrong[0]} has the parent {parents[wrong[0]]}; a parent must precede the label path, "
                f"or be {ROOT} for a root"
            )
        if count and (int(name_ids.min()) < 0 or int(name_ids.max()) >= len(paths.names)):
            raise ValueError(
                f"the name ids of label paths must be from 0 to {len(paths.names) - 1}, "
                f"got {name_ids.min()} to {name_ids.max()}"
            )
        edges = (parents.astype(np.int64) + 1) << 32 | name_ids
        if len(np.unique(edges)) != count:
            again = np.setdiff1d(numbers, np.unique(edges, return_index=True)[1])[0]
            raise ValueError(
                f"label path {again} has the same parent and name as an earlier label path; remove one of the two"
            )
        paths._make_room(count)
        paths._parent[:count], paths._name[:count] = parents, name_ids
        paths._count[0] = count
        place_edges(paths._parent, paths._name, 0, count, paths._slots)
        return paths

    def __len__(self) -> int:
        return int(self._count[0])

    @property
    def parents(self) -> Int32s:
        """The parent of every path, by number; `ROOT` for paths of one name."""
        return self._parent[: len(self)]

    @property
    def name_ids(self) -> Int32s:
        """The last name of every path, by number, as its id in `names`."""
        return self._name[: len(self)]

    @property
    def slots(self) -> Int32s:
        """The hash table of edges, for kernels (`label_paths_kernels.edge_slot`)."""
        return self._slots

    def child(self, parent: int, name: str) -> int:
        """The number of the path `parent` + `name` (`ROOT` for the empty path), assigned if it had none."""
        ids = np.array([self.names.add(name)], dtype=np.int32)
        return int(self._walk(np.zeros(1, dtype=np.int32), np.full(1, ROOT, dtype=np.int32), ids, above=parent)[0])

    def find(self, *names: str) -> int | None:
        """The number of the path with these names, or None when no document had it."""
        path = ROOT
        for name in names:
            number = self.names.get(name)
            if number is None:
                return None
            below = np.flatnonzero((self.parents == path) & (self.name_ids == number))
            if not len(below):
                return None
            path = int(below[0])
        return path

    def add(self, batch: DocumentBatch, translation: Int32s | None = None) -> Int32s:
        """The path of every element of the batch, in document order.

        `translation`: of the batch's names to `names`, if the caller already has it.
        """
        if translation is None:
            translation = batch.translation(self.names, add=True)
        return self._walk(batch.name, batch.parent, translation)

    def number(self, names: Int32s, parents: Int32s, translate: Int32s, first: int = 0) -> Int32s:
        """The path of every element, given their names, their parents and for each name its id in `names`.

        Parents are numbers of elements, of which the first here has the number `first`.
        """
        return self._walk(names, parents, translate, first=first)

    def closed(self, paths: Int32s) -> Int32s:
        """These paths and all above them, each once, ascending."""
        used = np.zeros(len(self) + 1, dtype=np.bool_)
        used[ROOT] = True
        front = paths
        while len(front):
            used[front] = True
            front = self.parents[front]
            front = front[~used[front]]
        return np.flatnonzero(used[:-1]).astype(np.int32)

    def depth(self, paths: Int32s) -> int:
        """The number of names in the longest of these paths."""
        levels, front = 0, paths
        while len(front):
            levels += 1
            front = np.unique(self.parents[front])
            front = front[front != ROOT]
        return levels

    def absorb(self, other: "LabelPaths", wanted: Int32s) -> Int32s:
        """Add paths of another tree, ascending and with all their ancestors.

        Returns for each path of the other tree its number here, `ROOT` for the others.
        """
        place = np.full(len(other) + 1, ROOT, dtype=np.int32)
        place[wanted] = np.arange(len(wanted), dtype=np.int32)
        used = np.unique(other.name_ids[wanted])
        translate = np.zeros(len(other.names), dtype=np.int32)
        translate[used] = [self.names.add(other.names[name]) for name in used.tolist()]
        # A tree is walked like the elements of a document: a parent comes before its children.
        place[wanted] = self._walk(other.name_ids[wanted], place[other.parents[wanted]], translate)
        return place[:-1]

    def _walk(self, names: Int32s, parents: Int32s, translate: Int32s, above: int = ROOT, *, first: int = 0) -> Int32s:
        shift = 0 if above == ROOT else 1
        paths = np.empty(len(names) + shift, dtype=np.int32)
        if shift:  # a first entry for the path to continue from
            paths[0] = above
            names = np.concatenate([names[:1], names])
            parents = np.zeros(len(names), dtype=np.int32)
        done = shift
        while True:
            done = walk_paths(
                names, parents, first, translate, done, self._slots, self._parent, self._name, self._count, paths
            )
            if done == len(names):
                return paths[shift:]
            if len(self) >= self.capacity:
                raise LimitError(f"more than {self.capacity:,} distinct label paths; raise the limit with capacity=…")
            self._make_room(len(self) + 1)

    def _make_room(self, needed: int) -> None:
        if needed > len(self._parent):
            size = min(max(needed, 2 * len(self._parent)), self.capacity)
            self._parent = grown(self._parent, size)
            self._name = grown(self._name, size)
        if 2 * needed > len(self._slots):
            size = len(self._slots)
            while 2 * needed > size:
                size *= 4
            self._slots = np.full(size, NONE, dtype=np.int32)
            place_edges(self._parent, self._name, 0, len(self), self._slots)

    def parent(self, path: int) -> int:
        """The path without its last name; `ROOT` for a path of one."""
        return int(self.parents[path])

    def labels(self, path: int) -> tuple[str, ...]:
        """The names along a path, root first."""
        labels = []
        while path != ROOT:
            labels.append(self.names[int(self._name[path])])
            path = int(self._parent[path])
        return tuple(reversed(labels))

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return map(self.labels, range(len(self)))
