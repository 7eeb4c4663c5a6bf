"""The matcher: documents in, matches out, by one engine over one set of subscriptions.

It follows its subscriptions: each match starts with a view of them, lets the engine add the patterns that are new in
the view, and answers for that view. Matches that were returned earlier keep their meaning.

Threads: one matcher serves many threads. `Concurrent` engines match in all of them at once, others one at a time.
"""

import itertools
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from pathcast.documents import Document, DocumentBatch, Entities, Limits, Readable, Reader, content_bound
from pathcast.errors import PathcastError
from pathcast.kernels import AnyArray, Int32s, Int64s, UInt8s
from pathcast.store import offsets_of

from .engine_contract import Concurrent, Engine, Grouping, Learning, Limited, Mergeable, SharedEntries, Sharing
from .engine_registry import engine_class
from .parallel_map import in_threads
from .results.document_matches import Matches
from .results.match_expansion import Expansion
from .results.subscribers_of_document_batches import SubscriberRows
from .short_turns import ShortTurns
from .subscriptions.id_and_subscriber_checks import check_count
from .subscriptions.subscriptions import Subscriptions
from .subscriptions.verification_cost_by_subscription import cost_of, most_expensive
from .table.pattern_table import PatternTable

if TYPE_CHECKING:
    from .explain import Explanation

# Changes that a thread indexes together while a document is matched: the next match waits for fewer than these.
_INDEXED_TOGETHER = 32
# Documents per group: enough to amortise a call, few enough for the cache, and for an early first answer.
_GROUP = 256
_GROUP_BYTES = 1 << 20
_SIZED = (bytes, str, Sized)  # in this order: the last takes twenty times as long

# Documents to be read, or one that was already read.
Group = list[Readable] | Document


class MatchedData(NamedTuple):
    """The matches of documents given as data: those of document `i` are `values[offsets[i] : offsets[i + 1]]`.

    `values` are ids, in no particular order unless it was asked for, or with `by="subscriber"` places in `names`,
    ascending. `errors` has the unreadable documents.
    """

    offsets: Int64s
    values: Int32s
    names: list[str]
    errors: Mapping[int, PathcastError]


class View(NamedTuple):
    """A matcher's subscriptions at one moment: a view answers for that moment.

    For callers that work with *entries*, the distinct patterns: `expansion` turns them into ids or subscribers.
    """

    engine: Engine
    expansion: Expansion
    size: int  # number of entries
    turn: AbstractContextManager[object]

    @property
    def table(self) -> PatternTable:
        """The table with the pattern of each entry."""
        return self.engine.table

    def match_batch(self, batch: DocumentBatch) -> tuple[Int64s, Int32s]:
        """The entries that document `i` matches are `entries[offsets[i] : offsets[i + 1]]`, in no particular order."""
        with self.turn:
            offsets, entries = self.engine.match_batch(batch)
        return self._seen(offsets, entries)

    def _seen(self, offsets: Int64s, entries: Int32s) -> tuple[Int64s, Int32s]:
        """Those entries that the view has."""
        if entries.max(initial=-1) < self.size:
            return offsets, entries
        kept = entries < self.size  # the others were added later
        return offsets_of(kept)[offsets].astype(np.int64), entries[kept]

    def match_ids(self, batch: DocumentBatch) -> tuple[Int64s, Int32s]:
        """As `match_batch`, with ids instead of entries."""
        return _ids_of_all(self.engine, self.expansion, *self.match_batch(batch))

    def match_shared(self, batch: DocumentBatch) -> SharedEntries:
        """As `match_batch`, with groups of entries that documents share; they may have entries beyond the view's."""
        if not isinstance(self.engine, Sharing):
            return SharedEntries.unshared(*self.match_batch(batch))
        with self.turn:
            found = self.engine.match_shared(batch)
        offsets, entries = self._seen(found.offsets, found.entries)
        return found._replace(offsets=offsets, entries=entries)

    def within(self, limits: Limits) -> "View":
        """The same subscriptions with other bounds on the cost of a document."""
        view = self._replace(engine=copy(self.engine))
        if isinstance(view.engine, Limited):
            view.engine.limits = limits
        return view


