# mypy: allow-untyped-defs, allow-untyped-calls
"""Rewriting element arrays, first half: the elements of a document, linked in the order of the rewritten one.

`place_elements` finds each element's node in the local schema tree. `link` walks a document as its reader read it,
exchanges included, and hangs what it meets into lists: each rewritten element has one of its content. Some lists are
kept apart until an end tag comes and are hung in as a whole then: what is inserted, what is upgraded, and what would be
downgraded, which waits where it was. Such a list is a *marker*: a thing without a tag of its own. `emit_kernels.py`
walks the lists and writes arrays.

Invariant: what is linked is what `static.py` says.
Cost: some dozens of ns an element; room for an element, a text node and a marker is 28 bytes each.
"""

import numpy as np

from ..kernels import kernel, part

NONE = -1
STAY, INTO, UP, DOWN = 0, 1, 2, 3

# Rows of the table of schema nodes.
N_NAME = 0  # the name afterwards
N_ATTRIBUTES = 1  # where its attributes begin in their table
N_PATHS = 2  # where the new elements of its inserts begin in theirs
N_PARENT = 3  # the parent once exchanges are done
N_TAKER = 4  # the child that takes its place
N_PLACE = 5  # where it goes in that parent, and …
N_WHERE = 6  # … which new element, or which slot
N_OTHERS = 7  # where children go that have no place of their own, and …
N_OTHERS_WHERE = 8  # … which new element
N_SLOT = 9  # the slot of its parent that has it for a target
N_SLOTS = 10  # how many slots it has: kinds of children that others are downgraded into
NODE_ROWS = 11

# Rows of the table of linked things.
O_KIND, O_SOURCE, O_NAME, O_FIRST, O_LAST, O_NEXT, O_CHAIN = 0, 1, 2, 3, 4, 5, 6
OUT_ROWS = 7
ELEMENT, NEW, TEXT, MARKER = 0, 1, 2, 3

# Columns of the stack of open elements.
F_ELEMENT, F_NODE, F_SKIP, F_TAIL, F_NEXT, F_TEXT, F_OUT, F_LIST = 0, 1, 2, 3, 4, 5, 6, 7
F_HOLD, F_SLOTS, F_INSERTED, F_BEHIND, F_HELD = 8, 9, 10, 11, 12
FRAME = 13

# What is counted over the documents of a batch, and what is in use for one.
C_THINGS, C_ELEMENTS, C_ATTRIBUTES, C_TEXTS, C_PEAK = 0, 1, 2, 3, 4
C_DEPTH, C_HELD, C_TAILS, C_HOLD, C_SLOTS = 5, 6, 7, 8, 9
COUNTS = 10
DONE, FULL, TOO_LARGE, TOO_MANY_ROOTS = 0, -1, -2, -3


@kernel("void(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[:, ::1], int64, i4[::1])", late=True)
def place_elements(offsets, name, parent, small, child, root, nodes):
    """The schema node of each element, or `NONE`; a document whose root is another is `NONE` throughout."""
    for document in range(len(offsets) - 1):
        first = offsets[document]
        for element in range(first, offsets[document + 1]):
            known = np.int64(0)
            if name[element] < len(small):
                known = np.int64(small[name[element]])
            if element == first:
                nodes[element] = 0 if known == root else NONE
            else:
                above = nodes[parent[element]]
                nodes[element] = child[above, known] if above >= 0 else NONE


@part
def make(out, counts, kind, source, name):
    """A new thing, in no list."""
    at = counts[C_THINGS]
    out[O_KIND, at] = kind
    out[O_SOURCE, at] = source
    out[O_NAME, at] = name
    out[O_FIRST, at] = NONE
    out[O_LAST, at] = NONE
    out[O_NEXT, at] = NONE
    out[O_CHAIN, at] = NONE
    counts[C_THINGS] = at + 1
    return at


@part
def append(out, owner, thing):
    """Hang a thing at the end of a list."""
    last = out[O_LAST, owner]
    if last < 0:
        out[O_FIRST, owner] = thing
    else:
        out[O_NEXT, last] = thing
    out[O_LAST, owner] = thing


@part
def next_taker(nodes, end, element, taker, at):
    """The first child of an element, from `at` on, that has this node; the element's end if there is none."""
    while at < end[element] and nodes[at] != taker:
        at = end[at]
    return at


