"""Bindings online: what the wildcards of a neighbour's simple aggregates stand for in a document (§4.1 of the paper).

An engine tells that an aggregate matches, not where. For the most beneficial aggregates that match, their steps are
laid over the document once from the front and once from the back (`binding_kernels.py`), and the labels that came to
lie on their wildcards are bound: two bindings for an aggregate where they differ, since one may fit a subscription that
the other does not (Example 3.1).

Invariant: a binding is one of an occurrence in the part of the document that was read. So aggregates with conditions
on values, attributes or text, and with `or` and `not()`, are never bound: an occurrence of their steps need not be one
of theirs. An absolute path in a predicate holds for all occurrences or for none, and need not be looked at.
Cost: steps times elements for each of at most `MOST_BOUND` aggregates.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ..documents import DocumentBatch
from ..documents.names import local_part
from ..matching.table import PatternTable
from ..patterns import Pattern
from ..patterns.model import WILDCARD, Node, Root
from .annotations import Bound, Labels, Mask
from .binding_kernels import ANY, CHILD, DESCENDANT, embed
from .simple import Simple, embeddings
from .wildcards import Wildcards, bound

Int32s = npt.NDArray[np.int32]
MOST_BOUND = 8
MOST_REMEMBERED = 1 << 14


def can_be_bound(pattern: Pattern) -> bool:
    """Whether any occurrence of a pattern's steps in a document that matches it is one of the pattern."""
    waiting = [pattern.root] if pattern.root is not None else []
    for node in waiting:  # which grows meanwhile
        if not node.is_element:
            return False
        for condition in node.conditions:
            if isinstance(condition, Node):
                waiting.append(condition)
            elif not isinstance(condition, Root):
                return False
    return bool(waiting)


def _steps(pattern: Pattern) -> list[tuple[Node, int]]:
    """The steps of a pattern in reading order, each with the place of the one above it."""
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
        able = [each for each in simple if can_be_bound(aggregates[each.aggregate])]
        self._simple = sorted(able, key=lambda each: -each.benefit(len(each.wildcards)))
        self._aggregates = np.array([each.aggregate for each in self._simple], dtype=np.int64)
        self._wildcards = [Wildcards(aggregates[each.aggregate]) for each in self._simple]
        self._place_of = {each.aggregate: place for place, each in enumerate(self._simple)}
        self._passed: dict[tuple[Bound, int], Bound | None] = {}
        self._table = table
        columns: list[tuple[int, int, int]] = []
        begins = [0]
        for wildcards in self._wildcards:
            for node, above in _steps(wildcards.pattern):
                axis = DESCENDANT if node.axis == "//" else CHILD
                symbol = ANY if node.test == WILDCARD else table.names.add(node.test)
                columns.append((above, axis, symbol))
            begins.append(len(columns))
        self._begins = np.array(begins, dtype=np.int32)
        self._nodes = np.ascontiguousarray(np.array(columns, dtype=np.int32).reshape(-1, 3).T)
        self._longest = int(np.diff(self._begins).max(initial=0))
        self._asked = [self._places(number) for number in range(len(self._simple))]

    def _places(self, number: int) -> list[tuple[int, int, int]]:
        """For each wildcard to be bound its step, and the step above a `//`, for a `*` the step again."""
        wildcards, begin = self._wildcards[number], int(self._begins[number])
        found = []
        for wildcard in self._simple[number].wildcards:
            if wildcard in wildcards.star:
                node = wildcards.star.index(wildcard)
                found.append((wildcard, node, node))
            else:
                node = wildcards.descendant.index(wildcard)
                found.append((wildcard, node, int(self._nodes[0, begin + node])))
        return found

    def bind(self, batch: DocumentBatch, read: int, matched: Mask, room: int) -> tuple[Bound, ...]:
        """Bindings of aggregates that match, the most beneficial first, in about so many bytes."""
        if not len(self._simple) or not read:
            return ()
        chosen = np.flatnonzero(matched[self._aggregates])[:MOST_BOUND].astype(np.int32)
        if not len(chosen):
            return ()
        found: dict[Bound, None] = {}
        front, back = self._embedded(batch, read, chosen).tolist()
        for number, one, other in zip(chosen.tolist(), front, back, strict=True):
            for placed in (one,) if one == other else (one, other):
                if placed[0] >= 0:
                    found[self._bound(batch, number, placed)] = None
        return fitting(found, room)

    def _embedded(self, batch: DocumentBatch, read: int, chosen: Int32s) -> Int32s:
        symbols = self._table.translation(batch)[batch.name[:read]]
        holds, child_holds, below_holds = np.empty((3, self._longest, read), dtype=np.uint8)
        out = np.empty((2, len(chosen), self._longest), dtype=np.int32)
        embed(
            batch.parent, batch.end, symbols, read, self._begins, *self._nodes, chosen,
            holds, child_holds, below_holds, out,
        )  # fmt: skip
        return out

    def _bound(self, batch: DocumentBatch, number: int, placed: list[int]) -> Bound:
        bindings: list[tuple[int, Labels]] = []
        for wildcard, node, above in self._asked[number]:
            if above == node:  # a `*`
                bindings.append((wildcard, (self._label(batch, placed[node]),)))
            else:
                bindings.append((wildcard, self._between(batch, -1 if above < 0 else placed[above], placed[node])))
        return Bound(self._simple[number].aggregate, tuple(bindings))

    def _between(self, batch: DocumentBatch, top: int, bottom: int) -> Labels:
        labels = []
        above = batch.parent.item
        element = above(bottom)
        while element != top:
            labels.append(self._label(batch, element))
            element = above(element)
        return tuple(reversed(labels))

    def _label(self, batch: DocumentBatch, element: int) -> str:
        name = batch.name_of(batch.name.item(element))
        return local_part(name) if self._table.namespaces == "ignore" else name

    def passed_on(self, aggregate: Pattern, came: Bound, number: int) -> Bound | None:
        """What a binding of an aggregate of our own tells of the neighbour's aggregate with this number.

        The neighbour's aggregate is laid over what the binding shows to be in the document. None when it can't be.
        """
        key = (came, number)
        if key not in self._passed:
            if len(self._passed) >= MOST_REMEMBERED:
                self._passed.clear()
            self._passed[key] = self._passed_on(aggregate, came, number)
        return self._passed[key]

    def _passed_on(self, aggregate: Pattern, came: Bound, number: int) -> Bound | None:
        place = self._place_of.get(number)
        if place is None:
            return None
        shown = bound(aggregate, came.wildcards)
        for segments in embeddings(self._wildcards[place], shown):
            labels = {each: segments[each].labels for each in self._simple[place].wildcards if each in segments}
            return Bound(number, tuple((each, known) for each, known in labels.items() if known is not None))
        return None


def fitting(found: Iterable[Bound], room: int) -> tuple[Bound, ...]:
    """The first bindings that fit, by what their labels take on the wire at most."""
    kept, size = [], 0
    for each in found:
        size += 3 + sum(2 + sum(1 + len(label) for label in labels) for _, labels in each.wildcards)
        if size > room:
            break
        kept.append(each)
    return tuple(kept)
