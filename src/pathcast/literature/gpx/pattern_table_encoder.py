"""Encoding: every pattern of a table as numbered predicates.

A kernel reads plain paths from the trie; `pattern_decomposition.py` splits patterns with filters or branches. Patterns
that cannot be encoded are listed as delegated.

Invariant: equal predicates have one number. A pattern of several pieces has a path for each; pieces with the same
predicates are one path, whichever patterns they belong to.
Cost: about 1 µs per plain path, some 50 µs per other pattern.
"""

from dataclasses import dataclass, field
from math import inf, nextafter
from typing import Any

import numpy as np

from pathcast.documents import Names
from pathcast.kernels import Int32s, Int64s
from pathcast.matching.table import PatternTable
from pathcast.patterns import Compare, Node, Pattern, conditions_in

from .pattern_decomposition import Decomposition, Piece, decompose
from .predicate_numbering_kernels import (
    AT_LEAST,
    AT_LEAST_NUMBER,
    AT_MOST_NUMBER,
    DISTANCE,
    DOCUMENT,
    EQUAL,
    EQUAL_NUMBER,
    EQUAL_TEXT,
    EXISTS,
    FILTER,
    FIRST_SHIFT,
    FROM_END,
    NONE,
    OCCURRENCE_MASK,
    OPERATOR_SHIFT,
    POSITION,
    SECOND_SHIFT,
    STEPS,
    STEPS_ABOVE,
    TAG_SHIFT,
    UNLIKE_NUMBER,
    UNLIKE_TEXT,
    VALUE_SHIFT,
    PredicateTable,
    encode_trie,
    number_predicates,
)
from .step_positions import Tag, Unencodable
from .xpath_as_boolean_predicates import Distance, Filter, FromEnd, Length, Position, Predicate

Use = tuple[int, Decomposition, int]
_OPERATORS = {"=": EQUAL, ">=": AT_LEAST}
_TEXT_OPERATORS = {"=": EQUAL_TEXT, "!=": UNLIKE_TEXT}
# `>` is `≥` the next number, and `<` is `≤` the previous one.
_NUMBER_OPERATORS = {
    "=": EQUAL_NUMBER,
    "!=": UNLIKE_NUMBER,
    ">=": AT_LEAST_NUMBER,
    ">": AT_LEAST_NUMBER,
    "<=": AT_MOST_NUMBER,
    "<": AT_MOST_NUMBER,
}
_NEXT = {">": inf, "<": -inf}


@dataclass(slots=True)
class Paths:
    """All paths of a table.

    `predicates[begin[i] : begin[i + 1]]` are those of path `i`, structure first and in the order of steps;
    `structural[i]` is how many of them concern structure. `entry[i]` is the path's pattern, or `-1 - p` for piece `p`
    of patterns with branches, whose `uses[p]` are (entry, decomposition, piece of it).
    """

    begin: Int64s
    predicates: Int32s
    structural: Int32s
    entry: Int32s
    uses: list[list[Use]]
    lengths: list[tuple[int, int]]
    """(length, entry) of the patterns that demand nothing else."""
    delegated: list[int]
    forms: Int64s
    tag_pairs: Int64s
    values: "Values"


@dataclass(slots=True)
class Values:
    """The literals of filters, numbered."""

    numbers: dict[float, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)

    def add(self, test: Compare) -> tuple[int, int]:
        """A test's operator, and the number of its literal."""
        if test.number is None:
            return _TEXT_OPERATORS[test.operator], self.texts.setdefault(test.string or "", len(self.texts))
        number = nextafter(test.number, _NEXT[test.operator]) if test.operator in _NEXT else test.number
        return _NUMBER_OPERATORS[test.operator], self.numbers.setdefault(number, len(self.numbers))


