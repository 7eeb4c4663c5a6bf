"""Clusters: patterns that one small change makes equal, found by hashing all changes of all patterns at once.

Each pattern is a tree of parts (`generalisation_steps.py`); the hash of a part combines its label and the sum of the
hashes below it, so that the order of branches does not matter. A change of one part changes only the hashes on the path
to the root; all changes of all patterns are propagated to their roots together, level by level, in arrays.

    /a/b/c   ─ c becomes * ─▶ h(/a/b/*)  ◀─ d becomes * ─   /a/b/d

Clusters are ranked by the steps that they save per pattern and unit of loss.

Invariant: members of a cluster have equal hashes after the change; the caller that merges them applies the change and
compares.
Not done: clusters by two changes at once, or of patterns stripped to their longest path. The latter was measured: it
merges more and excludes no more documents.
Cost: a microsecond per part to lay out patterns, and some vector operations per level; a second for 50,000 patterns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from pathcast.kernels import Int64s, UInt64s
from pathcast.patterns import Node, Pattern, conditions_in
from pathcast.patterns.containment import Change, changes, parts

CHANGES: tuple[Change, ...] = get_args(Change)
LOSSES: dict[Change, float] = {
    "wildcard": 1.0,
    "descendant": 1.5,
    "absorb": 1.0,
    "drop": 2.0,
    "leaf": 4.0,
    "condition": 2.0,
}
ALONE = 4.0
"""The factor on the loss when a pattern is loosened without saving another one."""

Hashes = UInt64s
_NUMBERS = {change: number for number, change in enumerate(CHANGES)}
_FIRST, _SECOND, _THIRD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Patterns that a change makes equal: index, place and change of each, the steps of the result, and its loss."""

    members: list[tuple[int, int, Change]]
    size: int
    loss: float
    score: float


class Forest:
    """Patterns as arrays of parts, each after the part that it belongs to."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        numbers: dict[object, int] = {}
        owner: list[int] = []
        parent: list[int] = []
        code: list[int] = []
        depth: list[int] = []
        steps: list[int] = []
        self.first: list[int] = []
        allowed: list[tuple[int, int]] = []  # part, change
        for index, pattern in enumerate(patterns):
            self.first.append(len(owner))
            above: list[tuple[int, int]] = [(-1, 0)]
            for part in parts(pattern):
                here, level = above.pop()
                place = len(owner)
                owner.append(index)
                parent.append(here)
                depth.append(level)
                if isinstance(part, Node):
                    code.append(2 * numbers.setdefault(part.test, len(numbers)) + (part.axis == "//"))
                    steps.append(1)
                    above += [(place, level + 1)] * len(part.conditions)
                else:
                    code.append(2 * numbers.setdefault(part, len(numbers)))
                    steps.append(sum(isinstance(each, Node) for each in conditions_in(part)))
                allowed += [(place, _NUMBERS[change]) for change in changes(part)]
        self.wildcard = 2 * numbers.setdefault("*", len(numbers))
        self.owner = np.array(owner, dtype=np.int64)
        self.parent = np.array(parent, dtype=np.int64)
        self.code = np.array(code, dtype=np.int64)
        self.depth = np.array(depth, dtype=np.int64)
        self.steps = np.array(steps, dtype=np.int64)
        self.allowed = np.array(allowed, dtype=np.int64).reshape(-1, 2)
        self._hash()

    def _hash(self) -> None:
        """Hashes of all parts, and of the sums below them, from the deepest up."""
        count = len(self.code)
        self.hashes = np.zeros(count, dtype=np.uint64)
        self.below = np.zeros(count, dtype=np.uint64)
        self.whole = self.steps.copy()  # steps of a part and of all below it
        for level in range(int(self.depth.max(initial=0)), -1, -1):
            here = np.flatnonzero(self.depth == level)
            self.hashes[here] = _mixed(self.code[here], self.below[here])
            if level:
                np.add.at(self.below, self.parent[here], self.hashes[here])
                np.add.at(self.whole, self.parent[here], self.whole[here])

    def changed(self) -> tuple[Hashes, Int64s]:
        """For each allowed change the hash of the whole pattern after it, and the number of steps that it removes."""
        place, change = self.allowed[:, 0], self.allowed[:, 1]
        code, below = self.code[place], self.below[place]
        after = np.zeros(len(place), dtype=np.uint64)
        wild = change == _NUMBERS["wildcard"]
        axis = np.where(below == 0, 0, code & 1)  # a last `//*` is `/*`
        after[wild] = _mixed((self.wildcard | axis)[wild], below[wild])
        deep = change == _NUMBERS["descendant"]
        after[deep] = _mixed((code | 1)[deep], below[deep])
        absorbed = np.flatnonzero(change == _NUMBERS["absorb"])
        child = place[absorbed] + 1
        after[absorbed] = _mixed(self.code[child] | 1, self.below[child])
        goes = np.isin(change, [_NUMBERS[each] for each in ("drop", "leaf", "condition")])
        lost = np.where(goes, self.whole[place], 0)
        lost[absorbed] = 1
        return self._at_the_root(place, after), lost

    def _at_the_root(self, place: Int64s, after: Hashes) -> Hashes:
        """The hash of the root when a part has another hash."""
        result = after.copy()
        current = place.copy()
        for _ in range(int(self.depth.max(initial=0))):
            up = np.flatnonzero(self.parent[current] >= 0)
            if not len(up):
                break
            above = self.parent[current[up]]
            sums = self.below[above] + result[up] - self.hashes[current[up]]
            result[up] = _mixed(self.code[above], sums)
            current[up] = above
        return result


def clusters(patterns: Sequence[Pattern], sizes: Sequence[int], losses: Sequence[float]) -> list[Cluster]:
    """All clusters that save steps, the best first; `losses` has the previous loss of each pattern."""
    forest = Forest(patterns)
    if not len(forest.allowed):
        return []
    hashes, lost = forest.changed()
    owner = forest.owner[forest.allowed[:, 0]]
    order = np.lexsort((owner, hashes))
    hashes, lost, owner = hashes[order], lost[order], owner[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (hashes[1:] != hashes[:-1]) | (owner[1:] != owner[:-1])
    order, hashes, lost, owner = order[new], hashes[new], lost[new], owner[new]  # a pattern is in a cluster once
    begin = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    count = np.diff(np.concatenate([begin, [len(hashes)]]))
    size = np.asarray(sizes, dtype=np.int64)
    weight = np.array([LOSSES[change] for change in CHANGES])
    change = forest.allowed[order, 1]
    loss = np.maximum.reduceat(np.asarray(losses)[owner] + weight[change], begin)
    left = size[owner[begin]] - lost[begin]
    saved = np.add.reduceat(size[owner], begin) - left
    score = saved / (count * loss * np.where(count == 1, ALONE, 1.0))
    good = np.flatnonzero(saved > 0)
    good = good[np.lexsort((owner[begin][good], -score[good]))]
    first = np.asarray(forest.first)
    place = forest.allowed[order, 0] - first[owner]
    columns = owner.tolist(), place.tolist(), [CHANGES[number] for number in change.tolist()]
    return [
        Cluster(
            list(zip(*(column[at : at + number] for column in columns), strict=True)),
            int(left[group]),
            float(loss[group]),
            float(score[group]),
        )
        for group, at, number in zip(good.tolist(), begin[good].tolist(), count[good].tolist(), strict=True)
    ]


def _mixed(code: Int64s, below: Hashes) -> Hashes:
    """A hash of a label and of the hashes below it."""
    mixed = (code.astype(np.uint64) + np.uint64(1)) * _FIRST + below
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _SECOND
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _THIRD
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64)
