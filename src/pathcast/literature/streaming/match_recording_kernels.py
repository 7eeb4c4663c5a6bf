# mypy: allow-untyped-defs, allow-untyped-calls
"""Shared by kernels of engines that run over start and end tags: the wanted entries, and the answers.

`state` is an array of numbers that persist from call to call. Its first places mean the same for every such kernel;
those from OWN_STATE on are the kernel's own. So are the reasons to stop from OWN_REASON on.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, UInt64s, Writable, part, rare
from pathcast.matching.arrays.bitset_kernels import LOW_SIX, ONE, SIX, mark_with_summary, read_few_marks

# The document's stamp; the number of entries and gates written; why the run stopped; switches; links that wait, and
# start tags read.
STAMP, WRITTEN, GATED, WHY, STREAM, SKIPPING, WAITING, READ, OWN_STATE = range(9)
# All is done, or there is no room for entries, for gates, or for data of the engine's own.
DONE, FEW_OUT, FEW_GATES, OWN_REASON = range(4)


class Wanted(NamedTuple):
    """The wanted entries.

    `marks` and `summary` are the set of those found, `skips` of those to skip. An entry is not searched after `expiry`
    start tags. `link` has the link of each entry; a link with the document's stamp is decided. `expiry` and `link` may
    be empty.
    """

    marks: Writable[UInt64s]
    summary: Writable[UInt64s]
    skips: UInt64s
    expiry: Int32s
    link: Int32s
    link_stamps: Writable[Int64s]


class Answers(NamedTuple):
    """The results of a run: entries, for a stream with the start tags read, and gates, each once per document.

    Those of document `i` end at `offsets[i + 1]` and `gate_offsets[i + 1]`.
    """

    entries: Writable[Int32s]
    times: Writable[Int32s]
    gates: Writable[Int32s]
    gate_stamps: Writable[Int64s]
    offsets: Writable[Int64s]
    gate_offsets: Writable[Int64s]


@part
def is_marked(marks, number):
    """Whether a number is in the set."""
    place = np.uint64(number)
    return (marks[place >> SIX] >> (place & LOW_SIX)) & ONE != 0


@part
def is_spared(entry, place, skipping, wanted):
    """Whether an entry need not be searched after `place` start tags."""
    expiry = wanted.expiry
    return (skipping and is_marked(wanted.skips, entry)) or (len(expiry) > 0 and place >= expiry[entry])


@rare
def wipe(marks, summary):
    """Empty the set: a document restarts, or its entries have already been written."""
    for index in range(len(summary)):
        if summary[index]:
            summary[index] = 0
            for at in range(64 * index, min(64 * index + 64, len(marks))):
                marks[at] = 0


@part
def finish(marked, wanted, answers, state):
    """Write the entries that a document has marked, unless a stream has; return whether there was room for all."""
    marks, summary, out = wanted.marks, wanted.summary, answers.entries
    streaming = state[STREAM] == 1
    if not streaming and state[WHY] == DONE and state[WRITTEN] + min(marked, 64 * len(marks)) + 8 > len(out):
        state[WHY] = FEW_OUT
    if streaming or state[WHY] != DONE:
        wipe(marks, summary)
    else:
        state[WRITTEN] = read_few_marks(marks, summary, out, state[WRITTEN])
    return state[WHY] == DONE


@rare
def waited_for(skipping, stamp, wanted):
    """Count the links with an entry that is not skipped. Each gets the negated stamp; once decided, the stamp."""
    link, link_stamps, skips = wanted.link, wanted.link_stamps, wanted.skips
    count = 0
    for entry in range(len(link)):
        at = link[entry]
        if at >= 0 and link_stamps[at] != -stamp and not (skipping and is_marked(skips, entry)):
            link_stamps[at] = -stamp
            count += 1
    return count


@rare
def announce(entry, time, wanted, answers, state):
    """Write an entry of a stream, if it is new, and mark its link as decided."""
    if is_marked(wanted.marks, entry):
        return
    mark_with_summary(wanted.marks, wanted.summary, entry)
    written = state[WRITTEN]
    answers.entries[written] = entry
    answers.times[written] = time
    state[WRITTEN] = written + 1
    link, link_stamps, stamp = wanted.link, wanted.link_stamps, state[STAMP]
    if len(link) and link[entry] >= 0 and link_stamps[link[entry]] != stamp:
        link_stamps[link[entry]] = stamp
        state[WAITING] -= 1


@part
def open_gate(number, answers, state):
    """Record, once per document, that the path before a delegated pattern has matched."""
    stamps, gates = answers.gate_stamps, answers.gates
    if stamps[number] == state[STAMP]:
        return
    if state[GATED] == len(gates):
        state[WHY] = FEW_GATES
        return
    stamps[number] = state[STAMP]
    gates[state[GATED]] = number
    state[GATED] += 1
