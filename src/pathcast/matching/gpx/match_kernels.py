# mypy: allow-untyped-defs, allow-untyped-calls
"""Documents against the tables: publications, the predicates they satisfy, and the paths whose predicates all are.

For each path from the root to a leaf, and each choice of repeated tags to leave out, one publication (section 3.2):
its predicates are found (section 4.1, `tuple_kernels.py`), then its paths (section 4.2), in one of three ways.

- COUNT: a satisfied predicate adds one to the hits of every path that has it; then all paths are compared with their
  number of predicates.
- LAST, FIRST: paths are clustered by their last or first predicate on structure; the clusters of satisfied ones are
  gone through, and of each path the other predicates are looked up. No hits are counted (Fabret et al., SIGMOD 2001,
  whom the paper follows here).

With `reuse`, what a path shares with the one before is not evaluated again (section 4.1, last paragraph): predicates
are found when an element is met and withdrawn when it is left. A path's last predicate is the last of its predicates to
become true then, so under LAST an element looks at the clusters of its own predicates alone, and a match is known at
the start tag that completes it: that is the stream.

Publications double with each repetition of a tag in a path. Documents with a path of more than MOST_REPEATS, or with
more tuples than MOST_TUPLES in all, are left to another engine (`over`).
"""

import numpy as np

from ...kernels import kernel, part
from ..marks_kernels import LOW_SIX, ONE, SIX, mark_with_summary, read_few_marks
from .join_kernels import FULL, join_piece
from .predicate_kernels import DOCUMENT, STEPS, STEPS_ABOVE
from .tuple_kernels import (
    ATTRIBUTE_BITS,
    OCCURRENCE_BITS,
    STEPS_BITS,
    distance_row_of,
    filter_predicates,
    holds,
    read_values,
    row_predicates,
)

COUNT, LAST, FIRST = range(3)
MOST_REPEATS = 10
MOST_TUPLES = 1 << 24
# Why the kernel came back: all done, no room for matches, no room for bindings of a join.
DONE, FULL_OUT, FULL_JOIN = range(3)
# What `counts` holds: stamps that never repeat, results, and statistics.
(EPOCH, STAMP, WRITTEN, WHY, READ, WAITING, PUBLICATIONS, TUPLES, SATISFIED, CHECKED, COMPARED, COUNTS) = range(12)
# Rows of the arrays over the levels of a path and over kept elements.
L_STACKED, L_FOUND, L_REPEATS, L_ROWS = range(4)
K_TAG, K_DEPTH, K_LAST, K_ROWS = range(4)


@part
def has(bits, number):
    """Whether a number is in a set of bits."""
    place = np.uint64(number)
    return bits[place >> SIX] >> (place & LOW_SIX) & ONE


@part
def accept(entry, marks, summary, skip, links, decided, positions, read, counts):
    """Take an entry that matches: once, and only if it is asked for."""
    if has(marks, entry) or (len(skip) and has(skip, entry)):
        return
    if len(links) and links[entry] >= 0:
        if decided[links[entry]]:
            return
        decided[links[entry]] = True
        counts[WAITING] -= 1
    mark_with_summary(marks, summary, entry)
    if len(positions):
        positions[entry] = read


@part
def settled(entry, marks, skip, links, decided):
    """Whether nobody waits for an entry (any more)."""
    if has(marks, entry) or (len(skip) and has(skip, entry)):
        return True
    return len(links) > 0 and links[entry] >= 0 and decided[links[entry]]


