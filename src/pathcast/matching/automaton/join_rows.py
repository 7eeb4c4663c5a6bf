"""Bound tests of patterns as arrays (`bound.py`), and patterns by what they wait for among them.

Of a pattern that one element decides, the bound test that documents have met least often is the one that it waits for;
the others are its rest. Patterns are numbered by the place and the test that they wait for, and by its limit: the runs
of a state (`joins.py`) are then those of its patterns, sorted by number.

Invariant: patterns are appended, never changed. Cost: some 20 bytes a test, 40 bytes a pattern laid out.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...documents import Names
from ...patterns.model import Pattern
from ..growing import Growing
from ..spans import gathered, part_of
from .bound import bound_tests
from .demands import DemandTable, Tests
from .join_kernels import DOWN, PLACES, TEST_BITS
from .lookup_kernels import D_KIND, HIGH, LOW

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]

_DEMANDS = "demands_"
# What it counts that a test stands further up, beside how likely it is met.
_HIGHER = 1e-9
# Tests beyond this number are left to the verifier.
_MOST_TESTS = (1 << TEST_BITS - 1) - 1


class JoinRows(NamedTuple):
    """Patterns by what they wait for.

    Of each: the key (place and test) that it waits for, the limit, its entry, whether it has a test further down, and
    its other tests (`rests`: their keys; `rest_limits`), rare ones first. `of_gate` has the patterns of each gate,
    ascending.
    """

    keys: Int64s
    limits: Floats
    entries: Int32s
    below: npt.NDArray[np.bool_]
    rest_begin: Int64s
    rests: Int64s
    rest_limits: Floats
    gate_begin: Int64s
    of_gate: Int32s


class BoundTests:
    """The bound tests of patterns, which are numbered as they come; none of those that have to be verified."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.demands = DemandTable(names)
        self.begin = Growing(np.int64, [0])
        self._tests, self._places = Growing(np.int32), Growing(np.int32)

    def __len__(self) -> int:
        return self.begin.size - 1

    def add(self, pattern: Pattern) -> bool:
        """Take up a pattern; whether one element decides it."""
        found = [(place, self.demands.number(demand)) for place, demand in bound_tests(pattern, self._names)]
        if len(self.demands) > _MOST_TESTS:
            found = []
        self._places.extend(np.array([place for place, _ in found], dtype=np.int32))
        self._tests.extend(np.array([test for _, test in found], dtype=np.int32))
        self.begin.append(self._tests.size)
        return bool(found)

    def laid_out(self, tests: Tests, likely: Floats, gate_of: Int32s, gates: int, entries: Int32s) -> JoinRows:
        """The patterns that have a gate, by what they wait for; `entries` has the entry of each."""
        begin = self.begin.view[: len(gate_of) + 1]
        numbers, places = self._tests.view[: begin[-1]], self._places.view[: begin[-1]]
        kinds, groups = tests.rows[D_KIND][numbers], tests.group_of[numbers]
        ranged = (kinds == LOW) | (kinds == HIGH)
        values = tests.numbers[numbers]
        limits = np.where(ranged, np.where(kinds == LOW, values, -values), -np.inf)
        keys = places.astype(np.int64) << TEST_BITS | np.where(ranged, 2 * groups + 1, 2 * numbers)
        height = np.where(places < DOWN, places, PLACES + DOWN - places)
        counts = np.diff(begin)
        owners = np.flatnonzero(counts)
        owner = np.repeat(owners, counts[owners])
        costs = likely[numbers] + _HIGHER * height
        chosen = _least(begin, owners, counts, costs)
        order = np.lexsort((limits[chosen], keys[chosen]))
        owners, chosen = owners[order], chosen[order]
        below = np.zeros(len(gate_of), dtype=np.bool_)
        chosen_height = np.full(len(gate_of), PLACES)
        chosen_height[owners] = height[chosen]
        below[owner[height < chosen_height[owner]]] = True
        is_rest = np.ones(len(numbers), dtype=np.bool_)
        is_rest[chosen] = False
        rest = np.flatnonzero(is_rest)
        rest = rest[np.lexsort((costs[rest], owner[rest]))]
        rest_begin, rest = gathered(np.concatenate([[0], np.cumsum(is_rest)])[begin], rest, owners)
        at_gate = np.argsort(gate_of[owners], kind="stable")
        return JoinRows(
            keys[chosen], limits[chosen], entries[owners], below[owners], rest_begin,
            keys[rest], limits[rest],
            np.searchsorted(gate_of[owners][at_gate], np.arange(gates + 1)).astype(np.int64), at_gate.astype(np.int32),
        )  # fmt: skip

    @property
    def decided(self) -> npt.NDArray[np.bool_]:
        """Of each pattern, whether one element decides it."""
        return np.diff(self.begin.view) > 0

    # As arrays: on disk, and from other processes.

    def saved(self) -> dict[str, AnyArray]:
        """The tests as arrays; `restore` takes them back."""
        demands = {_DEMANDS + name: array for name, array in self.demands.saved().items()}
        return {"begin": self.begin.view, "tests": self._tests.view, "places": self._places.view, **demands}

    @classmethod
    def restore(cls, names: Names, arrays: dict[str, AnyArray]) -> "BoundTests":
        """The tests that `arrays` was taken of, on the same memory until they change."""
        bound = cls(names)
        bound.demands = DemandTable.restore(names, part_of(arrays, _DEMANDS))
        bound.begin, bound._tests, bound._places = (Growing.over(arrays[name]) for name in ("begin", "tests", "places"))
        return bound

    def merge(self, arrays: dict[str, AnyArray], chosen: Int64s, names: Int32s) -> None:
        """Take over the tests of some patterns of another process, whose names are `names` here."""
        begin, theirs = gathered(arrays["begin"], arrays["tests"], chosen)
        _, places = gathered(arrays["begin"], arrays["places"], chosen)
        moved = self.demands.merge(part_of(arrays, _DEMANDS), names, theirs)
        self.begin.extend(begin[1:] + self._tests.size)
        self._tests.extend(moved[theirs])
        self._places.extend(places)


def no_rows(gates: int) -> JoinRows:
    """For no patterns."""
    none, numbers, more = np.zeros(0), np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    return JoinRows(
        more[:0], none, numbers, np.zeros(0, dtype=np.bool_), more, more[:0], none,
        np.zeros(gates + 1, dtype=np.int64), numbers,
    )  # fmt: skip


def _least(begin: Int64s, owners: AnyArray, counts: Int64s, costs: Floats) -> AnyArray:
    """Of each owner the place of its least cost, the first of equal ones."""
    if not len(owners):
        return np.zeros(0, dtype=np.int64)
    least = np.minimum.reduceat(costs, begin[:-1][owners])
    best = np.flatnonzero(costs == np.repeat(least, counts[owners]))
    owner = np.repeat(owners, counts[owners])[best]
    first = np.ones(len(best), dtype=np.bool_)
    first[1:] = owner[1:] != owner[:-1]
    return best[first]
