# mypy: allow-untyped-defs, allow-untyped-calls
"""Rewriting element arrays, first half: the elements of a document, linked in the order of the rewritten one.

`link` walks a document in reading order, exchanges included, and appends its items ("things") to lists: each rewritten
element has a list of its content. A run of unchanged siblings is one thing. Lists of inserted, upgraded and possibly
downgraded elements stay separate until an end tag, and are then linked in as a whole.
`rewritten_element_output_kernels.py` walks the lists and writes arrays.

Invariant: the lists are the document that `object_tree_rewriter.py` makes.
Cost: some dozens of ns per element that is linked by itself; 32 bytes per thing.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Matrix, Writable, kernel, part

from .rewriting_table_layout_kernels import (
    C_ATTRIBUTES,
    C_BYTES,
    C_DEPTH,
    C_ELEMENTS,
    C_HELD,
    C_HOLD,
    C_PEAK,
    C_SLOTS,
    C_TAILS,
    C_TEXTS,
    C_THINGS,
    C_WHY,
    COUNTS,
    DONE,
    ELEMENT,
    F_BEHIND,
    F_ELEMENT,
    F_HELD,
    F_HOLD,
    F_INSERTED,
    F_LIST,
    F_NEXT,
    F_NODE,
    F_OUT,
    F_SKIP,
    F_SLOTS,
    F_TAIL,
    F_TEXT,
    FULL,
    MARKER,
    N_ATTRIBUTES,
    N_NAME,
    N_PARENT,
    N_PATHS,
    N_SLOT,
    N_SLOTS,
    N_STAYS,
    N_TAKER,
    N_WHOLE,
    NONE,
    O_CHAIN,
    O_END,
    O_FIRST,
    O_LAST,
    O_NEXT,
    O_TO,
    TEXT,
    TOO_LARGE,
    TOO_MANY_ROOTS,
    WHOLE,
    RewritingPlan,
    span,
)
from .rewritten_child_list_kernels import append, make, move_attributes, owner_of, take_attributes


class LinkedDocuments(NamedTuple):
    """The documents: the schema node of each element, and what is read of elements, attributes and text nodes."""

    nodes: Int32s
    ends: Int32s
    attribute_begins: Int32s
    attribute_names: Int32s
    text_begins: Int32s
    text_ends: Int32s
    text_lengths: Int32s
    names: Int32s


class LinkRoom(NamedTuple):
    """The buffers of a walk: things, open elements, ends of exchanged elements, slots, new elements of inserts."""

    things: Writable[Matrix[Int32s]]
    frames: Writable[Matrix[Int32s]]
    tails: Writable[Matrix[Int32s]]
    slots: Writable[Matrix[Int32s]]
    hold: Writable[Int32s]


@part
def next_taker(nodes, end, element, taker, at):
    """The first child of an element, from `at` on, that has this node; the element's end if there is none."""
    while at < end[element] and nodes[at] != taker:
        at = end[at]
    return at


@part
def hold_back(frames, counts, at, size):
    """Elements that a stream would have to keep until an open element ends."""
    frames[at, F_HELD] += size
    counts[C_HELD] += size
    counts[C_PEAK] = max(counts[C_PEAK], counts[C_HELD])


@part
def begin_exchange(element, taker, tail, end, frames, tails, counts):
    """Its children of one kind take an element's place, one after the other, each with the element at its end."""
    depth, at = counts[C_DEPTH], counts[C_TAILS]
    tails[0, at] = element
    tails[1, at] = taker
    tails[2, at] = tail
    frames[depth, F_ELEMENT] = element
    frames[depth, F_SKIP] = taker
    frames[depth, F_TAIL] = at
    frames[depth, F_NEXT] = element + 1
    frames[depth, F_OUT] = NONE
    frames[depth, F_HELD] = 0
    hold_back(frames, counts, depth, end[element] - element)
    counts[C_TAILS] = at + 1
    counts[C_DEPTH] = depth + 1


@part
def open_element(element, node, skip, tail, this, owner, text_begin, table, room, counts):
    """Put an element on the stack."""
    _, frames, _, slots, hold = room
    depth = counts[C_DEPTH]
    frames[depth, F_ELEMENT] = element
    frames[depth, F_NODE] = node
    frames[depth, F_SKIP] = skip
    frames[depth, F_TAIL] = tail
    frames[depth, F_NEXT] = element + 1
    frames[depth, F_TEXT] = text_begin[element]
    frames[depth, F_OUT] = this
    frames[depth, F_LIST] = owner
    frames[depth, F_HOLD] = counts[C_HOLD]
    frames[depth, F_SLOTS] = counts[C_SLOTS]
    frames[depth, F_INSERTED] = NONE
    frames[depth, F_BEHIND] = NONE
    frames[depth, F_HELD] = 0
    for _ in range(span(table, N_PATHS, node)):
        hold[counts[C_HOLD]] = NONE
        counts[C_HOLD] += 1
    for _ in range(table[N_SLOTS, node] if node >= 0 else 0):
        for row in range(3):
            slots[row, counts[C_SLOTS]] = NONE
        counts[C_SLOTS] += 1
    counts[C_DEPTH] = depth + 1


