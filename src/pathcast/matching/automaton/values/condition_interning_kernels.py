# mypy: allow-untyped-defs, allow-untyped-calls
"""Interning: conditions and value tests found by content, in tables that are arrays.

Conditions built from patterns are found by the patterns' parts (`shared_pattern_conditions.py`, `value_test_table.py`).
Conditions loaded as arrays, from a snapshot or from another process, are found by content: kind, name, literal, limit,
parts. A slot of a hash table holds only a number; the row with this number shows whether it is the right one.

Invariant: parts precede the conditions that they belong to, so one pass over a table finds the numbers of all parts.
Cost: some 0.1 µs per row.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Bools, Int32s, Int64s, Matrix, UInt8s, UInt64s, Writable, kernel, part, rare
from pathcast.kernels.hash_table_kernels import MIX_A, MIX_B, probe

from ..verify.value_condition_kernels import (
    ATTRIBUTE,
    C_BEFORE,
    C_KIND,
    C_LENGTH,
    C_LITERAL,
    C_PART,
    C_PARTS,
    C_PARTS_END,
    C_TEST,
    DEEP,
    ELEMENT,
    NO_PART,
    PATH_ATTRIBUTE,
    PATH_ELEMENT,
    STEP,
)
from .value_comparison_kernels import same_text
from .value_test_table_kernels import D_ELEMENT, D_KIND, D_LENGTH, D_LITERAL, D_PLACE

# `sizes`: how far the rows, the literals and the parts of a table are filled.
N_ROWS, N_LITERALS, N_PARTS, N_SIZES = range(4)
# In place of a number: an unwanted row, which is not merged.
UNWANTED = -2


class ConditionArrays(NamedTuple):
    """A table of conditions (`ConditionTable`); limits are compared as bits."""

    rows: Matrix[Int32s]
    limits: UInt64s
    hashes: UInt64s
    literals: UInt8s
    parts: Int32s


class ConditionRoom(NamedTuple):
    """As `ConditionArrays`, with room for more conditions."""

    rows: Writable[Matrix[Int32s]]
    limits: Writable[UInt64s]
    hashes: Writable[UInt64s]
    literals: Writable[UInt8s]
    parts: Writable[Int32s]


class ConditionKey(NamedTuple):
    """A condition to look for: kind, test (a name or a test) and the previous step, in our numbers.

    Its text is `texts[literal : literal + length]`, its parts are `parts[begin:end]`, translated by `moved`; `moved` is
    empty if they are in our numbers already.
    """

    kind: int
    test: int
    limit: np.uint64
    before: int
    literal: int
    length: int
    begin: int
    end: int
    texts: UInt8s
    parts: Int32s
    moved: Int32s


class ValueTestArrays(NamedTuple):
    """A table of value tests (`ValueTestTable`); numbers are compared as bits."""

    rows: Matrix[Int32s]
    numbers: UInt64s
    literals: UInt8s


class ValueTestRoom(NamedTuple):
    """As `ValueTestArrays`, with room for more tests."""

    rows: Writable[Matrix[Int32s]]
    numbers: Writable[UInt64s]
    literals: Writable[UInt8s]


class ValueTestKey(NamedTuple):
    """A value test to look for, with names in our numbers; its text is `texts[literal : literal + length]`."""

    element: int
    place: int
    kind: int
    number: np.uint64
    literal: int
    length: int
    texts: UInt8s


@part
def mixed(hashed, value):
    """Add one number to a hash."""
    hashed = (hashed ^ np.uint64(value)) * MIX_A
    return hashed ^ hashed >> np.uint64(29)


@part
def finished(hashed):
    """The hash at which a search starts, after the last number."""
    return hashed * MIX_B >> np.uint64(20)


@rare
def hash_text(hashed, data, begin, length):
    """Add a text to a hash."""
    for k in range(begin, begin + length):
        hashed = (hashed ^ np.uint64(data[k])) * MIX_B
    return mixed(hashed, length)


@part
def part_number(key, at):
    """A part of a condition, in our numbers."""
    return key.moved[key.parts[at]] if len(key.moved) else key.parts[at]


@part
def is_step(kind):
    """Whether conditions of a kind are steps, which store the previous step in place of a literal."""
    return kind & (DEEP - 1) == STEP


@part
def is_same_condition(row, key, table):
    """Whether a condition of our table is the wanted one."""
    rows = table.rows
    same = (
        rows[row, C_KIND] == key.kind
        and rows[row, C_TEST] == key.test
        and table.limits[row] == key.limit
        and rows[row, C_PARTS_END] - rows[row, C_PARTS] == key.end - key.begin
    )
    if same and is_step(key.kind):
        same = rows[row, C_BEFORE] == key.before
    elif same:
        literal, length = rows[row, C_LITERAL], rows[row, C_LENGTH]
        same = same_text(key.texts, key.literal, key.length, table.literals, literal, length)
    k = key.begin
    while same and k < key.end:
        same = table.parts[rows[row, C_PARTS] + k - key.begin] == part_number(key, k)
        k += 1
    return same


@rare
def locate_condition(key, table, slots):
    """The wanted condition and its slot, or -1 and the free slot for it."""
    hashed = mixed(mixed(mixed(MIX_B, key.kind), key.test), key.limit)
    if is_step(key.kind):
        hashed = mixed(hashed, key.before)
    else:
        hashed = hash_text(hashed, key.texts, key.literal, key.length)
    for k in range(key.begin, key.end):
        hashed = mixed(hashed, part_number(key, k))
    return probe(slots, finished(hashed), is_same_condition, key, table)


@part
def condition_key(row, table, moved):
    """A condition of a table as a key; `moved` translates its parts."""
    rows = table.rows
    return ConditionKey(
        int(rows[row, C_KIND]),
        int(rows[row, C_TEST]),
        table.limits[row],
        int(rows[row, C_BEFORE]),
        int(rows[row, C_LITERAL]),
        int(rows[row, C_LENGTH]),
        int(rows[row, C_PARTS]),
        int(rows[row, C_PARTS_END]),
        table.literals,
        table.parts,
        moved,
    )


@kernel(late=True)
def index_conditions(table: ConditionArrays, first: int, count: int, slots: Writable[Int32s]) -> None:
    """Insert the conditions from `first` up to `count` into the slots."""
    for row in range(first, count):
        found, slot = locate_condition(condition_key(row, table, table.parts[:0]), table, slots)
        if found < 0:
            slots[slot] = row


@kernel(late=True)
def want_parts(rows: Matrix[Int32s], parts: Int32s, wanted: Writable[Bools]) -> None:
    """Mark all parts of the marked conditions, and the steps before them."""
    for row in range(len(rows) - 1, -1, -1):
        if wanted[row]:
            for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
                wanted[parts[k]] = True
            if is_step(rows[row, C_KIND]) and rows[row, C_BEFORE] >= 0:
                wanted[rows[row, C_BEFORE]] = True


@kernel(late=True)
def find_condition(
    kind: int,
    test: int,
    limit: np.uint64,
    before: int,
    text: UInt8s,
    parts: Int32s,
    table: ConditionArrays,
    slots: Int32s,
) -> int:
    """The number of the condition with this content, or -1."""
    key = ConditionKey(kind, test, limit, before, 0, len(text), 0, len(parts), text, parts, parts[:0])
    return locate_condition(key, table, slots)[0]  # type: ignore[no-any-return]


@part
def translated(key, names, moved):
    """A condition of another table with our names and our number of the previous step."""
    kind, test, before = key.kind & (DEEP - 1), key.test, key.before
    named = kind == ELEMENT or kind == ATTRIBUTE or kind == STEP
    if test >= 0 and (named or kind == PATH_ELEMENT or kind == PATH_ATTRIBUTE):
        test = int(names[test])
    if kind == STEP and before >= 0:
        before = int(moved[before])
    return ConditionKey(
        key.kind, test, key.limit, before, key.literal, key.length, key.begin, key.end, key.texts, key.parts, moved
    )


@part
def append_condition(key, hashed, table, sizes):
    """Append a condition to our table."""
    rows, row = table.rows, sizes[N_ROWS]
    table.limits[row], table.hashes[row] = key.limit, hashed
    rows[row, C_KIND], rows[row, C_TEST], rows[row, C_LENGTH] = key.kind, key.test, key.length
    rows[row, C_PARTS] = sizes[N_PARTS]
    for k in range(key.begin, key.end):
        table.parts[sizes[N_PARTS]] = key.moved[key.parts[k]]
        sizes[N_PARTS] += 1
    rows[row, C_PARTS_END] = sizes[N_PARTS]
    rows[row, C_PART] = key.moved[key.parts[key.begin]] if key.end > key.begin else NO_PART
    rows[row, C_BEFORE] = key.before
    if not is_step(key.kind):
        rows[row, C_LITERAL] = append_text(key, table.literals, sizes)
    sizes[N_ROWS] += 1
    return row


@part
def append_text(key, literals, sizes):
    """Append the text of a condition or test to the literals; return where it begins."""
    begin = sizes[N_LITERALS]
    for k in range(key.length):
        literals[begin + k] = key.texts[key.literal + k]
    sizes[N_LITERALS] = begin + key.length
    return begin


@kernel(late=True)
def merge_conditions(
    theirs: ConditionArrays,
    names: Int32s,
    moved: Writable[Int32s],
    table: ConditionRoom,
    slots: Writable[Int32s],
    sizes: Writable[Int64s],
) -> None:
    """Merge the conditions of another table; `names` translates its names, and `moved` receives the new numbers."""
    for their in range(len(theirs.rows)):
        if moved[their] == UNWANTED:
            continue
        key = translated(condition_key(their, theirs, moved), names, moved)
        row, slot = locate_condition(key, table, slots)
        if row < 0:
            row = append_condition(key, theirs.hashes[their], table, sizes)
            slots[slot] = row
        moved[their] = row


@part
def is_same_test(test, key, table):
    """Whether a value test of our table is the wanted one."""
    rows = table.rows
    return (
        rows[D_ELEMENT, test] == key.element
        and rows[D_PLACE, test] == key.place
        and rows[D_KIND, test] == key.kind
        and table.numbers[test] == key.number
        and same_text(key.texts, key.literal, key.length, table.literals, rows[D_LITERAL, test], rows[D_LENGTH, test])
    )


@rare
def locate_test(key, table, slots):
    """The wanted value test and its slot, or -1 and the free slot for it."""
    hashed = mixed(mixed(mixed(mixed(MIX_B, key.element), key.place), key.kind), key.number)
    hashed = hash_text(hashed, key.texts, key.literal, key.length)
    return probe(slots, finished(hashed), is_same_test, key, table)


@part
def value_test_key(test, table):
    """A value test of a table as a key."""
    rows = table.rows
    return ValueTestKey(
        int(rows[D_ELEMENT, test]),
        int(rows[D_PLACE, test]),
        int(rows[D_KIND, test]),
        table.numbers[test],
        int(rows[D_LITERAL, test]),
        int(rows[D_LENGTH, test]),
        table.literals,
    )


@kernel(late=True)
def intern_tests(table: ValueTestArrays, first: int, count: int, slots: Writable[Int32s]) -> None:
    """Insert the value tests from `first` up to `count` into the slots."""
    for test in range(first, count):
        found, slot = locate_test(value_test_key(test, table), table, slots)
        if found < 0:
            slots[slot] = test


@kernel(late=True)
def find_interned(
    element: int, place: int, kind: int, number: np.uint64, text: UInt8s, table: ValueTestArrays, slots: Int32s
) -> int:
    """The number of the value test with this content, or -1."""
    key = ValueTestKey(element, place, kind, number, 0, len(text), text)
    return locate_test(key, table, slots)[0]  # type: ignore[no-any-return]


@kernel(late=True)
def merge_tests(
    theirs: ValueTestArrays,
    names: Int32s,
    moved: Writable[Int32s],
    table: ValueTestRoom,
    slots: Writable[Int32s],
    sizes: Writable[Int64s],
) -> None:
    """Merge the value tests of another table; `names` translates its names, and `moved` receives the new numbers."""
    rows = table.rows
    for their in range(theirs.rows.shape[1]):
        if moved[their] == UNWANTED:
            continue
        key = value_test_key(their, theirs)
        element = int(names[key.element]) if key.element >= 0 else key.element
        place = int(names[key.place]) if key.place >= 0 else key.place
        key = ValueTestKey(element, place, key.kind, key.number, key.literal, key.length, key.texts)
        test, slot = locate_test(key, table, slots)
        if test < 0:
            test = sizes[N_ROWS]
            slots[slot] = test
            rows[D_ELEMENT, test], rows[D_PLACE, test], rows[D_KIND, test] = key.element, key.place, key.kind
            rows[D_LITERAL, test], rows[D_LENGTH, test] = append_text(key, table.literals, sizes), key.length
            table.numbers[test] = key.number
            sizes[N_ROWS] += 1
        moved[their] = test
