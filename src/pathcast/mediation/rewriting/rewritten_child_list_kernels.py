# mypy: allow-untyped-defs, allow-untyped-calls
"""Lists of the content of rewritten elements: how things are appended, and which list an element goes to.

An element that stays goes to the list of its parent; an element that is inserted, upgraded or possibly downgraded goes
to a separate list until an end tag (`rewritten_element_order_kernels.py`).
"""

import numpy as np

from pathcast.kernels import part

from .rewriting_table_layout_kernels import (
    A_KIND,
    A_NAME,
    A_NEW,
    A_UP,
    A_WHERE,
    C_ATTRIBUTES,
    C_DEPTH,
    C_ELEMENTS,
    C_TEXTS,
    C_THINGS,
    DOWN,
    F_BEHIND,
    F_HOLD,
    F_INSERTED,
    F_LIST,
    F_NODE,
    F_OUT,
    F_SLOTS,
    FIRST_CHILD,
    INTO,
    MARKER,
    MOVED_INTO,
    N_ATTRIBUTES,
    N_OTHERS,
    N_OTHERS_WHERE,
    N_PARENT,
    N_PATHS,
    N_PLACE,
    N_UP,
    N_WHERE,
    NEW,
    NONE,
    O_CHAIN,
    O_FIRST,
    O_KIND,
    O_LAST,
    O_NAME,
    O_NEXT,
    O_SOURCE,
    STAY,
    UP,
    span,
)


@part
def make(out, counts, kind, source, name):
    """A new thing, in no list."""
    at = counts[C_THINGS]
    out[at, O_KIND] = kind
    out[at, O_SOURCE] = source
    out[at, O_NAME] = name
    out[at, O_FIRST] = NONE
    out[at, O_LAST] = NONE
    out[at, O_NEXT] = NONE
    out[at, O_CHAIN] = NONE
    counts[C_THINGS] = at + 1
    return at


@part
def append(out, owner, thing):
    """Append a thing to a list."""
    last = out[owner, O_LAST]
    if last < 0:
        out[owner, O_FIRST] = thing
    else:
        out[last, O_NEXT] = thing
    out[owner, O_LAST] = thing


@part
def inserted_list(above, where, tables, room, counts):
    """The list of a new element of an open one's inserts; it and those above it are made when they are needed."""
    (table, _, paths), (out, frames, _, _, hold) = tables, room
    base, begin = frames[above, F_HOLD], table[N_PATHS, frames[above, F_NODE]]
    if frames[above, F_INSERTED] == NONE:
        frames[above, F_INSERTED] = make(out, counts, MARKER, NONE, NONE)
    if where == NONE:
        return np.int64(frames[above, F_INSERTED])
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
def downgraded_list(above, where, room, counts):
    """The list of what may be downgraded: a marker where the element was, in the chain of its slot."""
    out, frames, _, slots, _ = room
    at = frames[above, F_SLOTS] + where
    marker = make(out, counts, MARKER, NONE, NONE)
    append(out, frames[above, F_OUT], marker)
    if slots[1, at] == NONE:
        slots[0, at] = marker
    else:
        out[slots[1, at], O_CHAIN] = marker
    slots[1, at] = marker
    return marker


@part
def owner_of(node, above, top, tables, room, counts):
    """The list that an element of this node goes to, below an open one, and whether a stream would hold it back."""
    table, (out, frames, _, _, _) = tables[0], room
    over = np.int64(frames[above, F_NODE]) if above >= 0 else np.int64(NONE)
    place, where = np.int64(STAY), np.int64(NONE)
    if node >= 0 and over >= 0 and table[N_PARENT, node] == over:
        place, where = np.int64(table[N_PLACE, node]), np.int64(table[N_WHERE, node])
        if table[N_UP, node] > 0:  # no exchange is between, so open elements are as in the schema
            if place == INTO:
                return inserted_list(above - table[N_UP, node], where, tables, room, counts), True
            return np.int64(downgraded_list(above - table[N_UP, node], where, room, counts)), True
    elif over >= 0:
        place, where = np.int64(table[N_OTHERS, over]), np.int64(table[N_OTHERS_WHERE, over])
    if place == INTO:
        return inserted_list(above, where, tables, room, counts), table[N_OTHERS, over] != INTO
    if place == UP and frames[above, F_LIST] != top:
        if frames[above, F_BEHIND] == NONE:
            frames[above, F_BEHIND] = make(out, counts, MARKER, NONE, NONE)
        return np.int64(frames[above, F_BEHIND]), table[N_OTHERS, over] != UP
    if place == DOWN:
        return np.int64(downgraded_list(above, where, room, counts)), True
    return np.int64(frames[above, F_OUT]) if above >= 0 else np.int64(top), False


@part
def take_attributes(element, node, this, document, tables, out, counts):
    """The attributes that become elements, at the beginning of theirs."""
    attribute_begin, attribute_name = document[2], document[3]
    table, attributes, _ = tables
    begin, end = attribute_begin[element], attribute_begin[element + 1]
    counts[C_ATTRIBUTES] += end - begin
    first = table[N_ATTRIBUTES, node] if node >= 0 else 0
    for k in range(first, first + span(table, N_ATTRIBUTES, node)):
        if attributes[A_KIND, k] == FIRST_CHILD:
            for a in range(begin, end):
                if attribute_name[a] == attributes[0, k]:
                    append(out, this, make(out, counts, NEW, a, attributes[1, k]))
                    counts[C_ELEMENTS] += 1
                    counts[C_TEXTS] += 1


@part
def move_attributes(element, node, document, tables, room, counts):
    """The attributes that become elements at the end of theirs, which is open, or further up."""
    attribute_begin, attribute_name = document[2], document[3]
    (table, attributes, _), out = tables, room[0]
    first = table[N_ATTRIBUTES, node]
    for k in range(first, first + span(table, N_ATTRIBUTES, node)):
        if attributes[A_KIND, k] < MOVED_INTO:
            continue
        for a in range(attribute_begin[element], attribute_begin[element + 1]):
            if attribute_name[a] == attributes[A_NAME, k]:
                above, where = counts[C_DEPTH] - 1 - attributes[A_UP, k], np.int64(attributes[A_WHERE, k])
                if attributes[A_KIND, k] == MOVED_INTO:
                    owner = inserted_list(above, where, tables, room, counts)
                else:
                    owner = np.int64(downgraded_list(above, where, room, counts))
                append(out, owner, make(out, counts, NEW, a, attributes[A_NEW, k]))
                counts[C_ELEMENTS] += 1
                counts[C_TEXTS] += 1
