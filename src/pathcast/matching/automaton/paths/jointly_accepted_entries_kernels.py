# mypy: allow-untyped-defs, allow-untyped-calls
"""Groups of entries: partition refinement by what each state accepts, and the groups of each state.

A state splits each group that it accepts in part: the accepted entries become a new group. A group that it accepts as a
whole stays, so there are never more groups than entries, and group 0: the entries that no state accepts.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Writable, kernel, part

# A short group is written by this many unconditional stores; the places after it are overwritten by the next group.
SHORT = 8


class EntryGroups(NamedTuple):
    """The entries of group `i` are `entries[begin[i] : begin[i + 1]]`; the first `known` states have groups.

    The groups of state `s` are `groups[state_begin[s] : state_begin[s + 1]]`.
    """

    begin: Int32s
    entries: Int32s
    state_begin: Int64s
    groups: Int32s
    known: int


class Accepted(NamedTuple):
    """State `s` accepts `entries[begin[s] : begin[s + 1]]`; `first` is subtracted from each."""

    entries: Int32s
    begin: Int64s
    first: int
    states: int


class GroupScratch(NamedTuple):
    """For each group its size, how many of its entries a state accepts, and where these go; and the touched groups."""

    sizes: Writable[Int32s]
    accepted: Writable[Int32s]
    targets: Writable[Int32s]
    touched: Writable[Int32s]


@kernel(late=True)
def refine_groups(accepted: Accepted, group_of: Writable[Int32s], scratch: GroupScratch) -> int:
    """Compute the group of each entry, which is 0 at first; return the number of groups, group 0 included."""
    sizes, counts, targets, touched = scratch
    made = 1
    for state in range(accepted.states):
        begin, end = accepted.begin[state], accepted.begin[state + 1]
        n = 0
        for index in range(begin, end):
            group = group_of[accepted.entries[index] - accepted.first]
            if counts[group] == 0:
                touched[n] = group
                n += 1
            counts[group] += 1
        for index in range(n):
            group = touched[index]
            targets[group] = group
            if group == 0 or counts[group] < sizes[group]:
                targets[group] = made
                sizes[made] = counts[group]
                sizes[group] -= counts[group]
                made += 1
            counts[group] = 0
        for index in range(begin, end):
            entry = accepted.entries[index] - accepted.first
            group_of[entry] = targets[group_of[entry]]
    return made


@kernel(late=True)
def list_groups(
    accepted: Accepted,
    group_of: Int32s,
    numbers: Writable[Int32s],
    stamps: Writable[Int32s],
    state_begin: Writable[Int64s],
    listed: Writable[Int32s],
) -> int:
    """List the groups of each state, numbered in the order of their first appearance; return how many there are.

    `numbers` receives the number of each group. Numbers and stamps are -1 at first, so that of group 0 remains -1.
    """
    used, n = 0, 0
    for state in range(accepted.states):
        for index in range(accepted.begin[state], accepted.begin[state + 1]):
            group = group_of[accepted.entries[index] - accepted.first]
            if stamps[group] != state:
                stamps[group] = state
                if numbers[group] < 0:
                    numbers[group] = used
                    used += 1
                listed[n] = numbers[group]
                n += 1
        state_begin[state + 1] = n
    return used


@kernel(late=True)
def fill_groups(
    first: int, group_of: Int32s, numbers: Int32s, begin: Writable[Int32s], entries: Writable[Int32s]
) -> None:
    """Write the entries of each numbered group; `begin` moves to where each group ends."""
    for entry in range(len(group_of)):
        number = numbers[group_of[entry]]
        if number >= 0:
            entries[begin[number]] = first + entry
            begin[number] += 1


@part
def write_groups(groups, state, stamps, stamp, out, written, listed, count, least):
    """Append the entries of those groups of a state that lack the stamp; return how many entries are written now.

    A group of `least` entries or more is appended to `listed` instead, which has `count` by then; returned, too.
    Up to `SHORT` places beyond the valid ones may be overwritten.
    """
    for index in range(groups.state_begin[state], groups.state_begin[state + 1]):
        group = np.uint32(groups.groups[index])
        if stamps[group] != stamp:
            stamps[group] = stamp
            begin, end = groups.begin[group], groups.begin[group + np.uint32(1)]
            if end - begin >= least:
                listed[count] = group
                count += 1
                continue
            for place in range(SHORT):
                out[np.uint64(written + place)] = groups.entries[np.uint64(begin + place)]
            for place in range(begin + SHORT, end):
                out[np.uint64(written + place - begin)] = groups.entries[np.uint64(place)]
            written += end - begin
    return written, count