class Matcher:
    """Matches documents against subscriptions; created by `Subscriptions.compile` or `open_index`.

    >>> subscriptions = pathcast.Subscriptions()
    >>> subscriptions.add("//title", subscriber="ada")
    1
    >>> matcher = subscriptions.compile()
    >>> [matches.subscribers for matches in matcher.match_many(["<news><title/></news>", "<news/>"])]
    [['ada'], []]
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        engine: str | Engine | None = None,
        *,
        limits: Limits | None = None,
        entities: Entities = "refuse",
    ) -> None:
        if not isinstance(subscriptions, Subscriptions):
            raise TypeError(
                f"subscriptions must be a Subscriptions object, got {type(subscriptions).__name__}; "
                "create one with Subscriptions() and add_many()"
            )
        self.subscriptions = subscriptions
        self._reader = Reader(subscriptions.table.names, Limits.given(limits), entities)
        if engine is None or isinstance(engine, str):
            engine = engine_class(engine).build(subscriptions.table)
        self.engine: Engine = engine
        if isinstance(engine, Limited):
            engine.limits = self._reader.limits
        self._followed: tuple[Engine, int] | None = None
        self._next: Engine | None = None  # for the table that will replace the engine's own
        self._subscriber_rows: tuple[Expansion, SubscriberRows] | None = None
        self._lock, self._counting = threading.Lock(), threading.Lock()
        self._turns = ShortTurns()
        self._turn = nullcontext() if isinstance(engine, Concurrent) else threading.Lock()
        self._documents = self._unreadable = self._matches = 0
        self._is_used = False  # since the last change that was indexed
        self._unindexed = 0  # changes since then
        subscriptions.followed_by(self)

    @property
    def engine_name(self) -> str:
        """The name of the current engine."""
        return self.engine.name

    def match(self, document: Readable | Document) -> Matches:
        """The subscriptions that a document matches; `DocumentError` or `LimitError` if it cannot be read.

        A call costs some 6 µs in addition to the document itself, 10 µs with patterns other than plain paths: for many
        small documents use `match_many`.
        """
        # Take the subscriptions first: a match that waits for a concurrent change while it reads its document need not
        # include that change.
        try:
            self._turns.arrive()
            engine, expansion = self._follow()
            self._turns.begin(document)
            batch = document.alone() if isinstance(document, Document) else self._reader.read_one(document)
            _, entries = self._matched(engine, batch)
        finally:
            self._turns.end()
        if 0 in batch.errors:
            raise batch.errors[0]
        return Matches(entries, expansion)

    def explain(self, document: Readable | Document, id: int) -> "Explanation":
        """Why a document matches a subscription, or what keeps it from matching; `KeyError` for an unknown id.

        The explanation's `cost` is the subscription's share of this matcher's work, if it was ever tried.
        """
        from .explain import explain

        read = document if isinstance(document, Document) else self._reader.read([document])[0]
        explanation = explain(read, self.subscriptions, id)
        cost = cost_of(self.engine, self.subscriptions.expansion(), id)
        return explanation if cost is None else replace(explanation, cost=str(cost))

    @overload
    def match_many(
        self, documents: Iterable[Readable | Document], errors: Literal["raise"] = ..., *, threads: int = ...
    ) -> Iterator[Matches]: ...
    @overload
    def match_many(
        self, documents: Iterable[Readable | Document], errors: Literal["return"], *, threads: int = ...
    ) -> Iterator[Matches | PathcastError]: ...
    def match_many(
        self,
        documents: Iterable[Readable | Document],
        errors: Literal["raise", "return"] = "raise",
        *,
        threads: int = 1,
    ) -> Iterator[Matches | PathcastError]:
        """Match documents, in order; with `errors="return"`, an error takes the place of its document's matches.

        Documents are read and matched in groups, which makes small ones much cheaper than with `match`: 5 to 10
        times for documents of 90 bytes (2 µs each).

        If iterating over `documents` raises, the error comes after the results for the documents before it. `threads`:
        the number of groups of documents that are read and matched at the same time.
        """
        if errors not in ("raise", "return"):
            raise ValueError(f"errors must be 'raise' or 'return', got {errors!r}")
        check_count("threads", threads)
        if isinstance(documents, str | bytes | bytearray):
            raise TypeError(
                f"match_many() takes several documents, got a single {type(documents).__name__}; use match()"
            )
        groups = _groups(documents, self._reader.limits.size)
        answers = map(self._match_group, groups) if threads == 1 else in_threads(self._match_group, groups, threads)
        return _answers(answers, errors)

    def _match_group(self, group: Group) -> list[Matches | PathcastError]:
        batch = group.alone() if isinstance(group, Document) else self._reader.read(group, borrowed=True)
        return self.match_read(batch)

    def match_read(self, batch: DocumentBatch) -> list[Matches | PathcastError]:
        """The matches, or the error, of each document of a batch that was read."""
        offsets, entries, expansion = self._match(batch)
        return [
            batch.errors.get(index) or Matches(entries[begin:end], expansion)
            for index, (begin, end) in enumerate(itertools.pairwise(offsets.tolist()))
        ]

    def match_batch(self, batch: DocumentBatch) -> tuple[Int64s, Int32s]:
        """The ids that document `i` matches are `ids[offsets[i] : offsets[i + 1]]`, in no particular order."""
        return self._match_ids(batch)

    def match_data(
        self,
        data: UInt8s,
        data_offsets: Int64s,
        by: Literal["id", "subscriber"] = "id",
        *,
        text: bool = False,
        failed: Mapping[int, PathcastError] | None = None,
        ordered: bool = False,
    ) -> MatchedData:
        """Match documents that are stored consecutively in an array, with `PADDING` zero bytes after the last.

        Use this for columns of documents: it creates no Python object per document or match. `text`: they are text in
        UTF-8, whatever encoding they declare. `failed`: those that are known to be unreadable, and why. `ordered`: the
        ids of each document ascend; subscribers always do.
        """
        encodings = dict.fromkeys(range(len(data_offsets) - 1), "utf-8") if text else None
        batch = self._reader.scanner.read_data(data, data_offsets, encodings=encodings, failed=failed, borrowed=True)
        return self.match_arrays(batch, by, ordered=ordered)

    def match_arrays(
        self, batch: DocumentBatch, by: Literal["id", "subscriber"] = "id", *, ordered: bool = False
    ) -> MatchedData:
        """As `match_data`, for documents that were already read."""
        if by == "id":
            return MatchedData(*self._match_ids(batch, ordered=ordered), [], batch.errors)
        offsets, entries, expansion = self._match(batch)
        rows = self._subscriber_rows
        if rows is None or rows[0] is not expansion:
            self._subscriber_rows = rows = (expansion, SubscriberRows(expansion))
        offsets, ranks = rows[1].of_all(offsets, entries)
        return MatchedData(offsets, ranks, rows[1].names, batch.errors)

    def view(self) -> View:
        """The current subscriptions, for several questions about the same moment."""
        engine, expansion = self._follow()
        return View(engine, expansion, len(engine.table), self._turn)

    def statistics(self) -> dict[str, Any]:
        """Counters of the work done, the size of the index, and the most expensive subscriptions.

        `most expensive` lists the patterns that took most of the time spent on trying patterns on documents, each with
        `xpath`, the first `ids`, the number of its `subscriptions`, the number of documents it was `tried on`, and its
        `share` of that time, estimated from the text that was read. Patterns found by look-ups alone are not tried.
        """
        engine, expansion = self.engine, self.subscriptions.expansion()
        size = self.subscriptions.bytes
        return {
            "engine": self.engine_name,
            "subscriptions": len(self.subscriptions),
            "patterns": len(self.subscriptions.table),
            "documents": self._documents,
            "unreadable": self._unreadable,
            "matches": self._matches,
            "index bytes": size,
            "bytes per subscription": size / max(1, len(self.subscriptions)),
            **engine.statistics(),
            **({} if (opaque := engine.table.opaque) is None else opaque.statistics()),
            "most expensive": most_expensive(engine, expansion),
        }

    def save(self, directory: str | os.PathLike[str], *, memo: bool = True) -> None:
        """Write the index to a folder, replacing any index there; `pathcast.open_index` reads it.

        With `memo`, what the engine has learnt from documents so far is saved, too.
        """
        from .stored_index import write_index

        write_index(directory, *self.arrays(memo=memo))

    def arrays(self, *, memo: bool = True) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """The index as facts and arrays, for a snapshot that holds other things, too; `restored_matcher` reads them."""
        from .stored_index import index_state

        # Subscriptions and engine as of one moment; nobody changes these arrays afterwards.
        with self.subscriptions.unchanged():
            self._follow()
            with self._turn:
                return index_state(self, memo=memo)

    def __repr__(self) -> str:
        return f"<Matcher: {self.engine_name}, {len(self.subscriptions):,} subscriptions>"

    # Inside.

    def _follow(self) -> tuple[Engine, Expansion]:
        """A view of the current subscriptions, and the engine, which knows its patterns."""
        while True:
            expansion = self.subscriptions.expansion()
            engine = self.engine
            if engine.table is expansion.rows.table:
                break
            self._change_table()
        version = expansion.version
        if self._followed != (engine, version):
            with self._turn:
                engine.refresh()
            # Another thread may have stored a later version; overwriting it costs only one more refresh.
            self._followed = engine, version
        return engine, expansion

    def keep_up(self) -> None:
        """Index what this thread has just added, so that no match waits for it; called after each single change.

        Nothing is done unless documents were matched since the last time, or one that is matched now has waited for
        some changes: many patterns are indexed faster together.
        """
        self._unindexed += 1
        waits = self._turns.in_progress and self._unindexed >= _INDEXED_TOGETHER
        if (self._is_used or waits) and isinstance(self.engine, Concurrent):
            self._is_used, self._unindexed = False, 0
            self._follow()

    def prepare(self, before: PatternTable, table: PatternTable) -> None:
        """Build the engine for a table that will replace another, so that no match waits for it."""
        with self._lock:
            # A matcher that has not been used since an earlier change of tables is skipped until it is used again.
            self._next = self._engine_for(table) if self.engine.table is before else None

    def _engine_for(self, table: PatternTable) -> Engine:
        """An engine for another table; it inherits what this engine has learnt, if their names are the same."""
        entries = table.entries_of(self.engine.table)
        if entries is not None and isinstance(self.engine, Mergeable):
            engine = self.engine.successor(table, entries)
        else:
            engine = engine_class(self.engine.name).build(table)
        if table.names is self.engine.table.names and isinstance(engine, Learning):
            engine.learn_from(self.engine)
        return engine

    def _change_table(self) -> None:
        """Continue with an engine for the table that replaced the engine's own."""
        with self._lock:
            table = self.subscriptions.expansion().rows.table
            if table is not None and self.engine.table is not table:
                engine, self._next = self._next, None
                if engine is None or engine.table is not table:
                    engine = self._engine_for(table)
                if table.names is not self.engine.table.names:
                    # What was learnt refers to other names. (Batches read with those names are still understood.)
                    self._reader = Reader(table.names, self._reader.limits, self._reader.entities)
                if isinstance(engine, Learning):
                    engine.count_on(self.engine)
                if isinstance(engine, Limited):
                    engine.limits = self._reader.limits
                self.engine = engine

    def _match(self, batch: DocumentBatch) -> tuple[Int64s, Int32s, Expansion]:
        engine, expansion = self._follow()
        return *self._matched(engine, batch), expansion

    def _match_ids(self, batch: DocumentBatch, *, ordered: bool = False) -> tuple[Int64s, Int32s]:
        engine, expansion = self._follow()
        offsets, ids = _ids_of_all(engine, expansion, *self._matched(engine, batch))
        return offsets, (expansion.ordered(offsets, ids) if ordered else ids)

    def _matched(self, engine: Engine, batch: DocumentBatch) -> tuple[Int64s, Int32s]:
        with self._turn:
            offsets, entries = engine.match_batch(batch)
        self._is_used = True
        with self._counting:
            self._documents += len(batch)
            self._unreadable += len(batch.errors)
            self._matches += len(entries)
        return offsets, entries


