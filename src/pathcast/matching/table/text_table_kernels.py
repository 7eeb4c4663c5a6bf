# mypy: allow-untyped-defs, allow-untyped-calls
"""Texts in arrays, found by content: for tables of a million texts without a Python object per text.

A slot of the hash table holds only the text's number; the bytes show whether it is the right one.
"""

import numpy as np

from pathcast.kernels import kernel, part, rare
from pathcast.kernels.hash_table_kernels import FNV_PRIME, MIX_A, probe


@part
def is_same_text(number, key, table):
    """Whether a text of the table is the wanted one."""
    text, begin, end = key
    data, offsets = table
    first, length = offsets[number], end - begin
    if offsets[number + 1] - first != length:
        return False
    while length > 0 and data[first + length - 1] == text[begin + length - 1]:
        length -= 1
    return length == 0


@rare
def locate_text(text, begin, end, data, offsets, slots):
    """The number of a text and its slot, or -1 and the free slot for it."""
    hashed = np.uint64(end - begin)
    for k in range(begin, end):
        hashed = (hashed ^ np.uint64(text[k])) * FNV_PRIME
    hashed = (hashed ^ hashed >> np.uint64(32)) * MIX_A >> np.uint64(20)
    return probe(slots, hashed, is_same_text, (text, begin, end), (data, offsets))


@kernel("void(ro_u1[::1], ro_i8[::1], int64, int64, i4[::1])", late=True)
def index_texts(data, offsets, first, count, slots):
    """Insert texts into the table of slots."""
    for number in range(first, count):
        found, slot = locate_text(data, offsets[number], offsets[number + 1], data, offsets, slots)
        if found < 0:
            slots[slot] = number


@kernel("int64(ro_u1[::1], ro_u1[::1], ro_i8[::1], ro_i4[::1])", late=True)
def find_text(text, data, offsets, slots):
    """The number of a text, or -1."""
    return locate_text(text, np.int64(0), np.int64(len(text)), data, offsets, slots)[0]


@kernel("int64(ro_u1[::1], ro_i8[::1], u1[::1], i8[::1], int64, i4[::1], i4[::1])", late=True)
def merge_texts(their_data, their_offsets, data, offsets, count, slots, numbers):
    """Merge texts; `numbers` receives the number of each in ours. Returns the new count."""
    for their in range(len(their_offsets) - 1):
        begin, end = their_offsets[their], their_offsets[their + 1]
        number, slot = locate_text(their_data, begin, end, data, offsets, slots)
        if number < 0:
            slots[slot] = number = count
            at = offsets[count]
            for k in range(begin, end):
                data[at + k - begin] = their_data[k]
            count += 1
            offsets[count] = at + end - begin
        numbers[their] = number
    return count


@kernel("void(ro_u1[::1], ro_i8[::1], ro_i8[::1], ro_i8[::1], u1[::1])", late=True)
def gather_texts(data, offsets, chosen, out_offsets, out):
    """Write the chosen texts one after the other."""
    for index in range(len(chosen)):
        begin, at = offsets[chosen[index]], out_offsets[index]
        for k in range(out_offsets[index + 1] - at):
            out[at + k] = data[begin + k]
