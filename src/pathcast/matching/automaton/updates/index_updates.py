"""Index updates: how the engine follows its table while threads match.

    new pattern ──refresh──▶ pending ──promotion──▶ delta ──promotion──▶ base

New patterns are pending: every document is checked against them (`pending_paths.py`). When some hundreds are pending, a
thread promotes them: usually it rebuilds the delta from all patterns that the base lacks; when these are many, it
rebuilds the base from all patterns. Patterns that arrive meanwhile stay pending. A bulk load goes into the base at
once. The same thread re-selects the access predicates of trees, as documents show which values are rare.

Invariant: `current` is complete for all entries that the table had when `refresh` last returned. It is replaced, never
changed, and always under the lock; readers take it without one.
Cost: a base of N paths takes N / 2 µs to build, a delta of D paths about D µs and a pass over the nodes of the trie.
With P pending paths per promotion, the base is rebuilt when D * D is 2 * P * N: then neither rebuild costs more than
the other. A pending path is work for every document, and a small index is quickly rebuilt, so P grows as the root of N,
up to a bound. The same holds for trees, which take some 2 µs each to lay out; afterwards, documents need some time to
warm up.
"""

import threading
from collections.abc import Callable
from time import sleep
from typing import TYPE_CHECKING

import numpy as np

from pathcast.kernels import AnyArray, Int32s

from ...arrays.ragged_arrays import part_of
from ...table.path_trie_kernels import NONE
from ...table.pattern_table import MergedNumbers, PatternTable
from ..paths.lazy_determinisation import States
from ..single_document_matching import SingleDocuments
from .immutable_index_state import Generation, Index, symbols_for
from .pending_paths import PendingPaths

if TYPE_CHECKING:
    from ..verify.candidate_search_and_verification import GatedTrees
    from ..verify.tree_pattern_store import TreeLayout, TreeStore

# Computing this many plain paths takes as long as one tree.
_PATHS_PER_TREE = 4
# The average number of bits per path.
_BITS_PER_PATH = 6
# The fewest trees that a background thread reads while it holds the lock, and its pause until it takes the lock again,
# in seconds.
_READ_AT_ONCE = 16
_OTHERS_TURN = 0.0005

_NO_GATES = np.zeros(0, dtype=np.int32)
_TREES, _STATES = "trees_", "states_"


