"""Deliveries on request: pull with leases, acknowledge, give back, replay; the status of a subscription.

    POST …:pull?limit=&wait=     at most `limit` deliveries, each on a lease of `ack_wait` seconds
    POST …:ack   {"sequences"}   done: these deliveries never come again
    POST …:nack  {"sequences"}   not done: they come again, with `attempt` one higher
    POST …:replay {"from"}       moves the cursor back (or forward): to "now", a sequence or a time
    POST …:replay {"dead_letters": true}  makes dead letters due again
    GET …/dead-letters           what was given up, after `max_deliver` attempts

A delivery whose lease runs out comes again. At most `in_flight` deliveries are out or acknowledged out of order.
"""

import asyncio
from typing import Final, NotRequired, TypedDict

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from pathcast.broker_log import CursorRecord, DeadLetter, LastDelivery, LastError, StandingSubscription

from ...broker import Broker
from ...deliveries.delivery_leases import Pulled
from ...webhooks.sink_worker import SinkStatus
from ..document_events import ShownDocument, shown_document
from ..metrics import metrics_of
from ..openapi import Content, WholeNumber, describes
from ..problems import ProblemError
from ..request_bodies import JSON_BYTES, answer, body_of, decoded
from ..request_context import access_of, broker_of, result_of, subscription_of, tracing_of, wakeups_of, webhooks_of
from .delivery_start import sequence_of
from .events_api import Gap, shown_gap

LIMIT: Final = WholeNumber("limit", "The largest number of deliveries to return.", 100, 1_000)
WAIT: Final = WholeNumber("wait", "Seconds to wait for a delivery.", 0, 60)
LETTERS: Final = WholeNumber("limit", "The largest number of dead letters to return.", 100, 1_000)
# Deliveries that one request acknowledges or gives back: each may have to be looked up.
SEQUENCES: Final = 10_000
# Those that one call of a thread looks up.
_LOOKUPS: Final = 1_000
AFTER: Final = WholeNumber("after", "The last sequence of the previous page.", 0, 1 << 62)
_SCOPE: Final = "subscribe:{subscriber}"


class Sequences(Struct, forbid_unknown_fields=True):
    """The deliveries that a request is about; `delay` in seconds before they come again (for `:nack`)."""

    sequences: list[int]
    delay: float = 0.0


class Replay(Struct, forbid_unknown_fields=True):
    """What to deliver again: everything from a point on, or the dead letters. `sequence` is short for `from`."""

    begin: int | str | None = field(name="from", default=None)
    sequence: int | None = None
    dead_letters: bool = False


class Delivery(ShownDocument):
    """A document on a lease; `attempt` counts from 1."""

    attempt: int


class Deliveries(TypedDict):
    """What a pull returns; `gap`: documents that were trimmed before they were delivered."""

    deliveries: list[Delivery]
    gap: NotRequired[Gap]


class Acknowledged(TypedDict):
    """How many deliveries are acknowledged."""

    acknowledged: int


class Returned(TypedDict):
    """How many deliveries come again, and which sequences had no lease."""

    returned: int
    without_lease: list[int]


class DeadLetterCount(TypedDict):
    """How many dead letters are kept, and how many there ever were."""

    kept: int
    total: int


class DeadLetterPage(DeadLetterCount):
    """Dead letters by sequence; `next` is the `after` of the next page."""

    dead_letters: list[DeadLetter]
    next: NotRequired[int]


class Status(TypedDict):
    """The progress of a subscription: everything up to `cursor` is acknowledged, the log ends at `head`."""

    id: str
    cursor: int
    head: int
    lag: int
    out: int
    acknowledged_out_of_order: int
    dead_letters: DeadLetterCount
    last_delivery: LastDelivery | None
    last_error: LastError | None
    sink: NotRequired[SinkStatus]


class Replayed(Status):
    """The progress of a subscription whose dead letters are due again, but for those that were trimmed."""

    replayed: int
    trimmed: int


