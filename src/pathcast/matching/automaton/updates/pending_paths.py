"""Pending paths: plain paths added after the states were built, checked on every document until they are promoted.

Adding a path to states means to rebuild them. A path that is added during matching is therefore kept here, as some bits
of one large word (`pending_paths_kernels.py`), and moves into an index together with many others. The gates of pending
trees are kept here, too: such a tree is a candidate where its gate is open.

Invariant: what a view shows of older paths never changes; a path in the process of being added counts only for readers
that know its entry. Cost: some 0.1 µs to add a path; per element some operations on each word of 64 steps.
"""

import numpy as np

from pathcast.kernels import Int32s
from pathcast.store import grown

from ...table.path_trie import Trie
from .pending_paths_kernels import F_BITS, F_ROWS, F_SIZES, ROWS, PendingBits, put_pending

_ANY_NUMBER = 1 << 62


class PendingPaths:
    """A growing set of plain paths of at least one step each.

    `patterns` is the number of patterns with predicates whose gates are here, `gate_steps` the steps of these gates.
    """

    def __init__(self, patterns: int = 0) -> None:
        self.patterns, self.gate_steps = patterns, 0
        self._sizes = np.zeros(F_SIZES, dtype=np.int64)
        self._sizes[F_ROWS] = ROWS
        self._table = np.zeros((32, 4), dtype=np.uint64)
        self._rows = np.zeros(256, dtype=np.int32)
        self._entries = np.zeros(4 * 64, dtype=np.int32)

    @property
    def bits(self) -> int:
        """The number of steps."""
        return int(self._sizes[F_BITS])

    def add(self, codes: Int32s, ends: Int32s, trie: Trie, symbols: Int32s, most: int) -> bool:
        """Add paths that end in these nodes of a trie; False if there would be more than `most` bits.

        The code of a path is its entry, that of a pattern's gate -1 - the pattern. Names in paths get their symbols.
        """
        if len(self._rows) <= len(symbols):
            known = np.zeros(2 * len(symbols), dtype=np.int32)
            known[: len(self._rows)] = self._rows
            self._rows = known
        done = 0
        while self.bits <= most:
            done = put_pending(
                ends, codes, done, trie.parent, trie.step, self._sizes, self._table, self._rows, self._entries, symbols
            )
            if done == len(ends):
                return self.bits <= most
            self._make_room(len(trie.path(int(ends[done]))))
        return False

    def add_gates(self, ends: Int32s, trie: Trie, symbols: Int32s) -> None:
        """Add the gates of the next patterns, however many bits they have."""
        before = self.bits
        codes = -1 - np.arange(self.patterns, self.patterns + len(ends), dtype=np.int32)
        self.add(codes, ends, trie, symbols, _ANY_NUMBER)
        self.patterns, self.gate_steps = self.patterns + len(ends), self.gate_steps + self.bits - before

    def view(self) -> PendingBits:
        """All paths as of now."""
        return PendingBits(self._table, self._rows, self._entries, self.bits + 63 >> 6)

    def _make_room(self, steps: int) -> None:
        """Make room for a path of `steps` steps, and for more names if there is room for none."""
        rows, words = self._table.shape
        if rows == self._sizes[F_ROWS]:
            rows *= 2
        while 64 * words < self.bits + steps:
            words *= 2
        larger = np.zeros((rows, words), dtype=np.uint64)
        larger[: self._table.shape[0], : self._table.shape[1]] = self._table
        self._table, self._entries = larger, grown(self._entries, 64 * words)
