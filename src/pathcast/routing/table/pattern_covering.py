"""Covering: find the patterns of a set that others contain, by matching instead of comparing pairs.

A pattern drawn as a document (`patterns_as_documents.py`) matches every pattern that contains it. So all patterns are
entered as subscriptions, the default engine matches all of them as documents, and only the resulting pairs are proved
(`contains`).

Patterns are ordered by the number of drawings that they match (their *reach*): a pattern that contains another has at
least its reach. Of the patterns that contain a pattern, the tightest is the one with the least reach, and candidates
are proved in that order.

Invariant: `cover[i]` is `i`, or the index of a pattern that contains pattern `i`; following it terminates.
Cost: a match per pattern, about 20 µs, and a proof or two, at most `MOST_PROOFS`; 50,000 patterns in seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pathcast.documents import Limits, read_batch
from pathcast.kernels import Int32s, Int64s
from pathcast.matching import Subscriptions
from pathcast.patterns import Node, Pattern
from pathcast.patterns.containment import Facts, contains, linear_contains, size
from pathcast.store import offsets_of

from .patterns_as_documents import Drawing

MOST_PROOFS = 64
MOST_KEPT = 256
_TOGETHER, _TOGETHER_LATER = 256, 4096  # drawings matched per call: the first call, later calls
_MOST_PAIRS = 1 << 23
_LIMITS = Limits(depth=2_000)
_TALL = 100  # steps up to which a plain path is compared with a tree


@dataclass(frozen=True, slots=True, eq=False)
class Covers:
    """For each pattern the tightest pattern that contains it (itself, if none is found), and its reach.

    `order` lists the patterns so that each is after the one that covers it.
    """

    cover: Int32s
    reach: Int64s
    order: Int64s


def covers(patterns: Sequence[Pattern]) -> Covers:
    """The covers of patterns, which must be distinct."""
    groups = _Groups(patterns)
    cover = np.arange(len(patterns), dtype=np.int32)
    reach = groups.reach[groups.of] + 1
    order = np.lexsort((np.arange(len(patterns)), -reach))
    rank = np.empty(len(patterns), dtype=np.int64)
    rank[order] = np.arange(len(patterns))
    linear = [pattern.linear for pattern in patterns]
    for index in range(len(patterns)):
        tried = groups.candidates(index)
        tried = tried[rank[tried] < rank[index]]
        if len(tried) > 1:
            tried = tried[np.argsort(-rank[tried])][:MOST_PROOFS]
        cover[index] = _first_that_contains(patterns, linear, index, tried.tolist())
    return Covers(cover, reach, order)


def _first_that_contains(
    patterns: Sequence[Pattern], linear: list[tuple[Node, ...] | None], index: int, tried: list[int]
) -> int:
    """The first of the candidates that contains a pattern; the pattern itself if none does."""
    path = linear[index]
    facts: Facts | None = None
    for candidate in tried:
        steps, root = linear[candidate], patterns[candidate].root
        if patterns[candidate].expression:
            continue  # opaque: its tree holds for more documents than it matches
        if path is not None:
            if linear_contains(steps, path) if steps is not None else contains(patterns[candidate], patterns[index]):
                return candidate
        elif steps is None or len(steps) <= _TALL:
            facts = facts or Facts(patterns[index])
            if root is None or facts.prove(root):
                return candidate
    return index


class _Groups:
    """Groups of patterns with the same drawing; the groups that each drawing matches, and the reach of each group.

    Thus patterns that differ only in a threshold are one group, of which some members are tried. A drawing that
    matches more than `MOST_KEPT` groups has the groups with the most steps as candidates.
    """

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        drawing = Drawing()
        numbers: dict[str, int] = {}
        paths = [drawing.path(pattern) for pattern in patterns]
        self.of = np.array([numbers.setdefault(path, len(numbers)) for path in paths], dtype=np.int64)
        self._order = np.argsort(self.of, kind="stable").astype(np.int32)
        self._counts = np.bincount(self.of, minlength=len(numbers))
        self._begin = offsets_of(self._counts)
        first = self._order[self._begin[:-1]].tolist()
        self._sizes = np.array([size(patterns[index]) for index in first], dtype=np.int64)
        self.reach = np.zeros(len(numbers), dtype=np.int64)
        self._kept: list[Int32s] = []
        self._match(list(numbers), [drawing.document(patterns[index]) for index in first])

    def _match(self, paths: list[str], documents: list[bytes]) -> None:
        subscriptions = Subscriptions()
        subscriptions.add_many(paths, ids=range(1, len(paths) + 1), errors="collect")  # too long a path covers nothing
        matcher = subscriptions.compile()
        begin, together = 0, _TOGETHER
        while begin < len(documents):
            batch = documents[begin : begin + together]
            offsets, ids = matcher.match_batch(read_batch(batch, limits=_LIMITS))
            groups = ids.astype(np.int32) - 1
            weights = np.repeat(self._counts[begin : begin + len(batch)], np.diff(offsets))
            self.reach += np.bincount(groups, weights=weights, minlength=len(documents)).astype(np.int64)
            for low, high in pairwise(offsets.tolist()):
                found = np.sort(groups[low:high])
                if len(found) > MOST_KEPT:
                    found = found[np.argsort(-self._sizes[found], kind="stable")[:MOST_KEPT]]
                self._kept.append(found)
            begin += len(batch)
            together = int(np.clip(_MOST_PAIRS // max(1, len(ids) // len(batch)), 1, _TOGETHER_LATER))

    def candidates(self, index: int) -> Int32s:
        """The patterns that may contain this one."""
        groups = self._kept[self.of[index]]
        begin, counts = self._begin[groups], self._counts[groups]
        if counts.max(initial=1) == 1:
            return np.asarray(self._order[begin], dtype=np.int32)
        ends = begin + np.minimum(counts, MOST_PROOFS)
        parts = [self._order[low:high] for low, high in zip(begin.tolist(), ends.tolist(), strict=True)]
        return np.concatenate(parts)


class CoverIndex:
    """Changing patterns, by number; finds a pattern that contains another."""

    def __init__(self, patterns: Mapping[int, Pattern]) -> None:
        self._drawing = Drawing()
        self._subscriptions = Subscriptions()
        self._patterns: dict[int, Pattern] = {}
        self._equal: dict[Pattern, int] = {}
        self.add(patterns)
        self._matcher = self._subscriptions.compile(limits=_LIMITS)

    def add(self, patterns: Mapping[int, Pattern]) -> None:
        """Add patterns under new numbers."""
        paths = [self._drawing.path(pattern) for pattern in patterns.values()]
        self._subscriptions.add_many(paths, ids=[number + 1 for number in patterns], errors="collect")
        self._patterns.update(patterns)
        self._equal.update((pattern, number) for number, pattern in patterns.items())

    def remove(self, number: int) -> None:
        """Remove a pattern."""
        pattern = self._patterns.pop(number)
        if self._equal.get(pattern) == number:
            del self._equal[pattern]
        if number + 1 in self._subscriptions:
            self._subscriptions.remove(number + 1)

    def find(self, pattern: Pattern) -> int | None:
        """The number of a pattern that contains this one: an equal pattern, or the one with the most steps; or None."""
        equal = self._equal.get(pattern)
        if equal is not None:
            return equal
        candidates = [number - 1 for number in self._matcher.match(self._drawing.document(pattern)).ids.tolist()]
        candidates.sort(key=lambda number: (-size(self._patterns[number]), number))
        return next((number for number in candidates[:MOST_PROOFS] if contains(self._patterns[number], pattern)), None)
