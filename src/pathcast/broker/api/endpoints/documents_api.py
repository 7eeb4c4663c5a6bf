"""Publishing over HTTP: raw XML, a CloudEvent, or a batch of CloudEvents.

| content type | the request holds |
|---|---|
| `application/cloudevents-batch+json` | a JSON list of CloudEvents; the answer has a result per event |
| `application/cloudevents+json` | one CloudEvent in JSON |
| anything else | the document itself; `ce-…` headers are the attributes of its CloudEvent |

202 means that every accepted document is durable. A document that cannot be read is rejected with its position (422),
or kept as a dead letter with `?invalid=keep`.
"""

import asyncio
import base64
import binascii
from contextlib import nullcontext
from typing import Final, NotRequired, TypedDict

from msgspec import UNSET, Struct, UnsetType, to_builtins
from starlette.requests import Request
from starlette.responses import Response

from pathcast.broker_log import Failure

from ...observation.trace_context import with_trace
from ...requests import Accepted, Publication, Rejected
from ..access import Access
from ..metrics import metrics_of
from ..openapi import Answer, Choice, Content, Header, describes
from ..problems import Position, ProblemError, problem_of
from ..request_bodies import answer, body_of, decoded
from ..request_context import access_of, broker_of, feed_of, quotas_of, result_of, tracing_of

BATCH: Final = "application/cloudevents-batch+json"
SINGLE: Final = "application/cloudevents+json"
# Events per request: one request must not occupy the sequencer for long.
EVENTS: Final = 1_024
BATCH_BYTES: Final = 64 << 20


class CloudEvent(Struct):
    """A CloudEvent in JSON, with the attributes that matter here; extensions are ignored."""

    id: str
    source: str = ""
    type: str = ""
    subject: str = ""
    traceparent: str = ""
    datacontenttype: str = "application/xml"
    data: str | UnsetType = UNSET
    data_base64: str | UnsetType = UNSET

    def publication(self) -> Publication:
        """The document of the event."""
        if isinstance(self.data, str) == isinstance(self.data_base64, str):
            raise ProblemError(400, f"event {self.id!r} must have either data (a string) or data_base64")
        if isinstance(self.data, str):
            body = self.data.encode("utf-8", "surrogatepass")
        else:
            try:
                body = base64.b64decode(str(self.data_base64), validate=True)
            except binascii.Error as error:
                raise ProblemError(400, f"data_base64 of event {self.id!r} is not Base64: {error}") from None
        attributes = {"source": self.source, "type": self.type, "subject": self.subject}
        attributes["traceparent"] = self.traceparent
        given = {key: value for key, value in attributes.items() if value}
        return Publication(body, self.id, self.datacontenttype, given)


class Published(TypedDict):
    """A document that is durable; `duplicate`: it was already; `error`: it is kept as a dead letter."""

    sequence: int
    duplicate: bool
    error: NotRequired[Failure]


class EventError(Position, total=False):
    """Why an event was rejected (`status`, `detail`), or why its document is kept as a dead letter (`reason`)."""

    status: int
    detail: str
    reason: str


class EventResult(TypedDict, total=False):
    """An event of a batch: an accepted one has a sequence, a rejected one only the error."""

    sequence: int
    duplicate: bool
    error: EventError


class BatchResult(TypedDict):
    """A result per event, in the order of the events."""

    results: list[EventResult]


INVALID: Final = Choice("invalid", "Reject an unreadable document, or keep it as a dead letter.", ("reject", "keep"))
CE_ID: Final = Header("ce-id", "The publisher's id of the document: one that comes again is a duplicate.")
KEY: Final = Header("idempotency-key", "As ce-id.")
CE_SOURCE: Final = Header("ce-source", "The source within which the id is unique; other ce- headers are kept, too.")
_EVENT: Final = {"id": "story-2", "source": "desk", "data": "<nitf><title>Sun</title></nitf>"}


