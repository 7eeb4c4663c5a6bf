# mypy: allow-untyped-defs, allow-untyped-calls
"""Loops that build the tables: runs of named steps, max-suffix pointers, and which rows are wanted."""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Bools, Int32s, Matrix, UInt8s, UInt64s, Writable, kernel, lowest_bit
from pathcast.matching.arrays.bitset_kernels import ONE
from pathcast.matching.table.path_trie_kernels import child, enter_child

from ..streaming.match_recording_kernels import is_marked
from .table_and_stack_layout_kernels import N_IN, N_NEXT, N_OUT, N_REPORT, N_SUFFIX


class StepRuns(NamedTuple):
    """For each node of a trie of steps its maximal run of named steps that `/` alone connects.

    named      whether its step is named
    substring  the run up to it, as a node of the trie of substrings
    base       the node at the end of the previous run (0: the document)
    reach      the levels between the two, doubled, plus 1 if it may be more
    needed     whether a path ends there; the bases of needed nodes are needed, too
    """

    base: Writable[Int32s]
    reach: Writable[Int32s]
    named: Writable[UInt8s]
    needed: Writable[UInt8s]
    substring: Writable[Int32s]


class NewSubstrings(NamedTuple):
    """The trie of substrings during construction."""

    slots: Writable[Int32s]
    parents: Writable[Int32s]
    symbols: Writable[Int32s]


class EntryRows(NamedTuple):
    """Entries, and the row that each needs."""

    entries: Int32s
    rows: Int32s


class LeafRows(NamedTuple):
    """The leaf rows of entries: those of entry `e` are `rows[begins[e] : begins[e + 1]]`; and the node of each."""

    begins: Int32s
    rows: Int32s
    nodes: Int32s


@kernel
def link_runs(parents: Int32s, steps: Int32s, count: int, runs: StepRuns, strings: NewSubstrings) -> int:
    """Split the paths of a trie of steps into runs, and insert their substrings; return their trie's node count."""
    base, reach, named, needed, substring = runs
    slots, trie_parent, trie_symbol = strings
    size = 1
    for node in range(1, count):
        above, symbol, deep = parents[node], steps[node] >> 1, steps[node] & 1
        goes_on = symbol > 0 and deep == 0
        if named[above] and not goes_on:
            base[node] = above
            reach[node] = 2 | deep
        else:
            base[node] = base[above]
            reach[node] = (reach[above] + 2) | deep
        if symbol == 0:
            continue
        named[node] = 1
        source = substring[above] if goes_on and named[above] else np.int32(0)
        substring[node], size = enter_child(slots, trie_parent, trie_symbol, source, symbol, size)
    for node in range(count - 1, 0, -1):
        if needed[node]:
            needed[base[node]] = 1
    return size


@kernel
def link_suffixes(
    order: Int32s,
    parents: Int32s,
    symbols: Int32s,
    slots: Int32s,
    reports: Bools,
    nodes: Writable[Matrix[Int32s]],
    sizes: Writable[Int32s],
) -> None:
    """Max-suffix pointers of the substrings' trie, given its nodes by ascending depth.

    The pointer of a node leads to the node of its longest proper suffix in the trie. The pointers form a tree: a node
    is a suffix of another if and only if it is an ancestor there, which pre-order positions show (N_IN, N_OUT).
    `reports` marks the nodes with something to do; each node has the first such node on its way (N_REPORT), itself
    included, and the one after (N_NEXT); node 0, the empty substring, ends every way.
    """
    for index in range(1, len(order)):
        node = order[index]
        above, symbol = parents[node], symbols[node]
        suffix = np.int64(0)
        while above != 0:
            above = nodes[above, N_SUFFIX]
            found = child(slots, parents, symbols, above, symbol)
            if found >= 0:
                suffix = np.int64(found)
                break
        nodes[node, N_SUFFIX] = suffix
        nodes[node, N_NEXT] = nodes[suffix, N_REPORT]
        nodes[node, N_REPORT] = node if reports[node] else nodes[suffix, N_REPORT]
    for index in range(len(order) - 1, -1, -1):
        node = order[index]
        sizes[node] += 1
        if node != 0:
            sizes[nodes[node, N_SUFFIX]] += sizes[node]
    # Positions: `sizes` of a node becomes the position of its next child.
    nodes[0, N_IN], nodes[0, N_OUT] = 0, sizes[0]
    sizes[0] = 1
    for index in range(1, len(order)):
        node = order[index]
        suffix = nodes[node, N_SUFFIX]
        place = sizes[suffix]
        sizes[suffix] += sizes[node]
        nodes[node, N_IN], nodes[node, N_OUT] = place, place + sizes[node]
        sizes[node] = place + 1


@kernel
def want_rows(
    row_entry: Int32s,
    row_parent: Int32s,
    inner: Int32s,
    gates: EntryRows,
    tops: EntryRows,
    skips: UInt64s,
    wanted: Writable[UInt8s],
) -> None:
    """Mark the rows that lead to an entry that is not skipped; `inner` has the rows with rows below, deepest first."""
    # Without branches: skipped entries are practically random.
    for row in range(len(wanted)):
        wanted[row] = 0
    for gate in range(len(gates.entries)):
        wanted[gates.rows[gate]] |= not is_marked(skips, gates.entries[gate])
    for top in range(len(tops.entries)):
        wanted[tops.rows[top]] |= not is_marked(skips, tops.entries[top])
    for row in range(1, len(row_entry)):
        entry = max(row_entry[row], 0)
        wanted[row] |= (row_entry[row] >= 0) & (not is_marked(skips, entry))
        wanted[row_parent[row]] |= wanted[row]
    for index in range(len(inner)):
        row = inner[index]
        if row > 0:
            wanted[row_parent[row]] |= wanted[row]
    wanted[0] |= row_entry[0] >= 0 and not is_marked(skips, row_entry[0])


@kernel(late=True)
def want_few(
    skips: UInt64s,
    entries: int,
    entry_row: Int32s,
    row_parent: Int32s,
    leaves: LeafRows,
    wanted: Writable[UInt8s],
    chosen: Writable[Int32s],
    following: Writable[Int32s],
) -> None:
    """As `want_rows`, if few entries are not skipped; their leaf rows are chained by node, from `chosen` on.

    `entry_row` is the row that an entry needs.
    """
    for row in range(len(wanted)):
        wanted[row] = 0
    for node in range(len(chosen)):
        chosen[node] = -1
    for index in range(len(skips)):
        rest = ~skips[index]
        while rest:
            entry = 64 * index + np.int64(lowest_bit(rest))
            rest &= rest - ONE
            if entry >= entries:
                break
            row = entry_row[entry]
            while row >= 0 and wanted[row] == 0:
                wanted[row] = 1
                row = row_parent[row]
            for at in range(leaves.begins[entry], leaves.begins[entry + 1]):
                leaf = leaves.rows[at]
                following[leaf] = chosen[leaves.nodes[leaf]]
                chosen[leaves.nodes[leaf]] = leaf
