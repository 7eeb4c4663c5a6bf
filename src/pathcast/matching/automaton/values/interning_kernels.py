# mypy: allow-untyped-defs, allow-untyped-calls
"""Interning: conditions and value tests found by what they say, in tables that are arrays.

Whoever makes conditions from patterns knows them by the patterns' parts (`condition_table.py`, `value_index.py`). Those
that came as arrays, from a snapshot or from another process, are known by their content: kind, name, literal, limit,
parts. A slot of a hash table holds nothing but a number; the rows tell whether it is the right one.

Invariant: parts stand before what they are parts of, so one pass over a table finds the numbers of all its parts.
Cost: some 0.1 µs a row.
"""

import numpy as np

from pathcast.kernels import kernel, part, rare

from ..verify.condition_kernels import (
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
from .comparison_kernels import same_text
from .value_hash_kernels import D_ELEMENT, D_KIND, D_LENGTH, D_LITERAL, D_PLACE

KEY_A, KEY_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
# `sizes`: how far the rows, the literals and the parts of a table are filled.
N_ROWS, N_LITERALS, N_PARTS, N_SIZES = range(4)
# In the place of a number: what nobody wants is not taken over.
UNWANTED = -2


@part
def mixed(hashed, value):
    """Take one number more into a hash."""
    hashed = (hashed ^ np.uint64(value)) * KEY_A
    return hashed ^ hashed >> np.uint64(29)


@part
def slot_at(hashed, mask):
    """Where the search for a hash begins."""
    return np.int64(hashed * KEY_B >> np.uint64(20) & np.uint64(mask))


@rare
def hash_text(hashed, data, begin, length):
    """Take a text into a hash."""
    for k in range(begin, begin + length):
        hashed = (hashed ^ np.uint64(data[k])) * KEY_B
    return mixed(hashed, length)


@part
def part_number(parts, at, moved):
    """A part as our table numbers it; `moved` is empty where it does so already."""
    return moved[parts[at]] if len(moved) else parts[at]


@rare
def condition_slot(
    kind, test, limit, before, literal, length, begin, end, texts, their_parts, moved,
    rows, limits, literals, parts, slots,
):  # fmt: skip
    """The slot of the condition that says this, or the free one where it belongs.

    Kind, test (a name or a test) and the step before are in our numbers; its parts are `their_parts[begin:end]`, which
    `moved` translates.
    """
    is_step = kind & (DEEP - 1) == STEP
    hashed = mixed(mixed(mixed(KEY_B, kind), test), limit)
    hashed = mixed(hashed, before) if is_step else hash_text(hashed, texts, literal, length)
    for k in range(begin, end):
        hashed = mixed(hashed, part_number(their_parts, k, moved))
    mask = len(slots) - 1
    slot = slot_at(hashed, mask)
    while True:
        row = slots[slot]
        if row < 0:
            return slot
        same = (
            rows[row, C_KIND] == kind
            and rows[row, C_TEST] == test
            and limits[row] == limit
            and rows[row, C_PARTS_END] - rows[row, C_PARTS] == end - begin
        )
        if same and is_step:
            same = rows[row, C_BEFORE] == before
        elif same:
            same = same_text(texts, literal, length, literals, rows[row, C_LITERAL], rows[row, C_LENGTH])
        k = begin
        while same and k < end:
            same = parts[rows[row, C_PARTS] + k - begin] == part_number(their_parts, k, moved)
            k += 1
        if same:
            return slot
        slot = (slot + 1) & mask


@kernel(
    "void(ro_i4[:, ::1], ro_u8[::1], ro_u1[::1], ro_i4[::1], int64, int64, ro_i4[::1], i4[::1])",
    late=True,
)
def index_conditions(rows, limits, literals, parts, first, count, nothing, slots):
    """Put conditions into the table of slots; `nothing` is an empty array."""
    for row in range(first, count):
        slot = condition_slot(
            np.int64(rows[row, C_KIND]), np.int64(rows[row, C_TEST]), limits[row], np.int64(rows[row, C_BEFORE]),
            np.int64(rows[row, C_LITERAL]), np.int64(rows[row, C_LENGTH]), np.int64(rows[row, C_PARTS]),
            np.int64(rows[row, C_PARTS_END]), literals, parts, nothing, rows, limits, literals, parts, slots,
        )  # fmt: skip
        if slots[slot] < 0:
            slots[slot] = row


@kernel("void(ro_i4[:, ::1], ro_i4[::1], b1[::1])", late=True)
def want_parts(rows, parts, wanted):
    """Mark all that the marked conditions are made of, and the steps before them."""
    for row in range(len(rows) - 1, -1, -1):
        if wanted[row]:
            for k in range(rows[row, C_PARTS], rows[row, C_PARTS_END]):
                wanted[parts[k]] = True
            if rows[row, C_KIND] & (DEEP - 1) == STEP and rows[row, C_BEFORE] >= 0:
                wanted[rows[row, C_BEFORE]] = True


@kernel(
    "int64(int64, int64, uint64, int64, ro_u1[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_u8[::1], ro_u1[::1], ro_i4[::1], ro_i4[::1])",
    late=True,
)
def find_condition(kind, test, limit, before, text, its_parts, nothing, rows, limits, literals, parts, slots):
    """The number of the condition that says this, or -1."""
    slot = condition_slot(
        kind, test, limit, before, np.int64(0), np.int64(len(text)), np.int64(0), np.int64(len(its_parts)), text,
        its_parts, nothing, rows, limits, literals, parts, slots,
    )  # fmt: skip
    return np.int64(slots[slot])


@kernel(
    "void(ro_i4[:, ::1], ro_u8[::1], ro_u8[::1], ro_u1[::1], ro_i4[::1], ro_i4[::1], i4[::1],"
    " i4[:, ::1], u8[::1], u8[::1], u1[::1], i4[::1], i4[::1], i8[::1])",
    late=True,
)
def merge_conditions(
    their_rows, their_limits, their_hashes, their_literals, their_parts, names, moved,
    rows, limits, hashes, literals, parts, slots, sizes,
):  # fmt: skip
    """Take over the conditions of another table, which `names` translates to our names; `moved` gets their numbers."""
    for their in range(len(their_rows)):
        if moved[their] == UNWANTED:
            continue
        kind, test = np.int64(their_rows[their, C_KIND]), np.int64(their_rows[their, C_TEST])
        plain = kind & (DEEP - 1)
        named = plain == ELEMENT or plain == ATTRIBUTE or plain == STEP
        if test >= 0 and (named or plain == PATH_ELEMENT or plain == PATH_ATTRIBUTE):
            test = np.int64(names[test])
        before = np.int64(their_rows[their, C_BEFORE])
        literal, length = before, np.int64(their_rows[their, C_LENGTH])
        if plain == STEP and before >= 0:
            before = np.int64(moved[before])
        begin, end = np.int64(their_rows[their, C_PARTS]), np.int64(their_rows[their, C_PARTS_END])
        slot = condition_slot(
            kind, test, their_limits[their], before, literal, length, begin, end, their_literals, their_parts, moved,
            rows, limits, literals, parts, slots,
        )  # fmt: skip
        if slots[slot] < 0:
            row = sizes[N_ROWS]
            slots[slot] = row
            limits[row], hashes[row] = their_limits[their], their_hashes[their]
            rows[row, C_KIND], rows[row, C_TEST], rows[row, C_LENGTH] = kind, test, length
            rows[row, C_PARTS] = sizes[N_PARTS]
            for k in range(begin, end):
                parts[sizes[N_PARTS]] = moved[their_parts[k]]
                sizes[N_PARTS] += 1
            rows[row, C_PARTS_END] = sizes[N_PARTS]
            rows[row, C_PART] = moved[their_parts[begin]] if end > begin else NO_PART
            rows[row, C_BEFORE] = before
            if plain != STEP:
                rows[row, C_LITERAL] = sizes[N_LITERALS]
                for k in range(length):
                    literals[sizes[N_LITERALS]] = their_literals[literal + k]
                    sizes[N_LITERALS] += 1
            sizes[N_ROWS] += 1
        moved[their] = slots[slot]


@rare
def test_slot(element, place, kind, number, literal, length, texts, rows, numbers, literals, slots):
    """The slot of the value test that says this, or the free one where it belongs."""
    hashed = mixed(mixed(mixed(mixed(KEY_B, element), place), kind), number)
    mask = len(slots) - 1
    slot = slot_at(hash_text(hashed, texts, literal, length), mask)
    while True:
        test = slots[slot]
        if test < 0 or (
            rows[D_ELEMENT, test] == element
            and rows[D_PLACE, test] == place
            and rows[D_KIND, test] == kind
            and numbers[test] == number
            and same_text(texts, literal, length, literals, rows[D_LITERAL, test], rows[D_LENGTH, test])
        ):
            return slot
        slot = (slot + 1) & mask


@kernel("void(ro_i4[:, ::1], ro_u8[::1], ro_u1[::1], int64, int64, i4[::1])", late=True)
def intern_tests(rows, numbers, literals, first, count, slots):
    """Put value tests into the table of slots."""
    for test in range(first, count):
        slot = test_slot(
            np.int64(rows[D_ELEMENT, test]), np.int64(rows[D_PLACE, test]), np.int64(rows[D_KIND, test]), numbers[test],
            np.int64(rows[D_LITERAL, test]), np.int64(rows[D_LENGTH, test]), literals, rows, numbers, literals, slots,
        )  # fmt: skip
        if slots[slot] < 0:
            slots[slot] = test


@kernel("int64(int64, int64, int64, uint64, ro_u1[::1], ro_i4[:, ::1], ro_u8[::1], ro_u1[::1], ro_i4[::1])", late=True)
def find_interned(element, place, kind, number, text, rows, numbers, literals, slots):
    """The number of the value test that says this, or -1."""
    length = np.int64(len(text))
    return np.int64(
        slots[test_slot(element, place, kind, number, np.int64(0), length, text, rows, numbers, literals, slots)]
    )


@kernel(
    "void(ro_i4[:, ::1], ro_u8[::1], ro_u1[::1], ro_i4[::1], i4[::1], i4[:, ::1], u8[::1], u1[::1], i4[::1], i8[::1])",
    late=True,
)
def merge_tests(their_rows, their_numbers, their_literals, names, moved, rows, numbers, literals, slots, sizes):
    """Take over the value tests of another table, which `names` translates to our names; `moved` gets their numbers."""
    for their in range(their_rows.shape[1]):
        if moved[their] == UNWANTED:
            continue
        element, place = np.int64(their_rows[D_ELEMENT, their]), np.int64(their_rows[D_PLACE, their])
        if element >= 0:
            element = np.int64(names[element])
        if place >= 0:
            place = np.int64(names[place])
        kind, literal = np.int64(their_rows[D_KIND, their]), np.int64(their_rows[D_LITERAL, their])
        length = np.int64(their_rows[D_LENGTH, their])
        slot = test_slot(element, place, kind, their_numbers[their], literal, length, their_literals, rows, numbers,
                         literals, slots)  # fmt: skip
        if slots[slot] < 0:
            test = sizes[N_ROWS]
            slots[slot] = test
            rows[D_ELEMENT, test], rows[D_PLACE, test], rows[D_KIND, test] = element, place, kind
            rows[D_LITERAL, test], rows[D_LENGTH, test] = sizes[N_LITERALS], length
            numbers[test] = their_numbers[their]
            for k in range(length):
                literals[sizes[N_LITERALS]] = their_literals[literal + k]
                sizes[N_LITERALS] += 1
            sizes[N_ROWS] += 1
        moved[their] = slots[slot]
