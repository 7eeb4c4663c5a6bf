# mypy: allow-untyped-defs, allow-untyped-calls
"""Twigs: documents against patterns of elements that branch (`twig_patterns.py`), by the elements at which branches
hold.

    state of an element ──gates──▶ branches that end at it ──place──▶ the element above at which each holds: a list
    branches that are there ──▶ twigs that wait for them ──▶ are the others there? ──▶ do their lists meet?

Lists meet by marks: the elements of the first are marked with a number, those of the next that have it with the next
number. A lift marks elements above in another plane, and goes on there. So a twig costs the lengths of its lists.
What a look-up costs is waiting for memory; so twigs are queued first, and what they look at is fetched meanwhile.

An element with the state and the parent of one before adds nothing but trunks. A document is left to the verifier when
an element has no state, or lies deeper than DEEPEST.
"""

import numpy as np

from pathcast.kernels import kernel, lowest_bit, part, prefetch, rare

from ..values.state_value_join_kernels import ANYWHERE, DEEPEST, DOWN, depths_up

# Columns of twigs: the entry (LAST - entry for the last of those that wait for one branch), two branches besides the
# one that is waited for, and the program: if there are more branches, or lifts.
T_ENTRY, T_OTHER, T_THIRD, T_PROGRAM, T_COLUMNS = range(5)
NONE, LAST = -1, -1
# In programs: the end; lifts are below it.
END = -1
# Of a gate's branches: the place of the first one, and how many there are, in so many bits, behind its number.
PLACE_BITS, COUNT_BITS = 6, 16
# Columns of what is known of a branch: the stamp of the last document that had it, the last element at which it holds
# there, where the list of the others begins, and the first twig that waits for it.
K_STAMP, K_ELEMENT, K_MORE, K_TWIG, K_COLUMNS = range(5)
# `counts`: the last stamp, the last number of marks, branches that are there and waited for, elements in lists, twigs
# looked at, why the kernel stopped.
X_STAMP, X_MARK, X_TOUCHED, X_LISTED, X_LOOKED, X_WHY, X_COUNTS = range(7)
DONE, CROWDED, FULL = range(3)
QUEUED = 512
AHEAD, NEAR = 12, 6
# So many documents tell how rare branches are, then each SELDOM-th.
SHOWN, SELDOM = 512, 8
ONE = np.uint64(1)


@part
def list_element(branch, element, stamp, shows, known, listed, touched, hits, counts):
    """Put an element into the list of a branch, unless it is the last one; False when there is no room for that."""
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
def go_to(depth, element, name, path, path_names, depths_of):
    """Put an element into the path at a depth; `depths_of` has the depths of each name in the path, as bits."""
    bit = ONE << np.uint64(depth)
    depths_of[path_names[depth] + 1] &= ~bit
    depths_of[name + 1] |= bit
    path[depth] = element
    path_names[depth] = name


@part
def depths_above(depth, begin, end, steps, depths_of):
    """From which elements of the path steps lead to the one at this depth: their depths as bits."""
    found = ONE << np.uint64(depth)
    for k in range(end - 1, begin - 1, -1):
        symbol = steps[k] >> 1
        if symbol:
            found &= depths_of[symbol]
        found = depths_up(found, steps[k] & 1 != 0)
    return found


