"""The trie of plain paths: equal paths end in one node, and paths share the nodes of common prefixes.

It stores the distinct plain paths (`PatternTable`), and is the automaton that the engines run. Several threads may
insert paths; a concurrent reader ignores nodes beyond the number at its start.

Cost: some 40 bytes per distinct path of the field's workloads, 0.2 µs to insert one.
"""

from collections.abc import Sequence
from itertools import chain
from threading import RLock

import numpy as np

from pathcast.kernels import AnyArray, Int32s
from pathcast.patterns.parsing import Steps
from pathcast.store import grown

from .path_trie_kernels import NONE, enter_path, insert_paths, merge_nodes, number_paths, rebuild_slots

# Paths are inserted in groups, so that room is made for a group's steps and not for those of a million paths at once.
_GROUP = 1 << 14
_FEW = 1 << 10
_STEPS = 64


class Trie:
    """Arrays over nodes (`parent`, `step`, `entry`) and the hash table of edges; node 0 is the document."""

    def __init__(self) -> None:
        self.count = 1
        self._lock = RLock()
        self.slots: Int32s = np.full(256, NONE, dtype=np.int32)
        self.parent: Int32s = np.zeros(64, dtype=np.int32)
        self.step: Int32s = np.zeros(64, dtype=np.int32)
        self.entry: Int32s = np.full(64, NONE, dtype=np.int32)
        # For inserting a single path: its steps, last node and entry, as kernel arrays and as Python lists.
        self._one_path, self._one_found = np.empty(_STEPS, dtype=np.int32), np.empty(2, dtype=np.int32)
        self._steps, self._found = self._one_path.data, self._one_found.data
        self._room = 0  # capacity in nodes; 0: arrays may be read-only

    def insert(self, steps: Int32s, lengths: Int32s) -> Int32s:
        """Insert paths, given as concatenated steps; return the last node of each."""
        ends = np.empty(len(lengths), dtype=np.int32)
        edge = 0
        for begin in range(0, len(lengths), _GROUP):
            end = min(begin + _GROUP, len(lengths))
            group = steps[edge : edge + int(lengths[begin:end].sum())]
            edge += len(group)
            with self._lock:
                self._make_room(len(group))
                self.count = insert_paths(
                    group, lengths[begin:end], self.slots, self.parent, self.step, self.count, ends[begin:end]
                )
        return ends

    def insert_one(self, steps: Steps) -> int:
        """Insert a path; return its last node."""
        return int(self.insert(*flat([steps]))[0])

    def enter_one(self, steps: Steps, fresh: int) -> tuple[int, int]:
        """Insert a path; return its last node and its entry, which is `fresh` if it had none."""
        length = len(steps)
        with self._lock:
            if self.count + length > self._room:
                self._make_room(length)
            if length > len(self._steps):
                self._one_path = np.empty(2 * length, dtype=np.int32)
                self._steps = self._one_path.data
            into = self._steps
            for place, step in enumerate(steps):
                into[place] = step
            self.count = enter_path(
                self._one_path,
                length,
                self.slots,
                self.parent,
                self.step,
                self.entry,
                self.count,
                fresh,
                self._one_found,
            )
            found = self._found
            return found[0], found[1]

    def merge(self, parent: Int32s, step: Int32s, names: Int32s) -> Int32s:
        """Merge the nodes of another trie, with names translated by `names`; return the number of each node in ours."""
        moved = np.empty(len(parent), dtype=np.int32)
        with self._lock:
            self._make_room(len(parent))
            self.count = merge_nodes(parent, step, names, self.slots, self.parent, self.step, self.count, moved)
        return moved

    def number(self, ends: Int32s, first: int) -> tuple[Int32s, int]:
        """The entries of the paths that end in these nodes; new ones count from `first` on. And the next number."""
        entries = np.empty(len(ends), dtype=np.int32)
        if not len(ends):  # nothing was inserted, so a snapshot's arrays may still be read-only
            return entries, first
        with self._lock:
            return entries, number_paths(ends, self.entry, first, entries)

    def give(self, ends: Int32s, entries: Int32s) -> None:
        """Set the entries of the paths that end in these nodes, which are distinct."""
        with self._lock:
            self.entry[ends] = entries

    def paths(self, nodes: Int32s) -> tuple[Int32s, Int32s]:
        """The paths to these nodes, in the form that `insert` takes."""
        steps: list[Int32s] = [np.empty(0, dtype=np.int32)]
        lengths: list[Int32s] = [np.empty(0, dtype=np.int32)]
        for begin in range(0, len(nodes), _FEW):
            # One column per step, from the last to the first; shorter paths have no step left.
            current = nodes[begin : begin + _FEW]
            columns = [np.full(len(current), NONE, dtype=np.int32)]
            while np.any(current > 0):
                columns.append(np.where(current > 0, self.step[current], NONE))
                current = np.where(current > 0, self.parent[current], 0)
            table = np.stack(columns[::-1], axis=1)
            lengths.append(np.count_nonzero(table != NONE, axis=1).astype(np.int32))
            steps.append(table[table != NONE].astype(np.int32))
        return np.concatenate(steps), np.concatenate(lengths)

    def path(self, node: int) -> Steps:
        """The steps from the document to a node."""
        steps = []
        while node:
            steps.append(int(self.step[node]))
            node = int(self.parent[node])
        return tuple(reversed(steps))

    def _make_room(self, fresh: int) -> None:
        needed = self.count + fresh
        if needed > len(self.parent):
            size = max(needed, 2 * len(self.parent))
            self.parent = grown(self.parent, size)
            self.step = grown(self.step, size)
            self.entry = grown(self.entry, size, NONE)
        elif not self.parent.flags.writeable:
            self.parent, self.step, self.entry = self.parent.copy(), self.step.copy(), self.entry.copy()
        if 2 * needed > len(self.slots):
            size = len(self.slots)
            while 2 * needed > size:
                size *= 2
            self.slots = np.full(size, NONE, dtype=np.int32)
            rebuild_slots(self.parent, self.step, self.count, self.slots)
        elif not self.slots.flags.writeable:
            self.slots = self.slots.copy()
        self._room = min(len(self.parent), len(self.slots) // 2)

    def arrays(self) -> dict[str, AnyArray]:
        """The trie as arrays; `restore` reads them. Arrays that may change in place are copied."""
        with self._lock:
            nodes = slice(0, self.count)
            slots, entry = (column.copy() if column.flags.writeable else column for column in (self.slots, self.entry))
            return {"slots": slots, "parent": self.parent[nodes], "step": self.step[nodes], "entry": entry[nodes]}

    @classmethod
    def restore(cls, arrays: dict[str, AnyArray]) -> "Trie":
        """The trie that was saved as `arrays`, on the same memory until it changes."""
        trie = cls()
        trie.slots, trie.parent = np.asarray(arrays["slots"]), np.asarray(arrays["parent"])
        trie.step, trie.entry = np.asarray(arrays["step"]), np.asarray(arrays["entry"])
        trie.count = len(trie.parent)
        return trie


def flat(paths: Sequence[Steps]) -> tuple[Int32s, Int32s]:
    """Paths in the form that `insert` takes."""
    lengths = np.fromiter(map(len, paths), dtype=np.int32, count=len(paths))
    steps = np.fromiter(chain.from_iterable(paths), dtype=np.int32, count=int(lengths.sum()))
    return steps, lengths
