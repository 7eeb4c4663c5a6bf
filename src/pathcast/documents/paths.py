"""Label paths: the tree of all root-to-element name sequences seen so far, each with a number.

    documents  <a><b/><b><c/></b></a>, <a><c/></a>        paths  0 /a
                                                                 1 /a/b
                                                                 2 /a/b/c
                                                                 3 /a/c

Documents of one kind repeat a few hundred label paths over and over; what depends on the path alone is worked out once
per node here instead of once per element. Names are kept whole: a path means the same in every process and message.

Invariant: a node's number is larger than its parent's, and neither ever changes.
Cost: one hash probe an element; `capacity` bounds the nodes, so that hostile documents cannot grow the tree for ever.
"""

from collections.abc import Iterator

import numpy as np

from ..errors import LimitError
from .batch import DocumentBatch, Int32s
from .names import Names

ROOT = -1


class LabelPaths:
    """A growing tree of label paths."""

    def __init__(self, *, capacity: int = 1 << 20) -> None:
        self.names = Names()
        self.capacity = capacity
        self._parent: list[int] = []
        self._name: list[int] = []
        self._children: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._parent)

    def child(self, parent: int, name: str) -> int:
        """The number of the path `parent` + `name` (`ROOT` for the empty path), given now if it had none."""
        return self._child(parent, self.names.add(name))

    def _child(self, parent: int, name: int) -> int:
        found = self._children.get((parent, name))
        if found is None:
            if len(self._parent) >= self.capacity:
                raise LimitError(f"more than {self.capacity:,} distinct label paths (raise it with capacity=…)")
            found = len(self._parent)
            self._parent.append(parent)
            self._name.append(name)
            self._children[parent, name] = found
        return found

    def find(self, *names: str) -> int | None:
        """The number of the path with these names, or None when no document had it."""
        path = ROOT
        for name in names:
            number = self.names.get(name)
            found = None if number is None else self._children.get((path, number))
            if found is None:
                return None
            path = found
        return path

    def add(self, batch: DocumentBatch) -> Int32s:
        """The path of every element of the batch, in document order."""
        translate = batch.translation(self.names, add=True)
        names = translate[batch.name].tolist()
        paths = np.empty(len(names), dtype=np.int32)
        for element, (name, parent) in enumerate(zip(names, batch.parent.tolist(), strict=True)):
            paths[element] = self._child(ROOT if parent < 0 else int(paths[parent]), name)
        return paths

    def parent(self, path: int) -> int:
        """The path without its last name; `ROOT` for a path of one."""
        return self._parent[path]

    def labels(self, path: int) -> tuple[str, ...]:
        """The names along a path, root first."""
        labels = []
        while path != ROOT:
            labels.append(self.names[self._name[path]])
            path = self._parent[path]
        return tuple(reversed(labels))

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return map(self.labels, range(len(self)))
