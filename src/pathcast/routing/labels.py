"""What a router knows of documents by their label paths: which data patterns occur, and where the last time.

A data pattern is a chain of labels, each the child of the one before, anywhere in a document (§3.1: e1/e2/…/em). It
occurs iff some element's label path ends with it. Documents of one kind repeat their label paths, so what follows from
a path is worked out once and remembered (`PathMemory`); a document is then its distinct label paths.

    label path  /nitf/body/p     ends with   p, body/p, nitf/body/p

Invariant: label paths are remembered up to `MOST_PATHS`, then all are forgotten; a document that alone has more is not
annotated by what is in it (it still is by what matched).
Cost: a hash probe an element; then some look-ups for each distinct label path.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ..documents import DocumentBatch, LabelPaths, Names
from ..documents.names import local_part
from ..errors import LimitError
from .annotations import Labels, Mask

Int32s = npt.NDArray[np.int32]
Found = TypeVar("Found")
MOST_PATHS = 1 << 16


class SeenPaths:
    """The distinct label paths of a document that was read."""

    def __init__(self, batch: DocumentBatch, paths: Int32s) -> None:
        self._batch, self._paths = batch, paths
        self.ids: list[int] = list(set(paths.tolist()))

    def last(self) -> dict[int, int]:
        """The last element of each path."""
        return {path: element for element, path in enumerate(self._paths.tolist())}

    def last_end(self, element: int, above: int) -> int:
        """How many start tags come before the end of the element that lies `above` levels over this one."""
        for _ in range(above):
            element = int(self._batch.parent[element])
        return int(self._batch.end[element])


class LabelMemory:
    """The label paths that a router has seen."""

    def __init__(self, namespaces: object) -> None:
        self._ignore = namespaces == "ignore"
        self._forget()

    def _forget(self) -> None:
        self.paths = LabelPaths(capacity=MOST_PATHS)
        self._known: tuple[Names | None, Int32s] = None, np.zeros(0, dtype=np.int32)

    def paths_of(self, batch: DocumentBatch) -> Int32s | None:
        """The label path of every element; None when there are too many to be remembered."""
        for _ in range(2):
            try:
                return self.paths.add(batch, self._translation(batch))
            except LimitError:
                self._forget()
        return None

    def _translation(self, batch: DocumentBatch) -> Int32s:
        """The batch's names of elements as the tree has them; for names that batches know it is worked out once."""
        names = self.paths.names
        if self._known[0] is not batch.known or len(self._known[1]) < batch.known_count:
            known = [names.add(batch.known[number]) for number in range(batch.known_count)]
            self._known = batch.known, np.array(known, dtype=np.int32)
        translation = np.full(batch.name_count, -1, dtype=np.int32)
        translation[: batch.known_count] = self._known[1][: batch.known_count]
        for number in np.unique(batch.name[batch.name >= batch.known_count]).tolist():
            translation[number] = names.add(batch.name_of(number))
        return translation

    def labels(self, path: int) -> Labels:
        """The labels of a path as patterns name them."""
        labels = self.paths.labels(path)
        return tuple(map(local_part, labels)) if self._ignore else labels


class PathMemory(Generic[Found]):
    """What follows from each label path for one link, worked out when the path is first met."""

    def __init__(self, work_out: Callable[[Labels], Found]) -> None:
        self._work_out = work_out
        self._paths: LabelPaths | None = None
        self._found: dict[int, Found] = {}

    def of(self, memory: LabelMemory, ids: Iterable[int]) -> list[Found]:
        """What follows from each of these paths."""
        if memory.paths is not self._paths:
            self._paths, self._found = memory.paths, {}
        found = self._found
        try:
            return [found[path] for path in ids]
        except KeyError:
            for path in ids:
                if path not in found:
                    found[path] = self._work_out(memory.labels(path))
        return [found[path] for path in ids]


class DataPatterns:
    """Data patterns, numbered; finds those that a label path ends with."""

    def __init__(self, patterns: Sequence[Labels]) -> None:
        self.patterns = tuple(patterns)
        self._numbers = {pattern: number for number, pattern in enumerate(self.patterns)}
        self._longest = max(map(len, self.patterns), default=0)
        self._memory = PathMemory(self._ending)
        self._parts: tuple[DataPatterns, Int32s, Int32s] | None = None

    def __len__(self) -> int:
        return len(self.patterns)

    def _ending(self, labels: Labels) -> tuple[int, tuple[int, ...]]:
        """The patterns that this label path ends with, as bits and one by one."""
        numbers = [self._numbers.get(labels[-length:]) for length in range(1, min(len(labels), self._longest) + 1)]
        found = tuple(number for number in numbers if number is not None)
        return sum(1 << number for number in found), found

    def occurring(self, memory: LabelMemory, seen: SeenPaths) -> Mask:
        """Which patterns occur."""
        bits = 0
        for some, _ in self._memory.of(memory, seen.ids):
            bits |= some
        packed = np.frombuffer(bits.to_bytes(len(self) + 7 >> 3, "little"), dtype=np.uint8)
        return np.unpackbits(packed, count=len(self), bitorder="little").view(np.bool_)

    def last_places(self, memory: LabelMemory, seen: SeenPaths) -> dict[int, int]:
        """For each pattern that occurs, how many start tags come before the end of its last occurrence."""
        places: dict[int, int] = {}
        last = seen.last()
        for element, (_, numbers) in zip(last.values(), self._memory.of(memory, last), strict=True):
            for number in numbers:
                place = seen.last_end(element, len(self.patterns[number]) - 1)
                places[number] = max(place, places.get(number, 0))
        return places

    def inherited(self, absent: Mask, others: "DataPatterns") -> Mask:
        """Which of these can't occur where others are `absent`: those that contain one of them (§5.3)."""
        if self._parts is None or self._parts[0] is not others:
            self._parts = (others, *self._parts_of(others))
        _, parts, wholes = self._parts
        gone = np.zeros(len(self), dtype=np.bool_)
        gone[wholes[absent[parts]]] = True
        return gone

    def _parts_of(self, others: "DataPatterns") -> tuple[Int32s, Int32s]:
        """Pairs of a pattern of the others and one of these that contains it."""
        pairs = [
            (part, whole)
            for whole, pattern in enumerate(self.patterns)
            for begin in range(len(pattern))
            for end in range(begin + 1, len(pattern) + 1)
            if (part := others._numbers.get(pattern[begin:end])) is not None
        ]
        columns = np.array(pairs, dtype=np.int32).reshape(-1, 2)
        return columns[:, 0], columns[:, 1]
