"""Bindings online: the labels of the wildcards of a neighbour's simple aggregates in a document (§4.1 of the paper).

An engine reports that an aggregate matches, not where. The match is a bit in the header, which suffices for the
subscriptions of most simple aggregates. If they need labels for wildcards, the most beneficial matching aggregates are
embedded in the document once from the front and once from the back (`aggregate_wildcard_binder_kernels.py`), and the
labels under their wildcards are bound: two bindings for an aggregate if they differ, since one may fit a subscription
that the other does not (Example 3.1). The consequences of incoming bindings are cached.

A bit is more beneficial than any binding, which takes bytes and time. So of the `MOST_BOUND` aggregates with the
largest benefit those that need no binding come first, and if these are `MOST_BOUND`, nothing is bound.

Invariant: a binding belongs to an occurrence in the part of the document that was read. So aggregates with conditions
on values, attributes or text, and with `or` and `not()`, are never bound: an occurrence of their steps need not be an
occurrence of the aggregate. An absolute path in a predicate holds for all occurrences or for none, and is ignored.
Cost: for each step of at most `MOST_BOUND` aggregates the elements of its name; a microsecond per binding.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from pathcast.documents import DocumentBatch, Names, local_part
from pathcast.kernels import Int32s, Int64s
from pathcast.matching.table import PatternTable
from pathcast.patterns import WILDCARD, Node, Pattern, Root

from ..advertising.subscription_advertisement import Advertisement
from ..advertising.subscriptions_by_wildcard_bindings import Simple, embeddings
from ..annotation_header_codec import written
from .aggregate_wildcard_binder_kernels import (
    ANY,
    CHILD,
    DESCENDANT,
    H_ROWS,
    NO_ROOM,
    S_SIZE,
    STAMP,
    USED,
    Found,
    LaidOver,
    Search,
    Steps,
    Wanted,
    embed,
)
from .document_annotations import Bound, Mask, is_short
from .wildcard_substitution import Wildcards, bound

MOST_BOUND = 8
MOST_REMEMBERED = 1 << 14
MOST_KEPT = 1 << 14  # elements for which memory is kept between documents
_LAST_STAMP = (1 << 31) - 1 - 2 * MOST_BOUND


def can_be_bound(pattern: Pattern) -> bool:
    """Whether every occurrence of a pattern's steps in a matching document is an occurrence of the pattern."""
    waiting = [pattern.root] if pattern.root is not None else []
    for node in waiting:  # which grows during the loop
        if not node.is_element:
            return False
        for condition in node.conditions:
            if isinstance(condition, Node):
                waiting.append(condition)
            elif not isinstance(condition, Root):
                return False
    return bool(waiting)


def _steps(pattern: Pattern) -> list[tuple[Node, int]]:
    """The steps of a pattern in reading order, each with the place of its parent."""
    steps: list[tuple[Node, int]] = []
    waiting = [] if pattern.root is None else [(pattern.root, -1)]
    while waiting:
        node, above = waiting.pop()
        below = [(each, len(steps)) for each in node.conditions if isinstance(each, Node)]
        steps.append((node, above))
        waiting.extend(reversed(below))
    return steps


