"""Filtering: a matcher's patterns against all documents of a batch, in one pass over the summary.

    label paths ──as chains──▶ engine ──▶ entries of each path ──extents──▶ documents of each plain path
                                 │
                                 └─▶ demands of each tree pattern ──▶ candidates ──▶ verified on the documents

A label path, written as a document of one element in another, matches exactly the plain paths that every document with
it matches: so the engine runs over the summary's paths, once, and not over the documents. Plain paths need no more.

Extents do not decide patterns with predicates: for `/a/b[c][d]`, a document may be in the extents of `/a/b/c` and of
`/a/b/d` while its `c` and `d` are under different `b`. Documents that have every path that such a pattern demands are
its candidates; they are restored, read, and matched as documents.

Invariant: matches are those of matching each document alone. A document that would cost the engine too much is in
`errors` and matches nothing.
Cost: the engine's time for the summary's paths; for ids a mark per match; for targets an OR of bitmaps per path and
target.
"""

from array import array
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from pyroaring import BitMap

from pathcast.documents import DocumentBatch, LabelPaths, Reader
from pathcast.errors import MessageError, PathcastError
from pathcast.kernels import AnyArray, Int32s, Int64s
from pathcast.matching import Matcher, View
from pathcast.matching.results import SubscriberRows
from pathcast.store import offsets_of

from .broker_routing_table import Target, Targets
from .label_path_extent_kernels import Leaves, Marks, PathEntries, collect_entries, keep_own
from .required_paths import Demands
from .token_table_kernels import NONE
from .tokenised_batch_contents import with_rows_replaced

if TYPE_CHECKING:
    from .summary import RoXSum

_demands: "WeakKeyDictionary[Matcher, Demands]" = WeakKeyDictionary()
# Documents are verified in groups of up to this many bytes.
_GROUP_BYTES = 8 << 20
# Label paths of more than this total length are not worth a separate pass where documents have fewer tokens.
_WORTHWHILE = 1 << 20


def chains(paths: LabelPaths, nodes: Int32s) -> DocumentBatch:
    """Label paths as documents: each of the nodes with its ancestors, one inside the other."""
    parents = paths.parents
    depths = np.zeros(len(nodes), dtype=np.int64)
    current = nodes.copy()
    levels: list[tuple[Int64s, Int32s]] = []
    while True:
        alive = np.flatnonzero(current != NONE)
        if not len(alive):
            break
        levels.append((alive, current[alive]))
        depths[alive] += 1
        current[alive] = parents[current[alive]]
    offsets = offsets_of(depths)
    count = int(offsets[-1])
    elements = np.empty(count, dtype=np.int32)
    for up, (alive, there) in enumerate(levels):
        elements[offsets[alive + 1] - 1 - up] = there
    depth = (np.arange(count) - np.repeat(offsets[:-1], depths) + 1).astype(np.int32)
    nothing, no_bytes = np.zeros(count + 1, dtype=np.int32), np.empty(0, dtype=np.uint8)
    return DocumentBatch(
        data=no_bytes,
        data_offsets=np.zeros(len(nodes) + 1, dtype=np.int64),
        offsets=offsets,
        name=paths.name_ids[elements],
        parent=np.where(depth == 1, np.int32(NONE), np.arange(count, dtype=np.int32) - 1).astype(np.int32),
        depth=depth,
        end=np.repeat(offsets[1:], depths).astype(np.int32),
        position=nothing[:count],
        attribute_begin=nothing,
        attribute_name=nothing[:0],
        attribute_start=np.empty(0, dtype=np.int64),
        attribute_length=nothing[:0],
        text_begin=nothing[:count],
        text_end=nothing[:count],
        text_parent=nothing[:0],
        text_start=np.empty(0, dtype=np.int64),
        text_length=nothing[:0],
        arena=no_bytes,
        known=paths.names,
        known_count=len(paths.names),
    )


