# mypy: allow-untyped-defs, allow-untyped-calls
"""The consequences of rows that are hit and of twigs that are ready (XTrie, Chan et al., ICDE 2002).

A row of plain paths that is hit reports its entry, opens its gates, and becomes live if there are rows below it.

A row of a twig that is ready has all its branches. If its values pass, it is satisfied; if the end tag decides them, it
waits. A satisfied row is an answer if it is the highest, otherwise it is credited to the row above: to the partial
matchings at all levels in reach, which are created if necessary. The credit that completes a partial matching makes it
ready in turn.

Invariant: a credit to all levels from some level upwards may stop at a level that already has it, since the levels
above have it, too. So each branch of each partial matching is credited once.
Left out: the rank of branches, which XTrie uses for patterns that demand an order; ours demand none.
"""

import numpy as np

from pathcast.kernels import part, rare
from pathcast.matching.arrays.bitset_kernels import mark_with_summary

from ..streaming.match_recording_kernels import (
    DONE,
    FEW_GATES,
    SKIPPING,
    STAMP,
    STREAM,
    WHY,
    announce,
    is_marked,
    open_gate,
)
from ..streaming.value_tests_kernels import selected
from .table_and_stack_layout_kernels import (
    ALWAYS,
    AT_END,
    ATTRIBUTES_STAY,
    CONTENT_STAYS,
    FEW_LIVE,
    FEW_PARTIAL,
    FEW_READY,
    FREE,
    L_ELEMENT,
    L_LIVE,
    L_NODE,
    L_OCCURRENCES,
    L_PARTIAL,
    LEVEL,
    MARKED,
    N_HITS,
    N_LIVE,
    N_OCCURRENCES,
    N_OPEN,
    N_PARTIAL,
    N_READY,
    NO_ATTRIBUTES,
    ONCE,
    P_ABOVE,
    P_BESIDE,
    P_CREDIT,
    P_LEVEL,
    P_ROW,
    PARTIALS,
    R_ENTRY,
    R_LIVE,
    R_TASKS,
    R_TASKS_END,
    T_ABOVE,
    T_ABOVE_NODE,
    T_CREDIT,
    T_EARLY,
    T_ENTRY,
    T_LATE,
    T_LATE_END,
    T_NEEDS,
    T_REACH,
    TIME,
    TRIED,
    UNDECIDED,
    V_ABOVE,
    V_LEVEL,
    V_OF,
    Y_ENDED,
    Y_LEVEL,
    Y_PARTIAL,
    Y_ROW,
    in_reach,
    is_settled,
    is_suffix,
    lives_at,
)


@part
def accept(entry, wanted, answers, state):
    """Accept an entry that matches."""
    if state[STREAM] == 1:
        announce(entry, state[TIME], wanted, answers, state)
    else:
        mark_with_summary(wanted.marks, wanted.summary, entry)
        state[MARKED] += 1


@part
def follow_rows(plain, stacks, wanted, answers, state):
    """Report the entries and gates of the rows that were hit; those with rows below become live."""
    rows, levels, first, head, live = plain.rows, stacks.levels, stacks.first, stacks.head, stacks.live
    skipping, level, n_live = state[SKIPPING] == 1, state[LEVEL], state[N_LIVE]
    for k in range(state[N_HITS]):
        row = stacks.hits[k]
        parent, reach = plain.parents[row], plain.reaches[row]
        above = level - (reach >> 1)
        if reach & 1 == 0 and row > 0 and first[parent] != above and not lives_at(parent, above, stacks):
            continue
        entry = rows[row, R_ENTRY]
        if entry >= 0 and not (skipping and is_marked(wanted.skips, entry)):
            accept(entry, wanted, answers, state)
        for task in range(rows[row, R_TASKS], rows[row, R_TASKS_END]):
            gate = plain.task_numbers[task]
            if skipping and is_marked(wanted.skips, plain.delegated[gate]):
                continue
            open_gate(gate, answers, state)
            if state[WHY] == FEW_GATES:
                break
        lasting = rows[row, R_LIVE]
        if lasting == ALWAYS or (lasting == ONCE and head[row] < 0):
            if n_live == live.shape[1]:
                state[WHY] = FEW_LIVE
                break
            live[V_OF, n_live], live[V_LEVEL, n_live], live[V_ABOVE, n_live] = row, level, head[row]
            if head[row] < 0:
                first[row] = level
            head[row] = n_live
            n_live += 1
    state[N_HITS], state[N_LIVE] = 0, n_live
    levels[L_LIVE, level + 1] = n_live
    levels[L_OCCURRENCES, level + 1] = state[N_OCCURRENCES]


