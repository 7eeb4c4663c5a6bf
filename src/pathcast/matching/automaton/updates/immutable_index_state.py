"""A generation: everything that matching reads, as of one moment.

        patterns of the table, in order of arrival

    ├── base ───────────────────────────────┼── delta ───────────────┼── pending ──┤
      states of plain paths, trees by gates   the same, small enough   bits of paths and
                                              to be rebuilt often      gates, tried on
                                                                       every document

A thread that matches takes a generation and uses it to the end of its batch. A change of the subscriptions creates a
new generation: usually with some more pending patterns, sometimes with another delta, seldom with another base.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s

from ...table.pattern_table import PatternTable
from ..paths.lazy_determinisation import States
from .pending_paths_kernels import PendingBits

if TYPE_CHECKING:
    from ..verify.candidate_search_and_verification import CandidateMatcher


# Names of a batch that are not in the table have symbol 0; this many zeros are kept ready.
_OTHER_NAMES = 1 << 13


class Index(NamedTuple):
    """Plain paths as states, and trees behind gates, which states open.

    The first `listed_gates` gates have patterns behind them that no join finds: a walk lists only these. The trees of a
    base include those of the delta and pending ones, which have no gate in it.
    """

    states: States
    trees: "CandidateMatcher | None"
    gates: int
    listed_gates: int

    @property
    def patterns(self) -> int:
        """The number of trees with a gate."""
        return 0 if self.trees is None else self.trees.gated.patterns

    @property
    def needs_states(self) -> bool:
        """Whether finding trees needs the states of elements."""
        return self.trees is not None and self.trees.needs_states


class Generation(NamedTuple):
    """`entries` and `names` are its numbers of entries and names, `symbols` has each name's symbol and many zeros."""

    table: PatternTable
    base: Index
    delta: Index | None
    pending: PendingBits
    entries: int
    names: int
    symbols: Int32s

    @property
    def indexes(self) -> tuple[Index, ...]:
        """The base, and the delta if there is one."""
        return (self.base,) if self.delta is None else (self.base, self.delta)

    @property
    def settled(self) -> bool:
        """Whether the base has all patterns."""
        return self.delta is None and not self.pending.words

    @property
    def patterns(self) -> int:
        """The number of patterns with predicates."""
        return 0 if self.base.trees is None else self.base.trees.patterns

    @property
    def pending_trees(self) -> int:
        """The number of trees whose gates are pending paths."""
        return self.patterns - sum(index.patterns for index in self.indexes)

    def names_of(self, batch: DocumentBatch) -> tuple[Int32s | None, Int32s]:
        """For each name of a batch its number in the table, or -1, if there are trees; and its symbol."""
        table = self.table
        if batch.known is table.names and table.namespaces != "ignore":
            known, count = batch.known_count, batch.name_count
            if known == self.names and count <= len(self.symbols):
                # Read with the table's own names at that time: a name that is new in the batch is in no subscription.
                numbers = None if self.base.trees is None else table.translation(batch)
                return numbers, self.symbols[:count]
        numbers = table.translation(batch)
        # A name added to the table since then belongs to no subscription of this generation.
        known_numbers = np.where(numbers < self.names, numbers, np.int32(-1))
        return numbers, np.where(known_numbers < 0, np.int32(0), self.symbols[known_numbers])


def symbols_for(table: PatternTable, names: int) -> Int32s:
    """The symbol of each of the first `names` names: 0 unless a step of the trie has the name. And many more zeros."""
    trie = table.trie
    counts = np.bincount(trie.step[1 : trie.count] >> 1, minlength=names + 1)
    symbols = np.zeros(names + _OTHER_NAMES, dtype=np.int32)
    used = np.flatnonzero(counts[1 : names + 1]).astype(np.int32)
    symbols[used] = used + 1
    return symbols