class Filtering:
    """One batch and one matcher, with the matcher's subscriptions at the time of construction."""

    def __init__(self, batch: "RoXSum", matcher: Matcher) -> None:
        self.batch = batch
        self.errors: dict[int, PathcastError] = {}
        self.view = matcher.view()
        self.expansion = self.view.expansion
        self.demands = _demands_of(matcher, self.view)

    # The two queries.

    def ids(self) -> tuple[Int64s, Int32s]:
        """The subscriptions of each document, in the order of the batch's ids: offsets and ids."""
        batch = self.batch
        if not len(batch):
            return np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32)
        summarised = self._entries() if self._worthwhile() else None
        if summarised is None:
            return self._verified(np.arange(len(batch)))
        offsets, entries = summarised
        offsets, ids = self.expansion.ids_of_all(offsets, entries)
        candidates = np.searchsorted(batch.ids, numbers_of(self.candidates()))
        if not len(candidates):
            return offsets, ids
        return with_rows_replaced(offsets, ids, candidates, *self._verified(candidates))

    def documents(self, targets: Targets) -> dict[Target, BitMap]:
        """The documents of each target."""
        found: dict[Target, BitMap] = {target: BitMap() for target in targets}
        ids = self.batch.ids
        if not len(ids):
            return found
        summarised = self._by_subscriber() if self._worthwhile() else None
        if summarised is None:
            places = np.arange(len(ids))
        else:
            for name, documents in summarised.items():
                found[targets.of_name(name)] = documents
            places = np.searchsorted(ids, numbers_of(self._undecided(targets, found)))
        if len(places):
            for name, those in self._verified_by_subscriber(places).items():
                found[targets.of_name(name)] |= bitmap_of(ids[those])
        return found

    def candidates(self) -> BitMap:
        """The documents that some tree pattern in use might match, judged by extents alone."""
        return BitMap.union(BitMap(), *self._candidates_of_trees().values()) if len(self.batch) else BitMap()

    # The summary's part.

    def _worthwhile(self) -> bool:
        """Whether label paths are fewer than what the documents themselves have."""
        batch = self.batch
        steps = len(batch.nodes) * max(1, batch.depth)
        return steps <= max(_WORTHWHILE, batch.token_count)

    def _entries(self) -> tuple[Int64s, Int32s] | None:
        """The entries of plain paths that each document matches; None when the engine rejects the label paths."""
        batch = self.batch
        nodes = batch.nodes
        plain = self._plain(nodes)
        if plain is None:
            return None
        begin, entries = plain
        place = np.full(len(batch.paths) + 1, NONE, dtype=np.int32)
        place[nodes] = np.arange(len(nodes), dtype=np.int32)
        parents = place[batch.paths.parents[nodes]]
        own = np.empty(len(entries), dtype=np.bool_)
        keep_own(parents, begin, entries, np.zeros(self.view.size, dtype=np.int32), own)
        kept = offsets_of(own)[begin].astype(np.int64)
        entries = entries[own]
        contents = batch.contents
        leaves, found = Leaves(contents.leaf_begin, place[contents.leaves]), PathEntries(kept, entries)
        words = (self.view.size + 63 >> 6) + 1
        marks = Marks(np.zeros(words, dtype=np.uint64), np.zeros((words + 63 >> 6) + 1, dtype=np.uint64))
        offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        out = np.empty(16 * len(batch) + 1024, dtype=np.int32)
        stamps = np.zeros(len(nodes), dtype=np.int64)
        done = 0
        while True:
            done = collect_entries(batch.rows, leaves, parents, found, done, stamps, marks, offsets, out)
            if done == len(batch):
                return offsets, out[: offsets[-1]].copy()
            out = np.resize(out, 2 * len(out))

    def _plain(self, nodes: Int32s) -> tuple[Int64s, Int32s] | None:
        """The entries of plain paths that a document with each of the label paths matches.

        None when one of the paths, as a document, would cost the engine more than it allows.
        """
        paths = chains(self.batch.paths, nodes)
        offsets, entries = self.view.match_batch(paths)
        if paths.errors:
            return None
        if not len(self.demands.trees):
            return offsets, entries
        plain = ~self.demands.is_tree[entries]
        return offsets_of(plain)[offsets].astype(np.int64), entries[plain]

    def _by_subscriber(self) -> dict[str, BitMap] | None:
        """The documents of plain paths, by subscriber; None when the engine rejects the label paths."""
        extents = self.batch.extents
        leaves = np.array(sorted(extents), dtype=np.int32)
        plain = self._plain(leaves)
        if plain is None:
            return None
        return {
            name: BitMap.union(*(extents[leaf] for leaf in leaves[those].tolist()))
            for name, those in self._subscribers(*plain).items()
        }

    def _subscribers(self, offsets: Int64s, entries: Int32s) -> dict[str, Int64s]:
        """For each subscriber of the entries, the places of the lists with its entries, ascending."""
        rows = SubscriberRows(self.expansion)
        offsets, ranks = rows.of_all(offsets, entries)
        order = np.argsort(ranks, kind="stable")
        places, ranks = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[order], ranks[order]
        edges = np.flatnonzero(np.diff(ranks, prepend=-1, append=-1)).tolist()
        return {rows.names[int(ranks[first])]: places[first:last] for first, last in pairwise(edges)}

    # The part of patterns with predicates.

    def _candidates_of_trees(self) -> Mapping[int, BitMap]:
        """The candidates of each tree entry that has subscribers."""
        demands = self.demands
        each = np.arange(len(demands.trees) + 1, dtype=np.int64)
        offsets, _ = self.expansion.ids_of_all(each, np.array(demands.trees, dtype=np.int32))
        used = np.flatnonzero(np.diff(offsets)).tolist()
        if not used:
            return {}
        everything = bitmap_of(self.batch.ids)
        having: dict[int, BitMap] = {}
        if demands.matcher is not None:
            extents = self.batch.extents
            leaves = np.array(sorted(extents), dtype=np.int32)
            paths = chains(self.batch.paths, leaves)
            offsets, numbers = demands.matcher.match_batch(paths)
            if paths.errors:
                return {demands.trees[k]: everything for k in used}
            order = np.argsort(numbers, kind="stable")
            of_leaf, numbers = np.repeat(leaves, np.diff(offsets))[order], numbers[order]
            edges = np.flatnonzero(np.diff(numbers, prepend=0, append=0)).tolist()
            for first, last in pairwise(edges):
                having[int(numbers[first])] = BitMap.union(*(extents[leaf] for leaf in of_leaf[first:last].tolist()))
        nothing = BitMap()
        found: dict[int, BitMap] = {}
        for k in used:
            sets = [having.get(number, nothing) for number in demands.of_tree[k]]
            found[demands.trees[k]] = BitMap.intersection(*sets) if sets else everything
        return found

    def _undecided(self, targets: Targets, found: Mapping[Target, BitMap]) -> BitMap:
        """The candidates of tree patterns, except those that all targets of the pattern already receive."""
        undecided = BitMap()
        for entry, documents in self._candidates_of_trees().items():
            names = self.expansion.subscribers_of(np.array([entry], dtype=np.int32))
            undecided |= documents - BitMap.intersection(*(found[targets.of_name(name)] for name in names))
        return undecided

    def _verified(self, places: Int64s) -> tuple[Int64s, Int32s]:
        """The ids that documents (by their places in the batch) match, each matched as a document."""
        offsets, ids = [np.zeros(1, dtype=np.int64)], []
        for group, read in self._read(places):
            more_offsets, more = self.expansion.ids_of_all(*self.view.match_batch(read))
            self._note_errors(group, read)
            offsets.append(more_offsets[1:] + offsets[-1][-1])
            ids.append(more)
        return np.concatenate(offsets), np.concatenate([*ids, np.empty(0, dtype=np.int32)])

    def _verified_by_subscriber(self, places: Int64s) -> dict[str, Int64s]:
        """For each subscriber, the places in the batch of the documents that it receives."""
        offsets, entries = [np.zeros(1, dtype=np.int64)], []
        for group, read in self._read(places):
            more_offsets, more = self.view.match_batch(read)
            self._note_errors(group, read)
            offsets.append(more_offsets[1:] + offsets[-1][-1])
            entries.append(more)
        found = self._subscribers(np.concatenate(offsets), np.concatenate(entries))
        return {name: places[those] for name, those in found.items()}

    def _read(self, places: Int64s) -> Iterator[tuple[Int64s, DocumentBatch]]:
        """The documents at places of the batch, in groups, read."""
        batch = self.batch
        reader = Reader(self.view.table.names, batch.limits, batch.entities)
        sizes = np.cumsum(batch.contents.sizes[batch.rows[places]])
        for group in np.split(places, np.flatnonzero(np.diff(sizes // _GROUP_BYTES)) + 1):
            read = reader.read(batch.contents.readable(batch.skeletons, batch.rows[group]))
            if read.errors:
                raise MessageError(
                    f"cannot read document {min(read.errors)} of the batch again: {read.errors[min(read.errors)]}; "
                    "request the message again"
                )
            yield group, read

    def _note_errors(self, places: Int64s, read: DocumentBatch) -> None:
        """Keep the errors of documents that would cost the engine too much."""
        self.errors.update((int(self.batch.ids[places[index]]), error) for index, error in read.errors.items())


def _demands_of(matcher: Matcher, view: View) -> Demands:
    known = _demands.get(matcher)
    if known is None or not known.fit(view):
        known = _demands[matcher] = Demands(view)
    return known


def numbers_of(documents: BitMap) -> Int64s:
    """A set of ids as an array, ascending."""
    return np.frombuffer(documents.to_array(), dtype=np.uint32).astype(np.int64)


def bitmap_of(ids: AnyArray) -> BitMap:
    """A set of ids from an array."""
    return BitMap(array("I", ids.astype(np.uint32).tobytes()))
