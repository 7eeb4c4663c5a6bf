# mypy: allow-untyped-defs, allow-untyped-calls
"""The run of XTrie over a document that is rewritten while it is walked (IDDR, §3.2).

    walk_kernels.advance ──▶ start_tag, end_tag ──▶ follow_rows, follow_twigs      (those of matching/xtrie)
                         └─▶ keep, confirm

Partial matchings of an element whose ancestors have been met are *confirmed*. Those that the element E of an exchange
gives to the F around it are *potential* for every further F: they are kept once E has been walked in the first F, and a
further F takes them over as if E had been walked in it. Nothing else of E can differ: the labels above it are the same,
so plain paths that end in E have matched, and levels above F have been credited.

Invariant: entries and gates are those of the rewritten document. Tests of values that moving has changed are left
undecided: a gate that is answered on the rewritten document.
"""

import numpy as np

from pathcast.kernels import kernel, rare
from pathcast.literature.streaming.streaming_kernels import (
    DONE,
    GATED,
    OWN_REASON,
    SKIPPING,
    STAMP,
    WHY,
    WRITTEN,
    finish,
    wipe,
)
from pathcast.literature.xtrie.layout_kernels import (
    AT_END,
    FEW_LEVELS,
    L_PARTIAL,
    LEVEL,
    MARKED,
    P_BESIDE,
    P_CREDIT,
    P_ROW,
    T_ENTRY,
    TIME,
    is_settled,
)
from pathcast.literature.xtrie.partial_match_kernels import credit, follow_rows, follow_twigs, partial_at
from pathcast.literature.xtrie.tag_kernels import close_document, end_tag, open_document, start_tag

from .layout_kernels import NONE, STAY, TOO_LARGE, TOO_MANY_ROOTS
from .rewriting_walk_kernels import (
    A_KEPT_END,
    A_NEXT,
    A_OWNER,
    A_PLACE,
    A_VIA,
    A_WHERE,
    CONFIRM,
    D_DEPTH,
    D_ELEMENT,
    D_FROM,
    D_KEPT,
    D_SYMBOL,
    D_UNTIL,
    END,
    KEEP,
    NO_ROOM,
    PASS,
    START,
    advance,
    consider,
    push,
)

# No room for the walk: behind the engine's own reasons.
FEW_FRAMES = OWN_REASON + 16


@rare
def keep(state, stacks, frames, kept, walk):
    """Keep the partial matchings of the open level: what an exchanged element means for those around it."""
    levels, partial = stacks[0], stacks[7]
    at = np.int64(levels[L_PARTIAL, state[LEVEL]])
    while at >= 0:
        credit = partial[at, P_CREDIT] & ~AT_END
        if credit != 0:
            n = walk[D_KEPT]
            if n == kept.shape[1]:
                state[WHY] = FEW_FRAMES
                return
            kept[0, n], kept[1, n] = partial[at, P_ROW], credit
            walk[D_KEPT] = n + 1
        at = np.int64(partial[at, P_BESIDE])
    frames[frames[walk[D_DEPTH] - 1, A_VIA], A_KEPT_END] = walk[D_KEPT]


@rare
def confirm(state, nodes, twigs, stacks, asked, kept, first, until):
    """Give the open level the partial matchings that were kept; those that are complete are ready."""
    partial_head = stacks[6]
    marks, skips, _, link, link_stamps, _ = asked
    level = state[LEVEL]
    for k in range(first, until):
        row = kept[0, k]
        if is_settled(twigs[row, T_ENTRY], state[STAMP], marks, state[SKIPPING] == 1, skips, link, link_stamps):
            continue
        at = partial_at(row, level, np.int64(-1), np.int64(partial_head[row]), state, stacks)
        if at >= 0:
            credit(at, kept[1, k], row, level, state, nodes, twigs, stacks)
        if state[WHY] != DONE:
            return


@rare
def begin_walk(root, document, plan, room, walk):
    """A pass over the root alone."""
    walk[:] = 0
    at = push(room[0], walk, PASS)
    frames = room[0]
    frames[at, A_OWNER], frames[at, A_PLACE], frames[at, A_WHERE], frames[at, A_NEXT] = NONE, STAY, NONE, NONE
    consider(root, np.int64(NONE), np.int64(NONE), at, np.int64(NONE), document, plan, np.int64(0), room, walk)


