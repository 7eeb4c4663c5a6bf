"""Feeds over HTTP: their names for readers, their settings for administrators.

    PUT    /v1/feeds/news   {"limits": {"depth": 50, "size": 1048576}, "retention": {"age": 86400}}
    PUT    /v1/feeds/shop   {"mediator": {"schema": "…", "mappings": {"annex": "name = …"}}}
    DELETE /v1/feeds/news   its settings, and the delivery of its documents

A setting is in force for the documents that are published after it; those before it stay as they were accepted or
rejected. `PUT` replaces all settings of the feed: what is left out is as for all feeds (`[limits]` of broker.toml).
A feed without a `mediator` has none: its documents are matched as they are. With `"matching": "spark"` the broker
leaves matching of the documents after it to Spark (matching_api.py).
"""

import asyncio
from dataclasses import asdict
from typing import Annotated, Final, Literal, NotRequired, TypedDict

from msgspec import UNSET, Meta, Struct, UnsetType, field, structs
from starlette.requests import Request
from starlette.responses import Response

from pathcast.broker_log import ExpiryRecord, FeedMediator, FeedRecord

from ...broker import Broker
from ..openapi import Answer, Content, describes
from ..problems import ProblemError
from ..request_bodies import JSON_BYTES, answer, body_of, decoded
from ..request_context import access_of, broker_of, feed_of, quotas_of, result_of

# A document is a record of the log, which has at most 999 million bytes.
_LARGEST: Final = 900_000_000
_MAPPINGS: Final = 100
# Mediators that a feed's documents in the log may have: each is in memory.
_VERSIONS: Final = 100
_Count = Annotated[int, Meta(ge=1, le=(1 << 31) - 1)]


class FeedLimits(Struct, forbid_unknown_fields=True):
    """The limits of a feed's documents: `documents.Limits`, but for that of subscriptions (`evaluation`)."""

    depth: _Count | UnsetType = UNSET
    size: Annotated[int, Meta(ge=1, le=_LARGEST)] | UnsetType = UNSET
    attributes: _Count | UnsetType = UNSET
    names: _Count | UnsetType = UNSET
    name_length: _Count | UnsetType = UNSET
    amplification: _Count | UnsetType = UNSET
    work: Annotated[int, Meta(ge=1, le=1 << 60)] | UnsetType = UNSET

    def given(self) -> dict[str, int]:
        """The limits that are not left out."""
        return {name: value for name, value in structs.asdict(self).items() if value is not UNSET}


class FeedRetention(Struct, forbid_unknown_fields=True):
    """What is delivered: documents of at most this age in seconds, and the newest, up to this number of bytes."""

    age: Annotated[float, Meta(gt=0, le=1e10)] | None = None
    bytes: Annotated[int, Meta(ge=1, le=1 << 60)] | None = None


class MediatorSettings(Struct, forbid_unknown_fields=True):
    """The schema that subscriptions use, as an indented text; by publishers' schemas, mappings to it in TOML."""

    schema: str
    mappings: Annotated[
        dict[Annotated[str, Meta(min_length=1, max_length=1024)], str], Meta(min_length=1, max_length=_MAPPINGS)
    ]


class FeedSettings(Struct, forbid_unknown_fields=True):
    """What an administrator sends."""

    limits: FeedLimits = field(default_factory=FeedLimits)
    retention: FeedRetention = field(default_factory=FeedRetention)
    mediator: MediatorSettings | None = None
    matching: Literal["broker", "spark"] = "broker"


class FeedName(TypedDict):
    """A feed as readers see it; administrators also see how many patterns are matched with its documents."""

    name: str
    patterns: NotRequired[int]


class FeedNames(TypedDict):
    """All feeds that the sender may read."""

    feeds: list[FeedName]


class Retention(TypedDict):
    """What a feed delivers: an age in seconds, and bytes; null for everything."""

    age: float | None
    bytes: int | None


class ShownMediator(TypedDict):
    """A feed's mediator, as it was sent."""

    schema: str
    mappings: dict[str, str]


class Feed(TypedDict):
    """A feed as administrators read it: what was set, and what is in force."""

    name: str
    limits: dict[str, int]
    limits_in_force: dict[str, int]
    retention: Retention
    expired_before: int
    mediator: ShownMediator | None
    matching: str


class Ended(TypedDict):
    """A deleted feed; documents before the sequence `ended` are no longer delivered."""

    name: str
    ended: int


