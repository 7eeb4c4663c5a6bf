"""Deliveries as server-sent events: one stream per subscription, or per subscriber.

    id: 4711                        the sequence of the document; send it as Last-Event-ID to resume right after it
    event: document
    data: {"sequence": 4711, "feed": "news", …, "body": "<nitf>…"}

    event: gap                      documents that were trimmed before this reader came to them
    data: {"from": 1, "to": 900, "reason": "trimmed"}      "expired" with "feed", if only those of one feed are gone

    id: 4720                        a heartbeat: no event, but the reader's position; at least every 15 seconds
    : heartbeat

A stream does not move the subscription's cursor. A reader that reads slowly costs its connection's buffer and nothing
else: the next document is looked for when the previous one was taken.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

from msgspec import json
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pathcast.broker_log import DocumentRecord, Failure, StandingSubscription
from pathcast.log import LogEntry, TrimmedError

from ... import broker
from ...broker import Broker
from ..metrics import metrics_of
from ..openapi import Answer, Choice, Content, Header, Text, describes
from ..problems import ProblemError
from ..request_context import access_of, broker_of, checked_name, subscription_of, tracing_of, wakeups_of
from ..wakeups import FEEDS, Wakeups

if TYPE_CHECKING:
    from ...observation.tracing import Tracing

HEARTBEAT_SECONDS: Final = 15.0
# Documents per search: a client that disconnects costs at most this many.
_STEP: Final = 64
_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}


Gap = TypedDict("Gap", {"from": int, "to": int, "reason": str, "feed": NotRequired[str]})


class ShownDocument(TypedDict):
    """A document as deliveries show it; a body that is not UTF-8 comes in Base64. `time`: seconds since 1970, UTC."""

    sequence: int
    feed: str
    time: float
    media_type: str
    id: NotRequired[str]
    attributes: NotRequired[dict[str, str]]
    error: NotRequired[Failure]
    link: NotRequired[str]
    body: NotRequired[str]
    body_base64: NotRequired[bytes]


class DocumentEvent(ShownDocument):
    """A document in a subscriber's events, with the ids of the subscriptions that match."""

    subscriptions: list[str]


class End(TypedDict):
    """The data of `event: end`: the subscription was deleted."""


LAST_EVENT_ID: Final = Header("last-event-id", "The id of the last event that came; the stream continues after it.")
AFTER: Final = Text("after", "As Last-Event-ID, for clients that cannot send headers.")
BODIES: Final = Choice("bodies", "Documents with their bodies, or with links to them.", ("inline", "links"))
_SCOPE: Final = "subscribe:{subscriber}"
_PARAMETERS: Final = (LAST_EVENT_ID, AFTER, BODIES)
_EVENTS: Final = Answer(
    Content(ShownDocument | DocumentEvent | Gap | End, "text/event-stream", line=True),
    "Server-sent events `document`, `gap` and `end`; heartbeats carry the position of the stream as their id.",
)


@describes("deliveries", scope=_SCOPE, parameters=_PARAMETERS, responses={200: _EVENTS}, errors=(404,))
async def subscription_events(request: Request) -> Response:
    """GET /v1/subscriptions/{id}/events: stream the documents that match a subscription."""
    subscription_of(request)
    key = access_of(request).tenant, request.path_params["id"]
    state = broker_of(request).state

    def standing() -> list[tuple[str, StandingSubscription]]:
        found = state.subscriptions.get(key)
        return [] if found is None else [(key[1], found)]

    return _stream(request, standing, [("subscription", *key)], named=False)


@describes("deliveries", scope="subscribe:{name}", parameters=_PARAMETERS, responses={200: _EVENTS})
async def subscriber_events(request: Request) -> Response:
    """GET /v1/subscribers/{name}/events: stream each document once, with all matching subscriptions of a subscriber."""
    name = checked_name(request.path_params["name"], "subscriber")
    access, state = access_of(request), broker_of(request).state
    access.check_subscriber(name)

    def standing() -> list[tuple[str, StandingSubscription]]:
        found = [(id, state.subscriptions.get((access.tenant, id))) for id in _ids()]
        return [(id, each) for id, each in found if each is not None]

    def _ids() -> list[str]:
        return state.directory.all_of(access.tenant, name)

    return _stream(request, standing, [("subscriber", access.tenant, name)], named=True)


def _stream(
    request: Request,
    standing: Callable[[], list[tuple[str, StandingSubscription]]],
    keys: list[Hashable],
    *,
    named: bool,
) -> Response:
    """A stream of the deliveries of some subscriptions."""
    broker = broker_of(request)
    position, gap = _position(request, broker)
    inline = BODIES.of(request) == "inline"
    if request.method == "HEAD":  # the stream would never end, and the connection would serve no other request
        return Response(headers=_HEADERS, media_type="text/event-stream")
    stream = EventStream(broker, wakeups_of(request), standing, keys, position)
    stream.tracing = tracing_of(request)
    stream.delivered = partial(metrics_of(request).delivered, "events")
    events = stream.events(gap, inline=inline, named=named)
    return StreamingResponse(events, headers=_HEADERS, media_type="text/event-stream")


def _position(request: Request, broker: Broker) -> tuple[int, Gap | None]:
    """Where a stream begins, and the gap to report first."""
    text = LAST_EVENT_ID.of(request) or AFTER.of(request)
    head = broker.matched_to
    if text is None or text == "":
        return head, None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ProblemError(400, f"Last-Event-ID {text[:40]!r} is not a sequence; send the id of an event, or none")
    if int(text) > head:
        return head, {"from": head + 1, "to": int(text), "reason": "unknown"}
    return int(text), None


