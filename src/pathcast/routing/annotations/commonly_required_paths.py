"""Data patterns: chains of labels that many subscriptions require, for PD and ND annotations (§3.1, §4.2, §4.4).

A data pattern is a chain of labels, each the child of the one before, anywhere in a document: e1/e2/…/em. A
subscription contains it if it requires such a chain unconditionally, in any branch; conditions under `or` and `not()`
are not required.

    /a/b[c/d]//e    contains   a, b, a/b, c, b/c, a/b/c, d, c/d, b/c/d, a/b/c/d, e

A router advertises the patterns with the highest benefit, freq(p) · ln(l(p) + 1), and keeps the subscriptions that
contain each (T_pat of §5).

Invariants, for every document D and pattern p:
- ND: if p does not occur in D, D matches no subscription in `containing[p]`.
- PD: the paper skips subscriptions that contain p after p's last occurrence, and loses deliveries: `/r[x/y]/w` may find
  its `w` later. `expiring[p]` are the subscriptions whose every match lies in an occurrence of p: everything that they
  require is at the chain's first element or on a single path down to it. D matches one of these iff the part of D up
  to the end of the first element of p's last occurrence does.

Cost: some microseconds per step of a subscription; patterns of up to `LONGEST` labels.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s
from pathcast.patterns import WILDCARD, Condition, First, Node, Pattern, Root, conditions_in
from pathcast.patterns.containment import path_of

from .wildcard_substitution import Labels

LONGEST = 8


@dataclass(frozen=True, slots=True, eq=False)
class DataTable:
    """Data patterns, numbered, each with the subscriptions that contain it and those of them that expire with it."""

    patterns: tuple[Labels, ...]
    containing: tuple[Int32s, ...]
    expiring: tuple[Int32s, ...]

    @property
    def frequencies(self) -> Int32s:
        """freq(p): the number of subscriptions that contain each pattern."""
        return np.array([len(indices) for indices in self.containing], dtype=np.int32)


def benefit(frequency: int, length: int) -> float:
    """§4.2: the subscriptions that a pattern may rule out; more for a longer one, which rules them out more often."""
    return frequency * log(length + 1)


def data_table(patterns: Sequence[Pattern], most: int = 512, *, longest: int = LONGEST) -> DataTable:
    """The `most` beneficial data patterns of these subscriptions, which are numbered by place."""
    changing = ChangingData(best(patterns, most, longest=longest), longest=longest)
    for index, pattern in enumerate(patterns):
        changing.add(index, pattern)
    return changing.table()


def best(patterns: Iterable[Pattern], most: int, *, longest: int = LONGEST) -> tuple[Labels, ...]:
    """The `most` beneficial data patterns of these subscriptions."""
    counts: Counter[Labels] = Counter()
    for pattern in patterns:
        counts.update({labels for labels, _ in contained(pattern, longest)})
    ranked = sorted(counts, key=lambda labels: (-benefit(counts[labels], len(labels)), labels))
    return tuple(ranked[:most])


class ChangingData:
    """Fixed data patterns, and the changing subscriptions, by number, behind them."""

    def __init__(self, patterns: tuple[Labels, ...], *, longest: int = LONGEST) -> None:
        self.patterns = patterns
        self._longest = longest
        self._numbers = {labels: number for number, labels in enumerate(patterns)}
        self._containing: list[set[int]] = [set() for _ in patterns]
        self._expiring: list[set[int]] = [set() for _ in patterns]
        self._of: dict[int, list[int]] = {}

    def add(self, index: int, pattern: Pattern) -> None:
        """Add a subscription."""
        found: dict[int, bool] = {}
        for labels, expires in contained(pattern, self._longest):
            number = self._numbers.get(labels)
            if number is not None:
                found[number] = expires or found.get(number, False)
        self._of[index] = list(found)
        for number, expires in found.items():
            self._containing[number].add(index)
            if expires:
                self._expiring[number].add(index)

    def remove(self, index: int) -> None:
        """Remove a subscription."""
        for number in self._of.pop(index):
            self._containing[number].discard(index)
            self._expiring[number].discard(index)

    def table(self) -> DataTable:
        """The subscriptions behind each pattern now."""
        return DataTable(self.patterns, _columns(self._containing), _columns(self._expiring))


def contained(pattern: Pattern, longest: int = LONGEST) -> Iterator[tuple[Labels, bool]]:
    """The data patterns that a subscription requires, and whether each of its matches lies in an occurrence of it."""
    if pattern.root is not None:
        yield from _chains(pattern.root, _START, longest, single=_is_local(pattern.root))


class _Chain(NamedTuple):
    """Labels that a child step continues; for each, whether there is a single path down to it."""

    labels: Labels = ()
    single: tuple[bool, ...] = ()


_START = _Chain()


def _chains(condition: Condition, above: _Chain, longest: int, *, single: bool) -> Iterator[tuple[Labels, bool]]:
    """The data patterns that a condition requires; `single`: nothing branches off on the path down to it."""
    match condition:
        case Node() if condition.is_element:
            chain = _START
            if condition.test != WILDCARD:
                before = above if condition.axis == "/" else _START
                chain = _Chain((*before.labels, condition.test)[-longest:], (*before.single, single)[-longest:])
                for begin in range(len(chain.labels)):
                    yield chain.labels[begin:], chain.single[begin]
            alone = single and len(condition.conditions) == 1
            for below in condition.conditions:
                yield from _chains(below, chain, longest, single=alone)
        case Root():
            yield from _chains(condition.node, _START, longest, single=False)
        case First() if condition.steps:
            path = path_of(condition)
            yield from _chains(path, _START if condition.absolute else above, longest, single=False)


def _is_local(root: Node) -> bool:
    """Whether no part of a pattern is an absolute path."""
    return not any(
        isinstance(each, Root) or (isinstance(each, First) and each.absolute) for each in conditions_in(root)
    )


def _columns(indices: Iterable[set[int]]) -> tuple[Int32s, ...]:
    return tuple(np.array(sorted(each), dtype=np.int32) for each in indices)
