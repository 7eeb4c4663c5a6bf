# mypy: allow-untyped-defs, allow-untyped-calls
"""Leaves and extents: which label paths end in each document, and which documents end in each label path.

A document's leaves are the label paths of its elements without child elements, each once. Turned round, label path to
documents, they are the extents.
"""

import numpy as np

from pathcast.documents.label_paths_kernels import edge_slot
from pathcast.kernels import kernel
from pathcast.matching.arrays.bitset_kernels import mark_with_summary, read_few_marks

from .token_kernels import CLOSES, M_FLAGS, M_NODE, NONE, OPENS, RAW_TEXT


@kernel("int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], i8[::1], i8[::1], i4[::1])")
def leaves_of_elements(offsets, ends, paths, stamps, leaf_begin, leaves):
    """The leaves of documents from their elements; how many."""
    count = 0
    for index in range(len(offsets) - 1):
        for element in range(offsets[index], offsets[index + 1]):
            path = paths[element]
            if ends[element] == element + 1 and stamps[path] != index + 1:
                stamps[path] = index + 1
                leaves[count] = path
                count += 1
        leaf_begin[index + 1] = count
    return count


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " i8[::1], i8[::1], i4[::1])"
)
def leaves_of_tokens(token_begin, tokens, meta, slots, node_parent, node_name, node_kind, stamps, leaf_begin, leaves):
    """The leaves of documents from their tokens; how many, or -1 - the first document whose tokens make no tree."""
    count = 0
    for index in range(len(token_begin) - 1):
        current = np.int32(NONE)
        opened, roots = False, 0
        for t in range(token_begin[index], token_begin[index + 1]):
            token = tokens[t]
            node, flags = meta[M_NODE, token], meta[M_FLAGS, token]
            if token <= RAW_TEXT:
                if token_begin[index + 1] - token_begin[index] != 1:
                    return -1 - index
                roots += 1
            if flags & OPENS:
                if node < 0:
                    return -1 - index
                roots += current == NONE
                current = slots[edge_slot(slots, node_parent, node_name, current, node_name[node])]
                if current == NONE or node_kind[current] != node:
                    return -1 - index
                opened = True
            if flags & CLOSES:
                if current == NONE or node_kind[current] != node:
                    return -1 - index
                if opened and stamps[current] != index + 1:
                    stamps[current] = index + 1
                    leaves[count] = current
                    count += 1
                opened = False
                current = node_parent[current]
        if current != NONE or roots != 1:
            return -1 - index
        leaf_begin[index + 1] = count
    return count


@kernel("void(ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_u4[::1], i8[::1], u4[::1])")
def turn_round(rows, leaf_begin, leaves, ids, begin, out):
    """Write the ids of the rows (in their order) that end in each path; path `n`'s are `begin[n] : begin[n + 1]`.

    `begin` comes with zeros and one place more than there are paths and their end.
    """
    for k in range(len(rows)):
        for at in range(leaf_begin[rows[k]], leaf_begin[rows[k] + 1]):
            begin[leaves[at] + 2] += 1
    for path in range(2, len(begin)):
        begin[path] += begin[path - 1]
    for k in range(len(rows)):
        for at in range(leaf_begin[rows[k]], leaf_begin[rows[k] + 1]):
            path = leaves[at]
            out[begin[path + 1]] = ids[k]
            begin[path + 1] += 1


@kernel("void(ro_i4[::1], ro_i8[::1], ro_i4[::1], b1[::1])")
def keep_own(parents, begin, entries, own):
    """Of the entries of each path (ascending), mark those that its parent's list lacks; parents come first."""
    for path in range(len(parents)):
        above = parents[path]
        at, stop = np.int64(0), np.int64(0)
        if above >= 0:
            at, stop = begin[above], begin[above + 1]
        for k in range(begin[path], begin[path + 1]):
            while at < stop and entries[at] < entries[k]:
                at += 1
            own[k] = not (at < stop and entries[at] == entries[k])


@kernel(
    "int64(ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], int64,"
    " i8[::1], u8[::1], u8[::1], i8[::1], i4[::1])"
)
def collect_entries(rows, leaf_begin, leaves, parents, begin, entries, first, stamps, marks, summary, offsets, out):
    """The entries of the rows from `first` on, ascending: those of all paths that a document has.

    Gives the first row that found no room in `out`, or how many there are.
    """
    for k in range(first, len(rows)):
        total = 0
        for at in range(leaf_begin[rows[k]], leaf_begin[rows[k] + 1]):
            path = leaves[at]
            while path != NONE and stamps[path] != k + 1:
                stamps[path] = k + 1
                total += begin[path + 1] - begin[path]
                path = parents[path]
        if offsets[k] + total + 8 > len(out):
            for at in range(leaf_begin[rows[k]], leaf_begin[rows[k] + 1]):
                path = leaves[at]
                while path != NONE:
                    stamps[path] = 0
                    path = parents[path]
            return k
        for at in range(leaf_begin[rows[k]], leaf_begin[rows[k] + 1]):
            path = leaves[at]
            while path != NONE and stamps[path] == k + 1:
                stamps[path] = 0
                for entry in range(begin[path], begin[path + 1]):
                    mark_with_summary(marks, summary, entries[entry])
                path = parents[path]
        offsets[k + 1] = read_few_marks(marks, summary, out, offsets[k])
    return len(rows)


@kernel("void(ro_i8[::1], ro_i8[::1], ro_i4[::1], b1[::1])")
def mark_leaves(rows, leaf_begin, leaves, used):
    """Mark the label paths that end in some of these rows."""
    for k in range(len(rows)):
        for leaf in range(leaf_begin[rows[k]], leaf_begin[rows[k] + 1]):
            used[leaves[leaf]] = True
