# mypy: allow-untyped-defs, allow-untyped-calls
"""Twigs: documents against branching patterns of elements, by the elements at which branches hold.

`twig_branch_decomposition.py` splits the patterns.

    state of an element ──gates──▶ branches that end at it ──place──▶ the element above at which each holds: a list
    branches that occur ──▶ twigs that wait for them ──▶ do the other branches occur? ──▶ do their lists meet?

Lists are intersected by marks: the elements of the first list are marked with a number; those of the next list that
have this mark get the next number. A lift marks elements above in another plane and continues there. So a twig costs
the lengths of its lists. A look-up mostly waits for memory, so twigs are queued first and their data is prefetched.

An element with the state and the parent of an earlier one adds nothing but trunks. A document is left to the verifier
if an element has no state, or is deeper than DEEPEST.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Elements
from pathcast.kernels import Bools, Int32s, Int64s, Matrix, UInt64s, Writable, kernel, lowest_bit, part, prefetch, rare

from ..paths.lazy_determinisation_kernels import Automaton
from ..state_test_joins.unbranched_path_search_kernels import DEEPEST, depths_up
from ..state_test_joins.waiting_patterns_by_state_kernels import ANYWHERE, DOWN

# Columns of twigs: the entry (LAST - entry for the last twig that waits for a branch), two branches besides the one
# that is waited for, and the program, if there are more branches, or lifts.
T_ENTRY, T_OTHER, T_THIRD, T_PROGRAM, T_COLUMNS = range(5)
NONE, LAST = -1, -1
# In programs: the end; lifts have smaller numbers.
END = -1
# The branches of a gate: the place of the first one in PLACE_BITS bits, and their count in COUNT_BITS bits.
PLACE_BITS, COUNT_BITS = 6, 16
# Columns of the data of a branch: the stamp of the last document that had it, the last element at which it holds there,
# where the list of the other elements begins, and the first twig that waits for it.
K_STAMP, K_ELEMENT, K_MORE, K_TWIG, K_COLUMNS = range(5)
# `counts`: the last stamp, the last number of marks, branches that occur and are waited for, elements in lists, twigs
# tried, why the kernel stopped.
X_STAMP, X_MARK, X_TOUCHED, X_LISTED, X_LOOKED, X_WHY, X_COUNTS = range(7)
DONE, CROWDED, FULL = range(3)
QUEUED = 512
AHEAD, NEAR = 12, 6
# The first SHOWN documents, and then every SELDOM-th, count how often branches occur.
SHOWN, SELDOM = 512, 8
ONE = np.uint64(1)


class TwigRows(NamedTuple):
    """Twigs by the branch that they wait for.

    Per branch, in the order of their keys: its place, its climb or NONE, the number of documents that had it, and the
    first twig that waits for it, or NONE (`waiting`). Per gate, its branches: the number of the first one, its place
    (PLACE_BITS), and their count (COUNT_BITS); and its node. The program of a twig is its branches, lifts
    (END - 1 - lift) and END. Climbs are stored as consecutive steps.
    """

    places: Int32s
    climbs: Int32s
    hits: Writable[Int64s]
    twigs: Matrix[Int32s]
    of_gate: Int64s
    programs: Int32s
    lift_places: Int32s
    lift_climbs: Int32s
    climb_begin: Int64s
    climb_steps: Int32s
    waiting: Int32s
    keys: Int64s
    gate_nodes: Int32s


class OpenPath(NamedTuple):
    """The path to an element: the element and the name at each depth; `depths_of` has each name's depths as bits."""

    elements: Writable[Int32s]
    names: Writable[Int32s]
    depths_of: Writable[UInt64s]


class LastElements(NamedTuple):
    """The last element of each state, and the stamp of its document."""

    elements: Writable[Int32s]
    stamps: Writable[Int64s]


