"""Bound tests of patterns as arrays (`ancestor_value_tests.py`), and patterns by the bound test that they wait for.

A pattern waits for the bound test that documents have passed least often; if a single element decides the pattern, the
other tests are its rest. A pattern with an `or` of value tests has several *alternatives* of this kind; it matches
where one of them does, and each waits on its own. Alternatives are numbered by place, test and limit: the runs of a
state (`state_value_join.py`) are then its alternatives, sorted by number.

Invariant: patterns are appended, never changed; each has at least one alternative, possibly without tests. Cost: some
20 bytes per test, 40 bytes per alternative laid out.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from pathcast.documents import Names
from pathcast.kernels import AnyArray, Bools, Floats, Int32s, Int64s
from pathcast.kernels.hash_table_kernels import MIX_A
from pathcast.patterns import Condition, Node, Pattern
from pathcast.patterns.parsing import PathEncoder, Steps, normalised
from pathcast.store import offsets_of

from ...arrays.growing_array import Growing
from ...arrays.ragged_arrays import ends_of, gathered, least, part_of
from ...table.path_trie import Trie
from ..paths.deferred_trie_insertion import PathNodes
from ..values.required_value_tests import Demand
from ..values.value_test_table import DemandTable
from ..values.value_test_table_kernels import D_KIND, HIGH, LOW, ValueTests
from .ancestor_value_tests import (
    BoundTest,
    Spine,
    alternatives_of,
    bound_tests,
    chain_of,
    demand_at,
    leading_tests,
)
from .state_value_join_kernels import CALLED
from .unbranched_path_search_kernels import ALONE, B_HAS_SIGN, B_LOWER, B_SIGN, LOWER, UPPER
from .waiting_patterns_by_state_kernels import DOWN, NEGATED, PLACES, TEST_BITS

_DEMANDS = "demands_"
# The weight of each level that a test is higher up, beside its likelihood.
_HIGHER = 1e-9
# The number of conditions whose tests are cached.
_REMEMBERED = 1 << 16
# In place of a node: the test is behind the pattern's gate; or the pattern cannot wait for it.
OWN, UNASKED = -1, -2


class JoinRows(NamedTuple):
    """Alternatives of patterns by the test that they wait for.

    Per alternative: the key (place and test) that it waits for, the limit, its entry (CALLED - pattern, if it must be
    verified), whether it has a test further down, and its other tests (`rests`: their keys; `rest_limits`), rare ones
    first. A chain has instead all steps (-1 - step) and tests from its end upwards (`chain_codes`), and its number
    among all patterns (`chain_patterns`); its upper part begins at `chain_uppers`, and `chain_briefs` describes it
    (`unbranched_path_search_kernels.py`). `of_gate` has the alternatives of each gate, ascending; `gates_of_tests` the
    gate of each bound test.
    """

    keys: Int64s
    limits: Floats
    entries: Int32s
    below: Bools
    rest_begin: Int64s
    rests: Int64s
    rest_limits: Floats
    chain_begin: Int64s
    chain_codes: Int64s
    chain_limits: Floats
    chain_patterns: Int32s
    chain_uppers: Int64s
    chain_briefs: Int64s
    gate_begin: Int64s
    of_gate: Int32s
    gates_of_tests: Int32s


class Bound(Struct, frozen=True, gc=False):
    """A pattern's tests, the place and the node of each, and the codes of a chain; and its other alternatives."""

    tests: tuple[Demand, ...] = ()
    places: tuple[int, ...] = ()
    nodes: tuple[Steps | int, ...] = ()
    codes: tuple[int, ...] = ()
    others: tuple["Bound", ...] = ()


class _StringValueTest(Struct, frozen=True, gc=False):
    """A test of the string-value of a named element."""

    name: int
    test: Condition