class _Words:
    """Predicates of trees as words, in order of first occurrence."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.values = Values()
        self.forms: list[int] = []
        self.tags: list[int] = []

    def add(self, predicate: Predicate) -> None:
        form, tags = self._words(predicate)
        self.forms.append(form)
        self.tags.append(tags)

    def _words(self, predicate: Predicate) -> tuple[int, int]:
        match predicate:
            case Filter((tag, steps), attribute, test):
                operator_code, value = (EXISTS, 0) if test is None else self.values.add(test)
                tags = (DOCUMENT if tag is None else self._name(tag)) << TAG_SHIFT | self.names.add(attribute)
                seen_from = (Tag("") if tag is None else tag, Tag("", STEPS_ABOVE + steps))
                return self._form(FILTER, operator_code, *seen_from, value), tags
            case Position(tag, operator, value):
                return self._form(POSITION, _OPERATORS[operator], tag, None, value), self._name(tag) << TAG_SHIFT
            case Distance(first, second, operator, value):
                tags = self._name(first) << TAG_SHIFT | self._name(second)
                return self._form(DISTANCE, _OPERATORS[operator], first, second, value), tags
            case FromEnd(tag, value):
                return self._form(FROM_END, AT_LEAST, tag, None, value), self._name(tag) << TAG_SHIFT
            case Length(value):
                return self._form(FROM_END, AT_LEAST, Tag(""), None, value), DOCUMENT << TAG_SHIFT

    @staticmethod
    def _form(kind: int, operator: int, first: Tag, second: Tag | None, value: int) -> int:
        occurrence = 0 if second is None else second.occurrence
        shifted = operator << OPERATOR_SHIFT | first.occurrence << FIRST_SHIFT | occurrence << SECOND_SHIFT
        return kind | shifted | value << VALUE_SHIFT

    def _name(self, tag: Tag) -> int:
        return self.names.add(tag.name)


class _TreePaths:
    """The paths of patterns with filters or branches, and the result for each pattern."""

    def __init__(self, table: PatternTable) -> None:
        self.table = table
        self.words = _Words(table.names)
        self.begins = [0]
        self.structural: list[int] = []
        self.entries: list[int] = []
        self.uses: list[list[Use]] = []
        self.delegated: list[int] = []
        self._pieces: dict[tuple[Predicate, ...], int] = {}
        for entry in table.trees:
            self._take(entry)

    def _take(self, entry: int) -> None:
        parts = _taken_apart(self.table, entry)
        if parts is None:
            self.delegated.append(entry)
        elif not parts.branches:
            self._add(parts.pieces[0].predicates, entry)
        else:
            for place, piece in enumerate(parts.pieces):
                self.uses[self._piece(piece)].append((entry, parts, place))

    def _piece(self, piece: Piece) -> int:
        """The number of a piece among those with distinct predicates."""
        number = self._pieces.setdefault(piece.predicates, len(self.uses))
        if number == len(self.uses):
            self.uses.append([])
            self._add(piece.predicates, -1 - number)
        return number

    def _add(self, predicates: tuple[Predicate, ...], entry: int) -> None:
        for predicate in predicates:
            self.words.add(predicate)
        self.begins.append(len(self.words.forms))
        self.structural.append(sum([not isinstance(predicate, Filter) for predicate in predicates]))
        self.entries.append(entry)


def encode_table(table: PatternTable) -> Paths:
    """The paths of all entries of a table."""
    trees = _TreePaths(table)
    ends, plain = _plain(table)
    depths = _depths(table, ends)
    short = depths <= OCCURRENCE_MASK
    delegated = sorted([*trees.delegated, *plain[~short].tolist()])
    plain = plain[short]
    encoded = _numbered(table, trees.words, ends[short], depths[short])
    kept = encoded.lengths < 0
    sizes = np.diff(encoded.plain_begin)[kept]
    return Paths(
        begin=np.concatenate([np.array(trees.begins, dtype=np.int64), trees.begins[-1] + np.cumsum(sizes)]),
        predicates=np.concatenate([encoded.tree_predicates, encoded.plain_predicates]),
        structural=np.concatenate([np.array(trees.structural, dtype=np.int32), sizes.astype(np.int32)]),
        entry=np.concatenate([np.array(trees.entries, dtype=np.int32), plain[kept]]),
        uses=trees.uses,
        lengths=sorted(zip(encoded.lengths[~kept].tolist(), plain[~kept].tolist(), strict=True)),
        delegated=delegated,
        forms=encoded.forms,
        tag_pairs=encoded.tag_pairs,
        values=trees.words.values,
    )


def _taken_apart(table: PatternTable, entry: int) -> Decomposition | None:
    """The pieces of a tree, None if it cannot be encoded."""
    pattern = table.trees[entry]
    if table.namespaces == "ignore" and _asks_one_attribute_twice(pattern):
        return None  # an element may have two attributes of the name, each passing one of the tests
    try:
        parts = decompose(pattern)
    except Unencodable:
        return None
    return parts if all(map(_has_room, parts.pieces)) and len(table.names) < DOCUMENT else None


def _asks_one_attribute_twice(pattern: Pattern) -> bool:
    parts = [] if pattern.root is None else conditions_in(pattern.root)
    return any(isinstance(part, Node) and part.is_attribute and len(part.conditions) > 1 for part in parts)


def _has_room(piece: Piece) -> bool:
    """Whether the words of predicates can hold the steps of a piece's filters."""
    steps = [each.place.steps for each in piece.predicates if isinstance(each, Filter)]
    return all(-STEPS_ABOVE <= step < STEPS - STEPS_ABOVE for step in steps)


