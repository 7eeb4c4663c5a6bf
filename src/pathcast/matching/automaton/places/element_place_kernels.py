# mypy: allow-untyped-defs, allow-untyped-calls
"""Places of elements, for kernels: counted among siblings and in the document, and written beside real attributes.

The children of an element are counted together: one pass numbers them by name, a second one reads the totals. A counter
belongs to a row (a name that patterns count), and is valid for one parent, or one document, whose stamp it carries.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Attributes, Elements
from pathcast.kernels import Int32s, Int64s, Matrix, Writable, kernel, part, rare

# Columns of wanted attributes: three groups (among siblings of the name, in the document, among all siblings) of three.
COLUMNS = 9
GROUPS, KINDS = 3, 3
SIBLINGS, DOCUMENT, ALL = range(GROUPS)
PLACE, FROM_END, TOTAL = range(KINDS)
# The row of names that are no element's: those of computed attributes.
COMPUTED = -1
# Rows of counters: the stamp of the parent or document, and the count.
C_STAMP, C_COUNT, C_ROWS = range(3)


class WantedPlaces(NamedTuple):
    """The computed attributes that patterns test.

    `row_of` has the row of each name of the table, 0 for names that no pattern counts; row 0 is about all elements.
    `columns` has the name number of each attribute in the batch, -1 if it is not wanted; `groups`, which groups are.
    """

    row_of: Int32s
    columns: Matrix[Int32s]
    groups: Int32s


class PlaceScratch(NamedTuple):
    """Per group and element its place and the total; counters by row; the last stamp."""

    places: Writable[Matrix[Int32s]]
    totals: Writable[Matrix[Int32s]]
    counters: Writable[Matrix[Int64s]]
    stamp: Writable[Int64s]


class AttributeRoom(NamedTuple):
    """Attributes to be written, as in `Attributes`."""

    begins: Writable[Int32s]
    names: Writable[Int32s]
    starts: Writable[Int64s]
    lengths: Writable[Int32s]


@part
def row_at(elements, numbers, row_of, element):
    """The row of an element's name."""
    number = numbers[elements.names[element]]
    return row_of[number] if 0 <= number < len(row_of) else 0


@part
def count_siblings(elements, numbers, wanted, scratch, first, end):
    """Number siblings, of which the first is given: among those of their name, and among all."""
    counters, stamp = scratch.counters, scratch.stamp
    stamp[0] += 1
    mine, count, child = stamp[0], 0, first
    while child < end:
        row = row_at(elements, numbers, wanted.row_of, child)
        if row > 0:
            if counters[C_STAMP, row] != mine:
                counters[C_STAMP, row], counters[C_COUNT, row] = mine, 0
            counters[C_COUNT, row] += 1
            scratch.places[SIBLINGS, child] = counters[C_COUNT, row]
        count += 1
        scratch.places[ALL, child] = count
        child = elements.ends[child]
    child = first
    while child < end:
        row = row_at(elements, numbers, wanted.row_of, child)
        if row > 0:
            scratch.totals[SIBLINGS, child] = counters[C_COUNT, row]
        scratch.totals[ALL, child] = count
        child = elements.ends[child]


@rare
def count_document(elements, numbers, wanted, scratch, begin, end):
    """Number the elements of a document by name."""
    counters, stamp = scratch.counters, scratch.stamp
    stamp[0] += 1
    mine = stamp[0]
    for element in range(begin, end):
        row = row_at(elements, numbers, wanted.row_of, element)
        if row > 0:
            if counters[C_STAMP, row] != mine:
                counters[C_STAMP, row], counters[C_COUNT, row] = mine, 0
            counters[C_COUNT, row] += 1
            scratch.places[DOCUMENT, element] = counters[C_COUNT, row]
    for element in range(begin, end):
        row = row_at(elements, numbers, wanted.row_of, element)
        if row > 0:
            scratch.totals[DOCUMENT, element] = counters[C_COUNT, row]


@part
def value_of(scratch, group, column, row, element, begin, end):
    """The value of a computed attribute."""
    if row == 0 and group == DOCUMENT:
        place, total = element - begin + 1, end - begin
    else:
        there = ALL if row == 0 else group
        place, total = scratch.places[there, element], scratch.totals[there, element]
    kind = column % KINDS
    return place if kind == PLACE else total if kind == TOTAL else total - place + 1


@kernel
def add_places(
    elements: Elements,
    attributes: Attributes,
    numbers: Int32s,
    wanted: WantedPlaces,
    digits: Int32s,
    arena: int,
    scratch: PlaceScratch,
    room: AttributeRoom,
) -> int:
    """Write the attributes of all elements, their own and the computed ones; return the largest value.

    The digits of a number are `digits[n] : digits[n + 1]` behind the first `arena` bytes of the arena.
    """
    largest, at = 0, 0
    row_of, columns = wanted.row_of, wanted.columns
    for document in range(len(elements.offsets) - 1):
        begin, end = elements.offsets[document], elements.offsets[document + 1]
        if begin < end and (wanted.groups[SIBLINGS] or wanted.groups[ALL]):
            for first in range(begin, end):  # the root, then the first child of each element before
                after = elements.ends[first - 1] if first > begin else np.int64(end)
                if first < after:
                    count_siblings(elements, numbers, wanted, scratch, first, after)
        if wanted.groups[DOCUMENT]:
            count_document(elements, numbers, wanted, scratch, begin, end)
        for element in range(begin, end):
            room.begins[element] = at
            for own in range(attributes.begins[element], attributes.begins[element + 1]):
                number = numbers[attributes.names[own]]
                if 0 <= number < len(row_of) and row_of[number] == COMPUTED:
                    continue
                room.names[at], room.starts[at] = attributes.names[own], attributes.starts[own]
                room.lengths[at] = attributes.lengths[own]
                at += 1
            row = row_at(elements, numbers, row_of, element)
            for which in range(2 if row > 0 else 1):
                asked = row if which else 0
                for column in range(COLUMNS):
                    if columns[asked, column] >= 0:
                        value = value_of(scratch, column // KINDS, column, asked, element, begin, end)
                        room.names[at] = columns[asked, column]
                        room.starts[at] = -1 - (arena + digits[value])
                        room.lengths[at] = digits[value + 1] - digits[value]
                        at += 1
                        largest = max(largest, value)
    room.begins[elements.offsets[len(elements.offsets) - 1]] = at
    return largest
