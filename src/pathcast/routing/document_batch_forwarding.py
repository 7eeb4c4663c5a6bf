"""Batch routing: many documents at one router, read once for all routers and matched together.

Under policies that forward late, without structure annotations, one table for all routers answers everything at once:
the deliveries, the visits and (`batch/link_annotations.py`) the annotations. Without that table, a router that adds no
annotations (policy `L`) does the same for every document: it matches, and sends a copy with an empty header to each
target. So one call matches all documents of a batch, and copies are document numbers, not bytes. Otherwise annotations
are processed document by document (`document_forwarding.py`), but nothing is timed, the elements that were read once
are used even if a structure annotation could be decoded, and one call matches all documents when the first of them
needs it. Engines that skip entries by annotations, and streams, match each document by itself.

Invariant: deliveries, headers and sizes are those of `DocumentForwarding`, document by document.
Cost: the engine's time per document; some nanoseconds per match, or about 100 µs for the annotations of a message.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.errors import PathcastError
from pathcast.kernels import Int32s, Int64s
from pathcast.matching import Engine, Entries, Expiring, Mask, Offsets, Skipping
from pathcast.store import offsets_of

from .annotation_header_codec import encode
from .annotations.document_annotations import NOTHING, Annotations
from .batch.link_annotations import Headers, LinkAnnotations
from .document_forwarding import DocumentForwarding
from .document_route_report import RouterReport, Step
from .forwarding_policy import Policy
from .router import Router
from .router_processing_time import StoppedClock
from .snapshot.stored_overlay import StoredOverlay
from .structure.structure_coders_by_neighbour import ReceivedStructure
from .whole_overlay_table import RouterVisits

T = TypeVar("T")
_STOPPED = StoppedClock()


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages for one router from one sender: document numbers in a batch; one header for all, or one per document."""

    router: str
    sender: str | None
    documents: Int64s
    headers: Sequence[bytes]

    def header(self, place: int) -> bytes:
        """The header of the message at a place."""
        return self.headers[0] if len(self.headers) == 1 else self.headers[place]


class MessageHeaders(NamedTuple):
    """The header of each visit, by its number; the patterns of its router, and those that annotations made needless."""

    headers: Sequence[bytes] | Headers
    number: Int64s
    patterns: Int64s
    skipped: Int64s


@dataclass(frozen=True, slots=True)
class HandledMessages:
    """The result of a router for some messages.

    Message `i` is delivered to `names[subscribers[offsets[i] : offsets[i + 1]]]`; `names` is the same list for all
    messages that were matched together. `errors` has the messages that failed; `sent` has the outgoing copies. The
    router has `patterns`, of which annotations made needless `skipped`, for each message.
    """

    messages: Messages
    offsets: Int64s
    subscribers: Int32s
    names: list[str]
    errors: dict[int, PathcastError]
    sent: list[Messages]
    patterns: int
    skipped: Int64s


class ReadBatch:
    """A batch of parsed documents, and each of them as a separate batch, created on demand."""

    def __init__(self, batch: DocumentBatch) -> None:
        self.batch = batch
        self._alone: dict[int, DocumentBatch] = {}

    def alone(self, number: int) -> DocumentBatch:
        """One document; its errors at one router do not carry over to the next."""
        found = self._alone.get(number)
        if found is None:
            found = self._alone[number] = self.batch[number].alone()
        found.errors.clear()
        return found


class MatchedBatch:
    """The matches of a batch's documents at one router, computed for all on first use."""

    def __init__(self, batch: DocumentBatch, engine: Engine) -> None:
        self._batch, self._engine = batch, engine

    @cached_property
    def _found(self) -> tuple[Offsets, Entries, dict[int, PathcastError]]:
        before = set(self._batch.errors)
        offsets, entries = self._engine.match_batch(self._batch)
        failed = {number: self._batch.errors.pop(number) for number in self._batch.errors.keys() - before}
        return offsets, entries, failed

    def entries(self, number: int) -> Entries:
        """The entries that a document matches; raises the document's error, if any."""
        offsets, entries, failed = self._found
        if number in failed:
            raise failed[number]
        return entries[offsets[number] : offsets[number + 1]]


class Read(DocumentForwarding):
    """Handles a parsed document, without timing."""

    def __init__(
        self,
        read: ReadBatch,
        number: int,
        matched: MatchedBatch | None,
        router: Router,
        sender: str | None,
        policy: Policy,
        engine: str,
    ) -> None:
        super().__init__(router, sender, policy, engine, _STOPPED, RouterReport(0.0, 0))
        self._of, self._number, self._matched = read, number, matched

    def _timed(self, kind: Step, step: Callable[[], T]) -> T:
        return step()

    def _read(self, data: bytes) -> DocumentBatch:
        return self._of.alone(self._number)

    def _match(self, batch: DocumentBatch, skip: Mask, expiry: Entries | None) -> Entries:
        return super()._match(batch, skip, expiry) if self._matched is None else self._matched.entries(self._number)

    def _match_quickly(self, came: ReceivedStructure) -> Entries | None:
        return super()._match_quickly(came) if self._matched is None else self._matched.entries(self._number)

    def _decode(self) -> DocumentBatch | None:
        return None if self._came is None else self._of.alone(self._number)


