"""Snapshots that a process writes while the broker works: real processes, killed at any moment."""

import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from msgspec import json

from pathcast.broker import Broker, BrokerSettings
from pathcast.broker.restart import renew, restored
from pathcast.broker.restart_snapshot import RestartSnapshot
from pathcast.broker.settings.broker_sections import LogSection
from pathcast.broker.settings.jetstream_section import JetStreamSection
from pathcast.broker.snapshot_renewal import CHANGES, SnapshotRenewal
from pathcast.broker.standby import Standby

from ..log.nats_servers import NatsServer
from .broker_process import BrokerProcess
from .broker_world import TENANT, delivered, published, subscription
from .test_restart_snapshot import content_of

# Seconds that only a broken broker takes.
PATIENCE = 120

# The process, with a hook that sees each operation on files of the snapshot's folder before it is carried out.
_WATCHED = """
import os, signal, sys
from pathcast.broker.snapshot_process import main
seen = 0
def watch(event, arguments):
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir") and "restart-snapshot" in str(arguments[0]):
        {}
sys.addaudithook(watch)
main()
"""
KILLED_AT = _WATCHED.format("""global seen
        if seen == {}:
            os.kill(os.getpid(), signal.SIGKILL)
        seen += 1""")
PRINTED = _WATCHED.format("""os.write(1, event.encode() + b" ")
        if event == "os.rename":
            os.kill(os.getpid(), signal.SIGKILL)""")


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited too long for {what}"
        time.sleep(0.02)


def subscribe(broker: Broker, begin: int, end: int) -> None:
    broker.change([subscription(f"s{n}", f"//a[@n = '{n}']/b{n % 7}", ("news",)) for n in range(begin, end)]).result()


@contextmanager
def snapshot_process(
    settings: BrokerSettings, program: str = "from pathcast.broker.snapshot_process import main; main()"
) -> "Iterator[subprocess.Popen[bytes]]":
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(json.encode(settings) + b"\n")
        process.stdin.flush()
        yield process


def state_of(settings: BrokerSettings, snapshot: RestartSnapshot | None) -> object:
    with closing(settings.followed_log()) as log:
        return content_of(restored(log, snapshot).state)


