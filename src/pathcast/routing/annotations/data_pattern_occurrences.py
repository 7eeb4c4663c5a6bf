"""Occurrences of data patterns, from label paths: which data patterns occur in a document, and where they last occur.

A data pattern is a chain of labels, each the child of the one before, anywhere in a document (§3.1: e1/e2/…/em). It
occurs iff some element's label path ends with it. Similar documents repeat their label paths, so the patterns of a path
are computed once and cached; a document is then its distinct label paths.

    label path  /nitf/body/p     ends with   p, body/p, nitf/body/p

Invariant: at most `MOST_PATHS` label paths and names are cached; then the cache is cleared. A document that alone has
more gets no annotations of data patterns (but still of matches).
Cost: a hash probe per element; then some nanoseconds per distinct label path and pattern.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch, LabelPaths, local_part
from pathcast.errors import LimitError
from pathcast.kernels import Bools, Int32s, Int64s, Matrix

from ..table.name_translation import Naming
from .data_pattern_occurrences_kernels import (
    UNKNOWN,
    Distinct,
    Endings,
    NewPlaces,
    Places,
    Tree,
    distinct_paths,
    distinct_paths_of_each,
    find_last_places,
    last_places_of_each,
    mark_absent_of_each,
    mark_endings,
    mark_wholes,
    mark_wholes_of_each,
)
from .data_pattern_occurrences_kernels import SeenPaths as PathsSeen
from .document_annotations import Labels, Mask

MOST_PATHS = 1 << 16


class SeenPaths(NamedTuple):
    """The distinct label paths of a document, each with its last element."""

    batch: DocumentBatch
    ids: Int32s
    last: Int32s


class SeenByEach(NamedTuple):
    """The distinct label paths of documents, those of document `i` from `begins[i]` on, each with its last element."""

    begins: Int64s
    ids: Int32s
    last: Int32s


class LabelMemory:
    """The label paths that a router has seen."""

    def __init__(self, namespaces: object) -> None:
        self._ignore = namespaces == "ignore"
        self._forget()

    def _forget(self) -> None:
        self.paths = LabelPaths(capacity=MOST_PATHS)
        self._naming = Naming(self.paths.names)
        self._seen, self._stamp = np.zeros(0, dtype=np.int64), 0

    def paths_of(self, batch: DocumentBatch) -> Int32s | None:
        """The label path of every element; None if there are too many for the cache."""
        if len(self.paths.names) > MOST_PATHS:
            self._forget()
        for _ in range(2):
            try:
                return self.paths.add(batch, self._naming.of(batch))
            except LimitError:
                self._forget()
        return None

    def seen(self, batch: DocumentBatch) -> SeenPaths | None:
        """The distinct label paths of a document; None if there are too many for the cache."""
        paths = self.paths_of(batch)
        if paths is None:
            return None
        if len(self._seen) < len(self.paths):
            self._seen, self._stamp = np.zeros(2 * len(self.paths), dtype=np.int64), 0
        self._stamp += 1
        ids, last = np.empty((2, len(paths)), dtype=np.int32)
        found = distinct_paths(paths, self._seen, self._stamp, ids, last)
        return SeenPaths(batch, ids[:found], last[:found])

    def seen_by_each(self, batch: DocumentBatch) -> SeenByEach | None:
        """The distinct label paths of each document of a batch; None if there are too many for the cache."""
        paths = self.paths_of(batch)
        if paths is None:
            return None
        if len(self._seen) < len(self.paths):
            self._seen, self._stamp = np.zeros(2 * len(self.paths), dtype=np.int64), 0
        distinct = Distinct(*np.empty((2, len(paths)), dtype=np.int32))
        begins = np.empty(len(batch) + 1, dtype=np.int64)
        found = distinct_paths_of_each(paths, batch.offsets, self._seen, self._stamp + 1, distinct, begins)
        self._stamp += len(batch)
        return SeenByEach(begins, distinct.ids[:found], distinct.last[:found])

    def labels(self, path: int) -> Labels:
        """The labels of a path, as patterns write them."""
        labels = self.paths.labels(path)
        return tuple(map(local_part, labels)) if self._ignore else labels


class _Endings:
    """The patterns that each label path ends with, found on first use (`data_pattern_occurrences_kernels.py`)."""

    def __init__(self, ending: Callable[[Labels], list[int]]) -> None:
        self._ending = ending
        self._paths: LabelPaths | None = None
        self._forget()

    def _forget(self) -> None:
        self.begin, self.count = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
        self.memo, self._filled = np.zeros(64, dtype=np.int32), 0

    def follow(self, memory: LabelMemory) -> None:
        """Extend the arrays to the current paths."""
        if memory.paths is not self._paths:
            self._paths = memory.paths
            self._forget()
        more = len(memory.paths) - len(self.count)
        if more > 0:
            more += len(self.count)
            self.begin = np.append(self.begin, np.zeros(more, dtype=np.int64))
            self.count = np.append(self.count, np.full(more, UNKNOWN, dtype=np.int32))

    def work_out(self, memory: LabelMemory, path: int) -> None:
        """Cache the patterns that a path ends with."""
        found = self._ending(memory.labels(path))
        if self._filled + len(found) > len(self.memo):
            self.memo = np.append(self.memo, np.zeros(len(self.memo) + len(found), dtype=np.int32))
        self.memo[self._filled : self._filled + len(found)] = found
        self.begin[path], self.count[path] = self._filled, len(found)
        self._filled += len(found)


class DataPatterns:
    """Data patterns, numbered; finds those that a label path ends with."""

    def __init__(self, patterns: Sequence[Labels]) -> None:
        self.patterns = tuple(patterns)
        self._numbers = {pattern: number for number, pattern in enumerate(self.patterns)}
        self._longest = max(map(len, self.patterns), default=0)
        self._lengths = np.array([len(pattern) for pattern in self.patterns], dtype=np.int32)
        self._endings = _Endings(self._ending)
        self._parts: tuple[DataPatterns, Int32s, Int32s] | None = None

    def __len__(self) -> int:
        return len(self.patterns)

    def _ending(self, labels: Labels) -> list[int]:
        """The patterns that this label path ends with, the shortest first."""
        numbers = [self._numbers.get(labels[-length:]) for length in range(1, min(len(labels), self._longest) + 1)]
        return [number for number in numbers if number is not None]

    def occurring(self, memory: LabelMemory, seen: SeenPaths) -> Mask:
        """Which patterns occur."""
        endings, found, done = self._endings, np.zeros(len(self), dtype=np.bool_), 0
        endings.follow(memory)
        while True:
            done = mark_endings(seen.ids, done, endings.begin, endings.count, endings.memo, found)
            if done == len(seen.ids):
                return found
            endings.work_out(memory, int(seen.ids[done]))

    def last_places(self, memory: LabelMemory, seen: SeenPaths) -> Int64s:
        """For each pattern the number of start tags before the end of its last occurrence; 0 if it does not occur."""
        endings, places, done = self._endings, np.zeros(len(self), dtype=np.int64), 0
        endings.follow(memory)
        while True:
            done = find_last_places(
                seen.ids,
                seen.last,
                done,
                endings.begin,
                endings.count,
                endings.memo,
                self._lengths,
                seen.batch.parent,
                seen.batch.end,
                places,
            )
            if done == len(seen.ids):
                return places
            endings.work_out(memory, int(seen.ids[done]))

    def absent_in_each(self, memory: LabelMemory, seen: SeenByEach, documents: Int64s) -> Matrix[Bools]:
        """For each of these documents the patterns that do not occur."""
        absent = np.ones((len(documents), len(self)), dtype=np.bool_)
        mark_absent_of_each(documents, seen.begins, seen.ids, self._endings_of(memory, seen), absent)
        return absent

    def last_places_in_each(
        self,
        memory: LabelMemory,
        seen: SeenByEach,
        batch: DocumentBatch,
        documents: Int64s,
        frequencies: Int32s,
        rooms: Int64s,
    ) -> Places:
        """For each of these documents the last places of the most beneficial patterns, at most `rooms` of them."""
        endings = self._endings_of(memory, seen)
        most = int(np.minimum(rooms, len(self)).sum())
        out = Places(
            np.empty(len(documents) + 1, dtype=np.int64), np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int64)
        )
        last_places_of_each(
            documents,
            seen.begins,
            PathsSeen(seen.ids, seen.last),
            endings,
            self._lengths,
            Tree(batch.offsets, batch.parent, batch.end),
            frequencies,
            rooms,
            np.zeros(len(self), dtype=np.int64),
            NewPlaces(*out),
        )
        filled = int(out.offsets[-1])
        return Places(out.offsets, out.patterns[:filled], out.places[:filled])

    def _endings_of(self, memory: LabelMemory, seen: SeenByEach) -> Endings:
        """The patterns that all label paths of some documents end with."""
        endings = self._endings
        endings.follow(memory)
        unknown = seen.ids[endings.count[seen.ids] == UNKNOWN]
        for path in np.unique(unknown).tolist():
            endings.work_out(memory, path)
        return Endings(endings.begin, endings.count, endings.memo)

    def inherited_by_each(self, absent: Matrix[Bools], others: "DataPatterns") -> Matrix[Bools]:
        """As `inherited`, for each row."""
        gone = np.zeros((len(absent), len(self)), dtype=np.bool_)
        mark_wholes_of_each(*self._parts_of(others), absent, gone)
        return gone

    def inherited(self, absent: Mask, others: "DataPatterns") -> Mask:
        """Which of these cannot occur if others are `absent`: those that contain an absent pattern (§5.3)."""
        gone = np.zeros(len(self), dtype=np.bool_)
        mark_wholes(*self._parts_of(others), absent, gone)
        return gone

    def _parts_of(self, others: "DataPatterns") -> tuple[Int32s, Int32s]:
        if self._parts is None or self._parts[0] is not others:
            self._parts = (others, *self.parts(others))
        return self._parts[1:]

    def parts(self, others: "DataPatterns", *, proper: bool = False) -> tuple[Int32s, Int32s]:
        """Pairs of a pattern of the others and one of these that contains it, or equals it unless `proper`; without
        patterns that another part of the same whole contains: if they are absent, that part is, too.
        """
        pairs = [
            (part, whole)
            for whole, pattern in enumerate(self.patterns)
            for part in others._largest_in(pattern, len(pattern) - proper)
        ]
        columns = np.array(pairs, dtype=np.int32).reshape(-1, 2)
        return columns[:, 0].copy(), columns[:, 1].copy()

    def _largest_in(self, labels: Labels, longest: int) -> list[int]:
        """The patterns of at most `longest` labels within some labels, except those that another of them contains."""
        found: dict[tuple[int, int], int] = {}
        for length in range(longest, 0, -1):
            for begin in range(len(labels) - length + 1):
                end = begin + length
                number = self._numbers.get(labels[begin:end])
                if number is not None and not any(first <= begin and end <= last for first, last in found):
                    found[begin, end] = number
        return list(found.values())
