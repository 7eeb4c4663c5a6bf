# mypy: allow-untyped-defs, allow-untyped-calls
"""The beginning of a structure: the header of a packed document, and definitions of label paths.

`structure_encoder_kernels.py` explains the bytes. As everywhere in the decoder, a number is checked before it is used:
a header that announces more than its bytes can hold is rejected before anything is allocated for it.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Matrix, UInt8s, Writable, kernel, part
from pathcast.kernels.hash_table_kernels import probe

from .structure_encoder_kernels import FORM
from .varint_kernels import AT, WRONG, take_number

# Why a structure was rejected.
OK, CUT, NO_PATH, NO_PARENT, NO_PLACE, NO_NAME, REST, TOO_DEEP, OTHER_FORM, OTHER_DOCUMENT, EXCESS = range(11)
# Per structure: where its bytes begin and end, place and length of its document, first and number of its label paths
# and names (on a link all begin at 0); and how many elements, attributes and texts come before its own.
R_BEGIN, R_END, R_DATA, R_LENGTH, R_PATH, R_PATHS, R_NAME, R_NAMES = range(8)
R_ELEMENTS, R_ATTRIBUTES, R_TEXTS, R_ROWS = range(8, 12)
# The fewest bytes of an element with its position, of a value, of a label path, of a name.
ELEMENT_BYTES, VALUE_BYTES, PATH_BYTES, NAME_BYTES = 2, 3, 2, 2


class Definitions(NamedTuple):
    """Label paths and names as they are defined: parent and number of the last name; where names are spelled."""

    parents: Writable[Int32s]
    names: Writable[Int32s]
    starts: Writable[Int64s]
    lengths: Writable[Int64s]


@part
def take_name(data, end, defined, name, state):
    """Read a name that is spelled out; return why not, or `OK`."""
    length = take_number(data, end, state)
    if state[WRONG] != 0 or length > end - state[AT]:
        return CUT
    if length < 1:
        return NO_NAME
    defined.starts[name], defined.lengths[name] = state[AT], length
    state[AT] += length
    return OK


@part
def take_definitions(data, end, first, count, names, room, places, defined, state):
    """Read `count` definitions of label paths from path `first` on; return why not, and how many names are known then.

    `names` are known before, at most `room` can be; `places` are where paths and new names go in `defined`.
    """
    path_at, name_at = places
    known = names
    for path in range(count):
        parent = take_number(data, end, state) - 1
        number = take_number(data, end, state) - 1
        if state[WRONG] != 0:
            return CUT, known
        if number < 0:
            if known >= room:
                return EXCESS, known
            why = take_name(data, end, defined, name_at + known - names, state)
            if why != OK:
                return why, known
            number = known
            known += 1
        if parent >= first + path:
            return NO_PARENT, known
        if number >= known:
            return NO_NAME, known
        defined.parents[path_at + path], defined.names[path_at + path] = parent, number
    return OK, known


@kernel(late=True)
def read_definitions(
    data: UInt8s, begin: int, end: int, first: int, names: int, room: int, defined: Definitions, state: Writable[Int64s]
) -> int:
    """Read the definitions in `data[begin:end]`, of as many paths as `defined` holds: `OK`, or why not.

    Paths from `first` on are defined; `names` names are known before, at most `room` after that. `state[AT]` gets how
    many are known at the end.
    """
    state[AT], state[WRONG] = begin, 0
    count = len(defined.parents)
    why, known = take_definitions(data, end, first, count, names, room, (0, 0), defined, state)
    if why == OK and state[AT] != end:
        why = REST
    state[AT] = known
    return int(why)


@part
def take_header(data, begin, end, length, row, rows, state):
    """Read the header of a packed document into its row; return why not, or `OK`."""
    state[AT], state[WRONG] = begin + 1, 0
    if begin >= end:
        return CUT
    if data[begin] != FORM:
        return OTHER_FORM
    if take_number(data, end, state) != length:
        return OTHER_DOCUMENT if state[WRONG] == 0 else CUT
    paths, names = take_number(data, end, state), take_number(data, end, state)
    elements = take_number(data, end, state)
    attributes, texts = take_number(data, end, state), take_number(data, end, state)
    left = end - state[AT]
    least = PATH_BYTES * paths + NAME_BYTES * names + ELEMENT_BYTES * elements + VALUE_BYTES * (attributes + texts)
    if state[WRONG] != 0 or elements < 1 or least > left:
        return CUT
    rows[row, R_PATHS], rows[row, R_NAMES], rows[row, R_ELEMENTS] = paths, names, elements
    rows[row, R_ATTRIBUTES], rows[row, R_TEXTS] = attributes, texts
    rows[row, R_BEGIN] = state[AT]
    return OK


@kernel(late=True)
def read_headers(
    data: UInt8s,
    edges: Int64s,
    data_offsets: Int64s,
    rows: Writable[Matrix[Int64s]],
    why: Writable[Int64s],
    state: Writable[Int64s],
) -> None:
    """Read the headers of packed documents: their rows, one more for the totals. Those with a `why` are left out."""
    paths = names = elements = attributes = texts = np.int64(0)
    for row in range(len(edges) - 1):
        rows[row] = 0
        begin, end = edges[row], edges[row + 1]
        length = data_offsets[row + 1] - data_offsets[row]
        if why[row] == OK:
            why[row] = take_header(data, begin, end, length, row, rows, state)
        rows[row, R_END], rows[row, R_DATA], rows[row, R_LENGTH] = end, data_offsets[row], length
        rows[row, R_PATH], rows[row, R_NAME] = paths, names
        paths, names = paths + rows[row, R_PATHS], names + rows[row, R_NAMES]
        more, more_attributes, more_texts = rows[row, R_ELEMENTS], rows[row, R_ATTRIBUTES], rows[row, R_TEXTS]
        rows[row, R_ELEMENTS], rows[row, R_ATTRIBUTES], rows[row, R_TEXTS] = elements, attributes, texts
        elements, attributes, texts = elements + more, attributes + more_attributes, texts + more_texts
    last = len(edges) - 1
    rows[last] = 0
    rows[last, R_PATH], rows[last, R_NAME] = paths, names
    rows[last, R_ELEMENTS], rows[last, R_ATTRIBUTES], rows[last, R_TEXTS] = elements, attributes, texts


@part
def take_dictionary(data, row, rows, defined, depths, state):
    """Read the definitions of a packed document; return why not, or `OK`. Parents and names get their places."""
    end, path_at, name_at = rows[row, R_END], rows[row, R_PATH], rows[row, R_NAME]
    paths, names = rows[row, R_PATHS], rows[row, R_NAMES]
    state[AT], state[WRONG] = rows[row, R_BEGIN], 0
    why, known = take_definitions(data, end, 0, paths, 0, names, (path_at, name_at), defined, state)
    while why == OK and known < names:
        why = take_name(data, end, defined, name_at + known, state)
        known += 1
    if why != OK:
        return why
    for path in range(path_at, path_at + paths):
        parent = defined.parents[path]
        depths[path] = 1
        if parent >= 0:
            defined.parents[path] = path_at + parent
            depths[path] = depths[path_at + parent] + 1
        defined.names[path] += name_at
    rows[row, R_BEGIN] = state[AT]
    return OK


@kernel(late=True)
def read_dictionaries(
    data: UInt8s,
    rows: Writable[Matrix[Int64s]],
    defined: Definitions,
    depths: Writable[Int32s],
    why: Writable[Int64s],
    state: Writable[Int64s],
) -> int:
    """Read the definitions of all packed documents; return how many were rejected, with the reason in `why`."""
    rejected = 0
    for row in range(len(rows) - 1):
        if why[row] == OK:
            why[row] = take_dictionary(data, row, rows, defined, depths, state)
            rejected += why[row] != OK
    return rejected


@part
def is_same_spelling(number, place, spellings):
    """Whether the name at `place` is spelt as the one with this number."""
    data, starts, lengths, firsts = spellings
    known = firsts[number]
    if lengths[known] != lengths[place]:
        return False
    for byte in range(lengths[place]):
        if data[starts[known] + byte] != data[starts[place] + byte]:
            return False
    return True


@kernel(late=True)
def distinct_names(
    data: UInt8s,
    starts: Int64s,
    lengths: Int64s,
    slots: Writable[Int32s],
    firsts: Writable[Int32s],
    number_of: Writable[Int32s],
) -> int:
    """Number spellings from 0 in the order of `firsts`; return how many. `slots` are -1, and a power of two of them."""
    count = 0
    for place in range(len(starts)):
        start, length = starts[place], lengths[place]
        hashed = 2166136261
        for byte in range(start, start + length):
            hashed = ((hashed ^ int(data[byte])) * 16777619) & 0xFFFFFFFF
        spellings = data, starts, lengths, firsts
        number, slot = probe(slots, np.uint64(hashed ^ (hashed >> 15)), is_same_spelling, place, spellings)
        if number < 0:
            slots[slot] = number = count
            firsts[count] = place
            count += 1
        number_of[place] = number
    return count
