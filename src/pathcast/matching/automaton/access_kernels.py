# mypy: allow-untyped-defs, allow-untyped-calls
"""Access by value: which patterns with an equality on an attribute a document's attributes call for.

Equalities are kept in a hash table by (element, attribute, value); the element is ANY where the pattern does not name
it. A pattern becomes a candidate when its value occurs and its gate is open, so that a document without the value costs
nothing, however many patterns wait for other values.
"""

import numpy as np

from ...kernels import kernel, part, rare
from .value_kernels import number, same_text

ANY = -1
# Rows of the table of equalities, and what an attribute is asked about.
V_ELEMENT, V_ATTRIBUTE, V_IS_NUMBER, V_LITERAL, V_LENGTH, V_ROWS = range(6)
ASKS_TEXT, ASKS_NUMBER = 1, 2
HASH_A, HASH_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x100000001B3)
TEXT_SEED, NUMBER_SEED = np.uint64(0xCBF29CE484222325), np.uint64(0x84222325CBF29CE4)


@part
def hash_text(data, start, length):
    """A hash of some bytes."""
    hashed = TEXT_SEED
    for k in range(length):
        hashed = (hashed ^ np.uint64(data[start + k])) * HASH_B
    return hashed


@part
def slot_of(hashed, element, attribute, mask):
    """Where the search for an equality begins."""
    mixed = (hashed ^ np.uint64(element + 1) * HASH_A) * HASH_B ^ np.uint64(attribute) * HASH_A
    mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed * HASH_A >> np.uint64(20) & np.uint64(mask))


@part
def hash_number(value):
    """A hash that is equal for equal numbers."""
    scaled = value * 1024.0
    whole = np.int64(scaled) if -9e18 < scaled < 9e18 else np.int64(0)
    return NUMBER_SEED ^ np.uint64(whole) * HASH_A


@kernel("void(ro_i4[:, ::1], ro_f8[::1], ro_u1[::1], u8[::1], i4[::1])")
def index_equalities(rows, numbers, literals, hashes, slots):
    """Work out the hashes of all equalities and put them into the table."""
    mask = len(slots) - 1
    for row in range(rows.shape[1]):
        if rows[V_IS_NUMBER, row]:
            hashes[row] = hash_number(numbers[row])
        else:
            hashes[row] = hash_text(literals, np.int64(rows[V_LITERAL, row]), np.int64(rows[V_LENGTH, row]))
        slot = slot_of(hashes[row], rows[V_ELEMENT, row], rows[V_ATTRIBUTE, row], mask)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = row


@rare
def find_text(slots, rows, hashes, literals, hashed, element, attribute, data, start, length):
    """The equality of a text, or -1."""
    mask = len(slots) - 1
    slot = slot_of(hashed, element, attribute, mask)
    while True:
        row = np.int64(slots[slot])
        if row < 0:
            return row
        if (
            hashes[row] == hashed
            and rows[V_ELEMENT, row] == element
            and rows[V_ATTRIBUTE, row] == attribute
            and not rows[V_IS_NUMBER, row]
            and same_text(data, start, length, literals, rows[V_LITERAL, row], rows[V_LENGTH, row])
        ):
            return row
        slot = (slot + 1) & mask


@rare
def find_number(slots, rows, numbers, hashed, element, attribute, value):
    """The equality of a number, or -1."""
    mask = len(slots) - 1
    slot = slot_of(hashed, element, attribute, mask)
    while True:
        row = np.int64(slots[slot])
        if row < 0:
            return row
        if (
            rows[V_IS_NUMBER, row]
            and rows[V_ELEMENT, row] == element
            and rows[V_ATTRIBUTE, row] == attribute
            and numbers[row] == value
        ):
            return row
        slot = (slot + 1) & mask


@part
def call(row, begin, patterns, gate_of, gate_stamps, value_stamps, stamp, out, written):
    """Add the patterns that wait for an equality and whose gate is open; how many there are then, -1: no room."""
    if row < 0 or value_stamps[row] == stamp:
        return written
    value_stamps[row] = stamp
    if written + (begin[row + 1] - begin[row]) > len(out):
        return np.int64(-1)
    for k in range(begin[row], begin[row + 1]):
        pattern = patterns[k]
        if gate_stamps[gate_of[pattern]] == stamp:
            out[written] = pattern
            written += 1
    return written


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_u1[::1], ro_u1[::1], ro_i4[::1],"
    " ro_i1[::1], ro_i4[::1], ro_i4[:, ::1], ro_u8[::1], ro_f8[::1], ro_u1[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1],"
    " i8[::1], i8[::1], i8[::1], i8[::1], i4[::1], int64)"
)
def candidates_of(
    gate_offsets, gates, behind_begin, behind,
    offsets, names, attribute_begin, attribute_names, attribute_start, attribute_length, data, arena, translation,
    asks, slots, rows, hashes, numbers, literals, begin, patterns, gate_of,
    state, gate_stamps, value_stamps, out_offsets, out, first,
):  # fmt: skip
    """The candidates of each document from `first` on; the first document whose candidates found no room.

    `behind` are the patterns that wait behind a gate for no value, `patterns` those that wait for an equality.
    `state[0]` is the stamp of the last document.
    """
    written = out_offsets[first]
    for document in range(first, len(offsets) - 1):
        state[0] += 1
        stamp = state[0]
        opened, closed = gate_offsets[document], gate_offsets[document + 1]
        for index in range(opened, closed):
            gate = gates[index]
            gate_stamps[gate] = stamp
            if written + (behind_begin[gate + 1] - behind_begin[gate]) > len(out):
                return document
            for k in range(behind_begin[gate], behind_begin[gate + 1]):
                out[written] = behind[k]
                written += 1
        if closed > opened and len(numbers):
            for element in range(offsets[document], offsets[document + 1]):
                element_name = translation[names[element]]
                for index in range(attribute_begin[element], attribute_begin[element + 1]):
                    name = translation[attribute_names[index]]
                    asked = asks[name] if 0 <= name < len(asks) else 0
                    if not asked:
                        continue
                    start, length = attribute_start[index], np.int64(attribute_length[index])
                    for turn in range(2 if element_name >= 0 else 1):
                        holder = element_name if turn else np.int32(ANY)
                        if asked & ASKS_TEXT:
                            if start >= 0:
                                hashed = hash_text(data, start, length)
                                row = find_text(
                                    slots, rows, hashes, literals, hashed, holder, name, data, start, length
                                )
                            else:
                                hashed = hash_text(arena, -1 - start, length)
                                row = find_text(
                                    slots, rows, hashes, literals, hashed, holder, name, arena, -1 - start, length
                                )
                            written = call(
                                row, begin, patterns, gate_of, gate_stamps, value_stamps, stamp, out, written
                            )
                            if written < 0:
                                return document
                        if asked & ASKS_NUMBER:
                            value = number(data, start, length) if start >= 0 else number(arena, -1 - start, length)
                            if not np.isnan(value):
                                row = find_number(slots, rows, numbers, hash_number(value), holder, name, value)
                                written = call(
                                    row, begin, patterns, gate_of, gate_stamps, value_stamps, stamp, out, written
                                )
                                if written < 0:
                                    return document
        out_offsets[document + 1] = written
    return np.int64(len(offsets) - 1)
