"""Trees as plain paths, so that a document's label paths show which trees can match it.

A tree requires the plain paths from its root to its leaves. A document that lacks one does not match. A document that
has all of them matches if each branching node can map to one element only: then the paths meet there.

    /news[.//test]/body/p       /news//test   /news/body/p      one element is a `/news`: both paths pass through it
    /news/body/p[em]/b          …/p/em        …/p/b             two elements may be a `/news/body/p`

A plain path, the one down to a branching node, also counts the elements that the node can map to. That fails if the
path ends in `//*`, whose normal form (`/*`) stands for other elements; such trees are always embedded in the document.
For trees with conditions on values, `or`, `not()` and absolute paths, the paths are only a necessary condition; the
caller decides whether they hold.

Invariant: a tree that matches has all its paths; a tree of elements alone that has them, with at most one element for
each counted branching node, matches.
Cost: about 20 µs per tree, once; each tree is indexed by the path that it shares with the fewest others.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from pathcast.kernels import Int32s
from pathcast.matching import PathMatching, engine_class
from pathcast.matching.table import PatternTable
from pathcast.patterns import WILDCARD, Node, Pattern
from pathcast.patterns.parsing import Steps, normalised

from ..annotations import aggregate_wildcard_binder_kernels as steps_kernels
from ..annotations.aggregate_wildcard_binder_kernels import ANY, CHILD, DESCENDANT
from .structure_matcher_kernels import ELEMENTS, UNCOUNTED, VALUES, Trees


class StructureTrees:
    """The trees of a table by the plain paths that they require.

    `parts` matches these paths; `forest` is the input of `match_elements`; `always` are the trees, by number,
    that require no element unconditionally. `entries` has the table's entry of each tree.
    """

    def __init__(self, table: PatternTable) -> None:
        self._numbers: dict[Steps, int] = {}
        self._leaves: list[list[int]] = []
        self._branches: list[list[int]] = []
        self._kinds: list[int] = []
        self._columns: list[tuple[int, int, int]] = []
        self._begins = [0]
        self.names: dict[str, int] = {}
        paths = PatternTable(table.namespaces, table.max_steps, table.tuning)
        self._step = paths.encoder.step
        self.entries = np.array(list(table.trees), dtype=np.int32)
        for entry in self.entries.tolist():
            self._add(table.trees[entry])
        self._enter(paths)
        self.count = len(paths)
        found = engine_class("automaton").build(paths)
        assert isinstance(found, PathMatching)
        self.parts = found
        self._lay_out()

    def _add(self, pattern: Pattern) -> None:
        """Decompose a tree."""
        leaves: dict[int, None] = {}
        branches: dict[int, None] = {}
        alone = pattern.root is not None and pattern.root.is_element
        waiting: list[tuple[Node, tuple[Node, ...], int]] = []
        if pattern.root is not None and pattern.root.is_element:
            waiting.append((pattern.root, (), -1))
        first = len(self._columns)
        while waiting:
            node, above, parent = waiting.pop()
            path, place = (*above, node), len(self._columns) - first
            symbol = ANY if node.test == WILDCARD else self.names.setdefault(node.test, len(self.names))
            self._columns.append((parent, DESCENDANT if node.axis == "//" else CHILD, symbol))
            below = [each for each in node.conditions if isinstance(each, Node) and each.is_element]
            alone = alone and len(below) == len(node.conditions)
            if not below:
                leaves[self._number(path)] = None
            elif len(below) > 1:
                branches[self._number(path) if _is_counted(path) else UNCOUNTED] = None
            waiting += [(each, path, place) for each in below]
        self._begins.append(len(self._columns))
        self._leaves.append(list(leaves))
        self._branches.append(list(branches))
        self._kinds.append(ELEMENTS if alone else VALUES)

    def _number(self, path: Iterable[Node]) -> int:
        return self._numbers.setdefault(normalised(tuple(map(self._step, path))), len(self._numbers))

    def _enter(self, paths: PatternTable) -> None:
        """Enter the plain paths, so that their numbers are entries."""
        steps = np.array([step for path in self._numbers for step in path], dtype=np.int32)
        entries = paths.number(steps, np.array(list(map(len, self._numbers)), dtype=np.int32), [])
        assert np.array_equal(entries, np.arange(len(entries)))

    def _lay_out(self) -> None:
        frequent = Counter(leaf for leaves in self._leaves for leaf in leaves)
        waits = [min(leaves, key=frequent.__getitem__, default=-1) for leaves in self._leaves]
        self.always = np.flatnonzero(np.array(waits, dtype=np.int32) < 0).astype(np.int32)
        waiting = np.array(waits, dtype=np.int32)
        triggered = np.argsort(waiting, kind="stable")[len(self.always) :].astype(np.int32)
        begins = np.searchsorted(waiting[triggered], np.arange(self.count + 1)).astype(np.int32)
        kinds = np.array(self._kinds, dtype=np.uint8)
        trees = Trees(begins, triggered, self.entries, kinds, *_flat(self._leaves), *_flat(self._branches))
        columns = np.ascontiguousarray(np.array(self._columns, dtype=np.int32).reshape(-1, 3).T)
        self.forest = trees, steps_kernels.Steps(np.array(self._begins, dtype=np.int32), *columns)
        self.longest = max((end - begin for begin, end in zip(self._begins, self._begins[1:], strict=False)), default=0)


def _is_counted(path: tuple[Node, ...]) -> bool:
    """Whether the normal form of a path stands for the same elements: false if it ends in `//*`, or in `//*/*`."""
    for node in reversed(path):
        if node.test != WILDCARD:
            return True
        if node.axis == "//":
            return False
    return True


def _flat(lists: list[list[int]]) -> tuple[Int32s, Int32s]:
    """Concatenated lists: where each begins, and all values."""
    begins = np.cumsum([0, *map(len, lists)], dtype=np.int32)
    return begins, np.array([each for some in lists for each in some], dtype=np.int32)