class BoundTests:
    """The bound tests of patterns, numbered in order of arrival.

    Tests of a pattern that one element decides have the node OWN, that of its gate; a pattern with other tests, each
    with the node of the path that leads to it, must be verified.
    """

    def __init__(self, names: Names, demands: DemandTable | None = None, first: int = 0) -> None:
        self._names, self._first = names, first
        self.demands = DemandTable(names) if demands is None else demands
        self._read: dict[Condition | _StringValueTest, Demand | None] = {}
        self.begin = Growing(np.int64, [0])
        self._tests, self._places, self._nodes = Growing(np.int32), Growing(np.int32), PathNodes()
        self._chain_begin, self._chains = Growing(np.int64, [0]), Growing(np.int32)
        self._alternatives = Growing(np.int64, [0])  # where those of each pattern begin

    def __len__(self) -> int:
        return self._alternatives.size - 1

    def read(self, spine: Spine) -> Bound | None:
        """A path without branches that one element decides, or a chain; None for any other pattern."""
        if found := bound_tests(spine, self._asked):
            return _decided(found)
        alternatives = alternatives_of(spine)
        if alternatives[0] is not spine and all(decided := [bound_tests(each, self._asked) for each in alternatives]):
            first, *others = map(_decided, decided)
            return Bound(first.tests, first.places, first.nodes, (), tuple(others))
        chain = chain_of(spine, self._asked)
        return None if chain is None else _led(chain.tests, chain.codes)

    def read_any(self, pattern: Pattern, encoder: PathEncoder) -> Bound:
        """Any other pattern."""
        return _led(leading_tests(pattern, encoder, self._asked), [])

    def _asked(self, step: int, test: Condition) -> Demand | None:
        """`demand_at`, cached: patterns repeat their tests."""
        # Only string-value tests keep their element's name.
        key = test if isinstance(test, Node) else _StringValueTest(step >> 1, test)
        if key in self._read:
            return self._read[key]
        if len(self._read) >= _REMEMBERED:
            self._read.clear()
        found = self._read[key] = demand_at(step, test, self._names)
        return found

    def extend(self, patterns: Sequence[Bound]) -> None:
        """Add patterns."""
        number = self.demands.number
        counts = [1 + len(pattern.others) for pattern in patterns]
        self._alternatives.extend(ends_of(counts, self.begin.size - 1))
        if sum(counts) > len(counts):
            patterns = [each for pattern in patterns for each in (pattern, *pattern.others)]
        tests = [number(demand) for pattern in patterns for demand in pattern.tests]
        places = [place for pattern in patterns for place in pattern.places]
        codes = [code for pattern in patterns for code in pattern.codes]
        self._nodes.extend(node for pattern in patterns for node in pattern.nodes)
        self.begin.extend(ends_of([len(pattern.tests) for pattern in patterns], self._tests.size))
        self._chain_begin.extend(ends_of([len(pattern.codes) for pattern in patterns], self._chains.size))
        self._tests.extend(np.array(tests, dtype=np.int32))
        self._places.extend(np.array(places, dtype=np.int32))
        self._chains.extend(np.array(codes, dtype=np.int32))

    def nodes(self, trie: Trie) -> Int32s:
        """The node of each test, all inserted into the trie."""
        return self._nodes.insert(trie)

    def since(self, first: int) -> "BoundTests":
        """The patterns from number `first` on, as of now; their tests keep their numbers and have their nodes."""
        if not first:
            return self
        alternative = self._alternatives.view[first]
        test, code = self.begin.view[alternative], self._chain_begin.view[alternative]
        found = BoundTests(self._names, self.demands, first)
        found._alternatives = Growing.over(self._alternatives.view[first:] - alternative)
        found.begin = Growing.over(self.begin.view[alternative:] - test)
        found._chain_begin = Growing.over(self._chain_begin.view[alternative:] - code)
        found._tests, found._places = Growing.over(self._tests.view[test:]), Growing.over(self._places.view[test:])
        found._nodes, found._chains = PathNodes(self._nodes.view[test:]), Growing.over(self._chains.view[code:])
        return found

    def decided(self, count: int) -> Bools:
        """Which of the first `count` patterns one element decides, chains included."""
        first = self._alternatives.view[:count]  # all alternatives of a pattern are of one kind
        begin, chain_begin = self.begin.view, self._chain_begin.view
        found: Bools = begin[first + 1] > begin[first]
        found[found] = self._nodes.view[begin[first[found]]] == OWN
        found |= chain_begin[first + 1] > chain_begin[first]
        return found

    def rarest(self, likely: Floats, count: int) -> Floats:
        """How likely documents pass the rarest test of each of `count` patterns; infinite for those without tests.

        Of a pattern with several alternatives, the sum.
        """
        alternatives = self._alternatives.view[: count + 1]
        begin = self.begin.view[: alternatives[-1] + 1]
        found = np.full(len(begin) - 1, np.inf)
        owners = np.flatnonzero(np.diff(begin))
        if len(owners):
            found[owners] = np.minimum.reduceat(likely[self._tests.view[: begin[-1]]], begin[:-1][owners])
        return np.add.reduceat(found, alternatives[:-1]) if count else found

    def laid_out(
        self,
        tests: ValueTests,
        likely: Floats,
        gate_of: Int32s,
        gates: int,
        gates_of_tests: Int32s,
        entries: Int32s,
        chosen_ones: Bools,
    ) -> JoinRows:
        """The chosen patterns by the test that they wait for; they have gates, and `entries` has the entry of each."""
        alternatives = self._alternatives.view[: len(gate_of) + 1]
        pattern_of = np.repeat(np.arange(len(gate_of)), np.diff(alternatives))
        begin = self.begin.view[: len(pattern_of) + 1]
        numbers, places, nodes = (
            column[: begin[-1]] for column in (self._tests.view, self._places.view, self._nodes.view)
        )
        keys, limits = _keys(tests, numbers, places)
        plain = places & (PLACES - 1)
        height = np.where(plain < DOWN, plain, PLACES + DOWN - plain)
        counts = np.diff(begin)
        owner = np.repeat(np.arange(len(counts)), counts)
        owners = np.flatnonzero((counts > 0) & chosen_ones[pattern_of])
        costs = np.where((nodes == UNASKED) | (places >= NEGATED), np.inf, likely[numbers] + _HIGHER * height)
        chosen = least(begin, costs)[owners]
        order = np.lexsort((limits[chosen], keys[chosen]))
        owners, chosen = owners[order], chosen[order]
        below = np.zeros(len(counts), dtype=np.bool_)
        chosen_height = np.full(len(counts), -1)
        chosen_height[owners] = height[chosen]
        below[owner[height < chosen_height[owner]]] = True
        chain_begin = self._chain_begin.view[: len(counts) + 1]
        is_chain = np.diff(chain_begin) > 0
        is_rest = nodes == OWN
        is_rest[chosen] = False
        rest = np.flatnonzero(is_rest)
        rest = rest[np.lexsort((costs[rest], owner[rest]))]
        rest_begin, rest = gathered(offsets_of(is_rest)[begin], rest, owners)
        chains, items = gathered(chain_begin, self._chains.view, owners)
        codes, chain_limits = self._chain_codes(chains, items, owners, keys, limits)
        chosen_here = (chosen - begin[owners]).astype(np.int32)
        uppers, briefs = _divided(chains, items, codes, np.where(is_chain[owners], chosen_here, -1))
        own, patterns = nodes[chosen] == OWN, pattern_of[owners]
        numbers_of_all = (patterns + self._first).astype(np.int32)
        behind = np.where(own, gate_of[patterns], gates_of_tests[chosen])
        at_gate = np.argsort(behind, kind="stable")
        return JoinRows(
            keys=keys[chosen],
            limits=limits[chosen],
            entries=np.where(own | is_chain[owners], entries[patterns], CALLED - numbers_of_all).astype(np.int32),
            below=below[owners],
            rest_begin=rest_begin,
            rests=keys[rest],
            rest_limits=limits[rest],
            chain_begin=chains,
            chain_codes=codes,
            chain_limits=chain_limits,
            chain_patterns=numbers_of_all,
            chain_uppers=uppers,
            chain_briefs=briefs,
            gate_begin=np.searchsorted(behind[at_gate], np.arange(gates + 1)).astype(np.int64),
            of_gate=at_gate.astype(np.int32),
            gates_of_tests=gates_of_tests,
        )

    def _chain_codes(
        self, begin: Int64s, items: Int32s, owners: Int64s, keys: Int64s, limits: Floats
    ) -> tuple[Int64s, Floats]:
        """The chains of some patterns, with tests in place of their indices."""
        codes, chain_limits = items.astype(np.int64), np.zeros(len(items))
        tests = np.flatnonzero(items >= 0)
        numbers = self.begin.view[np.repeat(owners, np.diff(begin))[tests]] + items[tests]
        codes[tests], chain_limits[tests] = keys[numbers] & (1 << TEST_BITS) - 1, limits[numbers]
        return codes, chain_limits

    # As arrays: on disk, and from other processes.

    def saved(self) -> dict[str, AnyArray]:
        """The tests as arrays; `restore` reads them."""
        demands = {_DEMANDS + name: array for name, array in self.demands.saved().items()}
        columns = {"tests": self._tests.view, "places": self._places.view, "nodes": self._nodes.view}
        chains = {"chain_begin": self._chain_begin.view, "chains": self._chains.view}
        begins = {"begin": self.begin.view, "alternatives": self._alternatives.view}
        return {**begins, **columns, **chains, **demands}

    @classmethod
    def restore(cls, names: Names, arrays: dict[str, AnyArray]) -> "BoundTests":
        """The tests that were saved as `arrays`, on the same memory until they change."""
        bound = cls(names)
        bound.demands = DemandTable.restore(names, part_of(arrays, _DEMANDS))
        bound._nodes = PathNodes(arrays["nodes"])
        bound.begin, bound._tests, bound._places, bound._chain_begin, bound._chains, bound._alternatives = (
            Growing.over(arrays[name]) for name in ("begin", "tests", "places", "chain_begin", "chains", "alternatives")
        )
        return bound

    def merge(self, arrays: dict[str, AnyArray], chosen: Int64s, names: Int32s, nodes: Int32s) -> None:
        """Merge the tests of some patterns of another process; `names` and `nodes` translate its names and nodes."""
        alternatives = np.arange(len(arrays["begin"]) - 1)
        ends, chosen = gathered(arrays["alternatives"], alternatives, chosen)
        self._alternatives.extend(ends[1:] + (self.begin.size - 1))
        begin, theirs = gathered(arrays["begin"], arrays["tests"], chosen)
        _, places = gathered(arrays["begin"], arrays["places"], chosen)
        _, theirs_at = gathered(arrays["begin"], arrays["nodes"], chosen)
        moved = self.demands.merge(part_of(arrays, _DEMANDS), names, theirs)
        self.begin.extend(begin[1:] + self._tests.size)
        self._tests.extend(moved[theirs])
        self._places.extend(places)
        self._nodes.take_over(theirs_at, nodes)
        chain_begin, chains = gathered(arrays["chain_begin"], arrays["chains"], chosen)
        steps = chains < 0
        self._chain_begin.extend(chain_begin[1:] + self._chains.size)
        self._chains.extend(np.where(steps, -1 - moved_steps(np.maximum(-1 - chains, 0), names), chains))


