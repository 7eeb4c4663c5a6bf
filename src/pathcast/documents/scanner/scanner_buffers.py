"""The scanner's memory: rows for what it writes, and working memory, one set per thread."""

import threading
from typing import TYPE_CHECKING

import numpy as np

from pathcast.kernels import Int64s

from ..document_limits import Limits
from ..expanded_name_table import Names
from .name_table import NameTable
from .scanner_array_layout_kernels import (
    A_ROWS,
    B_ROWS,
    E_ROWS,
    L_ATTRIBUTES,
    L_COUNT,
    L_DEPTH,
    L_NAME,
    L_NAMES,
    L_SIZE,
    MAX_BINDINGS,
    N_COUNTS,
    N_NAME_BYTES,
    N_NAMES,
    N_STAMP,
    S_ROWS,
    T_ROWS,
    W_ROWS,
    ScanRows,
    ScanScratch,
)
from .structural_byte_index_kernels import ROOM

if TYPE_CHECKING:
    from .small_document import SmallDocumentReader

# The longest name with its namespace that the kernel spells out.
_SPELLING = 8192
# Batches up to this size can share the scanner's buffers: fresh pages from the system cost as much as scanning them.
_LENDABLE = 16 << 20
# Limits up to this get their room at once, larger ones when documents can reach them.
_ROOM = 1 << 12


class Rows:
    """Room for what a scan writes."""

    def __init__(self, tags: int, equals: int, size: int) -> None:
        self.tags, self.equals, self.size = tags, equals, size
        self.arrays = ScanRows(
            np.empty((E_ROWS, tags + 1), dtype=np.int32),
            np.empty((A_ROWS, equals + 1), dtype=np.int32),
            np.empty(equals + 1, dtype=np.int64),
            np.empty((T_ROWS, tags + 1), dtype=np.int32),
            np.empty(tags + 1, dtype=np.int64),
            np.empty(size, dtype=np.uint8),
        )


class Buffers:
    """The working memory of a scan besides its rows, and reusable rows; of one thread."""

    def __init__(self, names: Names, most: tuple[int, int]) -> None:
        self.known, self._most = names, most
        self.names = NameTable(names, None, most)
        self.scratch = ScanScratch(
            counts=np.zeros(N_COUNTS, dtype=np.int64),
            stamps=np.zeros(0, dtype=np.int64),
            stack=np.empty((S_ROWS, 0), dtype=np.int64),
            waiting=np.empty((W_ROWS, 0), dtype=np.int64),
            bindings=np.empty((B_ROWS, MAX_BINDINGS), dtype=np.int64),
            spelling=np.zeros(_SPELLING, dtype=np.uint8),
            places=np.zeros(ROOM, dtype=np.uint32),
        )
        self.most = np.zeros(2, dtype=np.int64)
        self.limits = np.zeros(L_COUNT, dtype=np.int64)
        self.lent = Rows(0, 0, 0)
        self.small: SmallDocumentReader | None = None

    def current_names(self) -> NameTable:
        """The table of names, rebuilt when there are more known ones, reset when names of documents fill it."""
        if self.names.known != len(self.known):
            self.names = NameTable(self.known, self.names, self._most)
        elif self.names.crowded or self.names.has_grown():
            self.names.renew()
        return self.names

    def fit(self, names: NameTable, limits: Limits, tags: int, equals: int, size: int) -> Int64s:
        """Make room for these names and limits.

        Returns the limits, no larger than documents with this many tags, attributes and bytes can reach.
        """
        depth, attributes = min(limits.depth, max(tags, _ROOM)), min(limits.attributes, max(equals, _ROOM))
        self.fit_stamps(names)
        scratch = self.scratch
        if scratch.stack.shape[1] < depth + 1:
            self.scratch = scratch = scratch._replace(stack=np.empty((S_ROWS, depth + 1), dtype=np.int64))
        if scratch.waiting.shape[1] < attributes + 1:
            self.scratch = scratch = scratch._replace(waiting=np.empty((W_ROWS, attributes + 1), dtype=np.int64))
        counts, bound = scratch.counts, self.limits
        stamp = counts.item(N_STAMP)
        counts.fill(0)
        counts[N_STAMP], counts[N_NAMES], counts[N_NAME_BYTES] = stamp, names.count, names.used
        bound[L_DEPTH], bound[L_SIZE] = depth, min(limits.size, size)
        bound[L_ATTRIBUTES], bound[L_NAME] = attributes, min(limits.name_length, size)
        bound[L_NAMES] = min(limits.names, size)
        return bound

    def fit_stamps(self, names: NameTable) -> None:
        """Make room for the stamp of each name."""
        offsets = names.index.offsets
        if len(self.scratch.stamps) < len(offsets):
            self.scratch = self.scratch._replace(stamps=np.zeros(2 * len(offsets), dtype=np.int64))

    def rows(self, tags: int, equals: int, size: int, borrowed: bool) -> Rows:
        """Rows for this many tags, attributes and bytes: new, or the reusable ones if requested and large enough."""
        if not borrowed or size > _LENDABLE:
            return Rows(tags, equals, size)
        lent = self.lent
        if tags > lent.tags or equals > lent.equals or size > lent.size:
            needed, there = (tags, equals, size), (lent.tags, lent.equals, lent.size)
            # Each by its own need: if all were doubled for one, many small steps of one would make the others huge.
            self.lent = lent = Rows(*(old if new <= old else 2 * new for new, old in zip(needed, there, strict=True)))
        return lent


class ThreadBuffers(threading.local):
    """`mine`: the buffers of the calling thread, made when it first reads; an unused scanner needs no memory."""

    mine: Buffers

    def __init__(self, names: Names, most: tuple[int, int]) -> None:
        self._names, self._most = names, most

    def __getattr__(self, name: str) -> Buffers:
        """Called for `mine` once per thread."""
        if name != "mine":
            raise AttributeError(name)
        self.mine = Buffers(self._names, self._most)
        return self.mine
