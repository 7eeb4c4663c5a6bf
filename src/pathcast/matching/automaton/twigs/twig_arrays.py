"""Twigs as arrays (`twig_branch_decomposition.py`), and twigs by the branch that they wait for.

Equal branches of all twigs are stored once: a node of the trie, a place, and the steps to climb. A twig waits for the
branch that documents have shown least often; its other branches are checked when that one occurs.

Invariant: twigs are appended, never changed. Cost: some 12 bytes per branch or lift of a twig, 24 per distinct branch,
16 per twig, and 4 per branch and lift of a twig with several trunk nodes.
"""

from array import array
from collections.abc import Iterable

import numpy as np

from pathcast.kernels import AnyArray, Bools, Int32s, Int64s
from pathcast.patterns.parsing import Steps
from pathcast.store import offsets_of

from ...arrays.growing_array import Growing
from ...arrays.ragged_arrays import gathered, least
from ...table.path_trie import Trie
from ..paths.deferred_trie_insertion import PathNodes
from ..state_test_joins.ancestor_value_test_arrays import moved_steps
from .twig_branch_decomposition import Tie
from .twig_join_kernels import (
    COUNT_BITS,
    END,
    LAST,
    NONE,
    PLACE_BITS,
    T_COLUMNS,
    T_ENTRY,
    T_OTHER,
    T_PROGRAM,
    T_THIRD,
    TwigRows,
)

# In place of a node: a lift.
LIFT = -1
# A key is a node, a place and a climb; the climb takes _CLIMB_BITS bits.
_CLIMB_BITS = 28