@kernel(
    # the documents, from the first one to do: offsets; nodes, ends, attributes, names, depths; symbols; values
    "int64(int64, ro_i8[::1], int64, int64, Tuple((ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[::1])), ro_i4[::1],"
    " Tuple((ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1],"
    " ro_i4[::1], ro_u1[::1], ro_u1[::1], ro_i4[::1], u1[::1])),"
    # the plan, and what the walk needs: frames, tails, slots, new elements, what is kept
    " Tuple((ro_i4[:, ::1], ro_i4[:, ::1], ro_i4[:, ::1])),"
    " Tuple((i4[:, ::1], i4[:, ::1], i4[::1], i4[::1], i8[:, ::1])), i8[::1],"
    # the tables: trie, plain rows, twigs, tests of values
    " Tuple((ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[::1], ro_i4[::1], ro_i4[::1])),"
    " Tuple((ro_i4[::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[::1], ro_i4[::1], int64)),"
    " ro_i4[:, ::1], Tuple((ro_i4[::1], ro_i4[:, ::1], ro_f8[::1], ro_u1[::1], ro_i4[::1])),"
    # the document's stacks, and what is known of values
    " i8[::1], Tuple((i4[:, ::1], i4[::1], i4[::1], i4[:, ::1], i4[::1], i4[:, ::1], i4[::1], i8[:, ::1], i4[::1],"
    " i4[:, ::1])), i8[::1],"
    # what is asked for, and the answers
    " Tuple((u8[::1], ro_u8[::1], ro_u1[::1], ro_i4[::1], i8[::1], ro_i4[::1])),"
    " Tuple((u8[::1], i8[::1], i4[::1], i4[::1], i4[::1])), i8[::1], i8[::1], i4[::1])",
    late=True,
)
def run_mediated(
    first_document, offsets, most, limit, document, symbols, values, plan, room, walk, trie, plain, twigs, tests,
    state, stacks, known, asked, answers, out_offsets, gate_offsets, refusals,
):  # fmt: skip
    """Run the documents from `first_document` on; the first one that is not done, with why in `state[WHY]`.

    `refusals` has for each document 0, or why it can't be rewritten.
    """
    nodes, (levels, hits) = trie[3], (stacks[0], stacks[8])
    marks, summary, out = asked[0], answers[0], answers[2]
    at = first_document
    state[WHY] = DONE
    while at < len(offsets) - 1 and state[WHY] == DONE:
        state[STAMP] += 1
        state[MARKED] = 0
        root, gated_before = offsets[at], state[GATED]
        refusals[at] = 0
        open_document(levels, hits, state)
        roots = 0
        if root < offsets[at + 1] and document[0][root] == NONE:
            refusals[at] = NONE
        elif root < offsets[at + 1]:
            begin_walk(root, document, plan, room, walk)
            while state[WHY] == DONE:
                follow_rows(state, plain, stacks, asked, answers)
                follow_twigs(state, nodes, twigs, document[1], values, tests, known, stacks, asked, answers)
                event = advance(most, document, plan, symbols, state[LEVEL], room, walk)
                if event == START:
                    roots += state[LEVEL] == 0
                    if roots > 1 or state[TIME] == limit:
                        refusals[at] = TOO_MANY_ROOTS if roots > 1 else TOO_LARGE
                        break
                    if state[LEVEL] + 3 > levels.shape[1]:
                        state[WHY] = FEW_LEVELS
                        break
                    start_tag(walk[D_ELEMENT], walk[D_SYMBOL], state, trie, plain, twigs, stacks, asked)
                elif event == END:
                    end_tag(state, stacks)
                elif event == KEEP:
                    keep(state, stacks, room[0], room[4], walk)
                elif event == CONFIRM:
                    confirm(state, nodes, twigs, stacks, asked, room[4], walk[D_FROM], walk[D_UNTIL])
                elif event == NO_ROOM:
                    state[WHY] = FEW_FRAMES
                else:
                    break
        close_document(state, stacks)
        if refusals[at] != 0:
            wipe(marks, summary)
        if not finish(state[MARKED], marks, summary, out, state) or refusals[at] != 0:
            state[GATED] = gated_before
        if state[WHY] != DONE:
            break
        at += 1
        out_offsets[at] = state[WRITTEN]
        gate_offsets[at] = state[GATED]
    return at
