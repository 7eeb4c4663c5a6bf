"""RoXSum: many documents as one structure that is matched, split and sent on without taking it apart.

    <bib><book><title/></book></bib>   0            (virtual root)
    <bib><book><title/></book>                       │
         <article/></bib>              1            bib
                                                     ├── book ── title   {0, 1}
                                                     └── article         {1}

The summary is a tree with one node per label path of the documents; the extent of a node holds the documents in which an
element with that path has no child elements. A document has a path exactly if it is in the extent of the path or of one
below it. Beside the summary lies what the documents hold besides (`contents.py`), so that each comes back byte for byte.

After Vagena, Moro and Tsotras: RoXSum (ICDE 2007). The paper's structure answers linear paths exactly; other patterns get
candidates from it and are verified on the document (`filtering.py`).

Invariant: an id, once given, means the same document for good, in parts and messages too; extents hold no other ids.
Cost: building some 10 µs a document of 1 KB; adding one document some 100 µs; parts of a batch share its memory.
Not done: a batch, and the batches that came of it, are for one thread at a time where one of them still grows.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from ..documents import Document, DocumentBatch, LabelPaths, Limits
from ..documents.batch import Int32s, Int64s
from ..documents.expat_reader import Entities
from ..documents.paths import ROOT
from ..documents.reader import Readable, Reader
from ..errors import LimitError, MessageError, PathcastError
from ..matching import Matcher
from .contents import Contents
from .filtering import Filtering, bitmap_of
from .limits import MessageLimits
from .skeleton_kernels import GIVEN_UP
from .skeletons import Skeletons
from .targets import Target, Targets

# Documents are read in groups of so many bytes.
_GROUP_BYTES = 16 << 20
# So many documents added one by one wait before they are joined with the rest.
_WAITING = 256
_LARGEST_ID = (1 << 32) - 1


class RoXSum:
    """A batch of documents as a summary, its extents, and the documents' contents."""

    def __init__(self, *, limits: Limits | None = None, entities: Entities = "refuse") -> None:
        self.limits = limits or Limits()
        self.entities: Entities = entities
        self.errors: dict[int, PathcastError] = {}
        self._ids: Int64s = np.empty(0, dtype=np.int64)
        self._rows: Int64s = np.empty(0, dtype=np.int64)
        self._next = 0
        self._share(Skeletons(LabelPaths()))
        self._parts = [Contents.empty()]
        self._extents: dict[int, BitMap] | None = {}
        self._nodes: Int32s | None = None

    def _share(self, skeletons: Skeletons) -> None:
        self.skeletons = skeletons
        self._reader = Reader(skeletons.paths.names, self.limits, self.entities)

    @classmethod
    def build(
        cls,
        documents: Iterable[Readable | Document] | DocumentBatch,
        *,
        limits: Limits | None = None,
        entities: Entities = "refuse",
        errors: Literal["raise", "return"] = "raise",
    ) -> "RoXSum":
        """A batch of documents, numbered 0, 1, 2, … in their order.

        With `errors="return"` unreadable documents are left out; their numbers are given to no other, and
        `batch.errors` holds why.
        """
        if errors not in ("raise", "return"):
            raise ValueError(f"errors={errors!r}: must be 'raise' or 'return'")
        batch = cls(limits=limits, entities=entities)
        for group in [documents] if isinstance(documents, DocumentBatch) else batch._groups(documents):
            if errors == "raise" and group.errors:
                raise group.errors[min(group.errors)]
            batch._append(group)
        return batch

    # What it holds.

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[int]:
        """The ids of the documents, ascending."""
        return iter(self._ids.tolist())

    def __contains__(self, id: object) -> bool:
        return isinstance(id, int) and self._place(id) is not None

    def __repr__(self) -> str:
        return f"<RoXSum: {len(self):,} documents, {len(self.nodes):,} label paths>"

    @property
    def ids(self) -> Int64s:
        """The ids of the documents, ascending."""
        return self._ids

    @property
    def rows(self) -> Int64s:
        """Where each document stands in `contents`."""
        return self._rows

    @property
    def paths(self) -> LabelPaths:
        """The tree; it may hold label paths that no document of this batch has (see `nodes`)."""
        return self.skeletons.paths

    @property
    def contents(self) -> Contents:
        """What the documents hold."""
        if len(self._parts) > 1:
            self._parts = [Contents.joined(self._parts)]
        return self._parts[0]

    @property
    def extents(self) -> Mapping[int, BitMap]:
        """For each label path that ends a branch of some document the ids of those documents."""
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
            parents = self.paths.parents
            used = np.zeros(len(parents), dtype=np.bool_)
            front = self.contents.leaves_of(self._rows)
            while len(front):
                used[front] = True
                front = np.unique(parents[front])
                front = front[front != ROOT]
                front = front[~used[front]]
            self._nodes = np.flatnonzero(used).astype(np.int32)
        return self._nodes

    @property
    def depth(self) -> int:
        """How many names the longest label path has."""
        levels, front = 0, self.nodes
        while len(front):
            levels += 1
            front = np.unique(self.paths.parents[front])
            front = front[front != ROOT]
        return levels

    @property
    def token_count(self) -> int:
        """How many tokens the documents have."""
        begin = self.contents.token_begin
        return int((begin[self._rows + 1] - begin[self._rows]).sum())

    @property
    def size(self) -> int:
        """The bytes of all documents."""
        return int(self.contents.sizes[self._rows].sum())

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

    # Changes.

    def add(self, document: Readable | Document) -> int:
        """Add one document; its id. `DocumentError` or `LimitError` when it can't be read."""
        batch = document.alone() if isinstance(document, Document) else self._reader.read([document])
        if batch.errors:
            raise batch.errors[0]
        return int(self._append(batch)[0])

    def remove(self, id: int) -> None:
        """Remove a document; `KeyError` when there is none with this id."""
        place = self._found(id)
        row = int(self._rows[place])
        if self._extents is not None:
            contents = self.contents
            for node in contents.leaves[contents.leaf_begin[row] : contents.leaf_begin[row + 1]].tolist():
                self._extents[node].discard(id)
                if not self._extents[node]:
                    del self._extents[node]
        self._ids, self._rows = np.delete(self._ids, place), np.delete(self._rows, place)
        self._nodes = None
        if 2 * len(self) + 16 < len(self.contents):
            self._compact()

    def extend(self, other: "RoXSum") -> Int64s:
        """Take in the documents of another batch, with new ids; those ids, in the order of the other's."""
        ids = self._fresh(len(other))
        self._take(other, other._rows, ids)
        return ids

    @classmethod
    def merge(cls, parts: Iterable["RoXSum"]) -> "RoXSum":
        """Parts of one batch as one again: documents keep their ids, and an id in several parts is one document.

        `ValueError` when two parts mean different documents by one id; batches that have nothing to do with each other
        are joined with `extend`.
        """
        merged = cls()
        for number, part in enumerate(parts):
            if number == 0:
                merged.limits, merged.entities = part.limits, part.entities
                merged._share(part.skeletons)
            both = np.isin(part._ids, merged._ids)
            merged._check_same(part, part._ids[both])
            merged._take(part, part._rows[~both], part._ids[~both])
            merged._next = max(merged._next, part._next)
        return merged

    # Matching and splitting.

    def match(self, matcher: Matcher) -> dict[int, npt.NDArray[np.int32]]:
        """The ids of the subscriptions that each document matches, ascending; documents without any are left out."""
        offsets, ids = self.match_all(matcher)
        edges = zip(self._ids.tolist(), offsets.tolist(), offsets[1:].tolist(), strict=False)
        return {id: ids[first:last] for id, first, last in edges if last > first}

    def match_all(self, matcher: Matcher) -> tuple[Int64s, Int32s]:
        """As `match`, as arrays: what the `k`-th of the ids matches is `found[offsets[k] : offsets[k + 1]]`."""
        return Filtering(self, matcher).ids()

    def candidates(self, matcher: Matcher) -> BitMap:
        """The documents that extents alone can't decide for some pattern with predicates."""
        return Filtering(self, matcher).candidates()

    def route(self, targets: Targets | Mapping[Target, Iterable[str]]) -> dict[Target, BitMap]:
        """The documents that each target gets: those that match one of its patterns."""
        table = targets if isinstance(targets, Targets) else Targets(targets)
        return Filtering(self, table.matcher).documents(table)

    def split(self, targets: Targets | Mapping[Target, Iterable[str]]) -> dict[Target, "RoXSum"]:
        """A batch for each target, with just its documents, under the same ids; they share this one's memory."""
        return {target: self.restrict(documents) for target, documents in self.route(targets).items()}

    def restrict(self, ids: Iterable[int] | BitMap) -> "RoXSum":
        """The batch of some of the documents, under the same ids; it shares this one's memory."""
        wanted = ids if isinstance(ids, BitMap) else BitMap(ids)
        kept = np.isin(self._ids, np.frombuffer(wanted.to_array(), dtype=np.uint32), assume_unique=True)
        if np.count_nonzero(kept) != len(wanted):
            raise KeyError(f"there is no document {min(wanted - bitmap_of(self._ids))}")
        part = RoXSum(limits=self.limits, entities=self.entities)
        part._share(self.skeletons)
        part._parts = [self.contents]
        part._ids, part._rows, part._next = self._ids[kept], self._rows[kept], self._next
        part._extents = None
        return part

    # The message.

    def encode(self, *, level: int = 3) -> bytes:
        """The message that carries this batch; `level` is zstd's."""
        from .encode import encode

        return encode(self, level=level)

    @classmethod
    def decode(
        cls,
        data: bytes | bytearray | memoryview,
        *,
        limits: MessageLimits | None = None,
        document_limits: Limits | None = None,
        entities: Entities = "refuse",
        trusted: bool = False,
    ) -> "RoXSum":
        """The batch that a message carries; `MessageError` when it is truncated, corrupted or not what it claims.

        Unless `trusted`, every document is read anew from the bytes that come out, so that its summary is right whoever
        wrote the message. `trusted` takes the sender's word for the summary; use it for messages of one's own brokers.
        """
        from .decode import decode

        empty = cls(limits=document_limits, entities=entities)
        return decode(empty, memoryview(data), limits or MessageLimits(), trusted=trusted)

    # What decoding uses.

    @property
    def next_id(self) -> int:
        """The id that the next document gets."""
        return self._next

    def read_again(self, documents: list[bytes | str]) -> DocumentBatch:
        """Documents that a message brought, read; `MessageError` when one can't be read."""
        batch = self._reader.read(documents, borrowed=True)
        for index, error in batch.errors.items():
            raise MessageError(f"document {index} of the message can't be read: {error}")
        return batch

    def take_documents(self, documents: list[bytes | str], ids: Int64s, next_id: int) -> "RoXSum":
        """Take in documents that a message brought, by reading them."""
        sizes = np.cumsum([0, *map(len, documents)])
        edges = np.flatnonzero(np.diff(sizes // _GROUP_BYTES, prepend=-1, append=-1)).tolist()
        for first, last in pairwise(edges if edges[-1] == len(documents) else [*edges, len(documents)]):
            self._append(self.read_again(documents[first:last]), ids[first:last])
        self._next = next_id
        return self

    def take_contents(self, skeletons: Skeletons, contents: Contents, ids: Int64s, next_id: int) -> "RoXSum":
        """Take in contents that a message brought, as they are."""
        self._share(skeletons)
        self._parts, self._ids, self._rows = [contents], ids, np.arange(len(ids), dtype=np.int64)
        self._extents, self._next = None, next_id
        return self

    # Inside.

    def _groups(self, documents: Iterable[Readable | Document]) -> Iterator[DocumentBatch]:
        waiting: list[Readable] = []
        size = 0
        for document in documents:
            if isinstance(document, Document) or size >= _GROUP_BYTES:
                if waiting:
                    yield self._reader.read(waiting, borrowed=True)
                waiting, size = [], 0
            if isinstance(document, Document):
                yield document.alone()
            else:
                waiting.append(document)
                size += len(document) if not isinstance(document, os.PathLike) else 1 << 12
        if waiting:
            yield self._reader.read(waiting, borrowed=True)

    def _fresh(self, count: int) -> Int64s:
        """The next ids."""
        first = self._next
        if first + count - 1 > _LARGEST_ID:
            raise LimitError(f"a batch gives out {_LARGEST_ID + 1:,} ids at most; begin a new one")
        return np.arange(first, first + count, dtype=np.int64)

    def _append(self, batch: DocumentBatch, ids: Int64s | None = None) -> Int64s:
        """Add the readable documents of a batch, by default under the next ids; their ids."""
        ids = self._fresh(len(batch)) if ids is None else ids
        contents = Contents.of(self.skeletons, batch)
        good = np.ones(len(batch), dtype=np.bool_)
        good[list(batch.errors)] = False
        self.errors.update((int(ids[index]), error) for index, error in batch.errors.items())
        self._next = max(self._next, int(ids[-1]) + 1) if len(ids) else self._next
        self._enter(contents, np.flatnonzero(good), ids[good])
        return ids[good]

    def _enter(self, contents: Contents, rows: Int64s, ids: Int64s) -> None:
        """Take up contents of which these rows get these ids."""
        if self._extents is not None and len(rows) <= _WAITING:
            for row, id in zip(rows.tolist(), ids.tolist(), strict=True):
                for node in contents.leaves[contents.leaf_begin[row] : contents.leaf_begin[row + 1]].tolist():
                    self._extents.setdefault(node, BitMap()).add(id)
        else:
            self._extents = None
        base = sum(map(len, self._parts))
        self._parts = [part for part in self._parts if len(part)] + [contents]
        if len(self._parts) > _WAITING:
            self._parts = [Contents.joined(self._parts)]
        ascends = not len(self._ids) or not len(ids) or ids[0] > self._ids[-1]
        self._ids, self._rows = np.concatenate([self._ids, ids]), np.concatenate([self._rows, rows + base])
        if not ascends:
            order = np.argsort(self._ids)
            self._ids, self._rows = self._ids[order], self._rows[order]
        self._next = max(self._next, int(self._ids[-1]) + 1 if len(self._ids) else 0)
        self._nodes = None

    def _take(self, other: "RoXSum", rows: Int64s, ids: Int64s) -> None:
        """Take in rows of another batch under these ids."""
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

    def _translated(self, other: "RoXSum", contents: Contents) -> Contents:
        """Another batch's contents in the numbers of this one's tables."""
        used = np.zeros(len(other.skeletons), dtype=np.bool_)
        used[contents.tokens] = True
        node_of, name_of = self.paths.absorb(other.paths)
        token_of = self.skeletons.absorb(other.skeletons, node_of, name_of, used)
        if np.any(token_of == GIVEN_UP):
            raise LimitError("the documents of both batches have more kinds of markup together than one batch holds")
        return contents.renumbered(token_of, node_of)

    def _check_same(self, other: "RoXSum", ids: Int64s) -> None:
        """Refuse ids that mean different documents."""
        mine, theirs = (batch._rows[np.searchsorted(batch._ids, ids)] for batch in (self, other))
        if self.contents is other.contents and np.array_equal(mine, theirs):
            return
        documents = self.contents.documents(self.skeletons, mine)
        others = other.contents.documents(other.skeletons, theirs)
        for id, one, another in zip(ids.tolist(), documents, others, strict=True):
            if one != another:
                raise ValueError(f"two different documents have the id {id}; join such batches with extend")

    def _compact(self) -> None:
        """Give back the memory of removed documents, and of markup and label paths that only they had."""
        kept = RoXSum(limits=self.limits, entities=self.entities)
        kept._take(self, self._rows, self._ids)
        self._share(kept.skeletons)
        self._parts, self._rows = kept._parts, kept._rows
        self._extents, self._nodes = None, None

    def _place(self, id: int) -> int | None:
        place = int(np.searchsorted(self._ids, id))
        return place if place < len(self._ids) and int(self._ids[place]) == id else None

    def _found(self, id: int) -> int:
        place = self._place(id)
        if place is None:
            raise KeyError(f"there is no document {id}")
        return place

