# mypy: allow-untyped-defs, allow-untyped-calls
"""Documents against the tables: publications, the predicates they satisfy, and the paths whose predicates all are.

For each path from the root to a leaf, and each choice of repeated tags to leave out, one publication (section 3.2,
`publication_kernels.py`): its predicates are found (section 4.1, `tuple_kernels.py`, `attribute_filter_kernels.py`),
then its paths (section 4.2, `subscription_kernels.py`), in one of three ways.

With `reuse`, what a path shares with the one before is not evaluated again (section 4.1, last paragraph): predicates
are found when an element is met and withdrawn when it is left. A path's last predicate is the last of its predicates to
become true then, so under LAST an element looks at the clusters of its own predicates alone, and a match is known at
the start tag that completes it: that is the stream.

Publications double with each repetition of a tag in a path. Documents with a path of more than MOST_REPEATS, or with
more tuples than MOST_TUPLES in all, are left to another engine (`over`).
"""

import numpy as np

from pathcast.kernels import kernel, part
from pathcast.matching.arrays.bitset_kernels import read_few_marks

from .attribute_filter_kernels import attribute_predicates, read_values
from .publication_kernels import L_FOUND, L_REPEATS, L_ROWS, L_STACKED, find_last, publish, stack_tag
from .subscription_kernels import (
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
    accept_lengths,
    check_clusters,
    compare_hits,
    count_hits,
    take_matched,
    withdraw,
)
from .tuple_kernels import end_predicates, tuple_predicates

MOST_REPEATS = 10
MOST_TUPLES = 1 << 24


@part
def publication_predicates(depth, steady, from_kept, count, publication, structure, content, filters, truths, n):
    """All predicates that a publication satisfies; `steady`: those that its last element is the first to satisfy."""
    n = tuple_predicates(from_kept, count, publication, structure, truths, n)
    asks, filter_steps, tests = filters
    if len(tests[0]):
        fresh_from = from_kept if steady else np.int64(-1)
        n = attribute_predicates(
            depth, fresh_from, count, publication, content, asks, filter_steps, tests, truths, n
        )  # fmt: skip
    if len(structure[3][1]):
        n = end_predicates(depth, steady, count, publication, structure, truths, n)
    return n


@part
def publication_paths(mode, leaf, steady, fresh, now, hit_base, truths, clusters, asked, hits, matched, counts):
    """The paths that a publication's predicates, those from `fresh` up to `now`, complete."""
    if mode == COUNT:
        count_hits(fresh, now, truths, hit_base, clusters, hits, counts)
        if leaf:
            return compare_hits(hit_base, not steady, clusters, hits, matched, counts)
    elif mode == LAST or leaf:
        # Under FIRST, the whole path's predicates count: their clusters are complete at its end only.
        first = np.int64(0) if steady and mode == FIRST else fresh
        return check_clusters(first, now, truths, clusters, asked, matched, counts)
    return np.int64(0)


@part
def element_publications(
    mode, reuse, leaf, depth, stacked, repeats, fresh_kept, n, tuples, read, kept, path_epoch,
    publication, structure, content, filters, clusters, joins, asked, truth, found, hits, matched, room, counts,
):  # fmt: skip
    """All publications of the path down to an element: how many predicates hold from here on, and all tuples so far."""
    steady = reuse and repeats == 0
    predicates = np.int64(len(clusters[0]) - 1)
    find_last(stacked, repeats, kept)
    for left_out in range(np.int64(1) << repeats):
        count = publish(left_out, stacked, repeats, kept, publication)
        if steady:
            truths, fresh, from_kept, hit_base = (truth, np.int64(0), path_epoch, found), n, fresh_kept, np.int64(0)
        else:
            counts[EPOCH] += 1
            truths = (truth, predicates, counts[EPOCH], found)
            fresh, from_kept, hit_base = predicates, np.int64(0), np.int64(len(clusters[4]))
        now = publication_predicates(
            depth, steady, from_kept, count, publication, structure, content, filters, truths, fresh
        )  # fmt: skip
        tuples += (count - from_kept) * (count + 1)
        counts[PUBLICATIONS] += 1
        counts[SATISFIED] += now - fresh
        n_matched = publication_paths(
            mode, leaf, steady, fresh, now, hit_base, truths, clusters, asked, hits, matched, counts
        )
        if steady:
            n = now
        take_matched(n_matched, matched, clusters, joins, publication, count, content[0], room, asked, read, counts)
        if tuples > MOST_TUPLES or counts[WHY] != DONE:
            break
    return n, tuples


