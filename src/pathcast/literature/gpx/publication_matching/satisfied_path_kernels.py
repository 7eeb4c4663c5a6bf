# mypy: allow-untyped-defs, allow-untyped-calls
"""Subscription matching (section 4.2): the paths whose predicates are all satisfied, and their entries.

- COUNT: a satisfied predicate adds one to the hits of every path that has it; then all paths are compared with their
  number of predicates.
- LAST, FIRST: paths are clustered by their last or first predicate on structure; the clusters of satisfied ones are
  searched, and the other predicates of each path are looked up. No hits are counted (Fabret et al., SIGMOD 2001, whom
  the paper follows here).

Under COUNT the paths with predicate `p` are `members[member_begins[p] : member_begins[p + 1]]`, and `others` has the
number of predicates of each path. Under LAST and FIRST paths are numbered by clusters: those of predicate `p` are
`member_begins[p]` up to `member_begins[p + 1]`, and `others[other_begins[i] : other_begins[i + 1]]` has the other
predicates of path `i`.

An entry is accepted once, and only if it is `Wanted`.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Bools, Int32s, Int64s, UInt64s, Writable, part
from pathcast.matching.arrays.bitset_kernels import LOW_SIX, ONE, SIX, mark_with_summary

from ...streaming.pattern_binding_table_kernels import FULL
from ..branch_join_kernels import join_piece

COUNT, LAST, FIRST = range(3)
# Why the kernel returned: all done, no room for matches, no room for bindings of a join.
DONE, FULL_OUT, FULL_JOIN = range(3)
# The fields of `counts`: stamps that never repeat, results, and statistics.
(EPOCH, STAMP, WRITTEN, WHY, READ, WAITING, PUBLICATIONS, TUPLES, SATISFIED, CHECKED, COMPARED, COUNTS) = range(12)


class Clusters(NamedTuple):
    """The paths behind each predicate, and their entries; see above."""

    member_begins: Int64s
    members: Int32s
    other_begins: Int64s
    others: Int32s
    entries: Int32s


class Lengths(NamedTuple):
    """The patterns of `*` alone, by length: a path of length `n` satisfies the first `ends[n]`."""

    entries: Int32s
    ends: Int64s


class Wanted(NamedTuple):
    """The entries that a document is matched against, and those it has matched.

    `marks` and `summary` are the accepted entries, `skip` those to skip. `links` has the link of each entry, `decided`
    the links with an accepted entry, `positions` when a stream accepted each entry. The last four may be empty.
    """

    marks: Writable[UInt64s]
    summary: Writable[UInt64s]
    skip: UInt64s
    links: Int32s
    decided: Writable[Bools]
    positions: Writable[Int32s]


@part
def has(bits, number):
    """Whether a number is in a set of bits."""
    place = np.uint64(number)
    return bits[place >> SIX] >> (place & LOW_SIX) & ONE


@part
def accept(entry, wanted, read, counts):
    """Accept an entry that matches: once, and only if it is wanted."""
    marks, summary, skip, links, decided, positions = wanted
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
def settled(entry, wanted):
    """Whether an entry is skipped, accepted, or belongs to a decided link."""
    marks, _, skip, links, decided, _ = wanted
    if has(marks, entry) or (len(skip) and has(skip, entry)):
        return True
    return len(links) > 0 and links[entry] >= 0 and decided[links[entry]]


@part
def accept_lengths(first, depth, lengths, wanted, read, counts):
    """Accept the patterns of `*` alone that a path of this length satisfies, from the `first` on; return how many."""
    upto = lengths.ends[min(depth, len(lengths.ends) - 1)]
    for at in range(first, upto):
        accept(lengths.entries[at], wanted, read, counts)
    return upto


@part
def withdraw(first, n, counting, satisfied, clusters, hits):
    """Withdraw the predicates from the `first` on, since their elements have ended."""
    epochs, base, _, found = satisfied
    begins, members = clusters.member_begins, clusters.members
    for k in range(first, n):
        predicate = found[k]
        epochs[base + predicate] = 0
        if counting:
            for at in range(begins[predicate], begins[predicate + 1]):
                hits[members[at]] -= 1
    return first


@part
def count_hits(fresh, now, satisfied, hit_base, clusters, scratch):
    """Add one to the hits of every path that has one of the predicates from `fresh` up to `now`."""
    begins, members, hits = clusters.member_begins, clusters.members, scratch.hits
    for k in range(fresh, now):
        predicate = satisfied.found[k]
        scratch.counts[CHECKED] += begins[predicate + 1] - begins[predicate]
        for at in range(begins[predicate], begins[predicate + 1]):
            hits[hit_base + members[at]] += 1


@part
def compare_hits(hit_base, wipe, clusters, scratch):
    """The paths with as many hits as predicates; `wipe`: the hits are this publication's own."""
    others, hits, matched = clusters.others, scratch.hits, scratch.matched
    n_matched = np.int64(0)
    scratch.counts[COMPARED] += len(others)
    for path in range(len(others)):
        if hits[hit_base + path] == others[path]:
            matched[n_matched] = path
            n_matched += 1
        if wipe:
            hits[hit_base + path] = 0
    return n_matched


@part
def check_clusters(first, now, satisfied, clusters, wanted, scratch):
    """The paths in the clusters of the predicates from `first` up to `now` whose other predicates hold, too."""
    epochs, base, epoch, found = satisfied
    begins, _, other_begins, others, entries = clusters
    matched = scratch.matched
    n_matched, checked = np.int64(0), np.int64(0)
    for k in range(first, now):
        predicate = found[k]
        for path in range(begins[predicate], begins[predicate + 1]):
            entry = entries[path]
            if entry >= 0 and settled(entry, wanted):
                continue
            checked += 1
            at, stop = other_begins[path], other_begins[path + 1]
            while at < stop and epochs[base + others[at]] == epoch:
                at += 1
            if at == stop:
                matched[n_matched] = path
                n_matched += 1
    scratch.counts[CHECKED] += checked
    return n_matched


@part
def take_matched(n_matched, count, read, index, wanted, scratch):
    """Accept the entries of the matched paths; pieces go into the join of their patterns."""
    joins, counts = index.joins, scratch.counts
    for k in range(n_matched):
        entry = index.clusters.entries[scratch.matched[k]]
        if entry >= 0:
            accept(entry, wanted, read, counts)
            continue
        for use in range(joins.use_begins[-1 - entry], joins.use_begins[-entry]):
            whole = joins.use_entries[use]
            if settled(whole, wanted):
                continue
            joined = join_piece(use, joins, scratch.path, count, counts[STAMP], scratch.bindings)
            if joined == FULL:
                counts[WHY] = FULL_JOIN
            elif joined == 1:
                accept(whole, wanted, read, counts)
