"""The store of trees: all patterns with predicates of an index, as growing arrays.

A pattern that one element decides is stored with its ancestor tests, a twig with its branches, any other pattern with
the tests that it demands; all have a program for the verifier and a gate (`required_path_gate.py`). `layout` returns
the data to put them behind their gates, each waiting for the rarest of its tests; that takes longest, and needs no
lock.

Documents wait while a few patterns are added, and only their programs and gates are needed until all patterns are laid
out. Their tests and branches are therefore read later, many at a time (`place`).

Everything is in arrays: a snapshot stores them, and arrays built by another process can be merged (`merge`).

Invariant: patterns are appended, never changed; a `CandidateMatcher` shows those that existed when it was created.
Columns have all patterns in one order; the last patterns may have programs alone.
Cost: some 60 µs to add a pattern, 10 µs for one that is joined, 1 µs to merge either.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pathcast.kernels import AnyArray, Floats, Int32s
from pathcast.patterns import Node, Pattern
from pathcast.patterns.parsing import Steps, normalised

from ...arrays.ragged_arrays import part_of
from ...table.path_trie import flat
from ...table.pattern_table import MergedNumbers, PatternTable
from ...tuning import Tuning
from ..paths.deferred_trie_insertion import PathNodes
from ..state_test_joins.ancestor_value_test_arrays import NO_TESTS, Bound, BoundTests, JoinRows, no_rows
from ..state_test_joins.ancestor_value_tests import spine_of
from ..state_test_joins.state_value_join import Joins
from ..twigs.twig_arrays import LIFT, Twigs
from ..twigs.twig_branch_decomposition import Part, Tie, twig_of
from ..twigs.twig_join import TwigJoins
from ..twigs.twig_join_kernels import TwigRows
from ..values.access_predicate_index import Access, AccessRows, laid_out, no_access
from ..values.required_path_gate import gate, in_order
from ..values.required_value_test_arrays import ClauseRows, Clauses, some_of
from ..values.value_test_table import DemandTable
from ..values.value_test_table_kernels import ValueTests
from .candidate_search_and_verification import CandidateMatcher, GatedTrees
from .candidate_verifier import Verifier

_DEMANDS, _VERIFIER, _ACCESS, _BOUND, _JOINS = "demands_", "verifier_", "access_", "bound_", "joins_"
_TWIGS, _TWIG_ROWS, _CLAUSES = "twigs_", "twig_rows_", "clauses_"
_NONE = np.zeros(0, dtype=np.int32)
_ANY: Steps = (0,)
# From this many patterns on, patterns with common prefixes are first made adjacent; for fewer, sorting costs more than
# it saves.
_MANY = 1_000
# The most patterns that are read before they go into columns: temporary objects die before the collector promotes them.
_AT_A_TIME = 1 << 10
# Fewer patterns than this are pending for a while, and are then verified: their programs are built at once.
_SOON = 64
# A thread that reads some of many patterns reads one in this many.
_SHARES = 16
_NO_TIES: tuple[Tie, ...] = ()
_NO_CLAUSES: list[list[list[int]]] = []


class _Placed(NamedTuple):
    """A pattern's tests, its branches if it is a twig, the clauses of tests that it demands, and its gate."""

    bound: Bound
    ties: tuple[Tie, ...]
    clauses: list[list[list[int]]]
    gate: Steps


