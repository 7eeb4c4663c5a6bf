"""The patterns that are not plain paths, by entry, as text; objects are created only on demand.

Text in normal form identifies a pattern. Finding a pattern among those of a snapshot or of another process, saving them
again or leaving some out therefore requires no parsing. The exception is a pattern with a number that has several
texts, all of them long (`has_one_text`): to find it, all patterns are parsed. An added pattern is kept as an object
until the texts are needed.

Invariant: entries ascend. Texts are in arrays that are appended to, or replaced by larger copies. The garbage collector
tracks neither patterns nor the dictionaries that hold them, however many there are.
Cost: one hash look-up to find a pattern; among texts some 15 µs more, to print it, and once 0.1 µs per text.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain

import numpy as np

from pathcast.kernels import AnyArray, Int32s
from pathcast.patterns import Namespaces, Pattern, has_one_text
from pathcast.patterns.parsing import parse_printed
from pathcast.store import offsets_of, pack

from ..arrays.growing_array import Growing
from .text_table_kernels import find_text, gather_texts, index_texts, merge_texts

_NO_SLOTS = np.full(256, -1, dtype=np.int32)


class Trees:
    """A growing mapping from entries to tree patterns and back."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._entries = Growing(np.int32)  # of the texts
        self._data, self._offsets = Growing(np.uint8), Growing(np.int64, [0])
        self._slots, self._indexed = _NO_SLOTS, 0
        self._added = array("i")  # entries that have no text yet
        self._patterns: dict[int, Pattern] = {}
        self._numbers: dict[Pattern, int] = {}
        self._opaque = array("i")
        self._counted = array("i")

    @property
    def counted(self) -> "array[int]":
        """The entries of opaque patterns that have a counted tree, ascending; grows with the others."""
        return self._counted

    def counting(self, entry: int) -> Pattern:
        """A pattern for an engine that computes attributes: its counted tree, if it has one."""
        pattern = self[entry]
        return pattern if pattern.counted is None else Pattern(pattern.counted)

    @property
    def opaque(self) -> "array[int]":
        """The entries of opaque patterns, ascending; grows with the others."""
        return self._opaque

    def __len__(self) -> int:
        return self._entries.size + len(self._added)

    def __iter__(self) -> Iterator[int]:
        """All entries that are trees, ascending."""
        return chain(self._entries.view.tolist(), self._added)

    def between(self, first: int, end: int) -> list[int]:
        """The entries from `first` to before `end` that are trees, ascending."""
        packed, added = self._entries.view, self._added
        low, high = np.searchsorted(packed, [first, end]).tolist()
        return [*packed[low:high].tolist(), *added[bisect_left(added, first) : bisect_left(added, end)]]

    def __getitem__(self, entry: int) -> Pattern:
        pattern = self._patterns.get(entry)
        if pattern is None:
            pattern = self._patterns[entry] = parse_printed(self._packed_text(entry), self._namespaces)
        return pattern

    def text(self, entry: int) -> str:
        """A pattern as XPath, in normal form; creates no pattern object."""
        pattern = self._patterns.get(entry)
        return self._packed_text(entry) if pattern is None else str(pattern)

    def _packed_text(self, entry: int) -> str:
        place = int(self._entries.view.searchsorted(entry))
        begin, end = self._offsets.room[place : place + 2].tolist()
        return self._data.room[begin:end].tobytes().decode()

    def find(self, pattern: Pattern) -> int | None:
        """The entry of a pattern, or None."""
        entry = self._numbers.get(pattern)
        if entry is None and self._entries.size:
            self._index(0)
            text = np.frombuffer(str(pattern).encode(), dtype=np.uint8)
            place = int(find_text(text, self._data.room, self._offsets.room, self._slots))
            if place >= 0:
                return int(self._entries.room[place])
            if pattern.root is not None and not has_one_text(pattern.root):
                entry = next((known for known in self._entries.view.tolist() if self[known] == pattern), None)
        return entry

    def add(self, entry: int, pattern: Pattern) -> None:
        """Add a pattern that `find` does not know, with a number larger than all others."""
        self._patterns[entry] = pattern
        self._numbers[pattern] = entry
        self._added.append(entry)
        if pattern.expression:
            self._opaque.append(entry)
        if pattern.counted is not None:
            self._counted.append(entry)

    # As arrays: on disk, and from other processes.

    def arrays(self) -> dict[str, AnyArray]:
        """The trees as arrays; `restore` reads them, `merge` merges them."""
        self._print()
        arrays: dict[str, AnyArray] = {
            "entries": self._entries.view,
            "texts": self._data.view,
            "offsets": self._offsets.view,
            "opaque": np.array(self._opaque, dtype=np.int32),
            "counted": np.array(self._counted, dtype=np.int32),
        }
        return arrays

    @classmethod
    def restore(cls, namespaces: Namespaces, arrays: dict[str, AnyArray]) -> "Trees":
        """The trees that were saved as `arrays`, on the same memory until they change."""
        trees = cls(namespaces)
        trees._entries = Growing.over(arrays["entries"])
        trees._data, trees._offsets = Growing.over(arrays["texts"]), Growing.over(arrays["offsets"])
        trees._opaque = array("i", arrays["opaque"].tolist())
        trees._counted = array("i", arrays["counted"].tolist())
        return trees

    def merge(self, arrays: dict[str, AnyArray], first: int) -> Int32s:
        """Merge other trees, all with one text; return the entry of each in ours, new ones from `first` on."""
        data, offsets = np.asarray(arrays["texts"]), np.asarray(arrays["offsets"])
        count = len(offsets) - 1
        self._print()
        self._data.make_room(len(data))
        self._offsets.make_room(count)
        self._index(count)
        places = np.empty(count, dtype=np.int32)
        before = self._entries.size
        after = merge_texts(data, offsets, self._data.room, self._offsets.room, before, self._slots, places)
        self._offsets.size, self._indexed = after + 1, after
        self._data.size = int(self._offsets.room[after])
        self._entries.extend(np.arange(first, first + after - before, dtype=np.int32))
        found = np.asarray(self._entries.view[places], dtype=np.int32)
        for kind, known in (("opaque", self._opaque), ("counted", self._counted)):
            of_kind = np.isin(arrays["entries"], arrays[kind])
            known.extend(sorted({entry for entry in found[of_kind].tolist() if entry >= first}))
        return found

    def selected(self, moved: Int32s) -> "Trees":
        """The trees with their new entries in `moved`, without those that have -1."""
        self._print()
        chosen = np.flatnonzero(moved[self._entries.view] >= 0)
        offsets = offsets_of(np.diff(self._offsets.view)[chosen])
        data = np.empty(int(offsets[-1]), dtype=np.uint8)
        gather_texts(self._data.room, self._offsets.room, chosen, offsets, data)
        arrays: dict[str, AnyArray] = {
            "entries": moved[self._entries.view[chosen]],
            "texts": data,
            "offsets": offsets,
            "opaque": np.array([moved[entry] for entry in self._opaque if moved[entry] >= 0], dtype=np.int32),
            "counted": np.array([moved[entry] for entry in self._counted if moved[entry] >= 0], dtype=np.int32),
        }
        trees = Trees.restore(self._namespaces, arrays)
        trees._patterns = {int(moved[entry]): known for entry, known in self._patterns.items() if moved[entry] >= 0}
        trees._numbers = {known: int(moved[entry]) for known, entry in self._numbers.items() if moved[entry] >= 0}
        return trees

    def _print(self) -> None:
        """Print all patterns that have no text yet."""
        if self._added:
            data, offsets = pack(str(self._patterns[entry]) for entry in self._added)
            self._offsets.extend(offsets[1:] + self._data.size)
            self._data.extend(data)
            self._entries.extend(np.array(self._added, dtype=np.int32))
            self._added = array("i")

    def _index(self, more: int) -> None:
        """Index all texts, and make room for more."""
        count = self._entries.size
        if 2 * (count + more) > len(self._slots) or not self._indexed:
            size = max(len(self._slots), 1 << (2 * (count + more)).bit_length())
            self._slots, self._indexed = np.full(size, -1, dtype=np.int32), 0
        if self._indexed < count:
            index_texts(self._data.room, self._offsets.room, self._indexed, count, self._slots)
            self._indexed = count
