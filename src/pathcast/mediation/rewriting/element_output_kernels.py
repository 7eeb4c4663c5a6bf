# mypy: allow-untyped-defs, allow-untyped-calls
"""Rewriting element arrays, second half: what was linked becomes element arrays.

Values are places in bytes and stay where they are, but for text nodes that have come to stand side by side: to XPath
these are one text node, so their bytes are copied together.

Cost: some 20 ns an element, 8 where nothing moves; the bytes of texts that come together are copied,
once.
"""

import numpy as np

from pathcast.kernels import kernel, part

from .layout_kernels import (
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
    span,
)

# Rows of the elements that are written.
E_NAME, E_PARENT, E_DEPTH, E_END, E_POSITION, E_ATTRIBUTES, E_TEXT, E_TEXT_END = 0, 1, 2, 3, 4, 5, 6, 7
ELEMENT_ROWS = 8
# How much was written.
W_ELEMENTS, W_ATTRIBUTES, W_TEXTS, W_BYTES = 0, 1, 2, 3


@part
def copy_value(data, arena, start, length, copied, at):
    """Write the bytes of a value at a place."""
    if start >= 0:
        for k in range(length):
            copied[at + k] = data[start + k]
    else:
        for k in range(length):
            copied[at + k] = arena[-1 - start + k]


@part
def join_text(start, length, data, arena, texts, copied, written):
    """Put a value behind the last text node that was written; it is in `copied` afterwards."""
    _, starts, lengths = texts
    text, used, base = written[W_TEXTS] - 1, written[W_BYTES], len(arena)
    if starts[text] != -1 - (base + used - lengths[text]):  # it does not end where the next copy begins
        copy_value(data, arena, starts[text], lengths[text], copied, used)
        starts[text] = -1 - (base + used)
        used += lengths[text]
    copy_value(data, arena, start, length, copied, used)
    lengths[text] += length
    written[W_BYTES] = used + length


@part
def write_text(parent, start, length, texts, written):
    """A text node."""
    text_parent, starts, lengths = texts
    text = written[W_TEXTS]
    text_parent[text] = parent
    starts[text] = start
    lengths[text] = length
    written[W_TEXTS] = text + 1


@part
def write_attributes(source, node, tables, from_attributes, to_attributes, written):
    """The attributes of an element, but for those that become elements."""
    table, attributes = tables
    begin, names, starts, lengths = from_attributes
    out_names, out_starts, out_lengths = to_attributes
    first, begun = table[N_ATTRIBUTES, node] if node >= 0 else 0, written[W_ATTRIBUTES]
    others = span(table, N_ATTRIBUTES, node)
    for a in range(begin[source], begin[source + 1]):
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
def write_run(run, parent, level, out, from_elements, from_attributes, from_texts, tables, to, written):
    """Siblings of which nothing moves, and all that is in and between them: their arrays, shifted, with other names."""
    nodes, name, parents, depth, end, position, text_begin, text_end = from_elements
    text_parent, text_start, text_length = from_texts
    elements, to_attributes, (to_parent, to_start, to_length) = to
    table, begin = tables[0], from_attributes[0]
    source, until, last = np.int64(out[run, O_SOURCE]), np.int64(out[run, O_END]), np.int64(out[run, O_TO])
    shift, deeper, above = written[W_ELEMENTS] - source, level - depth[source], parents[source]
    text_shift = written[W_TEXTS] - text_begin[source]
    for element in range(source, until):
        at, node = element + shift, np.int64(nodes[element])
        elements[E_NAME, at] = table[N_NAME, node] if node >= 0 else name[element]
        elements[E_PARENT, at] = parents[element] + shift if parents[element] != above else parent
        elements[E_DEPTH, at] = depth[element] + deeper
        elements[E_END, at] = end[element] + shift
        elements[E_POSITION, at] = position[element]
        elements[E_TEXT, at] = text_begin[element] + text_shift
        elements[E_TEXT_END, at] = text_end[element] + text_shift
        elements[E_ATTRIBUTES, at] = written[W_ATTRIBUTES]
        if begin[element] < begin[element + 1]:
            write_attributes(element, node, tables, from_attributes, to_attributes, written)
    for text in range(text_begin[source], text_end[last]):
        to_parent[text + text_shift] = text_parent[text] + shift if text_parent[text] != above else parent
        to_start[text + text_shift] = text_start[text]
        to_length[text + text_shift] = text_length[text]
    written[W_ELEMENTS] = until + shift
    written[W_TEXTS] += text_end[last] - text_begin[source]


