"""Matching documents of any registered schema against subscriptions to the global one.

`events` (NDDR): documents are read once, rewritten as element arrays, and matched; where label paths suffice, they are
not even rewritten (`label_path_rewriting.py`). `engine` (IDDR): rewritten inside the engine `xtrie`
(`rewriting_xtrie_engine.py`). `queries` (QRA): subscriptions are rewritten, for each schema (`query_rewriter.py`).
`static` (SDR): rewritten as a document, which is then read and matched like any other; tests compare the others with
it.

Invariant: all return the same matches. An unreadable document, an unknown schema or version, or a document of another
schema is an error of that document.
Cost: `events` adds two walks over the elements to reading and matching. Each schema has its own table of names, so that
the documents of many publishers do not share a large one.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

import numpy as np

from pathcast.documents import DocumentBatch, Entities, Limits, Names, Readable, Reader
from pathcast.errors import PathcastError
from pathcast.literature.xtrie import XTrieEngine
from pathcast.matching import Matches, Subscriptions, View
from pathcast.matching.table import PatternTable

from .mappings.document_object_tree import item_of, to_bytes
from .mappings.document_with_mapping_message import unpack
from .mappings.schema_mapping import Mapping
from .rewriting.element_array_rewriter import EventRewriter
from .rewriting.label_path_rewriting import PathMediation, is_by_paths, known_documents
from .rewriting.query_rewriter import QueryIndex
from .rewriting.rewriting_xtrie_engine import MediatedEngine

if TYPE_CHECKING:
    from .mediator import Mediator, Rewriting

REWRITINGS: tuple["Rewriting", ...] = ("events", "engine", "static", "queries")
# Documents of one schema are read and matched in groups of this size.
_GROUP = 256
# Readers are cached for up to this many mappings; documents may include many different mappings.
_KEPT = 1000


class MediatedMatcher:
    """Matches documents of all publishers; made by `Mediator.compile`."""

    def __init__(
        self,
        mediator: "Mediator",
        subscriptions: Subscriptions,
        rewriting: "Rewriting",
        *,
        engine: str | None,
        limits: Limits | None,
        entities: Entities,
    ) -> None:
        if rewriting not in REWRITINGS:
            raise ValueError(f"rewriting must be one of {', '.join(map(repr, REWRITINGS))}, got {rewriting!r}")
        if rewriting == "engine" and engine not in (None, "xtrie"):
            raise ValueError(f"rewriting='engine' needs engine='xtrie' or None, got engine={engine!r}; omit engine=")
        self.mediator = mediator
        engine = "xtrie" if rewriting == "engine" else engine
        self.matcher = subscriptions.compile(engine, limits=limits, entities=entities)
        self.rewriting = rewriting
        self.limits, self.entities = Limits.given(limits), entities
        self._counts = {"documents": 0, "by paths": 0, "held": 0, "delegated": 0}
        self._bridges: dict[bytes, _Bridge] = {}
        self._mediated: MediatedEngine | None = None

    def match(self, document: Readable, schema: str, version: int | None = None) -> Matches:
        """The subscriptions that a document matches in the global schema; raises the document's error."""
        (found,) = self._match_group([document], self.mediator.mapping(schema, version))
        if isinstance(found, PathcastError):
            raise found
        return found

    def match_message(self, data: bytes) -> tuple[Matches, bytes]:
        """The matches of a document with its mapping, or with a reference to a mapping of the mediator.

        Also returns the document itself, as it was sent. `MessageError` for other bytes, `MappingError` for a mapping
        that is unknown, or differs from the one that the message names.
        """
        envelope = unpack(data)
        mapping = envelope.mapping
        if mapping is None:
            mapping = self.mediator.mapping(envelope.name, envelope.version)
            envelope.check(mapping)
        (found,) = self._match_group([envelope.document], mapping)
        if isinstance(found, PathcastError):
            raise found
        return found, envelope.document

    @overload
    def match_many(
        self, documents: Iterable[Readable], schemas: str | Sequence[str], errors: Literal["raise"] = ...
    ) -> Iterator[Matches]: ...
    @overload
    def match_many(
        self, documents: Iterable[Readable], schemas: str | Sequence[str], errors: Literal["return"]
    ) -> Iterator[Matches | PathcastError]: ...
    def match_many(
        self,
        documents: Iterable[Readable],
        schemas: str | Sequence[str],
        errors: Literal["raise", "return"] = "raise",
    ) -> Iterator[Matches | PathcastError]:
        """Match documents, in their order, all of one schema or each with its own.

        With `errors="return"` an error takes the place of its document's matches.
        """
        if errors not in ("raise", "return"):
            raise ValueError(f"errors must be 'raise' or 'return', got {errors!r}")
        given = iter(documents)
        at = 0
        while group := list(islice(given, _GROUP)):
            names = [schemas] * len(group) if isinstance(schemas, str) else list(schemas[at : at + len(group)])
            if len(names) < len(group):
                raise ValueError(f"no schema for the document at index {at + len(names)}; give one schema per document")
            at += len(group)
            for answer in self._match_mixed(group, names):
                if errors == "raise" and isinstance(answer, PathcastError):
                    raise answer
                yield answer

    def _match_mixed(self, documents: list[Readable], schemas: list[str]) -> list[Matches | PathcastError]:
        """The answers of documents of several schemas; those of one are matched together."""
        answers: list[Matches | PathcastError | None] = [None] * len(documents)
        by_schema: dict[str, list[int]] = {}
        for place, schema in enumerate(schemas):
            by_schema.setdefault(schema, []).append(place)
        for schema, places in by_schema.items():
            try:
                mapping = self.mediator.mapping(schema)
            except PathcastError as error:
                found: list[Matches | PathcastError] = [error] * len(places)
            else:
                found = self._match_group([documents[place] for place in places], mapping)
            for place, answer in zip(places, found, strict=True):
                answers[place] = answer
        return [answer for answer in answers if answer is not None]

    def _match_group(self, documents: list[Readable], mapping: Mapping) -> list[Matches | PathcastError]:
        bridge = self._bridge(mapping)
        batch = bridge.reader.read(documents, borrowed=True)
        self._counts["documents"] += len(batch)
        if self.rewriting == "static":
            return self._match_static(batch, mapping)
        view = self.matcher.view()
        if self.rewriting == "engine" and view.table.opaque is None:
            return self._match_in_engine(batch, bridge, view)
        if self.rewriting == "queries":
            return self._match_queries(batch, bridge, mapping, view)
        if self.rewriting == "engine" or bridge.by_paths is None or len(view.table.trees):
            return self._match_rewritten(batch, bridge)
        found = bridge.by_paths.match(batch, view)
        rest = [index for index, entries in enumerate(found) if entries is None]
        self._counts["by paths"] += len(batch) - len(rest)
        rewritten = self._match_rewritten(batch, bridge) if rest else []
        return [
            Matches(entries, view.expansion) if entries is not None else rewritten[index]
            for index, entries in enumerate(found)
        ]

    def _match_in_engine(self, batch: DocumentBatch, bridge: "_Bridge", view: View) -> list[Matches | PathcastError]:
        assert isinstance(view.engine, XTrieEngine)
        if self._mediated is None or self._mediated.engine is not view.engine:
            self._mediated = MediatedEngine(view.engine)
        with view.turn:
            offsets, entries, errors = self._mediated.match(batch, bridge.rewriter)
        self._counts["delegated"] = self._mediated.documents
        return [
            errors.get(index) or Matches(found[found < view.size], view.expansion)
            for index, found in enumerate(np.split(entries, offsets[1:-1]) if len(batch) else [])
        ]

    def _match_queries(
        self, batch: DocumentBatch, bridge: "_Bridge", mapping: Mapping, view: View
    ) -> list[Matches | PathcastError]:
        """Match by rewritten subscriptions; by rewritten documents where patterns or documents need it."""
        index = bridge.queries.get(view.table)
        if index is None:
            bridge.queries.clear()
            index = bridge.queries[view.table] = QueryIndex(mapping.plan, view.table)
        rest = index.follow(view.size)
        is_known = known_documents(batch, bridge.rewriter.tables)
        found = index.match(batch)
        errors: dict[int, PathcastError] = {}
        if len(rest) or not is_known.all():
            with self._rewritten(batch, bridge) as rewritten:
                errors = rewritten.errors
                offsets, entries = view.match_batch(rewritten)
            for place, (begin, end) in enumerate(pairwise(offsets.tolist())):
                seen = entries[begin:end]
                found[place] = np.union1d(found[place], np.intersect1d(seen, rest)) if is_known[place] else seen
        return [
            errors.get(place) or Matches(entries[entries < view.size].astype(np.int32), view.expansion)
            for place, entries in enumerate(found)
        ]

    @contextmanager
    def _rewritten(self, batch: DocumentBatch, bridge: "_Bridge") -> Iterator[DocumentBatch]:
        with bridge.rewriter.lent(batch, self.matcher.subscriptions.table.names) as (rewritten, held):
            self._counts["held"] = max(self._counts["held"], held)
            yield rewritten

    def _match_rewritten(self, batch: DocumentBatch, bridge: "_Bridge") -> list[Matches | PathcastError]:
        with self._rewritten(batch, bridge) as rewritten:
            return self.matcher.match_read(rewritten)

    def _match_static(self, batch: DocumentBatch, mapping: Mapping) -> list[Matches | PathcastError]:
        texts: list[bytes | PathcastError] = []
        for index in range(len(batch)):
            try:
                texts.append(batch.errors.get(index) or to_bytes(mapping.rewrite(item_of(batch[index]))))
            except PathcastError as error:
                texts.append(error)
        good = iter(list(self.matcher.match_many((text for text in texts if isinstance(text, bytes)), "return")))
        return [text if isinstance(text, PathcastError) else next(good) for text in texts]

    def statistics(self) -> dict[str, int]:
        """Counts so far.

        documents; by paths: documents that were not rewritten; held: the most elements that a stream over a rewritten
        document would have held back; delegated: with rewriting="engine", the documents for which some test was decided
        on rewritten arrays.
        """
        return dict(self._counts)

    def _bridge(self, mapping: Mapping) -> "_Bridge":
        """The reader and rewriter of a mapping, cached for a limited number of mappings."""
        key = mapping.fingerprint
        found = self._bridges.pop(key, None)
        if found is None:
            names = Names()
            rewriter = EventRewriter(mapping.plan, names)
            by_paths = PathMediation(mapping.plan, rewriter.tables) if is_by_paths(mapping.plan) else None
            found = _Bridge(Reader(names, self.limits, self.entities), rewriter, by_paths, {})
        self._bridges[key] = found
        while len(self._bridges) > _KEPT:
            del self._bridges[next(iter(self._bridges))]
        return found


class _Bridge(NamedTuple):
    reader: Reader
    rewriter: EventRewriter
    by_paths: PathMediation | None
    queries: dict[PatternTable, QueryIndex]
