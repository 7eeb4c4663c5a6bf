# mypy: allow-untyped-defs, allow-untyped-calls
"""A walk over a document as if it were rewritten: start and end tags, one after the other, and nothing is written.

Structural matching does not depend on the order of siblings, so the walk visits an element's children in this order:
those that stay, then new elements with their inserted content, then elements downgraded into it; elements upgraded out
of it come after it. Each is a *pass* over the children of one element, exchanges resolved, that visits the children
concerned. A first pass finds the targets of downgrades, and the new elements.

The element E that an exchange puts into each of its F comes first of all in there: what it means for F is found in the
first one and *kept*, and every further F has it *confirmed* without a walk over E
(`rewriting_xtrie_engine_kernels.py`).

Invariant: the tags are those of the document that `object_tree_rewriter.py` gives, but for the order of siblings and
for what is confirmed. A subtree of which nothing moves is read off the arrays. Cost: an element is looked at once for
each pass over its siblings, and only nodes with operators have more than one.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Matrix, Writable, part, rare
from pathcast.literature.xtrie.table_and_stack_layout_kernels import ATTRIBUTES_STAY, CONTENT_STAYS, NO_ATTRIBUTES

from .rewriting_table_layout_kernels import (
    DOWN,
    INTO,
    N_ATTRIBUTES,
    N_NAME,
    N_OTHERS,
    N_OTHERS_WHERE,
    N_PARENT,
    N_PATHS,
    N_PLACE,
    N_SLOT,
    N_SLOTS,
    N_TAKER,
    N_UPS,
    N_WHERE,
    N_WHOLE,
    NONE,
    STAY,
    UP,
    span,
)
from .rewritten_element_order_kernels import next_taker

# The next step: a tag; the matchings of an exchanged element are kept, or confirmed; the end; no room to continue.
START, END, KEEP, CONFIRM, FINISHED, NO_ROOM = 1, 2, 3, 4, 5, 6
# A pass that visits nothing.
FIND = 4

# Kinds of frames, and their columns.
OPEN, PASS, EXCHANGED, WHOLE_TREE, ADDED = 0, 1, 2, 3, 4
A_KIND = 0
# An element that is open: itself, its node, the node whose children it leaves out, what comes at its end, the frame of
# the element whose child it is, how far it is, a count, where its slots and new elements begin, the exchange it is of.
A_ELEMENT, A_NODE, A_SKIP, A_TAIL, A_OVER, A_PHASE, A_STEP, A_SLOTS, A_HOLD, A_VIA = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
# A pass: over the children of which frame, for which place, what is next.
A_OWNER, A_PLACE, A_WHERE, A_NEXT = 1, 2, 3, 4
# An exchange: the element, the node of those that take its place, its tail, what is next, in which pass; what is kept.
A_TAKER, A_OUTER, A_WITHIN, A_KEPT, A_KEPT_END = 2, 3, 5, 6, 7
# A subtree of which nothing moves: its next element, its end, the level and the depth that it hangs at.
A_UNTIL, A_LEVEL, A_DEPTH = 2, 3, 4
ROW = 12

# Counts of a walk.
D_DEPTH, D_TAILS, D_SLOTS, D_HOLD, D_KEPT, D_ELEMENT, D_SYMBOL, D_FROM, D_UNTIL = range(9)
WALK = 9


class WalkedDocuments(NamedTuple):
    """The documents: the schema node of each element, and what the walk reads of elements and attributes."""

    nodes: Int32s
    ends: Int32s
    attribute_begins: Int32s
    attribute_names: Int32s
    names: Int32s
    depths: Int32s


class WalkRoom(NamedTuple):
    """The buffers of a walk: frames, what comes at the end of exchanged elements, slots, new elements, what is kept."""

    frames: Writable[Matrix[Int32s]]
    tails: Writable[Matrix[Int32s]]
    slots: Writable[Int32s]
    hold: Writable[Int32s]
    kept: Writable[Matrix[Int64s]]


@part
def value_code(element, flags):
    """What stands for an element whose attributes or content are not all as they were read."""
    return -1 - (element * 8 + flags)


@part
def push(frames, walk, kind):
    """A frame; its columns are the caller's to fill."""
    at = walk[D_DEPTH]
    frames[at, A_KIND] = kind
    walk[D_DEPTH] = at + 1
    return at