@kernel(
    "int64(int64, int64, boolean, ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1],"
    " ro_i4[::1], ro_u1[::1], ro_u1[::1], ro_i4[::1], ro_b1[::1],"
    " ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i1[::1], ro_u8[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_f8[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_u1[::1], ro_i8[::1], ro_i8[::1], ro_i4[::1],"
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
    text_keys, text_slots, text_predicate, literals, literal_begin, literal_hashes, literal_slots,
    member_begin, members, other_begin, others, path_entry, length_entries, length_ends,
    use_begin, use_entry, chain_begin, chain, use_part, branch_part, branch_full,
    skip, links, decided, positions,
    counts, truth, found, hits, matched, levels, kept, kept_tag, kept_occurrence, kept_depth, path,
    numbers, texts, binding_slots, binding_stamps, bindings, binding_parts, join_state, marks, summary,
    over, out_offsets, out,
):  # fmt: skip
    """Match the documents from `first` on; the first that is not done, with the reason in `counts[WHY]`.

    Under COUNT the paths with predicate `p` are `members[member_begin[p] : member_begin[p + 1]]`, and `others` has how
    many predicates each path has. Under LAST and FIRST paths are numbered by clusters: those of predicate `p` are
    `member_begin[p]` up to `member_begin[p + 1]`, and `others[other_begin[i] : other_begin[i + 1]]` has what else path
    `i` asks for.
    """
    stream = len(positions) > 0
    predicates, paths = np.int64(len(member_begin) - 1), np.int64(len(path_entry))
    has_filters, has_ends = len(filter_keys) > 0, len(end_row) > 0
    epoch = counts[EPOCH]
    counts[WHY] = DONE
    document = first
    while document < len(offsets) - 1 and counts[WHY] == DONE:
        begin, end = offsets[document], offsets[document + 1]
        written = counts[WRITTEN]
        if written + 64 * len(marks) + 8 > len(out):
            counts[WHY] = FULL_OUT
            break
        counts[STAMP] += 1
        epoch += 1
        path_epoch = epoch
        join_state[0] = 0
        if has_filters and end > begin:
            read_values(
                attribute_begin[begin], attribute_begin[end], attribute_names, attribute_start, attribute_length,
                data, arena, translation, asks, literals, literal_begin, literal_hashes, literal_slots, numbers, texts,
            )  # fmt: skip
        n, longest, tuples, lengths_done = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        too_much = False
        for row in range(L_ROWS):
            levels[row, 0] = 0
        read = np.int64(0)
        for element in range(begin, end):
            if too_much or counts[WHY] != DONE or (len(links) and counts[WAITING] == 0):
                break
            read = element - begin + 1
            depth = np.int64(depths[element])
            # Leave the elements that are closed, and step onto this one.
            if reuse:
                kept_found = levels[L_FOUND, depth - 1]
                for k in range(kept_found, n):
                    predicate = found[k]
                    truth[predicate] = 0
                    if mode == COUNT:
                        for at in range(member_begin[predicate], member_begin[predicate + 1]):
                            hits[members[at]] -= 1
                n = kept_found
            stacked, repeats = levels[L_STACKED, depth - 1], levels[L_REPEATS, depth - 1]
            fresh_kept = stacked
            tag = translation[names[element]]
            if 0 <= tag < len(is_tag) and is_tag[tag]:
                for k in range(stacked):
                    if kept[K_TAG, k] == tag:
                        repeats += 1
                        break
                kept[K_TAG, stacked], kept[K_DEPTH, stacked] = tag, depth
                stacked += 1
            levels[L_STACKED, depth], levels[L_REPEATS, depth] = stacked, repeats
            levels[L_FOUND, depth] = n
            path[depth] = element
            if depth > longest:
                longest = depth
                upto = length_ends[min(depth, len(length_ends) - 1)]
                for at in range(lengths_done, upto):
                    accept(length_entries[at], marks, summary, skip, links, decided, positions, read, counts)
                lengths_done = upto
            leaf = ends[element] == element + 1
            steady = reuse and repeats == 0
            too_much = repeats > MOST_REPEATS or tuples + stacked * (stacked + 1) > MOST_TUPLES
            if too_much or not (leaf or steady or stream):
                continue
            # Which elements are not the last with their tag.
            for k in range(stacked):
                kept[K_LAST, k] = 1
                if repeats:
                    for later in range(k + 1, stacked):
                        if kept[K_TAG, later] == kept[K_TAG, k]:
                            kept[K_LAST, k] = 0
                            break
            for left_out in range(np.int64(1) << repeats):
                # The publication without the repetitions that `left_out` has a bit for.
                count, bit = np.int64(0), np.int64(1)
                for k in range(stacked):
                    if kept[K_LAST, k] == 0:
                        out_now = left_out & bit
                        bit <<= 1
                        if out_now:
                            continue
                    seen = 1
                    if repeats:
                        for before in range(count):
                            if kept_tag[before] == kept[K_TAG, k]:
                                seen += 1
                    kept_tag[count], kept_depth[count] = kept[K_TAG, k], kept[K_DEPTH, k]
                    kept_occurrence[count] = seen
                    count += 1
                if steady:
                    base, hit_base, this_epoch, fresh, from_kept = np.int64(0), np.int64(0), path_epoch, n, fresh_kept
                else:
                    epoch += 1
                    base, hit_base, this_epoch, from_kept = predicates, paths, epoch, np.int64(0)
                    fresh = predicates
                now = fresh
                # Its tuples, and what they satisfy.
                for second in range(from_kept, count):
                    tag = np.int64(kept_tag[second])
                    occurrence, at_depth = np.int64(kept_occurrence[second]), np.int64(kept_depth[second])
                    if occurrence == 1 and position_row[tag] >= 0:
                        now = row_predicates(
                            position_row[tag], at_depth, row_equal, row_least, cells,
                            truth, base, this_epoch, found, now,
                        )  # fmt: skip
                    key = tag << 2 * OCCURRENCE_BITS | occurrence
                    for before in range(second):
                        row = distance_row_of(
                            np.int64(kept_tag[before]), key | np.int64(kept_occurrence[before]) << OCCURRENCE_BITS,
                            distance_begin, distance_slots, distance_keys, distance_row,
                        )  # fmt: skip
                        if row >= 0:
                            now = row_predicates(
                                row, at_depth - kept_depth[before], row_equal, row_least, cells,
                                truth, base, this_epoch, found, now,
                            )  # fmt: skip
                if has_filters:
                    # The attributes of each level, as seen from the document (-1) and from each tag that asks for it.
                    zero = attribute_begin[begin]
                    for seen_from in range(-1, count):
                        tag, occurrence, from_depth = np.int64(DOCUMENT), np.int64(1), np.int64(0)
                        wanted = filter_steps[len(filter_steps) - 1]
                        if seen_from >= 0:
                            tag, occurrence = np.int64(kept_tag[seen_from]), np.int64(kept_occurrence[seen_from])
                            from_depth = np.int64(kept_depth[seen_from])
                            wanted = filter_steps[tag]
                        if wanted == 0:
                            continue
                        highest = np.int64(1)
                        if steady and seen_from < from_kept:
                            highest = depth  # what is above was seen when it was met
                        elif from_depth > STEPS_ABOVE:
                            highest = from_depth - STEPS_ABOVE
                        lowest = min(depth, from_depth + STEPS - STEPS_ABOVE - 1)
                        for level in range(highest, lowest + 1):
                            steps = level - from_depth + STEPS_ABOVE
                            if not wanted >> np.uint64(steps) & ONE:
                                continue
                            holder = path[level]
                            key = (tag << OCCURRENCE_BITS | occurrence) << STEPS_BITS | steps
                            for at in range(attribute_begin[holder], attribute_begin[holder + 1]):
                                name = np.int64(translation[attribute_names[at]])
                                if 0 <= name < len(asks) and asks[name]:
                                    now = filter_predicates(
                                        key << ATTRIBUTE_BITS | name,
                                        numbers[at - zero], texts[at - zero],
                                        filter_keys, filter_slots, filter_exists,
                                        limits, limit_begin, limit_predicate, text_keys, text_slots, text_predicate,
                                        truth, base, this_epoch, found, now,
                                    )  # fmt: skip
                tuples += (count - from_kept) * (count + 1)
                if has_ends:
                    for k in range(count):
                        tag, below = np.int64(kept_tag[k]), depth - kept_depth[k]
                        at = end_begin[tag] + kept_occurrence[k] - 1
                        if below > 0 and at < end_begin[tag + 1] and end_row[at] >= 0:
                            least, limit = row_least[end_row[at]], row_equal[end_row[at] + 1]
                            for cell in range(least + below - 1 if steady else least, min(limit, least + below)):
                                if cells[cell] >= 0:
                                    now = holds(cells[cell], truth, base, this_epoch, found, now)
                counts[PUBLICATIONS] += 1
                counts[SATISFIED] += now - fresh
                # Its paths.
                n_matched, checked = np.int64(0), np.int64(0)
                if mode == COUNT:
                    for k in range(fresh, now):
                        predicate = found[k]
                        checked += member_begin[predicate + 1] - member_begin[predicate]
                        for at in range(member_begin[predicate], member_begin[predicate + 1]):
                            hits[hit_base + members[at]] += 1
                    if leaf:
                        counts[COMPARED] += paths
                        for p in range(paths):
                            if hits[hit_base + p] == others[p]:
                                matched[n_matched] = p
                                n_matched += 1
                            if not steady:
                                hits[hit_base + p] = 0
                elif mode == LAST or leaf:
                    # The whole path's predicates count where their clusters are complete at its end only.
                    for k in range(0 if steady and mode == FIRST else fresh, now):
                        predicate = found[k]
                        for p in range(member_begin[predicate], member_begin[predicate + 1]):
                            entry = path_entry[p]
                            if entry >= 0 and settled(entry, marks, skip, links, decided):
                                continue
                            checked += 1
                            at, stop = other_begin[p], other_begin[p + 1]
                            while at < stop and truth[base + others[at]] == this_epoch:
                                at += 1
                            if at == stop:
                                matched[n_matched] = p
                                n_matched += 1
                counts[CHECKED] += checked
                if steady:
                    n = now
                    levels[L_FOUND, depth] = n
                # What became of them.
                for k in range(n_matched):
                    entry = path_entry[matched[k]]
                    if entry >= 0:
                        accept(entry, marks, summary, skip, links, decided, positions, read, counts)
                        continue
                    for use in range(use_begin[-1 - entry], use_begin[-entry]):
                        whole = use_entry[use]
                        if settled(whole, marks, skip, links, decided):
                            continue
                        joined = join_piece(
                            use, chain_begin, chain, use_part, branch_part, branch_full,
                            kept_tag, kept_occurrence, kept_depth, count, path,
                            counts[STAMP], binding_slots, binding_stamps, bindings, binding_parts, join_state,
                        )  # fmt: skip
                        if joined == FULL:
                            counts[WHY] = FULL_JOIN
                        elif joined == 1:
                            accept(whole, marks, summary, skip, links, decided, positions, read, counts)
                too_much = tuples > MOST_TUPLES
                if too_much or counts[WHY] != DONE:
                    break
        if reuse and mode == COUNT:
            for k in range(n):
                for at in range(member_begin[found[k]], member_begin[found[k] + 1]):
                    hits[members[at]] -= 1
        counts[TUPLES] += tuples
        counts[READ] = read
        now_written = read_few_marks(marks, summary, out, written)
        if counts[WHY] != DONE:
            break
        over[document] = too_much
        counts[WRITTEN] = written if too_much else now_written
        document += 1
        out_offsets[document] = counts[WRITTEN]
    counts[EPOCH] = epoch
    return document
