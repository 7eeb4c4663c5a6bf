"""Groups of entries: entries that the same states accept match together, and are written by one copy.

    state 1 accepts   a b c d          groups   ab | cd | e
    state 2 accepts       c d e        state 1: ab cd     state 2: cd e

The entries of a document are those of the groups of its states, each group once. A document of the field's workloads
has thousands of entries and some hundreds of groups.

Groups are computed for the states known at the time. A document with a later state marks its entries one by one; when
such documents have marked twice as many entries as all states accept, grouping again costs less than was lost.

Invariant: groups are disjoint, and every state below `known` accepts exactly the entries of its groups.
Cost: three passes over what all states accept, some 10 ns per accepted entry; 4 bytes per entry, and per group of a
state.
"""

import numpy as np

from pathcast.store import offsets_of

from .jointly_accepted_entries_kernels import (
    SHORT,
    Accepted,
    EntryGroups,
    GroupScratch,
    fill_groups,
    list_groups,
    refine_groups,
)

_NO_NUMBERS = np.zeros(0, dtype=np.int32)
NO_GROUPS = EntryGroups(_NO_NUMBERS, _NO_NUMBERS, np.zeros(1, dtype=np.int64), _NO_NUMBERS, 0)


def grouped(accepted: Accepted, entry_limit: int) -> EntryGroups:
    """The groups of the entries from `accepted.first` to `entry_limit`."""
    count, total = entry_limit - accepted.first, int(accepted.begin[accepted.states])
    group_of = np.zeros(count, dtype=np.int32)
    scratch = GroupScratch(*np.zeros((4, count + 1), dtype=np.int32))
    scratch.sizes[0] = count
    made = refine_groups(accepted, group_of, scratch)
    state_begin = np.zeros(accepted.states + 1, dtype=np.int64)
    listed = np.empty(total, dtype=np.int32)
    numbers, stamps = np.full((2, made), -1, dtype=np.int32)
    used = list_groups(accepted, group_of, numbers, stamps, state_begin, listed)
    # Groups are numbered by the first state that accepts them, so that those of a state are close together.
    numbered = numbers >= 0
    sizes = np.zeros(used, dtype=np.int32)
    sizes[numbers[numbered]] = scratch.sizes[:made][numbered]
    begin = offsets_of(sizes).astype(np.int32)
    entries = np.zeros(begin[-1] + SHORT, dtype=np.int32)
    fill_groups(accepted.first, group_of, numbers, begin[:-1].copy(), entries)
    return EntryGroups(begin, entries, state_begin, listed[: state_begin[-1]].copy(), accepted.states)
