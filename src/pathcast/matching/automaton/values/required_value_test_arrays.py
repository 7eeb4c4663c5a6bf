"""Clauses of patterns as arrays, and the clause that each pattern waits for (`required_value_tests.py`).

    patterns ──▶ clauses ──▶ alternatives ──▶ tests        each a list of the next, one after the other

A document that matches a pattern fulfils some alternative of each clause, and passes all tests of that alternative. It
is therefore enough to wait for one test of each alternative of one clause: the rarest test of each alternative, and the
clause whose selected tests are the rarest together.

Invariant: patterns are appended, never changed. Cost: 4 bytes per test, 8 bytes per alternative, clause and pattern.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pathcast.kernels import AnyArray, Floats, Int32s, Int64s
from pathcast.store import offsets_of

from ...arrays.growing_array import Growing
from ...arrays.ragged_arrays import ends_of, gathered, least

# The weight of other patterns with the same test, beside the test's likelihood.
_SHARED = 1e-9


class Choice(NamedTuple):
    """The tests that patterns wait for, `tests[begin[i] : begin[i + 1]]`, and how likely a document passes one of them.

    Every document is a candidate for a pattern without tests: infinitely likely.
    """

    begin: Int64s
    tests: Int32s
    likely: Floats


class ClauseRows(NamedTuple):
    """Where the clauses of each pattern begin, the alternatives of each clause, the tests of each alternative."""

    clause_begin: Int64s
    alternative_begin: Int64s
    test_begin: Int64s
    tests: Int32s

    def rarest(self, likely: Floats, count: int) -> Choice:
        """The tests that each of the first `count` patterns waits for, given how likely documents pass each test.

        Of equally likely tests, the one that fewer patterns have.
        """
        shared = np.bincount(self.tests, minlength=len(likely)) / max(1, len(self.clause_begin) - 1)
        costs = likely + _SHARED * shared[: len(likely)]
        best = self.tests[least(self.test_begin, costs[self.tests])]
        clause_costs = _sums(self.alternative_begin, costs[best])
        clauses = least(self.clause_begin[: count + 1], clause_costs[: self.clause_begin[count]])
        found = np.append(_sums(self.alternative_begin, likely[best]), np.inf)[clauses]
        has_one = clauses >= 0
        begin, tests = gathered(self.alternative_begin, best, clauses[has_one])
        counts = np.zeros(count, dtype=np.int64)
        counts[has_one] = np.diff(begin)
        return Choice(offsets_of(counts), tests.astype(np.int32), found)


class Clauses:
    """The clauses of patterns, numbered in order of arrival."""

    def __init__(self) -> None:
        self._clauses, self._alternatives, self._tests_of = (Growing(np.int64, [0]) for _ in range(3))
        self._tests = Growing(np.int32)

    def extend(self, patterns: Sequence[list[list[list[int]]]]) -> None:
        """Add patterns, each as clauses, alternatives and tests. A clause with an empty alternative is left out."""
        clauses = [[clause for clause in pattern if all(clause)] for pattern in patterns]
        alternatives = [clause for pattern in clauses for clause in pattern]
        tests = [alternative for clause in alternatives for alternative in clause]
        self._clauses.extend(ends_of([len(pattern) for pattern in clauses], self._alternatives.size - 1))
        self._alternatives.extend(ends_of([len(clause) for clause in alternatives], self._tests_of.size - 1))
        self._tests_of.extend(ends_of([len(alternative) for alternative in tests], self._tests.size))
        self._tests.extend(np.array([test for alternative in tests for test in alternative], dtype=np.int32))

    def rows(self, first: int = 0) -> ClauseRows:
        """The clauses as of now, of the patterns from number `first` on."""
        clause = self._clauses.view[first]
        alternative = self._alternatives.view[clause]
        test = self._tests_of.view[alternative]
        return ClauseRows(
            self._clauses.view[first:] - clause,
            self._alternatives.view[clause:] - alternative,
            self._tests_of.view[alternative:] - test,
            self._tests.view[test:],
        )

    # As arrays: on disk, and from other processes.

    def saved(self) -> dict[str, AnyArray]:
        """The clauses as arrays; `restore` reads them, `ClauseRows` shows them."""
        return self.rows()._asdict()

    @classmethod
    def restore(cls, arrays: dict[str, AnyArray]) -> "Clauses":
        """The clauses that were saved as `arrays`, on the same memory until they change."""
        clauses = cls()
        clauses._clauses, clauses._alternatives, clauses._tests_of, clauses._tests = (
            Growing.over(arrays[name]) for name in ClauseRows._fields
        )
        return clauses

    def take_over(self, theirs: ClauseRows, tests: Int32s) -> None:
        """Append patterns of another process; `tests` has the numbers of their tests in ours."""
        self._clauses.extend(theirs.clause_begin[1:] + (self._alternatives.size - 1))
        self._alternatives.extend(theirs.alternative_begin[1:] + (self._tests_of.size - 1))
        self._tests_of.extend(theirs.test_begin[1:] + self._tests.size)
        self._tests.extend(tests)


def some_of(arrays: dict[str, AnyArray], chosen: Int64s) -> ClauseRows:
    """The clauses of some patterns, from the arrays of `Clauses.saved`."""
    whole = ClauseRows(*(np.asarray(arrays[name]) for name in ClauseRows._fields))
    clause_begin, clauses = gathered(whole.clause_begin, np.arange(len(whole.alternative_begin) - 1), chosen)
    alternative_begin, alternatives = gathered(
        whole.alternative_begin, np.arange(len(whole.test_begin) - 1), clauses.astype(np.int64)
    )
    test_begin, tests = gathered(whole.test_begin, whole.tests, alternatives.astype(np.int64))
    return ClauseRows(clause_begin, alternative_begin, test_begin, tests)


def _sums(begin: Int64s, costs: Floats) -> Floats:
    """The sum of each list of costs, `costs[begin[k] : begin[k + 1]]`; no list is empty."""
    return np.add.reduceat(costs, begin[:-1]) if len(begin) > 1 else np.zeros(0)
