"""Ids by group: a copy of the laid-out ids, in the order in which documents need them.

A document's entries come group by group (`jointly_accepted_entries.py`), and the ids of an entry's neighbours are
somewhere else: each entry waits for memory. A copy in the order of the groups is read from front to back.

The copy is made when twice as many ids have been written as there are: then it costs less than was lost. It is not
made if every entry has one id, since a copy saves nothing then.

Invariant: the ids of entry `e` are `ids[begin[place[e]] : begin[place[e] + 1]]`, those that are laid out.
Cost: 4 bytes per id and 12 per entry; some 10 ns per id to make.
"""

import numpy as np

from pathcast.kernels import Int32s, Int64s

from .subscriptions_by_pattern_kernels import IdsByGroup, copy_ids

NO_COPY = IdsByGroup(np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32))


def ids_by_group(begin: Int64s, ids: Int32s, entries: Int32s) -> IdsByGroup:
    """The ids of all entries, `ids[begin[e] : begin[e + 1]]`, in the order of `entries`, then those of the others."""
    count = len(begin) - 1
    place = np.full(count, -1, dtype=np.int32)
    known = entries[entries < count]
    place[known] = np.arange(len(known), dtype=np.int32)
    place[place < 0] = np.arange(len(known), count, dtype=np.int32)
    order = np.empty(count, dtype=np.int32)
    order[place] = np.arange(count, dtype=np.int32)
    copied, copied_begin = np.empty(len(ids), dtype=np.int32), np.zeros(count + 1, dtype=np.int64)
    copy_ids(order, begin, ids, copied_begin, copied)
    return IdsByGroup(place, copied_begin, copied)
