"""Hostile requests: whatever is sent, the answer is a problem with a 4xx status, and the broker is well afterwards."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from pathcast.broker import Broker
from pathcast.log import SqliteLog

from .served_broker import Served, served

# Sent to every path that takes JSON. Where it is not wrong, it is at least harmless.
JSON_BODIES = [
    b"",
    b"\x00",
    b"{",
    b"-",
    b"null",
    b"\xff\xfe{}",
    b"1" * 5_000,
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"unknown":' + b"[" * 100_000,
    b'{"xpath": "\\ud800"}',
    b'{"xpath": "//a\\u0000"}',
    b'{"xpath": "' + b"(" * 5_000 + b'"}',
    b'{"xpath": "//' + b"a/" * 20_000 + b'a"}',
    b'{"xpath": "//a", "xpath": 1}',
    b'{"xpath": "//a", "subscriber": "a\\u0000"}',
    b'{"xpath": "//a", "feeds": [""]}',
    b'{"filters": [{"xpath": {"expression": "//p:a", "namespaces": {"p": ""}}}]}',
    b'{"xpath": "//a", "config": {"ack_wait": 1e999}}',
    b'{"xpath": "//a", "config": {"ack_wait": NaN}}',
    b'{"xpath": "//a", "config": {"from": 9223372036854775808}}',
    b'{"xpath": "//a", "config": {"from": 99999999999999999999999}}',
    b'{"xpath": "//a", "config": {"from": "0000-00-00T00:00:00Z"}}',
    b'{"guard": {"expression": "//a"}, "from": 99999999999999999999999}',
    b'{"guard": {"expression": "//a["}}',
    b'{"limits": {"size": 99999999999999999999999}}',
    b'{"sequences": [99999999999999999999999]}',
    b'{"sequences": [-1]}',
    b'{"sequences": [1], "delay": 1e400}',
    b'{"sequence": 99999999999999999999999}',
]
JSON_PATHS = [
    ("PUT", "/v1/feeds/news"),
    ("PUT", "/v1/subscriptions/q"),
    ("POST", "/v1/subscriptions:check"),
    ("POST", "/v1/subscriptions/s:ack"),
    ("POST", "/v1/subscriptions/s:nack"),
    ("POST", "/v1/subscriptions/s:replay"),
    ("PUT", "/v1/tenants/t"),
    ("POST", "/v1/log/leases"),
    ("PUT", "/v1/log/leases/x"),
]
PATHS = [
    "/v1/feeds/%zz/documents",
    "/v1/feeds/%00/documents",
    "/v1/feeds/a%00b",
    "/v1/feeds/%ff%fe",
    "/v1/feeds/..",
    "/v1/feeds/a%2f..%2fb",
    "/v1/documents/-1",
    "/v1/documents/1e3",
    "/v1/documents/%D9%A1",
    "/v1/documents/9223372036854775808",
    f"/v1/documents/{'9' * 5_000}",
    "/v1/subscriptions/%ff",
    "/v1/subscriptions/s/events?after=%ff",
    "/v1/subscriptions/s/events?after=-1",
    "/v1/subscriptions/s/events?bodies=%00",
    "/v1/subscriptions?limit=-1",
    "/v1/subscriptions?limit=%D9%A1",
    "/v1/subscribers/%ff/events",
    "/v1/log?from=99999999999999999999",
    "/v1/log?from=%ff",
    "/v1/tenants/%ff",
    "/v1//",
    "/v1/feeds/",
    "/v1/subscriptions/..%2f",
    "/v1/subscriptions/s/",
]
EVENTS = [
    b'[{"id": "1"}]',
    b'[{"id": "1", "data": 5}]',
    b'[{"id": "1", "data": "\\ud800"}]',
    b'[{"id": "1", "data_base64": "!"}]',
    b'[{"id": "1", "data": "<a/>", "data_base64": ""}]',
    b'[{"id": "1", "data": "<a/>", "x": ' + b"[" * 100_000,
    b'{"id": "1", "data": "<a/>"}',
    b'[{"id": null, "data": "<a/>"}]',
    b'[{"id": "", "data": "<a/>"}]',
    b'[{"id": "1", "data": NaN}]',
    b"[" + b"[" * 100_000,
    b'[{"id": "1"',
    b'[{"id": "1"}] x',
    b'[{"id": "1"};',
    b'[{"id": "1", "x": ' + b"1" * 10_000 + b"}]",
    b'\xef\xbb\xbf[{"id": "1", "data": "<a/>"}]',
    '[{"id": "1", "data": "<a/>"}]'.encode("utf-16"),
]
DOCUMENTS = [
    b"",
    b"\x00",
    b"<a>\xff</a>",
    b"<a>" * 100_000,
    b"<?xml version='1.0' encoding='nonsense'?><a/>",
    b"<?xml version='1.0' encoding='utf-16'?><a/>",
    b"<?xml version='1.0' encoding='hex'?><a/>",
    b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
    b"{}",
]
HEAD = b"POST /v1/feeds/news/documents HTTP/1.1\r\nhost: localhost\r\n"
RAW = [
    HEAD + b"content-length: -1\r\n\r\n<a/>",
    HEAD + b"content-length: 4\r\ncontent-length: 5\r\n\r\n<a/>",
    HEAD + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n4\r\n<a/>\r\n0\r\n\r\n",
    HEAD + b"content-length: 99999999999999999999999\r\n\r\n<a/>",
    HEAD + b"content-length: 9999999999\r\n\r\n<a/>",
    HEAD + b"content-length: 3\r\nconnection: close\r\n\r\n<a/>",
    HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
    HEAD + b"transfer-encoding: gzip\r\n\r\n",
    HEAD + b"content-type: \xff\x00\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /v1/feeds\x00 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /v1/documents/\xd9\xa1 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /v1/feeds HTTP/1.1\r\n\r\n",
    b"GET /v1/feeds HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A broker with a document and a subscription; at the end it works, and starts again with what it has."""
    folder = tmp_path_factory.mktemp("broker")
    with served(folder) as found:
        found.http.put("/v1/subscriptions/s", json={"xpath": "//a"}).raise_for_status()
        found.http.post("/v1/feeds/news/documents", content="<a/>").raise_for_status()
        yield found
        assert found.http.post("/v1/feeds/news/documents", content="<a/>").status_code == 202
        assert found.broker.trim(1) == 1  # it can still write a checkpoint
        head = found.broker.log.head
    broker = Broker(SqliteLog(folder))
    assert broker.matched_to == head
    broker.close()


