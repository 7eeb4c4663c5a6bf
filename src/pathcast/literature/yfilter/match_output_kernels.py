# mypy: allow-untyped-defs, allow-untyped-calls
"""Output of matches: entries are marked or, in a stream, written as they arrive.

An entry that is certain only after more of the document is pending: `pending` has rows for entries, and for when they
are certain.
"""

import numpy as np

from pathcast.kernels import part
from pathcast.matching.arrays.bitset_kernels import mark_with_summary

from ..streaming.match_recording_kernels import OWN_REASON, OWN_STATE, WHY, announce, is_marked, is_spared

# Further reasons to stop: what there is no room for.
FEW_PENDING, FEW_BINDINGS, FEW_ACTIVE, FEW_PAIRS = range(OWN_REASON, OWN_REASON + 4)
# Further places in `state`: the stamp of a level or document path, counts of this document, and counts of all.
(LEVEL_STAMP, PENDING, MARKED, VISITS, TRIED, JOINED, STEPS, PATHS, SATISFIED, DETERMINED, STATE_SIZE) = range(
    OWN_STATE, OWN_STATE + 11
)


@part
def write_certain(read, pending, wanted, answers, state):
    """Write the pending entries that are certain after `read` start tags."""
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
    """Whether an entry is already accepted, or need not be searched after `before` start tags."""
    return is_marked(wanted.marks, entry) or is_spared(entry, before, skipping, wanted)


@part
def take(entry, time, read, streaming, pending, wanted, answers, state):
    """Accept an entry that is certain after `time` start tags, of which `read` have been read."""
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
