"""Trees that came lately: an index of their own, small and soon made, until they are laid out with all others.

It is a generation like the large one (joins, access predicates, a verifier), of these trees alone, over states that
have their gates and no plain paths. Documents are walked through it after the large one.

Invariant: what was made is never changed; trees are taken up once, as they come. Cost: some 20 µs to
take up a tree, and for all of them 2 µs each whenever some have come; to a document, one walk and one join more.
"""

from typing import TYPE_CHECKING

import numpy as np

from ...table.path_trie_kernels import NONE
from ...table.pattern_table import PatternTable
from ..paths.states import States
from .delta_paths import Fresh
from .generation import Generation, symbols_for

if TYPE_CHECKING:
    from ..verify.candidate_matcher import Behind


class Lately:
    """Some trees of a table; one call at a time."""

    def __init__(self, table: PatternTable) -> None:
        self._table = table
        self._behind: Behind | None = None

    def renewed(self, trees: list[int], begun: Generation, limit: int) -> Generation | None:
        """The trees with these entries, for the label paths that a generation knows; None when there are none.

        Those that there were last time come first. States take at most `limit` bytes from the start.
        """
        if not trees:
            return None
        if self._behind is None:
            from ..verify.candidate_matcher import Behind

            self._behind = Behind(self._table)
        self._behind.add(trees[len(self._behind) :])
        table, entries, names = self._table, begun.entries, len(self._table.names)
        nodes, told, by = self._behind.layout().by_gates()
        gate_of_node = np.full(table.trie.count, NONE, dtype=np.int32)
        gate_of_node[nodes] = np.arange(len(nodes), dtype=np.int32)
        states = States(table.trie, gate_of_node, entries, entries)
        symbols = symbols_for(table, names)
        states.relearn(begun.states, limit, symbols)
        by.joins.cover(states)
        waiting = self._behind.waiting(by)
        return Generation(table, states, None, Fresh().view(), waiting, len(nodes), told, entries, names, symbols)
