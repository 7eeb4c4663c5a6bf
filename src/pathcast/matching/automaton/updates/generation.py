"""A generation: everything that matching reads, as of one moment.

    table ──▶ trie, as long as it was ──▶ states, growing with the documents      (plain paths)
          ──▶ paths that came since ────▶ states of these alone, `recent`         (plain paths)
          ──▶ paths that came then ─────▶ fresh paths, bits                       (plain paths)
          ──▶ trees ────────────────────▶ gates, values, conditions               (other patterns)
          ──▶ trees that came since ────▶ a generation of these alone, `lately`   (other patterns)

Threads that match take a generation and stay with it to the end of their batch. A change of the subscriptions makes a
new one: mostly with the same states and some more fresh paths, now and then with recent states, or with all states, of
its own.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Int32s

from ...table.pattern_table import PatternTable
from ..paths.states import States
from .delta_paths_kernels import FreshPaths

if TYPE_CHECKING:
    from ..verify.candidate_matcher import Waiting


# Names of a batch that the table lacks have symbol 0; up to so many are at hand.
_OTHER_NAMES = 1 << 13


class Generation(NamedTuple):
    """`entries` is how many entries it knows, `names` how many names, `symbols` each name's symbol and many zeros.

    Of its gates the first `told_gates` have patterns behind them that are not joined. `lately` has trees alone, those
    that came since the others were laid out and are no longer fresh.
    """

    table: PatternTable
    states: States
    recent: States | None
    fresh: FreshPaths
    waiting: "Waiting | None"
    gates: int
    told_gates: int
    entries: int
    names: int
    symbols: Int32s
    lately: "Generation | None" = None

    @property
    def settled(self) -> bool:
        """Whether `states` has all plain paths, and the gates of all trees."""
        return self.recent is None and self.lately is None and not self.fresh.words

    @property
    def patterns(self) -> int:
        """How many patterns with predicates it knows."""
        return 0 if self.waiting is None else self.waiting.patterns

    def symbols_of(self, batch: DocumentBatch) -> Int32s:
        """For each name of the batch its symbol."""
        table = self.table
        if batch.known is table.names and table.namespaces != "ignore":
            known, count = batch.known_count, batch.name_count
            if known == self.names and count <= len(self.symbols):
                # Read with the table's own names as they were: what is new in the batch is in no subscription.
                return self.symbols[:count]
        translation = table.translation(batch)
        # A name that came to the table since belongs to no subscription of this generation.
        translation[translation >= self.names] = -1
        return np.where(translation < 0, np.int32(0), self.symbols[translation])


def symbols_for(table: PatternTable, names: int) -> Int32s:
    """For each of the first `names` names its symbol: 0 unless a step of the trie asks for it. And many more zeros."""
    trie = table.trie
    counts = np.bincount(trie.step[1 : trie.count] >> 1, minlength=names + 1)
    symbols = np.zeros(names + _OTHER_NAMES, dtype=np.int32)
    used = np.flatnonzero(counts[1 : names + 1]).astype(np.int32)
    symbols[used] = used + 1
    return symbols
