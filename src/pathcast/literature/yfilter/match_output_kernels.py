# mypy: allow-untyped-defs, allow-untyped-calls
"""Taking matches: entries that are marked, or, as a stream, written down as they come.

An entry that is certain only after more of the document is pending: `pending` has rows for entries, and for when they
are certain.
"""

import numpy as np

from pathcast.kernels import part
from pathcast.matching.arrays.bitset_kernels import mark_with_summary

from ..streaming.streaming_kernels import OWN_REASON, OWN_STATE, WHY, announce, is_marked, is_spared

# What room may be lacking for, besides.
FEW_PENDING, FEW_BINDINGS, FEW_ACTIVE, FEW_PAIRS = range(OWN_REASON, OWN_REASON + 4)
# Further places in `state`: the stamp of a level or document path, counts of this document, and counts of all.
(LEVEL_STAMP, PENDING, MARKED, VISITS, TRIED, JOINED, STEPS, PATHS, SATISFIED, DETERMINED, STATE_SIZE) = range(
    OWN_STATE, OWN_STATE + 11
)


@part
def write_certain(read, pending, wanted, answers, state):
    """Write down what is pending and certain after so many start tags."""
    k = 0
    while k < state[PENDING]:
        if pending[1, k] > read:
            k += 1
            continue
        entry, time = pending[0, k], pending[1, k]
        state[PENDING] -= 1
        last = state[PENDING]
        pending[0, k], pending[1, k] = pending[0, last], pending[1, last]
        announce(entry, np.int64(time), wanted, answers, state)


@part
def settled(entry, before, skipping, wanted):
    """Whether an entry is taken already, or need not be looked at when so many start tags came before."""
    return is_marked(wanted.marks, entry) or is_spared(entry, before, skipping, wanted)


@part
def take(entry, time, read, streaming, pending, wanted, answers, state):
    """Take an entry that is certain after `time` start tags, `read` of which have come."""
    if not streaming:
        mark_with_summary(wanted.marks, wanted.summary, entry)
        state[MARKED] += 1
        return
    if time <= read:
        announce(entry, np.int64(read), wanted, answers, state)
        return
    if state[PENDING] == pending.shape[1]:
        state[WHY] = FEW_PENDING
        return
    pending[0, state[PENDING]], pending[1, state[PENDING]] = entry, time
    state[PENDING] += 1