@part
def list_branches(
    depth, is_alike, stamp, shows, begin, end, gates, of_gate, places, climbs, climb_begin, climb_steps, path,
    depths_of, known, listed, touched, hits, counts,
):  # fmt: skip
    """List the elements at which the branches hold that end at the last element of `path`, of this depth.

    `is_alike`: only trunks are new.
    """
    for g in range(begin, end):
        if g + AHEAD < end:
            prefetch(of_gate, np.int64(gates[g + AHEAD]))
            prefetch(known, (of_gate[gates[g + NEAR]] >> (PLACE_BITS + COUNT_BITS)) * K_COLUMNS)
        branches = of_gate[gates[g]]
        branch = branches >> (PLACE_BITS + COUNT_BITS)
        last = branch + (branches & ((1 << COUNT_BITS) - 1))
        place = np.int32(branches >> COUNT_BITS & ((1 << PLACE_BITS) - 1))
        while branch < last:
            if place != ANYWHERE:
                if place == 0 or not is_alike:
                    at = path[depth - place if place < DOWN else place - DOWN]
                    if not list_element(branch, at, stamp, shows, known, listed, touched, hits, counts):
                        return False
            elif not is_alike:
                climb = climbs[branch]
                found = depths_above(depth, climb_begin[climb], climb_begin[climb + 1], climb_steps, depths_of)
                while found:
                    at = path[np.uint64(lowest_bit(found))]
                    found &= found - ONE
                    if not list_element(branch, at, stamp, shows, known, listed, touched, hits, counts):
                        return False
            branch += 1
            if branch < last:
                place = places[branch]
    return True


@part
def fetch_gates(begin, end, gates, of_gate):
    """Fetch the first branches of the element to come."""
    for g in range(begin, min(begin + AHEAD, end)):
        prefetch(of_gate, np.int64(gates[g]))


@part
def kept_marks(branch, plane, token, known, listed, marks):
    """Of the elements marked with a number leave those of a branch, with the next number; whether there are any."""
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
def set_marks(branch, token, known, listed, marks):
    """Mark the elements of a branch."""
    element, more = known[branch, K_ELEMENT], known[branch, K_MORE]
    marks[0, element] = token
    while more != NONE:
        marks[0, listed[more, 0]] = token
        more = listed[more, 1]


@rare
def lift_marks(
    branch, place, climb, plane, token, first, climb_begin, climb_steps, names, parents, depths, translation, path,
    path_names, depths_of, known, listed, marks,
):  # fmt: skip
    """Mark with the next number, in the other plane, the elements that a lift leads to from those with a number."""
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
                    go_to(depths[above], np.int32(above - first), translation[names[above]], path, path_names,
                          depths_of)  # fmt: skip
                    above = np.int64(parents[above])
                found = depths_above(depth, climb_begin[climb], climb_begin[climb + 1], climb_steps, depths_of)
                while found:
                    marks[1 - plane, path[np.uint64(lowest_bit(found))]] = token + 1
                    found &= found - ONE
        if more == NONE:
            return
        element, more = np.int64(listed[more, 0]), listed[more, 1]


@rare
def program_holds(
    program, stamp, first, programs, lift_places, lift_climbs, climb_begin, climb_steps, names, parents, depths,
    translation, path, path_names, depths_of, known, listed, marks, counts,
):  # fmt: skip
    """Whether the branches and lifts of a program hold."""
    k = program
    while programs[k] != END:
        if programs[k] > END and known[programs[k], K_STAMP] != stamp:
            return False
        k += 1
    plane, token = np.int64(0), counts[X_MARK] + 1
    branch = np.int64(programs[program])
    set_marks(branch, token, known, listed, marks)
    held = True
    k = program + 1
    while held and programs[k] != END:
        code = np.int64(programs[k])
        if code > END:
            branch = code
            held = kept_marks(branch, plane, token, known, listed, marks)
        else:
            lift = END - 1 - code
            lift_marks(
                branch, lift_places[lift], np.int64(lift_climbs[lift]), plane, token, first, climb_begin, climb_steps,
                names, parents, depths, translation, path, path_names, depths_of, known, listed, marks,
            )  # fmt: skip
            plane = 1 - plane
        token += 1
        k += 1
    counts[X_MARK] = token
    return held


