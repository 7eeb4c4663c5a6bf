# mypy: allow-untyped-defs, allow-untyped-calls
"""Texts in arrays, found by what they say: for tables that hold a million of them and make no object for any.

A slot of the hash table holds nothing but the text's number; the bytes tell whether it is the right one.
"""

import numpy as np

from pathcast.kernels import kernel, rare

KEY_A, KEY_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x100000001B3)


@rare
def text_slot(text, begin, end, data, offsets, slots):
    """The slot of a text, or the free one where it belongs."""
    hashed = np.uint64(end - begin)
    for k in range(begin, end):
        hashed = (hashed ^ np.uint64(text[k])) * KEY_B
    mask = len(slots) - 1
    hashed = (hashed ^ hashed >> np.uint64(32)) * KEY_A
    slot = np.int64(hashed >> np.uint64(20) & np.uint64(mask))
    while True:
        number = slots[slot]
        if number < 0:
            return slot
        first = offsets[number]
        k = end - begin
        if offsets[number + 1] - first == k:
            while k > 0 and data[first + k - 1] == text[begin + k - 1]:
                k -= 1
            if k == 0:
                return slot
        slot = (slot + 1) & mask


@kernel("void(ro_u1[::1], ro_i8[::1], int64, int64, i4[::1])", late=True)
def index_texts(data, offsets, first, count, slots):
    """Put texts into the table of slots."""
    for number in range(first, count):
        slot = text_slot(data, offsets[number], offsets[number + 1], data, offsets, slots)
        if slots[slot] < 0:
            slots[slot] = number


@kernel("int64(ro_u1[::1], ro_u1[::1], ro_i8[::1], ro_i4[::1])", late=True)
def find_text(text, data, offsets, slots):
    """The number of a text, or -1."""
    return np.int64(slots[text_slot(text, np.int64(0), np.int64(len(text)), data, offsets, slots)])


@kernel("int64(ro_u1[::1], ro_i8[::1], u1[::1], i8[::1], int64, i4[::1], i4[::1])", late=True)
def merge_texts(their_data, their_offsets, data, offsets, count, slots, numbers):
    """Take over texts; `numbers` gets the number that each has here. How many there are now."""
    for their in range(len(their_offsets) - 1):
        begin, end = their_offsets[their], their_offsets[their + 1]
        slot = text_slot(their_data, begin, end, data, offsets, slots)
        if slots[slot] < 0:
            slots[slot] = count
            at = offsets[count]
            for k in range(begin, end):
                data[at + k - begin] = their_data[k]
            count += 1
            offsets[count] = at + end - begin
        numbers[their] = slots[slot]
    return count


@kernel("void(ro_u1[::1], ro_i8[::1], ro_i8[::1], ro_i8[::1], u1[::1])", late=True)
def gather_texts(data, offsets, chosen, out_offsets, out):
    """Write the chosen texts one after the other."""
    for index in range(len(chosen)):
        begin, at = offsets[chosen[index]], out_offsets[index]
        for k in range(out_offsets[index + 1] - at):
            out[at + k] = data[begin + k]
