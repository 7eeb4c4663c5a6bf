"""Conditions: all tree patterns as one table of distinct conditions, each evaluated at most once per document.

Each distinct condition is stored once: patterns with equal branches share it, and a condition's number is larger than
those of its parts. A pattern is the list of the steps of its longest path, each a condition of its own, together with
the data that the kernel needs (`candidate_verifier_kernels.py`).

Conditions loaded as arrays, from a snapshot or from another process (`restore`, `merge`), are found by content
(`condition_interning_kernels.py`), the others by the parts of patterns that they were built from.

`and`, `or` and `not` of tests of one value (of an attribute, a text node or an element) form a *choice*: a test that
names the next test for pass and for fail. Conditions with a known set may be among them.

        @a[. = 'x' or not(. > 5)]     . = 'x'  pass: yes, fail: . > 5
                                      . > 5    pass: no, fail: yes

A value is therefore compared until the result is known, and a choice has as many rows as tests.

Invariant: all data that grows with the patterns is in arrays, or in dictionaries of objects that the garbage collector
does not track.
"""

import itertools
from array import array

import numpy as np

from pathcast.documents import Names
from pathcast.kernels import AnyArray, Int32s
from pathcast.kernels.hash_table_kernels import MIX_A, MIX_B
from pathcast.patterns import (
    ALWAYS,
    NEVER,
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

from ...arrays.growing_array import Growing
from ..values.condition_interning_kernels import (
    N_SIZES,
    UNWANTED,
    ConditionArrays,
    ConditionRoom,
    find_condition,
    index_conditions,
    merge_conditions,
    want_parts,
)
from ..values.required_path_gate import longest_path
from ..values.value_comparison_kernels import (
    AT_LEAST,
    AT_MOST,
    CONTAINS,
    DIFFERENT,
    DIFFERENT_TEXT,
    EQUAL,
    EQUAL_TEXT,
    LESS,
    MORE,
    STARTS_WITH,
)
from .candidate_verifier_kernels import MOST_ASKS, NOTHING, SAME
from .value_condition_kernels import (
    ALL_OF,
    ANY_NAME,
    ANY_OF,
    ATTRIBUTE,
    C_COLUMNS,
    C_KIND,
    CHOICE,
    DEEP,
    ELEMENT,
    FIRST,
    FIRST_ROOT,
    NO_PART,
    NOT,
    PATH_ATTRIBUTE,
    PATH_ELEMENT,
    PATH_TEXT,
    ROOT,
    SELF,
    STEP,
    TEXT_NODE,
    ConditionTable,
)

_WORD = 1 << 64
_TRIED = frozenset([SELF, CHOICE, FIRST])
_NO_SLOTS = np.full(256, -1, dtype=np.int32)
_NUMBER_TESTS = {"=": EQUAL, "!=": DIFFERENT, "<": LESS, "<=": AT_MOST, ">": MORE, ">=": AT_LEAST}
_TEXT_TESTS = {"=": EQUAL_TEXT, "!=": DIFFERENT_TEXT, "contains": CONTAINS, "starts-with": STARTS_WITH}


class _Pending:
    """Conditions that were added one by one, laid out as in `ConditionTable`."""

    __slots__ = ("hashes", "limits", "literals", "parts", "rows")

    def __init__(self) -> None:
        self.rows, self.limits, self.hashes = array("i"), array("d"), array("Q")
        self.literals, self.parts = bytearray(), array("i")

    def columns(self) -> tuple[AnyArray, ...]:
        """All of them."""
        return (
            np.frombuffer(self.rows, dtype=np.int32).reshape(-1, C_COLUMNS),
            np.frombuffer(self.limits, dtype=np.float64),
            np.frombuffer(self.hashes, dtype=np.uint64),
            np.frombuffer(self.literals, dtype=np.uint8),
            np.frombuffer(self.parts, dtype=np.int32),
        )


class Conditions:
    """The growing table; `arrays` is its current state, for the kernel."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._numbers: dict[Condition, int] = {}
        self._paths: dict[Node, int] = {}
        self._steps: dict[bytes, int] = {}
        self._first = 0  # the conditions before it were loaded as arrays
        self._kinds = array("i")  # of the others
        self._pending = _Pending()  # conditions that are not yet in the columns below
        self._rows = Growing(np.int32, width=C_COLUMNS)
        self._limits, self._literals, self._parts = Growing(np.float64), Growing(np.uint8), Growing(np.int32)
        self._hashes = Growing(np.uint64)
        self._slots, self._indexed = _NO_SLOTS, 0
        self._arrays = self._captured()

    def __len__(self) -> int:
        return self._first + len(self._kinds)

    def kind(self, number: int) -> int:
        """The kind of a condition."""
        at = number - self._first
        return self._kinds[at] if at >= 0 else int(self._rows.room[number, C_KIND])

    def add(self, pattern: Pattern) -> list[int]:
        """The pattern's program."""
        root = pattern.root
        assert root is not None
        if not root.is_element:
            if root.axis == "/":
                return []  # the document node has no attributes and no text
            root = Node("//", WILDCARD, (Node("/", root.test, root.conditions),))
        program: list[int] = []
        step = -1
        spine = longest_path(root)
        for node, below in itertools.zip_longest(spine, spine[1:]):
            others = tuple(part for part in node.conditions if part is not below)
            if len(others) > MOST_ASKS:
                others = (*others[: MOST_ASKS - 1], AllOf(others[MOST_ASKS - 1 :]))
            parts = self._all(others)
            name = 2 * self._name(node) + (node.axis == "//")
            step = self._step(node, name, step, parts)
            asks = [NOTHING - 1 - part if self.kind(part) in _TRIED else part for part in parts]
            for k in range(len(asks) - 1):
                program += NOTHING - MOST_ASKS * step - k - 1, SAME if k else name, asks[k]
            program += step, SAME if len(asks) > 1 else name, asks[-1] if asks else NOTHING
        return program

    def number(self, condition: Condition) -> int:
        """The number of a condition that is a part of an element."""
        return self._condition(condition)

    def _step(self, node: Node, name: int, before: int, parts: tuple[int, ...]) -> int:
        """The number of a step of a pattern's longest path, given the previous step."""
        key = array("i", (before, name, *parts)).tobytes()
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = self._new(STEP, node, parts, before)
        return known

    def _condition(self, condition: Condition) -> int:
        """The number of a condition."""
        known = self._numbers.get(condition)
        if known is None:
            known = self._numbers[condition] = self._make(condition)
        return known

    def _make(self, condition: Condition) -> int:
        match condition:
            case Node():
                if condition.is_element:
                    return self._new(ELEMENT, condition, self._all(condition.conditions))
                return self._new(TEXT_NODE if condition.is_text else ATTRIBUTE, condition, self._tests_of(condition))
            case Root():
                return self._row(ROOT, 0, (self._condition(condition.node),))
            case Compare() | StringTest():
                return self._value(condition, SELF)
            case First():
                kind = FIRST_ROOT if condition.absolute else FIRST
                return self._value(condition.test, kind, tuple(self._path_step(step) for step in condition.steps))
            case AllOf() | AnyOf() | Not() if _tests_the_element(condition):
                asked: dict[int, None] = {}
                begin = self._choice(condition, self._condition(ALWAYS), self._condition(NEVER), asked)
                return self._row(CHOICE, 0, (begin, *asked))
            case AllOf():
                return self._row(ALL_OF, 0, self._all(condition.conditions))
            case AnyOf():
                return self._row(ANY_OF, 0, self._all(condition.conditions))
            case Not():
                return self._row(NOT, 0, (self._condition(condition.condition),))

    def _path_step(self, step: Node) -> int:
        """The number of a step of a path in a `First` condition."""
        known = self._paths.get(step)
        if known is None:
            if step.is_element:
                known = self._new(PATH_ELEMENT, step, self._all(step.conditions))
            else:
                known = self._new(PATH_TEXT if step.is_text else PATH_ATTRIBUTE, step, self._tests_of(step))
            self._paths[step] = known
        return known

    def _tests_of(self, node: Node) -> tuple[int, ...]:
        """The tests of an attribute or text node, choices last, and the document conditions that these need."""
        tests = [part for part in node.conditions if isinstance(part, Compare | StringTest)]
        asked: dict[int, None] = {}
        choices = [
            self._choice(part, self._condition(ALWAYS), self._condition(NEVER), asked)
            for part in node.conditions
            if not isinstance(part, Compare | StringTest)
        ]
        return (*self._all(tuple(tests)), *choices, *asked)

    def _choice(self, condition: Condition, passed: int, failed: int, asked: dict[int, None]) -> int:
        """The first test that decides whether a value passes a condition; `passed`, `failed`: where each result leads.

        `asked` receives the conditions whose sets are needed; expensive tests come last.
        """
        match condition:
            case Compare() | StringTest():
                return self._value(condition, SELF, (passed, failed))
            case Not() if _tests_the_element(condition):
                return self._choice(condition.condition, failed, passed, asked)
            case AllOf() if _tests_the_element(condition):
                for part in sorted(condition.conditions, key=_price, reverse=True):
                    passed = self._choice(part, passed, failed, asked)
                return passed
            case AnyOf() if _tests_the_element(condition):
                for part in sorted(condition.conditions, key=_price, reverse=True):
                    failed = self._choice(part, passed, failed, asked)
                return failed
            case _:  # an attribute or text node has no children: there, this is a condition on the document
                number = self._condition(condition)
                asked[number] = None
                return self._row(SELF, 0, (passed, failed, number))

    def _all(self, conditions: tuple[Condition, ...]) -> tuple[int, ...]:
        """The numbers of conditions, with those evaluated per element last: the others may leave no elements."""
        numbers = [self._condition(condition) for condition in conditions]
        if len(numbers) > 1:
            numbers.sort(key=lambda number: self.kind(number) in _TRIED)
        return tuple(numbers)

    def _new(self, kind: int, node: Node, parts: tuple[int, ...], before: int | None = None) -> int:
        return self._row(kind | DEEP if node.axis == "//" else kind, self._name(node), parts, before=before)

    def _name(self, node: Node) -> int:
        if node.is_attribute:
            return self.names.add(node.test[1:])
        return ANY_NAME if node.is_text or node.test == WILDCARD else self.names.add(node.test)

    def _value(self, test: Compare | StringTest, kind: int, parts: tuple[int, ...] = ()) -> int:
        if isinstance(test, Compare) and test.number is not None:
            return self._row(kind, _NUMBER_TESTS[test.operator], parts, limit=test.number)
        if isinstance(test, Compare):
            return self._row(kind, _TEXT_TESTS[test.operator], parts, literal=test.string or "")
        return self._row(kind, _TEXT_TESTS[test.function], parts, literal=test.text)

    def _row(
        self,
        kind: int,
        test: int,
        parts: tuple[int, ...],
        limit: float = 0.0,
        literal: str = "",
        before: int | None = None,
    ) -> int:
        """The number of the condition with this content; `before`: the previous step of a step."""
        text = literal.encode()
        if self._first and all(part < self._first for part in parts):
            known = self._find(kind, test, parts, limit, text, before)
            if known >= 0:
                return known
        new = self._pending
        span = (self._literals.size + len(new.literals), len(text)) if before is None else (before, 0)
        begin = self._parts.size + len(new.parts)
        new.rows.extend((kind, test, *span, begin, begin + len(parts), parts[0] if parts else NO_PART, 0))
        new.limits.append(limit)
        new.hashes.append(short_hash(text))
        new.literals.extend(text)
        new.parts.extend(parts)
        self._kinds.append(kind)
        return len(self) - 1

    def arrays(self) -> ConditionTable:
        """The table as of now; earlier results stay valid."""
        if self._pending.rows:
            for column, values in zip(self._columns, self._pending.columns(), strict=True):
                column.extend(values)
            self._pending = _Pending()
            self._arrays = self._captured()
        return self._arrays

    def _captured(self) -> ConditionTable:
        return ConditionTable(*(column.room for column in self._columns))

    @property
    def _columns(self) -> tuple[Growing, ...]:
        return self._rows, self._limits, self._hashes, self._literals, self._parts

    # As arrays: on disk, and from other processes.

    def saved(self) -> dict[str, AnyArray]:
        """The table as arrays; `restore` reads them, `merge` merges them."""
        self.arrays()
        return dict(zip(ConditionTable._fields, (column.view for column in self._columns), strict=True))

    @classmethod
    def restore(cls, names: Names, arrays: dict[str, AnyArray]) -> "Conditions":
        """The table that was saved as `arrays`, on the same memory until it changes."""
        table = cls(names)
        table._rows, table._limits, table._hashes, table._literals, table._parts = (
            Growing.over(arrays[name]) for name in ConditionTable._fields
        )
        table._first = table._rows.size
        table._arrays = table._captured()
        return table

    def merge(
        self,
        arrays: dict[str, AnyArray],
        names: Int32s,
        wanted: Int32s | None = None,
    ) -> Int32s:
        """Merge another table, with names translated by `names`; return the number in ours of each of its conditions.

        `wanted`: only these and their parts.
        """
        theirs = ConditionTable(*(np.asarray(arrays[name]) for name in ConditionTable._fields))
        self.arrays()
        self._first, self._kinds = self._rows.size, array("i")
        for column, name in zip(self._columns, ConditionTable._fields, strict=True):
            column.make_room(len(arrays[name]))
        self._index(len(theirs.rows))
        is_wanted = np.full(len(theirs.rows), wanted is None, dtype=np.bool_)
        if wanted is not None:
            is_wanted[wanted] = True
            want_parts(theirs.rows, theirs.parts, is_wanted)
        moved = np.where(is_wanted, -1, UNWANTED).astype(np.int32)
        sizes = np.array([self._rows.size, self._literals.size, self._parts.size], dtype=np.int64)
        assert len(sizes) == N_SIZES
        room = ConditionRoom(*self._rooms())
        merge_conditions(_with_bits(theirs), names, moved, room, self._slots, sizes)
        self._rows.size, self._literals.size, self._parts.size = sizes.tolist()
        self._limits.size = self._hashes.size = self._first = self._indexed = self._rows.size
        self._arrays = self._captured()
        return moved

    def _find(self, kind: int, test: int, parts: tuple[int, ...], limit: float, text: bytes, before: int | None) -> int:
        """The number of an equal condition among those loaded as arrays, or -1."""
        self._index(0)
        bits = np.float64(limit).view(np.uint64)
        its_parts, literal = np.array(parts, dtype=np.int32), np.frombuffer(text, dtype=np.uint8)
        step = -1 if before is None else before
        return find_condition(kind, test, bits, step, literal, its_parts, self._rooms(), self._slots)

    def _rooms(self) -> ConditionArrays:
        """The table with all its capacity, for searches."""
        return _with_bits(ConditionTable(*(column.room for column in self._columns)))

    def _index(self, more: int) -> None:
        """Index all conditions loaded as arrays by content, and make room for more."""
        count = self._first
        if 2 * (count + more) > len(self._slots) or not self._indexed:
            size = max(len(self._slots), 1 << (2 * (count + more)).bit_length())
            self._slots, self._indexed = np.full(size, -1, dtype=np.int32), 0
        if self._indexed < count:
            index_conditions(self._rooms(), self._indexed, count, self._slots)
            self._indexed = count


def _with_bits(table: ConditionTable) -> ConditionArrays:
    """A table for searches by the bits of limits."""
    rows, limits, hashes, literals, parts = table
    return ConditionArrays(rows, limits.view(np.uint64), hashes, literals, parts)


def _tests_the_element(condition: Condition) -> bool:
    """Whether a condition tests the value of its own element, or of a first node below it."""
    match condition:
        case Compare() | StringTest():
            return True
        case First():
            return not condition.absolute
        case AllOf() | AnyOf():
            return any(_tests_the_element(part) for part in condition.conditions)
        case Not():
            return _tests_the_element(condition.condition)
        case _:
            return False


def _price(condition: Condition) -> int:
    """The relative cost of a condition: a known set, a comparison, a search, a path to look for."""
    match condition:
        case Compare():
            return 1
        case StringTest():
            return 2
        case _ if _tests_the_element(condition):
            return 3
        case _:
            return 0


def short_hash(text: bytes) -> int:
    """The plain twin of the kernels' hash of a text."""
    first, second = int.from_bytes(text[:8], "little"), int.from_bytes(text[8:16], "little")
    return ((first * int(MIX_A) ^ second) % _WORD * int(MIX_B) ^ len(text)) % _WORD
