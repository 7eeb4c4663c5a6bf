"""The states worked out so far: one generation of the lazily determinised automaton.

Invariant: arrays are appended to, never changed; a state's number, matches and transitions stay what they are. So a
walk in another thread may go on with the arrays it has. When the generation outgrows its limit, a new, empty one
takes its place.
Cost: working out a state costs one look-up in the trie for each of its reached and deep nodes; some 4 bytes for each.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from ..trie import Trie
from .growing import Growing
from .states_kernels import NONE, mark_deep, put_transitions, step_state

Int32s = npt.NDArray[np.int32]

# Rows of nodes and entries, each with where it begins; `deep_of` is a state's deep set, `deep_parent` a deep set's.
_COLUMNS: dict[str, tuple[type[np.generic], list[int] | None]] = {
    "reached": (np.int32, None),
    "reached_begin": (np.int64, [0]),
    "accepted": (np.int32, None),
    "accepted_begin": (np.int64, [0]),
    "gates": (np.int32, None),
    "gates_begin": (np.int64, [0]),
    "deep_of": (np.int32, None),
    "deep_pool": (np.int32, None),
    "deep_begin": (np.int64, [0]),
    "deep_parent": (np.int32, None),
}


class States:
    """A generation of states over a trie as it is now; `gate_of_node` says which nodes open a gate (see `gates.py`)."""

    def __init__(self, trie: Trie, gate_of_node: Int32s) -> None:
        self.count = trie.count
        self.slots, self.parent, self.step, self.entry = trie.slots, trie.parent, trie.step, trie.entry
        self.gate_of_node = gate_of_node
        self.has_deep = np.zeros(self.count, dtype=np.bool_)
        mark_deep(self.parent, self.step, 1, self.count, self.has_deep)
        self.columns = {name: Growing(kind, first) for name, (kind, first) in _COLUMNS.items()}
        self.keys = np.full(1024, NONE, dtype=np.int64)
        self.targets = np.zeros(1024, dtype=np.int32)
        self.transitions = 0
        self._known: dict[tuple[int, int], list[int]] | None = {}
        self._deep_known: dict[tuple[int, bytes], int] | None = {}
        self._stamps = np.zeros(self.count, dtype=np.int64)
        self._stamp = 0
        self._room = np.empty((2, 1024), dtype=np.int32)
        self._sizes = np.zeros(2, dtype=np.int64)
        document = np.zeros(1, dtype=np.int32)
        self._state(document, self._deep(NONE, document[self.has_deep[:1]]))

    def view(self, column: str) -> npt.NDArray[Any]:
        """One of the columns as it is now."""
        return self.columns[column].view

    def __len__(self) -> int:
        return self.columns["deep_of"].size

    @property
    def bytes(self) -> int:
        """The memory of states and transitions."""
        return sum(column.view.nbytes for column in self.columns.values()) + 12 * len(self.keys) + 8 * self.count

    def extend(self, misses: npt.NDArray[np.int64]) -> None:
        """Work out the transitions `state << 32 | symbol` that a walk missed."""
        self._look_up_known()
        fresh = list(dict.fromkeys(misses.tolist()))
        targets = [self._follow(key >> 32, key & 0xFFFFFFFF) for key in fresh]
        self.transitions += len(fresh)
        fresh_keys, fresh_targets = np.array(fresh, dtype=np.int64), np.array(targets, dtype=np.int32)
        keys, values = self.keys, self.targets
        if 2 * self.transitions > len(keys):
            size = len(keys)
            while 2 * self.transitions > size:
                size *= 4
            keys, values = np.full(size, NONE, dtype=np.int64), np.zeros(size, dtype=np.int32)
            put_transitions(self.keys, self.targets, keys, values)
        elif not keys.flags.writeable:
            keys, values = keys.copy(), values.copy()
        put_transitions(fresh_keys, fresh_targets, keys, values)
        self.keys, self.targets = keys, values

    def _follow(self, state: int, symbol: int) -> int:
        deep = int(self.view("deep_of")[state])
        while True:
            self._stamp += 1
            fits = step_state(
                self.slots, self.parent, self.step, self.has_deep, symbol,
                self.view("reached"), self.view("reached_begin"), state,
                self.view("deep_pool"), self.view("deep_parent"), self.view("deep_begin"), deep,
                self._stamps, self._stamp, self._room[0], self._room[1], self._sizes,
            )  # fmt: skip
            if fits == 0:
                break
            self._room = np.empty((2, 2 * self._room.shape[1]), dtype=np.int32)
        reached = np.sort(self._room[0, : self._sizes[0]])
        return self._state(reached, self._deep(deep, np.sort(self._room[1, : self._sizes[1]])))

    def _append(self, row: str, values: Int32s) -> None:
        self.columns[row].extend(values)
        self.columns[f"{row}_begin"].append(self.columns[row].size)

    def _row(self, row: str, number: int) -> npt.NDArray[Any]:
        begin, end = self.view(f"{row}_begin")[number : number + 2]
        return self.view(row)[begin:end]

    def _deep(self, above: int, added: Int32s) -> int:
        """The deep set `above` with some nodes more."""
        if not len(added):
            return above
        assert self._deep_known is not None
        key = (above, added.tobytes())
        known = self._deep_known.get(key)
        if known is None:
            known = self.columns["deep_parent"].size
            self._deep_known[key] = known
            self.columns["deep_parent"].append(above)
            self.columns["deep_pool"].extend(added)
            self.columns["deep_begin"].append(self.columns["deep_pool"].size)
        return known

    def _state(self, reached: Int32s, deep: int) -> int:
        """The state with these nodes, made now if there is none."""
        assert self._known is not None
        same = self._known.setdefault((deep, hash(reached.tobytes())), [])
        for state in same:
            if np.array_equal(self._row("reached", state), reached):
                return state
        same.append(len(self))
        entries = self.entry[reached]
        gates = self.gate_of_node[reached]
        self._append("reached", reached)
        self._append("accepted", np.sort(entries[entries >= 0]))
        self._append("gates", gates[gates >= 0])
        self.columns["deep_of"].append(deep)
        return same[-1]

    # On disk.

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The generation as arrays; `restore` takes them back, over the same trie and gates."""
        columns = {name: column.view for name, column in self.columns.items()}
        return columns | {"keys": self.keys, "targets": self.targets}

    @classmethod
    def restore(cls, trie: Trie, gate_of_node: Int32s, arrays: dict[str, npt.NDArray[Any]]) -> "States":
        """The generation that `arrays` was taken of."""
        states = cls(trie, gate_of_node)
        states.columns = {name: Growing.over(arrays[name]) for name in _COLUMNS}
        states.keys, states.targets = np.asarray(arrays["keys"]), np.asarray(arrays["targets"])
        states.transitions = int(np.count_nonzero(states.keys >= 0))
        states._known = states._deep_known = None
        return states

    def _look_up_known(self) -> None:
        """After a restore: find out which states and deep sets there are, before another is made."""
        if self._known is not None:
            return
        self._known, self._deep_known = {}, {}
        for state, deep in enumerate(self.view("deep_of").tolist()):
            key = (deep, hash(self._row("reached", state).tobytes()))
            self._known.setdefault(key, []).append(state)
        begins = self.view("deep_begin").tolist()
        for number, above in enumerate(self.view("deep_parent").tolist()):
            added = self.view("deep_pool")[begins[number] : begins[number + 1]]
            self._deep_known[above, added.tobytes()] = number
