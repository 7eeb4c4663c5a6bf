"""The matcher: documents in, matches out, by one engine over one set of subscriptions.

It follows its subscriptions: before each match it compares their version with the one it knows, lets the engine take up
new patterns, and takes a new expansion. Matches that were handed out before keep the meaning that they had.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..documents import Document, DocumentBatch, Limits
from ..documents.expat_reader import Entities
from ..documents.reader import Readable, Reader
from ..errors import PathcastError
from .contract import Engine, Limited
from .expansion import Expansion
from .matches import Matches
from .registry import engine_class
from .subscribers import SubscriberRows
from .subscriptions import Subscriptions

if TYPE_CHECKING:
    from .explain import Explanation

# Documents are read and matched in groups: large enough to amortise a call, small enough to stay in the cache and to
# give the caller of `match_many` its first answer soon.
_GROUP = 256
_GROUP_BYTES = 1 << 20


class MatchedData(NamedTuple):
    """The matches of documents given as data: those of document `i` are `values[offsets[i] : offsets[i + 1]]`.

    `values` are ids, or with `by="subscriber"` places in `names`; both ascend. `errors` has the unreadable documents.
    """

    offsets: npt.NDArray[np.int64]
    values: npt.NDArray[np.int32]
    names: list[str]
    errors: Mapping[int, PathcastError]


class Matcher:
    """Matches documents against subscriptions; made by `Subscriptions.compile` or `open_index`."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        engine: str | Engine | None = None,
        *,
        limits: Limits | None = None,
        entities: Entities = "refuse",
    ) -> None:
        self.subscriptions = subscriptions
        self._reader = Reader(subscriptions.table.names, limits or Limits(), entities)
        if engine is None or isinstance(engine, str):
            engine = engine_class(engine).build(subscriptions.table)
        self.engine: Engine = engine
        if isinstance(engine, Limited):
            engine.limits = self._reader.limits
        self._version = subscriptions.version
        self._expansion = subscriptions.expansion()
        self._subscriber_rows: tuple[Expansion, SubscriberRows] | None = None
        self._documents = 0
        self._unreadable = 0
        self._matches = 0

    @property
    def engine_name(self) -> str:
        """The name of the engine at work."""
        return self.engine.name

    def match(self, document: Readable | Document) -> Matches:
        """The subscriptions that a document matches; `DocumentError` or `LimitError` when it cannot be read."""
        batch = document.alone() if isinstance(document, Document) else self._reader.read([document], borrowed=True)
        _, entries, expansion = self._match(batch)
        if 0 in batch.errors:
            raise batch.errors[0]
        return Matches(entries, expansion)

    def explain(self, document: Readable | Document, id: int) -> "Explanation":
        """Why a document matches a subscription, or what keeps it from matching; `KeyError` for an unknown id."""
        from .explain import explain

        read = document if isinstance(document, Document) else self._reader.read([document])[0]
        return explain(read, self.subscriptions, id)

    def match_many(
        self, documents: Iterable[Readable | Document], errors: Literal["raise", "return"] = "raise"
    ) -> Iterator[Matches | PathcastError]:
        """Match documents one after the other, in order; with `errors="return"` an error stands in its place."""
        if errors not in ("raise", "return"):
            raise ValueError(f"errors={errors!r}: must be 'raise' or 'return'")
        return self._match_many(documents, errors)

    def _match_many(self, documents: Iterable[Readable | Document], errors: str) -> Iterator[Matches | PathcastError]:
        for batch in self._groups(documents):
            offsets, entries, expansion = self._match(batch)
            for index in range(len(batch)):
                error = batch.errors.get(index)
                if error is None:
                    yield Matches(entries[offsets[index] : offsets[index + 1]], expansion)
                elif errors == "raise":
                    raise error
                else:
                    yield error

    def match_batch(self, batch: DocumentBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The ids that document `i` matches are `ids[offsets[i] : offsets[i + 1]]`, ascending."""
        offsets, entries, expansion = self._match(batch)
        return expansion.ids_of_all(offsets, entries)

    def match_data(
        self,
        data: npt.NDArray[np.uint8],
        data_offsets: npt.NDArray[np.int64],
        by: Literal["id", "subscriber"] = "id",
        *,
        text: bool = False,
        failed: Mapping[int, PathcastError] | None = None,
    ) -> MatchedData:
        """Match documents that lie one after the other in an array, with `PADDING` zero bytes after the last.

        This is the way for columns of documents: no Python object is made for a document or a match. `text`: they are
        text in UTF-8, whatever encoding they declare. `failed`: those that are known to be unreadable, and why.
        """
        encodings = dict.fromkeys(range(len(data_offsets) - 1), "utf-8") if text else None
        batch = self._reader.scanner.read_data(data, data_offsets, encodings=encodings, failed=failed, borrowed=True)
        offsets, entries, expansion = self._match(batch)
        if by == "id":
            offsets, ids = expansion.ids_of_all(offsets, entries)
            return MatchedData(offsets, ids, [], batch.errors)
        rows = self._subscriber_rows
        if rows is None or rows[0] is not expansion:
            self._subscriber_rows = rows = (expansion, SubscriberRows(expansion))
        offsets, ranks = rows[1].of_all(offsets, entries)
        return MatchedData(offsets, ranks, rows[1].names, batch.errors)

    def statistics(self) -> dict[str, Any]:
        """What has been done so far, and how large the index is."""
        return {
            "engine": self.engine_name,
            "subscriptions": len(self.subscriptions),
            "patterns": len(self.subscriptions.table),
            "documents": self._documents,
            "unreadable": self._unreadable,
            "matches": self._matches,
            "index bytes": self.subscriptions.bytes,
            **self.engine.statistics(),
        }

    def save(self, directory: str | os.PathLike[str], *, memo: bool = True) -> None:
        """Write the index to a folder, replacing the one that it holds; `pathcast.open_index` reads it back.

        With `memo`, what the engine has learnt from the documents so far goes along.
        """
        from .index import save_index

        self._follow()
        save_index(self, directory, memo=memo)

    def __repr__(self) -> str:
        return f"<Matcher: {self.engine_name}, {len(self.subscriptions):,} subscriptions>"

    # Inside.

    def _follow(self) -> None:
        """Take up what has changed in the subscriptions."""
        if self._version != self.subscriptions.version:
            self.engine.refresh()
            self._expansion = self.subscriptions.expansion()
            self._version = self.subscriptions.version

    def _match(self, batch: DocumentBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Expansion]:
        self._follow()
        offsets, entries = self.engine.match_batch(batch)
        self._documents += len(batch)
        self._unreadable += len(batch.errors)
        self._matches += len(entries)
        return offsets, entries, self._expansion

    def _groups(self, documents: Iterable[Readable | Document]) -> Iterator[DocumentBatch]:
        """Documents in groups, read; one that was read already is a group of its own."""
        waiting: list[Readable] = []
        size = 0
        for document in documents:
            if isinstance(document, Document) or len(waiting) >= _GROUP or size >= _GROUP_BYTES:
                if waiting:
                    yield self._reader.read(waiting, borrowed=True)
                waiting, size = [], 0
            if isinstance(document, Document):
                yield document.alone()
            else:
                waiting.append(document)
                size += len(document) if not isinstance(document, os.PathLike) else 0
        if waiting:
            yield self._reader.read(waiting, borrowed=True)
