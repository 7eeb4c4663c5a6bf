"""Documents as deliveries show them, and their server-sent events, encoded once for all readers.

    id: 4711
    event: document
    data: {"sequence": 4711, "feed": "news", …, "body": "<nitf>…"            the shared part, kept for a while
          , "subscriptions": ["a", "b"]}                                     a reader's own part

Invariant: the shared part depends on the document alone, so it has the same bytes for every reader.
Cost: encoding 4 KB, some 10 µs; an event that is kept, 1 µs. The memory is bounded in bytes; what was encoded first
leaves first. An event that would take a large part of the memory is not kept.
Threads: that of the event loop alone.
"""

import asyncio
from typing import Final, NotRequired, TypedDict

from msgspec import json

from pathcast.broker_log import DocumentRecord, Failure
from pathcast.log import LogEntry

from ..deliveries.document_cache import RecentDocuments

BYTES: Final = 8 << 20

Documents = list[tuple[LogEntry, DocumentRecord]]


class ShownDocument(TypedDict):
    """A document as deliveries show it; a body that is not UTF-8 comes in Base64. `time`: seconds since 1970, UTC.

    `schema`: the publisher's schema, from which the feed's mediator maps.
    """

    sequence: int
    feed: str
    time: float
    media_type: str
    id: NotRequired[str]
    attributes: NotRequired[dict[str, str]]
    error: NotRequired[Failure]
    schema: NotRequired[str]
    link: NotRequired[str]
    body: NotRequired[str]
    body_base64: NotRequired[bytes]


class DocumentEvent(ShownDocument):
    """A document in a subscriber's events, with the ids of the subscriptions that match."""

    subscriptions: list[str]


class DocumentEvents:
    """The events of documents that were delivered recently."""

    def __init__(self, capacity: int = BYTES) -> None:
        self.capacity = capacity
        self.bytes = 0
        self._reading: dict[tuple[int, ...], asyncio.Future[Documents]] = {}
        self._shared: dict[tuple[int, bool], bytes] = {}

    async def documents(self, recent: RecentDocuments, sequences: list[int]) -> Documents:
        """The documents with these sequences; streams that want the same ones at the same time wait for one read."""
        found = recent.cached(sequences)
        if found is not None:
            return found
        key = tuple(sequences)
        reading = self._reading.get(key)
        if reading is None:
            reading = self._reading[key] = asyncio.ensure_future(asyncio.to_thread(recent.entries, sequences))
            reading.add_done_callback(lambda done: self._read(key, done))
        return await asyncio.shield(reading)

    def _read(self, key: tuple[int, ...], done: "asyncio.Future[Documents]") -> None:
        del self._reading[key]
        if not done.cancelled():
            done.exception()  # those who wait for it raise it; nobody may be left

    def event(self, entry: LogEntry, document: DocumentRecord, ids: list[str] | None, *, inline: bool) -> bytes:
        """The event of a document, with the subscriptions `ids` if there are any to name."""
        key = entry.sequence, inline
        shared = self._shared.get(key)
        if shared is None:
            shared = self._kept(key, encoded(entry, document, inline=inline))
        return shared + (b"}\n\n" if ids is None else b',"subscriptions":%s}\n\n' % json.encode(ids))

    def _kept(self, key: tuple[int, bool], shared: bytes) -> bytes:
        if len(shared) <= self.capacity // 8:
            self._shared[key] = shared
            self.bytes += len(shared)
            while self.bytes > self.capacity:
                oldest = next(iter(self._shared))
                self.bytes -= len(self._shared.pop(oldest))
        return shared


def encoded(entry: LogEntry, document: DocumentRecord, *, inline: bool) -> bytes:
    """The part of a document's event that all readers share: everything up to the last brace."""
    shown = json.encode(shown_document(entry, document, inline=inline))
    return b"id: %d\nevent: document\ndata: %s" % (entry.sequence, shown[:-1])


def shown_document(entry: LogEntry, document: DocumentRecord, *, inline: bool = True) -> ShownDocument:
    """A document as deliveries show it; a body that is not UTF-8 comes in Base64."""
    content: ShownDocument = {
        "sequence": entry.sequence,
        "feed": document.feed,
        "time": entry.time / 1_000_000,
        "media_type": document.media_type,
    }
    if document.id is not None:
        content["id"] = document.id
    if document.attributes:
        content["attributes"] = document.attributes
    if document.error is not None:
        content["error"] = document.error
    if document.schema is not None:
        content["schema"] = document.schema
    if not inline:
        content["link"] = f"/v1/documents/{entry.sequence}"
    else:
        try:
            content["body"] = entry.body.decode()
        except UnicodeDecodeError:
            content["body_base64"] = entry.body
    return content
