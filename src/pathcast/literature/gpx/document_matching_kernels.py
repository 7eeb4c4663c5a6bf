# mypy: allow-untyped-defs, allow-untyped-calls
"""Documents against the tables: publications, the predicates they satisfy, and the paths with all predicates satisfied.

There is one publication for each path from the root to a leaf, and each selection of repeated tags to leave out
(section 3.2, `publication_enumeration_kernels.py`): its predicates are found (section 4.1,
`structure_predicate_kernels.py`, `attribute_filter_kernels.py`), then its paths (section 4.2,
`satisfied_path_kernels.py`), in one of three ways.

With `reuse`, the part that a path shares with the previous one is not evaluated again (section 4.1, last paragraph):
predicates are found at an element's start and withdrawn at its end. A path's last predicate is then the last to become
true, so under LAST an element checks only the clusters of its own predicates, and a match is known at the start tag
that completes it: this is how streams work.

Publications double with each repetition of a tag in a path. Documents with a path of more than MOST_REPEATS
repetitions, or with more than MOST_TUPLES tuples in all, are left to another engine (`over`).
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Attributes, Elements
from pathcast.kernels import Bools, Int32s, Int64s, UInt8s, Writable, kernel, part
from pathcast.matching.arrays.bitset_kernels import read_few_marks

from ..streaming.pattern_binding_table_kernels import BindingTable
from .branch_join_kernels import Joins
from .publication_matching.attribute_filter_kernels import (
    AttributeValues,
    DocumentAttributes,
    Filters,
    attribute_predicates,
    read_values,
)
from .publication_matching.publication_enumeration_kernels import (
    L_FOUND,
    L_REPEATS,
    L_ROWS,
    L_STACKED,
    OpenPath,
    find_last,
    publish,
    stack_tag,
)
from .publication_matching.satisfied_path_kernels import (
    COUNT,
    DONE,
    EPOCH,
    FIRST,
    FULL_OUT,
    LAST,
    PUBLICATIONS,
    READ,
    SATISFIED,
    STAMP,
    TUPLES,
    WAITING,
    WHY,
    WRITTEN,
    Clusters,
    Lengths,
    Wanted,
    accept_lengths,
    check_clusters,
    compare_hits,
    count_hits,
    take_matched,
    withdraw,
)
from .publication_matching.structure_predicate_kernels import Satisfied, Structure, end_predicates, tuple_predicates

MOST_REPEATS = 10
MOST_TUPLES = 1 << 24


class Index(NamedTuple):
    """All tables of the patterns: which names are tags of predicates, the predicates, and their paths."""

    is_tag: Bools
    structure: Structure
    filters: Filters
    clusters: Clusters
    lengths: Lengths
    joins: Joins


class Run(NamedTuple):
    """How to find paths (COUNT, LAST or FIRST), whether to reuse the shared part of paths, and the first document."""

    mode: int
    reuse: bool
    first: int


class MatchScratch(NamedTuple):
    """The buffers of a run.

    `epochs` and `found` have room for two sets of satisfied predicates, `hits` for two counts of each path; `matched`
    lists the paths that a publication matches.
    """

    counts: Writable[Int64s]
    epochs: Writable[Int64s]
    found: Writable[Int32s]
    hits: Writable[Int32s]
    matched: Writable[Int32s]
    path: OpenPath
    values: AttributeValues
    bindings: BindingTable


class Results(NamedTuple):
    """The documents over the limits, and the entries of the others: those of document `i` end at `offsets[i + 1]`."""

    over: Writable[Bools]
    offsets: Writable[Int64s]
    entries: Writable[Int32s]


class PathEnd(NamedTuple):
    """The last element of the open path: whether it is a leaf, and its depth.

    `stacked` elements are on the stack, of them `from_stacked` before this one and `repeats` that repeat a tag; `read`
    is the number of elements read so far.
    """

    leaf: bool
    depth: np.int64
    stacked: np.int64
    from_stacked: np.int64
    repeats: np.int64
    read: np.int64


@part
def publication_predicates(depth, steady, from_kept, count, path, content, index, satisfied, n):
    """The predicates that a publication satisfies; `steady`: those that its last element is the first to satisfy."""
    structure, filters = index.structure, index.filters
    n = tuple_predicates(from_kept, count, path.publication, structure, satisfied, n)
    if len(filters.tests.keys):
        fresh_from = from_kept if steady else np.int64(-1)
        n = attribute_predicates(depth, fresh_from, count, path, content, filters, satisfied, n)
    if len(structure.end_rows):
        n = end_predicates(depth, steady, count, path.publication, structure, satisfied, n)
    return n


@part
def publication_paths(mode, leaf, steady, fresh, now, hit_base, satisfied, clusters, wanted, scratch):
    """The paths that a publication's predicates, from `fresh` up to `now`, complete."""
    if mode == COUNT:
        count_hits(fresh, now, satisfied, hit_base, clusters, scratch)
        if leaf:
            return compare_hits(hit_base, not steady, clusters, scratch)
    elif mode == LAST or leaf:
        # Under FIRST, the whole path's predicates count: their clusters are complete only at its end.
        first = np.int64(0) if steady and mode == FIRST else fresh
        return check_clusters(first, now, satisfied, clusters, wanted, scratch)
    return np.int64(0)