@part
def close_element(table, room, counts):
    """Take an element off the stack: what was kept apart for its end is hung in."""
    out, frames, _, slots, _ = room
    at = counts[C_DEPTH] - 1
    node, base = frames[at, F_NODE], frames[at, F_SLOTS]
    for k in range(table[N_SLOTS, node] if node >= 0 else 0):
        marker, target = slots[0, base + k], slots[2, base + k]
        while target != NONE and marker != NONE:
            if out[marker, O_FIRST] != NONE:
                append(out, target, out[marker, O_FIRST])
                out[target, O_LAST] = out[marker, O_LAST]
                out[marker, O_FIRST] = NONE
                out[marker, O_LAST] = NONE
            marker = out[marker, O_CHAIN]
    if frames[at, F_INSERTED] != NONE:
        append(out, frames[at, F_OUT], frames[at, F_INSERTED])
    if frames[at, F_BEHIND] != NONE:
        append(out, frames[at, F_LIST], frames[at, F_BEHIND])
    counts[C_HELD] -= frames[at, F_HELD]
    counts[C_HOLD] = frames[at, F_HOLD]
    counts[C_SLOTS] = base
    counts[C_DEPTH] = at


@part
def take_run(element, last, owner, document, out, counts):
    """Siblings from one to another, of which nothing moves, as they are."""
    _, end, attribute_begin, _, text_begin, text_end, _, _ = document
    until = np.int64(end[last])
    run = make(out, counts, WHOLE, element, NONE)
    out[run, O_END], out[run, O_TO] = until, last
    append(out, owner, run)
    counts[C_ELEMENTS] += until - element
    counts[C_ATTRIBUTES] += attribute_begin[until] - attribute_begin[element]
    counts[C_TEXTS] += text_end[last] - text_begin[element]


@part
def last_that_stays(child, inside, over, nodes, end, table):
    """The last of a child and its siblings of which nothing moves; `NONE` when the child is none of them."""
    last = np.int64(NONE)
    while child < end[inside] and nodes[child] >= 0:
        node = nodes[child]
        if table[N_STAYS, node] == 0 or table[N_PARENT, node] != over:
            break
        last, child = np.int64(child), np.int64(end[child])
    return last


@part
def enter(element, skip, tail, top, whole, document, tables, room, counts):
    """Begin with an element, or with the exchange that it is part of.

    `skip` is the node whose children it leaves out, `tail` what comes at its end: both of an exchange.
    """
    nodes, end, _, _, text_begin, _, _, names = document
    table, (out, frames, tails, slots, _) = tables[0], room
    node = np.int64(nodes[element])
    taker = table[N_TAKER, node] if node >= 0 and skip == NONE else NONE
    if taker != NONE and next_taker(nodes, end, element, taker, element + 1) < end[element]:
        begin_exchange(element, taker, tail, end, frames, tails, counts)
        return
    above = counts[C_DEPTH] - 1
    while above >= 0 and frames[above, F_OUT] == NONE:
        above -= 1
    owner, is_held = owner_of(node, above, top, tables, room, counts)
    size = np.int64(end[element] - element)
    if whole and skip == NONE and tail == NONE and (node < 0 or table[N_WHOLE, node] == 1):
        take_run(element, element, owner, document, out, counts)
        if is_held:
            hold_back(frames, counts, above, size)
        return
    this = make(out, counts, ELEMENT, element, table[N_NAME, node] if node >= 0 else names[element])
    append(out, owner, this)
    counts[C_ELEMENTS] += 1
    if node >= 0 and table[N_SLOT, node] != NONE and above >= 0 and frames[above, F_NODE] == table[N_PARENT, node]:
        is_held = True
        slot = frames[above, F_SLOTS] + table[N_SLOT, node]
        if slots[2, slot] == NONE:
            slots[2, slot] = this
    if is_held:
        hold_back(frames, counts, above, size)
    take_attributes(element, node, this, document, tables, out, counts)
    open_element(element, node, skip, tail, this, owner, text_begin, table, room, counts)
    if node >= 0 and table[N_ATTRIBUTES, node] < table[N_ATTRIBUTES, node + 1]:
        move_attributes(element, node, document, tables, room, counts)


@part
def take_texts(at, until, most, text_length, out, frames, counts):
    """The text nodes of an open element up to its next child, or to its end; room for `most` things is left."""
    for text in range(frames[at, F_TEXT], until):
        if counts[C_THINGS] + most >= len(out):
            counts[C_WHY] = FULL
            return
        append(out, frames[at, F_OUT], make(out, counts, TEXT, text, NONE))
        counts[C_TEXTS] += 1
        counts[C_BYTES] += text_length[text]