def test_a_process_that_is_killed_leaves_the_snapshot_before(tmp_path: Path) -> None:
    """Killed at operations on files throughout a run: while it reads, as soon as it writes, and just before the end."""
    settings = BrokerSettings(data=str(tmp_path))
    with closing(Broker(settings.opened_log())) as broker:
        subscribe(broker, 0, 5_000)
        with closing(settings.followed_log()) as log:
            renew(settings.snapshot(), log)
        before = broker.log.head
        subscribe(broker, 700, 5_700)
        published(broker, "news", "<a n='7'><b0/></a>")
        expected = state_of(settings, None)
        operations = file_operations(settings)
        assert len(operations) > 20
        made = operations.index("os.mkdir")
        assert operations[-1] == "os.rename", "the manifest is replaced last"
        for number in (len(operations) - 1, 0, made, made + 1, (made + len(operations)) // 2):
            if number < len(operations) - 1:  # at the last, a process was killed already
                with snapshot_process(settings, KILLED_AT.format(number)) as process:
                    assert process.wait(PATIENCE) == -signal.SIGKILL
            with closing(settings.followed_log()) as log:
                found = settings.snapshot().opened(log)
                assert found is not None
                assert found.state.head == before, f"killed at operation {number} of {len(operations)}"
            assert state_of(settings, settings.snapshot()) == expected
        assert len(list(settings.snapshot().folder.glob("data-*"))) > 1, "killed processes left folders"
        assert end_of_a_whole_run(settings) == broker.log.head
        assert len(list(settings.snapshot().folder.glob("data-*"))) == 1, "what killed processes left is removed"


def file_operations(settings: BrokerSettings) -> list[str]:
    """What a process does to files until it replaces the manifest, at which it is killed."""
    with snapshot_process(settings, PRINTED) as process:
        assert process.stdout is not None
        operations = process.stdout.read().decode().split()
        assert process.wait() == -signal.SIGKILL
    return operations


def end_of_a_whole_run(settings: BrokerSettings) -> int:
    """The head of the snapshot that a process wrote."""
    with snapshot_process(settings) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b""
        assert process.wait() == 0
    with closing(settings.followed_log()) as log:
        found = settings.snapshot().opened(log)
        assert found is not None
        return found.state.head


def test_the_process_ends_with_its_broker(tmp_path: Path) -> None:
    settings = BrokerSettings(data=str(tmp_path))
    with closing(Broker(settings.opened_log())) as broker:
        subscribe(broker, 0, 20_000)
        with snapshot_process(settings) as process:
            assert process.stdin is not None
            process.stdin.close()  # as the system does when the broker is killed
            assert process.wait(PATIENCE) == 1
        assert not settings.snapshot().folder.exists()


def test_a_process_that_fails_says_why_and_the_broker_continues(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = BrokerSettings(data=str(tmp_path))
    (tmp_path / "restart-snapshot").write_text("a file")
    with closing(Broker(settings.opened_log(), snapshot=settings.snapshot())) as broker:
        subscribe(broker, 0, 10)
        with caplog.at_level(logging.WARNING), closing(SnapshotRenewal(broker, settings, changes=1)):
            wait_for(lambda: "cannot renew the snapshot" in caplog.text, "the warning")
        assert "restart-snapshot is a file" in caplog.text
        subscribe(broker, 10, 20)


def test_a_broker_that_is_killed_restarts_from_a_snapshot(tmp_path: Path) -> None:
    body = b"\n".join(b'{"id": "s%d", "feeds": ["news"], "xpath": "/news/n%d"}' % (n, n) for n in range(CHANGES))
    settings = BrokerSettings(data=str(tmp_path / "data"))
    with BrokerProcess(tmp_path / "data") as process, httpx.Client(base_url=process.address, timeout=PATIENCE) as http:
        assert http.post("/v1/subscriptions", content=body).json()["accepted"] == CHANGES
        manifest = settings.snapshot().folder / "manifest.json"
        wait_for(manifest.exists, "a snapshot")
        http.put("/v1/subscriptions/last", json={"feeds": ["news"], "xpath": "/news/last"}).raise_for_status()
        http.delete("/v1/subscriptions/s1").raise_for_status()
        process.kill()
        with closing(settings.followed_log()) as log:
            found = restored(log, settings.snapshot())
            assert found.state.since_snapshot[0] < CHANGES, "it was written by a process, not by a stop"
        process.start()
        document = b"<news><last/><n1/><n7/></news>"
        http.post("/v1/feeds/news/documents", content=document).raise_for_status()
        for id in ("last", "s7"):
            [got] = http.post(f"/v1/subscriptions/{id}:pull").json()["deliveries"]
            assert got["body"] == document.decode()
        assert http.post("/v1/subscriptions/s1:pull").status_code == 404
        page = http.get("/v1/subscriptions", params={"limit": 3}).json()
        assert page["total"] == CHANGES
        assert [each["id"] for each in page["subscriptions"]] == ["last", "s0", "s10"]
        assert "takes longer" not in process.errors()


@pytest.mark.slow
def test_a_standby_begins_with_the_snapshot_of_its_machine(tmp_path: Path, nats_server: NatsServer) -> None:
    log = LogSection(kind="jetstream", lease_time=0.0)
    jetstream = JetStreamSection(servers=(nats_server.url,), stream="snapshots", lease_time=5.0)
    settings = BrokerSettings(data=str(tmp_path), log=log, jetstream=jetstream)
    with closing(Standby(settings, "http://one")) as active:
        assert active.take()
        with closing(active.broker()) as broker:
            subscribe(broker, 0, 5_000)
            assert end_of_a_whole_run(settings) == broker.log.head
            subscribe(broker, 5_000, 5_010)
        active.close()
    with closing(Standby(settings, "http://two")) as standby:
        standby.catch_up()
        wait_for(standby.take, "the lease")
        with closing(standby.broker()) as broker:
            assert broker.state.since_snapshot[0] <= 11
            published(broker, "news", "<a n='7'><b0/></a>", "<a n='5003'><b5/></a>")
            assert delivered(broker, "s7") == [broker.log.head - 1]
            assert delivered(broker, "s5003") == [broker.log.head]
            assert len(broker.state.subscriptions) == 5_010
            assert broker.state.usage_of(TENANT).subscriptions == 5_010
