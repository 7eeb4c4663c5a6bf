"""The states computed so far: one generation of the lazily determinised automaton.

Invariant: a state's number, matches and transitions never change. Arrays are appended to in place, or replaced by
larger copies. A walk in another thread therefore continues with the arrays it has (`Automaton`), and treats a later
state as unknown. When the generation exceeds its limit, a new, empty one replaces it.
Cost: computing a state costs one trie look-up per reached and deep node; some 12 bytes for each.
"""

import threading

import numpy as np

from pathcast.kernels import AnyArray, Int32s

from ...table.path_trie import Trie
from .jointly_accepted_entries import NO_GROUPS, grouped
from .jointly_accepted_entries_kernels import Accepted
from .lazy_determinisation_kernels import (
    DEEP_STEPS,
    N_ACCEPTED,
    N_DEEP_POOL,
    N_DEEPS,
    N_GATES,
    N_REACHED,
    N_SIZES,
    N_STATES,
    N_TRANSITIONS,
    N_WORK,
    NONE,
    Automaton,
    NodeSets,
    PathTrie,
    StatePools,
    copy_transitions,
    index_rows,
    learn,
    mark_below,
)

# The pools, each with its number type and the size that counts how far it is filled (and how many places more are in
# use: a row ends where the next begins). None: tables and scratch.
_POOLS: dict[str, tuple[type[np.generic], int | None, int]] = {
    "reached": (np.int32, N_REACHED, 0),
    "reached_begin": (np.int64, N_STATES, 1),
    "accepted": (np.int32, N_ACCEPTED, 0),
    "accepted_begin": (np.int64, N_STATES, 1),
    "gates": (np.int32, N_GATES, 0),
    "gates_begin": (np.int64, N_STATES, 1),
    "deep_of": (np.int32, N_STATES, 0),
    "hashes": (np.uint64, N_STATES, 0),
    "state_slots": (np.int32, None, 0),
    "deep_pool": (np.int32, N_DEEP_POOL, 0),
    "deep_begin": (np.int64, N_DEEPS, 1),
    "deep_parent": (np.int32, N_DEEPS, 0),
    "deep_hashes": (np.uint64, N_DEEPS, 0),
    "deep_slots": (np.int32, None, 0),
    "stamps": (np.int64, None, 0),
    "keys": (np.int64, None, 0),
    "targets": (np.int32, None, 0),
}
_FIRST = 1024
# Stored on disk; the hash tables are rebuilt when a state is added.
_SAVED = [name for name in _POOLS if name not in ("state_slots", "deep_slots", "stamps")]


_NO_INT64S, _NO_INT32S = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
NO_STATES = Automaton(_NO_INT64S, _NO_INT32S, _NO_INT32S, _NO_INT64S, _NO_INT32S, _NO_INT64S, 0, NO_GROUPS)