@part
def span(table, row, node):
    """How many rows a node has in another table."""
    return table[row, node + 1] - table[row, node] if node >= 0 else 0


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
def inserted_list(above, where, table, paths, frames, hold, out, counts):
    """The list of a new element of an open one's inserts; it and those above it are made when they are needed."""
    base, begin = frames[above, F_HOLD], table[N_PATHS, frames[above, F_NODE]]
    if frames[above, F_INSERTED] == NONE:
        frames[above, F_INSERTED] = make(out, counts, MARKER, NONE, NONE)
    while hold[base + where] == NONE:
        need = where
        while paths[1, begin + need] != NONE and hold[base + paths[1, begin + need]] == NONE:
            need = np.int64(paths[1, begin + need])
        upper = paths[1, begin + need]
        made = make(out, counts, NEW, NONE, paths[0, begin + need])
        append(out, frames[above, F_INSERTED] if upper == NONE else hold[base + upper], made)
        hold[base + need] = made
        counts[C_ELEMENTS] += 1
    return np.int64(hold[base + where])


@part
def downgraded_list(above, where, frames, slots, out, counts):
    """The list of what may be downgraded: a marker where the element was, in the chain of its slot."""
    at = frames[above, F_SLOTS] + where
    marker = make(out, counts, MARKER, NONE, NONE)
    append(out, frames[above, F_OUT], marker)
    if slots[1, at] == NONE:
        slots[0, at] = marker
    else:
        out[O_CHAIN, slots[1, at]] = marker
    slots[1, at] = marker
    return marker


@part
def open_element(element, node, skip, tail, this, owner, table, text_begin, frames, slots, hold, counts):
    """Put an element on the stack."""
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
def close_element(table, frames, slots, out, counts):
    """Take an element off the stack: what was kept apart for its end is hung in."""
    at = counts[C_DEPTH] - 1
    node, base = frames[at, F_NODE], frames[at, F_SLOTS]
    for k in range(table[N_SLOTS, node] if node >= 0 else 0):
        marker, target = slots[0, base + k], slots[2, base + k]
        while target != NONE and marker != NONE:
            if out[O_FIRST, marker] != NONE:
                append(out, target, out[O_FIRST, marker])
                out[O_LAST, target] = out[O_LAST, marker]
                out[O_FIRST, marker] = NONE
                out[O_LAST, marker] = NONE
            marker = out[O_CHAIN, marker]
    if frames[at, F_INSERTED] != NONE:
        append(out, frames[at, F_OUT], frames[at, F_INSERTED])
    if frames[at, F_BEHIND] != NONE:
        append(out, frames[at, F_LIST], frames[at, F_BEHIND])
    counts[C_HELD] -= frames[at, F_HELD]
    counts[C_HOLD] = frames[at, F_HOLD]
    counts[C_SLOTS] = base
    counts[C_DEPTH] = at


