"""Parcels: patterns that other processes have parsed, entered into a table here without being parsed again.

A process that parses a part of a large set does so with a `PatternTable` of its own. A parcel (`Sender`) holds what
that table got since the last one, as bytes: names, the steps of plain paths, other patterns as nested tuples. `Parcels`
takes those of all senders and enters what is asked for into one table.

Invariant: entries are numbered as if the expressions had been parsed here, in the order in which they are asked for.
Cost: to enter a plain path 0.3 µs, another pattern some 20 µs, a fifth of what parsing takes.
"""

import marshal
from typing import Any

import numpy as np
import numpy.typing as npt

from ..patterns import Pattern
from ..patterns.model import AllOf, AnyOf, Compare, Condition, First, Node, Not, Root, StringTest
from .bulk import collector_resting
from .table import PatternTable
from .trie import Trie
from .trie_kernels import NONE

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Coded = tuple[Any, ...]

# In place of a length: the entry is no plain path.
_TREE = -1
# A pattern of a sender is its entry there plus the sender's number, shifted by so many bits.
SENDER_BITS = 32
_NODE, _COMPARE, _STRING_TEST, _ALL, _ANY, _NOT, _ROOT, _FIRST = range(8)


class Sender:
    """Sends the entries of a growing table away."""

    def __init__(self, table: PatternTable) -> None:
        self._table = table
        self._entries = 0
        self._names = 0

    def parcel(self) -> bytes:
        """What the table has got since the last parcel."""
        table = self._table
        nodes = table.nodes(self._entries)
        steps, lengths = paths_to(table.trie, nodes)
        trees = np.flatnonzero(nodes == NONE) + self._entries
        with collector_resting():
            coded = [_encoded_tree(table.trees[entry]) for entry in trees.tolist()]
        names = [table.names[number] for number in range(self._names, len(table.names))]
        self._entries, self._names = len(table), len(table.names)
        return marshal.dumps((names, steps.tobytes(), lengths.tobytes(), coded))


class _Sent:
    """All that one sender has sent."""

    def __init__(self) -> None:
        self.names: list[int] = []  # of each name of the sender its number here
        self.steps: list[Int32s] = []
        self.lengths: list[Int32s] = []
        self.trees: list[Coded] = []


class Parcels:
    """Takes parcels and enters patterns into a table."""

    def __init__(self, table: PatternTable) -> None:
        self._table = table
        self._sent: dict[int, _Sent] = {}

    def take(self, sender: int, parcel: bytes) -> None:
        """Take a parcel of a sender; each sender's come in the order in which they were sent."""
        with collector_resting():
            names, steps, lengths, coded = marshal.loads(parcel)  # noqa: S302 - from workers of our own
        sent = self._sent.setdefault(sender, _Sent())
        sent.names.extend(map(self._table.names.add, names))
        sent.steps.append(np.frombuffer(steps, dtype=np.int32))
        sent.lengths.append(np.frombuffer(lengths, dtype=np.int32))
        sent.trees.extend(coded)

    def enter(self, patterns: Int64s) -> Int32s:
        """The entries here of patterns: `sender << SENDER_BITS | entry there`."""
        with collector_resting():
            return self._enter(patterns)

    def _enter(self, patterns: Int64s) -> Int32s:
        distinct, first, row = np.unique(patterns, return_index=True, return_inverse=True)
        order = np.argsort(first)
        steps, lengths, trees, wanted = self._joined(distinct[order])
        is_tree = lengths == _TREE
        begin = np.concatenate(([0], np.cumsum(np.maximum(lengths, 0))))
        tree_at = np.cumsum(is_tree) - 1
        paths = wanted[~is_tree[wanted]]
        others = [
            (place, Pattern(decoded(trees[tree_at[wanted[place]]])))
            for place in np.flatnonzero(is_tree[wanted]).tolist()
        ]
        entries = self._table.number(steps[_spans(begin[paths], lengths[paths])], lengths[paths], others)
        found = np.empty(len(distinct), dtype=np.int32)
        found[order] = entries
        return found[row]

    def _joined(self, wanted: Int64s) -> tuple[Int32s, Int32s, list[Coded], Int64s]:
        """Steps, lengths and trees of all senders, one after the other, and where in them the wanted ones are."""
        steps, lengths = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int32)]
        trees: list[Coded] = []
        base = np.zeros(max(self._sent, default=0) + 1, dtype=np.int64)
        count = 0
        for number, sent in self._sent.items():
            symbols = np.array([0, *(name + 1 for name in sent.names)], dtype=np.int32)
            theirs = np.concatenate(sent.steps)
            steps.append(2 * symbols[theirs >> 1] + (theirs & 1))
            lengths += sent.lengths
            trees += sent.trees
            base[number] = count
            count += sum(map(len, sent.lengths))
        places = base[wanted >> SENDER_BITS] + (wanted & (1 << SENDER_BITS) - 1)
        return np.concatenate(steps), np.concatenate(lengths), trees, places