@describes("deliveries", scope=_SCOPE, parameters=(LIMIT, WAIT), responses={200: Deliveries}, errors=(404, 409))
async def pull(request: Request) -> Response:
    """POST /v1/subscriptions/{id}:pull: take deliveries, each on a lease of `ack_wait` seconds."""
    _check_pullable(subscription_of(request))
    limit = LIMIT.of(request)
    wait = WAIT.of(request)
    broker, wakeups = broker_of(request), wakeups_of(request)
    deadline = asyncio.get_running_loop().time() + wait
    while True:
        standing = subscription_of(request)
        keys = [("subscription", access_of(request).tenant, request.path_params["id"])]
        keys += [
            ("pattern", feed, pattern.number)
            for feed in standing.record.feeds or tuple(broker.indexes)
            if (index := broker.indexes.get(feed)) and (pattern := index.pattern(standing.record.pattern))
        ]
        with wakeups.registered(keys) as event:
            pulled = await asyncio.to_thread(_pulled, request, standing, limit)
            left = deadline - asyncio.get_running_loop().time()
            if pulled.more and not (pulled.deliveries or pulled.gap or wakeups.closing):
                continue  # a thread for each step of a long search: those of other requests come in between
            if pulled.deliveries or pulled.gap or left <= 0 or wakeups.closing:
                _note(standing, pulled)
                tracing = tracing_of(request)
                if tracing is not None:
                    for each in pulled.deliveries:
                        tracing.delivered("pull", each.entry, each.document)
                metrics_of(request).delivered("pull", [each.entry.sequence for each in pulled.deliveries])
                return answer(_shown(pulled))
            try:
                # A lease may run out while nothing is published.
                await asyncio.wait_for(event.wait(), min(left, 1.0))
            except TimeoutError:
                continue


def _note(standing: StandingSubscription, pulled: Pulled) -> None:
    """Keep for the status what was delivered last, and what went wrong."""
    if pulled.gap is not None:
        standing.failed(
            f"the log trimmed documents {pulled.gap.begin} to {pulled.gap.end - 1} before a request pulled them"
        )
    again = [each for each in pulled.deliveries if each.attempt > 1]
    if again:
        sequence, attempt = again[-1].entry.sequence, again[-1].attempt
        standing.failed(f"the subscriber did not acknowledge document {sequence}; delivered again, attempt {attempt}")
    if pulled.deliveries:
        standing.delivered(pulled.deliveries[-1].entry.sequence, "pull")


def _check_pullable(standing: StandingSubscription) -> None:
    if standing.record.sink is not None and standing.disabled is None:
        raise ProblemError(
            409, f"subscription {standing.record.id!r} has a sink, so it cannot be pulled; remove the sink"
        )


def _pulled(request: Request, standing: StandingSubscription, limit: int) -> Pulled:
    config = standing.record.config
    if config.get("paused"):
        return Pulled([], None)
    tenant, id = access_of(request).tenant, request.path_params["id"]
    return broker_of(request).pull(
        tenant,
        id,
        limit,
        lease_seconds=config.get("ack_wait", 30.0),
        in_flight=config.get("in_flight", 256),
        max_deliver=config.get("max_deliver"),
        steps=1,
    )


def _shown(pulled: Pulled) -> Deliveries:
    content: Deliveries = {
        "deliveries": [
            {**shown_document(each.entry, each.document), "attempt": each.attempt} for each in pulled.deliveries
        ]
    }
    if pulled.gap is not None:
        content["gap"] = shown_gap(pulled.gap)
    return content


@describes(
    "deliveries",
    scope=_SCOPE,
    body=Content(Sequences, example={"sequences": [4711]}),
    responses={200: Acknowledged},
    errors={
        404: "",
        409: "More than `in_flight` deliveries of a stream would be acknowledged out of order.",
        422: "`unknown` lists sequences that are not open deliveries; the others are acknowledged.",
        507: "",
    },
)
async def acknowledge(request: Request) -> Response:
    """POST /v1/subscriptions/{id}:ack: acknowledge deliveries; 200 once that is durable."""
    subscription_of(request)
    wanted = await _sequences(request)
    tenant, id = access_of(request).tenant, request.path_params["id"]
    unknown: list[int] = []
    for begin in range(0, len(wanted.sequences), _LOOKUPS):
        some = wanted.sequences[begin : begin + _LOOKUPS]
        future, unknown_now = await asyncio.to_thread(broker_of(request).acknowledge, tenant, id, some)
        unknown += unknown_now
        await result_of(request, future)
    if unknown:
        raise ProblemError(
            422,
            f"{len(unknown)} of the sequences, listed in `unknown`, are not open deliveries of subscription "
            f"{id!r}; omit "
            "them (the others are acknowledged)",
            more={"unknown": unknown},
        )
    return answer({"acknowledged": len(wanted.sequences)})


@describes(
    "deliveries",
    scope=_SCOPE,
    body=Content(Sequences, example={"sequences": [4711], "delay": 1.5}),
    responses={200: Returned},
    errors=(404, 422, 507),
)
async def give_back(request: Request) -> Response:
    """POST /v1/subscriptions/{id}:nack: give deliveries back; they come again after `delay` seconds."""
    subscription_of(request)
    wanted = await _sequences(request)
    if not 0 <= wanted.delay <= 43_200:
        raise ProblemError(422, f"delay must be between 0 and 43,200 seconds, got {wanted.delay}")
    tenant, id = access_of(request).tenant, request.path_params["id"]
    unknown = broker_of(request).give_back(tenant, id, wanted.sequences, wanted.delay)
    await _buried(request)
    return answer({"returned": len(wanted.sequences) - len(unknown), "without_lease": unknown})


