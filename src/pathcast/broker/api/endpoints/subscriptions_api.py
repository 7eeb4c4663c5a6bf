"""Subscriptions over HTTP: create, change, read, list, end, check."""

import asyncio
from operator import itemgetter
from typing import Final, NotRequired, TypedDict

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from pathcast.broker_log import BrokerState, SubscriptionRecord
from pathcast.errors import PathcastError

from ...broker import Broker
from ...webhooks.webhook_delivery import WebhookDelivery
from ..body_lines import Line, line_groups
from ..openapi import NDJSON, Answer, Choice, Content, Header, Text, WholeNumber, describes
from ..problems import ProblemError, problem_of
from ..request_bodies import JSON_BYTES, answer, body_of, decoded
from ..request_context import access_of, broker_of, checked_name, quotas_of, result_of, subscription_of, webhooks_of
from ..sender_access_rights import Access
from .subscription_definition import Definition, Subscription, record_of, shown
from .subscription_search import count, page, page_of_troubled, wanted_by

# Subscriptions per page, and per bulk request.
PAGE: Final = 1_000
# Characters of a search.
QUERY: Final = 256
BULK_BYTES: Final = 1 << 30


class BulkItem(Definition):
    """One line of a bulk request; it needs an id."""


class Ended(TypedDict):
    """A subscription that was deleted, and the sequence where it ends."""

    id: str
    ended: int


class SubscriptionPage(TypedDict):
    """Subscriptions in the order of their ids; `next` is the `after` of the next page; a search has no `total`."""

    subscriptions: list[Subscription]
    total: NotRequired[int]
    next: NotRequired[str]


class LineError(TypedDict):
    """What is wrong with a line of a bulk request."""

    line: int
    status: int
    detail: str


class BulkResult(TypedDict):
    """How many lines were accepted and rejected, and what is wrong with the first of those."""

    accepted: int
    rejected: int
    errors: list[LineError]


LIMIT: Final = WholeNumber("limit", "The largest number of subscriptions to return.", 100, PAGE)
AFTER: Final = Text("after", "The last id of the previous page.")
SUBSCRIBER: Final = Text("subscriber", "Only subscriptions of this subscriber.")
TROUBLE: Final = Choice("trouble", "All, or only those with dead letters or a disabled webhook.", ("any", "only"))
SEARCH: Final = Text("q", "Only subscriptions whose id, subscriber or expression contains this text.")
IF_NONE_MATCH: Final = Header("if-none-match", "* creates a subscription, and never changes one.")
_SCOPE: Final = "subscribe:{subscriber}"
_LINES: Final = """\
{"id": "titles", "xpath": "//title", "feeds": ["news"]}
{"id": "quotes", "xpath": "//quote", "feeds": ["news"]}
"""
_EXAMPLE: Final = {
    "subscriber": "ada",
    "feeds": ["news"],
    "filters": [{"xpath": {"expression": "//f:quote[@price > 5]", "namespaces": {"f": "urn:f"}}}],
    "config": {"from": "now", "in_flight": 256, "ack_wait": 30, "max_deliver": 10},
}


@describes(
    "subscriptions",
    scope=f"{_SCOPE} read:{{feed}}",
    parameters=(IF_NONE_MATCH,),
    body=Content(Definition, example=_EXAMPLE),
    responses={200: Answer(Subscription, "Changed."), 201: Answer(Subscription, "Created.")},
    errors=(409, 410, 412, 422, 429, 507),
)
async def put_subscription(request: Request) -> Response:
    """PUT /v1/subscriptions/{id}: create a subscription, or change it.

    It is in force when this answers: every document with a later sequence is matched with it.
    """
    access, broker = access_of(request), broker_of(request)
    id = checked_name(request.path_params["id"], "subscription")
    definition = decoded(await body_of(request, JSON_BYTES), Definition, "the subscription")
    before = broker.state.subscriptions.get((access.tenant, id))
    if before is not None:
        access.check_subscriber(before.record.subscriber)
        if IF_NONE_MATCH.of(request) == "*":
            raise ProblemError(412, f"subscription id {id!r} is already in use; choose another id")
    record = await asyncio.to_thread(record_of, definition, id, access, broker.log)
    webhooks = webhooks_of(request)
    webhooks.check(record)
    quotas = quotas_of(request)
    quotas.admit(record)
    try:
        await result_of(request, broker.subscribe(record))
    finally:
        quotas.settle([record])
    found = broker.state.subscriptions.get((access.tenant, id))
    if found is None:
        raise ProblemError(
            409, f"another request deleted subscription {id!r} at the same time; send this request again"
        )
    content = shown(id, found)
    if before is None and record.sink is not None:
        content["secret"] = await asyncio.to_thread(webhooks.keys.secret_of, access.tenant, id, found.created)
    return answer(content, 200 if before is not None else 201, {"cache-control": "no-store"})


class Secret(TypedDict):
    """What the webhooks of a subscription are signed with."""

    secret: str


@describes("subscriptions", scope=_SCOPE, responses={200: Secret}, errors=(404,))
async def get_secret(request: Request) -> Response:
    """GET /v1/subscriptions/{id}/secret: read what the subscription's webhooks are signed with."""
    standing, id = subscription_of(request), request.path_params["id"]
    if standing.record.sink is None:
        raise ProblemError(404, f"subscription {id!r} has no secret, because it has no sink; set its sink first")
    secret_of = webhooks_of(request).keys.secret_of
    secret = await asyncio.to_thread(secret_of, access_of(request).tenant, id, standing.created)
    return answer({"secret": secret}, headers={"cache-control": "no-store"})


@describes("subscriptions", scope=_SCOPE, responses={200: Subscription}, errors=(404,))
async def get_subscription(request: Request) -> Response:
    """GET /v1/subscriptions/{id}: read a subscription."""
    return answer(shown(request.path_params["id"], subscription_of(request)))