class Binder:
    """Binds the simple aggregates of one advertisement, for a router with this table of patterns."""

    def __init__(self, aggregates: Sequence[Pattern], simple: Sequence[Simple], table: PatternTable) -> None:
        able = [each for each in simple if each.wildcards and can_be_bound(aggregates[each.aggregate])]
        self._simple = sorted(able, key=lambda each: -each.benefit(len(each.wildcards)))
        self._aggregates = np.array([each.aggregate for each in self._simple], dtype=np.int64)
        self._unbound = np.array([each.aggregate for each in simple if not each.wildcards], dtype=np.int64)
        self._wildcards = [Wildcards(aggregates[each.aggregate]) for each in self._simple]
        self._place_of = {each.aggregate: place for place, each in enumerate(self._simple)}
        self._passed: tuple[Advertisement | None, dict[Bound, tuple[Bound, ...]]] = None, {}
        self._table = table
        columns: list[tuple[int, int, int]] = []
        begins = [0]
        for wildcards in self._wildcards:
            for node, above in _steps(wildcards.pattern):
                axis = DESCENDANT if node.axis == "//" else CHILD
                symbol = ANY if node.test == WILDCARD else table.names.add(node.test)
                columns.append((above, axis, symbol))
            begins.append(len(columns))
        rows = np.ascontiguousarray(np.array(columns, dtype=np.int32).reshape(-1, 3).T)
        self._steps = Steps(np.array(begins, dtype=np.int32), *rows)
        self._longest = int(np.diff(self._steps.begins).max(initial=0))
        places = [self._places(number) for number in range(len(self._simple))]
        wanted = np.array([place for each in places for place in each], dtype=np.int32).reshape(-1, 3)
        begins_wanted = np.cumsum([0, *map(len, places)], dtype=np.int32)
        self._wanted = Wanted(begins_wanted, np.ascontiguousarray(wanted[:, 1:].T))
        self._most_wanted = max(map(len, places), default=0)
        self._labels = np.empty(1 << 8, dtype=np.int32)
        self._known: tuple[Names | None, dict[tuple[int, ...], Bound]] = None, {}
        self._make_room(0, len(table.names))

    def _make_room(self, elements: int, names: int) -> None:
        self._state = np.zeros(S_SIZE, dtype=np.int32)
        self._search = Search(
            np.full(names, -1, dtype=np.int32),
            np.empty(elements, dtype=np.int32),
            np.zeros((H_ROWS, self._longest, elements), dtype=np.int32),
        )

    def _places(self, number: int) -> list[tuple[int, int, int]]:
        """For each wildcard to bind its step, and the step above for a `//`, or the step again for a `*`."""
        wildcards, begin = self._wildcards[number], int(self._steps.begins[number])
        found = []
        for wildcard in self._simple[number].wildcards:
            if wildcard in wildcards.star:
                node = wildcards.star.index(wildcard)
                found.append((wildcard, node, node))
            else:
                node = wildcards.descendant.index(wildcard)
                found.append((wildcard, node, int(self._steps.parents[begin + node])))
        return found

    def bind(self, batch: DocumentBatch, read: int, matched: Mask, room: int) -> tuple[Bound, ...]:
        """Bindings of aggregates that match, the most beneficial first, in about `room` bytes."""
        if not len(self._simple) or not read:
            return ()
        most = MOST_BOUND - np.count_nonzero(matched[self._unbound])
        if most <= 0:
            return ()
        chosen = np.flatnonzero(matched[self._aggregates])[:most].astype(np.int32)
        if not len(chosen):
            return ()
        return fitting(self._embedded(batch, read, chosen), room)

    def may_bind(self, begins: Int64s, ends: Int64s, numbers: Int32s) -> Mask:
        """For each row whether `bind` looks for bindings; `numbers[begins[row] : ends[row]]` are those that match."""
        if not len(self._simple):
            return np.zeros(len(begins), dtype=np.bool_)
        most = 1 + max(self._aggregates.max(), self._unbound.max(initial=0), numbers.max(initial=0))
        bindable, unbound = np.zeros((2, most + 1), dtype=np.int64)
        bindable[self._aggregates], unbound[self._unbound] = 1, 1
        bindable, unbound = (np.append(0, np.cumsum(each[numbers])) for each in (bindable, unbound))
        able: Mask = (bindable[ends] > bindable[begins]) & (unbound[ends] - unbound[begins] < MOST_BOUND)
        return able

    def _embedded(self, batch: DocumentBatch, read: int, chosen: Int32s) -> dict[Bound, None]:
        """The distinct bindings, in the order of the chosen aggregates."""
        symbols = self._table.translation(batch)[batch.name[:read]]
        names = len(self._table.names)
        if len(self._search.following) < read or self._state[STAMP] > _LAST_STAMP:
            self._make_room(2 * read, names)
        if len(self._search.head) < names:
            self._search = self._search._replace(head=np.full(2 * names, -1, dtype=np.int32))
        elements = LaidOver(batch.parent, batch.end, symbols, batch.name)
        placed, rows = np.empty(self._longest, dtype=np.int32), np.empty(2 * len(chosen), dtype=np.int32)
        ends = np.empty(2 * len(chosen) * self._most_wanted, dtype=np.int32)
        while True:
            found = Found(rows, self._labels, ends)
            ways = embed(elements, read, self._steps, self._wanted, chosen, self._search, placed, found, self._state)
            if ways != NO_ROOM:
                break
            self._labels = np.empty(2 * len(self._labels), dtype=np.int32)
        labels = self._labels[: self._state[USED]].tolist()
        if read > MOST_KEPT:
            self._make_room(0, names)
        return self._bound(batch, rows[:ways].tolist(), ends.tolist(), labels)

    def _bound(self, batch: DocumentBatch, rows: list[int], ends: list[int], names: list[int]) -> dict[Bound, None]:
        """The bindings of some aggregates; `names` has the names of their wildcards, which end at `ends`."""
        found: dict[Bound, None] = {}
        known, remembered = self._known
        if known is not batch.known or len(remembered) >= MOST_REMEMBERED:
            remembered = {}
            self._known = batch.known, remembered
        begin = place = 0
        for number in rows:
            simple = self._simple[number]
            last = place + len(simple.wildcards)
            places = (begin, *ends[place:last])
            here = names[begin : places[-1]]
            key = (number, *[each - begin for each in places[2:]], -1, *here)
            bound = remembered.get(key)
            if bound is None:
                labels = [self._spelled(batch.name_of(name)) for name in names[: places[-1]]]
                parts = [tuple(labels[low:high]) for low, high in pairwise(places)]
                bound = Bound(simple.aggregate, tuple(zip(simple.wildcards, parts, strict=True)))
                # Names that only this batch has get other numbers elsewhere.
                if max(here, default=-1) < batch.known_count and is_short(bound.wildcards):
                    remembered[key] = bound
            found[bound] = None
            begin, place = places[-1], last
        return found

    def _spelled(self, name: str) -> str:
        return local_part(name) if self._table.namespaces == "ignore" else name

    def following(
        self, made: Advertisement, came: Bound, entries: Int32s, numbers: Mapping[int, int]
    ) -> tuple[Bound, ...]:
        """The bindings of a neighbour's aggregates (`entries`) that follow from a binding of our own aggregate.

        `numbers` has the aggregates by entry. Each is embedded in the steps that the binding shows to be in the
        document, if possible; a long binding is ignored.
        `made` is the advertisement with our own aggregate; the consequences of its bindings are cached.
        """
        if not is_short(came.wildcards):
            return ()
        of, passed = self._passed
        if of is not made or len(passed) >= MOST_REMEMBERED:
            passed = {}
            self._passed = made, passed
        found = passed.get(came)
        if found is None:
            wanted = (numbers[entry] for entry in entries.tolist() if entry in numbers)
            each = (self.passed_on(made.aggregates[came.aggregate], came, number) for number in wanted)
            found = passed[came] = tuple(dict.fromkeys(one for one in each if one is not None))
        return found

    def passed_on(self, aggregate: Pattern, came: Bound, number: int) -> Bound | None:
        """The binding of the neighbour's aggregate with this number that follows from a binding; None if none does."""
        place = self._place_of.get(number)
        if place is None:
            return None
        shown = bound(aggregate, came.wildcards)
        for segments in embeddings(self._wildcards[place], shown):
            labels = {each: segments[each].labels for each in self._simple[place].wildcards if each in segments}
            return Bound(number, tuple((each, known) for each, known in labels.items() if known is not None))
        return None


def fitting(found: Iterable[Bound], room: int) -> tuple[Bound, ...]:
    """The first bindings that fit, by their size on the wire."""
    kept, size = [], 0
    for each in found:
        size += len(written(each))
        if size > room:
            break
        kept.append(each)
    return tuple(kept)
