# mypy: allow-untyped-defs, allow-untyped-calls
"""The run: start and end tags drive a stack of sets of active states (YFilter, Diao et al., TODS 2003).

At a start tag, every active state of the level above is asked four things: does it loop (then it stays), has it a
child by this name, has it one by `*`, and has what was reached a state below by an empty move. What is reached is the
new level; an end tag pops it. An accepting state lists its plain path and the tasks of other queries: selections that
were postponed (tried at once, on the stack), ends of nested paths (entered into their join), and gates of queries that
another engine takes.

A looping state is reached from itself and by the empty move, hence a stamp; every other one has a single way in.
States from which nothing leads on are not pushed.

As a stream (`state[STREAM]`) one document is run: entries are written as they match, with the number of start tags
read, and the run stops when no link waits any more. What is certain only after more of the document (a test of text)
is pending until then. With `expiry`, an entry is not looked at after so many start tags.
"""

import numpy as np

from pathcast.kernels import kernel, part

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
    is_marked,
    is_spared,
    waited_for,
)
from .join_kernels import HOLDS, N_JOIN, NO_ROOM, join_end
from .result_kernels import (
    FEW_ACTIVE,
    FEW_BINDINGS,
    JOINED,
    LEVEL_STAMP,
    MARKED,
    PENDING,
    TRIED,
    VISITS,
    open_gate,
    settled,
    take,
    write_certain,
)
from .selection_kernels import select_on_stack

# Columns of a state (S_LOW and S_HIGH: bits for the symbols that lead on, by their last six bits); kinds of tasks.
S_BEGIN, S_END, S_STAR, S_DEEP, S_ENTRY, S_TASKS, S_LOW, S_HIGH, S_COLUMNS = range(9)
SELECT, JOIN, GATE = range(3)
# Rows of `levels`: where a level's states begin and end, the element, its symbol.
V_BEGIN, V_END, V_ELEMENT, V_SYMBOL, V_ROWS = range(5)
SEARCH_AT_ONCE = 8


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
def looping(deep, n, level_stamp, states, stack):
    """Make a state that loops active, once a level; how many are."""
    active, _, deep_stamps = stack
    place = deep - (len(states) - len(deep_stamps))
    if place >= 0 and deep_stamps[place] != level_stamp:
        deep_stamps[place] = level_stamp
        active[n] = deep
        n += 1
    return n


@part
def join_task(node, element, first, end, names, parents, streaming, skipping, joins, content, asked, stream, state):
    """A path of a query with nested paths ended here."""
    nodes, selects, join_entry, join_late, join_stamps, room, waiting = joins
    number = nodes[node, N_JOIN]
    entry = join_entry[number]
    if join_stamps[number] == state[STAMP] or settled(entry, element - first, skipping, asked):
        return
    state[JOINED] += 1
    found = join_end(node, element, names, parents, nodes, selects, room, waiting, content, state)
    if found == NO_ROOM:
        state[WHY] = FEW_BINDINGS
    elif found == HOLDS:
        join_stamps[number] = state[STAMP]
        read = element - first + 1
        take(entry, end - first if join_late[number] else read, read, streaming, asked, stream, state)


@part
def reached(
    target, element, depth, first, end, names, parents, streaming, skipping, network, stack,
    queries, joins, content, asked, stream, gates, state,
):  # fmt: skip
    """What a state accepts: its plain path, and the tasks of queries whose path ends there."""
    states, _, task_begin, task_kind, task_number = network
    read = element - first + 1
    entry = states[target, S_ENTRY]
    if entry >= 0 and not is_spared(entry, element - first, skipping, asked[2], asked[3]):
        take(entry, read, read, streaming, asked, stream, state)
    tasks = states[target, S_TASKS]
    if tasks < 0:
        return
    query_begin, query_entry, steps, selects, room = queries
    for task in range(task_begin[tasks], task_begin[tasks + 1]):
        number = task_number[task]
        if task_kind[task] == SELECT:
            entry = query_entry[number]
            if settled(entry, element - first, skipping, asked):
                continue
            state[TRIED] += 1
            levels = stack[1]
            time = select_on_stack(
                number, depth, depth, first, levels[V_ELEMENT], levels[V_SYMBOL], (query_begin, steps, selects), room,
                content,
            )  # fmt: skip
            if time >= 0:
                take(entry, time, read, streaming, asked, stream, state)
        elif task_kind[task] == JOIN:
            join_task(
                number, element, first, end, names, parents, streaming, skipping, joins, content, asked, stream, state
            )  # fmt: skip
        else:
            open_gate(number, gates, state)