class TwigScratch(NamedTuple):
    """The buffers of a join.

    `known` has the data of each branch, `listed` the lists of elements, `touched` the branches that occur, `marks` two
    planes of marks of elements, `next_twig` the branch and the twig to queue next.
    """

    counts: Writable[Int64s]
    known: Writable[Matrix[Int32s]]
    listed: Writable[Matrix[Int32s]]
    touched: Writable[Int32s]
    marks: Writable[Matrix[Int64s]]
    queue: Writable[Matrix[Int32s]]
    next_twig: Writable[Int64s]
    path: OpenPath
    last: LastElements


@part
def list_element(branch, element, stamp, shows, hits, scratch):
    """Append an element to the list of a branch, unless it is already the last one; False if there is no room."""
    known, listed, touched, counts = scratch.known, scratch.listed, scratch.touched, scratch.counts
    if known[branch, K_STAMP] != stamp:
        known[branch, K_STAMP] = stamp
        known[branch, K_ELEMENT] = element
        known[branch, K_MORE] = NONE
        touched[counts[X_TOUCHED]] = branch
        counts[X_TOUCHED] += known[branch, K_TWIG] != NONE
        if shows:
            hits[branch] += 1
        return True
    if known[branch, K_ELEMENT] != element:
        n = counts[X_LISTED]
        if n == len(listed):
            return False
        listed[n, 0] = known[branch, K_ELEMENT]
        listed[n, 1] = known[branch, K_MORE]
        counts[X_LISTED] = n + 1
        known[branch, K_ELEMENT] = element
        known[branch, K_MORE] = n
    return True


@part
def go_to(depth, element, name, path):
    """Set the element of the path at a depth."""
    depths_of, names = path.depths_of, path.names
    bit = ONE << np.uint64(depth)
    depths_of[names[depth] + 1] &= ~bit
    depths_of[name + 1] |= bit
    path.elements[depth] = element
    names[depth] = name


@part
def depths_above(depth, climb, rows, depths_of):
    """The depths, as bits, of the elements of the path from which a climb leads to the element at this depth."""
    steps = rows.climb_steps
    found = ONE << np.uint64(depth)
    for k in range(rows.climb_begin[climb + 1] - 1, rows.climb_begin[climb] - 1, -1):
        symbol = steps[k] >> 1
        if symbol:
            found &= depths_of[symbol]
        found = depths_up(found, steps[k] & 1 != 0)
    return found


@part
def list_branches(depth, is_alike, stamp, shows, begin, end, gates, rows, scratch):
    """List the elements at which the branches hold that end at the last element of the path, at this depth.

    `begin` and `end`: the gates of that element. `is_alike`: only trunks are new.
    """
    of_gate, path = rows.of_gate, scratch.path
    for g in range(begin, end):
        if g + AHEAD < end:
            prefetch(of_gate, np.int64(gates[g + AHEAD]))
            prefetch(scratch.known, (of_gate[gates[g + NEAR]] >> (PLACE_BITS + COUNT_BITS)) * K_COLUMNS)
        branches = of_gate[gates[g]]
        branch = branches >> (PLACE_BITS + COUNT_BITS)
        last = branch + (branches & ((1 << COUNT_BITS) - 1))
        place = np.int32(branches >> COUNT_BITS & ((1 << PLACE_BITS) - 1))
        while branch < last:
            if place != ANYWHERE:
                if place == 0 or not is_alike:
                    at = path.elements[depth - place if place < DOWN else place - DOWN]
                    if not list_element(branch, at, stamp, shows, rows.hits, scratch):
                        return False
            elif not is_alike:
                found = depths_above(depth, rows.climbs[branch], rows, path.depths_of)
                while found:
                    at = path.elements[np.uint64(lowest_bit(found))]
                    found &= found - ONE
                    if not list_element(branch, at, stamp, shows, rows.hits, scratch):
                        return False
            branch += 1
            if branch < last:
                place = rows.places[branch]
    return True


@part
def fetch_gates(begin, end, gates, of_gate):
    """Prefetch the first branches of the next element."""
    for g in range(begin, min(begin + AHEAD, end)):
        prefetch(of_gate, np.int64(gates[g]))


