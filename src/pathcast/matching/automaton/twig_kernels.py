# mypy: allow-untyped-defs, allow-untyped-calls
"""Twigs: documents against patterns of elements that branch (`twigs.py`), by the elements at which branches hold.

    state of an element ──gates──▶ branches that end at it ──place──▶ the element above at which each holds: a list
    branches that are there ──▶ twigs that wait for them ──▶ are the others there? ──▶ do their lists meet?

Lists meet by marks: the elements of the first are marked with a number, those of the next that have it with the next
number. A lift marks elements above in another plane, and goes on there. So a twig costs the lengths of its lists.
What a look-up costs is waiting for memory; so twigs are queued first, and what they look at is fetched meanwhile.

An element with the state and the parent of one before adds nothing but trunks. A document is left to the verifier when
an element has no state, or lies deeper than DEEPEST.
"""

import numpy as np

from ...kernels import kernel, lowest_bit, part, prefetch, rare
from .join_kernels import ANYWHERE, DOWN

# Columns of twigs: the entry, two branches besides the one that is waited for, and the program: if there are more
# branches, or lifts.
T_ENTRY, T_OTHER, T_THIRD, T_PROGRAM, T_COLUMNS = range(5)
NONE = -1
# In programs: the end; lifts are below it.
END = -1
# How many bits say how many branches a gate has.
B_BITS = 16
# Depths are bits of a word.
DEEPEST = 62
# `counts`: the last stamp, the last number of marks, branches that are there, elements in lists, twigs looked at, why
# the kernel stopped.
X_STAMP, X_MARK, X_TOUCHED, X_LISTED, X_LOOKED, X_WHY, X_COUNTS = range(7)
DONE, CROWDED, FULL = range(3)
QUEUED = 512
AHEAD = 8
ONE = np.uint64(1)


@part
def list_element(branch, element, stamp, heads, listed, touched, counts):
    """Put an element into the list of a branch, unless it is the last one; False when there is no room for that."""
    head = heads[branch]
    at = np.int64(NONE)
    if head >> 32 == stamp:
        at = head & 0xFFFFFFFF
        if listed[at, 0] == element:
            return True
    else:
        touched[counts[X_TOUCHED]] = branch
        counts[X_TOUCHED] += 1
    n = counts[X_LISTED]
    if n == len(listed):
        return False
    listed[n, 0] = element
    listed[n, 1] = at
    counts[X_LISTED] = n + 1
    heads[branch] = stamp << 32 | n
    return True


@rare
def depths_above(element, begin, end, steps, names, parents, depths, translation, chain):
    """From which elements above an element steps lead to it: their depths as bits, and the elements in `chain`."""
    above = np.int64(element)
    while above >= 0:
        chain[depths[above]] = above
        above = np.int64(parents[above])
    found = ONE << np.uint64(depths[element])
    for k in range(end - 1, begin - 1, -1):
        symbol = steps[k] >> 1
        left = found if symbol else np.uint64(0)
        while left:
            depth = np.uint64(lowest_bit(left))
            left &= left - ONE
            if translation[names[chain[depth]]] != symbol - 1:
                found &= ~(ONE << depth)
        if steps[k] & 1:
            for shift in (1, 2, 4, 8, 16, 32):
                found |= found >> np.uint64(shift)
        found = found >> ONE & ~ONE  # an element has at least depth 1
    return found


@part
def list_branches(
    element, first, is_alike, stamp, begin, end, gates, of_gate, places, climbs, climb_begin, climb_steps, names,
    parents, depths, translation, path, chain, heads, listed, touched, counts,
):  # fmt: skip
    """List the elements at which the branches hold that end at an element; `is_alike`: only trunks are new."""
    depth = depths[element]
    for g in range(begin, end):
        if g + AHEAD < end:
            prefetch(of_gate, np.int64(gates[g + AHEAD]))
        branches = of_gate[gates[g]]
        branch = branches >> B_BITS
        last = branch + (branches & ((1 << B_BITS) - 1))
        while branch < last:
            place = places[branch]
            if place != ANYWHERE:
                if place == 0 or not is_alike:
                    at = path[depth - place if place < DOWN else place - DOWN]
                    if not list_element(branch, at, stamp, heads, listed, touched, counts):
                        return False
            elif not is_alike:
                climb = climbs[branch]
                found = depths_above(element, climb_begin[climb], climb_begin[climb + 1], climb_steps, names, parents,
                                     depths, translation, chain)  # fmt: skip
                while found:
                    at = np.int32(chain[np.uint64(lowest_bit(found))] - first)
                    found &= found - ONE
                    if not list_element(branch, at, stamp, heads, listed, touched, counts):
                        return False
            branch += 1
    return True


