"""The state of the broker at a glance, and what is wrong, in words, each with its remedy.

Every token may ask. Counters and series are those of the whole broker, so only administrators see them; a tenant sees
how many subscriptions it has, its feeds, and problems of its own subscriptions.
"""

import time
from collections.abc import Iterator
from typing import Final, NotRequired, TypedDict
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from pathcast import __version__

from ...broker import Broker
from ...observation.recent_activity import STEP, RecentActivity
from ..openapi import describes
from ..request_bodies import answer
from ..request_context import access_of, broker_of
from ..sender_access_rights import Access

# Requests that wait for a batch: more mean that the broker gets more than it can do.
_WAITING: Final = 1_000
_WINDOW: Final = "in the last 10 minutes"
# Troubled subscriptions that an overview names.
_NAMED: Final = 20
_DEAD_LETTERS: Final = "/dead-letters"


class BrokerProblem(TypedDict):
    """What is wrong, and what to do. `subscription`: the one that it is about; `page`: where the workbench shows it."""

    severity: str
    problem: str
    remedy: str
    subscription: NotRequired[str]
    page: NotRequired[str]


class Totals(TypedDict):
    """What the broker did since it started."""

    accepted: int
    duplicate: int
    rejected: int
    dead_letter: int
    events: int
    pull: int
    webhook: int


class Series(TypedDict):
    """Points every `step` seconds, oldest first: per second, in seconds, and in records. null: nothing was measured."""

    step: float
    time: list[float]
    documents: list[float]
    deliveries: list[float]
    publish_p50: list[float | None]
    publish_p99: list[float | None]
    deliver_p99: list[float | None]
    lag_p99: list[float]
    lag_max: list[float]


class Overview(TypedDict):
    """The state of the broker: the log from `first` to `head`, and what the sender may know."""

    version: str
    time: float
    first: int
    head: int
    subscriptions: int
    feeds: int
    problems: list[BrokerProblem]
    totals: NotRequired[Totals]
    series: NotRequired[Series]


@describes("operation", responses={200: Overview})
async def overview(request: Request) -> Response:
    """GET /v1/overview: show what happens, and what is wrong.

    Administrators also get totals and series of the whole broker.
    """
    access, broker = access_of(request), broker_of(request)
    activity: RecentActivity = request.app.state.recent_activity
    problems = list(_of_tenant(access, broker))
    content: Overview = {
        "version": __version__,
        "time": time.time(),
        "first": broker.log.first,
        "head": broker.matched_to,
        "subscriptions": _subscriptions(access, broker),
        "feeds": sum(access.read is None or name in access.read for name in broker.state.feeds.copy()),
        "problems": problems,
    }
    if access.administer:
        content["problems"] = [*_of_broker(broker, activity), *problems]
        content["totals"] = _totals(activity)
        content["series"] = _series(activity)
    return answer(content, headers={"cache-control": "no-store"})


def _subscriptions(access: Access, broker: Broker) -> int:
    directory = broker.state.directory
    if access.subscribers is None:
        return directory.count(access.tenant)
    return sum(directory.count(access.tenant, each) for each in access.subscribers)


def _of_tenant(access: Access, broker: Broker) -> Iterator[BrokerProblem]:
    """Problems of subscriptions for which the sender may act."""
    found = sorted(id for tenant, id in broker.state.troubled.copy() if tenant == access.tenant)
    named = 0
    for id in found:
        standing = broker.state.subscriptions.get((access.tenant, id))
        if standing is None or not (access.subscribers is None or standing.record.subscriber in access.subscribers):
            continue
        named += 1
        if named > _NAMED:
            yield _problem(
                "warning",
                f"More subscriptions than the {_NAMED} named here have dead letters or a disabled webhook.",
                "Open the dead letters page: it lists them all.",
                page=_DEAD_LETTERS,
            )
            return
        if standing.disabled is not None:
            yield _problem(
                "error",
                f"Subscription {id} sends nothing to its webhook: {standing.disabled}.",
                "Repair the receiver, then save the subscription again.",
                subscription=id,
                page=f"/subscriptions?id={quote(id, safe='')}",
            )
        if standing.dead is not None and standing.dead.letters:
            count = len(standing.dead.letters)
            yield _problem(
                "warning",
                f"Subscription {id} has {count:,} dead {'letter' if count == 1 else 'letters'}.",
                "Open the dead letters page: correct the cause, then replay them.",
                subscription=id,
                page=_DEAD_LETTERS,
            )


