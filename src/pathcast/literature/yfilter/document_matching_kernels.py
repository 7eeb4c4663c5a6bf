# mypy: allow-untyped-defs, allow-untyped-calls
"""The run: start and end tags drive a stack of sets of active states (YFilter, Diao et al., TODS 2003).

At a start tag, four questions are asked of every active state of the level above: does it loop (then it stays), does it
have a child by this name, does it have one by `*`, and does a reached state have a state below by an empty move. The
reached states are the new level; an end tag pops it. An accepting state lists its plain path and the tasks of other
queries: postponed selections (tested at once, on the stack), ends of nested paths (added to their join), and gates of
delegated queries.

A looping state is reached from itself and by the empty move, hence a stamp; every other state has a single incoming
transition. States without outgoing transitions are not pushed.

As a stream (`state[STREAM]`) one document is run: entries are written as they match, with the number of start tags
read, and the run stops when no link waits any more. An entry that is certain only after more of the document (a test of
text) is pending until then. With `expiry`, an entry is not searched after that many start tags.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Elements
from pathcast.kernels import Int32s, Int64s, Matrix, Writable, kernel, part

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
    is_marked,
    is_spared,
    open_gate,
    waited_for,
)
from ..streaming.value_tests_kernels import TestedValues
from .match_output_kernels import (
    FEW_ACTIVE,
    FEW_BINDINGS,
    JOINED,
    LEVEL_STAMP,
    MARKED,
    PENDING,
    TRIED,
    VISITS,
    settled,
    take,
    write_certain,
)
from .nested_path_join_kernels import HOLDS, N_JOIN, NO_ROOM, Joins, JoinScratch, join_end
from .postponed_selection_kernels import Queries, StepPlaces, select_on_stack

# Columns of a state (S_LOW and S_HIGH: bits for the outgoing symbols, by their last six bits); kinds of tasks.
S_BEGIN, S_END, S_STAR, S_DEEP, S_ENTRY, S_TASKS, S_LOW, S_HIGH, S_COLUMNS = range(9)
SELECT, JOIN, GATE = range(3)
# Rows of `levels`: where a level's states begin and end, the element, its symbol.
V_BEGIN, V_END, V_ELEMENT, V_SYMBOL, V_ROWS = range(5)
SEARCH_AT_ONCE = 8


class Network(NamedTuple):
    """The states, the symbol that leads to each, and the tasks of accepting ones: kinds and numbers."""

    states: Matrix[Int32s]
    symbols: Int32s
    task_begins: Int32s
    task_kinds: Int32s
    task_numbers: Int32s


class YFilterTables(NamedTuple):
    """All tables of the queries."""

    network: Network
    queries: Queries
    joins: Joins


class ActiveStates(NamedTuple):
    """The active states of all open levels, the levels, and the last level at which each looping state was reached."""

    states: Writable[Int32s]
    levels: Writable[Matrix[Int32s]]
    deep_stamps: Writable[Int64s]


class RunScratch(NamedTuple):
    """The buffers of a run; for `pending`, see `match_output_kernels.py`."""

    active: ActiveStates
    places: StepPlaces
    joins: JoinScratch
    pending: Writable[Matrix[Int32s]]


class Tag(NamedTuple):
    """A start tag: the element and its depth, where its document begins and ends."""

    element: np.int64
    depth: np.int64
    first: np.int64
    end: np.int64


class Mode(NamedTuple):
    """Whether the run is a stream, and whether there are entries to skip."""

    streaming: bool
    skipping: bool


@part
def named_child(state_symbols, begin, end, symbol):
    """The state in a range of children that this symbol leads to, or -1."""
    while end - begin > SEARCH_AT_ONCE:
        middle = (begin + end) >> 1
        if state_symbols[middle] <= symbol:
            begin = middle
        else:
            end = middle
    for child in range(begin, end):
        if state_symbols[child] == symbol:
            return child
    return -1


@part
def looping(deep, n, level_stamp, states, active):
    """Make a looping state active, once per level; return how many are."""
    deep_stamps = active.deep_stamps
    place = deep - (len(states) - len(deep_stamps))
    if place >= 0 and deep_stamps[place] != level_stamp:
        deep_stamps[place] = level_stamp
        active.states[n] = deep
        n += 1
    return n


@part
def join_task(node, tag, mode, elements, tested, joins, scratch, wanted, answers, state):
    """Process the end of a path of a query with nested paths."""
    element, _, first, end = tag
    number = joins.nodes[node, N_JOIN]
    entry = joins.entries[number]
    if scratch.joins.stamps[number] == state[STAMP] or settled(entry, element - first, mode.skipping, wanted):
        return
    state[JOINED] += 1
    found = join_end(node, element, elements, joins.nodes, scratch.joins, tested, state)
    if found == NO_ROOM:
        state[WHY] = FEW_BINDINGS
    elif found == HOLDS:
        scratch.joins.stamps[number] = state[STAMP]
        read = element - first + 1
        time = end - first if joins.late[number] else read
        take(entry, time, read, mode.streaming, scratch.pending, wanted, answers, state)


@part
def reached(target, tag, mode, elements, tested, tables, scratch, wanted, answers, state):
    """Process what a state accepts: its plain path, and the tasks of queries whose path ends there."""
    network, queries, joins = tables
    element, depth, first, _ = tag
    read = element - first + 1
    entry = network.states[target, S_ENTRY]
    if entry >= 0 and not is_spared(entry, element - first, mode.skipping, wanted):
        take(entry, read, read, mode.streaming, scratch.pending, wanted, answers, state)
    tasks = network.states[target, S_TASKS]
    if tasks < 0:
        return
    levels = scratch.active.levels
    for task in range(network.task_begins[tasks], network.task_begins[tasks + 1]):
        number = network.task_numbers[task]
        if network.task_kinds[task] == SELECT:
            entry = queries.entries[number]
            if settled(entry, element - first, mode.skipping, wanted):
                continue
            state[TRIED] += 1
            stack, symbols = levels[V_ELEMENT], levels[V_SYMBOL]
            time = select_on_stack(number, depth, depth, first, stack, symbols, queries, scratch.places, tested)
            if time >= 0:
                take(entry, time, read, mode.streaming, scratch.pending, wanted, answers, state)
        elif network.task_kinds[task] == JOIN:
            join_task(number, tag, mode, elements, tested, joins, scratch, wanted, answers, state)
        else:
            open_gate(number, answers, state)


@part
def start_tag(tag, symbol, mode, elements, tested, tables, scratch, wanted, answers, state):
    """Create the new level: the states that follow from every active state of the level above."""
    states, state_symbols = tables.network.states, tables.network.symbols
    active, levels, _ = scratch.active
    depth = tag.depth
    levels[V_ELEMENT, depth], levels[V_SYMBOL, depth] = tag.element, symbol
    above, above_end = levels[V_BEGIN, depth - 1], levels[V_END, depth - 1]
    n = np.int64(above_end)
    if n + 5 * (above_end - above) > len(active):
        state[WHY] = FEW_ACTIVE
        return
    state[LEVEL_STAMP] += 1
    state[VISITS] += above_end - above
    level_stamp = state[LEVEL_STAMP]
    half, bit = S_LOW + (symbol >> 5 & 1), np.int32(1) << (symbol & 31)
    for index in range(above, above_end):
        source = active[index]
        n = looping(source, n, level_stamp, states, scratch.active)
        for turn in range(2):
            if turn == 0:
                target = np.int64(states[source, S_STAR])
            elif symbol > 0 and states[source, half] & bit:
                target = np.int64(named_child(state_symbols, states[source, S_BEGIN], states[source, S_END], symbol))
            else:
                target = np.int64(-1)
            if target < 0:
                continue
            if states[target, S_BEGIN] < states[target, S_END] or states[target, S_STAR] >= 0:
                active[n] = target
                n += 1
            n = looping(states[target, S_DEEP], n, level_stamp, states, scratch.active)
            reached(target, tag, mode, elements, tested, tables, scratch, wanted, answers, state)
    levels[V_BEGIN, depth], levels[V_END, depth] = above_end, n


@part
def start_document(mode, network, scratch, wanted, answers, state):
    """Create the document's own level, and process what it accepts: the path `/`, and gates without a path."""
    states = network.states
    active, levels, _ = scratch.active
    active[0] = 0
    levels[V_BEGIN, 0], levels[V_END, 0] = 0, 1
    if states[0, S_DEEP] >= 0:
        active[1] = states[0, S_DEEP]
        levels[V_END, 0] = 2
    entry = states[0, S_ENTRY]
    if entry >= 0 and not (mode.skipping and is_marked(wanted.skips, entry)):
        take(entry, 0, 0, mode.streaming, scratch.pending, wanted, answers, state)
    tasks = states[0, S_TASKS]
    if tasks >= 0:
        for task in range(network.task_begins[tasks], network.task_begins[tasks + 1]):
            open_gate(network.task_numbers[task], answers, state)


