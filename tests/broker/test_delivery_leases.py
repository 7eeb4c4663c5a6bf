"""Leases beside each other: a search for deliveries, which may read the whole log, holds nobody else up."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pathcast.broker import Broker
from pathcast.broker.api.endpoints import pull_api
from pathcast.broker_log import CursorRecord
from pathcast.log import LogEntry

from .broker_world import TENANT, broker_in, published, subscription
from .served_broker import served

PATIENCE = 60


@contextmanager
def held_search(broker: Broker) -> Iterator[tuple[threading.Event, threading.Event]]:
    """The first search from now on waits: `begun` is set when it comes, and it continues once `go_on` is set."""
    begun, go_on = threading.Event(), threading.Event()
    after = broker.search.after

    def held(*arguments: Any, **options: Any) -> Any:
        if not begun.is_set():
            begun.set()
            assert go_on.wait(PATIENCE)
        return after(*arguments, **options)

    broker.search.after = held  # type: ignore[method-assign]
    try:
        yield begun, go_on
    finally:
        go_on.set()


def test_changes_of_a_cursor_do_not_wait_for_a_search_and_nothing_is_lost(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker, ThreadPoolExecutor(1) as thread:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", "<a/>", "<b/>", "<a/>")
        first = broker.pull(TENANT, "s", 1).deliveries
        with held_search(broker) as (begun, go_on):
            pulled = thread.submit(broker.pull, TENANT, "s", 10)
            assert begun.wait(PATIENCE)
            # Both need the lock, the second one in the sequencer's thread.
            assert broker.give_back(TENANT, "s", [first[0].entry.sequence], 3600.0) == []
            broker.change([CursorRecord(TENANT, "s", 0, replay=True)]).result(PATIENCE)
            more = published(broker, "news", "<a/>")
            go_on.set()
            found = [each.entry.sequence for each in pulled.result(PATIENCE).deliveries]
        assert found == [sequences[0], sequences[2], *more]
        assert broker.pull(TENANT, "s", 10).deliveries == []


@pytest.mark.parametrize(("in_flight", "left"), [(4, 1), (1_000, 2)])
def test_what_another_pull_leased_during_a_search_is_not_leased_again(
    tmp_path: Path, in_flight: int, left: int
) -> None:
    with broker_in(tmp_path) as broker, ThreadPoolExecutor(1) as thread:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", *["<a/>"] * 5)
        with held_search(broker) as (begun, go_on):
            pulled = thread.submit(broker.pull, TENANT, "s", 10, in_flight=in_flight)
            assert begun.wait(PATIENCE)
            other = [each.entry.sequence for each in broker.pull(TENANT, "s", 3, in_flight=in_flight).deliveries]
            go_on.set()
            found = [each.entry.sequence for each in pulled.result(PATIENCE).deliveries]
        assert (other, found) == (sequences[:3], sequences[3 : 3 + left])


def test_a_revived_delivery_that_another_pull_leased_during_a_search_counts(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker, ThreadPoolExecutor(1) as thread:
        broker.subscribe(subscription("s", "//a")).result()
        dead, new = published(broker, "news", "<a/>", "<a/>")
        broker.give_back(TENANT, "s", [each.entry.sequence for each in broker.pull(TENANT, "s", 1).deliveries])
        broker.bury(TENANT, "s", 1).result()
        with held_search(broker) as (begun, go_on):
            pulled = thread.submit(broker.pull, TENANT, "s", 1, in_flight=1)
            assert begun.wait(PATIENCE)
            broker.revive(TENANT, "s")[0].result()
            other = [each.entry.sequence for each in broker.pull(TENANT, "s", 1, in_flight=1).deliveries]
            go_on.set()
            assert (other, pulled.result(PATIENCE).deliveries) == ([dead], [])
        broker.acknowledge(TENANT, "s", [dead])[0].result()
        assert [each.entry.sequence for each in broker.pull(TENANT, "s", 1, in_flight=1).deliveries] == [new]


def test_an_acknowledgement_does_not_hold_up_the_broker_while_it_is_looked_up(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker, ThreadPoolExecutor(1) as thread:
        broker.subscribe(subscription("s", "//a")).result()
        (sequence,) = published(broker, "news", "<a/>")
        with held_search(broker) as (begun, go_on):
            acknowledged = thread.submit(broker.acknowledge, TENANT, "s", [sequence])
            assert begun.wait(PATIENCE)
            broker.change([CursorRecord(TENANT, "s", 0, replay=True)]).result(PATIENCE)
            go_on.set()
            future, unknown = acknowledged.result(PATIENCE)
        assert (future.result(PATIENCE) > sequence, unknown) == (True, [])
        assert broker.pull(TENANT, "s", 10).deliveries == []


def test_an_acknowledgement_reads_no_documents_but_its_own(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        published(broker, "news", *["<b/>"] * 300)
        broker.subscribe(subscription("rare", "//a", begin=1)).result()  # found in the log only
        read: list[int] = []
        entries = broker.log.read

        def counted(*arguments: Any, **options: Any) -> Iterator[LogEntry]:
            for entry in entries(*arguments, **options):
                read.append(entry.sequence)
                yield entry

        broker.log.read = counted  # type: ignore[method-assign]
        wanted = [0, 5, 9, 9, 250, 1_000_000]
        _, unknown = broker.acknowledge(TENANT, "rare", wanted)
        assert unknown == [5, 9, 250, 1_000_000]
        assert set(read) <= {5, 9, 250}


def test_a_step_of_a_pull_ends_before_the_end_of_a_long_log(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        for _ in range(9):
            published(broker, "news", *["<b/>"] * 512)
        (sequence,) = published(broker, "news", "<a/>")
        broker.subscribe(subscription("rare", "//a", begin=1)).result()
        step = broker.pull(TENANT, "rare", 10, steps=1)
        assert (step.deliveries, step.more) == ([], True)
        assert [each.entry.sequence for each in broker.pull(TENANT, "rare", 10, steps=1).deliveries] == [sequence]
        assert broker.pull(TENANT, "rare", 10, steps=1).more is False


def test_a_pull_over_http_searches_to_the_end_of_a_long_log(tmp_path: Path) -> None:
    with served(tmp_path) as broker:
        for _ in range(9):
            published(broker.broker, "news", *["<b/>"] * 512)
        (sequence,) = published(broker.broker, "news", "<a/>")
        broker.http.put("/v1/subscriptions/rare", json={"xpath": "//a", "config": {"from": 1}}).raise_for_status()
        found = broker.http.post("/v1/subscriptions/rare:pull").json()
        assert [each["sequence"] for each in found["deliveries"]] == [sequence]


@pytest.mark.parametrize("verb", ["ack", "nack"])
def test_a_list_of_too_many_sequences_is_rejected(tmp_path: Path, verb: str) -> None:
    with served(tmp_path) as broker:
        broker.http.put("/v1/subscriptions/s", json={"xpath": "//a"}).raise_for_status()
        path = f"/v1/subscriptions/s:{verb}"
        answer = broker.http.post(path, json={"sequences": [0] * (pull_api.SEQUENCES + 1)})
        assert (answer.status_code, "at most 10,000" in answer.json()["detail"]) == (413, True)
        assert broker.http.post(path, json={"sequences": [0] * pull_api.SEQUENCES}).status_code == 200


def test_an_acknowledgement_in_several_parts_names_every_unknown_sequence(tmp_path: Path) -> None:
    with served(tmp_path) as broker:
        broker.http.put("/v1/subscriptions/s", json={"xpath": "//a"}).raise_for_status()
        sequences = published(broker.broker, "news", *["<a/>"] * 500, *["<b/>"] * 10, *["<a/>"] * 900)
        answer = broker.http.post("/v1/subscriptions/s:ack", json={"sequences": sequences})
        assert (answer.status_code, answer.json()["unknown"]) == (422, sequences[500:510])
        assert broker.http.post("/v1/subscriptions/s:pull").json()["deliveries"] == []


@pytest.mark.parametrize("verb", ["ack", "nack", "replay"])
def test_a_subscription_that_ends_during_a_request_is_not_found(tmp_path: Path, verb: str) -> None:
    body = b'{"dead_letters": true}' if verb == "replay" else b'{"sequences": [1]}'
    head = f"POST /v1/subscriptions/s:{verb} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
    with served(tmp_path) as broker:
        broker.http.put("/v1/subscriptions/s", json={"xpath": "//a"}).raise_for_status()
        with socket.create_connection(("127.0.0.1", broker.port), timeout=PATIENCE) as connection:
            connection.sendall(head.encode() + body[:5])
            while broker.http.get("/metrics").text.count("pathcast_body_bytes 5") == 0:
                pass  # its body is being read
            broker.http.delete("/v1/subscriptions/s").raise_for_status()
            connection.sendall(body[5:])
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 404 ")
