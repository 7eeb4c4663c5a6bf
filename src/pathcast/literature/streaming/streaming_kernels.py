# mypy: allow-untyped-defs, allow-untyped-calls
"""What kernels of engines that run over start and end tags share: the set of found entries, and a stream's answers.

`state` is an array of numbers that go on from call to call. Its first places mean the same for every such kernel; those
from OWN_STATE on are the kernel's own. So are the reasons to stop from OWN_REASON on.
"""

import numpy as np

from pathcast.kernels import part, rare
from pathcast.matching.arrays.bitset_kernels import LOW_SIX, ONE, SIX, mark_with_summary, read_few_marks

# The document's stamp; how many entries and gates are written; why the run stopped; switches; links that wait, and
# start tags that were read.
STAMP, WRITTEN, GATED, WHY, STREAM, SKIPPING, WAITING, READ, OWN_STATE = range(9)
# All is done, or room is lacking for entries, for gates, or for something of the engine's own.
DONE, FEW_OUT, FEW_GATES, OWN_REASON = range(4)


@part
def is_marked(marks, number):
    """Whether a number is in the set."""
    place = np.uint64(number)
    return (marks[place >> SIX] >> (place & LOW_SIX)) & ONE != 0


@part
def is_spared(entry, place, skipping, skips, expiry):
    """Whether an entry need not be looked at after so many start tags."""
    return (skipping and is_marked(skips, entry)) or (len(expiry) > 0 and place >= expiry[entry])


@rare
def wipe(marks, summary):
    """Empty the set: a document is run again, or its entries were written as they came."""
    for index in range(len(summary)):
        if summary[index]:
            summary[index] = 0
            for at in range(64 * index, min(64 * index + 64, len(marks))):
                marks[at] = 0


@part
def finish(marked, marks, summary, out, state):
    """Write down what a document has marked, unless a stream has; whether there was room for all of it."""
    streaming = state[STREAM] == 1
    if not streaming and state[WHY] == DONE and state[WRITTEN] + min(marked, 64 * len(marks)) + 8 > len(out):
        state[WHY] = FEW_OUT
    if streaming or state[WHY] != DONE:
        wipe(marks, summary)
    else:
        state[WRITTEN] = read_few_marks(marks, summary, out, state[WRITTEN])
    return state[WHY] == DONE


@rare
def waited_for(link, skipping, skips, link_stamps, stamp):
    """How many links have an entry that is not skipped. Each gets the stamp below zero; above it, it is decided."""
    count = 0
    for entry in range(len(link)):
        at = link[entry]
        if at >= 0 and link_stamps[at] != -stamp and not (skipping and is_marked(skips, entry)):
            link_stamps[at] = -stamp
            count += 1
    return count


@rare
def announce(entry, time, stamp, marks, summary, link, link_stamps, state, out, out_times, written):
    """Write down an entry of a stream, if it is new, and that its link is decided; how many are written."""
    if is_marked(marks, entry):
        return written
    mark_with_summary(marks, summary, entry)
    out[written] = entry
    out_times[written] = time
    if len(link) and link[entry] >= 0 and link_stamps[link[entry]] != stamp:
        link_stamps[link[entry]] = stamp
        state[WAITING] -= 1
    return written + 1