@kernel(
    "int64(int64, ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_i4[:, ::1], ro_i4[:, ::1], int64,"
    " i4[:, ::1], i4[:, ::1], i4[:, ::1], i4[:, ::1], i4[::1], i8[::1])",
    late=True,
)
def link(
    root, nodes, name, end, attribute_begin, attribute_name, text_begin, text_end, text_parent,
    table, attributes, paths, limit, out, frames, tails, slots, hold, counts,
):  # fmt: skip
    """Link the document that begins at element `root`; its list is the first thing made.

    `FULL`: one of the buffers is; `TOO_LARGE`: it would have more than `limit` elements; `TOO_MANY_ROOTS`; `DONE`.
    """
    counts[C_DEPTH:] = 0
    limit += counts[C_ELEMENTS]
    if counts[C_THINGS] + 8 >= out.shape[1]:
        return np.int64(FULL)
    top = make(out, counts, MARKER, NONE, NONE)
    # What begins next: an element, the node whose children it leaves out, what comes at its end.
    element, skip, tail = root, np.int64(NONE), np.int64(NONE)
    while True:
        depth = counts[C_DEPTH]
        if element == NONE:
            if depth == 0:
                break
            at = depth - 1
            inside = frames[at, F_ELEMENT]
            child = frames[at, F_NEXT]
            skip, tail = np.int64(NONE), np.int64(NONE)
            if frames[at, F_OUT] == NONE:  # an exchange
                child = next_taker(nodes, end, inside, frames[at, F_SKIP], child)
                if child < end[inside]:
                    frames[at, F_NEXT] = end[child]
                    element, tail = np.int64(child), np.int64(frames[at, F_TAIL])
                else:
                    counts[C_HELD] -= frames[at, F_HELD]
                    counts[C_DEPTH] = at
                continue
            until = text_begin[child] if child < end[inside] else text_end[inside]
            while frames[at, F_TEXT] < until:
                text = frames[at, F_TEXT]
                if text_parent[text] == inside:
                    if counts[C_THINGS] + 8 >= out.shape[1]:
                        return np.int64(FULL)
                    append(out, frames[at, F_OUT], make(out, counts, TEXT, text, NONE))
                    counts[C_TEXTS] += 1
                frames[at, F_TEXT] = text + 1
            if child < end[inside]:
                frames[at, F_NEXT] = end[child]
                if frames[at, F_SKIP] == NONE or nodes[child] != frames[at, F_SKIP]:
                    element = np.int64(child)
            elif frames[at, F_TAIL] != NONE:
                which = frames[at, F_TAIL]
                frames[at, F_TAIL] = NONE
                element, skip, tail = np.int64(tails[0, which]), np.int64(tails[1, which]), np.int64(tails[2, which])
            else:
                close_element(table, frames, slots, out, counts)
            continue
        node = np.int64(nodes[element])
        if depth + 1 >= frames.shape[0] or counts[C_TAILS] + 1 >= tails.shape[1]:
            return np.int64(FULL)
        taker = table[N_TAKER, node] if node >= 0 and skip == NONE else NONE
        if taker != NONE and next_taker(nodes, end, element, taker, element + 1) < end[element]:
            begin_exchange(element, taker, tail, end, frames, tails, counts)
            element = np.int64(NONE)
            continue
        above = depth - 1
        while above >= 0 and frames[above, F_OUT] == NONE:
            above -= 1
        over = np.int64(frames[above, F_NODE]) if above >= 0 else np.int64(NONE)
        room = counts[C_THINGS] + 8 + span(table, N_ATTRIBUTES, node) + span(table, N_PATHS, over)
        slot_room = counts[C_SLOTS] + (table[N_SLOTS, node] if node >= 0 else 0)
        if (
            room >= out.shape[1]
            or slot_room >= slots.shape[1]
            or counts[C_HOLD] + span(table, N_PATHS, node) >= len(hold)
        ):
            return np.int64(FULL)
        # Where it goes, and whether a stream would have to hold it back.
        own = node >= 0 and over >= 0 and table[N_PARENT, node] == over
        place, where = np.int64(STAY), np.int64(NONE)
        if own:
            place, where = np.int64(table[N_PLACE, node]), np.int64(table[N_WHERE, node])
        elif over >= 0:
            place, where = np.int64(table[N_OTHERS, over]), np.int64(table[N_OTHERS_WHERE, over])
        owner, is_held = np.int64(frames[above, F_OUT]) if above >= 0 else top, False
        if place == INTO:
            owner = inserted_list(above, where, table, paths, frames, hold, out, counts)
            is_held = table[N_OTHERS, over] != INTO
        elif place == UP and frames[above, F_LIST] != top:
            if frames[above, F_BEHIND] == NONE:
                frames[above, F_BEHIND] = make(out, counts, MARKER, NONE, NONE)
            owner, is_held = np.int64(frames[above, F_BEHIND]), table[N_OTHERS, over] != UP
        elif place == DOWN:
            owner, is_held = downgraded_list(above, where, frames, slots, out, counts), True
        this = make(out, counts, ELEMENT, element, table[N_NAME, node] if node >= 0 else name[element])
        append(out, owner, this)
        counts[C_ELEMENTS] += 1
        counts[C_ATTRIBUTES] += attribute_begin[element + 1] - attribute_begin[element]
        if own and table[N_SLOT, node] != NONE:
            is_held = True
            slot = frames[above, F_SLOTS] + table[N_SLOT, node]
            if slots[2, slot] == NONE:
                slots[2, slot] = this
        if is_held:
            hold_back(frames, counts, above, end[element] - element)
        first = table[N_ATTRIBUTES, node] if node >= 0 else 0
        for k in range(first, first + span(table, N_ATTRIBUTES, node)):
            if attributes[2, k]:
                for a in range(attribute_begin[element], attribute_begin[element + 1]):
                    if attribute_name[a] == attributes[0, k]:
                        append(out, this, make(out, counts, NEW, a, attributes[1, k]))
                        counts[C_ELEMENTS] += 1
                        counts[C_TEXTS] += 1
        if counts[C_ELEMENTS] > limit:
            return np.int64(TOO_LARGE)
        open_element(element, node, skip, tail, this, owner, table, text_begin, frames, slots, hold, counts)
        element = np.int64(NONE)
    return np.int64(DONE if out[O_NEXT, out[O_FIRST, top]] == NONE else TOO_MANY_ROOTS)
