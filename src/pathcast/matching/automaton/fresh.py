"""Fresh paths: plain paths that came after the states were made, tried on every document until the next generation.

States can't take up a path without being worked out anew. So a path that is added while matching goes on waits here,
as some bits of one large word (`fresh_kernels.py`), and moves into the trie's automaton with many others at once.

Invariant: what a view shows of older paths never changes; a path that is being added counts only for those who know its
entry. Cost: some 8 µs to add a path; for each element some operations on each word of 64 steps.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...patterns.linear import Steps
from .fresh_kernels import CHILD, DEEP, FIRST_CHILD, FIRST_DEEP, LAST, ROWS, WILD

_ONE = np.uint64(1)


class FreshPaths(NamedTuple):
    """What a walk reads of them."""

    table: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int32]
    entries: npt.NDArray[np.int32]
    words: int


class Fresh:
    """A growing set of plain paths of at least one step each."""

    def __init__(self) -> None:
        self.paths = self.bits = 0
        self._table = np.zeros((32, 4), dtype=np.uint64)
        self._rows = np.zeros(256, dtype=np.int32)
        self._entries = np.zeros(4 * 64, dtype=np.int32)
        self._names = ROWS

    def add(self, entry: int, steps: Steps) -> None:
        """Take up a path."""
        self._make_room(len(steps), max(steps) >> 1)
        table = self._table
        for index, step in enumerate(steps):
            word, bit = self.bits >> 6, _ONE << np.uint64(self.bits & 63)
            axis = (DEEP if step & 1 else CHILD) if index else (FIRST_DEEP if step & 1 else FIRST_CHILD)
            table[axis, word] |= bit
            table[self._row(step >> 1), word] |= bit
            self.bits += 1
        # Last of all: until now nothing comes of it.
        self._entries[self.bits - 1] = entry
        table[LAST, word] |= bit
        self.paths += 1

    def view(self) -> FreshPaths:
        """All paths as of now."""
        return FreshPaths(self._table, self._rows, self._entries, self.bits + 63 >> 6)

    def _row(self, symbol: int) -> int:
        """The row of a symbol's steps."""
        if symbol == 0:
            return WILD
        row = int(self._rows[symbol])
        if row == 0:
            row = self._names
            self._names += 1
            self._rows[symbol] = row
        return row

    def _make_room(self, steps: int, symbol: int) -> None:
        rows, words = self._table.shape
        while rows < self._names + steps:
            rows *= 2
        while 64 * words < self.bits + steps:
            words *= 2
        if (rows, words) != self._table.shape:
            larger = np.zeros((rows, words), dtype=np.uint64)
            larger[: self._table.shape[0], : self._table.shape[1]] = self._table
            entries = np.zeros(64 * words, dtype=np.int32)
            entries[: len(self._entries)] = self._entries
            self._table, self._entries = larger, entries
        if symbol >= len(self._rows):
            known = np.zeros(2 * symbol, dtype=np.int32)
            known[: len(self._rows)] = self._rows
            self._rows = known