class Twigs:
    """The twigs among patterns, numbered in order of arrival; other patterns have no branches."""

    def __init__(self) -> None:
        self.begin = Growing(np.int64, [0])
        self._nodes, self._places, self._climbs = PathNodes(), Growing(np.int32), Growing(np.int32)
        self._climb_begin, self._climb_steps = Growing(np.int64, [0]), Growing(np.int32)
        self._numbers: dict[bytes, int] = {}  # of climbs, by their steps

    def __len__(self) -> int:
        return self.begin.size - 1

    def extend(self, patterns: Iterable[tuple[Tie, ...]]) -> None:
        """Add patterns, each by its branches and lifts (`twig_of`), none for a pattern that is not a twig."""
        ties, begin = list[Tie](), list[int]()
        for some in patterns:
            ties += some
            begin.append(self._nodes.size + len(ties))
        self._nodes.extend(LIFT if tie.path is None else tie.path for tie in ties)
        self._places.extend(np.array([tie.place for tie in ties], dtype=np.int32))
        self._climbs.extend(np.array([self._climb(tie.climb) for tie in ties], dtype=np.int32))
        self.begin.extend(np.array(begin, dtype=np.int64))

    def _climb(self, steps: Steps) -> int:
        """The number of a climb; NONE for a climb without steps."""
        if not steps:
            return NONE
        if len(self._numbers) + 1 < self._climb_begin.size:
            begin, known = self._climb_begin.view.tolist(), self._climb_steps.view
            self._numbers = {known[begin[k] : begin[k + 1]].tobytes(): k for k in range(len(begin) - 1)}
        number = self._numbers.setdefault(array("i", steps).tobytes(), len(self._numbers))
        if number + 1 == self._climb_begin.size:
            self._climb_steps.extend(np.array(steps, dtype=np.int32))
            self._climb_begin.append(self._climb_steps.size)
        return number

    def nodes(self, trie: Trie) -> Int32s:
        """The node of each branch, all inserted into the trie; LIFT for a lift."""
        return self._nodes.insert(trie)

    def since(self, first: int) -> "Twigs":
        """The patterns from number `first` on, as of now; their branches have their nodes."""
        if not first:
            return self
        tie, found = self.begin.view[first], Twigs()
        found.begin = Growing.over(self.begin.view[first:] - tie)
        found._nodes, found._climb_begin = PathNodes(self._nodes.view[tie:]), Growing.over(self._climb_begin.view)
        found._places, found._climbs = Growing.over(self._places.view[tie:]), Growing.over(self._climbs.view[tie:])
        found._climb_steps = Growing.over(self._climb_steps.view)
        return found

    def are(self, count: int) -> Bools:
        """Which of the first `count` patterns are twigs."""
        return np.diff(self.begin.view[: count + 1]) > 0

    def laid_out(self, entries: Int32s, gate_nodes: Int32s, before: "TwigRows | None") -> TwigRows:
        """Twigs by the branch that they wait for, as many as there are entries; `before` has the counts of branches."""
        begin = self.begin.view[: len(entries) + 1]
        nodes, places, climbs = (column.view[: begin[-1]] for column in (self._nodes, self._places, self._climbs))
        is_branch = nodes != LIFT
        all_keys = (nodes.astype(np.int64) << PLACE_BITS | places) << _CLIMB_BITS | climbs + 1
        keys, numbers = np.unique(all_keys[is_branch], return_inverse=True)
        lifts, lift_numbers = np.unique(all_keys[~is_branch], return_inverse=True)
        codes = np.empty(len(nodes), dtype=np.int32)
        codes[is_branch], codes[~is_branch] = numbers, END - 1 - lift_numbers
        hits = _carried(keys, before)
        ranks = _ranks(codes, hits)
        waiting, twigs, programs = _twigs(begin, codes, least(begin, ranks), entries, ranks, len(keys))
        of_node = keys >> (PLACE_BITS + _CLIMB_BITS)
        first, last = (np.searchsorted(of_node, gate_nodes, side=side) for side in ("left", "right"))
        places = _place(keys)
        of_gate = first << PLACE_BITS | np.append(places, 0)[first]
        return TwigRows(
            places=places,
            climbs=_climb(keys),
            hits=hits,
            twigs=twigs,
            of_gate=of_gate << COUNT_BITS | last - first,
            programs=programs,
            lift_places=_place(lifts),
            lift_climbs=_climb(lifts),
            climb_begin=self._climb_begin.view.copy(),
            climb_steps=self._climb_steps.view.copy(),
            waiting=waiting,
            keys=keys,
            gate_nodes=gate_nodes,
        )

    # As arrays: on disk, and from other processes.

    def saved(self) -> dict[str, AnyArray]:
        """The twigs as arrays; `restore` reads them."""
        columns = {"nodes": self._nodes.view, "places": self._places.view, "climbs": self._climbs.view}
        climbs = {"climb_begin": self._climb_begin.view, "climb_steps": self._climb_steps.view}
        return {"begin": self.begin.view, **columns, **climbs}

    @classmethod
    def restore(cls, arrays: dict[str, AnyArray]) -> "Twigs":
        """The twigs that were saved as `arrays`, on the same memory until they change."""
        twigs = cls()
        twigs._nodes = PathNodes(arrays["nodes"])
        twigs.begin, twigs._places, twigs._climbs, twigs._climb_begin, twigs._climb_steps = (
            Growing.over(arrays[name]) for name in ("begin", "places", "climbs", "climb_begin", "climb_steps")
        )
        return twigs

    def merge(self, arrays: dict[str, AnyArray], chosen: Int64s, names: Int32s, nodes: Int32s) -> None:
        """Merge some patterns of another process; `names` and `nodes` translate its names and nodes."""
        begin, theirs = gathered(arrays["begin"], arrays["nodes"], chosen)
        _, places = gathered(arrays["begin"], arrays["places"], chosen)
        _, climbs = gathered(arrays["begin"], arrays["climbs"], chosen)
        steps, edges = np.asarray(arrays["climb_steps"]), np.asarray(arrays["climb_begin"]).tolist()
        steps = moved_steps(steps, names)
        moved = np.full(len(edges), NONE, dtype=np.int32)  # the last one is for those without a climb
        for number in np.unique(climbs[climbs != NONE]).tolist():
            moved[number] = self._climb(tuple(steps[edges[number] : edges[number + 1]].tolist()))
        self.begin.extend(begin[1:] + self._nodes.size)
        self._nodes.take_over(theirs, nodes)
        self._places.extend(places)
        self._climbs.extend(moved[climbs])