@part
def kept_marks(branch, plane, token, heads, listed, marks):
    """Of the elements marked with a number leave those of a branch, with the next number; whether there are any."""
    at = heads[branch] & 0xFFFFFFFF
    found = False
    while at != NONE:
        element = listed[at, 0]
        if marks[plane, element] == token:
            marks[plane, element] = token + 1
            found = True
        at = np.int64(listed[at, 1])
    return found


@part
def set_marks(branch, token, heads, listed, marks):
    """Mark the elements of a branch."""
    at = heads[branch] & 0xFFFFFFFF
    while at != NONE:
        marks[0, listed[at, 0]] = token
        at = np.int64(listed[at, 1])


@rare
def lift_marks(
    branch, place, climb, plane, token, first, climb_begin, climb_steps, names, parents, depths, translation, chain,
    heads, listed, marks,
):  # fmt: skip
    """Mark with the next number, in the other plane, the elements that a lift leads to from those with a number."""
    at = heads[branch] & 0xFFFFFFFF
    while at != NONE:
        element = np.int64(listed[at, 0])
        if marks[plane, element] == token:
            above = first + element
            if place != ANYWHERE:
                for _ in range(place if place < DOWN else depths[above] - (place - DOWN)):
                    above = np.int64(parents[above])
                marks[1 - plane, above - first] = token + 1
            else:
                found = depths_above(above, climb_begin[climb], climb_begin[climb + 1], climb_steps, names, parents,
                                     depths, translation, chain)  # fmt: skip
                while found:
                    marks[1 - plane, chain[np.uint64(lowest_bit(found))] - first] = token + 1
                    found &= found - ONE
        at = np.int64(listed[at, 1])


@rare
def program_holds(
    program, stamp, first, programs, lift_places, lift_climbs, climb_begin, climb_steps, names, parents, depths,
    translation, chain, heads, listed, marks, counts,
):  # fmt: skip
    """Whether the branches and lifts of a program hold."""
    k = program
    while programs[k] != END:
        if programs[k] > END and heads[programs[k]] >> 32 != stamp:
            return False
        k += 1
    plane, token = np.int64(0), counts[X_MARK] + 1
    branch = np.int64(programs[program])
    set_marks(branch, token, heads, listed, marks)
    held = True
    k = program + 1
    while held and programs[k] != END:
        code = np.int64(programs[k])
        if code > END:
            branch = code
            held = kept_marks(branch, plane, token, heads, listed, marks)
        else:
            lift = END - 1 - code
            lift_marks(branch, lift_places[lift], np.int64(lift_climbs[lift]), plane, token, first, climb_begin,
                       climb_steps, names, parents, depths, translation, chain, heads, listed, marks)  # fmt: skip
            plane = 1 - plane
        token += 1
        k += 1
    counts[X_MARK] = token
    return held


