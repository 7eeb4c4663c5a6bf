# mypy: allow-untyped-defs, allow-untyped-calls
"""The layout of tables and stacks, and queries on them.

The tables are the trie of substrings (`nodes`), the rows of plain paths (`rows`) and those of twigs (`twigs`); see
`substring_trie_tables.py`. The stacks belong to one document while it is read.

Invariant: for each row or substring the highest level is at the bottom; each links to the next one above (`V_ABOVE`,
`P_ABOVE`), and a head per row to the lowest. Nothing stays when its level is closed.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Matrix, UInt8s, Writable, part

from ..streaming.match_recording_kernels import OWN_REASON, OWN_STATE, is_marked

# Columns of a node of the trie: pointers; ranges of plain rows, of leaf rows of twigs, and of leaf rows `*` below a row
# with this substring; the number of its stack of occurrences (-1: none); its positions in the tree of pointers.
N_SUFFIX, N_REPORT, N_NEXT, N_PLAIN, N_PLAIN_END, N_LEAF, N_LEAF_END, N_WILD, N_WILD_END, N_OPEN = range(10)
N_IN, N_OUT, N_COLUMNS = range(10, 13)
# Columns of a row of plain paths: entry, gates, whether it becomes live, and the range of rows `*` below it.
R_ENTRY, R_TASKS, R_TASKS_END, R_LIVE, R_WILD, R_WILD_END, R_COLUMNS = range(7)
# R_LIVE: never; at its highest level only, since everything below it may be at any depth; at every level.
NEVER, ONCE, ALWAYS = range(3)
# Columns of a row of a twig: entry; reach, how many levels below the row above, doubled, plus 1 if it may be more;
# the row above (-1: none) and its substring; the plain row above the highest one; the bit it gives to the row above,
# and how many it needs; where its tests of attributes begin, then those that the end tag decides, and their end.
T_ENTRY, T_REACH, T_ABOVE, T_ABOVE_NODE, T_BASE, T_CREDIT, T_NEEDS, T_EARLY, T_LATE, T_LATE_END, T_COLUMNS = range(11)
# Rows of `levels`: node of the trie, first live row, first occurrence, partial matchings, element, and how many levels
# below it elements have reached.
L_NODE, L_LIVE, L_OCCURRENCES, L_PARTIAL, L_ELEMENT, L_REACHED, L_ROWS = range(7)
# Rows of `live` and `occurrences`.
V_OF, V_LEVEL, V_ABOVE, V_ROWS = range(4)
# Columns of a partial matching: row of the twig, level, next one above of the row, next one of the level, bits.
P_ROW, P_LEVEL, P_ABOVE, P_BESIDE, P_CREDIT, P_COLUMNS = range(6)
# Rows of `ready`: row of the twig, level, its partial matching (-1: none), whether its end tag has been read.
Y_ROW, Y_LEVEL, Y_PARTIAL, Y_ENDED, Y_ROWS = range(5)
# The bit of a partial matching that has everything except what its end tag decides.
AT_END = np.int64(1) << np.int64(62)
MOST_BRANCHES = 62
NOWHERE = 1 << 30

FEW_LIVE, FEW_OCCURRENCES, FEW_PARTIAL, FEW_READY, FEW_LEVELS = range(OWN_REASON, OWN_REASON + 5)
# Places in `state`: counts of work; the open level, the start tags read; the heights of stacks, the first free partial
# matching; how many rows the event has hit, how many candidates are ready, how many entries were marked, and where the
# gates of undecided entries begin.
LOOKED, PARTIALS, TRIED, LEVEL, TIME, N_LIVE, N_OCCURRENCES, N_PARTIAL, FREE = range(OWN_STATE, OWN_STATE + 9)
N_HITS, N_READY, MARKED, UNDECIDED, STATE_SIZE = range(OWN_STATE + 9, OWN_STATE + 14)
# A caller that moves elements gives a level a negative number for an element whose values differ from those read:
# -1 - (8 · element + flags). What its tests would decide is reported as a gate: UNDECIDED and the entry.
ATTRIBUTES_STAY, CONTENT_STAYS, NO_ATTRIBUTES = 1, 2, 4


class SubstringTrie(NamedTuple):
    """The trie of substrings: edges by hash, the parent and the last symbol of each node, and its columns.

    `leaf_entries` has the entries of leaf rows of twigs.
    """

    slots: Int32s
    parents: Int32s
    symbols: Int32s
    nodes: Matrix[Int32s]
    leaf_entries: Int32s


class PlainRows(NamedTuple):
    """The rows of plain paths, their parents and reaches, and the gates and delegated entries of their tasks.

    `longest_wild` is the longest reach of a row that ends in `*`.
    """

    parents: Int32s
    reaches: Int32s
    rows: Matrix[Int32s]
    task_numbers: Int32s
    delegated: Int32s
    longest_wild: int


class WantedRows(NamedTuple):
    """The rows that lead to a wanted entry; if these are few, also their leaf rows, chained by node, otherwise none."""

    rows: UInt8s
    chosen: Int32s
    following: Int32s


class XTrieTables(NamedTuple):
    """All tables of the expressions, and the wanted rows."""

    trie: SubstringTrie
    plain: PlainRows
    twigs: Matrix[Int32s]
    wanted: WantedRows


class Stacks(NamedTuple):
    """The open state while a document is read, and the results of the last event.

    live         rows of plain paths that match on the way to the current element, with the level of their last name;
                 for each row the `first` such level, and the `head` of its list
    occurrences  levels at which a substring ends, for those below which twigs continue at any depth
    partial      partial matchings: a row of a twig at a level, with the branches found so far as bits (`P_CREDIT`)
    hits, ready  rows of plain paths and twigs to follow
    known        for each test the last element that it was evaluated on, with the result
    """

    levels: Writable[Matrix[Int32s]]
    first: Writable[Int32s]
    head: Writable[Int32s]
    live: Writable[Matrix[Int32s]]
    occurrence_head: Writable[Int32s]
    occurrences: Writable[Matrix[Int32s]]
    partial_head: Writable[Int32s]
    partial: Writable[Matrix[Int64s]]
    hits: Writable[Int32s]
    ready: Writable[Matrix[Int32s]]
    known: Writable[Int64s]


@part
def lives_at(row, level, stacks):
    """Whether a row is live at exactly this level."""
    live = stacks.live
    at = stacks.head[row]
    while at >= 0 and live[V_LEVEL, at] > level:
        at = live[V_ABOVE, at]
    return at >= 0 and live[V_LEVEL, at] == level


@part
def is_suffix(nodes, suffix, node):
    """Whether one node's substring is a suffix of the other's."""
    return nodes[suffix, N_IN] <= nodes[node, N_IN] < nodes[suffix, N_OUT]


@part
def in_reach(twig, level, tables, stacks):
    """Whether a row of a twig at this level may have the row above it in reach; for a highest one: whether it has."""
    twigs, nodes, first = tables.twigs, tables.trie.nodes, stacks.first
    reach, above = twigs[twig, T_REACH], np.int64(level - (twigs[twig, T_REACH] >> 1))
    if twigs[twig, T_ABOVE] < 0:
        base = twigs[twig, T_BASE]
        return first[base] <= above and (reach & 1 == 1 or first[base] == above or lives_at(base, above, stacks))
    if above < 1:
        return False
    node = twigs[twig, T_ABOVE_NODE]
    if reach & 1:
        return nodes[node, N_OPEN] < 0 or stacks.occurrence_head[nodes[node, N_OPEN]] >= 0
    return is_suffix(nodes, node, stacks.levels[L_NODE, above])


@part
def is_settled(entry, stamp, skipping, wanted):
    """Whether an entry is found, skipped, or belongs to a decided link."""
    if is_marked(wanted.marks, entry) or (skipping and is_marked(wanted.skips, entry)):
        return True
    link, link_stamps = wanted.link, wanted.link_stamps
    return len(link) > 0 and link[entry] >= 0 and link_stamps[link[entry]] == stamp