@part
def twig_holds(
    twig, branch, stamp, first, twigs, programs, lift_places, lift_climbs, climb_begin, climb_steps, names, parents,
    depths, translation, path, path_names, depths_of, known, listed, marks, counts,
):  # fmt: skip
    """Whether a twig matches; the branch that it waits for is there."""
    other, third, program = np.int64(twigs[twig, T_OTHER]), np.int64(twigs[twig, T_THIRD]), twigs[twig, T_PROGRAM]
    if known[other, K_STAMP] != stamp or (third != NONE and known[third, K_STAMP] != stamp):
        return False
    if program != NONE:
        return program_holds(np.int64(program), stamp, first, programs, lift_places, lift_climbs, climb_begin,
                             climb_steps, names, parents, depths, translation, path, path_names, depths_of, known,
                             listed, marks, counts)  # fmt: skip
    if third == NONE and known[branch, K_MORE] == NONE and known[other, K_MORE] == NONE:
        return known[branch, K_ELEMENT] == known[other, K_ELEMENT]
    token = counts[X_MARK] + 1
    counts[X_MARK] = token + 2
    set_marks(branch, token, known, listed, marks)
    held = kept_marks(other, np.int64(0), token, known, listed, marks)
    return held and (third == NONE or kept_marks(third, np.int64(0), token + 1, known, listed, marks))


@part
def queue_twigs(state, touched, twigs, known, queue, counts):
    """Queue twigs that wait for what is there, from the branch and twig in `state` on; how many."""
    at, twig, last = state[0], state[1], counts[X_TOUCHED]
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


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], i8[::1], ro_i4[:, ::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i8[::1], ro_i4[::1],"
    " i8[::1], i4[:, ::1], i4[:, ::1], i4[::1], i8[:, ::1], i4[:, ::1], i8[::1], i4[::1], i4[::1], u8[::1],"
    " i4[::1], i8[::1], b1[::1], i8[::1], i4[::1], int64)"
)
def join_twigs(
    offsets, names, parents, depths, translation, states, gates_begin, gates,
    places, climbs, hits, twigs, of_gate, programs, lift_places, lift_climbs, climb_begin, climb_steps,
    counts, known, listed, touched, marks, queue, next_twig, path, path_names, depths_of,
    last_of, last_stamps, unknown, out_offsets, out, start,
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
        shows = stamp < SHOWN or stamp % SELDOM == 0
        is_known = True
        for element in range(first, end):
            is_known = is_known and states[element] >= 0 and depths[element] <= DEEPEST
        unknown[document] = not is_known
        if not is_known:
            continue
        for element in range(first, end):
            state, depth = states[element], depths[element]
            go_to(depth, np.int32(element - first), translation[names[element]], path, path_names, depths_of)
            if element + 1 < end:
                fetch_gates(gates_begin[states[element + 1]], gates_begin[states[element + 1] + 1], gates, of_gate)
            is_alike = last_stamps[state] == stamp and parents[last_of[state]] == parents[element]
            last_stamps[state] = stamp
            last_of[state] = element
            if not list_branches(
                depth, is_alike, stamp, shows, gates_begin[state], gates_begin[state + 1], gates, of_gate, places,
                climbs, climb_begin, climb_steps, path, depths_of, known, listed, touched, hits, counts,
            ):  # fmt: skip
                counts[X_WHY] = CROWDED
                return np.int64(document)
        next_twig[0], next_twig[1] = 0, NONE
        looked = np.int64(0)
        while next_twig[0] < counts[X_TOUCHED]:
            queued = queue_twigs(next_twig, touched, twigs, known, queue, counts)
            if written + queued > len(out):
                counts[X_WHY] = FULL
                return np.int64(document)
            looked += queued
            for k in range(queued):
                twig = np.int64(queue[k, 0])
                if k + NEAR < queued and twigs[queue[k + NEAR, 0], T_PROGRAM] != NONE:
                    prefetch(programs, np.int64(twigs[queue[k + NEAR, 0], T_PROGRAM]))
                if twig_holds(
                    twig, np.int64(queue[k, 1]), stamp, first, twigs, programs, lift_places, lift_climbs, climb_begin,
                    climb_steps, names, parents, depths, translation, path, path_names, depths_of, known, listed, marks,
                    counts,
                ):  # fmt: skip
                    entry = twigs[twig, T_ENTRY]
                    out[written] = entry if entry >= 0 else LAST - entry
                    written += 1
        out_offsets[document + 1] = written
        counts[X_LOOKED] += looked
    counts[X_WHY] = DONE
    return np.int64(len(offsets) - 1)
