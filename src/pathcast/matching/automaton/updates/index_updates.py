"""Generations, one after the other: how the engine follows its table while threads match.

A few new patterns make a generation with the same states: plain paths are fresh ones (`delta_paths.py`), and so are the
gates of trees. When they have become some hundreds, a thread works out states for them, for the label paths that the
old generation knows; until it is ready, fresh ones go on to be added. Mostly these are `recent` states, of the plain
paths alone that the large ones lack, and a small generation of the trees alone that the large one lacks
(`delta_trees.py`). When such paths or trees have become many, all is worked out anew. A bulk load is taken up at once.
The same thread lets patterns choose anew what they wait for, as documents show what is rare.

Invariant: `current` is complete for all entries that the table had when `refresh` last returned. It is replaced, never
changed, and always under the lock; readers take it without one.
Cost: working out the states of N paths takes N / 2 µs, and that of R recent ones about R µs and a look at each node of
the trie. With F fresh paths a time, all are worked out when R * R is 2 * F * N: then neither kind takes more than the
other. A fresh path is work for every document, and where there are few others all is soon worked out; so F grows as the
root of N, up to a bound. The same holds for trees, which take some 2 µs each to be laid out, and documents some time to
get used to them.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pathcast.kernels import AnyArray, Int32s

from ...arrays.ragged_arrays import part_of
from ...table.path_trie_kernels import NONE
from ...table.pattern_table import Moved, PatternTable
from ..paths.states import States
from .delta_paths import Fresh
from .delta_trees import Lately
from .generation import Generation, symbols_for

if TYPE_CHECKING:
    from ..verify.candidate_matcher import Behind, Laid, Layout

# Above this the states are forgotten and worked out anew: a bound on what hostile documents can make us remember.
MEMORY_LIMIT = 512 << 20
# With more bits of fresh paths a new generation is begun: `BITS_A_ROOT` for the root of the number of the other paths,
# not less than a few and not more than `FRESH_BITS`. With twice as many as these it is made at once.
FRESH_BITS = 1 << 13
BITS_A_ROOT = 26
_FEW_BITS = 1 << 10
# The same with fresh trees: so many, or a part of those that came lately; with `_PATIENCE` times as many it is made at
# once.
FRESH_TREES = 1024
_LATELY_A_FRESH = 8
_PATIENCE = 4
# So many plain paths take as long to work out as a tree.
_PATHS_A_TREE = 4
# Trees that were taken over are laid out at once if they are so large a part of all: to try them as fresh ones takes
# their programs, which are made from objects.
_MERGED = 8
# So many paths, on an average, are that many bits.
_BITS_A_PATH = 6
# After so many documents patterns choose their access predicates again, and then whenever there are twice as many;
# more patterns than these while matching goes on.
FIRST_CHOICE = 256
CHOOSE_AT_ONCE = 10_000

_NO_GATES = np.zeros(0, dtype=np.int32)
_TREES, _STATES = "trees_", "states_"


class Generations:
    """The current generation of a table, and the way to the next."""

    def __init__(
        self,
        table: PatternTable,
        saved: dict[str, AnyArray] | None = None,
        behind: "Behind | None" = None,
    ) -> None:
        self.table = table
        self.lock = threading.RLock()
        self.evictions = self.renewals = 0
        self._fresh = Fresh()
        self._behind = behind
        self._lately: Lately | None = None
        self._merged = 0  # trees that were taken over, and that no generation has yet
        self._renewing: threading.Thread | None = None
        self._choice_is_due = False
        self.current = self._restored(saved) if saved else self._renewed(None)
        self.refresh()

    # On disk.

    def arrays(self, *, learnt: bool) -> dict[str, AnyArray]:
        """The patterns as they are laid out, and what documents have shown (`learnt`); for a table with their entries.

        Whoever opens them need neither lay them out nor work out the states again.
        """
        with self.lock:
            made = self.settled()
            nodes, names = len(made.states.gate_of_node), made.names
            whole = np.array([made.entries, names, nodes, made.told_gates], dtype=np.int64)
            arrays: dict[str, AnyArray] = {"whole": whole}
            if made.waiting is not None and self._behind is not None:
                gate_nodes = np.flatnonzero(made.states.gate_of_node >= 0)
                order = np.argsort(made.states.gate_of_node[gate_nodes])
                arrays["gate_nodes"] = gate_nodes[order].astype(np.int32)
                trees = self._behind.saved(made.waiting)
                arrays |= {_TREES + name: array for name, array in trees.items()}
            if learnt:
                arrays |= {_STATES + name: array for name, array in made.states.arrays().items()}
            return arrays

    def _restored(self, saved: dict[str, AnyArray]) -> Generation:
        """The generation that a snapshot has, of the entries that its table had then."""
        table = self.table
        entries, names, nodes, told_gates = saved["whole"].tolist()
        gate_of_node = np.full(nodes, NONE, dtype=np.int32)
        waiting = None
        gates = np.asarray(saved.get("gate_nodes", _NO_GATES))
        if "gate_nodes" in saved:
            from ..verify.candidate_matcher import Behind

            self._behind, by = Behind.restore(table, part_of(saved, _TREES))
            waiting = self._behind.waiting(by)
            self._fresh = Fresh(by.patterns)
            gate_of_node[gates] = np.arange(len(gates), dtype=np.int32)
        learnt = part_of(saved, _STATES)
        states = (
            States.restore(table.trie, gate_of_node, entries, learnt)
            if learnt
            else States(table.trie, gate_of_node, entries)
        )
        symbols = symbols_for(table, names)
        return Generation(table, states, None, Fresh().view(), waiting, len(gates), told_gates, entries, names, symbols)

    def learn_from(self, other: "Generations") -> None:
        """Work out the states of the label paths that another one knows; names have the same numbers in both tables."""
        with self.lock:
            made = self.current
            made.states.relearn(other.current.states, MEMORY_LIMIT // 2, made.symbols)

    def count_on(self, other: "Generations") -> None:
        """Go on with the counts of another one."""
        self.evictions, self.renewals = other.evictions, other.renewals

    # Following the table.

    def refresh(self) -> None:
        """Take up the entries that the table has gained."""
        with self.lock:
            made = self.current
            entries, names = len(self.table), len(self.table.names)
            if entries > made.entries:
                self.current = made = self._with_fresh(made, entries, names) or self._renewed(made.states)
                if self._has_many_fresh():
                    self._meanwhile(self._renew)

    def merge(self, arrays: dict[str, AnyArray], moved: Moved) -> None:
        """Take over trees that another process compiled for a table which has just been merged into ours.

        They are matched from the next `refresh` on.
        """
        with self.lock:
            behind = self._taken_up(moved.first)
            before = len(behind)
            behind.merge(arrays, moved)
            self._merged += len(behind) - before

    def trees_for(self, table: PatternTable, entries: Int32s) -> "Behind | None":
        """The trees that another table has, which gave the entries of ours new numbers."""
        with self.lock:
            return None if self._behind is None else self._taken_up(len(self.table)).successor(table, entries)

    def settled(self) -> Generation:
        """The current generation, with nothing in it that is fresh."""
        with self.lock:
            if not self.current.settled:
                self.current = self._renewed(self.current.states)
            return self.current

    def _with_fresh(self, made: Generation, entries: int, names: int) -> Generation | None:
        """With the entries from those of `made` on as fresh ones; None when they are too many, or not fit for it."""
        table = self.table
        if entries - made.entries > FRESH_BITS or _MERGED * self._merged > made.patterns:
            return None
        ends, codes, trees = table.nodes(made.entries, entries), np.arange(made.entries, entries, dtype=np.int32), 0
        if min(ends.tolist(), default=1) <= 0:
            plain = ends != NONE
            codes, ends, trees = codes[plain], ends[plain], int(np.count_nonzero(~plain))
            # The empty path, which matches every document, has no bit.
            if not ends.all() or _fresh_trees(made) + trees > _PATIENCE * _most_trees(made):
                return None
        waiting, gates = made.waiting, _NO_GATES
        if trees:
            behind = self._taken_up(entries)
            waiting = behind.waiting(None if waiting is None else waiting.by)
        if waiting is not None and self._behind is not None and self._fresh.patterns < waiting.patterns:
            gates = self._behind.gates(self._fresh.patterns, waiting.patterns)
            names = max(names, len(table.names))  # those of its gates are among them
        symbols = made.symbols
        if names > made.names:
            symbols = np.zeros(len(made.symbols) + names - made.names, dtype=np.int32)
            symbols[: made.names] = made.symbols[: made.names]
        if len(gates):
            self._fresh.add_gates(gates, table.trie, symbols)
        if not self._fresh.add(codes, ends, table.trie, symbols, 2 * FRESH_BITS + self._fresh.gate_steps):
            return None
        return made._replace(fresh=self._fresh.view(), waiting=waiting, entries=entries, names=names, symbols=symbols)

    def _taken_up(self, entries: int) -> "Behind":
        """The store of tree patterns, with all below an entry."""
        if self._behind is None:
            # Its kernels are compiled and loaded for those alone who have such patterns.
            from ..verify.candidate_matcher import Behind

            self._behind = Behind(self.table)
        self._behind.take_up(entries)
        return self._behind

    # A generation with states of its own.

    def _renewed(self, old: States | None) -> Generation:
        """All that the table has, worked out for the label paths that `old` knows."""
        # First of all: what another thread enters from now on is for the next generation.
        entries, names = len(self.table), len(self.table.names)
        made, by = self._laid_out(self._layout(entries), entries, names, old)
        return self._with_trees(made, by)

    def _layout(self, entries: int) -> "Layout | None":
        """The trees below an entry, ready to be laid out."""
        if self._behind is None and not len(self.table.trees):
            return None
        return self._taken_up(entries).layout()

    def _laid_out(
        self, layout: "Layout | None", entries: int, names: int, old: States | None
    ) -> tuple[Generation, "Laid | None"]:
        """A generation without fresh ones and trees, and the latter; the long part, which needs no lock."""
        table = self.table
        nodes, told, by = (_NO_GATES, 0, None) if layout is None else layout.by_gates()
        gate_of_node = np.full(table.trie.count, NONE, dtype=np.int32)
        gate_of_node[nodes] = np.arange(len(nodes), dtype=np.int32)
        states = States(table.trie, gate_of_node, entries)
        symbols = symbols_for(table, names)
        if old is not None:
            states.relearn(old, MEMORY_LIMIT // 2, symbols)
        return Generation(table, states, None, Fresh().view(), None, len(nodes), told, entries, names, symbols), by

    def _with_trees(self, made: Generation, by: "Laid | None") -> Generation:
        """With all trees that have been taken up, and nothing fresh."""
        self._fresh = Fresh(0 if by is None else by.patterns)
        self._lately = None
        self._merged = 0
        return made if self._behind is None else made._replace(waiting=self._behind.waiting(by))

    def _has_many_fresh(self) -> bool:
        """Whether the next generation is to be begun."""
        made = self.current
        return self._fresh.bits - self._fresh.gate_steps > _most_bits(made) or (
            made.waiting is not None and _fresh_trees(made) > _most_trees(made)
        )

    def _meanwhile(self, work: Callable[[], None]) -> None:
        """Let a thread work on the next generation, unless one does."""
        if self._renewing is None:
            self._renewing = threading.Thread(target=self._once, args=(work,), name="pathcast-renewal", daemon=True)
            self._renewing.start()

    def _once(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:  # if it failed, say for want of memory, another one may be begun
            with self.lock:
                self._renewing = None
                if self._choice_is_due:
                    self._meanwhile(self._choose)

    def _renew(self) -> None:
        with self.lock:
            begun = self.current
            whole = _many(begun)
            layout = self._layout(begun.entries) if whole else None
            trees = [] if self._behind is None else self._behind.entries(_settled_trees(begun), begun.patterns)
            if self._lately is None:
                self._lately = Lately(self.table)
            lately = self._lately
        if whole:
            made, by = self._laid_out(layout, begun.entries, begun.names, begun.states)
        else:
            recent = self._recent(begun)
            late = lately.renewed(trees, begun, MEMORY_LIMIT // 8)
        with self.lock:
            latest = self.current
            if latest.states.gate_of_node is not begun.states.gate_of_node:
                return  # somebody could not wait
            self.renewals += 1
            # What came meanwhile is fresh again; trees have been taken up already.
            if whole:
                made = self._with_trees(made, by)
            else:
                made = latest._replace(recent=recent, lately=late, entries=begun.entries)
                self._fresh = Fresh(made.patterns - _fresh_trees(made))
            self.current = self._with_fresh(made, latest.entries, latest.names) or self._renewed(made.states)

    def _recent(self, begun: Generation) -> States | None:
        """The states of the paths that the states of a generation lack, for the label paths that these know."""
        first = begun.states.entry_limit
        if not (self.table.nodes(first, begun.entries) != NONE).any():
            return None
        nowhere = np.full(self.table.trie.count, NONE, dtype=np.int32)
        recent = States(self.table.trie, nowhere, begun.entries, begun.states.entry_limit)
        recent.relearn(begun.states, MEMORY_LIMIT // 8, begun.symbols)
        return recent

    # What documents bring about.

    def forgotten(self, states: States) -> States:
        """The states that take the place of those that have become too many."""
        with self.lock:
            if self.current.states is states:
                self.evictions += 1
                self.current = self.current._replace(states=states.emptied())
            current = self.current.states
            return current if current.gate_of_node is states.gate_of_node else states.emptied()

    def seen(self, documents: int) -> None:
        """Count documents; now and then, let patterns wait for what these have shown to be rare."""
        behind = self._behind
        if behind is None:
            return
        with self.lock:
            made = self.current
            before, behind.documents = behind.documents, behind.documents + documents
            due = before.bit_length() < behind.documents.bit_length() and behind.documents >= FIRST_CHOICE
            if due and made.waiting is not None:
                if made.patterns <= CHOOSE_AT_ONCE:
                    self.current = made._replace(waiting=behind.waiting(behind.choice(made.waiting.by)()))
                else:
                    self._choice_is_due = True
                    self._meanwhile(self._choose)

    def _choose(self) -> None:
        """Let patterns wait for what documents have shown to be rare, while these go on to be matched."""
        with self.lock:
            begun, behind, self._choice_is_due = self.current, self._behind, False
            if begun.waiting is None or behind is None:
                return
            choice, before = behind.choice(begun.waiting.by), begun.waiting.by
        by = choice()
        by.joins.cover_as(before.joins, begun.states)
        with self.lock:
            latest = self.current
            if latest.waiting is not None and latest.waiting.by is before:  # else all were laid out anew
                self.current = latest._replace(waiting=behind.waiting(by))
            many = self._has_many_fresh()
        if many:  # nobody has begun that meanwhile
            self._renew()


def _fresh_trees(made: Generation) -> int:
    """How many trees of a generation have their gates among fresh paths."""
    return made.patterns - _settled_trees(made) - _late_trees(made)


def _settled_trees(made: Generation) -> int:
    return 0 if made.waiting is None else made.waiting.by.patterns


def _late_trees(made: Generation) -> int:
    return 0 if made.lately is None else made.lately.patterns


def _most_trees(made: Generation) -> int:
    """With how many fresh trees the next generation is begun."""
    return max(FRESH_TREES, _late_trees(made) // _LATELY_A_FRESH)


def _most_bits(made: Generation) -> int:
    """With how many bits of fresh paths the next generation is begun."""
    return min(FRESH_BITS, max(_FEW_BITS, int(BITS_A_ROOT * made.states.entry_limit**0.5)))


def _many(made: Generation) -> bool:
    """Whether the paths or trees that a generation's states lack are so many that they are better worked out with all
    others.
    """
    settled, trees = made.states.entry_limit, _settled_trees(made)
    late = made.patterns - trees
    many_paths = (made.entries - settled - late) ** 2 > 2 * _most_bits(made) // _BITS_A_PATH * settled
    return many_paths or late**2 > 2 * FRESH_TREES * (trees + settled // _PATHS_A_TREE)
