# mypy: allow-untyped-defs, allow-untyped-calls
"""Loops over the tables while they are made: runs of named steps, max-suffix pointers, and which rows are wanted."""

import numpy as np

from pathcast.kernels import kernel, lowest_bit
from pathcast.matching.arrays.bitset_kernels import ONE
from pathcast.matching.table.path_trie_kernels import child, edge_slot

from ..streaming.streaming_kernels import is_marked
from .layout_kernels import N_IN, N_NEXT, N_OUT, N_REPORT, N_SUFFIX


@kernel("int64(ro_i4[::1], ro_i4[::1], int64, i4[::1], i4[::1], u1[::1], u1[::1], i4[::1], i4[::1], i4[::1], i4[::1])")
def link_runs(parents, steps, count, base, reach, named, needed, substring, slots, trie_parent, trie_symbol):
    """Cut the paths of a trie of steps into maximal runs of named steps that `/` alone connects.

    For each node: whether its step is `named`; the `substring` that its run makes up to it, as a node of the trie of
    substrings, entered now; `base`, the node at the end of the run before (0: the document); `reach`, how many levels
    lie between the two, doubled, plus 1 when it may be more. Of the nodes that are `needed`, the bases are needed, too.
    Gives the number of nodes of the trie of substrings.
    """
    size, mask = 1, len(slots) - 1
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
        found = child(slots, trie_parent, trie_symbol, source, symbol)
        if found < 0:
            slot = edge_slot(source, symbol, mask)
            while slots[slot] >= 0:
                slot = (slot + 1) & mask
            slots[slot] = size
            trie_parent[size], trie_symbol[size] = source, symbol
            found = size
            size += 1
        substring[node] = found
    for node in range(count - 1, 0, -1):
        if needed[node]:
            needed[base[node]] = 1
    return size


@kernel("void(ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_b1[::1], i4[:, ::1], i4[::1])")
def link_suffixes(order, parents, symbols, slots, reports, nodes, sizes):
    """Max-suffix pointers of the substrings' trie, given its nodes by rising depth.

    The pointer of a node leads to the node of its longest proper suffix that is in the trie. They form a tree: a node
    is a suffix of another exactly if it is above it there, which places in pre-order tell (N_IN, N_OUT). `reports`
    says at which nodes there is something to do; each node knows the first such one on its way (N_REPORT), itself
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
    # Places: `sizes` of a node becomes the place of its next child.
    nodes[0, N_IN], nodes[0, N_OUT] = 0, sizes[0]
    sizes[0] = 1
    for index in range(1, len(order)):
        node = order[index]
        suffix = nodes[node, N_SUFFIX]
        place = sizes[suffix]
        sizes[suffix] += sizes[node]
        nodes[node, N_IN], nodes[node, N_OUT] = place, place + sizes[node]
        sizes[node] = place + 1


@kernel("void(ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_u8[::1], u1[::1])")
def want_rows(row_entry, row_parent, inner, gate_row, delegated, top_entry, top_base, skips, wanted):
    """Mark the rows that lead to an entry which is not skipped; `inner` has the rows with rows below, deepest first."""
    # Without branches: which entries are skipped is as good as random.
    for row in range(len(wanted)):
        wanted[row] = 0
    for gate in range(len(delegated)):
        wanted[gate_row[gate]] |= not is_marked(skips, delegated[gate])
    for top in range(len(top_entry)):
        wanted[top_base[top]] |= not is_marked(skips, top_entry[top])
    for row in range(1, len(row_entry)):
        entry = max(row_entry[row], 0)
        wanted[row] |= (row_entry[row] >= 0) & (not is_marked(skips, entry))
        wanted[row_parent[row]] |= wanted[row]
    for index in range(len(inner)):
        row = inner[index]
        if row > 0:
            wanted[row_parent[row]] |= wanted[row]
    wanted[0] |= row_entry[0] >= 0 and not is_marked(skips, row_entry[0])


@kernel(
    "void(ro_u8[::1], int64, ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], u1[::1], i4[::1], i4[::1])",
    late=True,
)
def want_few(skips, entries, entry_row, row_parent, leaf_begin, leaf_rows, leaf_node, wanted, chosen, following):
    """As `want_rows`, where few entries are not skipped; their leaf rows are chained by node, from `chosen` on.

    `entry_row` is the row that an entry asks for; its leaf rows are `leaf_rows[leaf_begin[e] : leaf_begin[e + 1]]`.
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
            for at in range(leaf_begin[entry], leaf_begin[entry + 1]):
                leaf = leaf_rows[at]
                following[leaf] = chosen[leaf_node[leaf]]
                chosen[leaf_node[leaf]] = leaf
