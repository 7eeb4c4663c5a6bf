# mypy: allow-untyped-defs, allow-untyped-calls
"""Sets of entries and of targets, for kernels: entries that annotations rule out, targets, entries left to match.

An entry is ruled out as soon as one of its numbers (of aggregates, of data patterns) is; so each entry is visited once,
and entries that are already ruled out or idle are skipped. Cost: a nanosecond or two per entry. The entries of a
neighbour come first, so that its copy can leave early.
"""

import numpy as np

from pathcast.kernels import kernel

ONE = np.uint64(1)


@kernel("int64(ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_b1[::1], ro_b1[::1], b1[::1])", late=True)
def mark_behind(entries, begins, numbers, holding, idle, marked):
    """Mark the entries behind one of the `holding` numbers, except idle ones; return how many are newly marked.

    The numbers of entry `e` are `numbers[begins[e] : begins[e + 1]]`; entries from `len(begins) - 1` on have none.
    """
    fresh = 0
    for k in range(len(entries)):
        entry = np.uint64(entries[k])  # unsigned: no check for negative indexes
        if marked[k] or entry >= np.uint64(len(begins) - 1):
            continue
        at, last, found = np.uint64(begins[entry]), np.uint64(begins[entry + ONE]), False
        while at < last and not found:
            found = holding[np.uint64(numbers[at])]
            at += ONE
        found &= not idle[entry]
        marked[k] = found
        fresh += found
    return fresh


@kernel("int64(ro_i4[::1], ro_i4[::1], ro_b1[::1], ro_b1[::1], b1[::1])", late=True)
def mark_alone(entries, numbers, holding, idle, marked):
    """As `mark_behind`, if each entry has one number, `numbers[e]`, and nothing is marked yet."""
    fresh = 0
    for k in range(len(entries)):
        entry = np.uint64(entries[k])
        found = holding[np.uint64(numbers[entry])] and not idle[entry]
        marked[k] = found
        fresh += found
    return fresh


@kernel("int64(ro_i8[::1], ro_i4[::1], ro_b1[::1], i4[::1])", late=True)
def list_behind(begins, entries, holding, out):
    """Write the entries behind the `holding` numbers; return their number."""
    count = 0
    for number in range(len(holding)):
        if holding[number]:
            for at in range(begins[number], begins[number + 1]):
                out[count] = entries[at]
                count += 1
    return count


@kernel("void(ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1], i4[::1])", late=True)
def expire_behind(begins, entries, numbers, places, expiry):
    """Lower the expiry of the entries behind each number to the number's place."""
    for k in range(len(numbers)):
        for at in range(begins[numbers[k]], begins[numbers[k] + 1]):
            entry = entries[at]
            if entry < len(expiry) and places[k] < expiry[entry]:
                expiry[entry] = places[k]


@kernel("int64(ro_i4[::1], ro_b1[::1], b1[::1])", late=True)
def pick(entries, mask, picked):
    """Write the mask's value for each of these entries; return how many are true."""
    count = 0
    for k in range(len(entries)):
        picked[k] = mask[entries[k]]
        count += picked[k]
    return count


@kernel("void(ro_i4[::1], ro_b1[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1], ro_b1[::1], b1[::1])", late=True)
def mark_targets(entries, skip, group, begins, members, decided, found):
    """Mark the undecided targets that want one of the entries that are not skipped; both masks may be empty."""
    for entry in entries:
        if group[entry] < 0 or (len(skip) > 0 and skip[entry]):
            continue
        for at in range(begins[group[entry]], begins[group[entry] + 1]):
            found[members[at]] = len(decided) == 0 or not decided[members[at]]


@kernel("int64(ro_i4[::1], ro_b1[::1], ro_i8[::1], ro_i8[::1], ro_b1[::1], b1[::1])", late=True)
def leave_out(group, failed, begins, members, decided, skip):
    """Mark the entries that need no matching (idle, failed, or all targets decided); return how many are left."""
    left = 0
    for entry in range(len(group)):
        needed = False
        if group[entry] >= 0 and not failed[entry]:
            for at in range(begins[group[entry]], begins[group[entry] + 1]):
                if not decided[members[at]]:
                    needed = True
                    break
        skip[entry] = not needed
        left += needed
    return left


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_b1[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1], i8[::1], i8[::1], i4[::1])",
    late=True,
)
def gather_targets(offsets, entries, chosen, group, begins, members, stamps, edges, out):
    """Collect the targets of each chosen document: those of document `i` are `out[edges[i] : edges[i + 1]]`, distinct.

    `entries[offsets[i] : offsets[i + 1]]` are the matches of document `i`; `stamps` are 0 for every target. Returns
    their total number, or -1 if `out` is too short.
    """
    filled = 0
    for document in range(len(offsets) - 1):
        edges[document] = filled
        if not chosen[document]:
            continue
        for at in range(offsets[document], offsets[document + 1]):
            mine = group[entries[at]]
            if mine < 0:
                continue
            for k in range(begins[mine], begins[mine + 1]):
                target = members[k]
                if stamps[target] != document + 1:
                    if filled == len(out):
                        return -1
                    stamps[target] = document + 1
                    out[filled] = target
                    filled += 1
    edges[len(offsets) - 1] = filled
    return filled