@rare
def element_of(twig, code, twigs, answers, state):
    """The element whose values a row's tests may read, or -1: it has no such values, or they are undecided.

    For levels of a source of events that moves elements.
    """
    flags = code & 7
    early, late = twigs[twig, T_EARLY] < twigs[twig, T_LATE], twigs[twig, T_LATE] < twigs[twig, T_LATE_END]
    if early and flags & NO_ATTRIBUTES:
        return np.int64(-1)
    if (not early or flags & ATTRIBUTES_STAY) and (not late or flags & CONTENT_STAYS):
        return np.int64(code >> 3)
    open_gate(state[UNDECIDED] + twigs[twig, T_ENTRY], answers, state)
    return np.int64(-1)


@part
def passes(twig, level, ended, tested, twigs, stacks, answers, state):
    """Whether the element at a level passes a row's tests of attributes or, at its end, the others."""
    known = stacks.known
    element = np.int64(stacks.levels[L_ELEMENT, level])
    if element < 0 and twigs[twig, T_EARLY] < twigs[twig, T_LATE_END]:
        element = element_of(twig, -1 - element, twigs, answers, state)
        if element < 0:
            return False
    test, last = twigs[twig, T_EARLY], twigs[twig, T_LATE]
    if ended:
        test, last = last, twigs[twig, T_LATE_END]
    while test < last:
        number = tested.selects[test]
        key = state[STAMP] << 33 | element << 1
        if known[number] | 1 != key | 1:
            state[TRIED] += 1
            held = selected(element, number, tested)
            known[number] = key | np.int64(held)
        if known[number] & 1 == 0:
            return False
        test += 1
    return True


@part
def fresh_partial(twig, level, state, levels, partial):
    """A new partial matching without a branch, in the list of its level; -1 without room."""
    fresh = state[FREE]
    if fresh >= 0:
        state[FREE] = partial[fresh, P_BESIDE]
    elif state[N_PARTIAL] < len(partial):
        fresh = state[N_PARTIAL]
        state[N_PARTIAL] += 1
    else:
        state[WHY] = FEW_PARTIAL
        return np.int64(-1)
    state[PARTIALS] += 1
    partial[fresh, P_ROW], partial[fresh, P_LEVEL] = twig, level
    partial[fresh, P_BESIDE] = levels[L_PARTIAL, level]
    levels[L_PARTIAL, level] = fresh
    partial[fresh, P_CREDIT] = 0
    return fresh


@part
def partial_at(row, level, below, at, state, stacks):
    """The partial matching of a row at a level, created if necessary; -1 without room.

    `at` is the row's first one that is not below the level, `below` the one before it; both -1 if there is none.
    """
    partial = stacks.partial
    if at >= 0 and partial[at, P_LEVEL] == level:
        return np.int64(at)
    fresh = np.int64(fresh_partial(row, level, state, stacks.levels, partial))
    if fresh >= 0:
        partial[fresh, P_ABOVE] = at
        if below >= 0:
            partial[below, P_ABOVE] = fresh
        else:
            stacks.partial_head[row] = fresh
    return fresh


