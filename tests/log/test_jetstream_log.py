"""Behaviour of logs in JetStream alone: take-over, unknown outcomes, large bodies, limits of the server."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random
from threading import Thread, Timer
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import nats
import pytest

from pathcast.extras import MissingExtraError
from pathcast.log import FencedError, JetStreamLog, LogEntry, LogError, LogFullError, LogRecord, TrimmedError
from pathcast.log.jetstream.large_body_parts import Parts
from pathcast.log.jetstream.message_contents import (
    append_data,
    read_append,
    read_control,
    read_records,
    records_block,
    stored_record,
    subject_of,
)
from pathcast.log.jetstream.nats_stream import Message, Stream

from .nats_servers import NatsServer, free_ports
from .places import SettableClock, records

pytestmark = pytest.mark.slow

_NUMBERS = count()


@pytest.fixture
def name() -> str:
    return f"log{next(_NUMBERS)}-{uuid4().hex}"


@pytest.fixture
def own_server(folder: Path, request: pytest.FixtureRequest) -> Iterator[NatsServer]:
    """A server for one test, which may stop it. The fixture's parameter, if there is one, is a setting of JetStream."""
    server = NatsServer(folder / "nats", *free_ports(1), settings=getattr(request, "param", ""))
    server.start()
    server.wait()
    yield server
    server.resume()
    server.kill()


def asked(server: NatsServer, subject: str, request: object = None, headers: dict[str, str] | None = None) -> Any:
    """The answer of a server to a client of our own."""

    async def ask() -> Any:
        client = await nats.connect(server.url)
        data = request if isinstance(request, bytes) else json.dumps(request or {}).encode()
        reply = await client.request(subject, data, timeout=5, headers=headers)
        await client.close()
        return json.loads(reply.data)

    return asyncio.run(ask())


def state(server: NatsServer, stream: str) -> dict[str, Any]:
    found: dict[str, Any] = asked(server, f"$JS.API.STREAM.INFO.{stream}")["state"]
    return found


def contents(log: JetStreamLog, **how: Any) -> list[tuple[object, ...]]:
    return [tuple(entry[2:]) for entry in log.read(log.first, **how)]


def as_given(given: list[LogRecord]) -> list[tuple[object, ...]]:
    return [tuple(record) for record in given]


def test_who_opens_a_log_takes_over_and_fences_the_writer_before(nats_server, name):
    one = JetStreamLog.open(nats_server.url, name)
    one.append(records(3))
    one.write_checkpoint(2, b"two")
    other = JetStreamLog.open(nats_server.url, name)
    assert (other.head, other.checkpoint()) == (3, (2, b"two"))
    for change in (
        lambda: one.append(records(1, 4)),
        lambda: one.append(records(1, 4)),
        lambda: one.write_checkpoint(3, b"three"),
        lambda: one.trim(2),
    ):
        with pytest.raises(FencedError, match="another broker"):
            change()
    assert contents(one) == as_given(records(3))
    assert other.append(records(2, 4)) == 4
    assert contents(other) == as_given(records(5))
    assert other.checkpoint() == (2, b"two")
    one.close()
    other.close()


@pytest.mark.parametrize("change", ["append", "append of several kinds", "large body", "checkpoint", "trim"])
def test_each_first_change_after_a_take_over_fails(nats_server, name, change):
    one = JetStreamLog.open(nats_server.url, name)
    one.append(records(3))
    one.append(records(3, 4))
    one.write_checkpoint(3, b"three")
    other = JetStreamLog.open(nats_server.url, name)
    with pytest.raises(FencedError):
        {
            "append": lambda: one.append(records(1, 7)),
            "append of several kinds": lambda: one.append([*records(1, 7), *records(1, 8, "other")]),
            "large body": lambda: one.append([LogRecord("document", b"", b"x" * 3_000_000)]),
            "checkpoint": lambda: one.write_checkpoint(6, b"six"),
            "trim": lambda: one.trim(4),
        }[change]()
    assert (other.first, other.head, other.checkpoint()) == (1, 6, (3, b"three"))
    given = [*records(6), LogRecord("document", b"", b"y" * 2_000_000)]
    other.append(given[6:])
    other.close()
    again = JetStreamLog.open(nats_server.url, name)
    assert contents(again) == as_given(given)
    assert again.checkpoint() == (3, b"three")
    again.close()
    one.close()


