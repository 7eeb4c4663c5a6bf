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
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from pathcast.documents import Entry, EntryPath, Limits, entries_of, parse_entry_path
from pathcast.errors import PatternError

from ...observation.document_trace_attribute import NAME, with_trace
from ...sequencing.sequencer_requests import Accepted, Publication, Rejected
from ..event_loop_completions import Awaited
from ..metrics import metrics_of
from ..openapi import Answer, Choice, Content, Header, Text, describes
from ..problems import ProblemError, problem_of
from ..publications.cloud_events import EVENTS, CloudEvent, Event, events_of
from ..publications.publication_results import BatchResult, Published, event_result, published_result
from ..request_bodies import answer, body_of, decoded
from ..request_context import access_of, broker_of, completions_of, feed_of, quotas_of, tracing_of
from ..sender_access_rights import Access

BATCH: Final = "application/cloudevents-batch+json"
SINGLE: Final = "application/cloudevents+json"
BATCH_BYTES: Final = 64 << 20

INVALID: Final = Choice("invalid", "Reject an unreadable document, or keep it as a dead letter.", ("reject", "keep"))
SCHEMA: Final = Text(
    "schema", "The documents' schema, one that the feed's mediator maps; otherwise the attribute dataschema names it."
)
SPLIT: Final = Text(
    "split",
    "Make a document of each entry of the body, a file of at most 1,024 entries and 64 MiB: the path that selects the "
    "entries, such as /feed/entry or /Q{urn:f}feed/*. The answer has a result per entry, with the byte at which the "
    "entry begins (offset). All entries that are accepted become durable together, or none. With an id, an entry has "
    "the id and # and its number.",
)
CE_ID: Final = Header("ce-id", "The publisher's id of the document; a later document with the same id is a duplicate.")
KEY: Final = Header("idempotency-key", "The same as ce-id.")
CE_SOURCE: Final = Header(
    "ce-source", "The source within which the id is unique. The broker also keeps other ce- headers."
)
_EVENT: Final = {"id": "story-2", "source": "desk", "data": "<nitf><title>Sun</title></nitf>"}


@describes(
    "documents",
    scope="publish:{feed}",
    parameters=(INVALID, SCHEMA, SPLIT, CE_ID, KEY, CE_SOURCE),
    body=(
        Content(None, "application/xml", "<nitf><title>Rain</title></nitf>"),
        Content(CloudEvent, SINGLE, _EVENT),
        Content(list[CloudEvent], BATCH, [{**_EVENT, "id": "story-3"}, {**_EVENT, "id": "story-4"}]),
    ),
    responses={
        202: Answer(Content(Published | BatchResult), "The document is durable. For a batch: a result per event."),
        422: Answer(BatchResult, "The broker accepted no event of the batch."),
    },
    errors=(422, 429, 507),
)
async def publish(request: Request) -> Response:
    """POST /v1/feeds/{feed}/documents: publish a document, or up to 1,024 as a batch of CloudEvents.

    Any other content type is that of the document, or with `split` of a file whose entries are published. In a feed
    with a mediator, the document is matched as the mapping of its schema rewrites it; a feed with one mapping needs no
    schema to be named. `line` and `column` of an error are those in the document.
    """
    access, feed = access_of(request), feed_of(request)
    access.check_publish(feed)
    keep = _keep_invalid(request)
    quotas_of(request).check_rate(access.tenant)
    # Once for all look-ups; of several headers with one name, the first counts.
    headers = dict(reversed(request.headers.items()))
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    limit = broker_of(request).state.limits_of(feed).size
    if media_type == BATCH:
        body = await body_of(request, max(limit, BATCH_BYTES))
        events = events_of(body)
        results = await _published(request, access, feed, events, headers.get(NAME), keep=keep)
        accepted = any(isinstance(result, Accepted) for result in results)
        return answer({"results": [event_result(each) for each in results]}, 202 if accepted or not results else 422)
    if media_type == SINGLE:
        event = decoded(await body_of(request, 2 * limit), CloudEvent, "the CloudEvent", distinct=False)
        (result,) = await _published(request, access, feed, [event], headers.get(NAME), keep=keep)
    elif (split := _split(request)) is not None:
        body = await body_of(request, max(limit, BATCH_BYTES))
        results, offsets = await _published_entries(request, feed, split, _raw(headers, media_type, body), keep=keep)
        accepted = any(isinstance(result, Accepted) for result in results)
        shown = [{**event_result(each), "offset": at} for each, at in zip(results, offsets, strict=True)]
        return answer({"results": shown}, 202 if accepted or not results else 422)
    else:
        publication = _raw(headers, media_type, await body_of(request, limit))
        publisher = _publisher(access, headers.get(CE_SOURCE.name, ""))
        (result,) = await _sent(request, publisher, feed, [publication], headers.get(NAME), keep=keep)
    if isinstance(result, Rejected):
        raise problem_of(result.error)
    return answer(published_result(result), 202)


