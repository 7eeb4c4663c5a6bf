"""Conditions: all tree patterns as one table of distinct conditions, each evaluated at most once a document.

A condition stands once, whoever asks for it: patterns with equal branches share them, and a condition's number is
larger than those of its parts. A pattern is the list of its conditions, parts first (`programs`), and the root's
number.

Left to the reference embedding: `contains()` and `starts-with()` on the first node of a path, and conditions on an
attribute or text node other than a conjunction of value tests.
"""

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...documents import Names
from ...patterns.model import (
    WILDCARD,
    AllOf,
    AnyOf,
    Compare,
    Condition,
    First,
    Node,
    Not,
    Pattern,
    Root,
    StringTest,
)
from .gates import longest_path
from .growing import Growing
from .value_kernels import (
    AT_LEAST,
    AT_MOST,
    CONTAINS,
    DIFFERENT,
    DIFFERENT_TEXT,
    EQUAL,
    EQUAL_TEXT,
    HASH_A,
    HASH_B,
    LESS,
    MORE,
    STARTS_WITH,
)
from .verify_kernels import (
    ALL_OF,
    ANY_NAME,
    ANY_OF,
    ATTRIBUTE,
    DEEP,
    ELEMENT,
    NOT,
    ROOT,
    SELF,
    SELF_SET,
    STEP,
    TEXT_NODE,
)

_WORD = 1 << 64
_NUMBER_TESTS = {"=": EQUAL, "!=": DIFFERENT, "<": LESS, "<=": AT_MOST, ">": MORE, ">=": AT_LEAST}
_TEXT_TESTS = {"=": EQUAL_TEXT, "!=": DIFFERENT_TEXT, "contains": CONTAINS, "starts-with": STARTS_WITH}


class Unsupported(Exception):  # noqa: N818 - not an error: the pattern goes another way
    """The pattern has a part that the kernel does not evaluate."""


class ConditionArrays(NamedTuple):
    """Rows (kind, test, literal, its length, first part, end of parts), limits, hashes and texts of literals, parts."""

    rows: npt.NDArray[np.int32]
    limits: npt.NDArray[np.float64]
    hashes: npt.NDArray[np.uint64]
    literals: npt.NDArray[np.uint8]
    parts: npt.NDArray[np.int32]