@part
def match_document(
    mode, reuse, begin, end, names, depths, ends, translation, is_tag, lengths, levels, kept,
    publication, structure, content, filters, clusters, joins, asked, truth, found, hits, matched, room, counts,
):  # fmt: skip
    """Mark the entries that a document matches; whether it was too much."""
    counts[EPOCH] += 1
    path_epoch = counts[EPOCH]
    shared = (truth, np.int64(0), path_epoch, found)
    path, links, positions = content[0], asked[3], asked[5]
    n, longest, tuples, lengths_done = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    too_much = False
    read = np.int64(0)
    for row in range(L_ROWS):
        levels[row, 0] = 0
    for element in range(begin, end):
        if too_much or counts[WHY] != DONE or (len(links) and counts[WAITING] == 0):
            break
        read = element - begin + 1
        depth = np.int64(depths[element])
        if reuse:
            n = withdraw(levels[L_FOUND, depth - 1], n, mode == COUNT, shared, clusters, hits)
        fresh_kept = levels[L_STACKED, depth - 1]
        stacked, repeats = stack_tag(
            translation[names[element]], depth, fresh_kept, levels[L_REPEATS, depth - 1], kept, is_tag
        )
        levels[L_STACKED, depth], levels[L_REPEATS, depth], levels[L_FOUND, depth] = stacked, repeats, n
        path[depth] = element
        if depth > longest:
            longest = depth
            lengths_done = accept_lengths(lengths_done, depth, lengths, asked, read, counts)
        leaf = ends[element] == element + 1
        too_much = repeats > MOST_REPEATS or tuples + stacked * (stacked + 1) > MOST_TUPLES
        if too_much or not (leaf or (reuse and repeats == 0) or len(positions) > 0):
            continue
        n, tuples = element_publications(
            mode, reuse, leaf, depth, stacked, repeats, fresh_kept, n, tuples, read, kept, path_epoch,
            publication, structure, content, filters, clusters, joins, asked, truth, found, hits, matched, room, counts,
        )  # fmt: skip
        levels[L_FOUND, depth] = n
        too_much = tuples > MOST_TUPLES
    if reuse:
        withdraw(np.int64(0), n, mode == COUNT, shared, clusters, hits)
    counts[TUPLES] += tuples
    counts[READ] = read
    return too_much


@kernel(
    "int64(int64, int64, boolean, ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1],"
    " ro_i4[::1], ro_u1[::1], ro_u1[::1], ro_i4[::1], ro_b1[::1],"
    " ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i1[::1], ro_u8[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_f8[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1],"
    " ro_u1[::1], ro_i8[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1],"
    " ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[:, ::1], ro_i8[::1], ro_i8[::1], ro_i8[::1],"
    " ro_u8[::1], ro_i4[::1], b1[::1], i4[::1],"
    " i8[::1], i8[::1], i4[::1], i4[::1], i4[::1], i8[:, ::1], i4[:, ::1], i4[::1], i4[::1], i4[::1], i4[::1],"
    " f8[::1], i4[::1], i4[::1], i8[::1], i4[:, ::1], i8[::1], i8[::1], u8[::1], u8[::1],"
    " b1[::1], i8[::1], i4[::1])"
)
def match_documents(
    mode, first, reuse, offsets, names, depths, ends, attribute_begin, attribute_names, attribute_start,
    attribute_length, data, arena, translation, is_tag,
    row_equal, row_least, cells, position_row, end_begin, end_row,
    distance_begin, distance_slots, distance_keys, distance_row,
    asks, filter_steps, filter_keys, filter_slots, filter_exists, limits, limit_begin, limit_predicate,
    text_keys, text_slots, text_predicate, unlike_begin, unlike_text, unlike_predicate,
    literals, literal_begin, literal_hashes, literal_slots,
    member_begin, members, other_begin, others, path_entry, length_entries, length_ends,
    use_begin, use_entry, chain_begin, chain, use_part, branch_part, branch_full,
    skip, links, decided, positions,
    counts, truth, found, hits, matched, levels, kept, kept_tag, kept_occurrence, kept_depth, path,
    numbers, texts, binding_slots, binding_stamps, bindings, binding_parts, binding_count, marks, summary,
    over, out_offsets, out,
):  # fmt: skip
    """Match the documents from `first` on; the first that is not done, with the reason in `counts[WHY]`."""
    structure = (
        (row_equal, row_least, cells), position_row,
        (distance_begin, distance_slots, distance_keys, distance_row), (end_begin, end_row),
    )  # fmt: skip
    tests = (
        filter_keys, filter_slots, filter_exists, limits, limit_begin, limit_predicate,
        text_keys, text_slots, text_predicate, unlike_begin, unlike_text, unlike_predicate,
    )  # fmt: skip
    clusters = (member_begin, members, other_begin, others, path_entry)
    joins = (use_begin, use_entry, chain_begin, chain, use_part, branch_part, branch_full)
    asked = (marks, summary, skip, links, decided, positions)
    room = (binding_slots, binding_stamps, bindings, binding_parts, binding_count)
    counts[WHY] = DONE
    document = first
    while document < len(offsets) - 1:
        begin, end = offsets[document], offsets[document + 1]
        written = counts[WRITTEN]
        if written + 64 * len(marks) + 8 > len(out):
            counts[WHY] = FULL_OUT
            break
        counts[STAMP] += 1
        binding_count[0] = 0
        zero = np.int64(attribute_begin[begin]) if end > begin else np.int64(0)
        if len(filter_keys) and end > begin:
            read_values(
                zero, attribute_begin[end], attribute_names, attribute_start, attribute_length,
                data, arena, translation, asks, literals, literal_begin, literal_hashes, literal_slots, numbers, texts,
            )  # fmt: skip
        over[document] = match_document(
            mode, reuse, begin, end, names, depths, ends, translation, is_tag, (length_entries, length_ends),
            levels, kept, (kept_tag, kept_occurrence, kept_depth), structure,
            (path, attribute_begin, attribute_names, translation, zero, numbers, texts),
            (asks, filter_steps, tests), clusters, joins, asked, truth, found, hits, matched, room, counts,
        )  # fmt: skip
        now_written = read_few_marks(marks, summary, out, written)
        if counts[WHY] != DONE:
            break
        counts[WRITTEN] = written if over[document] else now_written
        document += 1
        out_offsets[document] = counts[WRITTEN]
    return document
