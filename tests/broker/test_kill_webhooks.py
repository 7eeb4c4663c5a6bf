"""A broker that is killed again and again, at random moments, while it sends webhooks.

Every document that was acknowledged to a publisher and matches arrives, in order, signed; what comes again has the same
id and body. What the subscription's cursor had passed before a kill does not come again after it: the receiver answered
it, and its acknowledgement was durable.
"""

import random
import time
from pathlib import Path

import httpx
import pytest

from .broker_process import BrokerProcess
from .test_kill import Publisher, document
from .webhook_receiver import PATIENCE, receiving


def cursor_of(http: httpx.Client) -> int:
    """The sequence up to which the receiver has everything."""
    return int(http.get("/v1/subscriptions/hook/status").raise_for_status().json()["cursor"])


def wait_past(http: httpx.Client, publishers: list[Publisher], sequence: int) -> int:
    """Wait until the cursor is at a sequence, or beyond, as long as it moves; returns it."""
    end, before = time.monotonic() + PATIENCE, -1
    while (cursor := cursor_of(http)) < sequence:
        if cursor > before:
            end, before = time.monotonic() + PATIENCE, cursor
        assert time.monotonic() < end, (cursor, sequence)
        assert not any(each.error for each in publishers), [each.error for each in publishers]
        time.sleep(0.005)
    return cursor


@pytest.mark.slow
def test_a_killed_broker_sends_every_webhook_and_none_that_its_cursor_passed(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kills = 100 if request.config.getoption("--long") else 3
    moments = random.Random(kills)
    settings = tmp_path / "broker.toml"
    settings.write_text("[webhooks]\nallow_private = true\n", encoding="utf-8")
    passed: list[tuple[int, int]] = []  # per kill: the cursor before it, and how many requests had arrived by then
    with (
        receiving() as receiver,
        BrokerProcess(tmp_path / "data", settings=settings) as broker,
        httpx.Client(base_url=broker.address, timeout=PATIENCE, headers={"connection": "close"}) as http,
    ):
        wanted = {"xpath": "//d[@k = '1']", "sink": receiver.url}
        secret = http.put("/v1/subscriptions/hook", json=wanted).raise_for_status().json()["secret"]
        publishers = [Publisher(broker.address, name) for name in ("p", "q")]
        for publisher in publishers:
            publisher.start()
        cursor = 0
        for _ in range(kills):
            # In the midst of work: the cursor moved on since the last start, and a random moment more.
            wait_past(http, publishers, cursor + moments.randrange(1, 100))
            time.sleep(moments.uniform(0, 0.1))
            cursor = cursor_of(http)
            broker.kill()
            passed.append((cursor, len(receiver.received)))
            broker.start()
        for publisher in publishers:
            publisher.finish.set()
            publisher.join(PATIENCE)
            assert not publisher.is_alive()
        accepted = {sequence: document(id) for each in publishers for id, sequence in each.accepted.items()}
        expected = sorted(sequence for sequence, body in accepted.items() if "k='1'" in body)
        wait_past(http, publishers, expected[-1])
        assert broker.stop() == 0, broker.errors()
    assert list(dict.fromkeys(receiver.sequences())) == expected
    bodies: dict[str, bytes] = {}
    ids: dict[int, str] = {}
    for received in receiver.received:
        received.verify(secret)
        id = received.headers["webhook-id"]
        assert bodies.setdefault(id, received.body) == received.body
        assert ids.setdefault(received.sequence, id) == id
        assert accepted[received.sequence].encode() in received.body
    assert len(bodies) == len(expected)
    for cursor, arrived in passed:
        assert [each for each in receiver.sequences()[arrived:] if each <= cursor] == []
