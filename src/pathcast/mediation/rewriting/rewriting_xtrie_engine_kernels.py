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

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Writable, kernel, rare
from pathcast.literature.streaming.match_recording_kernels import (
    DONE,
    GATED,
    OWN_REASON,
    SKIPPING,
    STAMP,
    WHY,
    WRITTEN,
    Answers,
    Wanted,
    finish,
    wipe,
)
from pathcast.literature.streaming.value_tests_kernels import TestedValues
from pathcast.literature.xtrie.match_propagation_kernels import credit, follow_rows, follow_twigs, partial_at
from pathcast.literature.xtrie.start_end_tag_kernels import close_document, end_tag, open_document, start_tag
from pathcast.literature.xtrie.table_and_stack_layout_kernels import (
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
    Stacks,
    XTrieTables,
    is_settled,
)

from .rewriting_table_layout_kernels import NONE, STAY, TOO_LARGE, TOO_MANY_ROOTS, RewritingPlan
from .virtual_rewriting_walk_kernels import (
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
    WalkedDocuments,
    WalkRoom,
    advance,
    consider,
    push,
)

# No room for the walk: behind the engine's own reasons.
FEW_FRAMES = OWN_REASON + 16


class MediatedSource(NamedTuple):
    """The documents and the plan by which they are walked as if they were rewritten.

    `most` is how many slots or new elements a node has at most; a document may have `limit` elements.
    """

    offsets: Int64s
    documents: WalkedDocuments
    plan: RewritingPlan
    most: int
    limit: int


class Walk(NamedTuple):
    """The buffers of a walk, and its counts (`D_DEPTH` …)."""

    room: WalkRoom
    counts: Writable[Int64s]


@rare
def keep(state, stacks, frames, kept, walk):
    """Keep the partial matchings of the open level: what an exchanged element means for those around it."""
    levels, partial = stacks.levels, stacks.partial
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
def confirm(tables, stacks, wanted, kept, first, until, state):
    """Give the open level the partial matchings that were kept; those that are complete are ready."""
    level = state[LEVEL]
    for k in range(first, until):
        row = kept[0, k]
        if is_settled(tables.twigs[row, T_ENTRY], state[STAMP], state[SKIPPING] == 1, wanted):
            continue
        at = partial_at(row, level, np.int64(-1), np.int64(stacks.partial_head[row]), state, stacks)
        if at >= 0:
            credit(at, kept[1, k], row, level, tables, stacks, state)
        if state[WHY] != DONE:
            return


@rare
def begin_walk(root, document, plan, room, walk):
    """A pass over the root alone."""
    walk[:] = 0
    frames = room.frames
    at = push(frames, walk, PASS)
    frames[at, A_OWNER], frames[at, A_PLACE], frames[at, A_WHERE], frames[at, A_NEXT] = NONE, STAY, NONE, NONE
    consider(root, np.int64(NONE), np.int64(NONE), at, np.int64(NONE), document, plan, np.int64(0), room, walk)


@kernel(late=True)
def run_mediated(
    first_document: int,
    source: MediatedSource,
    tested: TestedValues,
    walked: Walk,
    tables: XTrieTables,
    stacks: Stacks,
    wanted: Wanted,
    answers: Answers,
    state: Writable[Int64s],
    refusals: Writable[Int32s],
) -> int:
    """Run the documents from `first_document` on; the first one that is not done, with why in `state[WHY]`.

    `refusals` has for each document 0, or why it can't be rewritten.
    """
    offsets, document, plan, most, limit = source
    room, walk = walked
    at = first_document
    state[WHY] = DONE
    while at < len(offsets) - 1 and state[WHY] == DONE:
        state[STAMP] += 1
        state[MARKED] = 0
        root, gated_before = offsets[at], state[GATED]
        refusals[at] = 0
        open_document(stacks, state)
        roots = 0
        if root < offsets[at + 1] and document.nodes[root] == NONE:
            refusals[at] = NONE
        elif root < offsets[at + 1]:
            begin_walk(root, document, plan, room, walk)
            while state[WHY] == DONE:
                follow_rows(tables.plain, stacks, wanted, answers, state)
                follow_twigs(tested, tables, stacks, wanted, answers, state)
                event = advance(most, document, plan, tested.symbols, state[LEVEL], room, walk)
                if event == START:
                    roots += state[LEVEL] == 0
                    if roots > 1 or state[TIME] == limit:
                        refusals[at] = TOO_MANY_ROOTS if roots > 1 else TOO_LARGE
                        break
                    if state[LEVEL] + 3 > stacks.levels.shape[1]:
                        state[WHY] = FEW_LEVELS
                        break
                    start_tag(walk[D_ELEMENT], walk[D_SYMBOL], tables, stacks, wanted, state)
                elif event == END:
                    end_tag(state, stacks)
                elif event == KEEP:
                    keep(state, stacks, room.frames, room.kept, walk)
                elif event == CONFIRM:
                    confirm(tables, stacks, wanted, room.kept, walk[D_FROM], walk[D_UNTIL], state)
                elif event == NO_ROOM:
                    state[WHY] = FEW_FRAMES
                else:
                    break
        close_document(state, stacks)
        if refusals[at] != 0:
            wipe(wanted.marks, wanted.summary)
        if not finish(state[MARKED], wanted, answers, state) or refusals[at] != 0:
            state[GATED] = gated_before
        if state[WHY] != DONE:
            break
        at += 1
        answers.offsets[at] = state[WRITTEN]
        answers.gate_offsets[at] = state[GATED]
    return at
