"""`GET /v1/log`: records as an Arrow stream, under read leases; on both kinds of logs."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from pathcast.broker import Broker, BrokerSettings, add_token
from pathcast.broker.arrow_log_stream import LogReading, Wanted
from pathcast.broker.settings.broker_sections import ConnectionLimits, TokensSection
from pathcast.broker_log import ExpiryRecord, expired_before
from pathcast.client import LogReader
from pathcast.log import JetStreamLog, Log, LogEntry, LogError, ReadLeases, SqliteLog, read_arrow

from .broker_world import published
from .served_broker import Served, served


class Seconds:
    """A clock that tests set."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["sqlite", pytest.param("jetstream", marks=pytest.mark.slow)])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    """An empty log of each kind, which begins a new unit of storage every few records."""
    if request.param == "sqlite":
        return SqliteLog(tmp_path / "log", segment_bytes=4_096)
    return JetStreamLog.open(request.getfixturevalue("nats_server").url, uuid4().hex)


@pytest.fixture
def server(log: Log, tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, broker=Broker(log)) as found:
        yield found


def stream(server: Served, **query: object) -> list[LogEntry]:
    answer = server.http.get("/v1/log", params={key.rstrip("_"): str(value) for key, value in query.items()})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    return list(read_arrow(answer.content))


def filled(server: Served, count: int = 40) -> list[int]:
    """Publish documents to two feeds, one append each, and subscribe in between."""
    found = []
    for number in range(count):
        found += published(server.broker, "odd" if number % 2 else "even", f"<n>{number}{'x' * 500}</n>")
        if number == count // 2:
            server.http.put("/v1/subscriptions/s", json={"xpath": "//n"}).raise_for_status()
    return found


def test_the_stream_is_what_the_log_holds(server: Served) -> None:
    filled(server)
    everything = list(server.broker.log.read(1))
    assert stream(server) == everything
    assert {entry.kind for entry in everything} == {"document", "feed", "subscription"}
    assert stream(server, from_=5, to=9) == everything[4:9]
    assert stream(server, to=1) == everything[:1]
    assert stream(server, from_=len(everything) + 1) == []
    assert stream(server, from_=7, to=6) == []


def test_the_stream_marks_what_has_expired_and_keeps_its_records(server: Served) -> None:
    sequences = filled(server)
    server.broker.change([ExpiryRecord("even", sequences[10])]).result()
    answer = server.http.get("/v1/log")
    assert list(read_arrow(answer.content)) == list(server.broker.log.read(1))
    metadata = pa.ipc.open_stream(answer.content).schema.metadata
    assert json.loads(metadata[b"pathcast.expired"]) == {"even": sequences[10]} == expired_before(server.broker.log)
    with LogReader(server.address) as reader:
        assert reader.expired() == {"even": sequences[10]}
    server.broker.change([ExpiryRecord("odd")]).result()
    assert expired_before(server.broker.log) == server.broker.state.expired
    server.broker.trim(sequences[20])
    with LogReader(server.address) as reader:
        assert reader.expired() == expired_before(server.broker.log) == {"odd": server.broker.matched_to}


def test_the_answer_says_what_it_covers(server: Served) -> None:
    filled(server, 10)
    head = server.broker.matched_to
    headers = server.http.get("/v1/log", params={"from": 3, "to": 5, "kinds": "tenant"}).headers
    assert [headers[f"pathcast-{name}"] for name in ("from", "to", "head")] == ["3", "5", str(head)]
    headers = server.http.get("/v1/log").headers
    assert [headers[f"pathcast-{name}"] for name in ("from", "to")] == ["1", str(head)]


def test_kinds_feeds_and_bodies_choose_what_is_read(server: Served) -> None:
    filled(server)
    everything = list(server.broker.log.read(1))
    assert stream(server, kinds="subscription,feed") == [each for each in everything if each.kind != "document"]
    even = [each for each in everything if each.kind != "document" or json.loads(each.meta)["feed"] == "even"]
    assert stream(server, feeds="even") == even
    assert stream(server, feeds="even,odd") == everything
    assert stream(server, feeds="other", kinds="document") == []
    assert stream(server, bodies="none") == [each._replace(body=b"") for each in everything]


@pytest.mark.parametrize(
    ("query", "status", "fragment"),
    [
        ("from=0", 400, "must be at least 1, got 0"),
        ("from=x", 400, "got 'x'"),
        ("from=99", 422, "beyond the end"),
        ("kinds=documents", 400, "unknown kind 'documents'"),
        ("feeds=a/b", 400, "feed 'a/b'"),
        ("bodies=links", 400, "must be 'inline' or 'none'"),
        ("lease=abc", 404, "request a new lease"),
    ],
)
def test_a_wrong_request_is_answered_with_the_reason(tmp_path: Path, query: str, status: int, fragment: str) -> None:
    with served(tmp_path) as server:
        answer = server.http.get(f"/v1/log?{query}")
        assert answer.status_code == status
        assert fragment in answer.json()["detail"]
        assert not server.broker.leases.held()


def test_a_trimmed_range_is_gone_and_the_answer_says_where_the_log_begins(server: Served) -> None:
    sequences = filled(server)
    first = server.broker.trim(sequences[20])
    assert first > 2
    answer = server.http.get("/v1/log", params={"from": first - 1})
    assert (answer.status_code, answer.json()["first"]) == (410, first)
    assert server.http.post("/v1/log/leases", json={"from": first - 1}).json()["first"] == first
    assert stream(server)[0].sequence == first
    assert stream(server, from_=first)[0].sequence == first


def test_a_lease_holds_back_trimming_until_it_is_moved_or_released(server: Served) -> None:
    sequences = filled(server)
    client = server.http
    made = client.post("/v1/log/leases", json={"from": 3})
    assert made.status_code == 201
    lease = made.json()
    assert (lease["from"], 0 < lease["expires_in"] <= 60, 0 < lease["longest"] <= 3600) == (3, True, True)
    path = f"/v1/log/leases/{lease['id']}"
    assert server.broker.trim(sequences[30]) <= 3
    assert stream(server, from_=3, lease=lease["id"])[0].sequence == 3
    assert server.broker.trim(sequences[30]) <= 3, "reading moved the place of a lease that others may share"
    assert client.put(path, json={"from": sequences[10]}).json()["from"] == sequences[10]
    assert 3 < server.broker.trim(sequences[30]) <= sequences[10]
    assert [each["id"] for each in client.get("/v1/log/leases").json()["leases"]] == [lease["id"]]
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == client.put(path, json={}).status_code == 404
    assert server.broker.trim(sequences[30]) > sequences[10]


def test_reading_extends_a_lease_and_a_lease_that_nobody_extends_ends(log: Log, tmp_path: Path) -> None:
    clock = Seconds()
    broker = Broker(log, leases=ReadLeases(log, seconds=60, longest=200, clock=clock))
    with served(tmp_path, broker=broker) as server:
        sequences = filled(server)
        id = server.http.post("/v1/log/leases").json()["id"]
        for _ in range(3):
            clock.now += 50
            stream(server, to=5, lease=id)
        assert broker.trim(sequences[30]) == 1
        clock.now += 49
        assert server.http.put(f"/v1/log/leases/{id}").json()["expires_in"] == 1, "a lease lasts longer than allowed"
        clock.now += 1
        assert server.http.get("/v1/log", params={"lease": id}).status_code == 404
        assert broker.trim(sequences[30]) > 1


def test_there_is_a_bound_on_leases(log: Log, tmp_path: Path) -> None:
    with served(tmp_path, broker=Broker(log, leases=ReadLeases(log, most=2))) as server:
        filled(server, 4)
        ids = [server.http.post("/v1/log/leases").json()["id"] for _ in range(2)]
        for refused in (server.http.post("/v1/log/leases"), server.http.get("/v1/log")):
            assert refused.status_code == 429
            assert refused.headers["retry-after"] == "10"
        server.http.delete(f"/v1/log/leases/{ids[0]}")
        assert stream(server)
        wait_for_no_lease_but(server, 1)


def test_a_log_that_is_trimmed_while_it_is_read_stays_complete(server: Served) -> None:
    """What the reading has not come to is held; what it has read may go."""
    sequences = filled(server)
    broker = server.broker
    reading = LogReading(broker.log, broker.leases, Wanted(1, broker.matched_to + 1), look=10)
    pieces = [reading.piece()]
    first = broker.trim(sequences[-1])
    assert 1 < first <= 11
    while pieces[-1] is not None:
        pieces.append(reading.piece())
    found = list(read_arrow(b"".join(each for each in pieces if each is not None)))
    assert [entry.sequence for entry in found] == list(range(1, broker.matched_to + 1))
    assert broker.trim(sequences[-1]) > 11
    reading.close()
    assert not broker.leases.held()


def test_a_log_that_grows_while_it_is_read_is_read_up_to_where_it_ended(server: Served) -> None:
    """Units of storage are finished while the reader is in the middle of them."""
    filled(server)
    broker = server.broker
    head = broker.matched_to
    reading = LogReading(broker.log, broker.leases, Wanted(1, head + 1), look=1)
    pieces = []
    while (piece := reading.piece()) is not None:
        pieces.append(piece)
        published(broker, "even", f"<n>{'y' * 1_500}</n>")
    reading.close()
    found = list(read_arrow(b"".join(pieces)))
    assert [entry.sequence for entry in found] == list(range(1, head + 1))
    assert found == list(broker.log.read(1, head + 1))


@pytest.mark.parametrize("trims", [True, False])
def test_a_reader_that_takes_longer_than_a_lease_may_last_gets_a_stream_that_is_cut(
    log: Log, tmp_path: Path, trims: bool
) -> None:
    clock = Seconds()
    broker = Broker(log, leases=ReadLeases(log, longest=100, clock=clock))
    with served(tmp_path, broker=broker) as server:
        filled(server)
        reading = LogReading(broker.log, broker.leases, Wanted(1, broker.matched_to + 1), look=10)
        pieces = [reading.piece()]
        clock.now += 100
        if trims:
            assert broker.trim(30) > 11
        while pieces[-1] is not None:
            pieces.append(reading.piece())
        with pytest.raises(LogError, match="is truncated"):
            list(read_arrow(b"".join(each for each in pieces if each is not None)))


def test_a_reading_extends_its_lease_with_every_batch(log: Log, tmp_path: Path) -> None:
    clock = Seconds()
    leases = ReadLeases(log, seconds=60, clock=clock)
    broker = Broker(log, leases=leases)
    with served(tmp_path, broker=broker) as server:
        filled(server)
        lease = leases.take(1).id
        reading = LogReading(log, leases, Wanted(1, broker.matched_to + 1), lease, look=10)
        while reading.piece() is not None:
            assert lease in {each.id for each in leases.held()}
            clock.now += 50


def test_a_reader_continues_after_a_restart_in_the_middle(tmp_path: Path) -> None:
    """Leases end with the process, but nothing is trimmed until their owners had time to come back."""

    def reopened(clock: Seconds) -> Broker:
        log = SqliteLog(tmp_path / "log", segment_bytes=4_096)
        return Broker(log, leases=ReadLeases(log, grace=60, clock=clock))

    clock = Seconds()
    with served(tmp_path, broker=reopened(clock)) as server:
        sequences = filled(server)
        id = server.http.post("/v1/log/leases", json={"from": 1}).json()["id"]
        found = stream(server, lease=id, to=17)
    with served(tmp_path, broker=reopened(clock)) as server:
        assert server.broker.trim(sequences[-1]) == 1
        assert server.http.get("/v1/log", params={"from": 18, "lease": id}).status_code == 404
        id = server.http.post("/v1/log/leases", json={"from": 18}).json()["id"]
        clock.now += 40
        server.http.put(f"/v1/log/leases/{id}")
        clock.now += 20
        assert 1 < server.broker.trim(sequences[-1]) <= 18
        found += stream(server, lease=id, from_=18)
        assert [entry.sequence for entry in found] == list(range(1, server.broker.matched_to + 1))


def test_a_reader_that_does_not_read_costs_a_batch_and_is_disconnected(tmp_path: Path) -> None:
    quick = ConnectionLimits(rate=1_000, stall_time=1.0)
    with served(tmp_path, BrokerSettings(connections=quick)) as server, socket.socket() as connection:
        for _ in range(8):
            published(server.broker, "news", f"<n>{'x' * (5 << 20)}</n>")
        read: list[int] = []
        log_read = server.broker.log.read

        def counted(*arguments: object, **options: object) -> Iterator[LogEntry]:
            for entry in log_read(*arguments, **options):  # type: ignore[arg-type]
                read.append(entry.sequence)
                yield entry

        server.broker.log.read = counted  # type: ignore[method-assign]
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(b"GET /v1/log HTTP/1.1\r\nhost: localhost\r\n\r\n")
        connection.recv(100)
        wait_for_no_lease_but(server, 0)
        assert len(read) < 6, "the server read on for a client that does not read"
        server.broker.log.read = log_read  # type: ignore[method-assign]
        assert len(stream(server)) == 9


def test_only_administrators_without_a_guard_read_the_log(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    texts = {
        name: add_token(file, tenant, name, scopes)[0]
        for name, tenant, scopes in [
            ("reader", "desk", ["read:*", "subscribe:*", "publish:*"]),
            ("admin", "desk", ["*"]),
            ("operator", "default", ["administer"]),
        ]
    }
    with served(tmp_path / "log", BrokerSettings(tokens=TokensSection(file=str(file)))) as server:
        headers = {name: {"authorization": f"Bearer {text}"} for name, text in texts.items()}

        def statuses() -> list[int]:
            return [server.http.get("/v1/log", headers=headers[name]).status_code for name in texts]

        assert statuses() == [403, 200, 200]
        for path in ("/v1/log/leases", "/v1/log/leases/x"):
            for method in ("GET", "POST") if path.endswith("s") else ("PUT", "DELETE"):
                assert server.http.request(method, path, headers=headers["reader"]).status_code == 403
        guard = {"guard": {"expression": "//public"}}
        server.http.put("/v1/tenants/desk", json=guard, headers=headers["operator"]).raise_for_status()
        assert statuses() == [403, 403, 200]
        assert "guard" in server.http.get("/v1/log", headers=headers["admin"]).json()["detail"]
        # What it masked before stays masked.
        server.http.put("/v1/tenants/desk", json={"guard": None}, headers=headers["operator"]).raise_for_status()
        assert statuses() == [403, 403, 200]


def wait_for_no_lease_but(server: Served, count: int) -> None:
    """Wait until the leases of requests have ended."""
    for _ in range(600):
        if len(server.broker.leases.held()) == count:
            return
        time.sleep(0.1)
    raise AssertionError(f"{len(server.broker.leases.held())} leases are left")
