"""A disk without space: publications are rejected with advice, reading continues, and nothing accepted is lost.

The disk is full for files beyond a size: the limit of the operating system for the files of a process.
"""

import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from pathcast.broker import Broker
from pathcast.log import LogFullError, SqliteLog

from .broker_world import broker_in, delivered, published, subscription
from .served_broker import Events, Served, served

DOCUMENT = f"<a>{'x' * 4_000}</a>"


@contextmanager
def full_beyond(size: int) -> Iterator[None]:
    """No file grows beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_publishing_is_answered_507_and_reading_goes_on(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        http = server.http
        http.put("/v1/subscriptions/s", json={"xpath": "//a"}).raise_for_status()
        events = Events(server, "/v1/subscriptions/s/events", 0)
        accepted: list[int] = []
        with full_beyond(400_000):
            while (answer := publish(server, len(accepted))).status_code == 202:
                accepted.append(answer.json()["sequence"])
                assert len(accepted) < 200
            assert accepted
            assert (answer.status_code, answer.headers["retry-after"]) == (507, "60")
            assert answer.headers["content-type"] == "application/problem+json"
            assert "free disk space" in answer.json()["detail"]
            assert http.put("/v1/subscriptions/t", json={"xpath": "//b"}).status_code == 507
            assert http.get("/v1/subscriptions/t").status_code == 404
            assert http.get("/healthz").status_code == 200
            pulled = http.post("/v1/subscriptions/s:pull?limit=1000").json()["deliveries"]
            assert [each["sequence"] for each in pulled] == accepted
            assert [int(events.next_of_kind("document")["id"]) for _ in accepted] == accepted
            sequences = {"sequences": accepted[:1]}
            assert http.post("/v1/subscriptions/s:ack", json=sequences).status_code == 507
        again = publish(server, len(accepted))
        assert (again.status_code, again.json()["duplicate"]) == (202, False)
        accepted.append(again.json()["sequence"])
        assert http.put("/v1/subscriptions/t", json={"xpath": "//b"}).status_code == 201
        events.close()
    with broker_in(tmp_path) as broker:
        standing = broker.state.subscriptions["default", "s"]
        assert broker.search.after(standing, 0, 1_000, broker.matched_to).sequences == accepted


def publish(server: Served, number: int) -> httpx.Response:
    headers = {"ce-id": str(number), "ce-source": "press"}
    return server.http.post("/v1/feeds/news/documents", content=DOCUMENT, headers=headers)


@pytest.mark.parametrize("seed", range(4))
def test_what_was_accepted_on_a_disk_that_fills_again_and_again_is_there_after_a_restart(
    tmp_path: Path, seed: int
) -> None:
    """Small segments: the disk is also full while one ends and the next begins."""
    draw = random.Random(seed)
    accepted: list[int] = []
    full = 0
    for _ in range(3):
        broker = Broker(SqliteLog(tmp_path, segment_bytes=30_000))
        if not accepted:
            broker.subscribe(subscription("s", "//a")).result()
        for _ in range(15):
            with full_beyond(draw.randrange(1_000, 250_000)):
                try:
                    accepted += published(broker, "news", *[DOCUMENT] * draw.randrange(1, 6))
                except LogFullError:
                    full += 1
        with full_beyond(draw.choice([1, 1 << 30])):
            broker.close()
    assert full
    assert accepted
    with broker_in(tmp_path) as broker:
        assert delivered(broker, "s") == accepted


def test_a_full_disk_can_be_trimmed(tmp_path: Path) -> None:
    """Trimming first writes a checkpoint. Without space for it, what an earlier checkpoint covers can go."""
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        for _ in range(60):
            accepted = published(broker, "news", DOCUMENT)
    with broker_in(tmp_path) as broker, full_beyond(1):
        covered = broker.log.head
        with pytest.raises(LogFullError):
            published(broker, "news", DOCUMENT)
        first = broker.trim(covered)
        assert 1 < first <= covered
        assert delivered(broker, "s", after=first - 1)[-1:] == accepted


def test_trimming_a_full_disk_without_a_checkpoint_says_so_and_removes_nothing(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        for _ in range(60):
            published(broker, "news", DOCUMENT)
        with full_beyond(1), pytest.raises(LogFullError, match="free disk space"):
            broker.trim(broker.log.head)
        assert broker.log.first == 1
