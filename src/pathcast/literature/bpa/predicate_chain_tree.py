"""Predicate chains: paths as sequences of predicates on the positions of tags, and the tree of their shared prefixes.

Hou & Jacobsen, "Predicate-based filtering of XPath expressions", ICDE 2006 (the GPX paper's `basic-pc-ap`; its §2 and
§3.1 describe the encoding). A predicate relates the positions of two tags in a document path, root to leaf:

    /a/*/b      (document, a) = 1, (a, b) = 2           a path from the root fixes the first tag's position
    a//b/c      (a, b) ≥ 1, (b, c) = 1                  a relative one does not, if another predicate follows
    /a/b/*      (document, a) = 1, (a, b) = 1, (b, end) ≥ 1
    /*/*        length ≥ 2                              kept apart: only the longest path counts

The document has position 0, the end of the path that of its leaf. Different paths have different chains.

Prefix covering: chains with a common prefix share the nodes of a tree, so that the prefix is tested once, and a path
that is a prefix of a longer one is found on the way. Access predicates: the children of the root are indexed by their
predicate, and a subtree is entered only if a document path satisfies it.

Invariant: the children of a node are contiguous, and so are the chains of an access predicate.
Cost: 24 bytes per node; some 2 s to build a million paths.
"""

from typing import Any

import numpy as np

from pathcast.kernels import AnyArray, Bools, Int32s, Int64s
from pathcast.matching.table import Trie, flat

from ..yfilter.postponed_selection_kernels import Queries
from .document_matching_kernels import (
    C_BEGIN,
    C_COLUMNS,
    C_END,
    C_ENTRY,
    C_PREDICATE,
    C_TASKS,
    C_TASKS_END,
    DOCUMENT_TAG,
    END_TAG,
    TAG_BITS,
    BareTasks,
    BpaTables,
    Chains,
    LengthTable,
    PairIndex,
)
from .tag_pair_predicate_kernels import index_pairs, link_tags

NONE = -1
# The name with id k is tag k + 2.
_EXACT, _AT_LEAST = 0, 1
Arrays = dict[str, AnyArray]
# A predicate as one number: first tag, second tag, operator, distance.
_DISTANCE_BITS = 14


def kernel_tables(arrays: Arrays) -> BpaTables:
    """The tables in the form that the kernel reads."""
    return BpaTables(
        chains=Chains(arrays["chains"], arrays["access_begin"], arrays["task_kind"], arrays["task_number"]),
        pairs=PairIndex(arrays["pair_keys"], arrays["pair_slots"], arrays["pair_rows"], arrays["distances"]),
        lengths=LengthTable(arrays["length_needed"], arrays["length_entry"]),
        bare=BareTasks(arrays["bare_needed"], arrays["bare_kind"], arrays["bare_number"]),
        queries=Queries(arrays["query_begin"], arrays["query_entry"], arrays["steps"]),
    )


def build_chains(trie: Trie, paths: list[tuple[int, ...]], tasks: list[tuple[int, int]]) -> Arrays:
    """The tree of chains, the index of predicates, and the paths that only demand a length."""
    own = Trie.restore({name: column.copy() for name, column in trie.arrays().items()})
    ends = own.insert(*flat(paths))
    count = own.count
    step, entry = own.step[:count], own.entry[:count]
    above, gap = np.zeros((2, count), dtype=np.int32)
    deep = np.zeros(count, dtype=np.bool_)
    link_tags(own.parent, own.step, count, above, gap, deep)
    asked = entry >= 0
    asked[ends] = True
    named = step > 1
    # The nodes of the tree: those with a tag, and those that end in wildcards and are the end of a path.
    wild = asked & ~named & (above > 0)
    inner = np.flatnonzero(named | wild)
    keys = _keys(inner, step, above, gap, deep, wild)
    # A relative path: its first tag's position matters only if nothing follows.
    free = named & (above == 0) & deep & (gap == 1)
    kept = ~free[inner] | asked[inner]
    inner, keys = inner[kept], keys[kept]
    parent = np.where(free[above[inner]], 0, above[inner])
    predicates, predicate = np.unique(keys, return_inverse=True)
    order = np.lexsort((predicate, parent))
    inner, parent, predicate = inner[order], parent[order], predicate[order].astype(np.int32)
    number = np.zeros(count, dtype=np.int32)
    number[inner] = 1 + np.arange(len(inner), dtype=np.int32)
    chains = np.zeros((len(inner) + 1, C_COLUMNS), dtype=np.int32)
    chains[0, [C_PREDICATE, C_ENTRY]] = NONE
    chains[1:, C_PREDICATE], chains[1:, C_ENTRY] = predicate, entry[inner]
    chains[0, C_ENTRY] = entry[0]
    begin = np.flatnonzero(np.concatenate([[True], parent[1:] != parent[:-1]])) if len(parent) else parent
    chains[number[parent[begin]], C_BEGIN] = begin + 1
    chains[number[parent[begin]], C_END] = np.append(begin[1:], len(parent))[: len(begin)] + 1
    top = predicate[: chains[0, C_END] - chains[0, C_BEGIN]] if len(predicate) else predicate
    access_begin = 1 + np.searchsorted(top, np.arange(len(predicates) + 1)).astype(np.int32)
    arrays = {"chains": chains, "access_begin": access_begin}
    return arrays | _index(predicates) | _lengths(entry, gap, above, named) | _attach(chains, number, gap, ends, tasks)