def paths_to(trie: Trie, nodes: Int32s) -> tuple[Int32s, Int32s]:
    """The steps to nodes, one path after the other, and how many there are to each; `_TREE` where there is no node."""
    lengths = np.where(nodes == NONE, _TREE, 0).astype(np.int32)
    rows, at = np.flatnonzero(nodes > 0), nodes[nodes > 0]
    climbed: list[tuple[Int64s, Int32s]] = []
    while len(rows):
        lengths[rows] += 1
        climbed.append((rows, trie.step[at]))
        at = trie.parent[at]
        rows, at = rows[at > 0], at[at > 0]
    ends = np.cumsum(np.maximum(lengths, 0))
    steps = np.empty(ends[-1] if len(ends) else 0, dtype=np.int32)
    for back, (rows, step) in enumerate(climbed, 1):
        steps[ends[rows] - back] = step
    return steps, lengths


def _spans(begin: Int64s, lengths: Int32s) -> Int64s:
    """The numbers of all spans, one span after the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    spans: Int64s = np.repeat(begin - (ends - lengths), lengths)
    spans += np.arange(len(spans))
    return spans


def _encoded_tree(pattern: Pattern) -> Coded:
    assert pattern.root is not None  # `/` is a plain path without steps
    return encoded(pattern.root)


def encoded(condition: Condition) -> Coded:
    """A condition as nested tuples; `decoded` takes them back."""
    match condition:
        case Node():
            return (_NODE, condition.axis, condition.test, *map(encoded, condition.conditions))
        case Compare():
            return (_COMPARE, condition.operator, condition.text, condition.number, condition.string)
        case StringTest():
            return (_STRING_TEST, condition.function, condition.text)
        case AllOf():
            return (_ALL, *map(encoded, condition.conditions))
        case AnyOf():
            return (_ANY, *map(encoded, condition.conditions))
        case Not():
            return (_NOT, encoded(condition.condition))
        case Root():
            return (_ROOT, encoded(condition.node))
        case First():
            return (_FIRST, condition.absolute, encoded(condition.test), *map(encoded, condition.steps))


def decoded(coded: Coded) -> Any:
    """The condition that `encoded` was given."""
    kind = coded[0]
    if kind == _NODE:  # most are
        return Node(coded[1], coded[2], tuple(map(decoded, coded[3:])))
    if kind == _COMPARE:
        return Compare(*coded[1:])
    if kind == _STRING_TEST:
        return StringTest(*coded[1:])
    if kind == _ALL:
        return AllOf(tuple(map(decoded, coded[1:])))
    if kind == _ANY:
        return AnyOf(tuple(map(decoded, coded[1:])))
    if kind == _NOT:
        return Not(decoded(coded[1]))
    if kind == _ROOT:
        return Root(decoded(coded[1]))
    return First(tuple(map(decoded, coded[3:])), decoded(coded[2]), coded[1])