class Conditions:
    """The table, growing; `arrays` has what there is of it by now, for the kernel."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._numbers: dict[tuple[Condition, bool], int] = {}
        self._steps: dict[tuple[int, str, str, tuple[int, ...]], int] = {}
        self.kinds: list[int] = []
        self.tests: list[int] = []  # the name of a node, or the kind of a value test
        self.limits: list[float] = []
        self.literals = bytearray()
        self.hashes: list[int] = []
        self.literal_spans: list[tuple[int, int]] = []
        self.parts: list[tuple[int, ...]] = []
        self._synced = 0
        self._rows = np.zeros((64, 6), dtype=np.int32)
        self._limits, self._literals, self._parts = Growing(np.float64), Growing(np.uint8), Growing(np.int32)
        self._hashes = Growing(np.uint64)
        self._arrays = self._captured()

    def add(self, pattern: Pattern) -> tuple[list[int], int]:
        """The pattern's program and root; `Unsupported` leaves the table as it was but for unused conditions."""
        assert pattern.root is not None
        if not pattern.root.is_element:
            root = self._condition(pattern.root)
            return self._program(root), root
        program: list[int] = []
        before = -1
        spine = longest_path(pattern.root)
        for node, below in itertools.zip_longest(spine, spine[1:]):
            parts = self._all(tuple(part for part in node.conditions if part is not below))
            for part in parts:
                program.extend(number for number in self._program(part) if number not in program)
            before = self._step(node, before, parts)
            program.append(before)
        return program, before

    def _program(self, root: int) -> list[int]:
        """The conditions that one needs, parts first, and itself."""
        needed: set[int] = set()
        waiting = [root]
        while waiting:
            number = waiting.pop()
            if number not in needed:
                needed.add(number)
                waiting.extend(self.parts[number])
        return sorted(number for number in needed if self.kinds[number] != SELF)

    def _step(self, node: Node, before: int, parts: tuple[int, ...]) -> int:
        """The number of a step of a pattern's longest path, after another one."""
        key = (before, node.axis, node.test, parts)
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = self._new(STEP, node, parts)
            self.literal_spans[known] = (before, 0)
        return known

    def _condition(self, condition: Condition, *, alone: bool = False) -> int:
        """The number of a condition; `alone`: its set is asked for, not only what it leaves of others."""
        key = (condition, alone and isinstance(condition, Compare | StringTest))
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = self._make(condition, SELF_SET if key[1] else SELF)
        return known

    def _make(self, condition: Condition, value_kind: int) -> int:
        match condition:
            case Node():
                if condition.is_element:
                    return self._new(ELEMENT, condition, self._all(condition.conditions))
                if not all(isinstance(part, Compare | StringTest) for part in condition.conditions):
                    raise Unsupported
                kind = TEXT_NODE if condition.is_text else ATTRIBUTE
                return self._new(kind, condition, self._all(condition.conditions))
            case Root():
                return self._row(ROOT, 0, (self._condition(condition.node),))
            case Compare() | StringTest():
                return self._value(condition, value_kind)
            case AllOf():
                return self._row(ALL_OF, 0, self._all(condition.conditions, alone=True))
            case AnyOf():
                return self._row(ANY_OF, 0, self._all(condition.conditions, alone=True))
            case Not():
                return self._row(NOT, 0, (self._condition(condition.condition, alone=True),))
            case First():
                raise Unsupported

    def _all(self, conditions: tuple[Condition, ...], *, alone: bool = False) -> tuple[int, ...]:
        return tuple(self._condition(condition, alone=alone) for condition in conditions)

    def _new(self, kind: int, node: Node, parts: tuple[int, ...]) -> int:
        name = ANY_NAME
        if node.is_attribute:
            name = self.names.add(node.test[1:])
        elif node.is_element and node.test != WILDCARD:
            name = self.names.add(node.test)
        # Value tests on the element itself come last: they are the dearest, and the others may leave nothing to test.
        ordered = sorted(parts, key=lambda part: self.kinds[part] == SELF)
        return self._row(kind | DEEP if node.axis == "//" else kind, name, tuple(ordered))

    def _value(self, test: Compare | StringTest, kind: int) -> int:
        if isinstance(test, Compare) and test.number is not None:
            return self._row(kind, _NUMBER_TESTS[test.operator], (), limit=test.number)
        if isinstance(test, Compare):
            return self._row(kind, _TEXT_TESTS[test.operator], (), literal=test.string or "")
        return self._row(kind, _TEXT_TESTS[test.function], (), literal=test.text)

    def _row(self, kind: int, test: int, parts: tuple[int, ...], limit: float = 0.0, literal: str = "") -> int:
        begin = len(self.literals)
        text = literal.encode()
        self.literals += text
        self.hashes.append(short_hash(text))
        self.kinds.append(kind)
        self.tests.append(test)
        self.limits.append(limit)
        self.literal_spans.append((begin, len(self.literals) - begin))
        self.parts.append(parts)
        return len(self.kinds) - 1

    def arrays(self) -> ConditionArrays:
        """The table as of now; what earlier ones show stays as it is."""
        fresh = range(self._synced, len(self.kinds))
        if not fresh:
            return self._arrays
        while len(self.kinds) > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        parts = self.parts[fresh.start :]
        ends = self._parts.size + np.cumsum([len(some) for some in parts], dtype=np.int32)
        begins = np.concatenate([[self._parts.size], ends])[: len(ends)]
        spans = np.array(self.literal_spans[fresh.start :], dtype=np.int32).reshape(-1, 2)
        columns = (self.kinds[fresh.start :], self.tests[fresh.start :], spans[:, 0], spans[:, 1], begins, ends)
        self._rows[fresh.start : fresh.stop] = np.array(columns, dtype=np.int32).T
        self._limits.extend(np.array(self.limits[fresh.start :], dtype=np.float64))
        self._parts.extend(np.array([part for some in parts for part in some], dtype=np.int32))
        self._literals.extend(np.frombuffer(bytes(self.literals[self._literals.size :]), dtype=np.uint8))
        self._synced = fresh.stop
        self._hashes.extend(np.array(self.hashes[fresh.start :], dtype=np.uint64))
        self._arrays = self._captured()
        return self._arrays

    def _captured(self) -> ConditionArrays:
        columns = (self._limits, self._hashes, self._literals, self._parts)
        return ConditionArrays(self._rows, *(column.room for column in columns))


def short_hash(text: bytes) -> int:
    """The plain twin of the kernels' hash of a text."""
    first, second = int.from_bytes(text[:8], "little"), int.from_bytes(text[8:16], "little")
    return ((first * int(HASH_A) ^ second) % _WORD * int(HASH_B) ^ len(text)) % _WORD