@part
def begin_element(thing, parent, level, out, from_elements, from_attributes, tables, to, written):
    """The start tag of an element that was linked by itself, with its attributes, or of a new one, with its text."""
    elements, to_attributes, to_texts = to
    kind, source, this = out[thing, O_KIND], np.int64(out[thing, O_SOURCE]), written[W_ELEMENTS]
    written[W_ELEMENTS] = this + 1
    elements[E_NAME, this] = out[thing, O_NAME]
    elements[E_PARENT, this] = parent
    elements[E_DEPTH, this] = level
    elements[E_POSITION, this] = from_elements[5][source] if kind == ELEMENT else elements[E_POSITION, parent]
    elements[E_ATTRIBUTES, this] = written[W_ATTRIBUTES]
    elements[E_TEXT, this] = written[W_TEXTS]
    if kind == ELEMENT:
        node = np.int64(from_elements[0][source])
        write_attributes(source, node, tables, from_attributes, to_attributes, written)
    elif source != NONE and from_attributes[3][source]:
        write_text(this, from_attributes[2][source], from_attributes[3][source], to_texts, written)
    return this


@part
def emit_document(top, out, stack, from_elements, from_attributes, from_texts, values, tables, to, written):
    """Write the document whose list is `top`."""
    (elements, _, to_texts), (data, arena, copied) = to, values
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
                join_text(from_texts[1][source], from_texts[2][source], data, arena, to_texts, copied, written)
            else:
                write_text(parent, from_texts[1][source], from_texts[2][source], to_texts, written)
            joins = True
            at = np.int64(out[at, O_NEXT])
        elif kind == WHOLE:
            write_run(at, parent, level + 1, out, from_elements, from_attributes, from_texts, tables, to, written)
            joins = False
            at = np.int64(out[at, O_NEXT])
        else:
            stack[depth] = at
            depth += 1
            if kind != MARKER:
                level += 1
                parent = np.int64(
                    begin_element(at, parent, level, out, from_elements, from_attributes, tables, to, written)
                )
                joins = False
            at = np.int64(out[at, O_FIRST])


@kernel(
    "void(ro_i4[::1], ro_i4[:, ::1], i4[::1],"
    # what was read: nodes, names, parents, depths, ends, positions, texts of elements; attributes; texts; bytes
    " Tuple((ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1])),"
    " Tuple((ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1])), Tuple((ro_i4[::1], ro_i8[::1], ro_i4[::1])),"
    " Tuple((ro_u1[::1], ro_u1[::1], u1[::1])),"
    # the plan, and what is written: elements, attributes, texts
    " Tuple((ro_i4[:, ::1], ro_i4[:, ::1])),"
    " Tuple((i4[:, ::1], Tuple((i4[::1], i8[::1], i4[::1])), Tuple((i4[::1], i8[::1], i4[::1])))), i8[::1], i8[::1])",
    late=True,
)
def emit(tops, out, stack, from_elements, from_attributes, from_texts, values, tables, to, written, offsets):
    """Write the documents whose lists `tops` has, and where each ends."""
    for document in range(len(tops)):
        if tops[document] >= 0:
            emit_document(
                np.int64(tops[document]), out, stack, from_elements, from_attributes, from_texts, values, tables, to,
                written,
            )  # fmt: skip
        offsets[document + 1] = written[W_ELEMENTS]