@describes("feeds", responses={200: FeedNames})
async def list_feeds(request: Request) -> Response:
    """GET /v1/feeds: list the feeds that the token may read."""
    access, broker = access_of(request), broker_of(request)
    names = sorted(name for name in broker.state.feeds.copy() if access.read is None or name in access.read)
    if not access.administer:  # the patterns are those of all tenants
        return answer({"feeds": [{"name": name} for name in names]})
    found = [(name, broker.indexes.get(name)) for name in names]
    return answer({"feeds": [{"name": name, "patterns": 0 if of is None else len(of)} for name, of in found]})


@describes(
    "feeds",
    scope="administer",
    body=Content(FeedSettings, example={"limits": {"depth": 50, "size": 1_048_576}}),
    responses={200: Feed, 201: Answer(Feed, "The request created the feed.")},
    errors={409: "The log has too many mediators of the feed; trim it first.", 422: "", 429: "", 507: ""},
)
async def put_feed(request: Request) -> Response:
    """PUT /v1/feeds/{feed}: create a feed, or replace its settings.

    The settings are in force when this answers. What is left out is as for all feeds. With a `mediator`, documents are
    matched in its schema, each by the mapping of its own, and delivered as they came.
    """
    access_of(request).check_administer()
    name, broker = feed_of(request), broker_of(request)
    wanted: FeedSettings = decoded(await body_of(request, JSON_BYTES), FeedSettings, "the feed")
    is_new = name not in broker.state.feeds
    kept = wanted.retention
    mediator = await _checked(broker, name, wanted.mediator)
    tenant, quotas = access_of(request).tenant, quotas_of(request)
    quotas.admit_feed(tenant, name)
    before = broker.state.feeds.get(name)
    record = FeedRecord(
        name,
        wanted.limits.given(),
        keep_seconds=kept.age,
        keep_bytes=kept.bytes,
        mediator=mediator,
        matching=wanted.matching,
        creator=tenant if before is None else before.creator,
    )
    try:
        await result_of(request, broker.change([record]))
    finally:
        quotas.settle_feed(tenant, name)
    return answer(_shown(broker, name), 201 if is_new else 200)


@describes("feeds", scope="administer", responses={200: Ended}, errors=(404, 507))
async def delete_feed(request: Request) -> Response:
    """DELETE /v1/feeds/{feed}: end the delivery of all documents of a feed, and remove its settings."""
    access_of(request).check_administer()
    name, broker = feed_of(request), broker_of(request)
    _record_of(broker, name)
    sequence = await result_of(request, broker.change([ExpiryRecord(name), FeedRecord(name, removed=True)]))
    return answer({"name": name, "ended": sequence})


@describes("feeds", scope="administer", responses={200: Feed}, errors=(404,))
async def get_feed(request: Request) -> Response:
    """GET /v1/feeds/{feed}: read the settings of a feed."""
    access_of(request).check_administer()
    return answer(_shown(broker_of(request), feed_of(request)))


async def _checked(broker: Broker, name: str, wanted: MediatorSettings | None) -> FeedMediator | None:
    """The mediator to keep; `MappingError` if it is invalid, `ProblemError` if the log has too many of the feed."""
    if wanted is None:
        return None
    mediator = FeedMediator(wanted.schema, wanted.mappings)
    if mediator == broker.state.mediator_of(name):
        return mediator
    if len(broker.state.mediators.get(name, ())) >= _VERSIONS:
        raise ProblemError(
            409,
            f"the log already has {_VERSIONS} different mediators of feed {name!r}, the maximum; keep the "
            "current mediator until the log is trimmed, or use another feed",
        )
    from pathcast.broker_log import check_mediator

    await asyncio.to_thread(check_mediator, mediator)
    return mediator


def _shown(broker: Broker, name: str) -> Feed:
    record = _record_of(broker, name)
    mediator = record.mediator
    return {
        "name": name,
        "limits": record.limits,
        "limits_in_force": asdict(broker.state.limits_of(name)),
        "retention": {"age": record.keep_seconds, "bytes": record.keep_bytes},
        "expired_before": broker.state.expired.get(name, 0),
        "mediator": None if mediator is None else {"schema": mediator.schema, "mappings": mediator.mappings},
        "matching": record.matching,
    }


def _record_of(broker: Broker, name: str) -> FeedRecord:
    record = broker.state.feeds.get(name)
    if record is None:
        raise ProblemError(404, f"unknown feed {name!r}; create it with PUT /v1/feeds/{name}, or publish to it")
    return record