@part
def has_room(most, room, counts):
    """Whether there is room for the things that the next step may make."""
    out, frames, tails, slots, hold = room
    return (
        counts[C_THINGS] + most < len(out)
        and counts[C_DEPTH] + 2 < len(frames)
        and counts[C_TAILS] + 2 < tails.shape[1]
        and counts[C_SLOTS] + most < slots.shape[1]
        and counts[C_HOLD] + most < len(hold)
    )


@part
def link_document(root, most, whole, limit, document, tables, room, counts):
    """Link the document that begins at an element; `counts[C_WHY]` has the outcome."""
    nodes, end, _, _, text_begin, text_end, text_length, _ = document
    out, frames, tails, _, _ = room
    counts[C_DEPTH : C_WHY + 1] = 0
    if not has_room(most, room, counts):
        counts[C_WHY] = FULL
        return
    top = make(out, counts, MARKER, NONE, NONE)
    # What begins next: an element, the node whose children it leaves out, what comes at its end.
    element, skip, tail = np.int64(root), np.int64(NONE), np.int64(NONE)
    while counts[C_WHY] == DONE:
        if element != NONE:
            enter(element, skip, tail, top, whole, document, tables, room, counts)
            element, skip, tail = np.int64(NONE), np.int64(NONE), np.int64(NONE)
            if counts[C_ELEMENTS] > limit:
                counts[C_WHY] = TOO_LARGE
        at = counts[C_DEPTH] - 1
        if at < 0:
            break
        if not has_room(most, room, counts):
            counts[C_WHY] = FULL
        inside, child = np.int64(frames[at, F_ELEMENT]), np.int64(frames[at, F_NEXT])
        if frames[at, F_OUT] == NONE:  # an exchange: the next element that takes the place
            child = np.int64(next_taker(nodes, end, inside, frames[at, F_SKIP], child))
            if child < end[inside]:
                frames[at, F_NEXT] = end[child]
                element, tail = child, np.int64(frames[at, F_TAIL])
            else:
                counts[C_HELD] -= frames[at, F_HELD]
                counts[C_TAILS], counts[C_DEPTH] = frames[at, F_TAIL], at
        elif child < end[inside]:
            take_texts(at, text_begin[child], most, text_length, out, frames, counts)
            last = np.int64(NONE)
            if whole and frames[at, F_SKIP] == NONE:
                last = last_that_stays(child, inside, frames[at, F_NODE], nodes, end, tables[0])
            if last != NONE:
                take_run(child, last, frames[at, F_OUT], document, out, counts)
            else:
                last = child
                if frames[at, F_SKIP] == NONE or nodes[child] != frames[at, F_SKIP]:
                    element = child
            frames[at, F_TEXT], frames[at, F_NEXT] = text_end[last], end[last]
        else:
            take_texts(at, text_end[inside], most, text_length, out, frames, counts)
            frames[at, F_TEXT] = text_end[inside]
            which = np.int64(frames[at, F_TAIL])
            if which == NONE:
                close_element(tables[0], room, counts)
            else:
                frames[at, F_TAIL] = NONE
                element, skip, tail = np.int64(tails[0, which]), np.int64(tails[1, which]), np.int64(tails[2, which])
    if counts[C_WHY] == DONE and out[out[top, O_FIRST], O_NEXT] != NONE:
        counts[C_WHY] = TOO_MANY_ROOTS


@kernel(late=True)
def link(
    first: int,
    offsets: Int64s,
    most: int,
    whole: bool,
    limit: int,
    document: LinkedDocuments,
    tables: RewritingPlan,
    room: LinkRoom,
    counts: Writable[Int64s],
    tops: Writable[Int32s],
) -> int:
    """Link the documents from `first` on; return the first without room, or the number of documents.

    `tops` has the list of each document, its first thing; below 0, why there is none: `NONE`, it is empty or not of
    this schema; `TOO_LARGE`: it would have more than `limit` elements; `TOO_MANY_ROOTS`. `most`: the things that one
    element may make; `whole`: siblings of which nothing moves may be taken as they are.
    """
    for at in range(first, len(offsets) - 1):
        root = offsets[at]
        tops[at] = NONE
        if root == offsets[at + 1] or document.nodes[root] == NONE:
            continue
        for k in range(C_DEPTH):
            counts[COUNTS + k] = counts[k]
        link_document(root, most, whole, counts[C_ELEMENTS] + limit, document, tables, room, counts)
        if counts[C_WHY] == DONE:
            tops[at] = counts[COUNTS + C_THINGS]
            continue
        for k in range(C_DEPTH):
            counts[k] = counts[COUNTS + k]
        if counts[C_WHY] == FULL:
            return at
        tops[at] = counts[C_WHY]
    return len(offsets) - 1