@part
def kept_marks(branch, plane, token, scratch):
    """Keep the marked elements of a branch, with the next number; return whether there are any."""
    known, listed, marks = scratch.known, scratch.listed, scratch.marks
    element, more = known[branch, K_ELEMENT], known[branch, K_MORE]
    found = False
    while True:
        if marks[plane, element] == token:
            marks[plane, element] = token + 1
            found = True
        if more == NONE:
            return found
        element, more = listed[more, 0], listed[more, 1]


@part
def set_marks(branch, token, scratch):
    """Mark the elements of a branch."""
    known, listed, marks = scratch.known, scratch.listed, scratch.marks
    element, more = known[branch, K_ELEMENT], known[branch, K_MORE]
    marks[0, element] = token
    while more != NONE:
        marks[0, listed[more, 0]] = token
        more = listed[more, 1]


@rare
def lift_marks(branch, lift, plane, token, first, elements, translation, rows, scratch):
    """Mark, with the next number and in the other plane, the elements to which a lift leads from marked ones."""
    known, listed, marks, path = scratch.known, scratch.listed, scratch.marks, scratch.path
    parents, depths = elements.parents, elements.depths
    place, climb = rows.lift_places[lift], np.int64(rows.lift_climbs[lift])
    element, more = np.int64(known[branch, K_ELEMENT]), known[branch, K_MORE]
    while True:
        if marks[plane, element] == token:
            above = first + element
            if place != ANYWHERE:
                for _ in range(place if place < DOWN else depths[above] - (place - DOWN)):
                    above = np.int64(parents[above])
                marks[1 - plane, above - first] = token + 1
            else:
                depth = depths[above]
                while above >= 0:
                    go_to(depths[above], np.int32(above - first), translation[elements.names[above]], path)
                    above = np.int64(parents[above])
                found = depths_above(depth, climb, rows, path.depths_of)
                while found:
                    marks[1 - plane, path.elements[np.uint64(lowest_bit(found))]] = token + 1
                    found &= found - ONE
        if more == NONE:
            return
        element, more = np.int64(listed[more, 0]), listed[more, 1]


@rare
def program_holds(program, stamp, first, elements, translation, rows, scratch):
    """Whether the branches and lifts of a program hold."""
    programs = rows.programs
    k = program
    while programs[k] != END:
        if programs[k] > END and scratch.known[programs[k], K_STAMP] != stamp:
            return False
        k += 1
    plane, token = np.int64(0), scratch.counts[X_MARK] + 1
    branch = np.int64(programs[program])
    set_marks(branch, token, scratch)
    held = True
    k = program + 1
    while held and programs[k] != END:
        code = np.int64(programs[k])
        if code > END:
            branch = code
            held = kept_marks(branch, plane, token, scratch)
        else:
            lift_marks(branch, END - 1 - code, plane, token, first, elements, translation, rows, scratch)
            plane = 1 - plane
        token += 1
        k += 1
    scratch.counts[X_MARK] = token
    return held


@part
def twig_holds(twig, branch, stamp, first, elements, translation, rows, scratch):
    """Whether a twig matches, given that the branch it waits for occurs."""
    twigs, known, counts = rows.twigs, scratch.known, scratch.counts
    other, third, program = np.int64(twigs[twig, T_OTHER]), np.int64(twigs[twig, T_THIRD]), twigs[twig, T_PROGRAM]
    if known[other, K_STAMP] != stamp or (third != NONE and known[third, K_STAMP] != stamp):
        return False
    if program != NONE:
        return program_holds(np.int64(program), stamp, first, elements, translation, rows, scratch)
    if third == NONE and known[branch, K_MORE] == NONE and known[other, K_MORE] == NONE:
        return known[branch, K_ELEMENT] == known[other, K_ELEMENT]
    token = counts[X_MARK] + 1
    counts[X_MARK] = token + 2
    set_marks(branch, token, scratch)
    held = kept_marks(other, np.int64(0), token, scratch)
    return held and (third == NONE or kept_marks(third, np.int64(0), token + 1, scratch))


