# mypy: allow-untyped-defs, allow-untyped-calls
"""Sets of entries and of targets, for kernels: what annotations rule out, who wants what, what is left to match.

An entry is ruled out as soon as one of the numbers (aggregates, data patterns) that stand over it is; so entries are
gone through once, those that are ruled out already or that nobody wants not at all. A nanosecond or two an entry.
"""

from ..kernels import kernel


@kernel("int64(ro_i8[::1], ro_i4[::1], ro_b1[::1], ro_b1[::1], b1[::1])", late=True)
def mark_behind(begins, numbers, holding, idle, marked):
    """Mark the entries that are not idle and stand behind one of the `holding` numbers; how many are newly marked.

    The numbers over entry `e` are `numbers[begins[e] : begins[e + 1]]`.
    """
    fresh = 0
    for entry in range(min(len(begins) - 1, len(marked))):
        if marked[entry] or idle[entry]:
            continue
        for at in range(begins[entry], begins[entry + 1]):
            if holding[numbers[at]]:
                marked[entry] = True
                fresh += 1
                break
    return fresh


@kernel("void(ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1], i4[::1])", late=True)
def expire_behind(begins, entries, numbers, places, expiry):
    """For the entries behind each number the least of the numbers' places."""
    for k in range(len(numbers)):
        for at in range(begins[numbers[k]], begins[numbers[k] + 1]):
            entry = entries[at]
            if entry < len(expiry) and places[k] < expiry[entry]:
                expiry[entry] = places[k]


@kernel("void(ro_i4[::1], ro_b1[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1], ro_b1[::1], b1[::1])", late=True)
def mark_targets(entries, skip, group, begins, members, decided, found):
    """Mark the targets that are not decided and want one of the entries that are not skipped; both may be empty."""
    for entry in entries:
        if group[entry] < 0 or (len(skip) > 0 and skip[entry]):
            continue
        for at in range(begins[group[entry]], begins[group[entry] + 1]):
            found[members[at]] = len(decided) == 0 or not decided[members[at]]


@kernel("int64(ro_i4[::1], ro_b1[::1], ro_i8[::1], ro_i8[::1], ro_b1[::1], b1[::1])", late=True)
def leave_out(group, failed, begins, members, decided, skip):
    """Mark the entries that need no matching (idle, failed, of decided targets alone); how many are left."""
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
