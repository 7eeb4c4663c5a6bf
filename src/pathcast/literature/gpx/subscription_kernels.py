# mypy: allow-untyped-defs, allow-untyped-calls
"""Subscription matching (section 4.2): the paths all of whose predicates are satisfied, and what becomes of them.

- COUNT: a satisfied predicate adds one to the hits of every path that has it; then all paths are compared with their
  number of predicates.
- LAST, FIRST: paths are clustered by their last or first predicate on structure; the clusters of satisfied ones are
  gone through, and of each path the other predicates are looked up. No hits are counted (Fabret et al., SIGMOD 2001,
  whom the paper follows here).

Under COUNT the paths with predicate `p` are `members[member_begin[p] : member_begin[p + 1]]`, and `others` has how many
predicates each path has. Under LAST and FIRST paths are numbered by clusters: those of predicate `p` are
`member_begin[p]` up to `member_begin[p + 1]`, and `others[other_begin[i] : other_begin[i + 1]]` has what else path `i`
asks for.

An entry is taken once, and only if it is `asked` for: marks of those taken and their summary, entries to skip, the link
of each entry, which links are decided, and where positions of a stream go.
"""

import numpy as np

from pathcast.kernels import part
from pathcast.matching.arrays.bitset_kernels import LOW_SIX, ONE, SIX, mark_with_summary

from ..streaming.pattern_bindings_kernels import FULL
from .join_kernels import join_piece

COUNT, LAST, FIRST = range(3)
# Why the kernel came back: all done, no room for matches, no room for bindings of a join.
DONE, FULL_OUT, FULL_JOIN = range(3)
# What `counts` holds: stamps that never repeat, results, and statistics.
(EPOCH, STAMP, WRITTEN, WHY, READ, WAITING, PUBLICATIONS, TUPLES, SATISFIED, CHECKED, COMPARED, COUNTS) = range(12)


@part
def has(bits, number):
    """Whether a number is in a set of bits."""
    place = np.uint64(number)
    return bits[place >> SIX] >> (place & LOW_SIX) & ONE


@part
def accept(entry, asked, read, counts):
    """Take an entry that matches: once, and only if it is asked for."""
    marks, summary, skip, links, decided, positions = asked
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
def settled(entry, asked):
    """Whether nobody waits for an entry (any more)."""
    marks, _, skip, links, decided, _ = asked
    if has(marks, entry) or (len(skip) and has(skip, entry)):
        return True
    return len(links) > 0 and links[entry] >= 0 and decided[links[entry]]


@part
def accept_lengths(first, depth, lengths, asked, read, counts):
    """Take the patterns of `*` alone that a path of this length satisfies, from the `first` on; how many those are."""
    length_entries, length_ends = lengths
    upto = length_ends[min(depth, len(length_ends) - 1)]
    for at in range(first, upto):
        accept(length_entries[at], asked, read, counts)
    return upto


@part
def withdraw(first, n, counting, truths, clusters, hits):
    """The predicates from the `first` on hold no more, since their elements were left."""
    truth, base, _, found = truths
    member_begin, members = clusters[0], clusters[1]
    for k in range(first, n):
        predicate = found[k]
        truth[base + predicate] = 0
        if counting:
            for at in range(member_begin[predicate], member_begin[predicate + 1]):
                hits[members[at]] -= 1
    return first


@part
def count_hits(fresh, now, truths, hit_base, clusters, hits, counts):
    """Add one to the hits of every path that has one of the predicates from `fresh` up to `now`."""
    member_begin, members = clusters[0], clusters[1]
    found = truths[3]
    for k in range(fresh, now):
        predicate = found[k]
        counts[CHECKED] += member_begin[predicate + 1] - member_begin[predicate]
        for at in range(member_begin[predicate], member_begin[predicate + 1]):
            hits[hit_base + members[at]] += 1


@part
def compare_hits(hit_base, wipe, clusters, hits, matched, counts):
    """The paths with as many hits as predicates; `wipe`: the hits were this publication's own."""
    others = clusters[3]
    n_matched = np.int64(0)
    counts[COMPARED] += len(others)
    for path in range(len(others)):
        if hits[hit_base + path] == others[path]:
            matched[n_matched] = path
            n_matched += 1
        if wipe:
            hits[hit_base + path] = 0
    return n_matched


@part
def check_clusters(first, now, truths, clusters, asked, matched, counts):
    """The paths in the clusters of the predicates from `first` up to `now` whose other predicates hold, too."""
    truth, base, epoch, found = truths
    member_begin, _, other_begin, others, path_entry = clusters
    n_matched, checked = np.int64(0), np.int64(0)
    for k in range(first, now):
        predicate = found[k]
        for path in range(member_begin[predicate], member_begin[predicate + 1]):
            entry = path_entry[path]
            if entry >= 0 and settled(entry, asked):
                continue
            checked += 1
            at, stop = other_begin[path], other_begin[path + 1]
            while at < stop and truth[base + others[at]] == epoch:
                at += 1
            if at == stop:
                matched[n_matched] = path
                n_matched += 1
    counts[CHECKED] += checked
    return n_matched


@part
def take_matched(n_matched, matched, clusters, joins, publication, count, path, room, asked, read, counts):
    """Take the entries of the paths that matched; those that are pieces go into the join of their patterns."""
    path_entry, use_begin, use_entry = clusters[4], joins[0], joins[1]
    for k in range(n_matched):
        entry = path_entry[matched[k]]
        if entry >= 0:
            accept(entry, asked, read, counts)
            continue
        for use in range(use_begin[-1 - entry], use_begin[-entry]):
            whole = use_entry[use]
            if settled(whole, asked):
                continue
            joined = join_piece(use, joins, publication, count, path, counts[STAMP], room)
            if joined == FULL:
                counts[WHY] = FULL_JOIN
            elif joined == 1:
                accept(whole, asked, read, counts)