@part
def queue_twigs(twigs, scratch):
    """Queue twigs whose branch occurs, from the branch and twig in `next_twig` on; return how many."""
    state, touched, known, queue = scratch.next_twig, scratch.touched, scratch.known, scratch.queue
    at, twig, last = state[0], state[1], scratch.counts[X_TOUCHED]
    queued = np.int64(0)
    while at < last and queued < QUEUED:
        branch = touched[at]
        if twig == NONE:
            twig = np.int64(known[branch, K_TWIG])
            if at + NEAR < last:
                prefetch(twigs, np.int64(known[touched[at + NEAR], K_TWIG]) * T_COLUMNS)
        prefetch(known, np.int64(twigs[twig, T_OTHER]) * K_COLUMNS)
        if twigs[twig, T_THIRD] != NONE:
            prefetch(known, np.int64(twigs[twig, T_THIRD]) * K_COLUMNS)
        queue[queued, 0] = twig
        queue[queued, 1] = branch
        queued += 1
        twig += 1
        if twigs[twig - 1, T_ENTRY] < 0:
            at += 1
            twig = np.int64(NONE)
    state[0], state[1] = at, twig
    return queued


@kernel
def join_twigs(
    elements: Elements,
    translation: Int32s,
    states: Int32s,
    automaton: Automaton,
    rows: TwigRows,
    scratch: TwigScratch,
    unknown: Writable[Bools],
    out_offsets: Writable[Int64s],
    out: Writable[Int32s],
    start: int,
) -> int:
    """The entries of each document from `start` on, unordered; return the first document that is not done, and why.

    `states` has the state of each element. `unknown` marks the documents that are left to the verifier.
    """
    counts, (last_of, last_stamps) = scratch.counts, scratch.last
    twigs, queue, next_twig = rows.twigs, scratch.queue, scratch.next_twig
    gates, begins, parents, depths = automaton.gates, automaton.gates_begin, elements.parents, elements.depths
    for document in range(start, len(elements.offsets) - 1):
        first, end = elements.offsets[document], elements.offsets[document + 1]
        written = out_offsets[document]
        out_offsets[document + 1] = written
        counts[X_STAMP] += 1
        stamp = counts[X_STAMP]
        counts[X_TOUCHED] = counts[X_LISTED] = 0
        shows = stamp < SHOWN or stamp % SELDOM == 0
        is_known = True
        for element in range(first, end):
            is_known = is_known and states[element] >= 0 and depths[element] <= DEEPEST
        unknown[document] = not is_known
        if not is_known:
            continue
        for element in range(first, end):
            state, depth = states[element], depths[element]
            go_to(depth, np.int32(element - first), translation[elements.names[element]], scratch.path)
            if element + 1 < end:
                fetch_gates(begins[states[element + 1]], begins[states[element + 1] + 1], gates, rows.of_gate)
            is_alike = last_stamps[state] == stamp and parents[last_of[state]] == parents[element]
            last_stamps[state] = stamp
            last_of[state] = element
            begin, last = begins[state], begins[state + 1]
            if not list_branches(depth, is_alike, stamp, shows, begin, last, gates, rows, scratch):
                counts[X_WHY] = CROWDED
                return document
        next_twig[0], next_twig[1] = 0, NONE
        looked = 0
        while next_twig[0] < counts[X_TOUCHED]:
            queued = queue_twigs(twigs, scratch)
            if written + queued > len(out):
                counts[X_WHY] = FULL
                return document
            looked += queued
            for k in range(queued):
                twig, branch = np.int64(queue[k, 0]), np.int64(queue[k, 1])
                if k + NEAR < queued and twigs[queue[k + NEAR, 0], T_PROGRAM] != NONE:
                    prefetch(rows.programs, np.int64(twigs[queue[k + NEAR, 0], T_PROGRAM]))
                if twig_holds(twig, branch, stamp, first, elements, translation, rows, scratch):
                    entry = twigs[twig, T_ENTRY]
                    out[written] = entry if entry >= 0 else LAST - entry
                    written += 1
        out_offsets[document + 1] = written
        counts[X_LOOKED] += looked
    counts[X_WHY] = DONE
    return len(elements.offsets) - 1
