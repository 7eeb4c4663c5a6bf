"""Deliveries as server-sent events: one stream per subscription, or per subscriber.

    id: 4711                        the sequence of the document; send it as Last-Event-ID to resume right after it
    event: document
    data: {"sequence": 4711, "feed": "news", …, "body": "<nitf>…"}

    event: gap                      documents that were trimmed before this reader came to them
    data: {"from": 1, "to": 900, "reason": "trimmed"}      "expired" with "feed", if only those of one feed are gone

    id: 4720                        a heartbeat: no event, but the reader's position; at least every 15 seconds
    : heartbeat

A stream does not move the subscription's cursor. A reader that reads slowly costs its connection's buffer and nothing
else: the next documents are looked for when the previous ones were taken. Events that are due together are written
together, up to 64 KB.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

from msgspec import json
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pathcast.broker_log import DocumentRecord, StandingSubscription
from pathcast.log import LogEntry, LogError, TrimmedError

from ...broker import Broker
from ...deliveries import delivery_leases
from ..delivery_wakeups import FEEDS, Wakeups
from ..document_events import DocumentEvent, DocumentEvents, ShownDocument
from ..metrics import metrics_of
from ..openapi import Answer, Choice, Content, Header, Text, describes
from ..problems import ProblemError
from ..request_context import access_of, broker_of, checked_name, subscription_of, tracing_of, wakeups_of

if TYPE_CHECKING:
    from ...observation.tracing import Tracing

_LOGGER: Final = logging.getLogger(__name__)
HEARTBEAT_SECONDS: Final = 15.0
# Documents per search: a client that disconnects costs at most this many.
_STEP: Final = 64
# Subscriptions from which on those without deliveries are sorted out before the search.
_MANY: Final = 4
# Events that are due are written together, up to this many bytes and one event.
_JOINED: Final = 1 << 16
_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}


Gap = TypedDict("Gap", {"from": int, "to": int, "reason": str, "feed": NotRequired[str]})


class End(TypedDict):
    """The data of `event: end`: the subscription was deleted."""


LAST_EVENT_ID: Final = Header(
    "last-event-id", "The id of the last event received; the stream continues after this event."
)
AFTER: Final = Text("after", "The same as Last-Event-ID, for clients that cannot send headers.")
BODIES: Final = Choice("bodies", "Send documents with their bodies, or with links to the bodies.", ("inline", "links"))
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
    stream = EventStream(broker, wakeups_of(request), standing, keys, position, request.app.state.document_events)
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
        raise ProblemError(
            400, f"Last-Event-ID {text[:40]!r} is not a sequence; send the id of an event, or omit the header"
        )
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
        events: DocumentEvents,
    ) -> None:
        self._broker = broker
        self._wakeups = wakeups
        self._find = standing
        self._found_at, self._found = -1, list[tuple[str, StandingSubscription]]()
        self._keys = keys
        self._position = position
        self._events = events
        self.heartbeat_seconds = HEARTBEAT_SECONDS
        self._waits = False
        self._expired: dict[str, int] = {}  # per feed, the end of the last gap that was reported
        self.tracing: Tracing | None = None
        self.delivered: Callable[[list[int]], object] = list  # called with what was just written

    async def events(self, gap: Gap | None, *, inline: bool, named: bool) -> AsyncIterator[bytes]:
        """The stream's bytes."""
        # The first bytes come at once: they show the client that the stream is open, and where it begins.
        yield _heartbeat(self._position)
        if gap is not None:
            yield _gap_event(gap)
        while self._is_going():
            seen, feeds = self._changes(), list(self._broker.indexes.values())
            with self._wakeups.registered(self._all_keys()) as event:
                # Registering costs a microsecond per subscription: once for many batches.
                while self._is_going() and (seen, feeds) == (self._changes(), list(self._broker.indexes.values())):
                    event.clear()
                    try:
                        async for chunk in self._new(inline=inline, named=named):
                            yield chunk
                    except LogError as error:  # the answer has begun, so it can only end
                        _LOGGER.error("an event stream ends at %d: %s", self._position, error.reason)  # noqa: TRY400
                        return
                    if not self._standing() and not named:
                        yield b"event: end\ndata: {}\n\n"
                        return
                    if not await self._woken(event):
                        yield _heartbeat(self._position)

    def _is_going(self) -> bool:
        return self._broker.failure is None and not self._wakeups.closing

    async def _woken(self, event: asyncio.Event) -> bool:
        """Wait for something new; False if nothing came until the next heartbeat, whose position is searched."""
        if self._wakeups.closing:
            return True
        try:
            await asyncio.wait_for(event.wait(), self.heartbeat_seconds)
        except TimeoutError:
            # Everything up to here was searched, so a reader that resumes here misses nothing.
            self._position = max(self._position, await self._searched_position())
            return False
        return True

    def _changes(self) -> int:
        return self._broker.state.subscription_changes

    def _standing(self) -> list[tuple[str, StandingSubscription]]:
        """The subscriptions, as of now."""
        changes = self._changes()  # first: a change meanwhile is seen the next time
        if changes != self._found_at:
            self._found_at, self._found = changes, self._find()
        return self._found

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
                    standing.failed(f"the log trimmed documents up to {error.first - 1} before a stream sent them")
                yield _gap_event({"from": self._position + 1, "to": error.first - 1, "reason": "trimmed"})
                self._position = error.first - 1
                continue
            sequences = sorted(found)
            try:
                entries = await self._events.documents(self._broker.recent, sequences)
            except TrimmedError:
                continue
            written = 0  # documents
            try:
                while written < len(entries):
                    some = self._joined(entries[written:], found if named else None, inline=inline)
                    yield b"".join(some)
                    self._position = sequences[written + len(some) - 1]
                    self.delivered(sequences[written : written + len(some)])
                    if self.tracing is not None:
                        for entry, document in entries[written : written + len(some)]:
                            self.tracing.delivered("events", entry, document)
                    written += len(some)
            finally:
                self._note(found)
            self._position = max(self._position, searched)
            if searched >= head or self._waits or self._wakeups.closing:
                return

    def _joined(
        self, entries: list[tuple[LogEntry, DocumentRecord]], ids: dict[int, list[str]] | None, *, inline: bool
    ) -> list[bytes]:
        """The events of the first documents: those that are written together."""
        events: list[bytes] = []
        size = 0
        for entry, document in entries:
            own = None if ids is None else ids[entry.sequence]
            events.append(self._events.event(entry, document, own, inline=inline))
            size += len(events[-1])
            if size >= _JOINED:
                break
        return events

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
        results = []
        self._waits = False  # until Spark has matched the next documents of a subscription
        searched = self._broker.matched_to  # first: what comes meanwhile is for the next search
        standing = self._standing()
        if len(standing) >= _MANY:
            quiet = self._broker.quiet([each for _, each in standing], position)
            standing = [named for named, is_quiet in zip(standing, quiet, strict=True) if not is_quiet]
        for id, each in standing:
            quick = self._broker.deliveries(each, position, _STEP, scan=False)
            if quick.searched_to <= position < self._broker.matched_to:
                quick = await asyncio.to_thread(self._broker.deliveries, each, position, _STEP)
            self._waits = self._waits or (quick.waits and quick.searched_to <= position)
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


def shown_gap(gap: delivery_leases.Gap) -> Gap:
    """A gap as deliveries show it: both ends inclusive."""
    shown: Gap = {"from": gap.begin, "to": gap.end - 1, "reason": gap.reason}
    return shown if gap.feed is None else {**shown, "feed": gap.feed}
