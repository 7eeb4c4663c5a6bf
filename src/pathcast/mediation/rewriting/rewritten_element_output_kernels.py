# mypy: allow-untyped-defs, allow-untyped-calls
"""Rewriting element arrays, second half: linked lists become element arrays.

Values are positions in the bytes and stay unchanged, except for text nodes that become adjacent: in XPath these are one
text node, so their bytes are copied together.

Cost: some 20 ns per element, 8 where nothing moves; the bytes of adjacent texts are copied once.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Elements, Values
from pathcast.kernels import Int32s, Int64s, Matrix, UInt8s, Writable, kernel, part

from .rewriting_table_layout_kernels import (
    ELEMENT,
    MARKER,
    N_ATTRIBUTES,
    N_NAME,
    NONE,
    O_END,
    O_FIRST,
    O_KIND,
    O_NAME,
    O_NEXT,
    O_SOURCE,
    O_TO,
    TEXT,
    WHOLE,
    RewritingPlan,
    span,
)

# Rows of the elements that are written.
E_NAME, E_PARENT, E_DEPTH, E_END, E_POSITION, E_ATTRIBUTES, E_TEXT, E_TEXT_END = 0, 1, 2, 3, 4, 5, 6, 7
ELEMENT_ROWS = 8
# How much was written.
W_ELEMENTS, W_ATTRIBUTES, W_TEXTS, W_BYTES = 0, 1, 2, 3


class SourceDocuments(NamedTuple):
    """The documents as they were read: the schema node and the position of each element, elements, and values."""

    nodes: Int32s
    positions: Int32s
    elements: Elements
    values: Values


class ValuePlaces(NamedTuple):
    """Attributes or text nodes: whose (a name, or a parent), and where each value lies."""

    of: Writable[Int32s]
    starts: Writable[Int64s]
    lengths: Writable[Int32s]


class RewrittenDocuments(NamedTuple):
    """What is written: elements, attributes, text nodes, bytes of texts that come together; how many of each.

    The elements of document `i` end at `offsets[i + 1]`.
    """

    elements: Writable[Matrix[Int32s]]
    attributes: ValuePlaces
    texts: ValuePlaces
    copied: Writable[UInt8s]
    counts: Writable[Int64s]
    offsets: Writable[Int64s]


@part
def copy_value(content, start, length, copied, at):
    """Write the bytes of a value at a place."""
    if start >= 0:
        for k in range(length):
            copied[at + k] = content.data[start + k]
    else:
        for k in range(length):
            copied[at + k] = content.arena[-1 - start + k]


@part
def join_text(start, length, content, to):
    """Append a value to the last text node written; the text is in `copied` afterwards."""
    (_, starts, lengths), copied, written = to.texts, to.copied, to.counts
    text, used, base = written[W_TEXTS] - 1, written[W_BYTES], len(content.arena)
    if starts[text] != -1 - (base + used - lengths[text]):  # it does not end where the next copy begins
        copy_value(content, starts[text], lengths[text], copied, used)
        starts[text] = -1 - (base + used)
        used += lengths[text]
    copy_value(content, start, length, copied, used)
    lengths[text] += length
    written[W_BYTES] = used + length


@part
def write_text(parent, start, length, to):
    """A text node."""
    text = to.counts[W_TEXTS]
    to.texts.of[text] = parent
    to.texts.starts[text] = start
    to.texts.lengths[text] = length
    to.counts[W_TEXTS] = text + 1


@part
def write_attributes(element, node, read, plan, to):
    """The attributes of an element, except those that become elements."""
    table, attributes, written = plan.nodes, plan.attributes, to.counts
    begins, names, starts, lengths = read
    out_names, out_starts, out_lengths = to.attributes
    first, begun = table[N_ATTRIBUTES, node] if node >= 0 else 0, written[W_ATTRIBUTES]
    others = span(table, N_ATTRIBUTES, node)
    for a in range(begins[element], begins[element + 1]):
        name, kept = names[a], True
        for k in range(first, first + others):
            if attributes[0, k] == names[a]:
                name, kept = attributes[1, k], not attributes[2, k]
        if others > 0:
            for known in range(begun, written[W_ATTRIBUTES]):
                kept = kept and out_names[known] != name
        if kept:
            at = written[W_ATTRIBUTES]
            out_names[at] = name
            out_starts[at] = starts[a]
            out_lengths[at] = lengths[a]
            written[W_ATTRIBUTES] = at + 1


@part
def write_run(run, parent, level, out, read, plan, to):
    """Siblings of which nothing moves, and all that is in and between them: their arrays, shifted, with other names."""
    _, names, parents, depths, ends = read.elements
    texts, begins = read.values.texts, read.values.attributes.begins
    elements, to_texts, written, table = to.elements, to.texts, to.counts, plan.nodes
    source, until, last = np.int64(out[run, O_SOURCE]), np.int64(out[run, O_END]), np.int64(out[run, O_TO])
    shift, deeper, above = written[W_ELEMENTS] - source, level - depths[source], parents[source]
    text_shift = written[W_TEXTS] - texts.begins[source]
    for element in range(source, until):
        at, node = element + shift, np.int64(read.nodes[element])
        elements[E_NAME, at] = table[N_NAME, node] if node >= 0 else names[element]
        elements[E_PARENT, at] = parents[element] + shift if parents[element] != above else parent
        elements[E_DEPTH, at] = depths[element] + deeper
        elements[E_END, at] = ends[element] + shift
        elements[E_POSITION, at] = read.positions[element]
        elements[E_TEXT, at] = texts.begins[element] + text_shift
        elements[E_TEXT_END, at] = texts.ends[element] + text_shift
        elements[E_ATTRIBUTES, at] = written[W_ATTRIBUTES]
        if begins[element] < begins[element + 1]:
            write_attributes(element, node, read.values.attributes, plan, to)
    for text in range(texts.begins[source], texts.ends[last]):
        to_texts.of[text + text_shift] = texts.parents[text] + shift if texts.parents[text] != above else parent
        to_texts.starts[text + text_shift] = texts.starts[text]
        to_texts.lengths[text + text_shift] = texts.lengths[text]
    written[W_ELEMENTS] = until + shift
    written[W_TEXTS] += texts.ends[last] - texts.begins[source]


@part
def begin_element(thing, parent, level, out, read, plan, to):
    """The start tag of an element that was linked by itself, with its attributes, or of a new one, with its text."""
    elements, written, attributes = to.elements, to.counts, read.values.attributes
    kind, source, this = out[thing, O_KIND], np.int64(out[thing, O_SOURCE]), written[W_ELEMENTS]
    written[W_ELEMENTS] = this + 1
    elements[E_NAME, this] = out[thing, O_NAME]
    elements[E_PARENT, this] = parent
    elements[E_DEPTH, this] = level
    elements[E_POSITION, this] = read.positions[source] if kind == ELEMENT else elements[E_POSITION, parent]
    elements[E_ATTRIBUTES, this] = written[W_ATTRIBUTES]
    elements[E_TEXT, this] = written[W_TEXTS]
    if kind == ELEMENT:
        write_attributes(source, np.int64(read.nodes[source]), attributes, plan, to)
    elif source != NONE and attributes.lengths[source]:
        write_text(this, attributes.starts[source], attributes.lengths[source], to)
    return this


@part
def emit_document(top, out, stack, read, plan, to):
    """Write the document whose list is `top`."""
    elements, written, texts = to.elements, to.counts, read.values.texts
    depth, level, parent = 0, 0, np.int64(NONE)
    joins = False  # whether the last that was written is a text of the element that is open
    at = np.int64(out[top, O_FIRST])
    while at != NONE or depth > 0:
        if at == NONE:
            depth -= 1
            thing = np.int64(stack[depth])
            if out[thing, O_KIND] != MARKER:
                elements[E_END, parent] = written[W_ELEMENTS]
                elements[E_TEXT_END, parent] = written[W_TEXTS]
                parent = np.int64(elements[E_PARENT, parent])
                level -= 1
                joins = False
            at = np.int64(out[thing, O_NEXT])
            continue
        kind, source = out[at, O_KIND], np.int64(out[at, O_SOURCE])
        if kind == TEXT:
            if joins:
                join_text(texts.starts[source], texts.lengths[source], read.values.content, to)
            else:
                write_text(parent, texts.starts[source], texts.lengths[source], to)
            joins = True
            at = np.int64(out[at, O_NEXT])
        elif kind == WHOLE:
            write_run(at, parent, level + 1, out, read, plan, to)
            joins = False
            at = np.int64(out[at, O_NEXT])
        else:
            stack[depth] = at
            depth += 1
            if kind != MARKER:
                level += 1
                parent = np.int64(begin_element(at, parent, level, out, read, plan, to))
                joins = False
            at = np.int64(out[at, O_FIRST])


@kernel(late=True)
def emit(
    tops: Int32s,
    things: Matrix[Int32s],
    stack: Writable[Int32s],
    read: SourceDocuments,
    plan: RewritingPlan,
    to: RewrittenDocuments,
) -> None:
    """Write the documents whose lists `tops` has, and where each ends."""
    for document in range(len(tops)):
        if tops[document] >= 0:
            emit_document(np.int64(tops[document]), things, stack, read, plan, to)
        to.offsets[document + 1] = to.counts[W_ELEMENTS]
