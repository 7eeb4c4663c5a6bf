# mypy: allow-untyped-defs, allow-untyped-calls
"""Leaves and extents: which label paths end in each document, and which documents end in each label path.

A document's leaves are the label paths of its elements without child elements, each once. The inverse, from label path
to documents, is the extents.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.label_paths_kernels import edge_slot
from pathcast.kernels import Bools, Int32s, Int64s, Matrix, UInt32s, UInt64s, Writable, kernel
from pathcast.matching.arrays.bitset_kernels import mark_with_summary, read_few_marks

from .document_content_kernels import TokenRows
from .token_table_kernels import CLOSES, M_FLAGS, M_NODE, NONE, OPENS, RAW_TEXT


class Leaves(NamedTuple):
    """The label paths that end in documents: those of row `r` are `paths[begins[r] : begins[r + 1]]`."""

    begins: Int64s
    paths: Int32s


class PathTree(NamedTuple):
    """The tree of label paths: its hash table of edges; parent, last name and kind of each path."""

    slots: Int32s
    parents: Int32s
    names: Int32s
    kinds: Int32s


class PathEntries(NamedTuple):
    """The entries that label paths match: those of path `p` are `entries[begins[p] : begins[p + 1]]`."""

    begins: Int64s
    entries: Int32s


class Marks(NamedTuple):
    """A set of entries as bits, and a bit for each word that has some."""

    words: Writable[UInt64s]
    summary: Writable[UInt64s]


@kernel
def leaves_of_elements(
    offsets: Int64s,
    ends: Int32s,
    paths: Int32s,
    stamps: Writable[Int64s],
    leaf_begin: Writable[Int64s],
    leaves: Writable[Int32s],
) -> int:
    """Write the leaves of documents from their elements; return how many."""
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


@kernel
def leaves_of_tokens(
    tokens: TokenRows,
    meta: Matrix[Int32s],
    tree: PathTree,
    stamps: Writable[Int64s],
    leaf_begin: Writable[Int64s],
    leaves: Writable[Int32s],
) -> int:
    """Write the leaves of documents from their tokens; return how many, or -1 - the first that is not a tree."""
    count = 0
    for index in range(len(tokens.begins) - 1):
        current = np.int32(NONE)
        opened, roots = False, 0
        for t in range(tokens.begins[index], tokens.begins[index + 1]):
            token = tokens.numbers[t]
            node, flags = meta[M_NODE, token], meta[M_FLAGS, token]
            if token <= RAW_TEXT:
                if tokens.begins[index + 1] - tokens.begins[index] != 1:
                    return -1 - index
                roots += 1
            if flags & OPENS:
                if node < 0:
                    return -1 - index
                roots += current == NONE
                slot = edge_slot(tree.slots, tree.parents, tree.names, current, tree.names[node])
                current = np.int32(tree.slots[slot])
                if current == NONE or tree.kinds[current] != node:
                    return -1 - index
                opened = True
            if flags & CLOSES:
                if current == NONE or tree.kinds[current] != node:
                    return -1 - index
                if opened and stamps[current] != index + 1:
                    stamps[current] = index + 1
                    leaves[count] = current
                    count += 1
                opened = False
                current = tree.parents[current]
        if current != NONE or roots != 1:
            return -1 - index
        leaf_begin[index + 1] = count
    return count


@kernel
def turn_round(
    rows: Int64s, leaf_begin: Int64s, leaves: Int32s, ids: UInt32s, begin: Writable[Int64s], out: Writable[UInt32s]
) -> None:
    """Write the ids of the rows (in their order) that end in each path; path `n`'s are `begin[n] : begin[n + 1]`.

    `begin` must be zeros, with two places more than there are paths.
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


@kernel
def keep_own(parents: Int32s, begin: Int64s, entries: Int32s, stamps: Writable[Int32s], own: Writable[Bools]) -> None:
    """Of the entries of each path, mark those that its parent's list lacks; `stamps` has a 0 for each entry."""
    for path in range(len(parents)):
        above = parents[path]
        if above >= 0:
            for k in range(begin[above], begin[above + 1]):
                stamps[entries[k]] = path + 1
        for k in range(begin[path], begin[path + 1]):
            own[k] = stamps[entries[k]] != path + 1


@kernel
def collect_entries(
    rows: Int64s,
    leaves: Leaves,
    parents: Int32s,
    found: PathEntries,
    first: int,
    stamps: Writable[Int64s],
    marks: Marks,
    offsets: Writable[Int64s],
    out: Writable[Int32s],
) -> int:
    """The entries of the rows from `first` on, ascending: those of all paths that a document has.

    Returns the first row without room in `out`, or the number of rows.
    """
    for k in range(first, len(rows)):
        total = 0
        for at in range(leaves.begins[rows[k]], leaves.begins[rows[k] + 1]):
            path = leaves.paths[at]
            while path != NONE and stamps[path] != k + 1:
                stamps[path] = k + 1
                total += found.begins[path + 1] - found.begins[path]
                path = parents[path]
        if offsets[k] + total + 8 > len(out):
            for at in range(leaves.begins[rows[k]], leaves.begins[rows[k] + 1]):
                path = leaves.paths[at]
                while path != NONE:
                    stamps[path] = 0
                    path = parents[path]
            return k
        for at in range(leaves.begins[rows[k]], leaves.begins[rows[k] + 1]):
            path = leaves.paths[at]
            while path != NONE and stamps[path] == k + 1:
                stamps[path] = 0
                for entry in range(found.begins[path], found.begins[path + 1]):
                    mark_with_summary(marks.words, marks.summary, found.entries[entry])
                path = parents[path]
        offsets[k + 1] = read_few_marks(marks.words, marks.summary, out, offsets[k])
    return len(rows)


@kernel
def mark_leaves(rows: Int64s, leaf_begin: Int64s, leaves: Int32s, used: Writable[Bools]) -> None:
    """Mark the label paths that end in some of these rows."""
    for k in range(len(rows)):
        for leaf in range(leaf_begin[rows[k]], leaf_begin[rows[k] + 1]):
            used[leaves[leaf]] = True