async def _published(
    request: Request, access: Access, feed: str, events: Sequence[Event], trace: str | None, *, keep: bool
) -> list[Accepted | Rejected]:
    """Publish events, those of one source after the other; the results are in the order of the events."""
    results: list[Accepted | Rejected | None] = [None] * len(events)
    of_source: dict[str, tuple[list[int], list[Publication]]] = {}
    for place, event in enumerate(events):
        if isinstance(event, ProblemError):
            results[place] = Rejected(event)
            continue
        try:
            publication = event.publication()
        except ProblemError as error:
            results[place] = Rejected(error)
            continue
        places, publications = of_source.setdefault(event.source, ([], []))
        places.append(place)
        publications.append(publication)
    sent = [
        _sent(request, _publisher(access, source), feed, publications, trace, keep=keep)
        for source, (_, publications) in of_source.items()
    ]
    for (places, _), found in zip(of_source.values(), await asyncio.gather(*sent), strict=True):
        for place, result in zip(places, found, strict=True):
            results[place] = result
    return [result for result in results if result is not None]


async def _published_entries(
    request: Request, feed: str, path: EntryPath, file: Publication, *, keep: bool
) -> tuple[list[Accepted | Rejected], list[int]]:
    """Publish the entries of a file in one request to the sequencer, so in one transaction; where each entry begins."""
    limits = broker_of(request).state.limits_of(feed)
    found = await asyncio.to_thread(_entries, file.body, path, limits)
    publications = [
        file._replace(body=entry.document, id=None if file.id is None else f"{file.id}#{entry.number}")
        for entry in found
        if entry.error is None
    ]
    headers = dict(reversed(request.headers.items()))
    publisher = _publisher(access_of(request), headers.get(CE_SOURCE.name, ""))
    sent = iter(
        await _sent(request, publisher, feed, publications, headers.get(NAME), keep=keep) if publications else ()
    )
    results = [next(sent) if entry.error is None else Rejected(entry.error) for entry in found]
    return results, [entry.offset for entry in found]


def _entries(body: bytes, path: EntryPath, limits: Limits) -> list[Entry]:
    found: list[Entry] = []
    size = 0
    for entry in entries_of(body, path, limits=limits):
        size += len(entry.document)
        if len(found) == EVENTS or size > 2 * BATCH_BYTES:  # each repeats the namespaces of the elements around it
            most = f"{EVENTS:,} entries, or {2 * BATCH_BYTES:,} bytes in them"
            raise ProblemError(413, f"the body has more than {most}; send less per request (pathcast publish --split)")
        found.append(entry)
    return found


def _split(request: Request) -> EntryPath | None:
    """The path of `?split=`, if given."""
    text = SPLIT.of(request) if request.scope["query_string"] else None
    if text is None:
        return None
    try:
        return parse_entry_path(text)
    except PatternError as error:
        supported = f"; supported: {error.supported}" if error.supported else ""
        raise ProblemError(400, f"split is not a valid entry path: {error.reason}{supported}") from None


async def _sent(
    request: Request, publisher: str, feed: str, documents: list[Publication], trace: str | None, *, keep: bool
) -> list[Accepted | Rejected]:
    tenant, quotas = access_of(request).tenant, quotas_of(request)
    quotas.admit_feed(tenant, feed)
    quotas.publish(tenant, sum(len(document.body) for document in documents))
    schema = SCHEMA.of(request) if request.scope["query_string"] else None
    tracing = tracing_of(request)
    documents = with_trace(documents, trace)
    begin = time.perf_counter()
    outcome: Awaited[list[Accepted | Rejected]] = completions_of(request).awaited()
    with nullcontext() if tracing is None else tracing.publishing(feed, documents, trace) as published:
        try:
            broker_of(request).publish_for(
                outcome, feed, documents, publisher=publisher, keep_invalid=keep, schema=schema, tenant=tenant
            )
            results = await outcome
        finally:
            quotas.settle_feed(tenant, feed)
        if published is not None:
            published(results)
    metrics_of(request).published(begin)
    return results


def _publisher(access: Access, source: str) -> str:
    """Ids are unique per sender and source, as CloudEvents defines it."""
    return f"{access.tenant}/{access.name}/{source}"


def _raw(headers: dict[str, str], media_type: str, body: bytes) -> Publication:
    """A document in the body; its attributes, if any, in the headers."""
    id = headers.get(CE_ID.name) or headers.get(KEY.name)
    attributes = {key[3:]: value for key, value in headers.items() if key.startswith("ce-") and key != "ce-id"}
    attributes.pop("specversion", None)
    # curl's default for --data is no statement about the document.
    if media_type in ("", "application/x-www-form-urlencoded", "application/octet-stream"):
        media_type = "application/xml"
    return Publication(body, id, media_type, attributes)


def _keep_invalid(request: Request) -> bool:
    if not request.scope["query_string"]:
        return False
    return INVALID.of(request) == "keep"
