# mypy: allow-untyped-defs, allow-untyped-calls
"""The run: a loop over start and end tags, with the tables on one side and the stacks of a document on the other.

    start_tag, end_tag ──▶ hits, ready ──follow_rows, follow_twigs──▶ live rows, partial matchings, entries

An event only finds the rows that it hits and those that are ready; the consequences follow afterwards, in the same way
for every event. So a match is reported at the tag that makes it certain, and a run can stop between any two tags.
"""

from pathcast.documents.document_batch_layout_kernels import Elements
from pathcast.kernels import Int64s, Writable, kernel

from ..streaming.match_recording_kernels import (
    DONE,
    GATED,
    READ,
    SKIPPING,
    STAMP,
    STREAM,
    WAITING,
    WHY,
    WRITTEN,
    Answers,
    Wanted,
    finish,
    waited_for,
)
from ..streaming.value_tests_kernels import TestedValues
from .match_propagation_kernels import follow_rows, follow_twigs
from .start_end_tag_kernels import close_document, end_tag, open_document, start_tag
from .table_and_stack_layout_kernels import LEVEL, MARKED, TIME, Stacks, XTrieTables


@kernel
def run(
    first_document: int,
    elements: Elements,
    tested: TestedValues,
    tables: XTrieTables,
    stacks: Stacks,
    wanted: Wanted,
    answers: Answers,
    state: Writable[Int64s],
) -> int:
    """Run the documents from `first_document` on; return the first not done, with the reason in `state[WHY]`."""
    offsets, depths, linked = elements.offsets, elements.depths, len(wanted.link) > 0
    streaming, document = state[STREAM] == 1, first_document
    state[WHY] = DONE
    while document < len(offsets) - 1 and state[WHY] == DONE:
        state[STAMP] += 1
        state[MARKED] = 0
        first, end, gated_before = offsets[document], offsets[document + 1], state[GATED]
        element = first
        open_document(stacks, state)
        if streaming:
            state[WAITING] = waited_for(state[SKIPPING] == 1, state[STAMP], wanted)
        while end > first:
            follow_rows(tables.plain, stacks, wanted, answers, state)
            follow_twigs(tested, tables, stacks, wanted, answers, state)
            if state[WHY] != DONE or (streaming and linked and state[WAITING] == 0):
                break
            if state[LEVEL] > 0 and (element == end or depths[element] <= state[LEVEL]):
                end_tag(state, stacks)
            elif element < end:
                symbol = tested.symbols[elements.names[element]] + 1
                start_tag(element, symbol, tables, stacks, wanted, state)
                element += 1
            else:
                break
        close_document(state, stacks)
        state[READ] = state[TIME]
        if not finish(state[MARKED], wanted, answers, state):
            state[GATED] = gated_before
            break
        document += 1
        answers.offsets[document] = state[WRITTEN]
        answers.gate_offsets[document] = state[GATED]
    return document