@part
def element_publications(run, last, path_epoch, n, tuples, content, index, wanted, scratch):
    """All publications of the path down to an element; return how many predicates hold now, and all tuples so far."""
    counts, path, clusters = scratch.counts, scratch.path, index.clusters
    stacked, repeats = last.stacked, last.repeats
    steady = run.reuse and repeats == 0
    predicates = np.int64(len(clusters.member_begins) - 1)
    find_last(stacked, repeats, path.stack)
    for left_out in range(np.int64(1) << repeats):
        count = publish(left_out, stacked, repeats, path.stack, path.publication)
        if steady:
            satisfied = Satisfied(scratch.epochs, np.int64(0), path_epoch, scratch.found)
            fresh, from_kept, hit_base = n, last.from_stacked, np.int64(0)
        else:
            counts[EPOCH] += 1
            satisfied = Satisfied(scratch.epochs, predicates, counts[EPOCH], scratch.found)
            fresh, from_kept, hit_base = predicates, np.int64(0), np.int64(len(clusters.entries))
        now = publication_predicates(last.depth, steady, from_kept, count, path, content, index, satisfied, fresh)
        tuples += (count - from_kept) * (count + 1)
        counts[PUBLICATIONS] += 1
        counts[SATISFIED] += now - fresh
        n_matched = publication_paths(
            run.mode, last.leaf, steady, fresh, now, hit_base, satisfied, clusters, wanted, scratch
        )
        if steady:
            n = now
        take_matched(n_matched, count, last.read, index, wanted, scratch)
        if tuples > MOST_TUPLES or counts[WHY] != DONE:
            break
    return n, tuples


@part
def match_document(run, begin, end, elements, content, index, wanted, scratch):
    """Mark the entries that a document matches; return whether it exceeded the limits."""
    mode, reuse, _ = run
    counts, path, clusters, hits = scratch.counts, scratch.path, index.clusters, scratch.hits
    levels = path.levels
    counts[EPOCH] += 1
    path_epoch = counts[EPOCH]
    shared = Satisfied(scratch.epochs, np.int64(0), path_epoch, scratch.found)
    n, longest, tuples, lengths_done = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    too_much = False
    read = np.int64(0)
    for row in range(L_ROWS):
        levels[row, 0] = 0
    for element in range(begin, end):
        if too_much or counts[WHY] != DONE or (len(wanted.links) and counts[WAITING] == 0):
            break
        read = element - begin + 1
        depth = np.int64(elements.depths[element])
        if reuse:
            n = withdraw(levels[L_FOUND, depth - 1], n, mode == COUNT, shared, clusters, hits)
        before = levels[L_STACKED, depth - 1]
        tag = content.symbols[elements.names[element]]
        stacked, repeats = stack_tag(tag, depth, before, levels[L_REPEATS, depth - 1], path.stack, index.is_tag)
        levels[L_STACKED, depth], levels[L_REPEATS, depth], levels[L_FOUND, depth] = stacked, repeats, n
        path.elements[depth] = element
        if depth > longest:
            longest = depth
            lengths_done = accept_lengths(lengths_done, depth, index.lengths, wanted, read, counts)
        leaf = elements.ends[element] == element + 1
        too_much = repeats > MOST_REPEATS or tuples + stacked * (stacked + 1) > MOST_TUPLES
        if too_much or not (leaf or (reuse and repeats == 0) or len(wanted.positions) > 0):
            continue
        last = PathEnd(leaf, depth, stacked, before, repeats, read)
        n, tuples = element_publications(run, last, path_epoch, n, tuples, content, index, wanted, scratch)
        levels[L_FOUND, depth] = n
        too_much = tuples > MOST_TUPLES
    if reuse:
        withdraw(np.int64(0), n, mode == COUNT, shared, clusters, hits)
    counts[TUPLES] += tuples
    counts[READ] = read
    return too_much


@kernel
def match_documents(
    run: Run,
    elements: Elements,
    attributes: Attributes,
    data: UInt8s,
    arena: UInt8s,
    symbols: Int32s,
    index: Index,
    wanted: Wanted,
    scratch: MatchScratch,
    results: Results,
) -> int:
    """Match the documents from `run.first` on; return the first that is not done, with the reason in `counts[WHY]`."""
    counts, offsets = scratch.counts, elements.offsets
    counts[WHY] = DONE
    document = run.first
    while document < len(offsets) - 1:
        begin, end = offsets[document], offsets[document + 1]
        written = counts[WRITTEN]
        if written + 64 * len(wanted.marks) + 8 > len(results.entries):
            counts[WHY] = FULL_OUT
            break
        counts[STAMP] += 1
        scratch.bindings.counts[0] = 0
        zero = np.int64(attributes.begins[begin]) if end > begin else np.int64(0)
        content = DocumentAttributes(attributes, symbols, zero, scratch.values)
        if len(index.filters.tests.keys) and end > begin:
            read_values(content, attributes.begins[end], data, arena, index.filters.asks, index.filters.literals)
        too_much = match_document(run, begin, end, elements, content, index, wanted, scratch)
        results.over[document] = too_much
        now_written = read_few_marks(wanted.marks, wanted.summary, results.entries, written)
        if counts[WHY] != DONE:
            break
        counts[WRITTEN] = written if too_much else now_written
        document += 1
        results.offsets[document] = counts[WRITTEN]
    return document