def _place(keys: Int64s) -> Int32s:
    return (keys >> _CLIMB_BITS & (1 << PLACE_BITS) - 1).astype(np.int32)


def _climb(keys: Int64s) -> Int32s:
    return ((keys & (1 << _CLIMB_BITS) - 1) - 1).astype(np.int32)


def _carried(keys: Int64s, before: TwigRows | None) -> Int64s:
    """The number of documents that had each branch."""
    hits = np.zeros(len(keys), dtype=np.int64)
    if before is not None and len(before.keys):
        at = np.minimum(np.searchsorted(before.keys, keys), len(before.keys) - 1)
        hits = np.where(before.keys[at] == keys, before.hits[at], 0)
    return hits


def _ranks(codes: Int32s, hits: Int64s) -> Int64s:
    """The rank of each code's branch: 0 for the rarest; of equally rare branches, that of the fewest twigs."""
    is_branch = codes > END
    shared = np.bincount(codes[is_branch], minlength=len(hits))
    order = np.empty(len(hits), dtype=np.int64)
    order[np.lexsort((shared, hits))] = np.arange(len(hits))
    ranks = np.full(len(codes), len(hits), dtype=np.int64)
    ranks[is_branch] = order[codes[is_branch]]
    return ranks


def _twigs(
    begin: Int64s, codes: Int32s, chosen: Int64s, entries: Int32s, ranks: Int64s, branches: int
) -> tuple[Int32s, Int32s, Int32s]:
    """The first twig that waits for each branch; twigs by branch; programs of twigs with lifts or many branches."""
    owners = np.flatnonzero(np.diff(begin))
    chosen = chosen[owners]
    order = np.argsort(codes[chosen], kind="stable")
    owners, chosen = owners[order], chosen[order]
    rows = np.full((len(owners), T_COLUMNS), NONE, dtype=np.int32)
    branch = codes[chosen]
    starts, ends = np.ones(len(owners), dtype=np.bool_), np.ones(len(owners), dtype=np.bool_)
    starts[1:] = ends[:-1] = branch[1:] != branch[:-1]
    rows[:, T_ENTRY] = np.where(ends, LAST - entries[owners], entries[owners])
    waiting = np.full(branches, NONE, dtype=np.int32)
    waiting[branch[starts]] = np.flatnonzero(starts)
    edges, all_codes = gathered(begin, codes, owners)
    _, all_ranks = gathered(begin, ranks, owners)
    owner = np.repeat(np.arange(len(owners)), np.diff(edges))
    is_other = (all_codes > END) & (all_codes != branch[owner])
    others, first = np.flatnonzero(is_other), offsets_of(is_other)[edges]
    others = others[np.lexsort((all_ranks[others], owner[others]))]
    count = np.diff(first)
    for column, number in ((T_OTHER, 0), (T_THIRD, 1)):
        has = count > number
        rows[has, column] = all_codes[others[first[:-1][has] + number]]
    sizes = np.diff(edges)
    long = np.flatnonzero((sizes > 3) | (np.bincount(owner[all_codes < END], minlength=len(owners)) > 0))
    its_begin, its_codes = gathered(edges, all_codes, long)
    # With an END after each.
    rows[long, T_PROGRAM] = its_begin[:-1] + np.arange(len(long))
    programs = np.full(len(its_codes) + len(long), END, dtype=np.int32)
    programs[np.arange(len(its_codes)) + np.repeat(np.arange(len(long)), np.diff(its_begin))] = its_codes
    return waiting, rows, programs
