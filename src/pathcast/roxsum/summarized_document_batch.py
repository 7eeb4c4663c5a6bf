"""Documents under ids, with their tree, extents and contents: the queries that all batches support.

Invariant: ids ascend, and `rows[k]` is the row of the document `ids[k]` in `contents`; extents are computed on
demand, and updated while documents are added and removed one by one.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from pyroaring import BitMap

from pathcast.documents import Entities, LabelPaths, Limits, Reader
from pathcast.errors import LimitError, PathcastError
from pathcast.kernels import Int32s, Int64s

from .markup_value_splitter import MAX_TOKEN_BYTES, MAX_TOKENS, Skeletons
from .summary_matching import bitmap_of
from .token_table_kernels import GIVEN_UP
from .tokenised_batch_contents import Contents

# Up to this many documents at a time are added to extents one by one; with more, extents are recomputed in bulk.
_FEW = 8
_LARGEST_ID = (1 << 32) - 1


class SummarizedDocuments:
    """Documents under ids."""

    def __init__(
        self, *, limits: Limits | None = None, entities: Entities = "refuse", skeletons: Skeletons | None = None
    ) -> None:
        self.limits = Limits.given(limits)
        self.entities: Entities = entities
        self.errors: dict[int, PathcastError] = {}
        self._ids: Int64s = np.empty(0, dtype=np.int64)
        self._rows: Int64s = np.empty(0, dtype=np.int64)
        self._next = 0
        self._share(Skeletons(LabelPaths()) if skeletons is None else skeletons)
        self._parts = [Contents.empty()]
        self._joins_later = False
        self._extents: dict[int, BitMap] | None = {}
        self._nodes: Int32s | None = None

    def _share(self, skeletons: Skeletons) -> None:
        self.skeletons = skeletons
        self._made_reader: Reader | None = None

    @property
    def _reader(self) -> Reader:
        """A reader with the names of the tree; most parts of a batch never need one."""
        if self._made_reader is None:
            self._made_reader = Reader(self.paths.names, self.limits, self.entities)
        return self._made_reader

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[int]:
        """The ids of the documents, ascending."""
        return iter(self._ids.tolist())

    def __contains__(self, id: object) -> bool:
        return isinstance(id, int) and self._place(id) is not None

    @property
    def ids(self) -> Int64s:
        """The ids of the documents, ascending."""
        return self._ids

    @property
    def rows(self) -> Int64s:
        """The row of each document in `contents`."""
        return self._rows

    @property
    def paths(self) -> LabelPaths:
        """The tree; it may hold label paths that no document of this batch has (see `nodes`)."""
        return self.skeletons.paths

    @property
    def contents(self) -> Contents:
        """The content of the documents."""
        if len(self._parts) > 1:
            self._parts = [Contents.joined(self._parts)]
        return self._parts[0]

    @property
    def extents(self) -> Mapping[int, BitMap]:
        """For each label path that ends a branch of some document, the ids of those documents."""
        if self._extents is None:
            contents = self.contents
            begin, ids = contents.extents(self._rows, self._ids.astype(np.uint32), len(self.paths))
            used = np.flatnonzero(np.diff(begin))
            edges = zip(used.tolist(), begin[used].tolist(), begin[used + 1].tolist(), strict=True)
            self._extents = {node: bitmap_of(ids[first:last]) for node, first, last in edges}
        return self._extents

    @property
    def nodes(self) -> Int32s:
        """The label paths of this batch's documents, ascending: those with extents, and all above them."""
        if self._nodes is None:
            self._nodes = self.paths.closed(self.contents.leaves_of(self._rows))
        return self._nodes

    @property
    def depth(self) -> int:
        """The number of names in the longest label path."""
        return self.paths.depth(self.nodes)

    @property
    def token_count(self) -> int:
        """The number of tokens in the documents."""
        begin = self.contents.token_begin
        return int((begin[self._rows + 1] - begin[self._rows]).sum())

    @property
    def size(self) -> int:
        """The bytes of all documents."""
        return int(self.contents.sizes[self._rows].sum())

    @property
    def summary_size(self) -> int:
        """The bytes of the summary alone: names, a parent and a name for each node, extents as Roaring writes them."""
        nodes = self.nodes
        names = sum(len(self.paths.names[name].encode()) + 1 for name in np.unique(self.paths.name_ids[nodes]).tolist())
        extents = 0
        for extent in self.extents.values():
            packed = extent.copy()
            packed.run_optimize()
            extents += len(packed.serialize())
        return names + 8 * len(nodes) + extents

    def summary(self) -> dict[tuple[str, ...], list[int]]:
        """The tree as plain values: label path → the documents of its extent; inner nodes have none."""
        extents = self.extents
        return {self.paths.labels(node): list(extents.get(node, ())) for node in self.nodes.tolist()}

    def document(self, id: int) -> bytes:
        """The original bytes of a document."""
        return self.documents([id])[0]

    def documents(self, ids: Iterable[int] | None = None) -> list[bytes]:
        """The original bytes of documents, by default of all, in the order of the ids."""
        rows = self._rows if ids is None else self._rows[[self._found(id) for id in ids]]
        return self.contents.documents(self.skeletons, rows)

    @property
    def next_id(self) -> int:
        """The id that the next document gets."""
        return self._next

    # Adding documents, and looking them up.

    def _fresh(self, count: int) -> Int64s:
        """The next ids."""
        first = self._next
        if first + count - 1 > _LARGEST_ID:
            raise LimitError(
                f"{count:,} more documents would exceed {_LARGEST_ID:,}, the largest document id; start a new batch"
            )
        return np.arange(first, first + count, dtype=np.int64)

    def _enter(self, contents: Contents, rows: Int64s, ids: Int64s) -> None:
        """Add contents; these rows get these ids."""
        if self._extents is not None and len(rows) <= _FEW:
            for row, id in zip(rows.tolist(), ids.tolist(), strict=True):
                for node in contents.leaves[contents.leaf_begin[row] : contents.leaf_begin[row + 1]].tolist():
                    self._extents.setdefault(node, BitMap()).add(id)
        else:
            self._extents = None
        base = sum(map(len, self._parts))
        self._parts = [part for part in self._parts if len(part)] + [contents]
        if not self._joins_later:
            self._join_parts()
        ascends = not len(self._ids) or not len(ids) or ids[0] > self._ids[-1]
        self._ids, self._rows = np.concatenate([self._ids, ids]), np.concatenate([self._rows, rows + base])
        if not ascends:
            order = np.argsort(self._ids)
            self._ids, self._rows = self._ids[order], self._rows[order]
        self._next = max(self._next, int(self._ids[-1]) + 1 if len(self._ids) else 0)
        self._nodes = None

    def _join_parts(self) -> None:
        """Join a part with the previous one once it is as large, so that no document is copied often."""
        while len(self._parts) > 1 and len(self._parts[-1]) >= len(self._parts[-2]):
            self._parts[-2:] = [Contents.joined(self._parts[-2:])]

    @contextmanager
    def _joined_at_once(self) -> Iterator[None]:
        """Add several parts, which are joined all together afterwards: each document is copied once."""
        before, self._joins_later = sum(map(len, self._parts)), True
        try:
            yield
        finally:
            self._joins_later = False
            ends = np.cumsum([len(part) for part in self._parts])
            known = int(np.searchsorted(ends, before, "right"))
            if len(self._parts) > known:
                self._parts[known:] = [Contents.joined(self._parts[known:])]
            self._join_parts()

    def _take(self, other: "SummarizedDocuments", rows: Int64s, ids: Int64s) -> None:
        """Add rows of another batch under these ids."""
        contents = other.contents
        if other.skeletons is self.skeletons:
            if len(self._parts) == 1 and self._parts[0] is contents:
                self._parts, base = [contents], 0
                self._extents, self._nodes = None, None
                all_ids, all_rows = np.concatenate([self._ids, ids]), np.concatenate([self._rows, rows + base])
                order = np.argsort(all_ids)
                self._ids, self._rows = all_ids[order], all_rows[order]
                self._next = max(self._next, int(self._ids[-1]) + 1 if len(self._ids) else 0)
                return
            if len(self) == 0:
                self._parts, self._rows, self._ids = [contents], rows, ids
                self._extents, self._nodes = None, None
                self._next = max(self._next, int(ids[-1]) + 1 if len(ids) else 0)
                return
            self._enter(contents.selected(rows), np.arange(len(rows)), ids)
            return
        self._enter(self._translated(other, contents.selected(rows)), np.arange(len(rows)), ids)

    def _translated(self, other: "SummarizedDocuments", contents: Contents) -> Contents:
        """Another batch's contents in the numbers of this one's tables."""
        used = np.zeros(len(other.skeletons), dtype=np.bool_)
        used[contents.tokens] = True
        nodes = other.paths.closed(contents.leaves)
        node_of = self.paths.absorb(other.paths, nodes)
        token_of = self.skeletons.absorb(other.skeletons, nodes, node_of, used)
        if np.any(token_of == GIVEN_UP):
            raise LimitError(
                f"the two batches together have more than {MAX_TOKENS:,} distinct tags, or more than "
                f"{MAX_TOKEN_BYTES:,} bytes of them; one batch cannot hold more; send the batches separately"
            )
        return contents.renumbered(token_of, node_of)

    def _check_same(self, other: "SummarizedDocuments", ids: Int64s) -> None:
        """Reject ids that refer to different documents."""
        mine, theirs = (batch._rows[np.searchsorted(batch._ids, ids)] for batch in (self, other))
        if self.contents is other.contents and np.array_equal(mine, theirs):
            return
        documents = self.contents.documents(self.skeletons, mine)
        others = other.contents.documents(other.skeletons, theirs)
        for id, one, another in zip(ids.tolist(), documents, others, strict=True):
            if one != another:
                raise ValueError(f"two different documents have the id {id}; combine such batches with extend")

    def _leaves(self, row: int) -> list[int]:
        """The leaves of the document in a row."""
        at = row
        for part in self._parts:
            if at < len(part):
                leaves: list[int] = part.leaves[part.leaf_begin[at] : part.leaf_begin[at + 1]].tolist()
                return leaves
            at -= len(part)
        raise IndexError(f"row {row} is out of range; the batch has {len(self)} documents, numbered from 0")

    def _place(self, id: int) -> int | None:
        place = int(np.searchsorted(self._ids, id))
        return place if place < len(self._ids) and int(self._ids[place]) == id else None

    def _found(self, id: int) -> int:
        place = self._place(id)
        if place is None:
            raise KeyError(f"unknown document id {id}; batch.ids lists the ids of the batch")
        return place