class EventStream:
    """The deliveries of some subscriptions after a position, as they come."""

    def __init__(
        self,
        broker: Broker,
        wakeups: Wakeups,
        standing: Callable[[], list[tuple[str, StandingSubscription]]],
        keys: list[Hashable],
        position: int,
    ) -> None:
        self._broker = broker
        self._wakeups = wakeups
        self._standing = standing
        self._keys = keys
        self._position = position
        self._expired: dict[str, int] = {}  # per feed, the end of the last gap that was reported
        self.tracing: Tracing | None = None
        self.delivered: Callable[[list[int]], object] = list  # called with what was just written

    async def events(self, gap: Gap | None, *, inline: bool, named: bool) -> AsyncIterator[bytes]:
        """The stream's bytes."""
        # The first bytes come at once: they show the client that the stream is open, and where it begins.
        yield _heartbeat(self._position)
        if gap is not None:
            yield _gap_event(gap)
        while self._broker.failure is None:
            with self._wakeups.registered(self._all_keys()) as event:
                async for chunk in self._new(inline=inline, named=named):
                    yield chunk
                if not self._standing() and not named:
                    yield b"event: end\ndata: {}\n\n"
                    return
                try:
                    await asyncio.wait_for(event.wait(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    # Everything up to here was searched, so a reader that resumes here misses nothing.
                    self._position = max(self._position, await self._searched_position())
                    yield _heartbeat(self._position)

    def _all_keys(self) -> list[Hashable]:
        keys = [*self._keys, FEEDS]
        indexes = self._broker.indexes
        for _, standing in self._standing():
            record = standing.record
            for feed in record.feeds or tuple(indexes):
                index = indexes.get(feed)
                pattern = None if index is None else index.pattern(record.pattern)
                if pattern is not None:
                    keys.append(("pattern", feed, pattern.number))
        return keys

    async def _searched_position(self) -> int:
        """A position without deliveries between it and this stream's own."""
        sequences, searched = await self._search()
        return searched if not sequences else self._position

    async def _new(self, *, inline: bool, named: bool) -> AsyncIterator[bytes]:
        """Events for everything up to the present."""
        while True:
            for gap in self._new_gaps():
                yield gap
            try:
                head = self._broker.matched_to
                found, searched = await self._search()
            except TrimmedError as error:
                for _, standing in self._standing():
                    standing.failed(f"documents up to {error.first - 1} were trimmed before a stream came to them")
                yield _gap_event({"from": self._position + 1, "to": error.first - 1, "reason": "trimmed"})
                self._position = error.first - 1
                continue
            sequences = sorted(found)
            try:
                entries = self._broker.recent.cached(sequences)
                if entries is None:
                    entries = await asyncio.to_thread(self._broker.recent.entries, sequences)
            except TrimmedError:
                continue
            try:
                for sequence, (entry, document) in zip(sequences, entries, strict=True):
                    yield _document_event(entry, document, found[sequence] if named else None, inline=inline)
                    self._position = sequence
                    self.delivered([sequence])
                    if self.tracing is not None:
                        self.tracing.delivered("events", entry, document)
            finally:
                self._note(found)
            self._position = max(self._position, searched)
            if searched >= head:
                return

    def _note(self, found: dict[int, list[str]]) -> None:
        """Keep for the status of each subscription which document was written last; once per search."""
        last = {id: sequence for sequence in sorted(found) if sequence <= self._position for id in found[sequence]}
        for id, standing in self._standing() if last else ():
            if id in last:
                standing.delivered(last[id], "events")

    def _new_gaps(self) -> list[bytes]:
        """Events for feeds whose documents after the position have expired; other feeds may have some, so it stays."""
        events: list[bytes] = []
        for _, standing in self._standing() if self._broker.state.expired else ():
            for gap in self._broker.expired(standing, self._position):
                assert gap.feed is not None
                if self._expired.get(gap.feed, 0) < gap.end:
                    self._expired[gap.feed] = gap.end
                    events.append(_gap_event(shown_gap(gap)))
        return events

    async def _search(self) -> tuple[dict[int, list[str]], int]:
        """The next deliveries, each with the subscriptions it is for, and how far the search came."""
        position = self._position
        standing = self._standing()
        results = []
        searched = self._broker.matched_to
        for id, each in standing:
            quick = self._broker.deliveries(each, position, _STEP, scan=False)
            if quick.searched_to <= position < self._broker.matched_to:
                quick = await asyncio.to_thread(self._broker.deliveries, each, position, _STEP)
            results.append((id, quick.sequences))
            searched = min(searched, quick.searched_to)
        found: dict[int, list[str]] = {}
        for id, sequences in results:
            for sequence in sequences:
                if sequence <= searched:
                    found.setdefault(sequence, []).append(id)
        return found, searched


def _heartbeat(position: int) -> bytes:
    return b"id: %d\n: heartbeat\n\n" % position


def _gap_event(gap: Gap) -> bytes:
    return b"event: gap\ndata: %s\n\n" % json.encode(gap)


def _document_event(entry: LogEntry, document: DocumentRecord, ids: list[str] | None, *, inline: bool) -> bytes:
    content = shown_document(entry, document, inline=inline)
    shown: ShownDocument | DocumentEvent = content if ids is None else {**content, "subscriptions": ids}
    return b"id: %d\nevent: document\ndata: %s\n\n" % (entry.sequence, json.encode(shown))


def shown_gap(gap: broker.Gap) -> Gap:
    """A gap as deliveries show it: both ends inclusive."""
    shown: Gap = {"from": gap.begin, "to": gap.end - 1, "reason": gap.reason}
    return shown if gap.feed is None else {**shown, "feed": gap.feed}


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
    if not inline:
        content["link"] = f"/v1/documents/{entry.sequence}"
    else:
        try:
            content["body"] = entry.body.decode()
        except UnicodeDecodeError:
            content["body_base64"] = entry.body
    return content