@part
def begin_pass(owner, place, where, frames, walk):
    """Go over an open element's children once more, for those that have a place."""
    at = push(frames, walk, PASS)
    frames[at, A_OWNER], frames[at, A_PLACE], frames[at, A_WHERE] = owner, place, where
    frames[at, A_NEXT] = frames[owner, A_ELEMENT] + 1 if owner >= 0 else 0


@part
def begin_open(element, node, skip, tail, over, via, frames, walk):
    """Open an element."""
    at = push(frames, walk, OPEN)
    frames[at, A_ELEMENT], frames[at, A_NODE], frames[at, A_SKIP], frames[at, A_TAIL] = element, node, skip, tail
    frames[at, A_OVER], frames[at, A_PHASE], frames[at, A_STEP], frames[at, A_VIA] = over, 0, 0, via
    frames[at, A_SLOTS], frames[at, A_HOLD] = walk[D_SLOTS], walk[D_HOLD]


@part
def comes_first(tail, node, nodes, tails, table):
    """Whether what an exchange puts into an element of this node is an ordinary child there, which can come first."""
    if tail == NONE:
        return False
    inner = nodes[tails[0, tail]]
    return table[N_PARENT, inner] == node and table[N_PLACE, inner] == STAY and table[N_SLOT, inner] == NONE


@part
def place_in(node, owner, table, frames, slots):
    """Where a child goes in an open element: a place, and which new element or slot."""
    if owner < 0:
        return np.int64(STAY), np.int64(NONE)
    over = frames[owner, A_NODE]
    place, where = np.int64(STAY), np.int64(NONE)
    if node >= 0 and table[N_PARENT, node] == over:
        place, where = np.int64(table[N_PLACE, node]), np.int64(table[N_WHERE, node])
    elif over >= 0:
        place, where = np.int64(table[N_OTHERS, over]), np.int64(table[N_OTHERS_WHERE, over])
    if (place == UP and frames[owner, A_OVER] < 0) or (place == DOWN and slots[frames[owner, A_SLOTS] + where] == NONE):
        return np.int64(STAY), np.int64(NONE)
    return place, where


@part
def note_child(element, node, owner, table, paths, frames, slots, hold):
    """In the pass that finds: the first child of each slot, and the new elements that there will be."""
    over = np.int64(frames[owner, A_NODE])
    own = node >= 0 and table[N_PARENT, node] == over
    if own and table[N_SLOT, node] != NONE:
        at = frames[owner, A_SLOTS] + table[N_SLOT, node]
        if slots[at] == NONE:
            slots[at] = element
    place, where = np.int64(table[N_OTHERS, over]), np.int64(table[N_OTHERS_WHERE, over])
    if own:
        place, where = np.int64(table[N_PLACE, node]), np.int64(table[N_WHERE, node])
    while place == INTO and where != NONE and hold[frames[owner, A_HOLD] + where] == 0:
        hold[frames[owner, A_HOLD] + where] = 1
        where = np.int64(paths[1, table[N_PATHS, over] + where])