@part
def start_tag(
    element, depth, symbol, first, end, names, parents, streaming, skipping, network, stack,
    queries, joins, content, asked, stream, gates, state,
):  # fmt: skip
    """The new level: what every active state of the level above leads to."""
    states, state_symbols = network[0], network[1]
    active, levels, _ = stack
    levels[V_ELEMENT, depth], levels[V_SYMBOL, depth] = element, symbol
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
        n = looping(source, n, level_stamp, states, stack)
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
            n = looping(states[target, S_DEEP], n, level_stamp, states, stack)
            reached(
                target, element, depth, first, end, names, parents, streaming, skipping, network, stack,
                queries, joins, content, asked, stream, gates, state,
            )  # fmt: skip
    levels[V_BEGIN, depth], levels[V_END, depth] = above_end, n


@part
def start_document(streaming, skipping, network, stack, asked, stream, gates, state):
    """The document's own level, and what it accepts: the path `/`, and gates without a path."""
    states, _, task_begin, _, task_number = network
    active, levels, _ = stack
    active[0] = 0
    levels[V_BEGIN, 0], levels[V_END, 0] = 0, 1
    if states[0, S_DEEP] >= 0:
        active[1] = states[0, S_DEEP]
        levels[V_END, 0] = 2
    entry = states[0, S_ENTRY]
    if entry >= 0 and not (skipping and is_marked(asked[2], entry)):
        take(entry, 0, 0, streaming, asked, stream, state)
    tasks = states[0, S_TASKS]
    if tasks >= 0:
        for task in range(task_begin[tasks], task_begin[tasks + 1]):
            open_gate(task_number[task], gates, state)


@part
def run_document(
    first, end, names, parents, depths, network, stack, queries, joins, content, asked, stream, gates, state
):  # fmt: skip
    """Run a document, as far as there is room."""
    streaming, skipping = state[STREAM] == 1, state[SKIPPING] == 1
    translation, linked = content[12], len(stream[0]) > 0
    start_document(streaming, skipping, network, stack, asked, stream, gates, state)
    element = first
    while element < end and state[WHY] == DONE:
        if streaming:
            write_certain(element - first, asked, stream, state)
            if linked and state[WAITING] == 0:
                break
        start_tag(
            element, np.int64(depths[element]), translation[names[element]] + 1, first, end, names, parents,
            streaming, skipping, network, stack, queries, joins, content, asked, stream, gates, state,
        )  # fmt: skip
        element += 1
        if streaming and linked and state[WAITING] == 0:
            break
    state[READ] = element - first
    if streaming and element == end:
        write_certain(end - first, asked, stream, state)


@kernel(
    # the documents, from the first one to do; their values, and the tests of values
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], int64,"
    " Tuple((ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i8[::1], ro_i4[::1], ro_u1[::1], ro_u1[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_f8[::1], ro_u1[::1], ro_i4[::1], u1[::1])),"
    # the network; queries with postponed selections; joins
    " Tuple((ro_i4[:, ::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1])),"
    " Tuple((ro_i4[::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[::1], Tuple((i4[:, ::1], i4[:, ::1])))),"
    " Tuple((ro_i4[:, ::1], ro_i4[::1], ro_i4[::1], ro_b1[::1], i8[::1],"
    " Tuple((i4[::1], i8[::1], i4[:, ::1], i8[::1], i8[::1])), i4[:, ::1])),"
    # the document's stack
    " Tuple((i4[::1], i4[:, ::1], i8[::1])), i8[::1],"
    # what is asked for, and the answers
    " Tuple((u8[::1], u8[::1], ro_u8[::1], ro_i4[::1])),"
    " Tuple((ro_i4[::1], i8[::1], i4[::1], i4[::1], i4[:, ::1])), Tuple((i8[::1], i4[::1])), i8[::1], i8[::1])"
)
def run(
    offsets, names, parents, depths, first_document, content, network, queries, joins, stack, state,
    asked, stream, gates, out_offsets, gate_offsets,
):  # fmt: skip
    """Run the documents from `first_document` on; the first one that is not done, with why in `state[WHY]`."""
    (marks, summary, skips, _), (link, link_stamps, out, _, _) = asked, stream
    binding_count = joins[5][4]
    document = first_document
    state[WHY] = DONE
    while document < len(offsets) - 1:
        gated, visits = state[GATED], state[VISITS]
        state[STAMP] += 1
        state[MARKED], state[PENDING], binding_count[0] = 0, 0, 0
        if state[STREAM] == 1:
            state[WAITING] = waited_for(link, state[SKIPPING] == 1, skips, link_stamps, state[STAMP])
        first, end = offsets[document], offsets[document + 1]
        if first < end:
            run_document(
                first, end, names, parents, depths, network, stack, queries, joins, content, asked, stream, gates, state
            )  # fmt: skip
        if not finish(state[MARKED], marks, summary, out, state):
            state[GATED], state[VISITS] = gated, visits
            break
        document += 1
        out_offsets[document] = state[WRITTEN]
        gate_offsets[document] = state[GATED]
    return document
