"""A broker answers only while its lease is valid: when a request comes, and when its answer leaves."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.types import Message, Receive, Scope, Send

from pathcast.broker import read_settings
from pathcast.broker.api.middleware.active_broker_check import WhileActive
from pathcast.broker.standby import Standby

from ..log.nats_servers import NatsServer
from .served_broker import Served, served
from .settable_clock import SettableClock
from .test_jetstream_broker import settings_file

SECONDS = 3_600


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def broker(tmp_path: Path, nats_server: NatsServer, clock: SettableClock) -> Iterator[Served]:
    """An active broker whose lease lasts an hour of the clock."""
    settings = read_settings(settings_file(tmp_path, nats_server.url, tmp_path.name, f"lease_time = {SECONDS}\n"))
    with closing(Standby(settings, "http://one", clock)) as standby:
        assert standby.take()
        with served(tmp_path, settings, standby.broker(), standby) as found:
            yield found


@pytest.mark.slow
def test_a_broker_whose_lease_ran_out_neither_delivers_nor_appends(broker: Served, clock: SettableClock) -> None:
    broker.http.put("/v1/subscriptions/s", json={"xpath": "//d"}).raise_for_status()
    sequence = broker.http.post("/v1/feeds/f/documents", content="<d/>").json()["sequence"]
    clock.now = SECONDS
    head = broker.broker.log.head
    assert broker.http.post("/v1/subscriptions/s:pull").status_code == 503
    assert broker.http.post("/v1/subscriptions/s:ack", json={"sequences": [sequence]}).status_code == 503
    answer = broker.http.post("/v1/feeds/f/documents", content="<d/>")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert broker.http.get("/readyz").status_code == 503
    assert broker.http.get("/healthz").status_code == 200
    assert broker.broker.log.head == head
    # The servers were out of reach for a while, and nobody else took the lease.
    clock.now = SECONDS - 1
    assert broker.http.get("/readyz").status_code == 200
    assert len(broker.http.post("/v1/subscriptions/s:pull").json()["deliveries"]) == 1


def sent(parts: int, valid: int) -> list[Message]:
    """What leaves of an answer with a number of parts if the lease is valid for the first `valid` checks."""
    checks = iter([True] * valid)
    messages: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in range(parts):
            await send({"type": "http.response.body", "body": b"%d" % part, "more_body": part < parts - 1})

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        messages.append(message)

    gate = WhileActive(app, lambda: next(checks, False), lambda: "http://two")
    asyncio.run(gate({"type": "http", "method": "GET", "path": "/v1/x", "headers": []}, receive, send))
    return messages


def test_an_answer_that_was_computed_before_the_lease_ran_out_does_not_leave() -> None:
    started, body = sent(parts=1, valid=1)
    assert started["status"] == 503
    assert b'"active":"http://two"' in body["body"]


def test_a_stream_ends_when_the_lease_runs_out() -> None:
    assert [each.get("body", b"") for each in sent(parts=3, valid=3)] == [b"", b"0"]


def test_while_the_lease_is_valid_answers_leave_unchanged() -> None:
    assert [each.get("body", b"") for each in sent(parts=2, valid=9)] == [b"", b"0", b"1"]
