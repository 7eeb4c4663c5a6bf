# mypy: allow-untyped-defs, allow-untyped-calls
"""The structure of documents as bytes: the one encoding that links and tables of documents share.

    definitions  per label path: 1 + the number of its parent path (0: none), 1 + the number of its last name, or 0 and
                 the name spelled out (length, bytes), which takes the next number
    elements     per element the number of its label path, in document order; paths imply depths, and so the tree
    positions    per element the distance of its start tag from the previous one (packed documents only)
    attributes   elements since the previous attribute, number of the name, value
    texts        elements begun since the previous text, levels up to the text's parent, value

All numbers are varints (`varint_kernels.py`). A value is a place in the document, which is sent along: twice the
distance from the end of the previous value, and a length. A place before that end is 1, the place and a length. A value
that the document does not contain literally is twice its length plus 3, and its bytes.

Two variants. On a link both ends keep a dictionary: definitions are sent once, names of attributes are numbered by an
agreed list, and only requested values are written (`encode_document`). A packed document is self-contained
(`pack_documents`): form, document's length, number of label paths, names, elements, attributes and texts; all
definitions; the names that only attributes have (length, bytes); then elements with positions and all values.

Cost: some 4 ns per element and some 6 ns per value.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Bools, Int32s, Int64s, UInt8s, Writable, kernel, part

from ..document_batch_layout_kernels import Elements, Values
from .varint_kernels import put_bytes, put_number

FORM = 2
# What a request says of a name, as bits: its text nodes, its string-value.
TEXTS, VALUES = 1, 2
BACK, INLINE = 1, 3
NO_ROOM = -1
# No item without bytes of its own takes more.
ITEM_BYTES = 40


class RequestedValues(NamedTuple):
    """Which values are written, by number of a name: what of elements, the number of an attribute's name on the wire.

    `everywhere`, by number on the wire: the attribute is requested of every element; otherwise of those in `pairs`,
    sorted: number of the element's name << 32 | number on the wire.
    """

    flags: UInt8s
    codes: Int32s
    everywhere: Bools
    pairs: Int64s


class Everything(NamedTuple):
    """A request for all values, by number of a name: the number again, and True."""

    identity: Int32s
    everywhere: Bools


class Span(NamedTuple):
    """One document of a batch: its elements, and where its bytes begin."""

    begin: int
    end: int
    base: int


class BatchPaths(NamedTuple):
    """The label paths of a batch: that of each element; parent and last name of each path."""

    of: Int32s
    parents: Int32s
    names: Int32s


class NameBytes(NamedTuple):
    """Names as bytes: number `n` is `data[edges[n] : edges[n + 1]]`."""

    data: UInt8s
    edges: Int64s


class Numbers(NamedTuple):
    """The numbers that label paths and names have in one document, valid where the stamp is that of the document.

    `used` and `named` list the paths and the names by number; `of` has the path number of each element, `counts`
    the number of attributes and of texts.
    """

    path_stamps: Writable[Int32s]
    paths: Writable[Int32s]
    used: Writable[Int32s]
    name_stamps: Writable[Int32s]
    names: Writable[Int32s]
    named: Writable[Int32s]
    of: Writable[Int32s]
    counts: Writable[Int64s]


@part
def put_value(out, at, start, length, base, last, arena):
    """Write a value; return the place after it, and where the value ends in the document."""
    if start >= base and start >= 0:
        moved = start - base - last
        if moved >= 0:
            at = put_number(out, at, moved << 1)
        else:
            out[at] = BACK
            at = put_number(out, at + 1, start - base)
        return put_number(out, at, np.int64(length)), start - base + length
    at = put_number(out, at, (np.int64(length) << 1) + INLINE)
    return put_bytes(out, at, arena, -1 - start, length), last


@part
def put_definition(out, at, parent, number, known, spelled, name):
    """Write the definition of a label path; the name is spelled out if its `number` is the next one, `known`."""
    at = put_number(out, at, np.int64(parent) + 1)
    if number != known:
        return put_number(out, at, np.int64(number) + 1)
    out[at] = 0
    return put_name(out, at + 1, spelled, name)


@part
def put_name(out, at, spelled, name):
    """Write a name."""
    start = spelled.edges[name]
    length = spelled.edges[name + 1] - start
    return put_bytes(out, put_number(out, at, length), spelled.data, start, length)


@part
def put_paths(out, at, span, numbers):
    """Write the label paths of elements; `NO_ROOM` if they don't fit."""
    for element in range(span.end - span.begin):
        if at > len(out) - ITEM_BYTES:
            return np.int64(NO_ROOM)
        at = put_number(out, at, np.int64(numbers[element]))
    return at


