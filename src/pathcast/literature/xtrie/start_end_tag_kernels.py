# mypy: allow-untyped-defs, allow-untyped-calls
"""The effect of start and end tags on the stacks (XTrie, Chan et al., ICDE 2002).

`start_tag` follows the trie from the node of the level above, by max-suffix pointers where it has no child of this
name. The node reached is the longest suffix of the label path that is in the trie; all shorter ones are on its chain of
pointers. Each substring on that chain ends at this element, and its rows are checked:

    a row of plain paths    is hit if its parent row is live at a level in reach
    a leaf row of a twig    is ready if the substring of the row above it is in reach

A row that ends in `*` is hit when an element is that far below for the first time. `end_tag` makes ready the rows that
have waited for it, and drops the level. `match_propagation_kernels.py` handles the consequences.

Cost: per element the rows of the substrings that end there; for twigs, if few entries are wanted, only theirs.
"""

import numpy as np

from pathcast.kernels import part
from pathcast.matching.table.path_trie_kernels import child

from ..streaming.match_recording_kernels import SKIPPING, STAMP, WHY, is_marked
from .table_and_stack_layout_kernels import (
    AT_END,
    FEW_OCCURRENCES,
    FEW_READY,
    FREE,
    L_ELEMENT,
    L_LIVE,
    L_NODE,
    L_OCCURRENCES,
    L_PARTIAL,
    L_REACHED,
    LEVEL,
    LOOKED,
    N_HITS,
    N_LEAF,
    N_LEAF_END,
    N_LIVE,
    N_NEXT,
    N_OCCURRENCES,
    N_OPEN,
    N_PARTIAL,
    N_PLAIN,
    N_PLAIN_END,
    N_READY,
    N_REPORT,
    N_SUFFIX,
    N_WILD,
    N_WILD_END,
    NOWHERE,
    P_ABOVE,
    P_BESIDE,
    P_CREDIT,
    P_ROW,
    R_WILD,
    R_WILD_END,
    T_REACH,
    TIME,
    V_ABOVE,
    V_LEVEL,
    V_OF,
    Y_ENDED,
    Y_LEVEL,
    Y_PARTIAL,
    Y_ROW,
    in_reach,
    is_settled,
)


@part
def make_ready(twig, level, ended, ready, state):
    """Add a row of a twig at a level to the list of ready rows."""
    n = state[N_READY]
    if n == ready.shape[1]:
        state[WHY] = FEW_READY
        return
    ready[Y_ROW, n], ready[Y_LEVEL, n], ready[Y_PARTIAL, n], ready[Y_ENDED, n] = twig, level, -1, ended
    state[N_READY] = n + 1


@part
def open_document(stacks, state):
    """Open only the document, whose row is hit."""
    levels, hits = stacks.levels, stacks.hits
    levels[L_NODE, 0], levels[L_LIVE, 0], levels[L_OCCURRENCES, 0], levels[L_REACHED, 0] = 0, 0, 0, 0
    levels[L_PARTIAL, 0] = -1
    state[LEVEL], state[TIME], state[N_LIVE], state[N_OCCURRENCES], state[N_PARTIAL] = 0, 0, 0, 0, 0
    state[FREE], state[N_READY] = -1, 0
    hits[0] = 0
    state[N_HITS] = 1


@part
def reached_node(symbol, node, trie):
    """The node of the longest suffix of the label path that is in the trie, after one more name."""
    while symbol > 0:
        below = child(trie.slots, trie.parents, trie.symbols, node, symbol)
        if below >= 0:
            return np.int64(below)
        if node == 0:
            break
        node = np.int64(trie.nodes[node, N_SUFFIX])
    return np.int64(0)


@part
def look_at_leaf(twig, entry, level, tables, stacks, wanted, state):
    """Make a leaf row of a twig that ends at this level ready, unless its entry is no longer wanted."""
    if (
        in_reach(twig, level, tables, stacks)
        and not is_settled(entry, state[STAMP], state[SKIPPING] == 1, wanted)
        and not (len(wanted.expiry) and state[TIME] > wanted.expiry[entry])
    ):
        make_ready(twig, level, 0, stacks.ready, state)