def is_problem(answer: httpx.Response) -> bool:
    """Whether an answer is a problem that its sender can act on."""
    assert 400 <= answer.status_code < 500, (answer.request.url, answer.status_code, answer.text[:200])
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    return problem["status"] == answer.status_code and bool(problem["detail"])


@pytest.mark.parametrize(("method", "path"), JSON_PATHS)
def test_hostile_json_never_makes_an_internal_error(server: Served, method: str, path: str) -> None:
    problems = 0
    for body in JSON_BODIES:
        answer = server.http.request(method, path, content=body)
        if not answer.is_success:
            assert is_problem(answer)
            problems += 1
    assert problems > len(JSON_BODIES) // 2


def test_each_hostile_line_is_answered(server: Served) -> None:
    lines = [body for body in JSON_BODIES if body.strip()]
    answer = server.http.post("/v1/subscriptions", content=b"\n".join(lines))
    assert answer.status_code == 422
    assert [each["line"] for each in answer.json()["errors"]] == list(range(1, len(lines) + 1))


@pytest.mark.parametrize("path", PATHS)
def test_hostile_paths_get_a_problem(server: Served, path: str) -> None:
    for method in ("GET",) if "?" in path else ("GET", "POST", "PUT", "DELETE", "PATCH", "TRACE"):
        assert is_problem(server.http.request(method, path, content=b"<a>"))


@pytest.mark.parametrize("body", EVENTS)
def test_hostile_events_get_a_problem(server: Served, body: bytes) -> None:
    headers = {"content-type": "application/cloudevents-batch+json"}
    answer = server.http.post("/v1/feeds/news/documents", content=body, headers=headers)
    if answer.status_code == 422:  # a list of events, none of which was accepted
        assert [400 <= each["error"]["status"] < 500 for each in answer.json()["results"]] == [True]
    else:
        assert is_problem(answer)


def test_a_list_of_millions_of_events_is_rejected_without_being_decoded(server: Served) -> None:
    """Decoding takes the event loop's time, and memory: it ends with the first event beyond the limit."""
    headers = {"content-type": "application/cloudevents-batch+json"}
    for item in (b'{"id":"1"}', b'{"id":"1","data":"<a/>"}'):
        body = b"[" + b",".join([item] * 100_000) + b"]"
        decoded, before = [], msgspec.json.decode

        def counted(text: bytes, **options: Any) -> Any:
            decoded.append(len(text))  # noqa: B023 - called within this round
            return before(text, **options)  # noqa: B023

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(msgspec.json, "decode", counted)
            answer = server.http.post("/v1/feeds/news/documents", content=body, headers=headers)
        assert (answer.status_code, "1,024 events" in answer.json()["detail"]) == (413, True)
        assert is_problem(answer)
        assert (len(decoded), set(decoded)) == (1_024, {len(item)})


