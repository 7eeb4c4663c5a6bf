"""Fresh paths: plain paths that came after the states were made, tried on every document until the next generation.

States can't take up a path without being worked out anew. So a path that is added while matching goes on waits here,
as some bits of one large word (`fresh_kernels.py`), and moves into the trie's automaton with many others at once. The
gates of fresh patterns with predicates wait here, too: such a pattern is a candidate where its gate is open.

Invariant: what a view shows of older paths never changes; a path that is being added counts only for those who know its
entry. Cost: some 3 µs to add a path; for each element some operations on each word of 64 steps.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...patterns.linear import Steps
from ..trie import flat
from .fresh_kernels import F_BITS, F_ROWS, F_SIZES, ROWS, put_fresh


class FreshPaths(NamedTuple):
    """What a walk reads of them."""

    table: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int32]
    entries: npt.NDArray[np.int32]
    words: int


class Fresh:
    """A growing set of plain paths of at least one step each; `patterns` says up to which their gates are here."""

    def __init__(self, patterns: int = 0) -> None:
        self.patterns = patterns
        self._sizes = np.zeros(F_SIZES, dtype=np.int64)
        self._sizes[F_ROWS] = ROWS
        self._table = np.zeros((32, 4), dtype=np.uint64)
        self._rows = np.zeros(256, dtype=np.int32)
        self._entries = np.zeros(4 * 64, dtype=np.int32)

    @property
    def bits(self) -> int:
        """How many steps there are."""
        return int(self._sizes[F_BITS])

    def add(self, entries: Sequence[int], paths: Sequence[Steps]) -> None:
        """Take up paths; the entry of a pattern's gate is -1 - the pattern."""
        steps, lengths = flat(paths)
        self._make_room(len(steps), {step >> 1 for path in paths for step in path})
        codes = np.array(entries, dtype=np.int32)
        put_fresh(steps, lengths, codes, self._sizes, self._table, self._rows, self._entries)

    def view(self) -> FreshPaths:
        """All paths as of now."""
        return FreshPaths(self._table, self._rows, self._entries, self.bits + 63 >> 6)

    def _make_room(self, steps: int, symbols: set[int]) -> None:
        largest = max(symbols, default=0)
        if largest >= len(self._rows):
            known = np.zeros(2 * largest, dtype=np.int32)
            known[: len(self._rows)] = self._rows
            self._rows = known
        rows, words = self._table.shape
        while rows < self._sizes[F_ROWS] + sum(self._rows[symbol] == 0 for symbol in symbols):
            rows *= 2
        while 64 * words < self.bits + steps:
            words *= 2
        if (rows, words) != self._table.shape:
            larger = np.zeros((rows, words), dtype=np.uint64)
            larger[: self._table.shape[0], : self._table.shape[1]] = self._table
            entries = np.zeros(64 * words, dtype=np.int32)
            entries[: len(self._entries)] = self._entries
            self._table, self._entries = larger, entries