@rare
def consider(element, skip, tail, within, via, document, tables, level, room, walk):
    """A child in a pass: it is visited if the pass is for its place; if it was exchanged, those in its place are."""
    nodes, end, depth = document[0], document[1], document[5]
    table, _, paths = tables
    frames, tails, slots, hold, _ = room
    node, owner = np.int64(nodes[element]), np.int64(frames[within, A_OWNER])
    taker = table[N_TAKER, node] if node >= 0 and skip == NONE else NONE
    if taker != NONE and next_taker(nodes, end, element, taker, element + 1) < end[element]:
        at, mine = push(frames, walk, EXCHANGED), walk[D_TAILS]
        tails[0, mine], tails[1, mine], tails[2, mine] = element, taker, tail
        walk[D_TAILS] = mine + 1
        frames[at, A_ELEMENT], frames[at, A_TAKER], frames[at, A_OUTER] = element, taker, mine
        frames[at, A_NEXT], frames[at, A_WITHIN] = element + 1, within
        frames[at, A_KEPT], frames[at, A_KEPT_END] = NONE, walk[D_KEPT]
        return
    if frames[within, A_PLACE] == FIND:
        note_child(element, node, owner, table, paths, frames, slots, hold)
        return
    place, where = place_in(node, owner, table, frames, slots)
    if place != frames[within, A_PLACE] or (where != NONE and where != frames[within, A_WHERE]):
        return
    if skip == NONE and tail == NONE and (node < 0 or table[N_WHOLE, node] == 1):
        at = push(frames, walk, WHOLE_TREE)
        frames[at, A_ELEMENT], frames[at, A_UNTIL] = element, end[element]
        frames[at, A_LEVEL], frames[at, A_DEPTH] = level + 1, depth[element]
        return
    begin_open(element, node, skip, tail, owner, via, frames, walk)


@part
def next_of_pass(at, document, tables, level, room, walk):
    """The next child of a pass, or its end."""
    nodes, end = document[0], document[1]
    frames, tails, _, _, _ = room
    owner = np.int64(frames[at, A_OWNER])
    child = np.int64(frames[at, A_NEXT])
    if child >= 0 and child < end[frames[owner, A_ELEMENT]]:
        frames[at, A_NEXT] = end[child]
        if frames[owner, A_SKIP] == NONE or nodes[child] != frames[owner, A_SKIP]:
            consider(child, NONE, NONE, at, NONE, document, tables, level, room, walk)
        return
    tail = np.int64(frames[owner, A_TAIL])
    if child >= 0 and tail != NONE and not comes_first(tail, frames[owner, A_NODE], nodes, tails, tables[0]):
        frames[at, A_NEXT] = NONE  # nothing comes behind it
        inner, skip, outer = np.int64(tails[0, tail]), np.int64(tails[1, tail]), np.int64(tails[2, tail])
        consider(inner, skip, outer, at, NONE, document, tables, level, room, walk)
        return
    walk[D_DEPTH] = at


@part
def next_of_exchange(at, document, tables, level, room, walk):
    """The next child that takes the place of an exchanged element, or the end of the exchange."""
    nodes, end = document[0], document[1]
    frames = room[0]
    inside = np.int64(frames[at, A_ELEMENT])
    child = np.int64(next_taker(nodes, end, inside, frames[at, A_TAKER], frames[at, A_NEXT]))
    if child < end[inside]:
        frames[at, A_NEXT] = end[child]
        outer, within = np.int64(frames[at, A_OUTER]), np.int64(frames[at, A_WITHIN])
        consider(child, NONE, outer, within, at, document, tables, level, room, walk)
        return
    walk[D_TAILS] = frames[at, A_OUTER]
    if frames[at, A_KEPT] != NONE:
        walk[D_KEPT] = frames[at, A_KEPT]
    walk[D_DEPTH] = at


@part
def next_of_tree(at, document, tables, symbols, level, room, walk):
    """The next tag of a subtree of which nothing moves; 0 at its end."""
    nodes, _, begin, _, names, depth = document
    table, frames = tables[0], room[0]
    element = np.int64(frames[at, A_ELEMENT])
    if element == frames[at, A_UNTIL]:
        if level >= frames[at, A_LEVEL]:
            return END
        walk[D_DEPTH] = at
        return 0
    if level >= frames[at, A_LEVEL] + depth[element] - frames[at, A_DEPTH]:
        return END
    node = np.int64(nodes[element])
    frames[at, A_ELEMENT] = element + 1
    walk[D_SYMBOL] = symbols[table[N_NAME, node] if node >= 0 else names[element]] + 1
    walk[D_ELEMENT] = element
    if span(table, N_ATTRIBUTES, node) > 0 and begin[element] < begin[element + 1]:
        walk[D_ELEMENT] = value_code(element, CONTENT_STAYS)
    return START