NO_TESTS = Bound()


def _decided(found: list[BoundTest]) -> Bound:
    """Tests at places that one element decides."""
    places, tests = zip(*found, strict=True)
    return Bound(tests, places, (OWN,) * len(found))


def _led(tests: list[tuple[Steps, Demand]], codes: list[int]) -> Bound:
    """Tests, each with the path that leads to it, or none."""
    nodes = tuple([normalised(path) if path else UNASKED for path, _ in tests])
    return Bound(tuple([demand for _, demand in tests]), (0,) * len(tests), nodes, tuple(codes))


def _divided(begin: Int64s, items: Int32s, codes: Int64s, chosen: Int32s) -> tuple[Int64s, Int64s]:
    """Where the upper part of each chain begins, and the chain in brief.

    `chosen` has the index, among its tests, of the test that each chain waits for, -1 for a pattern that is no chain.
    """
    count, places = len(chosen), np.arange(len(items))
    owner = np.repeat(np.arange(count), np.diff(begin))
    steps = items < 0
    # The last step before each item.
    step_of = np.maximum.accumulate(np.where(steps, places, 0)) if len(items) else places
    here = items == chosen[owner]
    uppers = begin[:-1].copy()
    uppers[owner[here]] = step_of[here]
    lower = places < uppers[owner]
    tests = np.bincount(owner[~steps], minlength=count)
    below = np.bincount(owner[~steps & lower], minlength=count)
    briefs = np.where(below > 0, LOWER, np.where(tests > 1, UPPER, ALONE)).astype(np.int64)
    above = np.flatnonzero(~steps & ~lower & ~here)
    signs = (codes[above].astype(np.uint64) * MIX_A >> np.uint64(58)).astype(np.int64)
    some = np.full(count, -1, dtype=np.int64)
    some[owner[above]] = signs
    briefs |= np.where(some >= 0, some << B_SIGN | B_HAS_SIGN, 0)
    own = np.flatnonzero(steps & lower)
    return uppers, briefs | _numbered(offsets_of(np.bincount(owner[own], minlength=count)), items[own]) << B_LOWER