@part
def credit(at, given, row, level, tables, stacks, state):
    """Credit branches to a partial matching of a row; once it has all of them, it is ready."""
    twigs, partial, ready = tables.twigs, stacks.partial, stacks.ready
    partial[at, P_CREDIT] |= given
    if partial[at, P_CREDIT] == (np.int64(1) << np.int64(twigs[row, T_NEEDS])) - 1 and (
        twigs[row, T_ABOVE] >= 0 or in_reach(row, level, tables, stacks)
    ):
        n = state[N_READY]
        if n == ready.shape[1]:
            state[WHY] = FEW_READY
            return
        ready[Y_ROW, n], ready[Y_LEVEL, n], ready[Y_PARTIAL, n], ready[Y_ENDED, n] = row, level, at, 0
        state[N_READY] = n + 1


@part
def credit_levels(row, node, level, many, given, tables, stacks, state):
    """Credit a branch to the partial matchings of a row at a level, or at all levels from there upwards."""
    nodes, occurrences, partial = tables.trie.nodes, stacks.occurrences, stacks.partial
    by_occurrence = many and nodes[node, N_OPEN] >= 0
    occurrence = np.int64(stacks.occurrence_head[nodes[node, N_OPEN]]) if by_occurrence else np.int64(-1)
    below, at = np.int64(-1), np.int64(stacks.partial_head[row])
    while True:
        if by_occurrence:
            while occurrence >= 0 and occurrences[V_LEVEL, occurrence] > level:
                occurrence = np.int64(occurrences[V_ABOVE, occurrence])
            level = np.int64(occurrences[V_LEVEL, occurrence]) if occurrence >= 0 else np.int64(0)
        if level < 1:
            break
        while at >= 0 and partial[at, P_LEVEL] > level:
            below, at = at, np.int64(partial[at, P_ABOVE])
        at = partial_at(row, level, below, at, state, stacks)
        if at < 0 or partial[at, P_CREDIT] & given:
            break
        credit(at, given, row, level, tables, stacks, state)
        if not many or state[WHY] != DONE:
            break
        level -= 1


@part
def follow_twigs(tested, tables, stacks, wanted, answers, state):
    """Satisfy the rows that are ready, and those that become ready by this."""
    nodes, twigs = tables.trie.nodes, tables.twigs
    levels, partial, ready = stacks.levels, stacks.partial, stacks.ready
    skipping, stamp = state[SKIPPING] == 1, state[STAMP]
    while state[N_READY] > 0 and state[WHY] == DONE:
        state[N_READY] -= 1
        n = state[N_READY]
        twig, place, own, ended = ready[Y_ROW, n], ready[Y_LEVEL, n], ready[Y_PARTIAL, n], ready[Y_ENDED, n]
        entry = twigs[twig, T_ENTRY]
        if is_settled(entry, stamp, skipping, wanted):
            continue
        if not passes(twig, place, ended, tested, twigs, stacks, answers, state):
            continue
        waits = ended == 0 and twigs[twig, T_LATE] < twigs[twig, T_LATE_END]
        if waits and own >= 0:
            partial[own, P_CREDIT] |= AT_END
            continue
        above = np.int64(twigs[twig, T_ABOVE])
        if above < 0 and not waits:
            accept(entry, wanted, answers, state)
            continue
        # Credit the row above at every level in reach; or, to wait, itself.
        reach, node = np.int64(twigs[twig, T_REACH]), np.int64(twigs[twig, T_ABOVE_NODE])
        level, many = np.int64(place - (reach >> 1)), reach & 1 == 1
        given = np.int64(1) << np.int64(twigs[twig, T_CREDIT])
        if waits:
            above, level, many, given = np.int64(twig), np.int64(place), False, AT_END
        elif not many and (level < 1 or not is_suffix(nodes, node, levels[L_NODE, level])):
            continue
        credit_levels(above, node, level, many, given, tables, stacks, state)