@part
def next_path(owner, above, step, table, paths, frames, hold):
    """The next new element below another (`NONE`: below the open element itself) that holds something, or `NONE`."""
    node = np.int64(frames[owner, A_NODE])
    first = table[N_PATHS, node]
    for k in range(step, span(table, N_PATHS, node)):
        if paths[1, first + k] == above and hold[frames[owner, A_HOLD] + k]:
            return np.int64(k)
    return np.int64(NONE)


@rare
def next_of_added(at, tables, symbols, room, walk):
    """The next tag of a new element; 0 when something inside it comes first, or at its end."""
    (table, _, paths), (frames, _, _, hold, _) = tables, room
    owner, where, phase = np.int64(frames[at, A_OWNER]), np.int64(frames[at, A_WHERE]), frames[at, A_PHASE]
    frames[at, A_PHASE] = phase + 1
    if phase == 0:
        walk[D_SYMBOL] = symbols[paths[0, table[N_PATHS, frames[owner, A_NODE]] + where]] + 1
        walk[D_ELEMENT] = value_code(0, NO_ATTRIBUTES)
        return START
    if phase == 1:
        begin_pass(owner, INTO, where, frames, walk)
        return 0
    if phase == 2:
        below = next_path(owner, where, np.int64(frames[at, A_STEP]), table, paths, frames, hold)
        if below == NONE:
            return END
        frames[at, A_PHASE], frames[at, A_STEP] = 2, below + 1
        begin_added(owner, below, frames, walk)
        return 0
    walk[D_DEPTH] = at
    return 0


@part
def begin_added(owner, where, frames, walk):
    """Open a new element of an open one's inserts."""
    at = push(frames, walk, ADDED)
    frames[at, A_OWNER], frames[at, A_WHERE], frames[at, A_PHASE], frames[at, A_STEP] = owner, where, 0, 0


@part
def next_attribute(at, document, tables, symbols, frames, walk):
    """The next attribute of an open element that becomes an element: its start tag is due; or there is none."""
    begin, attribute_name = document[2], document[3]
    table, attributes, _ = tables
    element, node = frames[at, A_ELEMENT], np.int64(frames[at, A_NODE])
    for k in range(frames[at, A_STEP], span(table, N_ATTRIBUTES, node)):
        row = table[N_ATTRIBUTES, node] + k
        for a in range(begin[element], begin[element + 1]):
            if attributes[2, row] and attribute_name[a] == attributes[0, row]:
                frames[at, A_STEP] = k + 1
                walk[D_SYMBOL] = symbols[attributes[1, row]] + 1
                walk[D_ELEMENT] = value_code(0, NO_ATTRIBUTES)
                return True
    return False


@part
def find_children(at, table, frames, slots, hold, walk):
    """Begin the pass that finds; only elements with slots or inserts have one."""
    node = np.int64(frames[at, A_NODE])
    new = span(table, N_PATHS, node)
    targets = table[N_SLOTS, node] if node >= 0 else 0
    if new + targets == 0:
        return
    for k in range(targets):
        slots[walk[D_SLOTS] + k] = NONE
    for k in range(new):
        hold[walk[D_HOLD] + k] = 0
    walk[D_SLOTS] += targets
    walk[D_HOLD] += new
    begin_pass(at, FIND, NONE, frames, walk)


