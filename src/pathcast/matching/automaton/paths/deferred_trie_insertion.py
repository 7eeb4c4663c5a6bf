"""Deferred insertion: a column of trie nodes, where the last paths may not be in the trie yet.

Patterns are added one by one, but their paths enter the trie together, when the nodes are first needed.

Invariant: numbers below zero stand for no path and never change. Cost: 4 bytes per path; 0.2 µs to insert one.
"""

from collections.abc import Iterable

import numpy as np

from pathcast.kernels import AnyArray, Int32s
from pathcast.patterns.parsing import Steps

from ...arrays.growing_array import Growing
from ...table.path_trie import Trie, flat

# In place of the node of a path that is not in the trie yet.
_PENDING = np.iinfo(np.int32).min


class PathNodes:
    """An append-only column; `view` has its nodes, all of them after `insert`."""

    def __init__(self, nodes: AnyArray | None = None) -> None:
        self._nodes = Growing(np.int32) if nodes is None else Growing.over(nodes)
        self._paths: dict[int, Steps] = {}  # paths without a node yet, by position

    @property
    def size(self) -> int:
        return self._nodes.size

    @property
    def is_complete(self) -> bool:
        """Whether all paths have their nodes."""
        return not self._paths

    @property
    def view(self) -> Int32s:
        return self._nodes.view

    def extend(self, paths: Iterable[Steps | int]) -> None:
        """Append paths, or numbers below zero."""
        nodes, first = list[int](), self._nodes.size
        for path in paths:
            if isinstance(path, int):
                nodes.append(path)
            else:
                self._paths[first + len(nodes)] = path
                nodes.append(_PENDING)
        self._nodes.extend(np.array(nodes, dtype=np.int32))

    def insert(self, trie: Trie) -> Int32s:
        """Insert the paths into the trie; return all nodes."""
        if self._paths:
            self._nodes.make_room(1)
            self._nodes.view[list(self._paths)] = trie.insert(*flat(list(self._paths.values())))
            self._paths = {}
        return self._nodes.view

    def take_over(self, theirs: Int32s, nodes: Int32s) -> None:
        """Append the nodes of another trie, translated by `nodes`."""
        self._nodes.extend(np.where(theirs < 0, theirs, nodes[theirs]).astype(np.int32))
