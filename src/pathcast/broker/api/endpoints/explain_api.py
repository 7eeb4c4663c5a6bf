"""Explanations over HTTP: which of the caller's subscriptions get a document, and why the others do not.

    POST /v1/explain?sequence=12                    a document of the log
    POST /v1/explain?feed=news                      the document in the body, as if it were published now
    POST /v1/explain?sequence=12&subscription=s     one subscription, with every step of its pattern

Answers are in the order of subscription ids; `next` is the `after` of the next page. One request at a time is
explained, so explanations never take more than one processor.
"""

import asyncio
from typing import Any, Final, NotRequired, TypedDict

from starlette.requests import Request
from starlette.responses import Response

from pathcast.log import LogError, TrimmedError

from ...explanations import Explained, Explanations
from ..openapi import Content, Text, WholeNumber, describes
from ..problems import ProblemError
from ..request_bodies import answer, body_of
from ..request_context import access_of, broker_of, checked_name
from .health_and_stored_document_api import not_a_document
from .subscriptions_api import ids_for

PAGE: Final = 1_000
_MOST: Final = (1 << 63) - 1


SEQUENCE: Final = WholeNumber("sequence", "The sequence of a document in the log.", None, _MOST)
FEED: Final = Text("feed", "The feed of the document in the body, if no sequence is given.")
SCHEMA: Final = Text("schema", "The schema of the document in the body, as if it were published with it.")
SUBSCRIPTION: Final = Text("subscription", "Explain only this subscription, with every step of its pattern.")
LIMIT: Final = WholeNumber("limit", "The largest number of subscriptions to return.", 100, PAGE)
AFTER: Final = Text("after", "The last id of the previous page.")


class ExplainedSubscription(TypedDict):
    """Whether a subscription gets the document, and why; `pattern` and `steps` if only one was asked for."""

    id: str
    subscriber: str
    matches: bool
    reason: str
    detail: NotRequired[str]
    pattern: NotRequired[str]
    steps: NotRequired[list[dict[str, Any]]]


class Explanation(TypedDict):
    """Subscriptions in the order of their ids; `next` is the `after` of the next page.

    `schema`: a mediator rewrote the document from it, and the rewritten document is explained.
    """

    feed: str
    schema: NotRequired[str]
    sequence: NotRequired[int]
    subscriptions: list[ExplainedSubscription]
    next: NotRequired[str]


@describes(
    "subscriptions",
    scope="read:{feed} subscribe:{subscriber}",
    parameters=(SEQUENCE, FEED, SCHEMA, SUBSCRIPTION, LIMIT, AFTER),
    body=Content(None, "application/xml", "<nitf><title>Rain</title></nitf>"),
    body_is_optional=True,
    responses={200: Explanation},
    errors=(404, 410, 422),
)
async def explain(request: Request) -> Response:
    """POST /v1/explain: explain which subscriptions get a document, and why the others do not.

    The document is one of the log (`sequence`), or that in the body, as if it were published now to `feed`. Only
    subscriptions for which the token may act are explained.
    """
    access, state = access_of(request), broker_of(request).state
    limit = max(1, LIMIT.of(request))
    one = SUBSCRIPTION.of(request)
    if one is None:
        after = AFTER.of(request) or ""
        ids = sorted(id for id in ids_for(access, state) if id > after)
    else:
        ids = [checked_name(one, "subscription")]
        if (access.tenant, one) not in state.subscriptions:
            raise ProblemError(404, f"unknown subscription {one!r}; GET /v1/subscriptions lists the subscriptions")
    chosen = []
    for id in ids[:limit]:
        standing = state.subscriptions.get((access.tenant, id))
        if standing is not None:
            if one is not None:
                access.check_subscriber(standing.record.subscriber)
            if access.subscribers is None or standing.record.subscriber in access.subscribers:
                chosen.append((id, standing))
    body = await _body(request)  # before its turn: a slow client must not make the others wait
    async with request.app.state.explaining:
        about = await _about(request, body)
        found = await asyncio.to_thread(about.page, chosen)
    result: Explanation = {
        "feed": about.feed,
        "subscriptions": [_shown(each, steps=one is not None) for each in found],
    }
    if about.schema is not None:
        result["schema"] = about.schema
    if SEQUENCE.is_in(request):
        result["sequence"] = about.sequence
    if len(found) < len(chosen):
        result["next"] = found[-1].id
    elif len(ids) > limit:
        result["next"] = ids[limit - 1]
    return answer(result)


async def _body(request: Request) -> bytes:
    """The document in the body, if it may be read as one of a feed."""
    given = FEED.of(request)
    if SEQUENCE.is_in(request) == (given is not None):
        raise ProblemError(
            400,
            f"exactly one of sequence and feed must be given, got {'both' if given is not None else 'neither'}; send "
            "sequence=… for a document of the log, or feed=… with the document as the body",
        )
    if given is None:
        return b""
    feed = checked_name(given, "feed")
    access_of(request).check_read(feed)
    return await body_of(request, broker_of(request).state.limits_of(feed).size)


async def _about(request: Request, body: bytes) -> Explanations:
    """What is explained; the answers for masked and for missing documents are the same."""
    access, broker, feed = access_of(request), broker_of(request), FEED.of(request)
    if feed is not None:
        return await asyncio.to_thread(Explanations.of_new, broker, access.tenant, feed, body, SCHEMA.of(request))
    sequence = SEQUENCE.of(request)
    try:
        found = await asyncio.to_thread(Explanations.of_logged, broker, access.tenant, sequence)
    except TrimmedError:
        raise
    except LogError:
        raise not_a_document(sequence) from None
    if found is None or not (access.read is None or found.feed in access.read):
        raise not_a_document(sequence)
    return found


def _shown(found: Explained, *, steps: bool) -> ExplainedSubscription:
    shown: ExplainedSubscription = {
        "id": found.id,
        "subscriber": found.subscriber,
        "matches": found.matches,
        "reason": found.reason,
    }
    if found.detail:
        shown["detail"] = found.detail
    if steps and found.explanation is not None:
        whole = found.explanation.as_dict()
        shown["pattern"], shown["steps"] = whole["pattern"], whole["steps"]
    return shown