def _keys(inner: Int64s, step: Int32s, above: Int32s, gap: Int32s, deep: Bools, wild: Any) -> Int64s:
    """The predicate of each node as a number."""
    first = np.where(above[inner] > 0, (step[above[inner]] >> 1) + 1, DOCUMENT_TAG).astype(np.int64)
    second = np.where(wild[inner], END_TAG, (step[inner] >> 1) + 1)
    operator = np.where(wild[inner] | deep[inner], _AT_LEAST, _EXACT)
    # All supported document paths are shorter than the largest distance, so larger ones may count as it.
    distance = np.minimum(gap[inner], (1 << _DISTANCE_BITS) - 1)
    return ((first << TAG_BITS | second) << 1 | operator) << _DISTANCE_BITS | distance


def _index(predicates: Int64s) -> Arrays:
    """For each pair of tags the predicates with `=` and with `≥`, by distance; and a hash table of the pairs."""
    pairs = predicates >> _DISTANCE_BITS + 1
    keys, begin = np.unique(pairs, return_index=True)
    exact_end = np.searchsorted(predicates, (keys << 1 | _AT_LEAST) << _DISTANCE_BITS)
    rows = np.stack([begin, exact_end, np.append(begin[1:], len(predicates))[: len(begin)]])
    size = 64
    while size < 2 * len(keys):
        size *= 2
    slots = np.full(size, NONE, dtype=np.int32)
    index_pairs(keys, slots)
    distances = (predicates & (1 << _DISTANCE_BITS) - 1).astype(np.int32)
    return {"pair_keys": keys, "pair_slots": slots, "pair_rows": rows.astype(np.int32), "distances": distances}


def _lengths(entry: Int32s, gap: Int32s, above: Int32s, named: Bools) -> Arrays:
    """The plain paths of wildcards alone, by length."""
    found = np.flatnonzero((entry >= 0) & ~named & (above == 0) & (gap > 0))
    found = found[np.argsort(gap[found], kind="stable")]
    return {"length_needed": gap[found], "length_entry": entry[found]}


def _attach(chains: Int32s, number: Int32s, gap: Int32s, ends: Int32s, tasks: list[tuple[int, int]]) -> Arrays:
    """Attach the tasks of paths to their chains; those of paths without a tag name are kept separately, by length."""
    places = number[ends]
    bare = places == 0
    found = np.array(tasks, dtype=np.int32).reshape(-1, 2)
    order = np.flatnonzero(~bare)[np.argsort(places[~bare], kind="stable")]
    at, begin = np.unique(places[order], return_index=True)
    chains[at, C_TASKS] = begin
    chains[at, C_TASKS_END] = np.append(begin[1:], len(order))[: len(begin)]
    apart = np.flatnonzero(bare)
    apart = apart[np.argsort(gap[ends[apart]], kind="stable")]
    return {
        "task_kind": found[order, 0].copy(),
        "task_number": found[order, 1].copy(),
        "bare_needed": gap[ends[apart]],
        "bare_kind": found[apart, 0].copy(),
        "bare_number": found[apart, 1].copy(),
    }