def _ids_of_all(engine: Engine, expansion: Expansion, offsets: Int64s, entries: Int32s) -> tuple[Int64s, Int32s]:
    """The ids of documents that match these entries."""
    found = expansion.ids_of_all(offsets, entries)
    if isinstance(engine, Grouping):
        expansion.rows.count_written(len(found[1]), engine.entry_order())
    return found


def _groups(documents: Iterable[Readable | Document], largest: int) -> Iterator[Group]:
    """Documents in groups that are read together; one that was already read is a group of its own."""
    waiting: list[Readable] = []
    size = 0
    try:
        for document in documents:
            if waiting and (isinstance(document, Document) or len(waiting) >= _GROUP or size >= _GROUP_BYTES):
                yield waiting
                waiting, size = [], 0
            if isinstance(document, Document):
                yield document
            else:
                waiting.append(document)
                size += len(document) if isinstance(document, _SIZED) else content_bound(document, largest)
    except Exception:
        if waiting:
            yield waiting
        raise
    if waiting:
        yield waiting


def _answers(groups: Iterable[list[Matches | PathcastError]], errors: str) -> Iterator[Matches | PathcastError]:
    for answers in groups:
        for answer in answers:
            if isinstance(answer, PathcastError) and errors == "raise":
                raise answer
            yield answer