@part
def run_document(first, end, elements, tested, tables, scratch, wanted, answers, state):
    """Run a document, as far as there is room."""
    streaming, linked = state[STREAM] == 1, len(wanted.link) > 0
    mode = Mode(streaming, state[SKIPPING] == 1)
    start_document(mode, tables.network, scratch, wanted, answers, state)
    element = first
    while element < end and state[WHY] == DONE:
        if streaming:
            write_certain(element - first, scratch.pending, wanted, answers, state)
            if linked and state[WAITING] == 0:
                break
        tag = Tag(element, np.int64(elements.depths[element]), first, end)
        symbol = tested.symbols[elements.names[element]] + 1
        start_tag(tag, symbol, mode, elements, tested, tables, scratch, wanted, answers, state)
        element += 1
        if streaming and linked and state[WAITING] == 0:
            break
    state[READ] = element - first
    if streaming and element == end:
        write_certain(end - first, scratch.pending, wanted, answers, state)


@kernel
def run(
    first_document: int,
    elements: Elements,
    tested: TestedValues,
    tables: YFilterTables,
    scratch: RunScratch,
    wanted: Wanted,
    answers: Answers,
    state: Writable[Int64s],
) -> int:
    """Run the documents from `first_document` on; return the first not done, with the reason in `state[WHY]`."""
    offsets, document = elements.offsets, first_document
    state[WHY] = DONE
    while document < len(offsets) - 1:
        gated, visits = state[GATED], state[VISITS]
        state[STAMP] += 1
        state[MARKED], state[PENDING], scratch.joins.bindings.counts[0] = 0, 0, 0
        if state[STREAM] == 1:
            state[WAITING] = waited_for(state[SKIPPING] == 1, state[STAMP], wanted)
        first, end = offsets[document], offsets[document + 1]
        if first < end:
            run_document(first, end, elements, tested, tables, scratch, wanted, answers, state)
        if not finish(state[MARKED], wanted, answers, state):
            state[GATED], state[VISITS] = gated, visits
            break
        document += 1
        answers.offsets[document] = state[WRITTEN]
        answers.gate_offsets[document] = state[GATED]
    return document
