# mypy: allow-untyped-defs, allow-untyped-calls
"""Rewriting element arrays, second half: what was linked becomes element arrays.

Values are places in bytes and stay where they are, but for text nodes that have come to stand side by side: to XPath
these are one text node, so their bytes are copied together.

Cost: some 20 ns an element; the bytes of texts that come together are copied, once.
"""

import numpy as np

from ..kernels import kernel, part
from .rewrite_kernels import (
    ELEMENT,
    MARKER,
    N_ATTRIBUTES,
    NEW,
    NONE,
    O_FIRST,
    O_KIND,
    O_NAME,
    O_NEXT,
    O_SOURCE,
    TEXT,
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
def join_text(data, arena, text, start, length, starts, lengths, copied, written):
    """Put a value behind the last text node that was written; it is in `copied` afterwards."""
    used, base = written[W_BYTES], len(arena)
    if starts[text] != -1 - (base + used - lengths[text]):  # it does not end where the next copy begins
        copy_value(data, arena, starts[text], lengths[text], copied, used)
        starts[text] = -1 - (base + used)
        used += lengths[text]
    copy_value(data, arena, start, length, copied, used)
    lengths[text] += length
    written[W_BYTES] = used + length


@part
def write_text(parent, start, length, text_parent, starts, lengths, written):
    """A text node."""
    text = written[W_TEXTS]
    text_parent[text] = parent
    starts[text] = start
    lengths[text] = length
    written[W_TEXTS] = text + 1


@part
def write_attributes(
    source, node, table, attributes, begin, names, starts, lengths, out_names, out_starts, out_lengths, written
):
    """The attributes of an element, but for those that become elements."""
    first, begun = table[N_ATTRIBUTES, node] if node >= 0 else 0, written[W_ATTRIBUTES]
    for a in range(begin[source], begin[source + 1]):
        name, kept = names[a], True
        for k in range(first, first + span(table, N_ATTRIBUTES, node)):
            if attributes[0, k] == names[a]:
                name, kept = attributes[1, k], not attributes[2, k]
        if name != names[a] or first < table[N_ATTRIBUTES, node + 1]:
            for known in range(begun, written[W_ATTRIBUTES]):
                kept = kept and out_names[known] != name
        if kept:
            at = written[W_ATTRIBUTES]
            out_names[at] = name
            out_starts[at] = starts[a]
            out_lengths[at] = lengths[a]
            written[W_ATTRIBUTES] = at + 1


@kernel(
    "void(int64, ro_i4[:, ::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[:, ::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_u1[::1], ro_u1[::1],"
    " i4[::1], i4[:, ::1], i4[::1], i8[::1], i4[::1], i4[::1], i8[::1], i4[::1], u1[::1], i8[::1])",
    late=True,
)
def emit(
    top, out, nodes, table, attributes, position,
    attribute_begin, attribute_name, attribute_start, attribute_length, text_start, text_length, data, arena,
    stack, elements, out_name, out_start, out_length, text_parent, out_text_start, out_text_length, copied, written,
):  # fmt: skip
    """Write the document whose list is `top`."""
    depth, level, parent = 0, 0, np.int64(NONE)
    joins = False  # whether the last that was written is a text of the element that is open
    at = np.int64(out[O_FIRST, top])
    while True:
        if at == NONE:
            if depth == 0:
                return
            depth -= 1
            thing = np.int64(stack[depth])
            if out[O_KIND, thing] != MARKER:
                elements[E_END, parent] = written[W_ELEMENTS]
                elements[E_TEXT_END, parent] = written[W_TEXTS]
                parent = np.int64(elements[E_PARENT, parent])
                level -= 1
                joins = False
            at = np.int64(out[O_NEXT, thing])
            continue
        kind, source = out[O_KIND, at], np.int64(out[O_SOURCE, at])
        if kind == TEXT:
            if joins:
                text = written[W_TEXTS] - 1
                join_text(
                    data, arena, text, text_start[source], text_length[source], out_text_start, out_text_length, copied,
                    written,
                )  # fmt: skip
            else:
                write_text(
                    parent,
                    text_start[source],
                    text_length[source],
                    text_parent,
                    out_text_start,
                    out_text_length,
                    written,
                )
            joins = True
            at = np.int64(out[O_NEXT, at])
            continue
        stack[depth] = at
        depth += 1
        if kind != MARKER:
            this = written[W_ELEMENTS]
            written[W_ELEMENTS] = this + 1
            level += 1
            elements[E_NAME, this] = out[O_NAME, at]
            elements[E_PARENT, this] = parent
            elements[E_DEPTH, this] = level
            elements[E_POSITION, this] = position[source] if kind == ELEMENT else elements[E_POSITION, parent]
            elements[E_ATTRIBUTES, this] = written[W_ATTRIBUTES]
            elements[E_TEXT, this] = written[W_TEXTS]
            if kind == ELEMENT:
                write_attributes(
                    source, np.int64(nodes[source]), table, attributes, attribute_begin, attribute_name,
                    attribute_start, attribute_length, out_name, out_start, out_length, written,
                )  # fmt: skip
            elif kind == NEW and source != NONE and attribute_length[source]:
                write_text(
                    this, attribute_start[source], attribute_length[source], text_parent, out_text_start,
                    out_text_length, written,
                )  # fmt: skip
            parent = this
            joins = False
        at = np.int64(out[O_FIRST, at])
