"""Subscriptions that are sorted out before a search: never one that has deliveries."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from pathcast.broker import Broker, Publication
from pathcast.broker_log import SubscriptionRecord
from pathcast.log import SqliteLog

NAMES = "abcdef"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker on a new log."""
    broker = Broker(SqliteLog(tmp_path / "log"))
    yield broker
    broker.close()


def subscribe(broker: Broker, id: str, pattern: str, feeds: tuple[str, ...]) -> int:
    """Create or change a subscription."""
    return broker.subscribe(
        SubscriptionRecord("default", id, "ada", expression=pattern, pattern=pattern, feeds=feeds)
    ).result()


def test_a_quiet_subscription_has_no_deliveries(broker: Broker) -> None:
    chance, quiet_ones = random.Random(7), 0
    for _ in range(60):
        feeds = chance.choice([(), ("news",), ("news", "trades")])
        subscribe(broker, f"s{chance.randrange(40)}", f"//{chance.choice(NAMES)}", feeds)
        for _ in range(3):
            body = f"<{chance.choice(NAMES)}/>".encode()
            broker.publish(chance.choice(["news", "trades"]), [Publication(body)]).result()
        standing = list(broker.state.subscriptions.values())
        for position in range(max(0, broker.matched_to - 12), broker.matched_to + 1):
            for each, quiet in zip(standing, broker.quiet(standing, position), strict=True):
                quiet_ones += quiet
                assert not (quiet and broker.deliveries(each, position, 10).sequences)
    assert quiet_ones > 1_000


def test_a_subscription_that_begins_in_the_past_or_was_changed_is_searched(broker: Broker) -> None:
    broker.publish("news", [Publication(b"<a/>")]).result()
    position = broker.matched_to - 1
    record = SubscriptionRecord(
        "default", "past", "ada", expression="//a", pattern="//a", feeds=("news",), begin=position + 1
    )
    broker.subscribe(record).result()
    subscribe(broker, "other", "//b", ("news",))
    subscribe(broker, "other", "//c", ("news",))
    standing = [broker.state.subscriptions["default", id] for id in ("past", "other")]
    assert broker.quiet(standing, position) == [False, False]
    assert broker.quiet(standing[:1], broker.matched_to) == [True]