class BulkRouting:
    """Routes messages through the routers of an overlay from disk, with one policy and engine."""

    def __init__(self, overlay: StoredOverlay, policy: Policy, engine: str) -> None:
        self.overlay, self.policy, self.engine = overlay, policy, engine
        self._together = policy == Policy("L")
        self._annotations: LinkAnnotations | None = None

    def first(self, documents: Int64s, *, text: bool) -> Messages:
        """The messages of new documents at the source."""
        return Messages(self.overlay.source, None, documents, [encode(NOTHING, text=text).header])

    def visits(self, batch: DocumentBatch, *, links: bool, text: bool) -> "tuple[RouterVisits, MessageHeaders] | None":
        """The routers that each document of a batch reaches, with the headers of messages, by one table for all
        routers; None without a table, or if the documents must be processed one by one.
        """
        whole = self.overlay.whole if self.policy.in_batches else None
        if whole is None:
            return None
        found = whole.match(batch, self.engine)
        patterns = np.array([self.overlay.patterns(router) for router in whole.routers], dtype=np.int64)
        if self._together:
            visits = whole.visits(found, links=links)
            headers = [self.header(router, text=text) for router in visits.order]
            return visits, MessageHeaders(
                headers, visits.routers, patterns[visits.routers], np.zeros_like(visits.routers)
            )
        if self._annotations is None:
            self._annotations = LinkAnnotations(self.overlay, self.policy)
        made = self._annotations.visits(batch, found, text=text)
        if made is None:
            return None
        visits = whole.visits(found, links=links)
        place, wanted = (visits.routers, visits.documents), patterns[visits.routers]
        return visits, MessageHeaders(made.headers, made.number[place], wanted, wanted - made.needed[place])

    def header(self, router: str, *, text: bool) -> bytes:
        """The header of all messages to a router, for policies without annotations."""
        annotations = NOTHING if router == self.overlay.source else Annotations(self.overlay.version(router))
        return encode(annotations, text=text).header

    def handle(self, messages: Messages, read: ReadBatch, *, text: bool) -> HandledMessages:
        """Handle messages at their router; `read` has the elements and bytes of their documents."""
        return self._all(messages, read.batch, text) if self._together else self._each(messages, read)

    def _all(self, messages: Messages, batch: DocumentBatch, text: bool) -> HandledMessages:
        router = self.overlay.router(messages.router)
        view = router.table.view(messages.sender)
        chosen = np.zeros(len(batch), dtype=np.bool_)
        chosen[messages.documents] = True
        before = set(batch.errors)
        edges, targets = view.targets_of_each(*router.table.engine(self.engine).match_batch(batch), chosen)
        failed = {number: batch.errors.pop(number) for number in batch.errors.keys() - before}
        errors = {place: failed[number] for place, number in enumerate(messages.documents.tolist()) if number in failed}
        documents = np.repeat(np.arange(len(batch)), np.diff(edges))
        sent = []
        for number in range(view.routers):
            copies = documents[targets == number]
            if len(copies):
                name = view.targets[number].name
                header = self.header(name, text=text)
                sent.append(Messages(name, router.name, copies, [header]))
        local = targets >= view.routers
        counts = np.bincount(documents[local], minlength=len(batch))[messages.documents]
        offsets = offsets_of(counts)
        place = np.empty(len(batch), dtype=np.int64)
        place[messages.documents] = np.arange(len(messages.documents))
        order = np.argsort(place[documents[local]], kind="stable")
        subscribers = (targets[local] - view.routers)[order].astype(np.int32)
        skipped = np.zeros(len(messages.documents), dtype=np.int64)
        return HandledMessages(messages, offsets, subscribers, view.local_names, errors, sent, view.busy, skipped)

    def _each(self, messages: Messages, read: ReadBatch) -> HandledMessages:
        router = self.overlay.router(messages.router)
        matched = self._matched(router, read.batch)
        names: list[str] = []
        offsets = [0]
        errors: dict[int, PathcastError] = {}
        skipped = np.zeros(len(messages.documents), dtype=np.int64)
        copies: dict[str, tuple[list[int], list[bytes]]] = {}
        for place, number in enumerate(messages.documents.tolist()):
            handling = Read(read, number, matched, router, messages.sender, self.policy, self.engine)
            try:
                outcome = handling.run(messages.header(place) + read.batch[number].data)
            except PathcastError as error:
                errors[place] = error
            else:
                skipped[place] = handling.report.wanted - handling.report.needed
                names += sorted(name for name, _ in outcome.deliveries)
                for sending in outcome.sendings:
                    numbers, headers = copies.setdefault(sending.neighbour, ([], []))
                    numbers.append(number)
                    headers.append(sending.header.header)
            offsets.append(len(names))
        sent = [
            Messages(name, router.name, np.array(numbers, dtype=np.int64), headers)
            for name, (numbers, headers) in copies.items()
        ]
        columns = np.array(offsets, dtype=np.int64), np.arange(len(names), dtype=np.int32)
        busy = router.table.view(messages.sender).busy
        return HandledMessages(messages, *columns, names, errors, sent, busy, skipped)

    def _matched(self, router: Router, batch: DocumentBatch) -> MatchedBatch | None:
        """The matches of all documents, if the engine does not skip entries by annotations; otherwise None."""
        engine = router.table.engine(self.engine)
        return None if isinstance(engine, Skipping | Expiring) else MatchedBatch(batch, engine)
