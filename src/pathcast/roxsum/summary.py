"""RoXSum: many documents as one structure that is matched, split and forwarded as a whole.

    <bib><book><title/></book></bib>   0            (virtual root)
    <bib><book><title/></book>                       │
         <article/></bib>              1            bib
                                                     ├── book ── title   {0, 1}
                                                     └── article         {1}

The summary is a tree with one node per label path of the documents; the extent of a node holds the documents in which
an element with that path has no child elements. A document has a path exactly if it is in the extent of the path or of
one below it. The batch also holds the documents' contents (`tokenised_batch_contents.py`), so that each document is
restored byte for byte.

After Vagena, Moro and Tsotras: RoXSum (ICDE 2007). The paper's structure answers linear paths exactly; other patterns
get candidates from it and are verified on the document (`summary_matching.py`).

Invariant: an id permanently refers to the same document, in parts and messages too; extents hold no other ids.
Cost: building some 10 µs per document of 1 KB; adding one document some 200 µs; parts of a batch share its memory.
Not done: while a batch or one of its parts still grows, only one thread at a time may use them.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from pyroaring import BitMap

from pathcast.documents import Document, DocumentBatch, Entities, Limits, Readable
from pathcast.errors import MessageError, PathcastError
from pathcast.kernels import Int32s, Int64s
from pathcast.matching import Matcher

from .broker_routing_table import Target, Targets
from .markup_value_splitter import Skeletons
from .message.message_limits import MessageLimits
from .summarized_document_batch import SummarizedDocuments
from .summary_matching import Filtering, numbers_of
from .tokenised_batch_contents import Contents

# Documents are read in groups of up to this many bytes, few enough that memory of a group is used again for the next.
_GROUP_BYTES = 2 << 20
# What a file counts as before it is read.
_PATH_BYTES = 1 << 12


class Terms(TypedDict, total=False):
    """The terms for accepting a message: limits of the message and of its documents.

    Unless `trusted`, every document is read again from its decoded bytes, so that its summary is right whatever the
    sender wrote. `trusted` accepts the sender's summary; use it for messages of your own brokers.
    """

    limits: MessageLimits | None
    document_limits: Limits | None
    entities: Entities
    trusted: bool


class RoXSum(SummarizedDocuments):
    """A batch of documents as a summary, its extents, and the documents' contents.

    >>> batch = pathcast.roxsum.RoXSum.build(["<bib><book/></bib>", "<bib><article/></bib>"])
    >>> parts = batch.split({"east": ["//book"], "west": ["/bib"]})
    >>> pathcast.roxsum.RoXSum.decode(parts["west"].encode()).document(1)
    b'<bib><article/></bib>'
    """

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

        With `errors="return"` unreadable documents are omitted; their numbers are not reused, and `batch.errors` has
        the errors.
        """
        if errors not in ("raise", "return"):
            raise ValueError(f"errors must be 'raise' or 'return', got {errors!r}")
        if isinstance(documents, str | bytes | bytearray | memoryview):
            raise TypeError(
                f"build takes a list of documents, got a single {type(documents).__name__}; put it into a list"
            )
        batch = cls(limits=limits, entities=entities)
        with batch._joined_at_once():
            for group in [documents] if isinstance(documents, DocumentBatch) else batch._groups(documents):
                if errors == "raise" and group.errors:
                    raise group.errors[min(group.errors)]
                batch._append(group)
        return batch

    # Content.

    def __repr__(self) -> str:
        return f"<RoXSum: {len(self):,} documents, {len(self.nodes):,} label paths>"

    # Changes.

    def add(self, document: Readable | Document) -> int:
        """Add one document; return its id. `DocumentError` or `LimitError` when it cannot be read."""
        batch = document.alone() if isinstance(document, Document) else self._reader.read([document])
        if batch.errors:
            raise batch.errors[0]
        return int(self._append(batch)[0])

    def add_many(self, documents: Iterable[Readable | Document]) -> dict[int, PathcastError]:
        """Add documents under the next ids; unreadable ones are omitted and use no id.

        Returns their errors, by place. `LimitError` when there are too many label paths: some may be added by then.
        """
        refused: dict[int, PathcastError] = {}
        done = 0
        with self._joined_at_once():
            for group in self._groups(documents):
                refused.update((done + index, error) for index, error in group.errors.items())
                self._append(group, keep_places=False)
                done += len(group)
        return refused

    def remove(self, id: int) -> None:
        """Remove a document; `KeyError` when there is none with this id."""
        place = self._found(id)
        if self._extents is not None:
            for node in self._leaves(int(self._rows[place])):
                self._extents[node].discard(id)
                if not self._extents[node]:
                    del self._extents[node]
        self._ids, self._rows = np.delete(self._ids, place), np.delete(self._rows, place)
        self._nodes = None
        if 2 * len(self) + 16 < sum(map(len, self._parts)):
            self._compact()

    def extend(self, other: "RoXSum") -> Int64s:
        """Add the documents of another batch, with new ids; return those ids, in the order of the other's."""
        ids = self._fresh(len(other))
        self._take(other, other._rows, ids)
        return ids

    @classmethod
    def merge(cls, parts: Iterable["RoXSum"]) -> "RoXSum":
        """Merge parts of one batch: documents keep their ids, and an id in several parts is one document.

        `ValueError` when an id refers to different documents in two parts; use `extend` for unrelated batches.
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

    def match(self, matcher: Matcher) -> dict[int, Int32s]:
        """The ids of the subscriptions that each document matches, ascending; documents without matches are omitted.

        `LimitError` when a document would cost the engine more than it allows.
        """
        offsets, ids = self.match_all(matcher)
        edges = zip(self._ids.tolist(), offsets.tolist(), offsets[1:].tolist(), strict=False)
        return {id: np.sort(ids[first:last]) for id, first, last in edges if last > first}

    def match_all(self, matcher: Matcher) -> tuple[Int64s, Int32s]:
        """As `match`, as arrays: the `k`-th of the ids matches `found[offsets[k] : offsets[k + 1]]`, in any order."""
        filtering = Filtering(self, matcher)
        found = filtering.ids()
        _raise_first(filtering.errors)
        return found

    def candidates(self, matcher: Matcher) -> BitMap:
        """The documents that extents alone cannot decide for some pattern with predicates."""
        return Filtering(self, matcher).candidates()

    def route(self, targets: Targets | Mapping[Any, Iterable[str]]) -> dict[Target, BitMap]:
        """The documents that each target gets: those that match one of its patterns."""
        table = targets if isinstance(targets, Targets) else Targets(targets)
        filtering = Filtering(self, table.matcher)
        found = filtering.documents(table)
        _raise_first(filtering.errors)
        return found

    def split(self, targets: Targets | Mapping[Any, Iterable[str]]) -> dict[Target, "RoXSum"]:
        """One batch per target, with only its documents, under the same ids; the batches share this one's memory."""
        return {target: self.restrict(documents) for target, documents in self.route(targets).items()}

    def restrict(self, ids: Iterable[int] | BitMap) -> "RoXSum":
        """The batch of some of the documents, under the same ids; it shares this one's memory."""
        wanted = numbers_of(ids if isinstance(ids, BitMap) else BitMap(ids))
        places = np.searchsorted(self._ids, wanted)
        found = np.append(self._ids, -1)[places] == wanted
        if not np.all(found):
            raise KeyError(f"unknown document id {int(wanted[~found][0])}; batch.ids lists the ids of the batch")
        return self.at_places(places)

    def at_places(self, places: Int64s) -> "RoXSum":
        """As `restrict`, by the documents' places among the ids, ascending."""
        part = RoXSum(limits=self.limits, entities=self.entities, skeletons=self.skeletons)
        part._parts = [self.contents]
        part._ids, part._rows, part._next = self._ids[places], self._rows[places], self._next
        part._extents = None
        return part

    def renumbered(self, ids: Sequence[int]) -> "RoXSum":
        """The batch of these documents in this order, numbered 0, 1, 2, …; one may come several times.

        It shares this one's memory.
        """
        part = RoXSum(limits=self.limits, entities=self.entities, skeletons=self.skeletons)
        places = np.searchsorted(self._ids, np.asarray(ids, dtype=np.int64))
        for id in np.asarray(ids)[np.append(self._ids, -1)[places] != ids].tolist():
            raise KeyError(f"unknown document id {id}; batch.ids lists the ids of the batch")
        part._parts, part._rows = [self.contents], self._rows[places]
        part._ids, part._next, part._extents = np.arange(len(places), dtype=np.int64), len(places), None
        return part

    # The message.

    def encode(self, *, level: int = 3) -> bytes:
        """The message that carries this batch; `level` is zstd's."""
        from .message.batch_encoder import encode

        return encode(self, level=level)

    def messages(self, targets: Targets | Mapping[Any, Iterable[str]], *, level: int = 3) -> dict[Target, bytes]:
        """One message for each target that gets documents.

        The messages carry what `split` and `encode` give, in less time: documents with the same targets are encoded
        once.
        """
        from .message.messages_by_target import encode_by_target

        return encode_by_target(self, self.route(targets), level=level)

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview, **terms: Unpack[Terms]) -> "RoXSum":
        """The batch that a message carries; `MessageError` when it is truncated, corrupted or not what it claims."""
        from .message.batch_decoder import decode

        make, limits = cls._received(terms)
        return decode(make, memoryview(data), limits, trusted=terms.get("trusted", False))

    @classmethod
    def decode_documents(cls, data: bytes | bytearray | memoryview, **terms: Unpack[Terms]) -> list[bytes]:
        """The documents of a message, in the order of their ids; as `decode`, but without the summary."""
        from .message.batch_decoder import decode_documents

        make, limits = cls._received(terms)
        return decode_documents(make, memoryview(data), limits, trusted=terms.get("trusted", False))

    @classmethod
    def _received(cls, terms: Terms) -> "tuple[Callable[[], RoXSum], MessageLimits]":
        """A function that makes empty batches for the documents of a message, and the message's limits."""
        limits, entities = terms.get("document_limits"), terms.get("entities", "refuse")
        return lambda: cls(limits=limits, entities=entities), terms.get("limits") or MessageLimits()

    # What decoding uses.

    def read_again(self, documents: list[bytes | str]) -> DocumentBatch:
        """Read the documents of a message; `MessageError` when one cannot be read."""
        batch = self._reader.read(documents, borrowed=True)
        for index, error in batch.errors.items():
            raise MessageError(f"cannot read document {index} of the message: {error}; request the message again")
        return batch

    def take_documents(self, documents: list[bytes | str], ids: Int64s, next_id: int) -> "RoXSum":
        """Add the documents of a message by reading them."""
        for first, last in _grouped(documents):
            self._append(self.read_again(documents[first:last]), ids[first:last])
        self._next = next_id
        return self

    def check_documents(self, documents: list[bytes | str]) -> None:
        """`MessageError` when a document of a message cannot be read."""
        for first, last in _grouped(documents):
            self.read_again(documents[first:last])

    def take_contents(self, skeletons: Skeletons, contents: Contents, ids: Int64s, next_id: int) -> "RoXSum":
        """Add the contents of a message as they are."""
        self._share(skeletons)
        self._parts, self._ids, self._rows = [contents], ids, np.arange(len(ids), dtype=np.int64)
        self._extents, self._next = None, next_id
        return self

    def take_all(self, batches: "Sequence[RoXSum]", next_id: int) -> "RoXSum":
        """Add the documents of batches under their ids, no two of which are the same."""
        if batches:
            self._share(batches[0].skeletons)
        for batch in batches:
            self._take(batch, batch._rows, batch._ids)
        self._next = next_id
        return self

    # Inside.

    def _groups(self, documents: Iterable[Readable | Document]) -> Iterator[DocumentBatch]:
        waiting: list[Readable] = []
        size = 0
        for document in documents:
            if size >= _GROUP_BYTES or isinstance(document, Document):
                if waiting:
                    yield self._reader.read(waiting, borrowed=True)
                waiting, size = [], 0
            if isinstance(document, Document):
                yield document.alone()
            else:
                waiting.append(document)
                size += _size(document)
        if waiting:
            yield self._reader.read(waiting, borrowed=True)

    def _append(self, batch: DocumentBatch, ids: Int64s | None = None, *, keep_places: bool = True) -> Int64s:
        """Add the readable documents of a batch, by default under the next ids; their ids.

        With `keep_places` an unreadable document uses an id, and has its error under it.
        """
        contents = Contents.of(self.skeletons, batch)
        good = np.ones(len(batch), dtype=np.bool_)
        good[list(batch.errors)] = False
        rows = np.flatnonzero(good)
        if ids is None:
            ids = self._fresh(len(batch) if keep_places else len(rows))
        if keep_places:
            self.errors.update((int(ids[index]), error) for index, error in batch.errors.items())
            self._next = max(self._next, int(ids[-1]) + 1) if len(ids) else self._next
            ids = ids[good]
        self._enter(contents, rows, ids)
        return ids

    def _compact(self) -> None:
        """Free the memory of removed documents, and of markup and label paths that only they had."""
        kept = RoXSum(limits=self.limits, entities=self.entities)
        kept._take(self, self._rows, self._ids)
        self._share(kept.skeletons)
        self._parts, self._rows = kept._parts, kept._rows
        self._extents, self._nodes = None, None


def _size(document: Readable) -> int:
    """The estimated size of a document before it is read."""
    # Documents are mostly bytes or text, and asking whether one is a path takes long.
    if isinstance(document, bytes | str):
        return len(document)
    return _PATH_BYTES if isinstance(document, os.PathLike) else len(document)


def _grouped(documents: list[bytes | str]) -> Iterator[tuple[int, int]]:
    """Documents in groups to be read together: from .. to."""
    sizes = np.cumsum([0, *map(len, documents)])
    edges = np.flatnonzero(np.diff(sizes // _GROUP_BYTES, prepend=-1, append=-1)).tolist()
    return pairwise(edges if edges[-1] == len(documents) else [*edges, len(documents)])


def _raise_first(errors: Mapping[int, PathcastError]) -> None:
    if errors:
        raise errors[min(errors)]
