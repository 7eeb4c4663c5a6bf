"""The log over HTTP, for administrators: records as an Arrow stream, and the read leases that keep them.

    GET    /v1/log?from=&to=&kinds=&feeds=&bodies=&lease=   records `from` to `to` (both inclusive)
    GET    /v1/log/checkpoint                               what the records up to a sequence add up to
    POST   /v1/log/leases {"from": 4711}                    keep records from there on, for a minute
    PUT    /v1/log/leases/{id} {"from": 5000}               keep them for a minute more; release those before
    DELETE /v1/log/leases/{id}                              release them

The log has the records of all tenants, and documents that guards mask: it is not for tenants, not even for an
administrator whose own tenant has a guard.

Docs: docs/reference/log-stream.md.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pathcast.broker_log import KINDS
from pathcast.errors import LimitError
from pathcast.log import ReadLease

from ...arrow_log_stream import RANGE, LogReading, Wanted
from ...broker import Broker
from ..openapi import Answer, Choice, Content, Text, WholeNumber, describes
from ..problems import ProblemError
from ..request_bodies import JSON_BYTES, answer, body_of, decoded
from ..request_context import access_of, broker_of, checked_name

MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"
_END: Final = (1 << 63) - 2


FROM: Final = WholeNumber("from", "The first record; the default is the oldest.", None, _END)
TO: Final = WholeNumber("to", "The last record, inclusive; the answer may end earlier.", _END, _END)
KINDS_WANTED: Final = Text("kinds", f"Kinds of records, separated by commas: {', '.join(KINDS)}.")
FEEDS_WANTED: Final = Text("feeds", "Feeds, separated by commas; the default is all.")
BODIES: Final = Choice("bodies", "Send documents with or without their bodies.", ("inline", "none"))
LEASE: Final = Text("lease", "A lease on these records; the request extends it.")


class LeaseRequest(Struct, forbid_unknown_fields=True):
    """The first record to keep; without it, all that the log has, or those that the lease keeps already."""

    begin: int | None = field(name="from", default=None)


class Lease(Struct):
    """A read lease: records from `from` on stay for `expires_in` seconds, and with extensions for `longest`."""

    id: str
    begin: int = field(name="from")
    expires_in: float
    longest: float


class Leases(Struct):
    """All leases."""

    leases: list[Lease]


@describes(
    "log",
    scope="administer",
    parameters=(FROM, TO, KINDS_WANTED, FEEDS_WANTED, BODIES, LEASE),
    responses={
        200: Answer(
            Content(None, MEDIA_TYPE),
            "An Arrow stream of records.",
            {
                "pathcast-from": "The first sequence that the answer covers.",
                "pathcast-to": "The last sequence that the answer covers.",
                "pathcast-head": "The last sequence of the log.",
            },
        )
    },
    errors=(404, 410, 422, 429),
)
async def read_log(request: Request) -> Response:
    """GET /v1/log: stream records of the log as Arrow."""
    broker = whole_log(request)
    head = broker.matched_to
    begin = FROM.of(request, broker.log.first)
    if begin < 1:
        raise ProblemError(400, f"from must be at least 1, got {begin}; omit from= to read from the oldest record")
    if begin > head + 1:
        raise ProblemError(
            422,
            f"from={begin} is beyond the end of the log, whose last record is {head}; give at most {head + 1}",
        )
    to = min(TO.of(request), head, begin + RANGE - 1)
    expired = {feed: before for feed, before in broker.state.expired.copy().items() if before > broker.log.first}
    wanted = Wanted(
        begin, max(begin, to + 1), _kinds(request), _feeds(request), BODIES.of(request) == "inline", expired
    )
    lease = LEASE.of(request)
    if lease is not None and await asyncio.to_thread(broker.leases.extend, lease) is None:
        raise _no_lease()
    reading = await _taken(LogReading, broker.log, broker.leases, wanted, lease)
    headers = {
        "pathcast-from": str(wanted.begin),
        "pathcast-to": str(wanted.end - 1),
        "pathcast-head": str(head),
        "cache-control": "no-store",
    }
    return LogAnswer(reading, headers)


class LogAnswer(StreamingResponse):
    """The pieces of a reading, each read when the one before was sent."""

    def __init__(self, reading: LogReading, headers: dict[str, str]) -> None:
        super().__init__(self._pieces(), headers=headers, media_type=MEDIA_TYPE)
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer; however that ends, the lease ends with it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            # In a thread, since a trim may hold the lock; not awaited, since this task may be cancelled.
            asyncio.get_running_loop().run_in_executor(None, self._reading.close)

    async def _pieces(self) -> AsyncIterator[bytes]:
        while (piece := await asyncio.to_thread(self._reading.piece)) is not None:
            if piece:
                yield piece


@describes(
    "log",
    scope="administer",
    responses={
        200: Answer(
            Content(None, "application/octet-stream"),
            "The latest checkpoint: what the records up to its sequence add up to. Its format is Pathcast's own.",
            {"pathcast-sequence": "The last record that the checkpoint takes into account."},
        ),
        204: Answer(None, "The log has no checkpoint yet, so no record was trimmed."),
    },
)
async def read_checkpoint(request: Request) -> Response:
    """GET /v1/log/checkpoint: the latest checkpoint, for readers of a log whose first records were trimmed."""
    broker = whole_log(request)
    found = await asyncio.to_thread(broker.log.checkpoint)
    if found is None:
        return Response(status_code=204)
    headers = {"pathcast-sequence": str(found.sequence), "cache-control": "no-store"}
    return Response(found.data, media_type="application/octet-stream", headers=headers)


@describes(
    "log",
    scope="administer",
    body=Content(LeaseRequest, example={"from": 1}),
    responses={201: Lease},
    errors=(410, 422, 429),
)
async def post_lease(request: Request) -> Response:
    """POST /v1/log/leases: keep records from a sequence on, for a minute; 410 if they are trimmed already."""
    broker = whole_log(request)
    wanted = await _lease_request(request)
    head = broker.matched_to
    if wanted.begin is not None and wanted.begin > head + 1:
        raise ProblemError(
            422,
            f"from={wanted.begin} is beyond the end of the log, whose last record is {head}; give at most {head + 1}",
        )
    lease = await _taken(broker.leases.take, wanted.begin)
    return answer(_shown(broker, lease), 201)


@describes("log", scope="administer", responses={200: Leases})
async def list_leases(request: Request) -> Response:
    """GET /v1/log/leases: list all leases, those of requests in progress, too."""
    broker = whole_log(request)
    held = await asyncio.to_thread(broker.leases.held)
    return answer(Leases([_shown(broker, each) for each in held]))


@describes(
    "log",
    scope="administer",
    body=Content(LeaseRequest, example={"from": 2}),
    responses={200: Lease},
    errors=(404, 422),
)
async def put_lease(request: Request) -> Response:
    """PUT /v1/log/leases/{lease}: extend a lease, and move its place forward."""
    broker = whole_log(request)
    wanted = await _lease_request(request)
    lease = await asyncio.to_thread(broker.leases.extend, request.path_params["lease"], wanted.begin or 0)
    if lease is None:
        raise _no_lease()
    return answer(_shown(broker, lease))


@describes("log", scope="administer", responses={204: Answer()}, errors=(404,))
async def delete_lease(request: Request) -> Response:
    """DELETE /v1/log/leases/{lease}: release a lease."""
    broker = whole_log(request)
    if not await asyncio.to_thread(broker.leases.release, request.path_params["lease"]):
        raise _no_lease()
    return Response(status_code=204)


def whole_log(request: Request) -> Broker:
    """The broker, if the sender may read all records of all tenants."""
    access, broker = access_of(request), broker_of(request)
    access.check_administer()
    if any(span.record.pattern is not None for span in broker.state.guards.get(access.tenant, ())):
        raise ProblemError(
            403,
            f"tenant {access.tenant!r} has a guard, so its tokens cannot read the log, which has the masked values; "
            "use a token of a tenant without a guard",
        )
    return broker


async def _taken(take: Any, *arguments: Any) -> Any:
    """What `take` returns, in a thread; 429 if there are too many leases."""
    try:
        return await asyncio.to_thread(take, *arguments)
    except LimitError as error:
        raise ProblemError(429, error.reason, headers={"retry-after": "10"}) from None


async def _lease_request(request: Request) -> LeaseRequest:
    wanted: LeaseRequest = decoded(await body_of(request, JSON_BYTES) or b"{}", LeaseRequest, "the lease")
    if wanted.begin is not None and wanted.begin < 1:
        raise ProblemError(422, f"from must be at least 1, got {wanted.begin}; omit from to keep the oldest records")
    return wanted


def _shown(broker: Broker, lease: ReadLease) -> Lease:
    expires_in, longest = broker.leases.seconds_left(lease)
    return Lease(lease.id, lease.begin, round(expires_in, 3), round(longest, 3))


def _no_lease() -> ProblemError:
    return ProblemError(
        404, "unknown lease: the lease expired, was released, or ended when the broker restarted; request a new lease"
    )


def _kinds(request: Request) -> tuple[str, ...] | None:
    text = KINDS_WANTED.of(request)
    if text is None:
        return None
    kinds = tuple(dict.fromkeys(text.split(",")))
    for kind in kinds:
        if kind not in KINDS:
            raise ProblemError(
                400, f"unknown kind {kind[:40]!r} in kinds={text[:200]!r}; use one of {', '.join(KINDS)}"
            )
    return kinds


def _feeds(request: Request) -> frozenset[str] | None:
    text = FEEDS_WANTED.of(request)
    return None if text is None else frozenset(checked_name(name, "feed") for name in text.split(","))