@rare
def next_of_open(at, document, tables, symbols, room, walk):
    """The next tag of an open element, or what is to be kept or confirmed; 0 when something inside it comes first."""
    nodes, _, begin, _, names, _ = document
    table, _, paths = tables
    frames, tails, slots, hold, _ = room
    element, node, phase = np.int64(frames[at, A_ELEMENT]), np.int64(frames[at, A_NODE]), frames[at, A_PHASE]
    tail, over, via = np.int64(frames[at, A_TAIL]), np.int64(frames[at, A_OVER]), np.int64(frames[at, A_VIA])
    frames[at, A_PHASE] = phase + 1
    if phase == 0:
        walk[D_SYMBOL] = symbols[table[N_NAME, node] if node >= 0 else names[element]] + 1
        stays = span(table, N_ATTRIBUTES, node) == 0 or begin[element] == begin[element + 1]
        walk[D_ELEMENT] = value_code(element, ATTRIBUTES_STAY if stays else 0)
        return START
    if phase == 1:
        find_children(at, table, frames, slots, hold, walk)
    elif phase == 2 and comes_first(tail, node, nodes, tails, table):
        if via != NONE and frames[via, A_KEPT] != NONE:
            frames[at, A_PHASE] = 4
            walk[D_FROM], walk[D_UNTIL] = frames[via, A_KEPT], frames[via, A_KEPT_END]
            return CONFIRM
        inner, skip = np.int64(tails[0, tail]), np.int64(tails[1, tail])
        begin_open(inner, np.int64(nodes[inner]), skip, np.int64(tails[2, tail]), at, NONE, frames, walk)
    elif phase == 3 and via != NONE and comes_first(tail, node, nodes, tails, table):
        frames[via, A_KEPT] = walk[D_KEPT]
        return KEEP
    elif phase == 4:
        if next_attribute(at, document, tables, symbols, frames, walk):
            return START
        frames[at, A_PHASE] = 6
    elif phase == 5:
        frames[at, A_PHASE] = 4
        return END
    elif phase == 6:
        begin_pass(at, STAY, NONE, frames, walk)
        frames[at, A_STEP] = 0
    elif phase == 7:
        new = next_path(at, NONE, np.int64(frames[at, A_STEP]), table, paths, frames, hold)
        if new != NONE:
            frames[at, A_PHASE], frames[at, A_STEP] = 7, new + 1
            begin_added(at, new, frames, walk)
    elif phase == 8 and over != NONE and node >= 0 and table[N_SLOT, node] != NONE:
        slot = np.int64(table[N_SLOT, node])
        if table[N_PARENT, node] == frames[over, A_NODE] and slots[frames[over, A_SLOTS] + slot] == element:
            begin_pass(over, DOWN, slot, frames, walk)
    elif phase == 9:
        return END
    elif phase == 10 and over != NONE and node >= 0 and table[N_UPS, node]:
        begin_pass(at, UP, NONE, frames, walk)
    elif phase == 11:
        walk[D_SLOTS], walk[D_HOLD], walk[D_DEPTH] = frames[at, A_SLOTS], frames[at, A_HOLD], at
    return 0


@part
def advance(most, document, tables, symbols, level, room, walk):
    """What comes next, with the element and its symbol in `walk`."""
    frames, tails, slots, hold, _ = room
    while walk[D_DEPTH] > 0:
        if (
            walk[D_DEPTH] + 4 > len(frames)
            or walk[D_TAILS] + 2 > tails.shape[1]
            or walk[D_SLOTS] + most > len(slots)
            or walk[D_HOLD] + most > len(hold)
        ):
            return NO_ROOM
        at = walk[D_DEPTH] - 1
        kind, event = frames[at, A_KIND], np.int64(0)
        if kind == WHOLE_TREE:
            event = np.int64(next_of_tree(at, document, tables, symbols, level, room, walk))
        elif kind == OPEN:
            event = np.int64(next_of_open(at, document, tables, symbols, room, walk))
        elif kind == PASS:
            next_of_pass(at, document, tables, level, room, walk)
        elif kind == EXCHANGED:
            next_of_exchange(at, document, tables, level, room, walk)
        else:
            event = np.int64(next_of_added(at, tables, symbols, room, walk))
        if event != 0:
            return event
    return np.int64(FINISHED)