@part
def twig_holds(
    twig, branch, stamp, first, twigs, programs, lift_places, lift_climbs, climb_begin, climb_steps, names, parents,
    depths, translation, chain, heads, listed, marks, counts,
):  # fmt: skip
    """Whether a twig matches; the branch that it waits for is there."""
    other, third, program = twigs[twig, T_OTHER], twigs[twig, T_THIRD], twigs[twig, T_PROGRAM]
    if other == NONE:
        return True
    if heads[other] >> 32 != stamp or (third != NONE and heads[third] >> 32 != stamp):
        return False
    if program != NONE:
        return program_holds(np.int64(program), stamp, first, programs, lift_places, lift_climbs, climb_begin,
                             climb_steps, names, parents, depths, translation, chain, heads, listed, marks,
                             counts)  # fmt: skip
    token = counts[X_MARK] + 1
    counts[X_MARK] = token + 2
    set_marks(branch, token, heads, listed, marks)
    held = kept_marks(np.int64(other), np.int64(0), token, heads, listed, marks)
    return held and (third == NONE or kept_marks(np.int64(third), np.int64(0), token + 1, heads, listed, marks))


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], i8[::1], ro_i8[::1], ro_i4[:, ::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i8[::1], ro_i4[::1],"
    " i8[::1], i8[::1], i4[:, ::1], i4[::1], i8[:, ::1], i4[:, ::1], i4[::1], i4[::1], i4[::1], i8[::1],"
    " b1[::1], i8[::1], i4[::1], int64)"
)
def join_twigs(
    offsets, names, parents, depths, translation, states, gates_begin, gates,
    places, climbs, hits, waiting, twigs, of_gate, programs, lift_places, lift_climbs, climb_begin, climb_steps,
    counts, heads, listed, touched, marks, queue, path, chain, last_of, last_stamps,
    unknown, out_offsets, out, start,
):  # fmt: skip
    """The entries of each document from `start` on, in no order; the first document that is not done, with why.

    `unknown` marks the documents that are left to the verifier.
    """
    for document in range(start, len(offsets) - 1):
        first, end = offsets[document], offsets[document + 1]
        written = out_offsets[document]
        out_offsets[document + 1] = written
        counts[X_STAMP] += 1
        stamp = counts[X_STAMP]
        counts[X_TOUCHED] = counts[X_LISTED] = 0
        looked = np.int64(0)
        known = True
        for element in range(first, end):
            known = known and states[element] >= 0 and depths[element] <= DEEPEST
        unknown[document] = not known
        if not known:
            continue
        for element in range(first, end):
            state = states[element]
            path[depths[element]] = element - first
            begin, last = gates_begin[state], gates_begin[state + 1]
            if begin == last:
                continue
            is_alike = last_stamps[state] == stamp and parents[last_of[state]] == parents[element]
            last_stamps[state] = stamp
            last_of[state] = element
            if not list_branches(
                element, first, is_alike, stamp, begin, last, gates, of_gate, places, climbs, climb_begin, climb_steps,
                names, parents, depths, translation, path, chain, heads, listed, touched, counts,
            ):  # fmt: skip
                counts[X_WHY] = CROWDED
                return np.int64(document)
        at, twig = np.int64(0), np.int64(-1)
        while at < counts[X_TOUCHED]:
            queued = np.int64(0)
            while at < counts[X_TOUCHED] and queued < QUEUED:
                branch = touched[at]
                if at + AHEAD < counts[X_TOUCHED]:
                    prefetch(waiting, np.int64(touched[at + AHEAD]))
                if twig < 0:
                    twig = waiting[branch]
                    hits[branch] += 1
                while twig < waiting[branch + 1] and queued < QUEUED:
                    if twigs[twig, T_OTHER] != NONE:
                        prefetch(heads, np.int64(twigs[twig, T_OTHER]))
                    queue[queued, 0] = twig
                    queue[queued, 1] = branch
                    queued += 1
                    twig += 1
                if twig == waiting[branch + 1]:
                    at += 1
                    twig = np.int64(-1)
            if written + queued > len(out):
                counts[X_WHY] = FULL
                return np.int64(document)
            looked += queued
            for k in range(queued):
                twig_at = np.int64(queue[k, 0])
                if twig_holds(
                    twig_at, np.int64(queue[k, 1]), stamp, first, twigs, programs, lift_places, lift_climbs,
                    climb_begin, climb_steps, names, parents, depths, translation, chain, heads, listed, marks, counts,
                ):  # fmt: skip
                    out[written] = twigs[twig_at, T_ENTRY]
                    written += 1
        out_offsets[document + 1] = written
        counts[X_LOOKED] += looked
    counts[X_WHY] = DONE
    return np.int64(len(offsets) - 1)