class States:
    """A generation of states over a trie as it is now; later nodes and entries are ignored.

    `gate_of_node` gives the gate of each node (see `required_path_gate.py`). Only the entries from `first_entry` to
    `entry_limit` count, and only the part of the trie that leads to them.
    """

    def __init__(self, trie: Trie | PathTrie, gate_of_node: Int32s, entry_limit: int, first_entry: int = 0) -> None:
        self.gate_of_node = gate_of_node
        self.first_entry, self.entry_limit = first_entry, entry_limit
        self.below = np.zeros(len(gate_of_node), dtype=np.uint64)
        mark_below(trie.parent, trie.step, trie.entry, gate_of_node, first_entry, entry_limit, self.below)
        self.trie = PathTrie(
            slots=trie.slots,
            parent=trie.parent,
            step=trie.step,
            entry=trie.entry,
            below=self.below,
            gate_of_node=gate_of_node,
            first_entry=first_entry,
            entry_limit=entry_limit,
        )
        self.lock = threading.Lock()
        self._sizes = np.zeros(N_SIZES, dtype=np.int64)
        self._pools: dict[str, AnyArray] = {name: np.zeros(_FIRST, dtype=kind) for name, (kind, _, _) in _POOLS.items()}
        self._pools["state_slots"] = np.zeros(2 * _FIRST, dtype=np.int32)
        self._pools["deep_slots"] = np.zeros(2 * _FIRST, dtype=np.int32)
        self._make_document()
        self._restored = False
        self.full = False  # the last document did not fit
        self.groups = NO_GROUPS
        self.entry_order = NO_GROUPS.entries  # the entries of all groups
        self.marked = 0  # entries marked one by one since the last grouping, by documents with later states
        self._publish()

    def emptied(self) -> "States":
        """States for the same paths, with nothing computed yet."""
        return States(self.trie, self.gate_of_node, self.entry_limit, self.first_entry)

    def _make_document(self) -> None:
        """State 0: the document node, before any element."""
        pools, sizes = self._pools, self._sizes
        for name in ("state_slots", "deep_slots", "keys"):
            pools[name].fill(NONE)
        pools["stamps"] = np.zeros(len(self.below), dtype=np.int64)
        sizes[N_STATES] = sizes[N_REACHED] = 1
        pools["reached_begin"][1] = 1
        pools["deep_of"][0] = NONE
        if self.below[0] & DEEP_STEPS:
            pools["deep_begin"][1] = sizes[N_DEEP_POOL] = sizes[N_DEEPS] = 1
            pools["deep_parent"][0] = NONE
            pools["deep_of"][0] = 0
        entry = self.trie.entry[0]
        if self.first_entry <= entry < self.entry_limit:
            pools["accepted"][0] = entry
            pools["accepted_begin"][1] = sizes[N_ACCEPTED] = 1
        if self.gate_of_node[0] >= 0:
            pools["gates"][0] = self.gate_of_node[0]
            pools["gates_begin"][1] = sizes[N_GATES] = 1

    def _publish(self) -> None:
        pools = self._pools
        self.automaton = Automaton(
            keys=pools["keys"],
            targets=pools["targets"],
            accepted=pools["accepted"],
            accepted_begin=pools["accepted_begin"],
            gates=pools["gates"],
            gates_begin=pools["gates_begin"],
            known=int(self._sizes[N_STATES]),
            groups=self.groups,
        )

    def __len__(self) -> int:
        return int(self._sizes[N_STATES])

    @property
    def accepted(self) -> int:
        """The number of entries that states accept, counted once per state."""
        return int(self._sizes[N_ACCEPTED])

    def group(self) -> None:
        """Group the entries of the states known now; documents are matched meanwhile."""
        automaton = self.automaton
        self.marked = 0
        accepted = Accepted(automaton.accepted, automaton.accepted_begin, self.first_entry, automaton.known)
        groups = grouped(accepted, self.entry_limit)
        with self.lock:
            if groups.known > self.groups.known:
                self.groups, self.entry_order = groups, groups.entries[: groups.begin[-1]]
                self._publish()

    @property
    def transitions(self) -> int:
        """The number of computed transitions."""
        return int(self._sizes[N_TRANSITIONS])

    @property
    def bytes(self) -> int:
        """The memory of states and transitions."""
        groups = sum(array.nbytes for array in self.groups[:-1])
        return groups + sum(pool.nbytes for pool in self._pools.values())

    def learn(
        self,
        names: Int32s,
        parents: Int32s,
        symbols: Int32s,
        begin: int,
        end: int,
        states: Int32s,
        limit: int,
        work: int = 1 << 62,
    ) -> bool:
        """Compute the states of a document's elements; False if that takes more than the allowed bytes or look-ups.

        `begin` and `end` bound the elements, `states` receives the state of each. The caller holds the lock.
        """
        self._make_writable()
        self._sizes[N_WORK] = 0
        self.full = False
        done = begin
        while done < end:
            done = learn(names, parents, symbols, begin, done, end, work, self.trie, self._writable(), states)
            if done < end:
                self.full = self._sizes[N_WORK] <= work and not self._grow(limit)
                if self.full or self._sizes[N_WORK] > work:
                    break
        self._publish()
        return done == end

    def _writable(self) -> StatePools:
        """The pools in the form that a kernel appends to."""
        pools = self._pools
        return StatePools(
            sizes=self._sizes,
            states=NodeSets(
                nodes=pools["reached"],
                begins=pools["reached_begin"],
                above=pools["deep_of"],
                hashes=pools["hashes"],
                slots=pools["state_slots"],
            ),
            deeps=NodeSets(
                nodes=pools["deep_pool"],
                begins=pools["deep_begin"],
                above=pools["deep_parent"],
                hashes=pools["deep_hashes"],
                slots=pools["deep_slots"],
            ),
            accepted=pools["accepted"],
            accepted_begin=pools["accepted_begin"],
            gates=pools["gates"],
            gates_begin=pools["gates_begin"],
            keys=pools["keys"],
            targets=pools["targets"],
            stamps=pools["stamps"],
        )

    def _grow(self, limit: int) -> bool:
        """Double the pools that are more than half full; False if that exceeds the limit."""
        sizes, pools = self._sizes, self._pools
        full = {
            counter
            for name, (_, counter, more) in _POOLS.items()
            if counter is not None and 2 * (sizes[counter] + more) > len(pools[name])
        }
        tight = 4 * (sizes[N_TRANSITIONS] + 1) > len(pools["keys"])
        if not full and not tight:
            # A state needs more than is left in pools that are half empty.
            full = {N_REACHED, N_ACCEPTED, N_GATES, N_DEEP_POOL}
        wanted = {name: (1 + (counter in full)) * len(pools[name]) for name, (_, counter, _) in _POOLS.items()}
        wanted["keys"] = wanted["targets"] = (1 + tight) * len(pools["keys"])
        wanted["state_slots"] = 2 * wanted["hashes"]
        wanted["deep_slots"] = 2 * wanted["deep_hashes"]
        if sum(wanted[name] * pool.itemsize for name, pool in pools.items()) > limit:
            return False
        self._resize(wanted)
        return True

    def _resize(self, wanted: dict[str, int]) -> None:
        sizes, pools = self._sizes, self._pools
        fresh = {name: pool for name, pool in pools.items() if wanted[name] == len(pool)}
        for name, (kind, counter, more) in _POOLS.items():
            if name not in fresh:
                fresh[name] = np.zeros(wanted[name], dtype=kind)
                if counter is not None:
                    filled = int(sizes[counter]) + more
                    fresh[name][:filled] = pools[name][:filled]
        if fresh["keys"] is not pools["keys"]:
            fresh["keys"].fill(NONE)
            copy_transitions(pools["keys"], pools["targets"], fresh["keys"], fresh["targets"])
        for slots, hashes, counter in (("state_slots", "hashes", N_STATES), ("deep_slots", "deep_hashes", N_DEEPS)):
            if fresh[slots] is not pools[slots]:
                fresh[slots].fill(NONE)
                index_rows(fresh[hashes], int(sizes[counter]), fresh[slots])
        self._pools = {name: fresh[name] for name in _POOLS}

    def relearn(self, old: "States", limit: int, symbols_of: Int32s) -> None:
        """Compute the states of all label paths that another generation has seen, as far as `limit` allows.

        `symbols_of` has the current symbol of each name; in the other generation a name may have had no symbol yet.
        The other generation's transitions are walked like the elements of one document, each below the transition that
        first led to its state.
        """
        with old.lock:
            # Other threads write to these arrays in place; a copy is consistent.
            keys, targets = old.automaton.keys.copy(), old.automaton.targets.copy()
        used = np.flatnonzero(keys >= 0)
        order = used[np.argsort(keys[used])]
        keys, targets = keys[order], targets[order]
        sources, symbols = keys >> 32, (keys & 0xFFFFFFFF).astype(np.int32)
        first = np.full(int(max(targets.max(initial=0), sources.max(initial=0))) + 1, NONE, dtype=np.int32)
        first[targets[::-1]] = np.arange(len(targets) - 1, -1, -1, dtype=np.int32)
        first[0] = NONE
        parents = first[sources]
        now = np.zeros(int(symbols.max(initial=0)) + 1, dtype=np.int32)
        now[1 : len(symbols_of) + 1] = symbols_of[: len(now) - 1]
        self.learn(symbols, parents, now, 0, len(keys), np.empty(len(keys), dtype=np.int32), limit)

    # On disk.

    def arrays(self) -> dict[str, AnyArray]:
        """The generation as arrays; `restore` reads them, over the same trie and gates."""
        with self.lock:
            saved = {"sizes": self._sizes.copy()}
            for name in _SAVED:
                _, counter, more = _POOLS[name]
                pool = self._pools[name]
                # Append-only arrays stay valid; the others are written in place.
                saved[name] = pool.copy() if counter is None else pool[: int(self._sizes[counter]) + more]
            return saved

    @classmethod
    def restore(cls, trie: Trie, gate_of_node: Int32s, entry_limit: int, arrays: dict[str, AnyArray]) -> "States":
        """The generation that was saved as `arrays`."""
        states = cls(trie, gate_of_node, entry_limit)
        states._sizes = np.array(arrays["sizes"], dtype=np.int64)
        states._pools |= {name: np.asarray(arrays[name]) for name in _SAVED}
        states._restored = True
        states._publish()
        return states

    def _make_writable(self) -> None:
        """After a restore: copy mapped arrays, and index the existing states and deep sets."""
        if self._restored:
            self._restored = False
            filled = {
                counter: int(self._sizes[counter]) + 1 for _, counter, _ in _POOLS.values() if counter is not None
            }
            wanted = {
                name: len(self._pools[name]) if counter is None else 2 * _power_of_two(filled[counter])
                for name, (_, counter, _) in _POOLS.items()
            }
            wanted["keys"] = wanted["targets"] = 2 * len(self._pools["keys"])
            wanted["state_slots"] = 2 * wanted["hashes"]
            wanted["deep_slots"] = 2 * wanted["deep_hashes"]
            self._resize(wanted)


def _power_of_two(least: int) -> int:
    return max(_FIRST, 1 << (least - 1).bit_length())
