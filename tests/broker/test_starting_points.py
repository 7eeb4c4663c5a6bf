"""Where deliveries begin: now, a sequence, a time; and what the status keeps of the last delivery and error."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pathcast.broker import Broker
from pathcast.log import SqliteLog

from .served_broker import Events, Served, served

# 2026-01-31T12:00:00Z, in microseconds.
NOON = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()) * 1_000_000


class Clock:
    """A log's clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def broker(tmp_path: Path, clock: Clock) -> Iterator[Served]:
    log = SqliteLog(tmp_path, segment_bytes=1 << 12, clock=clock)
    with served(tmp_path, broker=Broker(log)) as found:
        yield found


def publish(broker: Served, clock: Clock, seconds: int, document: str = "<a/>") -> int:
    clock.now = NOON + seconds * 1_000_000
    answer = broker.http.post("/v1/feeds/news/documents", content=document)
    return int(answer.json()["sequence"])


def subscribe(broker: Served, id: str, **config: object) -> None:
    broker.http.put(f"/v1/subscriptions/{id}", json={"xpath": "//a", "config": config}).raise_for_status()


def pulled(broker: Served, id: str, limit: int = 100) -> list[int]:
    answer = broker.http.post(f"/v1/subscriptions/{id}:pull", params={"limit": limit}).json()
    return [each["sequence"] for each in answer["deliveries"]]


TIMES = [
    ("2026-01-31T11:00:00Z", 0),
    ("2026-01-31T12:00:00Z", 0),
    ("2026-01-31T12:00:00.000001Z", 1),
    ("2026-01-31T12:00:10Z", 1),
    ("2026-01-31T14:00:10+02:00", 1),
    ("2026-01-31T12:00:11-00:00", 2),
    ("2026-01-31T12:00:21Z", 3),
    ("now", 3),
]


def test_a_subscription_and_a_replay_begin_at_the_first_document_at_or_after_a_time(
    broker: Served, clock: Clock
) -> None:
    for n in range(len(TIMES)):
        subscribe(broker, f"all{n}", **{"from": 1})
    sequences = [publish(broker, clock, seconds) for seconds in (0, 10, 20)]
    for n, (point, _) in enumerate(TIMES):
        assert pulled(broker, f"all{n}") == sequences
        subscribe(broker, f"some{n}", **{"from": point})
        broker.http.post(f"/v1/subscriptions/all{n}:replay", json={"from": point}).raise_for_status()
    sequences.append(publish(broker, clock, 30))
    for n, (point, first) in enumerate(TIMES):
        assert pulled(broker, f"some{n}") == pulled(broker, f"all{n}") == sequences[first:], point


def test_a_replay_begins_at_a_sequence(broker: Served, clock: Clock) -> None:
    subscribe(broker, "all", **{"from": 1})
    sequences = [publish(broker, clock, seconds) for seconds in (0, 10, 20)]
    for content in ({"from": sequences[1]}, {"sequence": sequences[1]}):
        broker.http.post("/v1/subscriptions/all:replay", json=content).raise_for_status()
        assert pulled(broker, "all") == sequences[1:]


NOWHERE: list[tuple[dict[str, object], str]] = [
    ({"from": "yesterday"}, "'yesterday'"),
    ({"from": "2026-01-01T00:00:00"}, "time zone"),
    ({"from": 0}, "at least 1"),
    ({"from": 10**9}, "between 1 and"),
    ({"from": 1, "sequence": 1}, "exactly one"),
    ({"from": 1, "dead_letters": True}, "exactly one"),
    ({}, "exactly one"),
]


def test_a_replay_from_nowhere_is_answered_with_the_reason(broker: Served) -> None:
    subscribe(broker, "all")
    for content, fragment in NOWHERE:
        answer = broker.http.post("/v1/subscriptions/all:replay", json=content)
        assert answer.status_code == 422, content
        assert fragment in answer.json()["detail"]


def test_the_status_has_the_last_delivery_and_the_last_error(broker: Served, clock: Clock) -> None:
    def status() -> dict[str, Any]:
        found: dict[str, Any] = broker.http.get("/v1/subscriptions/s/status").json()
        return found

    subscribe(broker, "s")
    assert (status()["last_delivery"], status()["last_error"]) == (None, None)
    events = Events(broker, "/v1/subscriptions/s/events")
    events.next()
    first = publish(broker, clock, 0)
    events.next_of_kind("document")
    # The stream notes a document once it is written, which a fast reader may see before.
    deadline = time.monotonic() + 60
    while status()["last_delivery"] is None:
        assert time.monotonic() < deadline
    events.close()
    assert (status()["last_delivery"]["sequence"], status()["last_delivery"]["way"]) == (first, "events")
    second = publish(broker, clock, 1)
    assert pulled(broker, "s") == [first, second]
    assert (status()["last_delivery"]["sequence"], status()["last_delivery"]["way"]) == (second, "pull")
    assert status()["last_error"] is None
    broker.http.post("/v1/subscriptions/s:nack", json={"sequences": [second]}).raise_for_status()
    assert pulled(broker, "s") == [second]
    assert f"the subscriber did not acknowledge document {second}; delivered again, attempt 2" in str(
        status()["last_error"]["reason"]
    )


def test_a_gap_is_the_last_error(broker: Served, clock: Clock) -> None:
    for id in ("pulls", "reads"):
        subscribe(broker, id)
    for seconds in range(30):
        publish(broker, clock, seconds, f"<a>{'x' * 512}</a>")
    first = broker.broker.trim(20)
    assert first > 4
    pulled(broker, "pulls")
    events = Events(broker, "/v1/subscriptions/reads/events", after=1)
    events.next_of_kind("gap")
    events.close()
    for id in ("pulls", "reads"):
        error = broker.http.get(f"/v1/subscriptions/{id}/status").json()["last_error"]
        assert error["reason"].startswith("the log trimmed documents ")
        assert f" {first - 1} before " in error["reason"]


def test_looking_at_a_status_makes_no_cursor(broker: Served) -> None:
    subscribe(broker, "s")
    broker.http.get("/v1/subscriptions/s/status").raise_for_status()
    assert broker.broker.state.subscriptions["default", "s"].cursor is None
