"""A broker in a folder, and what a test does with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pathcast
from pathcast.broker import Accepted, Broker, Publication
from pathcast.broker_log import SubscriptionRecord
from pathcast.log import SqliteLog
from pathcast.patterns import parse

TENANT = "test"


@contextmanager
def broker_in(folder: Path, **options: object) -> Iterator[Broker]:
    """A broker over the log in a folder."""
    broker = Broker(SqliteLog(folder, segment_bytes=1 << 16), **options)  # type: ignore[arg-type]
    try:
        yield broker
    finally:
        broker.close()


def subscription(
    id: str, xpath: str, feeds: tuple[str, ...] = (), begin: int | None = None, subscriber: str = "ada"
) -> SubscriptionRecord:
    """The record of a subscription."""
    return SubscriptionRecord(TENANT, id, subscriber, xpath, str(parse(xpath)), {}, feeds, None, {}, begin)


def published(broker: Broker, feed: str, *documents: str) -> list[int]:
    """The sequences of documents that were just published."""
    results = broker.publish(feed, [Publication(each.encode()) for each in documents]).result()
    assert all(isinstance(each, Accepted) for each in results)
    return [each.sequence for each in results if isinstance(each, Accepted)]


def delivered(broker: Broker, id: str, after: int = 0, step: int = 7) -> list[int]:
    """All deliveries of a subscription after a position, fetched in small steps."""
    standing = broker.state.subscriptions[TENANT, id]
    found: list[int] = []
    while True:
        head = broker.matched_to
        step_found = broker.deliveries(standing, after, step)
        found += step_found.sequences
        after = step_found.searched_to
        if after >= head:
            return found


@cache
def _matcher(xpath: str) -> pathcast.Matcher:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add(xpath)
    return subscriptions.compile("reference")


def matches(xpath: str, document: str) -> bool:
    """What the library's plain definition says."""
    return len(_matcher(xpath).match(document).ids) > 0
