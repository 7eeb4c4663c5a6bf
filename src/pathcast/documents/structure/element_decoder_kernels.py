# mypy: allow-untyped-defs, allow-untyped-calls
"""Structures back to element arrays: elements and values. `structure_encoder_kernels.py` explains the bytes.

Every number is checked before it is used as a place, so that a damaged or hostile structure yields a reason, never a
read or write outside the arrays. What is allocated for a structure is a small multiple of its bytes.

Invariant: a structure that is rejected has written only to its own part of the arrays, so that the others of its batch
are unaffected.
Cost: some 4 ns per element and some 6 ns per value.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Matrix, UInt8s, Writable, kernel, part

from .header_and_dictionary_decoder_kernels import (
    CUT,
    NO_NAME,
    NO_PARENT,
    NO_PATH,
    NO_PLACE,
    OK,
    R_ATTRIBUTES,
    R_BEGIN,
    R_DATA,
    R_ELEMENTS,
    R_END,
    R_LENGTH,
    R_NAME,
    R_NAMES,
    R_PATH,
    R_PATHS,
    R_TEXTS,
    REST,
    TOO_DEEP,
)
from .structure_encoder_kernels import BACK, INLINE
from .varint_kernels import AT, WRONG, take_number

# Rows of the arrays of elements, attributes and texts.
E_NAME, E_PARENT, E_DEPTH, E_END, E_POSITION, E_TEXT, E_TEXT_END, E_ROWS = range(8)
V_OWNER, V_LENGTH, V_ROWS = range(3)
LARGEST = (1 << 31) - 1
NONE = -1


class Decoded(NamedTuple):
    """The arrays of a batch: `E_…` of elements; of attributes and texts name or parent (`V_OWNER`) and length."""

    elements: Writable[Matrix[Int32s]]
    attribute_begins: Writable[Int32s]
    attributes: Writable[Matrix[Int32s]]
    attribute_starts: Writable[Int64s]
    texts: Writable[Matrix[Int32s]]
    text_starts: Writable[Int64s]


class PathTable(NamedTuple):
    """Label paths by number: parent (`NONE`: none), id of the last name, depth."""

    parents: Int32s
    names: Int32s
    depths: Int32s


class Scratch(NamedTuple):
    """`stack` has two rows, open elements and their paths by depth; `state` is a reader's (`varint_kernels.py`)."""

    stack: Writable[Matrix[Int32s]]
    state: Writable[Int64s]


class Extent(NamedTuple):
    """One structure: where its bytes end, the place and length of its document, its elements in the arrays."""

    end: int
    base: int
    length: int
    first: int
    last: int


@part
def take_value(data, extent, last, starts, lengths, index, state):
    """Read a value and write where it lies; return where it ends in the document, or `last` if it is not there."""
    code = take_number(data, extent.end, state)
    if code & 1 and code != BACK:
        length = (code - INLINE) >> 1
        if length > extent.end - state[AT]:
            state[WRONG] = 1
            return last
        starts[index] = -1 - state[AT]
        lengths[V_LENGTH, index] = length
        state[AT] += length
        return last
    start = take_number(data, extent.end, state) if code == BACK else last + (code >> 1)
    length = take_number(data, extent.end, state)
    if state[WRONG] != 0 or start + length > extent.length:
        state[WRONG] = 1
        return last
    starts[index] = extent.base + start
    lengths[V_LENGTH, index] = length
    return start + length


@part
def take_paths(data, extent, row, rows, paths, elements, scratch):
    """Read the label paths of elements, with the names and depths that they imply; return why not, or `OK`.

    `E_TEXT_END` has the paths until it is known where the elements' texts end.
    """
    state, base, known = scratch.state, rows[row, R_PATH], rows[row, R_PATHS]
    for element in range(extent.first, extent.last):
        path = take_number(data, extent.end, state)
        if state[WRONG] != 0:
            return CUT
        if path >= known:
            return NO_PATH
        path += base
        if paths.depths[path] >= scratch.stack.shape[1]:
            return TOO_DEEP
        elements[E_NAME, element] = paths.names[path]
        elements[E_DEPTH, element] = paths.depths[path]
        elements[E_TEXT_END, element] = path
    return OK


@part
def take_positions(data, extent, elements, positions, state):
    """Read where start tags begin, if there are `positions`; return why not, or `OK`."""
    position = np.int64(0)
    if not positions:
        elements[E_POSITION, extent.first : extent.last] = 0
        return OK
    for element in range(extent.first, extent.last):
        moved = take_number(data, extent.end, state)
        position += -(moved >> 1) - 1 if moved & 1 else moved >> 1
        if state[WRONG] != 0:
            return CUT
        if position < NONE or position > LARGEST:
            return NO_PLACE
        elements[E_POSITION, element] = position
    return OK


