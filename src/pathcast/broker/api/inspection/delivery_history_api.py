"""The documents that a subscription got last, whether or not somebody has received them; nothing is acknowledged.

    GET /v1/subscriptions/{id}/deliveries?limit=20      newest first; `before` continues with older ones

Cost: a search in pieces of the log, from its end; each piece is four times as large as the one after it. One request
searches for at most `SECONDS`.
"""

import asyncio
import time
from typing import Final, NotRequired, TypedDict

from starlette.requests import Request
from starlette.responses import Response

from pathcast.broker_log import StandingSubscription
from pathcast.log import TrimmedError

from ...broker import Broker
from ..document_events import shown_document
from ..openapi import WholeNumber, describes
from ..request_bodies import answer
from ..request_context import broker_of, subscription_of
from .document_list_api import ListedDocument

SECONDS: Final = 1.0
_PIECE: Final = 4_096
_STEP: Final = 10_000
_MOST: Final = (1 << 63) - 1
LIMIT: Final = WholeNumber("limit", "The largest number of deliveries to return.", 20, 200)
BEFORE: Final = WholeNumber("before", "Only documents before this sequence: `next` of the previous page.", None, _MOST)


class PastDelivery(ListedDocument):
    """A document that the subscription gets; `state`: acknowledged, dead, out (on a lease) or waiting."""

    state: str


class DeliveryPage(TypedDict):
    """Deliveries, newest first; `next` is the `before` of the next page."""

    deliveries: list[PastDelivery]
    next: NotRequired[int]


@describes(
    "deliveries",
    scope="subscribe:{subscriber}",
    parameters=(LIMIT, BEFORE),
    responses={200: DeliveryPage},
    errors=(404,),
)
async def list_deliveries(request: Request) -> Response:
    """GET /v1/subscriptions/{id}/deliveries: list the newest deliveries of a subscription, without acknowledging them.

    A page looks at a bounded part of the log: continue while there is a `next`.
    """
    standing, limit, before = subscription_of(request), max(1, LIMIT.of(request)), BEFORE.of(request, _MOST)
    broker = broker_of(request)
    return answer(
        await asyncio.to_thread(_page, broker, standing, before, limit), headers={"cache-control": "no-store"}
    )


def _page(broker: Broker, standing: StandingSubscription, before: int, limit: int) -> DeliveryPage:
    found: list[int] = []
    end, piece = min(before, broker.matched_to + 1), _PIECE
    deadline = time.monotonic() + SECONDS
    oldest = max(standing.begin, broker.log.first)
    while end > oldest and len(found) < limit:
        begin = max(oldest, end - piece)
        found = [*_between(broker, standing, begin, end), *found]
        end, piece = begin, 4 * piece
        if time.monotonic() >= deadline:
            break
    shown = sorted(found, reverse=True)[:limit]
    content: DeliveryPage = {"deliveries": _shown(broker, standing, shown)}
    if len(found) > limit:
        content["next"] = shown[-1]
    elif end > oldest:
        content["next"] = end
    return content


def _between(broker: Broker, standing: StandingSubscription, begin: int, end: int) -> list[int]:
    found: list[int] = []
    position = begin - 1
    while position < end - 1:
        try:
            some, position, _ = broker.search.after(standing, position, _STEP, end - 1, patient=False)
        except TrimmedError as error:
            position = error.first - 1
            continue
        found += some
    return found


def _shown(broker: Broker, standing: StandingSubscription, sequences: list[int]) -> list[PastDelivery]:
    try:
        documents = broker.recent.entries(sequences)
    except TrimmedError as error:
        documents = broker.recent.entries([each for each in sequences if each >= error.first])
    return [
        {
            **shown_document(entry, document, inline=False),
            "size": len(entry.body),
            "state": _state(standing, entry.sequence),
        }
        for entry, document in documents
    ]


def _state(standing: StandingSubscription, sequence: int) -> str:
    if standing.dead is not None and sequence in standing.dead.letters:
        return "dead"
    cursor = standing.present_cursor()
    if not cursor.is_open(sequence):
        return "acknowledged"
    return "out" if cursor.is_out(sequence) else "waiting"