@part
def start_tag(element, symbol, tables, stacks, wanted, state):
    """Open a level for an element: find the rows that it hits and the twigs whose leaves it makes ready."""
    trie, plain, twigs, (wanted_rows, chosen, following) = tables
    nodes, leaf_entries, reaches, rows = trie.nodes, trie.leaf_entries, plain.reaches, plain.rows
    levels, first, _, live, occurrence_head, occurrences, _, _, hits, ready, _ = stacks
    skipping = state[SKIPPING] == 1
    state[LEVEL] += 1
    state[TIME] += 1
    level, looked, n_hits = state[LEVEL], np.int64(0), np.int64(0)
    node = reached_node(symbol, np.int64(levels[L_NODE, level - 1]), trie)
    levels[L_NODE, level], levels[L_ELEMENT, level] = node, element
    levels[L_REACHED, level], levels[L_PARTIAL, level] = 0, -1
    # The substrings that end here, the longest first and the empty one last.
    node = np.int64(nodes[node, N_REPORT])
    while True:
        looked += nodes[node, N_PLAIN_END] - nodes[node, N_PLAIN]
        for row in range(nodes[node, N_PLAIN], nodes[node, N_PLAIN_END]):
            if first[plain.parents[row]] <= level - (reaches[row] >> 1):
                hits[n_hits] = row
                n_hits += not skipping or wanted_rows[row] != 0
        if len(chosen):  # few entries are wanted: their leaf rows are chained by node
            leaf = np.int64(chosen[node])
            while leaf >= 0:
                looked += 1
                look_at_leaf(leaf, leaf_entries[leaf], level, tables, stacks, wanted, state)
                leaf = np.int64(following[leaf])
        else:
            looked += nodes[node, N_LEAF_END] - nodes[node, N_LEAF]
            for twig in range(nodes[node, N_LEAF], nodes[node, N_LEAF_END]):
                if not (skipping and is_marked(wanted.skips, leaf_entries[twig])):
                    look_at_leaf(twig, leaf_entries[twig], level, tables, stacks, wanted, state)
        stack, n = nodes[node, N_OPEN], state[N_OCCURRENCES]
        if stack >= 0 and n == occurrences.shape[1]:
            state[WHY] = FEW_OCCURRENCES
        elif stack >= 0:
            occurrences[V_OF, n], occurrences[V_LEVEL, n] = stack, level
            occurrences[V_ABOVE, n] = occurrence_head[stack]
            occurrence_head[stack] = n
            state[N_OCCURRENCES] = n + 1
        if node == 0:
            break
        node = np.int64(nodes[node, N_NEXT])
    # The levels above that have an element this far below for the first time: rows that end in `*` need no more.
    distance = np.int64(1)
    while distance <= min(plain.longest_wild, level) and levels[L_REACHED, level - distance] < distance:
        above = level - distance
        levels[L_REACHED, above] = distance
        for at in range(levels[L_LIVE, above], levels[L_LIVE, above + 1]):
            row = live[V_OF, at]
            for wild in range(rows[row, R_WILD], rows[row, R_WILD_END]):
                if reaches[wild] >> 1 == distance and not (skipping and wanted_rows[wild] == 0):
                    hits[n_hits] = wild
                    n_hits += 1
        node = np.int64(nodes[levels[L_NODE, above], N_REPORT])
        while above > 0:
            for twig in range(nodes[node, N_WILD], nodes[node, N_WILD_END]):
                if twigs[twig, T_REACH] >> 1 == distance:
                    make_ready(twig, level, 0, ready, state)
            if node == 0:
                break
            node = np.int64(nodes[node, N_NEXT])
        distance += 1
    state[N_HITS] = n_hits
    state[LOOKED] += looked


@part
def end_tag(state, stacks):
    """Close the level: rows that have waited for it become ready, and the content of the level is dropped."""
    levels, first, head, live, occurrence_head, occurrences, partial_head, partial, _, ready, _ = stacks
    level = state[LEVEL]
    at = np.int64(levels[L_PARTIAL, level])
    while at >= 0:
        twig = partial[at, P_ROW]
        if partial[at, P_CREDIT] & AT_END:
            make_ready(twig, level, 1, ready, state)
        partial_head[twig] = partial[at, P_ABOVE]
        beside = np.int64(partial[at, P_BESIDE])
        partial[at, P_BESIDE] = state[FREE]
        state[FREE] = at
        at = beside
    n = state[N_OCCURRENCES]
    while n > levels[L_OCCURRENCES, level]:
        n -= 1
        occurrence_head[occurrences[V_OF, n]] = occurrences[V_ABOVE, n]
    state[N_OCCURRENCES] = n
    n = state[N_LIVE]
    while n > levels[L_LIVE, level]:
        n -= 1
        row = live[V_OF, n]
        head[row] = live[V_ABOVE, n]
        if head[row] < 0:
            first[row] = NOWHERE
    state[N_LIVE] = n
    state[LEVEL] = level - 1


@part
def close_document(state, stacks):
    """Drop everything that is still open, at the end or where the run stopped."""
    _, first, head, live, occurrence_head, occurrences, partial_head, partial, _, _, _ = stacks
    for at in range(state[N_LIVE]):
        first[live[V_OF, at]], head[live[V_OF, at]] = NOWHERE, -1
    for at in range(state[N_OCCURRENCES]):
        occurrence_head[occurrences[V_OF, at]] = -1
    for at in range(state[N_PARTIAL]):
        partial_head[partial[at, P_ROW]] = -1