@part
def take_attributes(data, extent, row, rows, names, decoded, state):
    """Read the attributes of elements; return why not, or `OK`."""
    base, known = rows[row, R_NAME], rows[row, R_NAMES]
    begins, last_attribute = decoded.attribute_begins, rows[row + 1, R_ATTRIBUTES]
    owner, begun, last = extent.first, extent.first, np.int64(0)
    for index in range(rows[row, R_ATTRIBUTES], last_attribute):
        owner += take_number(data, extent.end, state)
        code = take_number(data, extent.end, state)
        if state[WRONG] != 0:
            return CUT
        if owner >= extent.last:
            return NO_PARENT
        if code >= known:
            return NO_NAME
        last = take_value(data, extent, last, decoded.attribute_starts, decoded.attributes, index, state)
        if state[WRONG] != 0:
            return NO_PLACE
        decoded.attributes[V_OWNER, index] = names[base + code]
        while begun <= owner:
            begins[begun] = index
            begun += 1
    while begun < extent.last:
        begins[begun] = last_attribute
        begun += 1
    return OK


@part
def close_down_to(level, opened, element, text, stack, elements):
    """Close the elements that are open at this level and below it; they end before `element` and `text`."""
    while opened >= level:
        elements[E_END, stack[0, opened]] = element
        elements[E_TEXT_END, stack[0, opened]] = text
        opened -= 1
    return opened


@part
def take_tree(data, extent, row, rows, paths, decoded, scratch):
    """Hang elements on each other, and texts, which are read, in their places; return why not, or `OK`."""
    stack, state, elements = scratch.stack, scratch.state, decoded.elements
    text, texts = rows[row, R_TEXTS], rows[row + 1, R_TEXTS]
    opened, last = np.int64(0), np.int64(0)
    under, up = extent.last, np.int64(0)  # the element after whose start tag the next text comes; levels up to it
    if text < texts:
        under = extent.first + take_number(data, extent.end, state)
        up = take_number(data, extent.end, state)
    for element in range(extent.first, extent.last):
        path, level = elements[E_TEXT_END, element], np.int64(elements[E_DEPTH, element])
        if level > opened + 1 or (level == 1 and element > extent.first):
            return NO_PARENT
        if paths.parents[path] != (stack[1, level - 1] if level > 1 else NONE):
            return NO_PARENT
        close_down_to(level, opened, element, text, stack, elements)
        elements[E_PARENT, element] = stack[0, level - 1] if level > 1 else NONE
        stack[0, level], stack[1, level] = element, path
        opened = level
        elements[E_TEXT, element] = text
        while under == element:
            holder = level - up
            if state[WRONG] != 0 or holder < 1 or holder > opened:
                return NO_PARENT
            opened = close_down_to(holder + 1, opened, element + 1, text, stack, elements)
            last = take_value(data, extent, last, decoded.text_starts, decoded.texts, text, state)
            if state[WRONG] != 0:
                return NO_PLACE
            decoded.texts[V_OWNER, text] = stack[0, holder]
            text += 1
            under = extent.last
            if text < texts:
                under = element + take_number(data, extent.end, state)
                up = take_number(data, extent.end, state)
    if text < texts:
        return NO_PARENT if state[WRONG] == 0 else CUT
    close_down_to(1, opened, extent.last, text, stack, elements)
    return OK if state[AT] == extent.end else REST


@kernel(late=True)
def decode_structures(
    data: UInt8s,
    rows: Matrix[Int64s],
    first: int,
    last: int,
    paths: PathTable,
    attribute_names: Int32s,
    positions: bool,
    decoded: Decoded,
    scratch: Scratch,
    why: Writable[Int64s],
) -> int:
    """Decode the structures `first` to before `last` into a batch; return how many were rejected, with `why`.

    `attribute_names` are the ids of names by number. A structure that has a `why` before is left out.
    """
    rejected, state = 0, scratch.state
    for row in range(first, last):
        if why[row] != OK:
            continue
        begin, end = rows[row, R_ELEMENTS], rows[row + 1, R_ELEMENTS]
        extent = Extent(rows[row, R_END], rows[row, R_DATA], rows[row, R_LENGTH], begin, end)
        state[AT], state[WRONG] = rows[row, R_BEGIN], 0
        reason = take_paths(data, extent, row, rows, paths, decoded.elements, scratch)
        if reason == OK:
            reason = take_positions(data, extent, decoded.elements, positions, state)
        if reason == OK:
            reason = take_attributes(data, extent, row, rows, attribute_names, decoded, state)
        if reason == OK:
            reason = take_tree(data, extent, row, rows, paths, decoded, scratch)
        why[row] = reason
        rejected += reason != OK
    return rejected