def _plain(table: PatternTable) -> tuple[Int32s, Int32s]:
    """The nodes and entries of plain paths, by entry."""
    trie = table.trie
    ends = np.flatnonzero(trie.entry[: trie.count] >= 0).astype(np.int32)
    entries = trie.entry[ends]
    order = np.argsort(entries, kind="stable")
    return ends[order], entries[order]


def _depths(table: PatternTable, ends: Int32s) -> Int32s:
    """The number of steps of the paths to these nodes."""
    depths = np.zeros(len(ends), dtype=np.int32)
    at = ends
    while at.any():
        depths += at > 0
        at = table.trie.parent[at]
    return depths


@dataclass(slots=True)
class _Encoded:
    tree_predicates: Int32s
    plain_predicates: Int32s
    plain_begin: Int64s
    lengths: Int32s
    forms: Int64s
    tag_pairs: Int64s


def _numbered(table: PatternTable, words: _Words, ends: Int32s, depths: Int32s) -> _Encoded:
    """Number the predicates of trees and of plain paths together."""
    trie = table.trie
    most = len(words.forms) + min(trie.count + len(ends), int(depths.sum()) + len(ends)) + 1
    distinct = PredicateTable(
        slots=np.full(slots_for(most), NONE, dtype=np.int32),
        forms=np.zeros(most, dtype=np.int64),
        tag_pairs=np.zeros(most, dtype=np.int64),
    )
    tree_predicates = np.empty(len(words.forms), dtype=np.int32)
    new: tuple[Any, Any] = (np.array(words.forms, dtype=np.int64), np.array(words.tags, dtype=np.int64))
    count = number_predicates(*new, distinct, 0, tree_predicates)
    begin = np.zeros(len(ends) + 1, dtype=np.int64)
    out = np.empty(int(depths.sum()) + len(ends), dtype=np.int32)
    lengths = np.empty(len(ends), dtype=np.int32)
    introduced = np.full(trie.count, NONE, dtype=np.int32)
    count = encode_trie(trie.parent, trie.step, ends, introduced, distinct, count, begin, out, lengths)
    used = out[: begin[-1]].copy()
    forms, tag_pairs = distinct.forms[:count].copy(), distinct.tag_pairs[:count].copy()
    return _Encoded(tree_predicates, used, begin, lengths, forms, tag_pairs)


def slots_for(count: int) -> int:
    """The number of slots of an open-addressing table for `count` keys: a power of two, at most half of them in use."""
    size = 1
    while size < 2 * count:
        size *= 2
    return size