@pytest.mark.parametrize("body", DOCUMENTS)
def test_hostile_documents_get_a_problem(server: Served, body: bytes) -> None:
    assert is_problem(server.http.post("/v1/feeds/news/documents", content=body))


@pytest.mark.parametrize("sent", RAW)
def test_what_is_not_http_gets_a_problem(server: Served, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(sent)
        answer = connection.recv(1 << 16)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert 400 <= int(head.split()[1]) < 500, answer
    assert b"content-type: application/problem+json" in head
    assert json.loads(body)["status"] == int(head.split()[1])


@pytest.mark.parametrize("path", ["/v1/subscriptions/s/events", "/v1/subscribers/local/events"])
def test_head_of_a_stream_ends_and_the_connection_serves_the_next_request(server: Served, path: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        for request in (f"HEAD {path}", "GET /healthz"):
            connection.sendall(f"{request} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += connection.recv(1 << 16)
            assert answer.startswith(b"HTTP/1.1 200 "), answer
            assert (b"text/event-stream" in answer) == request.startswith("HEAD")


@pytest.mark.parametrize("given", ["-1", "9" * 30, "x", "1.5", "١"])
def test_a_last_event_id_that_is_no_sequence_gets_a_problem(server: Served, given: str) -> None:
    headers = [(b"last-event-id", given.encode())]
    assert is_problem(server.http.get("/v1/subscriptions/s/events", headers=headers))


@pytest.mark.parametrize("path", ["/v1/subscriptions/s/events", "/v1/subscribers/local/events"])
def test_a_last_event_id_of_the_future_is_answered_with_a_gap(server: Served, path: str) -> None:
    """Such an id comes from another broker, or from one whose log was replaced: silence would hide the loss."""
    head = server.broker.matched_to
    with server.http.stream("GET", path, headers={"last-event-id": str(head + 100)}) as stream:
        lines = stream.iter_lines()
        begin = [next(lines) for _ in range(5)]
        assert begin[0] == f"id: {head}"
        assert begin[3] == "event: gap"
        gap = json.loads(begin[4].removeprefix("data: "))
        assert gap == {"from": head + 1, "to": head + 100, "reason": "unknown"}
        sequence = server.http.post("/v1/feeds/news/documents", content="<a/>").json()["sequence"]
        assert f"id: {sequence}" in [next(lines) for _ in range(4)]


@pytest.mark.parametrize(
    ("method", "path", "body", "key"),
    [
        ("PUT", "/v1/subscriptions/twice", '{"xpath": "//a", "feeds": [], "xpath": "//b"}', "xpath"),
        ("PUT", "/v1/subscriptions/twice", '{"xpath": "//a", "config": {"in_flight": 1, "in_flight": 2}}', "in_flight"),
        ("PUT", "/v1/subscriptions/twice", '{"xpath": "//a", "\\u0078path": "//b"}', "xpath"),
        ("PUT", "/v1/feeds/twice", '{"limits": {"depth": 1, "depth": 1}}', "depth"),
        ("PUT", "/v1/tenants/twice", '{"guard": null, "from": 1, "from": 2}', "from"),
        ("POST", "/v1/log/leases", '{"from": 1, "from": 1}', "from"),
    ],
)
def test_a_key_that_an_object_has_twice_is_named(tmp_path: Path, method: str, path: str, body: str, key: str) -> None:
    with served(tmp_path) as broker:
        answer = broker.http.request(method, path, content=body)
        assert (answer.status_code, f"has the key {key!r} more than once" in answer.json()["detail"]) == (400, True)
        assert broker.http.get("/v1/subscriptions/twice").status_code == 404


def test_a_line_with_a_key_twice_is_rejected_and_the_others_are_not(tmp_path: Path) -> None:
    lines = '{"id": "a", "xpath": "//a"}\n{"id": "b", "id": "c", "xpath": "//a"}\n{"id": "d", "xpath": "//a"}'
    with served(tmp_path) as broker:
        found = broker.http.post("/v1/subscriptions", content=lines).json()
        assert (found["accepted"], [each["line"] for each in found["errors"]]) == (2, [2])
