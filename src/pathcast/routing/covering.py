"""Covering: which patterns of a set are contained in others of it, found by matching instead of by comparing pairs.

A pattern drawn as a document (its steps as elements, `*` as a name that nobody asks for, `//` as one such element
between) matches every pattern that contains it. So all patterns are entered as subscriptions, all are matched as
documents by the default engine, and only the pairs that come out of it are proved (`contains`).

What is no element is drawn as one, too: an attribute, a text node, and each condition whose value is fixed (`= 5`,
`or`, `not`) is an element with a name of its own; conditions that follow from others (`>= 3`) are left to the proof.

    /a[@x = 5]//b    drawn     <a><n1><n2/></n1><any><b/></any></a>       n1 for @x, n2 for "= 5"

How many drawings a pattern matches (its *reach*) orders them: one that contains another reaches at least as far. Of the
patterns that contain one, the tightest is the one with the least reach, and candidates are proved in that order.

Invariant: `cover[i]` is `i`, or the index of a pattern that contains pattern `i`; to follow it ends.
Cost: a match for each pattern, some 20 µs, and a proof or two, at most `MOST_PROOFS`; 50,000 patterns in seconds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..documents import read_batch
from ..documents.limits import Limits
from ..matching import Subscriptions
from ..patterns import Pattern
from ..patterns.containment import Facts, contains
from ..patterns.linear_containment import linear_contains
from ..patterns.model import WILDCARD, Compare, Condition, Node

MOST_PROOFS = 64
_TOGETHER = 4096
_ANY = "any"
_TALL = 100  # steps up to which a plain path is compared with a tree
_FIXED = frozenset({"="})

Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Covers:
    """For each pattern the tightest one that contains it (itself, if none is found), and its reach.

    `order` has the patterns so that each stands after the one that covers it.
    """

    cover: Int32s
    reach: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]


def covers(patterns: Sequence[Pattern]) -> Covers:
    """Which patterns contain which; `patterns` are different ones."""
    cover = np.arange(len(patterns), dtype=np.int32)
    offsets, candidates = _candidates(patterns)
    reach = np.bincount(candidates, minlength=len(patterns)) + 1
    order = np.lexsort((np.arange(len(patterns)), -reach))
    rank = np.empty(len(patterns), dtype=np.int64)
    rank[order] = np.arange(len(patterns))
    linear = [pattern.linear for pattern in patterns]
    for index in range(len(patterns)):
        tried = candidates[offsets[index] : offsets[index + 1]]
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
        if path is not None:
            if linear_contains(steps, path) if steps is not None else contains(patterns[candidate], patterns[index]):
                return candidate
        elif steps is None or len(steps) <= _TALL:
            facts = facts or Facts(patterns[index])
            if root is None or facts.prove(root):
                return candidate
    return index


def _candidates(patterns: Sequence[Pattern]) -> tuple[npt.NDArray[np.int64], Int32s]:
    """For each pattern the ones that its drawing matches, as offsets and indices."""
    drawing = _Drawing()
    subscriptions = Subscriptions()
    subscriptions.add_many([drawing.path(pattern) for pattern in patterns])
    matcher = subscriptions.compile()
    counts = [np.zeros(1, dtype=np.int64)]
    parts = [np.zeros(0, dtype=np.int32)]
    for begin in range(0, len(patterns), _TOGETHER):
        documents = [drawing.document(pattern) for pattern in patterns[begin : begin + _TOGETHER]]
        offsets, ids = matcher.match_batch(read_batch(documents, limits=Limits(depth=2_000)))
        counts.append(np.diff(offsets))
        parts.append(ids.astype(np.int32) - 1)
    return np.cumsum(np.concatenate(counts)), np.concatenate(parts)


class _Drawing:
    """Patterns as paths and as documents over names of our own."""

    def __init__(self) -> None:
        self._names: dict[object, str] = {}

    def name(self, what: object) -> str:
        return self._names.setdefault(what, f"n{len(self._names)}")

    def path(self, pattern: Pattern) -> str:
        """The pattern's steps, values and conditions only where they are drawn."""
        return "/*" if pattern.root is None else self._path(pattern.root, "/", "//")

    def _path(self, node: Node, child: str, descendant: str) -> str:
        text = (child if node.axis == "/" else descendant) + ("*" if node.test == WILDCARD else self.name(node.test))
        parts = [
            self._path(each, "", ".//") if isinstance(each, Node) else self.name(each)
            for each in _drawn(node.conditions)
        ]
        if len(parts) == 1:
            follow = parts[0]
            return text + (follow[1:] if follow.startswith(".//") else "/" + follow)
        return text + "".join(f"[{part}]" for part in parts)

    def document(self, pattern: Pattern) -> bytes:
        """A document that matches the pattern and, names apart, as little else as one element a step allows."""
        return f"<{_ANY}/>".encode() if pattern.root is None else self._element(pattern.root).encode()

    def _element(self, node: Node) -> str:
        tag = _ANY if node.test == WILDCARD else self.name(node.test)
        inside = "".join(
            self._element(each) if isinstance(each, Node) else f"<{self.name(each)}/>"
            for each in _drawn(node.conditions)
        )
        text = f"<{tag}>{inside}</{tag}>"
        return f"<{_ANY}>{text}</{_ANY}>" if node.axis == "//" else text


def _drawn(conditions: tuple[Condition, ...]) -> Iterator[Condition]:
    for condition in conditions:
        if not isinstance(condition, Compare) or condition.operator in _FIXED:
            yield condition