@part
def put_positions(out, at, span, positions):
    """Write where start tags begin; `NO_ROOM` if they don't fit."""
    last = np.int64(0)
    for element in range(span.begin, span.end):
        if at > len(out) - ITEM_BYTES:
            return np.int64(NO_ROOM)
        moved = positions[element] - last
        at = put_number(out, at, -2 * moved - 1 if moved < 0 else 2 * moved)
        last = np.int64(positions[element])
    return at


@part
def is_requested(requested, element_name, code):
    """Whether an attribute is requested of elements with a name."""
    if requested.everywhere[code]:
        return True
    pairs, key = requested.pairs, np.int64(element_name) << 32 | code
    low, high = 0, len(pairs)
    while low < high:
        middle = (low + high) >> 1
        if pairs[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < len(pairs) and pairs[low] == key


@part
def put_attributes(out, at, span, names, values, translate, requested, counts):
    """Write the requested attributes and count them in `counts[0]`; `NO_ROOM` if they don't fit."""
    counts[0] = 0
    if len(requested.everywhere) == 0:
        return at
    attributes, before, last = values.attributes, span.begin, np.int64(0)
    for element in range(span.begin, span.end):
        for index in range(attributes.begins[element], attributes.begins[element + 1]):
            code = requested.codes[translate[attributes.names[index]]]
            if code < 0 or not is_requested(requested, translate[names[element]], code):
                continue
            start, length = attributes.starts[index], attributes.lengths[index]
            if at + length > len(out) - ITEM_BYTES:
                return np.int64(NO_ROOM)
            at = put_number(out, at, np.int64(element - before))
            at = put_number(out, at, np.int64(code))
            at, last = put_value(out, at, start, length, span.base, last, values.content.arena)
            before = element
            counts[0] += 1
    return at


@part
def find_wanted(span, elements, translate, requested, wanted):
    """Mark the elements whose texts are requested; return whether there are any."""
    some = False
    for element in range(span.begin, span.end):
        flag = requested.flags[translate[elements.names[element]]]
        above = elements.parents[element]
        if above >= span.begin and wanted[above - span.begin] & VALUES:
            flag |= VALUES
        wanted[element - span.begin] = flag
        some |= flag > 0
    return some


@part
def put_texts(out, at, span, elements, values, wanted, counts):
    """Write the texts of wanted elements (all if `wanted` is empty); `NO_ROOM` if they don't fit.

    `counts[1]` is how many.
    """
    counts[1] = 0
    texts, depths = values.texts, elements.depths
    last = np.int64(0)
    before = under = span.begin
    for index in range(texts.begins[span.begin], texts.ends[span.begin]):
        parent = texts.parents[index]
        while under + 1 < span.end and texts.begins[under + 1] <= index:
            under += 1
        if len(wanted) > 0 and wanted[parent - span.begin] == 0:
            continue
        length = texts.lengths[index]
        if at + length > len(out) - ITEM_BYTES:
            return np.int64(NO_ROOM)
        at = put_number(out, at, np.int64(under - before))
        at = put_number(out, at, np.int64(depths[under] - depths[parent]))
        at, last = put_value(out, at, texts.starts[index], length, span.base, last, values.content.arena)
        before = under
        counts[1] += 1
    return at


@kernel(late=True)
def encode_document(
    span: Span,
    elements: Elements,
    values: Values,
    paths: Int32s,
    translate: Int32s,
    requested: RequestedValues,
    wanted: Writable[UInt8s],
    out: Writable[UInt8s],
    counts: Writable[Int64s],
) -> int:
    """Write the elements and requested values of one document; return how many bytes, or `NO_ROOM`.

    `paths` are the numbers of its elements' label paths; `counts` gets the number of attributes and texts.
    """
    counts[:] = 0
    at = put_paths(out, np.int64(0), span, paths)
    if at != NO_ROOM:
        at = put_attributes(out, at, span, elements.names, values, translate, requested, counts)
    if at != NO_ROOM and span.begin < span.end and find_wanted(span, elements, translate, requested, wanted):
        at = put_texts(out, at, span, elements, values, wanted, counts)
    return int(at)


@kernel(late=True)
def write_definitions(
    parents: Int32s, names: Int32s, known: int, spelled: NameBytes, first: int, out: Writable[UInt8s]
) -> int:
    """Define the label paths from `first` on; return how many bytes. `out` has room for `ITEM_BYTES` each, and names.

    `names` has the number of each path's last name; `known` have been defined before, `spelled` are those after them.
    """
    at, next_name = np.int64(0), known
    for path in range(first, len(parents)):
        at = put_definition(out, at, parents[path], names[path], next_name, spelled, names[path] - known)
        if names[path] == next_name:
            next_name += 1
    return int(at)


@part
def number_document(document, span, paths, attributes, numbers):
    """Number the label paths of a document, then the names of these paths, then those of its attributes."""
    used = named = 0
    for element in range(span.begin, span.end):
        path = paths.of[element]
        if numbers.path_stamps[path] != document:
            numbers.path_stamps[path] = document
            numbers.paths[path] = used
            numbers.used[used] = path
            used += 1
            name = paths.names[path]
            if numbers.name_stamps[name] != document:
                numbers.name_stamps[name] = document
                numbers.names[name] = named
                numbers.named[named] = name
                named += 1
        numbers.of[element - span.begin] = numbers.paths[path]
    of_paths = named
    for index in range(attributes.begins[span.begin], attributes.begins[span.end]):
        name = attributes.names[index]
        if numbers.name_stamps[name] != document:
            numbers.name_stamps[name] = document
            numbers.names[name] = named
            numbers.named[named] = name
            named += 1
    return used, of_paths, named


@part
def put_dictionary(out, at, paths, spelled, numbers, used, of_paths, named):
    """Define the label paths and names of a document; `NO_ROOM` if they don't fit."""
    next_name = 0
    for number in range(used):
        path = numbers.used[number]
        name, parent = paths.names[path], paths.parents[path]
        if at + spelled.edges[name + 1] - spelled.edges[name] > len(out) - ITEM_BYTES:
            return np.int64(NO_ROOM)
        above = numbers.paths[parent] if parent >= 0 else np.int32(-1)
        at = put_definition(out, at, above, numbers.names[name], next_name, spelled, name)
        if numbers.names[name] == next_name:
            next_name += 1
    for number in range(of_paths, named):
        name = numbers.named[number]
        if at + spelled.edges[name + 1] - spelled.edges[name] > len(out) - ITEM_BYTES:
            return np.int64(NO_ROOM)
        at = put_name(out, at, spelled, name)
    return at


@part
def put_header(out, at, length, used, named, span, counts):
    """Write the header of a packed document; `NO_ROOM` if it doesn't fit."""
    if at > len(out) - ITEM_BYTES:
        return np.int64(NO_ROOM)
    out[at] = FORM
    at = put_number(out, at + 1, np.int64(length))
    at = put_number(out, put_number(out, at, np.int64(used)), np.int64(named))
    at = put_number(out, at, np.int64(span.end - span.begin))
    return put_number(out, put_number(out, at, counts[0]), counts[1])


@kernel(late=True)
def pack_documents(
    elements: Elements,
    values: Values,
    positions: Int32s,
    data_offsets: Int64s,
    paths: BatchPaths,
    spelled: NameBytes,
    everything: Everything,
    numbers: Numbers,
    out: Writable[UInt8s],
    edges: Writable[Int64s],
) -> int:
    """Write all documents of a batch, number `i` from `edges[i]` on; return how many bytes, or `NO_ROOM`.

    A document without elements has no bytes. The stamps of `numbers` are below 0.
    """
    at = np.int64(0)
    attributes, texts = values.attributes, values.texts
    none = values.content.data[:0]
    requested = RequestedValues(none, numbers.names, everything.everywhere, data_offsets[:0])
    counts = numbers.counts
    for document in range(len(elements.offsets) - 1):
        edges[document] = at
        span = Span(elements.offsets[document], elements.offsets[document + 1], data_offsets[document])
        if span.begin == span.end:
            continue
        used, of_paths, named = number_document(document, span, paths, attributes, numbers)
        counts[0] = attributes.begins[span.end] - attributes.begins[span.begin]
        counts[1] = texts.ends[span.begin] - texts.begins[span.begin]
        at = put_header(out, at, data_offsets[document + 1] - span.base, used, named, span, counts)
        if at != NO_ROOM:
            at = put_dictionary(out, at, paths, spelled, numbers, used, of_paths, named)
        if at != NO_ROOM:
            at = put_paths(out, at, span, numbers.of)
        if at != NO_ROOM:
            at = put_positions(out, at, span, positions)
        if at != NO_ROOM:
            at = put_attributes(out, at, span, elements.names, values, everything.identity, requested, counts)
        if at != NO_ROOM:
            at = put_texts(out, at, span, elements, values, none, counts)
        if at == NO_ROOM:
            return NO_ROOM
    edges[len(elements.offsets) - 1] = at
    return int(at)
