# mypy: allow-untyped-defs, allow-untyped-calls
"""Taking matches: entries that are marked, or, as a stream, written down as they come; and gates of delegated patterns.

`asked` are: marks of the entries taken, their summary, marks of those to skip, and, where entries expire, after how
many start tags each is not looked at any more. `stream` are: the link of each entry, the stamps of decided links,
entries and times written, and what is pending: entries and when they will be certain.
"""

import numpy as np

from pathcast.kernels import part
from pathcast.matching.arrays.bitset_kernels import mark_with_summary

from ..streaming.streaming_kernels import (
    FEW_GATES,
    GATED,
    OWN_REASON,
    OWN_STATE,
    STAMP,
    WHY,
    WRITTEN,
    announce,
    is_marked,
    is_spared,
)

# What room may be lacking for, besides.
FEW_PENDING, FEW_BINDINGS, FEW_ACTIVE, FEW_PAIRS = range(OWN_REASON, OWN_REASON + 4)
# Further places in `state`: the stamp of a level or document path, counts of this document, and counts of all.
(LEVEL_STAMP, PENDING, MARKED, VISITS, TRIED, JOINED, STEPS, PATHS, SATISFIED, DETERMINED, STATE_SIZE) = range(
    OWN_STATE, OWN_STATE + 11
)


@part
def write_down(entry, time, asked, stream, state):
    """Write down an entry of a stream that is certain."""
    link, link_stamps, out, out_times, _ = stream
    state[WRITTEN] = announce(
        entry,
        np.int64(time),
        state[STAMP],
        asked[0],
        asked[1],
        link,
        link_stamps,
        state,
        out,
        out_times,
        state[WRITTEN],
    )


@part
def write_certain(read, asked, stream, state):
    """Write down what is pending and certain after so many start tags."""
    pending = stream[4]
    k = 0
    while k < state[PENDING]:
        if pending[1, k] > read:
            k += 1
            continue
        entry, time = pending[0, k], pending[1, k]
        state[PENDING] -= 1
        last = state[PENDING]
        pending[0, k], pending[1, k] = pending[0, last], pending[1, last]
        write_down(entry, time, asked, stream, state)


@part
def settled(entry, before, skipping, asked):
    """Whether an entry is taken already, or need not be looked at when so many start tags came before."""
    return is_marked(asked[0], entry) or is_spared(entry, before, skipping, asked[2], asked[3])


@part
def take(entry, time, read, streaming, asked, stream, state):
    """Take an entry that is certain after `time` start tags, `read` of which have come."""
    if not streaming:
        mark_with_summary(asked[0], asked[1], entry)
        state[MARKED] += 1
        return
    if time <= read:
        write_down(entry, read, asked, stream, state)
        return
    pending = stream[4]
    if state[PENDING] == pending.shape[1]:
        state[WHY] = FEW_PENDING
        return
    pending[0, state[PENDING]], pending[1, state[PENDING]] = entry, time
    state[PENDING] += 1


@part
def open_gate(number, gates, state):
    """Note that the path before a delegated pattern has matched, once a document."""
    gate_stamps, out_gates = gates
    if gate_stamps[number] == state[STAMP]:
        return
    if state[GATED] == len(out_gates):
        state[WHY] = FEW_GATES
        return
    gate_stamps[number] = state[STAMP]
    out_gates[state[GATED]] = number
    state[GATED] += 1