class TreeStore:
    """Patterns with predicates of a table, numbered in the order in which they were added; one call at a time."""

    def __init__(self, table: PatternTable) -> None:
        self.table = table
        self.documents = 0
        self._demands = DemandTable(table.names)
        self._verifier = Verifier(table, pattern_of=table.trees.counting)
        self._bound = BoundTests(table.names)
        self._twigs = Twigs()
        self._clauses = Clauses()
        self._laid_twigs: TwigRows | None = None  # with the counts of their branches
        self._ends = PathNodes()  # the trie node of each pattern's gate
        self.until = 0  # the first entry that has not been examined yet

    def __len__(self) -> int:
        return len(self._verifier)

    def take_up(self, entries: int) -> None:
        """Add all patterns below an entry that have not been examined yet."""
        self.add(self.table.trees.between(self.until, entries))
        self.until = entries

    def add(self, entries: list[int]) -> None:
        """Add the patterns of these entries."""
        if len(entries) < _SOON:
            for entry in entries:
                self._verifier.add(entry)
            return
        self.place()
        tree = self.table.trees.counting
        others: dict[int, Pattern] = {}
        for first in range(0, len(entries), _AT_A_TIME):
            others |= self._add_joined({entry: tree(entry) for entry in entries[first : first + _AT_A_TIME]})
        order = list(others) if len(others) < _MANY else in_order(others)
        for first in range(0, len(order), _AT_A_TIME):
            some = order[first : first + _AT_A_TIME]
            for entry in some:
                self._verifier.add(entry)
            self._extend([self._read_other(others[entry]) for entry in some])

    @property
    def placed(self) -> int:
        """The number of patterns whose tests, branches and gates are read; the others have only programs."""
        return len(self._bound)

    def place(self, some: int | None = None) -> None:
        """Read the tests, branches and gates of patterns that have only programs: all, or the first `some`.

        Of many, a share is read, so that a thread that gets few turns keeps up with others that add patterns.
        """
        parts: dict[Node, Part] = {}
        begin, end = len(self._bound), len(self)
        end = end if some is None else min(end, begin + max(some, (end - begin) // _SHARES))
        waiting = [self.table.trees.counting(entry) for entry in self._verifier.entries[begin:end].tolist()]
        if waiting:
            self._extend([self._read_joined(pattern, parts) or self._read_other(pattern) for pattern in waiting])

    def _add_joined(self, patterns: dict[int, Pattern]) -> dict[int, Pattern]:
        """Add the patterns that are joined, paths before twigs; return the others.

        Joined patterns are verified only on documents that cannot be joined, and wait for no other value tests.
        """
        paths, twigs, others = dict[int, _Placed](), dict[int, _Placed](), dict[int, Pattern]()
        parts: dict[Node, Part] = {}
        for entry, pattern in patterns.items():
            placed = self._read_joined(pattern, parts)
            if placed is None:
                others[entry] = pattern
            else:
                (twigs if placed.ties else paths)[entry] = placed
        if joined := [*paths, *twigs]:
            if len(joined) < _SOON:
                for entry in joined:
                    self._verifier.add(entry)
            else:
                self._verifier.add_later(joined)
            self._extend([*paths.values(), *twigs.values()])
        return others

    def _read_joined(self, pattern: Pattern, parts: dict[Node, Part]) -> _Placed | None:
        """A pattern that is joined, by a state or by branches; None for any other. `parts` are known parts of twigs."""
        spine = spine_of(pattern, self.table.encoder)
        if spine is not None:
            bound = self._bound.read(spine)
            return None if bound is None else _Placed(bound, _NO_TIES, _NO_CLAUSES, normalised(spine.steps))
        twig = twig_of(pattern, self.table.encoder, parts)
        return None if twig is None else _Placed(NO_TESTS, twig.ties, _NO_CLAUSES, twig.longest)

    def _read_other(self, pattern: Pattern) -> _Placed:
        """A pattern that is verified on every candidate document."""
        encoder = self.table.encoder
        bound = self._bound.read_any(pattern, encoder)
        return _Placed(bound, _NO_TIES, self._demands.add(pattern, bound.tests), gate(pattern, encoder))

    def _extend(self, patterns: list[_Placed]) -> None:
        """Append patterns to the columns beside the programs."""
        bound, ties, clauses, gates = zip(*patterns, strict=True)
        self._bound.extend(bound)
        self._twigs.extend(ties)
        self._clauses.extend(clauses)
        self._ends.extend(gates)

    def layout(self, first: int = 0) -> "TreeLayout":
        """Give gates to the patterns that have none yet; return the data to lay out those from number `first` on."""
        self.place()
        return self._layout(self._ends.insert(self.table.trie)[first:].copy(), self._laid_twigs, first)

    def gates(self, first: int, end: int) -> Int32s:
        """The trie nodes of the gates of some patterns, as pending paths.

        A pending path has at least one step: for a pattern that demands no element, `/*`, which all documents have.
        """
        trie, encoder, tree = self.table.trie, self.table.encoder, self.table.trees.counting
        placed = self._ends.insert(trie)[first:end]
        others = self._verifier.entries[first + len(placed) : end].tolist()
        ends = np.concatenate([placed, trie.insert(*flat([gate(tree(entry), encoder) for entry in others]))])
        if not ends.all():
            ends[ends == 0] = trie.insert_one(_ANY)
        return ends

    def _layout(self, ends: Int32s, before: TwigRows | None, first: int = 0) -> "TreeLayout":
        trie = self.table.trie
        self._bound.nodes(trie)
        self._twigs.nodes(trie)
        bound, twigs = self._bound.since(first), self._twigs.since(first)
        return TreeLayout(
            ends,
            self._clauses.rows(first),
            self._demands.captured(),
            self._demands.likely(self.documents),
            bound,
            bound.nodes(trie).copy(),
            self._bound.demands.captured(),
            self._bound.demands.likely(self.documents),
            self._verifier.entries[first:].copy(),
            twigs,
            twigs.nodes(trie).copy(),
            before,
            self.table.tuning,
        )

    def selection(self, gated: GatedTrees) -> Callable[[], GatedTrees]:
        """A function that lets the same patterns, with the same gates, wait for the tests that are now the rarest.

        It takes long, and may run in another thread.
        """
        layout = self._layout(gated.access.gate_of, gated.twigs.rows)
        gates_of_tests, gate_nodes = gated.joins.rows.gates_of_tests, gated.twigs.rows.gate_nodes
        return lambda: layout.selected(gated.access.gate_of, gate_nodes, gates_of_tests)

    def matcher(self, gated: GatedTrees | None = None, first: int = 0) -> CandidateMatcher:
        """All patterns as of now, of which those from number `first` on are `gated`; without it, none has a gate."""
        if gated is None:
            access = Access(self._demands.captured(), 0, no_access(self._demands.captured()))
            tuning = self.table.tuning
            twigs = TwigJoins(Twigs().laid_out(_NONE, _NONE, None), tuning)
            gated = GatedTrees(Joins(self._bound.demands.captured(), no_rows(0), tuning), twigs, access)
        if not first:
            self._laid_twigs = gated.twigs.rows
        programs = self._verifier.programs()
        return CandidateMatcher(self.table, gated, self._verifier, programs, first, len(self), len(self.table))

    # As arrays: on disk, and from other processes.

    def saved(self, matcher: CandidateMatcher | None = None) -> dict[str, AnyArray]:
        """All patterns as arrays, with their gates, which they must have; `restore` reads them, with `matcher`."""
        assert self._ends.is_complete
        parts: tuple[tuple[str, dict[str, AnyArray]], ...] = (
            (_DEMANDS, self._demands.saved()),
            (_VERIFIER, self._verifier.saved()),
            (_BOUND, self._bound.saved()),
            (_TWIGS, self._twigs.saved()),
            (_CLAUSES, self._clauses.saved()),
            (_ACCESS, {} if matcher is None else matcher.gated.access.rows._asdict()),
            (_JOINS, {} if matcher is None else matcher.gated.joins.rows._asdict()),
            (_TWIG_ROWS, {} if matcher is None else matcher.gated.twigs.rows._asdict()),
        )
        return {
            "ends": self._ends.view,
            "whole": np.array([self.documents, self.until], dtype=np.int64),
            **{prefix + name: array for prefix, arrays in parts for name, array in arrays.items()},
        }

    def part(self) -> dict[str, AnyArray]:
        """The part of `saved` that `merge` needs."""
        looked_up = (_DEMANDS + name for name in ("rows", "numbers", "literals"))
        needed = {"ends", *looked_up}
        taken_over = (_VERIFIER, _BOUND, _TWIGS, _CLAUSES)
        return {name: array for name, array in self.saved().items() if name in needed or name.startswith(taken_over)}

    @classmethod
    def restore(cls, table: PatternTable, arrays: dict[str, AnyArray]) -> tuple["TreeStore", GatedTrees]:
        """The patterns that were saved as `arrays`, and what they wait for; the same memory until they change."""
        store = cls(table)
        store._demands = DemandTable.restore(table.names, part_of(arrays, _DEMANDS))
        store._verifier = Verifier.restore(table, part_of(arrays, _VERIFIER), table.trees.counting)
        store._bound = BoundTests.restore(table.names, part_of(arrays, _BOUND))
        store._twigs = Twigs.restore(part_of(arrays, _TWIGS))
        store._clauses = Clauses.restore(part_of(arrays, _CLAUSES))
        store._ends = PathNodes(arrays["ends"])
        store.documents, store.until = arrays["whole"].tolist()
        rows = {name: np.asarray(array) for name, array in part_of(arrays, _ACCESS).items()}
        gates = len(rows["all_begin"]) - 1
        joined = {name: np.asarray(array) for name, array in part_of(arrays, _JOINS).items()}
        joins = Joins(store._bound.demands.captured(), JoinRows(**joined), table.tuning)
        twigs = TwigRows(**{name: np.asarray(array) for name, array in part_of(arrays, _TWIG_ROWS).items()})
        access = Access(store._demands.captured(), gates, AccessRows(**rows))
        twig_joins = TwigJoins(twigs._replace(hits=twigs.hits.copy()), table.tuning)
        return store, GatedTrees(joins, twig_joins, access)

    def merge(self, arrays: dict[str, AnyArray], moved: MergedNumbers) -> None:
        """Merge the patterns that another process compiled for a table which has just been merged into ours."""
        self.take_up(moved.first)
        self.layout()
        verifier = part_of(arrays, _VERIFIER)
        entries = moved.entries[verifier["entries"]]
        fresh = np.flatnonzero(entries >= moved.first)
        self._verifier.merge(verifier, fresh, entries[fresh], moved.names)
        self._bound.merge(part_of(arrays, _BOUND), fresh, moved.names, moved.nodes)
        self._twigs.merge(part_of(arrays, _TWIGS), fresh, moved.names, moved.nodes)
        clauses = some_of(part_of(arrays, _CLAUSES), fresh)
        tests = self._demands.merge(part_of(arrays, _DEMANDS), moved.names, clauses.tests)
        self._clauses.take_over(clauses, tests[clauses.tests])
        self._ends.take_over(np.asarray(arrays["ends"])[fresh], moved.nodes)
        self.until = len(self.table)

    def successor(self, table: PatternTable, entries: Int32s) -> "TreeStore":
        """The patterns for another table, with their new entries there, or -1 for none."""
        self.take_up(len(self.table))
        self.layout()
        bound, twigs = self._bound.nodes(self.table.trie), self._twigs.nodes(self.table.trie)
        ends = np.unique(np.concatenate([self._ends.view, bound[bound >= 0], twigs[twigs != LIFT]]))
        nodes = np.full(int(ends.max(initial=0)) + 1, -1, dtype=np.int32)
        nodes[ends] = table.trie.insert(*self.table.trie.paths(ends))
        store = TreeStore(table)
        names = np.arange(len(table.names), dtype=np.int32)
        store.merge(self.part(), MergedNumbers(0, names, nodes, entries))
        store.until = int(entries.max(initial=-1)) + 1  # later entries are still to be added
        return store


@dataclass(frozen=True, slots=True, eq=False)
class TreeLayout:
    """The data that lays out patterns: the gate's trie node and the tests of each, and how likely these are.

    Patterns that one element decides have `bound` tests, the others the tests that they demand; twigs have none.
    """

    ends: Int32s
    clauses: ClauseRows
    captured: ValueTests
    likely: Floats
    bound: BoundTests
    bound_ends: Int32s
    bound_captured: ValueTests
    bound_likely: Floats
    entries: Int32s
    twigs: Twigs
    twig_ends: Int32s
    twigs_before: TwigRows | None
    tuning: Tuning

    def by_gates(self) -> tuple[Int32s, int, GatedTrees]:
        """The trie nodes that are gates, starting with those with waiting patterns that are not joined, and the number
        of these; and the patterns behind the gates by the rarest of their tests.
        """
        joined = self.twigs.are(len(self.ends)) | self.bound.decided(len(self.ends))
        listed = np.unique(self.ends[~joined])
        others = (self.ends, self.bound_ends[self.bound_ends >= 0], self.twig_ends[self.twig_ends != LIFT])
        nodes = np.concatenate([listed, np.setdiff1d(np.concatenate(others), listed)])
        gate_at = np.full(int(nodes.max(initial=0)) + 1, -1, dtype=np.int32)
        gate_at[nodes] = np.arange(len(nodes), dtype=np.int32)
        return nodes, len(listed), self.selected(gate_at[self.ends], nodes, gate_at[np.maximum(self.bound_ends, 0)])

    def selected(self, gate_of: Int32s, gate_nodes: Int32s, gates_of_tests: Int32s) -> GatedTrees:
        """Patterns with gates by the rarest of their tests; bound tests have gates of their own."""
        count, gates = len(gate_of), len(gate_nodes)
        rarest = self.clauses.rarest(self.likely, count)
        bound = self.bound.rarest(self.bound_likely, count)
        joined = np.isfinite(bound) & (bound <= rarest.likely)
        rows = self.bound.laid_out(
            self.bound_captured, self.bound_likely, gate_of, gates, gates_of_tests, self.entries, joined
        )
        decided = joined | self.twigs.are(count)
        access = Access(self.captured, gates, laid_out(self.captured, gate_of, gates, rarest, decided))
        twigs = self.twigs.laid_out(self.entries[:count], gate_nodes, self.twigs_before)
        return GatedTrees(Joins(self.bound_captured, rows, self.tuning), TwigJoins(twigs, self.tuning), access)