@describes(
    "documents",
    scope="publish:{feed}",
    parameters=(INVALID, CE_ID, KEY, CE_SOURCE),
    body=(
        Content(None, "application/xml", "<nitf><title>Rain</title></nitf>"),
        Content(CloudEvent, SINGLE, _EVENT),
        Content(list[CloudEvent], BATCH, [{**_EVENT, "id": "story-3"}, {**_EVENT, "id": "story-4"}]),
    ),
    responses={
        202: Answer(Content(Published | BatchResult), "Durable; a batch is answered with a result per event."),
        422: Answer(BatchResult, "No event of the batch was accepted."),
    },
    errors=(422, 429, 507),
)
async def publish(request: Request) -> Response:
    """POST /v1/feeds/{feed}/documents: publish a document, or up to 1,024 as a batch of CloudEvents.

    Any other content type is that of the document. `line` and `column` of an error are those in the document.
    """
    access, feed = access_of(request), feed_of(request)
    access.check_publish(feed)
    keep = _keep_invalid(request)
    quotas_of(request).check_rate(access.tenant)
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    limit = broker_of(request).state.limits_of(feed).size
    if media_type == BATCH:
        body = await body_of(request, max(limit, BATCH_BYTES))
        events = decoded(body, list[CloudEvent], "the batch of CloudEvents")
        if len(events) > EVENTS:
            raise ProblemError(413, f"the batch has {len(events):,} events; send at most {EVENTS:,} per request")
        results = await _published(request, access, feed, events, keep=keep)
        accepted = any(isinstance(result, Accepted) for result in results)
        return answer({"results": [_event_result(each) for each in results]}, 202 if accepted or not results else 422)
    if media_type == SINGLE:
        event = decoded(await body_of(request, 2 * limit), CloudEvent, "the CloudEvent")
        (result,) = await _published(request, access, feed, [event], keep=keep)
    else:
        publication = _raw(request, await body_of(request, limit))
        source = CE_SOURCE.of(request) or ""
        (result,) = await _sent(request, _publisher(access, source), feed, [publication], keep=keep)
    if isinstance(result, Rejected):
        raise problem_of(result.error)
    return answer(_result(result), 202)


async def _published(
    request: Request, access: Access, feed: str, events: list[CloudEvent], *, keep: bool
) -> list[Accepted | Rejected]:
    """Publish events, those of one source after the other; the results are in the order of the events."""
    results: list[Accepted | Rejected | None] = [None] * len(events)
    of_source: dict[str, list[int]] = {}
    for place, event in enumerate(events):
        of_source.setdefault(event.source, []).append(place)
    sent = [
        _sent(request, _publisher(access, source), feed, [events[place].publication() for place in places], keep=keep)
        for source, places in of_source.items()
    ]
    for places, found in zip(of_source.values(), await asyncio.gather(*sent), strict=True):
        for place, result in zip(places, found, strict=True):
            results[place] = result
    return [result for result in results if result is not None]


async def _sent(
    request: Request, publisher: str, feed: str, documents: list[Publication], *, keep: bool
) -> list[Accepted | Rejected]:
    quotas_of(request).publish(access_of(request).tenant, sum(len(document.body) for document in documents))
    tracing, header = tracing_of(request), request.headers.get("traceparent")
    documents = with_trace(documents, header)
    traced = nullcontext() if tracing is None else tracing.publishing(feed, documents, header)
    with metrics_of(request).publishing(), traced as published:
        future = broker_of(request).publish(feed, documents, publisher=publisher, keep_invalid=keep)
        results = await result_of(request, future)
        if published is not None:
            published(results)
        return results


def _publisher(access: Access, source: str) -> str:
    """Ids are unique per sender and source, as CloudEvents defines it."""
    return f"{access.tenant}/{access.name}/{source}"


def _raw(request: Request, body: bytes) -> Publication:
    """A document in the body; its attributes, if any, in the headers."""
    headers = request.headers
    id = CE_ID.of(request) or KEY.of(request)
    attributes = {key[3:]: value for key, value in headers.items() if key.startswith("ce-") and key != "ce-id"}
    attributes.pop("specversion", None)
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    # curl's default for --data is no statement about the document.
    if media_type in ("", "application/x-www-form-urlencoded", "application/octet-stream"):
        media_type = "application/xml"
    return Publication(body, id, media_type, attributes)


def _keep_invalid(request: Request) -> bool:
    if not request.scope["query_string"]:
        return False
    return INVALID.of(request) == "keep"


def _event_result(result: Accepted | Rejected) -> EventResult:
    if isinstance(result, Rejected):
        error = problem_of(result.error)
        rejected: EventError = {"status": error.status, "detail": error.reason}
        if result.error.line is not None:
            rejected["line"] = result.error.line
        if result.error.column is not None:
            rejected["column"] = result.error.column
        return {"error": rejected}
    shown: EventResult = {"sequence": result.sequence, "duplicate": result.duplicate}
    if result.error is not None:
        shown["error"] = to_builtins(result.error)
    return shown


def _result(result: Accepted) -> Published:
    shown: Published = {"sequence": result.sequence, "duplicate": result.duplicate}
    if result.error is not None:
        shown["error"] = result.error
    return shown
