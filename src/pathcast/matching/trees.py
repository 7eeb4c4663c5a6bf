"""The patterns that are no plain paths, by entry; those of a snapshot are parsed when they are looked at.

A snapshot holds them as text, in normal form, which tells patterns apart as they do themselves. So to find a pattern
among those of a snapshot, or to save them again, none of them is parsed; but all are to find one with a number that
can be written in several ways, all of them long (`has_one_text`).

Invariant: entries ascend, those of the snapshot before those that were added.
Cost: to find a pattern, one hash look-up; in an opened table some 15 µs more, to print it, and once 0.3 µs for each
pattern of the snapshot.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ..patterns import Namespaces, Pattern
from ..patterns.parse import parse_printed
from ..patterns.printing import has_one_text
from ..store.texts import Texts, pack


class Trees:
    """A growing mapping from entries to tree patterns and back."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._packed = _Packed(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64))
        self._added: list[int] = []
        self._patterns: dict[int, Pattern] = {}
        self._numbers: dict[Pattern, int] = {}

    def __len__(self) -> int:
        return len(self._packed.entries) + len(self._added)

    def __iter__(self) -> Iterator[int]:
        """All entries that are trees, ascending."""
        return chain(self._packed.entries.tolist(), self._added)

    def between(self, first: int, end: int) -> list[int]:
        """The entries from `first` to before `end` that are trees, ascending."""
        packed, added = self._packed.entries, self._added
        low, high = np.searchsorted(packed, [first, end]).tolist()
        return [*packed[low:high].tolist(), *added[bisect_left(added, first) : bisect_left(added, end)]]

    def __getitem__(self, entry: int) -> Pattern:
        pattern = self._patterns.get(entry)
        if pattern is None:
            pattern = self._patterns[entry] = parse_printed(self._packed.text(entry), self._namespaces)
        return pattern

    def find(self, pattern: Pattern) -> int | None:
        """The entry of a pattern, or None."""
        entry = self._numbers.get(pattern)
        if entry is None and len(self._packed.entries):
            entry = self._packed.find(str(pattern))
            if entry is None and pattern.root is not None and not has_one_text(pattern.root):
                entry = next((known for known in self._packed.entries.tolist() if self[known] == pattern), None)
        return entry

    def add(self, entry: int, pattern: Pattern) -> None:
        """Enter a pattern that `find` does not know, under a number larger than all others."""
        self._patterns[entry] = pattern
        self._numbers[pattern] = entry
        self._added.append(entry)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The trees as arrays; `restore` takes them back."""
        packed = self._packed
        if not self._added:
            return {"entries": packed.entries, "texts": packed.data, "offsets": packed.offsets}
        texts, offsets = pack(str(self._patterns[entry]) for entry in self._added)
        return {
            "entries": np.array(list(self), dtype=np.int32),
            "texts": np.concatenate([packed.data, texts]),
            "offsets": np.concatenate([packed.offsets, offsets[1:] + packed.offsets[-1]]),
        }

    @classmethod
    def restore(cls, namespaces: Namespaces, arrays: dict[str, npt.NDArray[Any]]) -> "Trees":
        """The trees that `arrays` was taken of."""
        trees = cls(namespaces)
        trees._packed = _Packed(np.asarray(arrays["entries"]), arrays["texts"], arrays["offsets"])
        return trees


class _Packed:
    """The trees of a snapshot as they lie there; `text` and `find` look them up, one by entry, one by text."""

    def __init__(
        self, entries: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
    ) -> None:
        self.entries = entries
        self.data = data
        self.offsets = offsets
        self._texts = Texts(data, offsets)
        self._order: tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]] | None = None

    def text(self, entry: int) -> str:
        return self._texts[int(self.entries.searchsorted(entry))]

    def find(self, text: str) -> int | None:
        """The entry with this text, or None."""
        if self._order is None:
            self._order = self._ordered()
        sums, places = self._order
        wanted = np.uint32(crc32(text.encode()))
        at = int(sums.searchsorted(wanted))
        while at < len(sums) and sums[at] == wanted:
            place = int(places[at])
            if self._texts[place] == text:
                return int(self.entries[place])
            at += 1
        return None

    def _ordered(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """The checksums of all texts, ascending, and the place that each belongs to."""
        view = np.ascontiguousarray(self.data).data
        edges = self.offsets.tolist()
        sums = np.array([crc32(view[begin:end]) for begin, end in pairwise(edges)], dtype=np.uint32)
        places = np.argsort(sums, kind="stable")
        return sums[places], places