def test_of_brokers_that_race_to_take_over_the_last_one_writes(nats_server, name):
    """They open the log at the same time; whatever the order, one of them can write, and the log is whole."""
    first = JetStreamLog.open(nats_server.url, name)
    first.append(records(3))
    opened: list[JetStreamLog] = []
    threads = [Thread(target=lambda: opened.append(JetStreamLog.open(nats_server.url, name))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 8
    writers = 0
    for log in opened:
        try:
            log.append(records(1, 4))
            writers += 1
        except FencedError:
            pass
        log.close()
    assert writers == 1
    with pytest.raises(FencedError):
        first.append(records(1, 4))
    assert contents(first) == as_given(records(3))
    first.close()
    last = JetStreamLog.open(nats_server.url, name)
    assert contents(last) == as_given(records(4))
    last.close()


def test_a_fenced_reader_learns_what_its_successor_trimmed(nats_server, name):
    one = JetStreamLog.open(nats_server.url, name)
    for begin in range(1, 41, 4):
        one.append([*records(3, begin), *records(1, begin + 3, "other")])
    half_read = one.read(1, kinds=["other"])
    assert next(half_read).sequence == 4
    other = JetStreamLog.open(nats_server.url, name)
    other.write_checkpoint(40, b"")
    first = other.trim(30)
    assert 20 < first <= 30
    for kinds in (None, ["document"], ["other"], ["none"]):
        with pytest.raises(TrimmedError) as caught:
            list(one.read(1, kinds=kinds))
        assert caught.value.first == first
    assert [entry.sequence for entry in one.read(first)] == list(range(first, 41))
    one.close()
    other.close()


def test_a_reader_of_one_kind_does_not_skip_what_a_successor_trimmed(nats_server, name):
    one = JetStreamLog.open(nats_server.url, name)
    for begin in range(1, 601):
        one.append(records(1, begin))
    reading = one.read(1, kinds=["document"])
    read = [next(reading).sequence for _ in range(10)]
    other = JetStreamLog.open(nats_server.url, name)
    other.write_checkpoint(600, b"")
    assert other.trim(550) == 550
    with pytest.raises(TrimmedError):
        read += [entry.sequence for entry in reading]
    assert read == list(range(1, 11))
    one.close()
    other.close()


def test_a_lagging_replica_hides_nothing(nats_server, name, monkeypatch):
    """Each answer comes from a replica that has a random prefix of the stream."""
    log = JetStreamLog.open(nats_server.url, name, clock=(clock := SettableClock()))
    for clock.now in range(1, 301):
        log.append([LogRecord("ab"[clock.now % 7 == 0], b"%d" % clock.now)])
    random, batch, direct = Random(5), Stream.batch, Stream._direct

    def lagging_batch(self: Stream, *request: Any) -> list[Message]:
        last = random.choice([0, random.randrange(302)])
        return [message for message in batch(self, *request) if message.sequence <= last]

    async def lagging_direct(self: Stream, sequence: int) -> Message | None:
        return await direct(self, sequence) if sequence <= random.randrange(302) else None

    monkeypatch.setattr(Stream, "batch", lagging_batch)
    monkeypatch.setattr(Stream, "_direct", lagging_direct)
    for begin in (1, 2, 150, 290, 300):
        assert [entry.sequence for entry in log.read(begin)] == list(range(begin, 301))
        expected = [sequence for sequence in range(begin, 301) if sequence % 7 == 0]
        assert [entry.sequence for entry in log.read(begin, kinds=["b"])] == expected
        assert log.sequence_at(begin) == begin
        assert list(log.read(begin, kinds=["c"])) == []
    log.write_checkpoint(300, b"x" * 2_000_000)
    assert [log.checkpoint() for _ in range(10)] == [(300, b"x" * 2_000_000)] * 10
    log.close()


def test_a_lost_connection_does_not_wait_for_an_answer(own_server, name):
    log = JetStreamLog.open(own_server.url, name, timeout=600)
    log.append(records(3))
    own_server.pause()
    killer = Timer(0.5, own_server.kill)
    killer.start()
    with pytest.raises(LogError, match="connection was lost.*may or may not have been written"):
        log.append(records(1, 4))
    killer.join()
    own_server.start()
    log.close()
    log = JetStreamLog.open(own_server.url, name)
    assert log.head in {3, 4}
    log.close()


def test_appends_do_not_wait_for_the_data_of_a_checkpoint(nats_server, name, monkeypatch):
    log = JetStreamLog.open(nats_server.url, name)
    log.append(records(10))
    put = log._parts.put

    def slow(use: str, *data: bytes) -> str:
        appending = Thread(target=log.append, args=(records(5, 11),), daemon=True)
        appending.start()
        appending.join(60)
        assert not appending.is_alive(), "the append waits"
        return put(use, *data)

    monkeypatch.setattr(log._parts, "put", slow)
    log.write_checkpoint(10, b"ten")
    assert log.checkpoint() == (10, b"ten")
    assert contents(log) == as_given(records(15))
    log.close()
    with closing(JetStreamLog.open(nats_server.url, name)) as again:
        assert (again.head, again.checkpoint()) == (15, (10, b"ten"))


def test_large_bodies_and_metas_are_read_as_they_were_appended(nats_server, name, request):
    random = Random(1)
    sizes = [0, 1, 262_143, 262_144, 262_145, 600_000, 5_000_000]
    if request.config.getoption("--long"):
        sizes.append(128 << 20)
    given = [LogRecord("document", b'{"n":1}', random.randbytes(size)) for size in sizes]
    given += [LogRecord("document", random.randbytes(size), b"body") for size in (200_000, 262_145, 3_000_000)]
    given += [LogRecord("document", random.randbytes(300_000), random.randbytes(300_000)), *records(5)]
    log = JetStreamLog.open(nats_server.url, name)
    log.append(given)
    log.append(records(3))
    given += records(3)
    assert contents(log) == as_given(given)
    assert contents(log, bodies=False) == [(kind, meta, b"") for kind, meta, _ in given]
    log.close()
    log = JetStreamLog.open(nats_server.url, name)
    assert contents(log) == as_given(given)
    log.write_checkpoint(log.head, random.randbytes(2_000_000))
    assert state(nats_server, f"{name}-parts")["messages"] > 4
    log.trim(log.head)
    assert contents(log) == as_given(given[-3:])
    # The checkpoint's parts alone are left.
    assert state(nats_server, f"{name}-parts")["messages"] == 4
    log.write_checkpoint(log.head, b"small")
    assert state(nats_server, f"{name}-parts")["messages"] == 1
    log.close()


def test_an_append_larger_than_a_message_is_stored_as_a_whole(nats_server, name):
    log = JetStreamLog.open(nats_server.url, name)
    given = [LogRecord("ab"[at % 2], b"", b"x" * 10_000) for at in range(1000)]
    assert log.append(given) == 1
    assert log.append(records(20_000)) == 1001
    assert contents(log) == as_given(given + records(20_000))
    assert [entry.sequence for entry in log.read(1, kinds=["b"])] == list(range(2, 1001, 2))
    assert len(list(log.read(900, kinds=["b", "document"], bodies=False))) == 20_051
    log.close()
    log = JetStreamLog.open(nats_server.url, name)
    assert [entry.sequence for entry in log.read(20_990)] == list(range(20_990, 21_001))
    log.write_checkpoint(21_000, b"")
    assert log.trim(21_000) == 1001
    assert log.trim(21_001) == 21_001
    assert state(nats_server, f"{name}-parts")["messages"] == 0
    log.close()


def test_single_records_of_a_large_append_fetch_it_once(nats_server, name, monkeypatch):
    log = JetStreamLog.open(nats_server.url, name)
    given = [LogRecord("document", b"{}", b"%d" % at * 10_000) for at in range(300)]
    log.append(given)
    fetched, get = [], Parts.get

    def counted(self, use, part, length):
        fetched.append(part)
        return get(self, use, part, length)

    monkeypatch.setattr(Parts, "get", counted)
    for at in (5, 200, 100):
        assert [entry.body for entry in log.read(at + 1, at + 2)] == [given[at].body]
    assert len(fetched) == 1
    log.close()


def test_any_text_is_a_kind(nats_server, name):
    kinds = ["a.b", "*", ">", "", " ", "%", "%25", "größe", "a/b", "$SYS", "line\nbreak", "x" * 1000]
    log = JetStreamLog.open(nats_server.url, name)
    log.append([LogRecord(kind, b"{}") for kind in kinds])
    assert [entry.kind for entry in log.read(1)] == kinds
    for at, kind in enumerate(kinds, 1):
        assert [entry.sequence for entry in log.read(1, kinds=[kind])] == [at]
    log.close()


def test_reading_leaves_no_consumers_behind(nats_server, name):
    log = JetStreamLog.open(nats_server.url, name)
    log.append(records(100))
    half_read = log.read(1)
    next(half_read)
    assert len(list(log.read(1, kinds=["document"]))) == 100
    assert state(nats_server, name)["consumer_count"] == 0
    log.close()


def append_for_ever(log: JetStreamLog) -> None:
    while True:
        log.append([LogRecord("document", b"{}", b"x" * 1000)])


@pytest.mark.parametrize("own_server", ["max_file_store: 8MB"], indirect=True)
def test_a_full_server_rejects_an_append_and_takes_more_after_trimming(own_server):
    log = JetStreamLog.open(own_server.url, "full")
    log.append([LogRecord("document", b"{}", b"x" * 200_000) for _ in range(20)])
    log.write_checkpoint(20, b"twenty")
    with pytest.raises(LogFullError, match="no space"):  # a batch
        log.append([LogRecord("ab"[at % 2], b"{}", b"x" * 200_000) for at in range(30)])
    with pytest.raises(LogFullError):  # a part
        log.append([LogRecord("document", b"{}", b"x" * 9_000_000)])
    with pytest.raises(LogFullError):  # a part, and then a message
        log.append([LogRecord("document", b"{}", b"x" * size) for size in (2_000_000, *[200_000] * 30)])
    assert state(own_server, "full-parts")["messages"] == 9
    assert contents(log) == [("document", b"{}", b"x" * 200_000)] * 20
    with pytest.raises(LogFullError, match="no space"):
        append_for_ever(log)
    appended = log.head
    with pytest.raises(LogFullError):
        log.write_checkpoint(log.head, b"x" * 10_000)
    assert log.checkpoint() == (20, b"twenty")
    assert log.trim(21) == 21
    assert log.append(records(2)) == appended + 1
    log.close()
    log = JetStreamLog.open(own_server.url, "full")
    assert (log.first, log.head) == (21, appended + 2)
    log.close()


def test_an_append_waits_for_a_server_that_starts_again(own_server, name):
    log = JetStreamLog.open(own_server.url, name)
    log.append(records(3))
    own_server.kill()
    own_server.start()
    assert log.append([*records(2, 4), *records(1, 6, "other")]) == 4
    assert [entry.sequence for entry in log.read(1)] == [1, 2, 3, 4, 5, 6]
    log.close()


def test_an_append_without_a_server_fails_and_nothing_is_lost(own_server, name):
    log = JetStreamLog.open(own_server.url, name, timeout=0.5)
    log.append(records(3))
    own_server.kill()
    with pytest.raises(LogError, match="no server|may or may not have been written"):
        log.append(records(1, 4))
    with pytest.raises(LogError, match="an earlier write failed"):
        log.append(records(1, 4))
    with pytest.raises(LogError, match="no answer"):
        list(log.read(1))
    with pytest.raises(LogError, match="cannot connect"):
        JetStreamLog.open(own_server.url, name, timeout=0.5)
    log.close()
    own_server.start()
    own_server.wait()
    log = JetStreamLog.open(own_server.url, name)
    assert contents(log) == as_given(records(3))
    log.close()


@pytest.mark.parametrize("several", [False, True])
def test_an_append_without_an_answer_may_be_there_after_opening_again(own_server, name, several):
    log = JetStreamLog.open(own_server.url, name, timeout=1)
    log.append(records(3))
    own_server.pause()
    given = [*records(1, 4), *records(1, 5, "other")] if several else records(2, 4)
    with pytest.raises(LogError, match="may or may not have been written"):
        log.append(given)
    own_server.resume()
    sleep(0.2)
    with pytest.raises(LogError, match="an earlier write failed"):
        log.append(given)
    assert log.head == 3
    again = JetStreamLog.open(own_server.url, name)
    assert again.head in {3, 5}
    found = contents(again)
    assert found == as_given([*records(3), *given])[: again.head]
    sleep(0.2)
    assert again.append(records(1, 6)) == len(found) + 1
    log.close()
    again.close()


def test_acknowledged_records_that_a_server_lost_are_reported(own_server, folder, name):
    log = JetStreamLog.open(own_server.url, name)
    log.append(records(3))
    own_server.kill()
    shutil.copytree(folder / "nats/store", folder / "backup")
    own_server.start()
    log.append(records(3, 4))
    own_server.kill()
    shutil.rmtree(folder / "nats/store")
    shutil.move(folder / "backup", folder / "nats/store")
    own_server.start()
    with pytest.raises(LogError, match="lost messages") as caught:
        log.append(records(1, 7))
    assert not isinstance(caught.value, FencedError)
    log.close()


def test_a_stream_that_does_not_keep_records_is_not_taken(nats_server, name):
    asked(nats_server, f"$JS.API.STREAM.CREATE.{name}", {"name": name, "subjects": [f"{name}.>"], "max_msgs": 9})
    with pytest.raises(LogError, match="max_msgs must be -1, got 9") as caught:
        JetStreamLog.open(nats_server.url, name)
    assert "allow_direct" in str(caught.value)


def test_more_replicas_than_servers_are_reported(nats_server, name):
    with pytest.raises(LogError, match="cannot create the stream"):
        JetStreamLog.open(nats_server.url, name, replicas=3, timeout=1)


def test_messages_of_others_in_the_stream_are_reported(nats_server, name):
    log = JetStreamLog.open(nats_server.url, name)
    log.append(records(3))
    asked(nats_server, f"{name}.record.one.document", b"<a/>")
    with pytest.raises(LogError, match="something other than Pathcast"):
        log.append(records(1, 4))
    log.close()
    with pytest.raises(LogError, match="damaged message"):
        JetStreamLog.open(nats_server.url, name)


def test_a_deleted_message_is_reported(nats_server, name):
    log = JetStreamLog.open(nats_server.url, name)
    for begin in (1, 4, 7):
        log.append(records(3, begin))
    asked(nats_server, f"$JS.API.STREAM.MSG.DELETE.{name}", {"seq": 3})
    with pytest.raises(LogError, match="record 4 .* is missing"):
        list(log.read(1))
    log.close()
    with pytest.raises(LogError, match="has only 3 of its messages 1 to 4"):
        JetStreamLog.open(nats_server.url, name)


def test_a_wrong_checksum_is_reported(nats_server, name):
    log = JetStreamLog.open(nats_server.url, name)
    log.close()
    record = stored_record(LogEntry(1, 5, "a", b"{}", b"body"), b"", b"{}body")._replace(checksum=7)
    asked(nats_server, f"{name}.{subject_of([record])}", append_data([record], 0, records_block([record]), b""))
    log = JetStreamLog.open(nats_server.url, name)
    with pytest.raises(LogError, match="record 1 .* wrong checksum"):
        list(log.read(1))
    log.close()


def test_a_trim_that_was_interrupted_is_finished_by_the_next_opening(nats_server, name, monkeypatch):
    log = JetStreamLog.open(nats_server.url, name)
    for begin in range(1, 11):
        log.append([LogRecord("document", b"%d" % begin, b"x" * 600_000)])
    log.write_checkpoint(10, b"ten")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Stream, "purge", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.trim(8)
    assert state(nats_server, name)["first_seq"] == 1
    log.close()
    log = JetStreamLog.open(nats_server.url, name)
    assert [entry.sequence for entry in log.read(8)] == [8, 9, 10]
    with pytest.raises(TrimmedError):
        list(log.read(7))
    assert state(nats_server, name)["first_seq"] == 9  # after the message of the first opening
    # Two chunks for each of three bodies, and the checkpoint.
    assert state(nats_server, f"{name}-parts")["messages"] == 7
    log.close()


def test_a_checkpoint_that_was_interrupted_leaves_the_one_before(nats_server, name, monkeypatch):
    log = JetStreamLog.open(nats_server.url, name)
    log.append(records(3))
    log.write_checkpoint(2, b"two")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(JetStreamLog, "_publish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.write_checkpoint(3, b"three" * 1_000_000)
    assert log.checkpoint() == (2, b"two")
    log.close()
    log = JetStreamLog.open(nats_server.url, name)
    assert log.checkpoint() == (2, b"two")
    assert state(nats_server, f"{name}-parts")["messages"] == 1
    log.close()


def test_records_are_found_in_a_long_stream(nats_server, name):
    log = JetStreamLog.open(nats_server.url, name)
    for begin in range(1, 1501, 3):
        log.append(records(3, begin))
        if begin % 100 == 1:
            log.write_checkpoint(begin, b"")
    for opened in (log, JetStreamLog.open(nats_server.url, name)):
        for begin in range(1, 1501, 37):
            assert [entry[2:] for entry in opened.read(begin, begin + 5)] == [tuple(r) for r in records(5, begin)][
                : 1501 - begin
            ]
        opened.close()


def test_damaged_messages_are_reported():
    record = stored_record(LogEntry(7, 5, "a", b"{}", b"body"), b"", b"{}body")
    block = records_block([record])
    data = append_data([record], 3, block, b"")
    append = read_append(data)
    assert (append.first, append.last, append.time, append.parts_before) == (7, 7, 5, 3)
    assert read_records(append, append.block) == [record]
    for wrong in (data[:-1], data + b"x", data[:10], b"", b"\x02" + data[1:]):
        with pytest.raises(LogError):
            read_append(wrong)
    for wrong in (block[:-1], block[:8], block[:3], b"", block + b"x", b"\xff" * 40, block[:8] + b"\xff" + block[9:]):
        with pytest.raises(LogError):
            read_records(append, wrong)
    for wrong in (b"", b"{}", b"[1]", b'{"version": 2}'):
        with pytest.raises(LogError):
            read_control(wrong)


@pytest.mark.parametrize("wrong", ["", "a.b", "a b", "*", "x" * 201])
def test_a_name_is_one_that_a_stream_may_have(wrong):
    with pytest.raises(ValueError, match="the name of a log must"):
        JetStreamLog.open("nats://127.0.0.1:1", wrong)


def test_an_address_without_a_server_is_reported_in_time():
    (port,) = free_ports(1)
    begun = monotonic()
    with pytest.raises(LogError, match=f"127.0.0.1:{port}"):
        JetStreamLog.open(f"nats://127.0.0.1:{port}", "log", timeout=0.3)
    assert monotonic() - begun < 20


def test_a_missing_client_names_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "nats.aio.client", None)
    with pytest.raises(MissingExtraError, match=r"pathcast\[jetstream\]"):
        JetStreamLog.open("nats://127.0.0.1:1", "log")
