"""Many documents at one router: read once for all routers, and matched together where no annotations are made.

A router that forwards late and adds no annotations (policy `L`) does the same for every document: it matches, and sends
a copy with an empty header to everyone who wants it. So documents that are in hand together are matched by one call,
and their copies are numbers, not bytes. Under other policies each document is handled by itself (`handling.py`), from
the elements that were read once.

Invariant: deliveries, headers and sizes are those that `Handling` gives, document by document.
Cost: the engine's a document, and some nanoseconds for each match.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..documents import DocumentBatch
from ..errors import PathcastError
from .annotations import NOTHING, Annotations
from .clock import Clock
from .handling import Handling
from .policy import Policy
from .report import RouterReport
from .stored import StoredOverlay
from .whole import Visited
from .wire import encode

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages for one router from one sender: the documents' numbers in a batch; one header for all, or one each."""

    router: str
    sender: str | None
    documents: Int64s
    headers: Sequence[bytes]

    def header(self, place: int) -> bytes:
        """The header of the message at a place."""
        return self.headers[0] if len(self.headers) == 1 else self.headers[place]


@dataclass(frozen=True, slots=True)
class Handled:
    """What a router did with messages.

    Message `i` is delivered to `names[subscribers[offsets[i] : offsets[i + 1]]]`; `names` is the same list for all
    messages that were matched together. `errors` has messages that could not be handled; `sent` are the copies that
    leave.
    """

    messages: Messages
    offsets: Int64s
    subscribers: Int32s
    names: list[str]
    errors: dict[int, PathcastError]
    sent: list[Messages]


class Read(Handling):
    """Handles a document that was read already."""

    def __init__(self, batch: DocumentBatch, *more: object) -> None:
        super().__init__(*more)  # type: ignore[arg-type]
        self._batch = batch

    def _read(self, data: bytes) -> DocumentBatch:
        return self._batch


class BulkRouting:
    """Takes messages through the routers of an overlay from disk, by one policy and engine."""

    def __init__(self, overlay: StoredOverlay, policy: Policy, engine: str) -> None:
        self.overlay, self.policy, self.engine = overlay, policy, engine
        self._together = policy == Policy("L")

    def first(self, documents: Int64s, *, text: bool) -> Messages:
        """Documents as they come to the source."""
        return Messages(self.overlay.source, None, documents, [encode(NOTHING, text=text).header])

    def visits(self, batch: DocumentBatch, *, links: bool) -> Visited | None:
        """Where all documents of a batch came to, by one table for all routers; None where there is none for it."""
        whole = self.overlay.whole if self._together else None
        return None if whole is None else whole.visits(batch, self.engine, links=links)

    def header(self, router: str, *, text: bool) -> bytes:
        """The header of all messages that come to a router, where no annotations are made."""
        annotations = NOTHING if router == self.overlay.source else Annotations(self.overlay.version(router))
        return encode(annotations, text=text).header

    def handle(self, messages: Messages, batch: DocumentBatch, *, text: bool) -> Handled:
        """Take messages through their router; `batch` has the elements of their documents and their bytes."""
        return self._all(messages, batch, text) if self._together else self._each(messages, batch)

    def _all(self, messages: Messages, batch: DocumentBatch, text: bool) -> Handled:
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
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        place = np.empty(len(batch), dtype=np.int64)
        place[messages.documents] = np.arange(len(messages.documents))
        order = np.argsort(place[documents[local]], kind="stable")
        subscribers = (targets[local] - view.routers)[order].astype(np.int32)
        return Handled(messages, offsets, subscribers, view.local_names, errors, sent)

    def _each(self, messages: Messages, batch: DocumentBatch) -> Handled:
        router = self.overlay.router(messages.router)
        names: list[str] = []
        offsets = [0]
        errors: dict[int, PathcastError] = {}
        copies: dict[str, tuple[list[int], list[bytes]]] = {}
        for place, number in enumerate(messages.documents.tolist()):
            document = batch[number]
            message = messages.header(place) + document.data
            report = RouterReport(0.0, len(message))
            handling = Read(document.alone(), router, messages.sender, self.policy, self.engine, Clock(1), report)
            try:
                outcome = handling.run(message)
            except PathcastError as error:
                errors[place] = error
            else:
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
        return Handled(messages, *columns, names, errors, sent)