@describes("subscriptions", scope=_SCOPE, responses={200: Ended}, errors=(404, 507))
async def delete_subscription(request: Request) -> Response:
    """DELETE /v1/subscriptions/{id}: end a subscription; it ends where the answer's sequence stands in the log."""
    subscription_of(request)
    id = request.path_params["id"]
    sequence = await result_of(request, broker_of(request).unsubscribe(access_of(request).tenant, id))
    return answer({"id": id, "ended": sequence})


@describes("subscriptions", parameters=(LIMIT, AFTER, SUBSCRIBER, SEARCH, TROUBLE), responses={200: SubscriptionPage})
async def list_subscriptions(request: Request) -> Response:
    """GET /v1/subscriptions: list or search subscriptions in the order of their ids, page by page.

    A search looks at a bounded number of subscriptions per page: continue while there is a `next`.
    """
    access, state = access_of(request), broker_of(request).state
    text = SEARCH.of(request) or ""
    if len(text) > QUERY:
        raise ProblemError(400, f"q has {len(text):,} characters; search for at most {QUERY}")
    wanted = wanted_by(access, SUBSCRIBER.of(request), text)
    after, only_trouble = AFTER.of(request) or "", TROUBLE.of(request) == "only"
    find = page_of_troubled if only_trouble else page
    found = await asyncio.to_thread(find, state, access.tenant, wanted, after, LIMIT.of(request))
    result: SubscriptionPage = {"subscriptions": [shown(*each) for each in found.subscriptions]}
    if not (text or only_trouble):
        result["total"] = count(state, access.tenant, wanted)
    if found.next is not None:
        result["next"] = found.next
    return answer(result)


def ids_for(access: Access, state: BrokerState) -> list[str]:
    """The subscriptions for which somebody may act, in no order."""
    if access.subscribers is None:
        return [id for tenant, id in list(state.subscriptions) if tenant == access.tenant]
    return [id for each in access.subscribers for id in state.directory.all_of(access.tenant, each)]


@describes(
    "subscriptions",
    scope=f"{_SCOPE} read:{{feed}}",
    body=Content(BulkItem, NDJSON, _LINES, line=True),
    responses={200: BulkResult, 422: Answer(BulkResult, "The broker accepted no line.")},
    errors=(507,),
)
async def post_subscriptions(request: Request) -> Response:
    """POST /v1/subscriptions: create or change many subscriptions, one per line; faulty lines are reported."""
    result: BulkResult = {"accepted": 0, "rejected": 0, "errors": []}
    try:
        async for group in line_groups(request, BULK_BYTES, JSON_BYTES):
            await _subscribe(request, group, result)
    except PathcastError as error:
        # Groups before this one stay: the client learns how much of its work is done.
        problem = problem_of(error)
        problem.more |= {"accepted": result["accepted"], "rejected": result["rejected"]}
        raise problem from None
    return answer(result, 200 if result["accepted"] else 422)


async def _subscribe(request: Request, group: list[Line], result: BulkResult) -> None:
    """Create the subscriptions of some lines, and count them in the result."""
    quotas = quotas_of(request)
    checked, wrong = await asyncio.to_thread(
        _records, group, access_of(request), broker_of(request), webhooks_of(request)
    )
    records: list[SubscriptionRecord] = []
    try:
        for number, record in checked:
            try:
                quotas.admit(record)
            except ProblemError as problem:
                wrong.append(_error(number, problem))
            else:
                records.append(record)
        if records:
            await result_of(request, broker_of(request).change(records))
    finally:
        quotas.settle(records)
    result["accepted"] += len(records)
    result["rejected"] += len(wrong)
    result["errors"] += sorted(wrong, key=itemgetter("line"))[: PAGE - len(result["errors"])]


def _error(line: int, problem: ProblemError) -> LineError:
    return {"line": line, "status": problem.status, "detail": problem.reason}


def _records(
    group: list[Line], access: Access, broker: Broker, webhooks: WebhookDelivery
) -> tuple[list[tuple[int, SubscriptionRecord]], list[LineError]]:
    """The records of some lines, with their lines, and what is wrong with the other lines."""
    records: list[tuple[int, SubscriptionRecord]] = []
    errors: list[LineError] = []
    for number, line in group:
        if line is not None and not line.strip():
            continue
        try:
            if line is None:
                raise ProblemError(413, f"the line has more than {JSON_BYTES:,} bytes; shorten the subscription")
            item = decoded(line, BulkItem, "the subscription")
            if item.id is None:
                raise ProblemError(422, "a subscription in a bulk request has no id; add an id")
            before = broker.state.subscriptions.get((access.tenant, item.id))
            if before is not None:
                access.check_subscriber(before.record.subscriber)
            record = record_of(item, checked_name(item.id, "subscription"), access, broker.log)
            webhooks.check(record)
            records.append((number, record))
        except PathcastError as error:
            errors.append(_error(number, problem_of(error)))
    return records, errors


class Check(Struct):
    """What a check says of an expression."""

    normal_form: str


@describes(
    "subscriptions",
    scope=f"{_SCOPE} read:{{feed}}",
    body=Content(Definition, example={"xpath": "//title[. = 'Rain']", "feeds": ["news"]}),
    responses={200: Check},
    errors=(410, 422),
)
async def check_subscription(request: Request) -> Response:
    """POST /v1/subscriptions:check: parse a subscription without saving it."""
    definition = decoded(await body_of(request, JSON_BYTES), Definition, "the subscription")
    record = await asyncio.to_thread(
        record_of, definition, definition.id or "checked", access_of(request), broker_of(request).log
    )
    webhooks_of(request).check(record)
    return answer(Check(record.pattern))