@describes(
    "deliveries",
    scope=_SCOPE,
    body=Content(Replay, example={"sequence": 1}),
    responses={200: Replayed | Status},
    errors=(404, 410, 422, 507),
)
async def replay(request: Request) -> Response:
    """POST /v1/subscriptions/{id}:replay: deliver again: everything from a sequence on, or the dead letters."""
    standing = subscription_of(request)
    broker = broker_of(request)
    wanted = decoded(await body_of(request, JSON_BYTES), Replay, "the replay request")
    tenant, id = access_of(request).tenant, request.path_params["id"]
    if sum((wanted.begin is not None, wanted.sequence is not None, wanted.dead_letters)) != 1:
        raise ProblemError(
            422,
            "the replay request must have exactly one of from, sequence and dead_letters; send "
            '{"from": "now" | N | "TIME"}, {"sequence": N} or {"dead_letters": true}',
        )
    if wanted.dead_letters:
        await _buried(request)
        future, revived, trimmed = broker.revive(tenant, id)
        await result_of(request, future)
        return answer({**_status(broker, id, standing), "replayed": len(revived), "trimmed": trimmed})
    name, given = ("from", wanted.begin) if wanted.sequence is None else ("sequence", wanted.sequence)
    assert given is not None
    found = await asyncio.to_thread(sequence_of, given, broker.log, name)
    begin = broker.matched_to + 1 if found is None else found
    if isinstance(given, str):
        begin = min(begin, broker.matched_to + 1)  # the log may be ahead of what is matched
    if not 1 <= begin <= broker.matched_to + 1:
        raise ProblemError(422, f"{name} must be between 1 and {broker.matched_to + 1}, got {begin}")
    if begin < broker.log.first:
        raise ProblemError(410, f"the log trimmed document {begin}; replay from {broker.log.first}, the oldest record")
    await result_of(request, broker.change([CursorRecord(tenant, id, begin - 1, replay=True)]))
    return answer(_status(broker, id, standing))


@describes("deliveries", scope=_SCOPE, responses={200: Status}, errors=(404, 507))
async def status(request: Request) -> Response:
    """GET /v1/subscriptions/{id}/status: show cursor, head, what is out, the last delivery and the last error."""
    standing = subscription_of(request)
    await _buried(request)
    id = request.path_params["id"]
    content = _status(broker_of(request), id, standing)
    if standing.record.sink is not None:
        content["sink"] = webhooks_of(request).shown(access_of(request).tenant, id, standing)
    return answer(content)


@describes("deliveries", scope=_SCOPE, parameters=(LETTERS, AFTER), responses={200: DeadLetterPage}, errors=(404, 507))
async def dead_letters(request: Request) -> Response:
    """GET /v1/subscriptions/{id}/dead-letters: list deliveries that were given up, by sequence, page by page."""
    standing = subscription_of(request)
    limit, after = LETTERS.of(request), AFTER.of(request)
    await _buried(request)
    letters, more = ([], False) if standing.dead is None else standing.dead.page(after, limit)
    dead = _dead(standing)
    content: DeadLetterPage = {"dead_letters": letters, "kept": dead["kept"], "total": dead["total"]}
    if more:
        content["next"] = letters[-1].sequence
    return answer(content)


async def _buried(request: Request) -> None:
    """Give up what has had its last attempt, and wait until that is durable."""
    standing = subscription_of(request)
    cursor, most = standing.cursor, standing.record.config.get("max_deliver")
    if most is not None and cursor is not None and cursor.attempts:
        bury, tenant = broker_of(request).bury, access_of(request).tenant
        await result_of(request, await asyncio.to_thread(bury, tenant, request.path_params["id"], most))


def _dead(standing: StandingSubscription) -> DeadLetterCount:
    """How many dead letters are kept, and how many there ever were."""
    dead = standing.dead
    return {"kept": 0, "total": 0} if dead is None else {"kept": len(dead.letters), "total": dead.total}


def _status(broker: Broker, id: str, standing: StandingSubscription) -> Status:
    cursor = standing.present_cursor()
    return {
        "id": id,
        "cursor": cursor.floor,
        "head": broker.matched_to,
        "lag": max(0, broker.matched_to - cursor.settled),
        "out": len(cursor.leases),
        "acknowledged_out_of_order": len(cursor.acknowledged),
        "dead_letters": _dead(standing),
        "last_delivery": standing.last_delivery,
        "last_error": standing.last_error,
    }


async def _sequences(request: Request) -> Sequences:
    wanted: Sequences = decoded(await body_of(request, JSON_BYTES), Sequences, "the list of sequences")
    if len(wanted.sequences) > SEQUENCES:
        raise ProblemError(
            413, f"the list has {len(wanted.sequences):,} sequences; send at most {SEQUENCES:,} per request"
        )
    return wanted
