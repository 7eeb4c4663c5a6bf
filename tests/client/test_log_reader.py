"""`LogReader`: every record once, although answers end early, are cut, or come late."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from pathcast.client import BrokerError, LogBounds, LogReader, UnreachableError
from pathcast.log import LogEntry, TrimmedError, write_arrow

from ..broker.broker_world import published
from ..broker.served_broker import served

RECORDS = [LogEntry(number, number, "document", b"{}", b"x" * number) for number in range(1, 40)]


class Answers:
    """The server's actions, one per request; later requests get full answers."""

    def __init__(self, *turns: str) -> None:
        self.turns = list(turns)
        self.asked: list[tuple[int, int]] = []


@contextmanager
def broker_that(answers: Answers) -> Iterator[str]:
    """A server that answers at most five sequences per request, as `answers` says."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            begin, to = int(query["from"]), int(query["to"])
            answers.asked.append((begin, to))
            turn = answers.turns.pop(0) if answers.turns else "all"
            if turn == "busy":
                self.send_response(503)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            to = min(to, begin + 4)
            stream = b"".join(write_arrow(RECORDS[begin - 1 : to]))
            # Without its last batch, or in the middle of a batch.
            cut = {"all": len(stream), "unended": len(b"".join(list(write_arrow(RECORDS[begin - 1 : to]))[:-1]))}
            stream = stream[: cut.get(turn, len(stream) // 2)]
            self.send_response(200)
            self.send_header("pathcast-to", str(to))
            self.send_header("content-length", str(len(stream)))
            self.end_headers()
            self.wfile.write(stream)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sequences(reader: LogReader, begin: int, end: int) -> list[int]:
    return [each for batch in reader.batches(begin, end) for each in batch.column(0).to_pylist()]


def test_a_range_takes_as_many_requests_as_the_broker_wants() -> None:
    answers = Answers()
    with broker_that(answers) as url, LogReader(url) as reader:
        assert sequences(reader, 3, 20) == list(range(3, 20))
    assert answers.asked == [(3, 19), (8, 19), (13, 19), (18, 19)]


@pytest.mark.parametrize("turn", ["unended", "half", "busy"])
def test_an_answer_that_is_cut_is_continued(turn: str) -> None:
    answers = Answers("all", turn, turn, "all")
    with broker_that(answers) as url, LogReader(url) as reader:
        assert sequences(reader, 1, 30) == list(range(1, 30))
    assert answers.turns == []


def test_patience_ends() -> None:
    with (
        broker_that(Answers(*["half"] * 100)) as url,
        LogReader(url, patience=0.2) as reader,
        pytest.raises(UnreachableError, match="ended the stream of records early"),
    ):
        sequences(reader, 1, 3)


def test_a_broker_answers_with_bounds_records_and_leases(tmp_path: Path) -> None:
    with served(tmp_path) as server, LogReader(server.address) as reader:
        assert reader.bounds() == LogBounds(1, 0)
        wanted = published(server.broker, "news", "<a/>", "<b/>")
        assert reader.bounds() == LogBounds(1, wanted[-1])
        (batch,) = reader.batches(1, wanted[-1] + 1, kinds=["document"], feeds=["news"])
        assert batch.column(4).to_pylist() == [b"<a/>", b"<b/>"]
        lease = reader.take_lease(1)
        assert reader.extend_lease(lease, 2)
        assert [each.begin for each in server.broker.leases.held()] == [2]
        assert reader.release_lease(lease)
        assert not reader.release_lease(lease)
        assert not reader.extend_lease(lease)
        with pytest.raises(BrokerError, match="beyond the end of the log"):
            sequences(reader, 100, 101)


def test_trimmed_records_are_named(tmp_path: Path) -> None:
    with served(tmp_path) as server, LogReader(server.address) as reader:
        for number in range(60):
            published(server.broker, "news", f"<a>{'x' * 4_000}{number}</a>")
        first = server.broker.trim(50)
        assert first > 1
        with pytest.raises(TrimmedError) as error:
            sequences(reader, 1, 10)
        assert error.value.first == first
