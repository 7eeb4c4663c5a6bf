"""Access predicates: the value that a document must have before a pattern is looked at.

Of the equalities on attributes that a pattern demands outright (not under `or` or `not`), the one whose attribute is
asked for the most different values is its access predicate: it is likely to be the rarest. The pattern is a candidate
for documents with that value and an open gate (`gates.py`); patterns without an equality wait behind their gate
alone.

Invariant: a document that matches has the value, so nothing is missed. Cost: one hash look-up for each attribute that
some pattern asks about.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...documents import DocumentBatch, Names
from ...patterns.model import WILDCARD, Compare, Node, Pattern
from .access_kernels import (
    ANY,
    ASKS_NUMBER,
    ASKS_TEXT,
    V_ROWS,
    candidates_of,
    index_equalities,
)

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class Equality(NamedTuple):
    """An attribute of an element (`ANY`: of whichever) equals a text, or a number."""

    element: int
    attribute: int
    text: str | None
    number: float


def equalities(pattern: Pattern, names: Names) -> Iterator[Equality]:
    """The equalities on attributes that a pattern demands outright."""
    waiting = [(pattern.root, ANY)] if pattern.root is not None else []
    while waiting:
        node, holder = waiting.pop()
        if node.is_attribute:
            element = holder if node.axis == "/" else ANY
            for test in node.conditions:
                if isinstance(test, Compare) and test.operator == "=":
                    number = 0.0 if test.number is None else test.number
                    yield Equality(element, names.add(node.test[1:]), test.string, number)
        elif node.is_element:
            below = ANY if node.test == WILDCARD else names.add(node.test)
            waiting.extend((part, below) for part in node.conditions if isinstance(part, Node))


class _Scratch(threading.local):
    def __init__(self) -> None:
        self.state = np.zeros(1, dtype=np.int64)
        self.gate_stamps = np.zeros(0, dtype=np.int64)
        self.value_stamps = np.zeros(0, dtype=np.int64)
        self.out = np.empty(1 << 12, dtype=np.int32)


class Access:
    """Candidates of documents: patterns by their gates and access predicates."""

    def __init__(self, names: Names, patterns: list[Pattern], gate_of: Int32s, gates: int) -> None:
        self._gate_of = gate_of
        self._gates = gates
        chosen = _chosen([list(equalities(pattern, names)) for pattern in patterns])
        numbers: dict[Equality, int] = {}
        row_of = np.array([-1 if e is None else numbers.setdefault(e, len(numbers)) for e in chosen], dtype=np.int64)
        waits = np.flatnonzero(row_of >= 0)
        order = waits[np.argsort(row_of[waits], kind="stable")]
        self._patterns = order.astype(np.int32)
        self._begin = np.searchsorted(row_of[order], np.arange(len(numbers) + 1)).astype(np.int64)
        plain = np.flatnonzero(row_of < 0)
        plain = plain[np.argsort(gate_of[plain], kind="stable")]
        self._behind = plain.astype(np.int32)
        self._behind_begin = np.searchsorted(gate_of[plain], np.arange(gates + 1)).astype(np.int64)
        self._index(list(numbers), names)
        self._scratch = _Scratch()

    def _index(self, found: list[Equality], names: Names) -> None:
        literals = bytearray()
        rows = np.zeros((V_ROWS, len(found)), dtype=np.int32)
        self._numbers = np.zeros(len(found), dtype=np.float64)
        self._asks = np.zeros(len(names) + 1, dtype=np.int8)
        for row, equality in enumerate(found):
            text = None if equality.text is None else equality.text.encode()
            if text is None:
                self._numbers[row] = equality.number
                self._asks[equality.attribute] |= ASKS_NUMBER
            else:
                self._asks[equality.attribute] |= ASKS_TEXT
            span = (len(literals), len(text or b""))
            rows[:, row] = (equality.element, equality.attribute, text is None, *span)
            literals += text or b""
        size = 64
        while size < 2 * len(found):
            size *= 2
        self._slots = np.full(size, -1, dtype=np.int32)
        self._rows, self._hashes = rows, np.zeros(len(found), dtype=np.uint64)
        self._literals = np.frombuffer(bytes(literals) + b"\0", dtype=np.uint8)
        index_equalities(self._rows, self._numbers, self._literals, self._hashes, self._slots)

    @property
    def values(self) -> int:
        """How many different values patterns wait for."""
        return len(self._numbers)

    def candidates(
        self, batch: DocumentBatch, translation: Int32s, gate_offsets: Int64s, gates: Int32s
    ) -> tuple[Int64s, Int32s]:
        """The candidates of each document, given its open gates."""
        scratch = self._scratch
        if len(scratch.gate_stamps) < self._gates or len(scratch.value_stamps) < self.values:
            scratch.gate_stamps = np.zeros(self._gates + 1, dtype=np.int64)
            scratch.value_stamps = np.zeros(self.values + 1, dtype=np.int64)
        offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        done = 0
        while True:
            done = candidates_of(
                gate_offsets, gates, self._behind_begin, self._behind,
                batch.offsets, batch.name, batch.attribute_begin, batch.attribute_name, batch.attribute_start,
                batch.attribute_length, batch.data, batch.arena, translation,
                self._asks, self._slots, self._rows, self._hashes, self._numbers, self._literals, self._begin,
                self._patterns, self._gate_of,
                scratch.state, scratch.gate_stamps, scratch.value_stamps, offsets, scratch.out, done,
            )  # fmt: skip
            if done == len(batch):
                return offsets, scratch.out[: offsets[-1]].copy()
            larger = np.empty(2 * len(scratch.out), dtype=np.int32)
            larger[: offsets[done]] = scratch.out[: offsets[done]]
            scratch.out = larger


def _chosen(demanded: list[list[Equality]]) -> list[Equality | None]:
    """The access predicate of each pattern: the equality whose attribute is asked for the most values."""
    values: dict[tuple[int, int], set[str | float]] = defaultdict(set)
    for found in demanded:
        for equality in found:
            value = equality.number if equality.text is None else equality.text
            values[equality.element, equality.attribute].add(value)
    return [max(found, key=lambda e: len(values[e.element, e.attribute]), default=None) for found in demanded]
