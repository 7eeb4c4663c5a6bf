"""The states worked out so far: one generation of the lazily determinised automaton.

Invariant: arrays are appended to, never changed; a state's number, matches and transitions stay what they are. So a walk in
another thread may go on with the arrays it has. When the generation outgrows its limit, a new, empty one takes its
place.
Cost: working out a state costs one look-up in the trie for each of its reached and deep nodes; some 4 bytes for each.
"""

import numpy as np
import numpy.typing as npt

from ..trie import Trie
from .growing import Growing
from .states_kernels import NONE, mark_deep, put_transitions, step_state

Int32s = npt.NDArray[np.int32]

START = 0


class States:
    """A generation of states over a trie as it is now; `gate_of_node` says which nodes open a gate (see `gates.py`)."""

    def __init__(self, trie: Trie, gate_of_node: Int32s) -> None:
        self.count = trie.count
        self.slots, self.parent, self.step, self.entry = trie.slots, trie.parent, trie.step, trie.entry
        self.gate_of_node = gate_of_node
        self.has_deep = np.zeros(self.count, dtype=np.bool_)
        mark_deep(self.parent, self.step, 1, self.count, self.has_deep)
        self.reached = Growing(np.int32)
        self.reached_begin = Growing(np.int64, [0])
        self.accepted = Growing(np.int32)
        self.accepted_begin = Growing(np.int64, [0])
        self.gates = Growing(np.int32)
        self.gates_begin = Growing(np.int64, [0])
        self.deep_of: list[int] = []
        self.deep_pool = Growing(np.int32)
        self.deep_parent = Growing(np.int32)
        self.deep_begin = Growing(np.int64, [0])
        self.keys = np.full(1024, NONE, dtype=np.int64)
        self.targets = np.zeros(1024, dtype=np.int32)
        self.transitions = 0
        self._known: dict[tuple[int, bytes], list[int]] = {}
        self._deep_known: dict[tuple[int, bytes], int] = {}
        self._stamps = np.zeros(self.count, dtype=np.int64)
        self._stamp = 0
        self._room = np.empty((2, 1024), dtype=np.int32)
        self._sizes = np.zeros(2, dtype=np.int64)
        document = np.zeros(1, dtype=np.int32)
        self._state(document, self._deep(NONE, document[self.has_deep[:1]]))

    def __len__(self) -> int:
        return len(self.deep_of)

    @property
    def bytes(self) -> int:
        """The memory of states and transitions."""
        pools = (self.reached, self.accepted, self.gates, self.deep_pool)
        return sum(4 * pool.size for pool in pools) + 12 * len(self.keys) + 48 * len(self)

    def extend(self, misses: Int32s) -> None:
        """Work out the transitions `state << 32 | symbol` that a walk missed."""
        fresh = [key for key in dict.fromkeys(misses.tolist())]
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
        put_transitions(fresh_keys, fresh_targets, keys, values)
        self.keys, self.targets = keys, values

    def _follow(self, state: int, symbol: int) -> int:
        deep = self.deep_of[state]
        while True:
            self._stamp += 1
            fits = step_state(
                self.slots, self.parent, self.step, self.has_deep, symbol,
                self.reached.view, self.reached_begin.view, state,
                self.deep_pool.view, self.deep_parent.view, self.deep_begin.view, deep,
                self._stamps, self._stamp, self._room[0], self._room[1], self._sizes,
            )  # fmt: skip
            if fits == 0:
                break
            self._room = np.empty((2, 2 * self._room.shape[1]), dtype=np.int32)
        reached = np.sort(self._room[0, : self._sizes[0]])
        return self._state(reached, self._deep(deep, np.sort(self._room[1, : self._sizes[1]])))

    def _deep(self, above: int, added: Int32s) -> int:
        """The deep set `above` with some nodes more."""
        if not len(added):
            return above
        key = (above, added.tobytes())
        known = self._deep_known.get(key)
        if known is None:
            known = self.deep_parent.size
            self._deep_known[key] = known
            self.deep_parent.append(above)
            self.deep_pool.extend(added)
            self.deep_begin.append(self.deep_pool.size)
        return known

    def _state(self, reached: Int32s, deep: int) -> int:
        """The state with these nodes, made now if there is none."""
        key = (deep, _digest(reached))
        for state in self._known.setdefault(key, []):
            begin, end = self.reached_begin.view[state : state + 2]
            if np.array_equal(self.reached.view[begin:end], reached):
                return state
        state = len(self)
        self._known[key].append(state)
        entries = self.entry[reached]
        gates = self.gate_of_node[reached]
        self.reached.extend(reached)
        self.reached_begin.append(self.reached.size)
        self.accepted.extend(np.sort(entries[entries >= 0]))
        self.accepted_begin.append(self.accepted.size)
        self.gates.extend(gates[gates >= 0])
        self.gates_begin.append(self.gates.size)
        self.deep_of.append(deep)
        return state


def _digest(nodes: Int32s) -> bytes:
    return hash(nodes.tobytes()).to_bytes(8, "little", signed=True)