class IndexUpdates:
    """The current generation of a table, and the transition to the next."""

    def __init__(
        self, table: PatternTable, saved: dict[str, AnyArray] | None = None, trees: "TreeStore | None" = None
    ) -> None:
        self.table = table
        self.lock = threading.RLock()
        self.evictions = self.promotions = 0
        self._pending = PendingPaths()
        self._trees = trees
        self._merged = 0  # merged trees that are in no index yet
        self._worker: threading.Thread | None = None
        self._selection_is_due = False
        self.current = self._restored(saved) if saved else self._rebuilt(None)
        self.refresh()

    @property
    def current(self) -> Generation:
        """The current generation."""
        return self.single_documents.made

    @current.setter
    def current(self, made: Generation) -> None:
        self.single_documents = SingleDocuments(made)

    # On disk.

    def arrays(self, *, learnt: bool) -> dict[str, AnyArray]:
        """The patterns as laid out, and the statistics of documents (`learnt`), for a table with their entries.

        A reader need neither lay them out nor compute the states again.
        """
        with self.lock:
            made = self.settled()
            base = made.base
            nodes = len(base.states.gate_of_node)
            whole = np.array([made.entries, made.names, nodes, base.listed_gates], dtype=np.int64)
            arrays: dict[str, AnyArray] = {"whole": whole}
            if base.trees is not None and self._trees is not None:
                gate_nodes = np.flatnonzero(base.states.gate_of_node >= 0)
                order = np.argsort(base.states.gate_of_node[gate_nodes])
                arrays["gate_nodes"] = gate_nodes[order].astype(np.int32)
                trees = self._trees.saved(base.trees)
                arrays |= {_TREES + name: array for name, array in trees.items()}
            if learnt:
                arrays |= {_STATES + name: array for name, array in base.states.arrays().items()}
            return arrays

    def _restored(self, saved: dict[str, AnyArray]) -> Generation:
        """The generation of a snapshot, for the entries that its table had then."""
        table = self.table
        entries, names, nodes, listed = saved["whole"].tolist()
        gate_of_node = np.full(nodes, NONE, dtype=np.int32)
        trees = None
        gates = np.asarray(saved.get("gate_nodes", _NO_GATES))
        if "gate_nodes" in saved:
            from ..verify.tree_pattern_store import TreeStore

            self._trees, gated = TreeStore.restore(table, part_of(saved, _TREES))
            trees = self._trees.matcher(gated)
            self._pending = PendingPaths(gated.patterns)
            gate_of_node[gates] = np.arange(len(gates), dtype=np.int32)
        learnt = part_of(saved, _STATES)
        states = (
            States.restore(table.trie, gate_of_node, entries, learnt)
            if learnt
            else States(table.trie, gate_of_node, entries)
        )
        base = Index(states, trees, len(gates), listed)
        return Generation(table, base, None, PendingPaths().view(), entries, names, symbols_for(table, names))

    def learn_from(self, other: "IndexUpdates") -> None:
        """Compute the states of the label paths that `other` knows; names have the same numbers in both tables."""
        with self.lock:
            made, limit = self.current, self.table.tuning.state_bytes // 2
            made.base.states.relearn(other.current.base.states, limit, made.symbols)

    def count_on(self, other: "IndexUpdates") -> None:
        """Continue the counts of another object."""
        self.evictions, self.promotions = other.evictions, other.promotions

    # New patterns.

    def refresh(self) -> None:
        """Add the entries that the table has gained."""
        with self.lock:
            made = self.current
            entries, names = len(self.table), len(self.table.names)
            if entries > made.entries:
                self.current = made = self._with_pending(made, entries, names) or self._rebuilt(made.base.states)
                if self._has_many_pending():
                    self._in_background(self._promote)

    def merge(self, arrays: dict[str, AnyArray], moved: MergedNumbers) -> None:
        """Merge trees that another process compiled for a table which has just been merged into ours.

        They are matched from the next `refresh` on.
        """
        with self.lock:
            trees = self._trees_below(moved.first)
            before = len(trees)
            trees.merge(arrays, moved)
            self._merged += len(trees) - before

    def trees_for(self, table: PatternTable, entries: Int32s) -> "TreeStore | None":
        """The trees for another table, in which the entries of ours have new numbers."""
        with self.lock:
            return None if self._trees is None else self._trees_below(len(self.table)).successor(table, entries)

    def settled(self) -> Generation:
        """The current generation, with all patterns in the base."""
        with self.lock:
            if not self.current.settled:
                self.current = self._rebuilt(self.current.base.states)
            return self.current

    def _with_pending(self, made: Generation, entries: int, names: int) -> Generation | None:
        """The generation with the entries after those of `made` as pending; None if too many or unsuitable."""
        table, tuning = self.table, self.table.tuning
        if entries - made.entries > tuning.most_pending_bits or tuning.trees_per_merged * self._merged > made.patterns:
            return None
        ends, codes, more = table.nodes(made.entries, entries), np.arange(made.entries, entries, dtype=np.int32), 0
        if min(ends.tolist(), default=1) <= 0:
            plain = ends != NONE
            codes, ends, more = codes[plain], ends[plain], int(np.count_nonzero(~plain))
            # The empty path, which matches every document, has no bit.
            if not ends.all() or made.pending_trees + more > tuning.most_pending_trees * self._most_pending_trees(made):
                return None
        trees, gates, pending = made.base.trees, _NO_GATES, self._pending
        if more:
            trees = self._trees_below(entries).matcher(None if trees is None else trees.gated)
        if trees is not None and self._trees is not None and pending.patterns < trees.patterns:
            gates = self._trees.gates(pending.patterns, trees.patterns)
            names = len(table.names)  # includes the names of its gates
        symbols, names = made.symbols, max(names, made.names)
        if names > made.names:
            symbols = np.zeros(len(made.symbols) + names - made.names, dtype=np.int32)
            symbols[: made.names] = made.symbols[: made.names]
        if len(gates):
            pending.add_gates(gates, table.trie, symbols)
        if not pending.add(codes, ends, table.trie, symbols, 2 * tuning.most_pending_bits + pending.gate_steps):
            return None
        base = made.base._replace(trees=trees)
        return made._replace(base=base, pending=pending.view(), entries=entries, names=names, symbols=symbols)

    def _trees_below(self, entries: int) -> "TreeStore":
        """The store of trees, with all trees below an entry."""
        if self._trees is None:
            # Its kernels are compiled and loaded only if there are trees.
            from ..verify.tree_pattern_store import TreeStore

            self._trees = TreeStore(self.table)
        self._trees.take_up(entries)
        return self._trees

    # From pending to the delta, and from the delta to the base.

    def _most_pending_trees(self, made: Generation) -> int:
        """The number of pending trees above which they are promoted."""
        tuning = self.table.tuning
        of_delta = 0 if made.delta is None else made.delta.patterns
        return max(tuning.pending_trees, of_delta // tuning.delta_trees_per_pending)

    def _has_many_pending(self) -> bool:
        """Whether to promote pending patterns."""
        made = self.current
        bits = self._pending.bits - self._pending.gate_steps
        return bits > self.table.tuning.pending_bits(made.base.states.entry_limit) or (
            made.base.trees is not None and made.pending_trees > self._most_pending_trees(made)
        )

    def _delta_is_large(self, made: Generation) -> bool:
        """Whether the base lacks so large a share of the patterns that rebuilding it is cheaper."""
        tuning, settled, trees = self.table.tuning, made.base.states.entry_limit, made.base.patterns
        late = made.patterns - trees
        pending = tuning.pending_bits(settled) // _BITS_PER_PATH
        many_paths = (made.entries - settled - late) ** 2 > 2 * pending * settled
        return many_paths or late**2 > 2 * tuning.pending_trees * (trees + settled // _PATHS_PER_TREE)

    def _promote(self) -> None:
        """Rebuild the delta, or the base, while documents are matched."""
        waiting = 0 if self._trees is None else len(self._trees)
        while self._has_more_to_read(waiting):
            sleep(_OTHERS_TURN)
        with self.lock:
            begun = self.current
            into_base = self._delta_is_large(begun)
            layout, names = self._layout(begun.entries, 0 if into_base else begun.base.patterns), len(self.table.names)
        if into_base:
            made, gated = self._base(layout, begun.entries, begun.names, begun.base.states)
        else:
            delta, gated, symbols = self._delta(begun, layout, names)
        with self.lock:
            latest = self.current
            if latest.base.states.gate_of_node is not begun.base.states.gate_of_node:
                return  # a caller that could not wait has promoted them
            self.promotions += 1
            # Patterns that arrived meanwhile are pending again; their trees are already in the store.
            if into_base:
                made = self._with_trees(made, gated)
            else:
                if self._trees is not None and gated is not None:
                    delta = delta._replace(trees=self._trees.matcher(gated, begun.base.patterns))
                made = latest._replace(delta=delta, entries=begun.entries, names=names, symbols=symbols)
                self._pending = PendingPaths(made.patterns - made.pending_trees)
            self.current = self._with_pending(made, latest.entries, latest.names) or self._rebuilt(made.base.states)

    def _has_more_to_read(self, end: int) -> bool:
        """Read some trees, since other threads wait for the lock; return whether some below `end` are left."""
        with self.lock:
            if self._trees is None:
                return False
            self._trees.place(_READ_AT_ONCE)
            return self._trees.placed < end

    def _delta(
        self, begun: Generation, layout: "TreeLayout | None", names: int
    ) -> tuple[Index, "GatedTrees | None", Int32s]:
        """An index of the patterns that the base lacks, for the label paths that it knows; its trees; and symbols."""
        symbols = symbols_for(self.table, names)
        old, limit = begun.base.states, self.table.tuning.state_bytes // 8
        delta, gated = self._index(layout, range(old.entry_limit, begun.entries), symbols, old, limit)
        if gated is not None:
            gated.joins.cover(delta.states)
        return delta, gated, symbols

    def _rebuilt(self, old: States | None) -> Generation:
        """A generation with the whole table in its base, computed for the label paths that `old` knows."""
        # Read first: entries that another thread adds from now on belong to the next generation.
        entries, names = len(self.table), len(self.table.names)
        made, gated = self._base(self._layout(entries), entries, names, old)
        return self._with_trees(made, gated)

    def _layout(self, entries: int, first: int = 0) -> "TreeLayout | None":
        """The trees below an entry, ready to be laid out, from number `first` on."""
        if self._trees is None and not len(self.table.trees):
            return None
        trees = self._trees_below(entries)
        return trees.layout(first) if first < len(trees) or not first else None

    def _base(
        self, layout: "TreeLayout | None", entries: int, names: int, old: States | None
    ) -> tuple[Generation, "GatedTrees | None"]:
        """A generation with all plain paths in its base, and its trees; the long part, which needs no lock."""
        symbols = symbols_for(self.table, names)
        base, gated = self._index(layout, range(entries), symbols, old, self.table.tuning.state_bytes // 2)
        return Generation(self.table, base, None, PendingPaths().view(), entries, names, symbols), gated

    def _with_trees(self, made: Generation, gated: "GatedTrees | None") -> Generation:
        """The generation with all trees of the store, and nothing pending."""
        self._pending = PendingPaths(0 if gated is None else gated.patterns)
        self._merged = 0
        if self._trees is None:
            return made
        return made._replace(base=made.base._replace(trees=self._trees.matcher(gated)))

    def _index(
        self, layout: "TreeLayout | None", entries: range, symbols: Int32s, old: States | None, limit: int
    ) -> tuple[Index, "GatedTrees | None"]:
        """An index of the plain paths among some entries, with gates for trees, and these trees.

        Its states are computed for the label paths that `old` knows, as far as `limit` bytes allow.
        """
        nodes, listed, gated = (_NO_GATES, 0, None) if layout is None else layout.by_gates()
        gate_of_node = np.full(self.table.trie.count, NONE, dtype=np.int32)
        gate_of_node[nodes] = np.arange(len(nodes), dtype=np.int32)
        states = States(self.table.trie, gate_of_node, entries.stop, entries.start)
        if old is not None:
            states.relearn(old, limit, symbols)
        return Index(states, None, len(nodes), listed), gated

    def _in_background(self, work: Callable[[], None]) -> None:
        """Let a background thread work on the next generation, unless one already does."""
        if self._worker is None:
            self._worker = threading.Thread(target=self._once, args=(work,), name="pathcast-promotion", daemon=True)
            self._worker.start()

    def _once(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:  # after a failure, such as lack of memory, another may start
            with self.lock:
                self._worker = None
                if self._selection_is_due:
                    self._in_background(self._select)

    # Triggered by documents.

    def forgotten(self, states: States) -> States:
        """The empty states that replace those of the base when they are too many."""
        with self.lock:
            base = self.current.base
            if base.states is states:
                self.evictions += 1
                base = base._replace(states=states.emptied())
                self.current = self.current._replace(base=base)
            return base.states if base.states.gate_of_node is states.gate_of_node else states.emptied()

    def marked(self, states: States, entries: int) -> None:
        """Count entries that documents marked for lack of groups; group again when that costs less."""
        if not entries:
            return
        states.marked += entries
        accepted = states.accepted
        if states.marked <= max(self.table.tuning.fewest_marked, 2 * accepted):
            return
        if accepted <= self.table.tuning.grouped_at_once:
            states.group()
        else:
            with self.lock:
                self._in_background(states.group)

    def seen(self, documents: int) -> None:
        """Count documents; periodically, re-select the access predicates of trees."""
        trees, tuning = self._trees, self.table.tuning
        if trees is None:
            return
        with self.lock:
            made = self.current
            before, trees.documents = trees.documents, trees.documents + documents
            due = before.bit_length() < trees.documents.bit_length() and trees.documents >= tuning.first_selection
            if due and made.base.trees is not None:
                if made.patterns <= tuning.selection_in_background:
                    self._replace_trees(trees.selection(made.base.trees.gated)())
                else:
                    self._selection_is_due = True
                    self._in_background(self._select)

    def _select(self) -> None:
        """Re-select the access predicates of trees in the background, by what documents have shown to be rare."""
        with self.lock:
            base, trees, self._selection_is_due = self.current.base, self._trees, False
            if base.trees is None or trees is None:
                return
            before = base.trees.gated
            selection = trees.selection(before)
        gated = selection()
        gated.joins.cover_as(before.joins, base.states)
        with self.lock:
            latest = self.current.base.trees
            if latest is not None and latest.gated is before:  # otherwise, all trees were laid out again
                self._replace_trees(gated)
            many = self._has_many_pending()
        if many:  # no other thread has started this meanwhile
            self._promote()

    def _replace_trees(self, gated: "GatedTrees") -> None:
        """Continue with trees of the base that wait for other tests."""
        assert self._trees is not None
        base = self.current.base._replace(trees=self._trees.matcher(gated))
        self.current = self.current._replace(base=base)