def _of_broker(broker: Broker, activity: RecentActivity) -> Iterator[BrokerProblem]:
    """Problems of the broker as a whole."""
    if broker.failure is not None:
        yield _problem(
            "error",
            "The broker has stopped accepting documents and changes.",
            "Read the reason in the log of its process, correct it, and restart the broker. Nothing is lost.",
        )
    if activity.since("problems 507") > 0:
        yield _problem(
            "error",
            f"The disk was full {_WINDOW}.",
            "Free space, or set log.keep_bytes so that the broker trims old documents.",
        )
    if (rejected := int(activity.since("documents rejected"))) > 0:
        yield _problem(
            "warning",
            f"{rejected:,} unreadable {'document was' if rejected == 1 else 'documents were'} rejected {_WINDOW}.",
            "The publisher got the reason. With ?invalid=keep they become dead letters, which can be corrected here.",
        )
    if (kept := int(activity.since("documents dead_letter"))) > 0:
        yield _problem(
            "warning",
            f"{kept:,} unreadable {'document was' if kept == 1 else 'documents were'} kept as dead letters {_WINDOW}.",
            "Open the dead letters page: it shows the reason and the place, and publishes a corrected document.",
            page=_DEAD_LETTERS,
        )
    if (over_quota := int(activity.since("problems 429"))) > 0:
        yield _problem(
            "warning",
            f"{over_quota:,} {'request' if over_quota == 1 else 'requests'} exceeded a quota {_WINDOW}.",
            "Raise the quota in the broker's file, or ask the tenant to send less.",
        )
    if (failed := int(activity.since("webhook_requests failed"))) > 0:
        yield _problem(
            "warning",
            f"{failed:,} webhook {'request' if failed == 1 else 'requests'} failed {_WINDOW}.",
            "Look for subscriptions with a last error; the broker sends the deliveries again.",
            page="/subscriptions?trouble",
        )
    if broker.requests_waiting > _WAITING:
        yield _problem(
            "warning",
            f"{broker.requests_waiting:,} requests wait to be processed.",
            "Publish in batches, or spread feeds over several brokers.",
        )
    if not broker.rebuild.done:
        yield _problem(
            "information",
            "Documents of the log are matched again after the restart.",
            "Nothing to do. Until then, searches for old deliveries read the log and take longer.",
        )


def _problem(
    severity: str, problem: str, remedy: str, *, page: str | None = None, subscription: str | None = None
) -> BrokerProblem:
    found: BrokerProblem = {"severity": severity, "problem": problem, "remedy": remedy}
    if subscription is not None:
        found["subscription"] = subscription
    if page is not None:
        found["page"] = page
    return found


def _totals(activity: RecentActivity) -> Totals:
    latest = activity.latest
    counters = {} if latest is None else latest.counters

    def count(name: str) -> int:
        return int(counters.get(name, 0))

    return {
        "accepted": count("documents accepted"),
        "duplicate": count("documents duplicate"),
        "rejected": count("documents rejected"),
        "dead_letter": count("documents dead_letter"),
        "events": count("deliveries events"),
        "pull": count("deliveries pull"),
        "webhook": count("deliveries webhook"),
    }


def _series(activity: RecentActivity) -> Series:
    points = activity.points()
    return {
        "step": STEP,
        "time": [each.time for each in points],
        "documents": [each.documents for each in points],
        "deliveries": [each.deliveries for each in points],
        "publish_p50": [each.publish_p50 for each in points],
        "publish_p99": [each.publish_p99 for each in points],
        "deliver_p99": [each.deliver_p99 for each in points],
        "lag_p99": [each.lag_p99 for each in points],
        "lag_max": [each.lag_max for each in points],
    }