def _numbered(begin: Int64s, items: Int32s) -> Int64s:
    """A number for each list, `items[begin[k] : begin[k + 1]]`, 0 for an empty one; equal lists have equal numbers."""
    lengths = np.diff(begin)
    found, used = np.zeros(len(lengths), dtype=np.int64), 1
    for length in np.unique(lengths[lengths > 0]).tolist():
        alike = np.flatnonzero(lengths == length)
        rows = items[begin[alike][:, None] + np.arange(length)]
        distinct, numbers = np.unique(rows, axis=0, return_inverse=True)
        found[alike] = numbers.reshape(-1) + used
        used += len(distinct)
    return found


def moved_steps(steps: Int32s, names: Int32s) -> Int32s:
    """Steps of another process, with its names translated by `names`."""
    named = steps > 1
    symbols = names[np.where(named, (steps >> 1) - 1, 0)] + 1 if named.any() else steps
    return np.where(named, 2 * symbols + (steps & 1), steps).astype(np.int32)


def no_rows(gates: int) -> JoinRows:
    """The rows of no patterns."""
    no_limits, no_numbers, no_keys = np.zeros(0), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
    begin = np.zeros(1, dtype=np.int64)
    return JoinRows(
        keys=no_keys,
        limits=no_limits,
        entries=no_numbers,
        below=np.zeros(0, dtype=np.bool_),
        rest_begin=begin,
        rests=no_keys,
        rest_limits=no_limits,
        chain_begin=begin,
        chain_codes=no_keys,
        chain_limits=no_limits,
        chain_patterns=no_numbers,
        chain_uppers=no_keys,
        chain_briefs=no_keys,
        gate_begin=np.zeros(gates + 1, dtype=np.int64),
        of_gate=no_numbers,
        gates_of_tests=no_numbers,
    )


def _keys(tests: ValueTests, numbers: Int32s, places: Int32s) -> tuple[Int64s, Floats]:
    """The keys and limits of tests at places."""
    table = tests.table
    kinds, groups, values = table.rows[D_KIND][numbers], table.group_of[numbers], table.numbers[numbers]
    ranged = (kinds == LOW) | (kinds == HIGH)
    limits = np.where(ranged, np.where(kinds == LOW, values, -values), -np.inf)
    return places.astype(np.int64) << TEST_BITS | np.where(ranged, 2 * groups + 1, 2 * numbers), limits
