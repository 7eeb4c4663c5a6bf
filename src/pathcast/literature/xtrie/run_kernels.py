# mypy: allow-untyped-defs, allow-untyped-calls
"""The run: a loop over start and end tags, the tables on one side and the stacks of a document on the other.

    start_tag, end_tag ──▶ hits, ready ──follow_rows, follow_twigs──▶ live rows, partial matchings, entries

An event only finds what it hits and what is ready; all that follows from it comes after, in the same way for every
event. So matches are certain at the tag that makes them so, and a run can stop between any two tags.
"""

from pathcast.kernels import kernel

from ..streaming.streaming_kernels import (
    DONE,
    GATED,
    READ,
    SKIPPING,
    STAMP,
    STREAM,
    WAITING,
    WHY,
    WRITTEN,
    finish,
    waited_for,
)
from .layout_kernels import LEVEL, MARKED, TIME
from .partial_match_kernels import follow_rows, follow_twigs
from .tag_kernels import close_document, end_tag, open_document, start_tag


@kernel(
    # the documents, from the first one to do
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], int64,"
    " Tuple((ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1],"
    " ro_i4[::1], ro_u1[::1], ro_u1[::1], ro_i4[::1], u1[::1])),"
    # the tables: trie, plain rows, twigs, tests of values
    " Tuple((ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[::1], ro_i4[::1], ro_i4[::1])),"
    " Tuple((ro_i4[::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[::1], ro_i4[::1], int64)),"
    " ro_i4[:, ::1], Tuple((ro_i4[::1], ro_i4[:, ::1], ro_f8[::1], ro_u1[::1], ro_i4[::1])),"
    # the document's stacks, and what is known of values
    " i8[::1], Tuple((i4[:, ::1], i4[::1], i4[::1], i4[:, ::1], i4[::1], i4[:, ::1], i4[::1], i8[:, ::1], i4[::1],"
    " i4[:, ::1])), i8[::1],"
    # what is asked for, and the answers
    " Tuple((u8[::1], ro_u8[::1], ro_u1[::1], ro_i4[::1], i8[::1], ro_i4[::1])),"
    " Tuple((u8[::1], i8[::1], i4[::1], i4[::1], i4[::1])), i8[::1], i8[::1])"
)
def run(
    offsets, names, depths, ends, translation, first_document, values, trie, plain, twigs, tests, state, stacks, known,
    asked, answers, out_offsets, gate_offsets,
):  # fmt: skip
    """Run the documents from `first_document` on; the first one that is not done, with why in `state[WHY]`.

    `asked` is marks, skips, wanted rows, link of each entry, stamps of links, expiry of each entry; `answers` is the
    marks' summary, stamps of gates, entries, their positions, gates.
    """
    nodes, (levels, hits) = trie[3], (stacks[0], stacks[8])
    marks, link = asked[0], asked[3]
    summary, out = answers[0], answers[2]
    streaming, document = state[STREAM] == 1, first_document
    state[WHY] = DONE
    while document < len(offsets) - 1 and state[WHY] == DONE:
        state[STAMP] += 1
        state[MARKED] = 0
        first, end, gated_before = offsets[document], offsets[document + 1], state[GATED]
        element = first
        open_document(levels, hits, state)
        if streaming:
            state[WAITING] = waited_for(link, state[SKIPPING] == 1, asked[1], asked[4], state[STAMP])
        while end > first:
            follow_rows(state, plain, stacks, asked, answers)
            follow_twigs(state, nodes, twigs, ends, values, tests, known, stacks, asked, answers)
            if state[WHY] != DONE or (streaming and len(link) and state[WAITING] == 0):
                break
            if state[LEVEL] > 0 and (element == end or depths[element] <= state[LEVEL]):
                end_tag(state, stacks)
            elif element < end:
                start_tag(element, translation[names[element]] + 1, state, trie, plain, twigs, stacks, asked)
                element += 1
            else:
                break
        close_document(state, stacks)
        state[READ] = state[TIME]
        if not finish(state[MARKED], marks, summary, out, state):
            state[GATED] = gated_before
            break
        document += 1
        out_offsets[document] = state[WRITTEN]
        gate_offsets[document] = state[GATED]
    return document
