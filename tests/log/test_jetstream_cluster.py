"""A log on three servers, some of which are killed."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import monotonic, sleep

import nats
import pytest

from pathcast.log import FencedError, JetStreamLog, Log, LogError

from .nats_servers import NatsCluster
from .places import records

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(folder: Path) -> Iterator[NatsCluster]:
    started = NatsCluster(folder, 3)
    started.start()
    yield started
    started.kill()


def leader(cluster: NatsCluster, stream: str) -> int:
    """Which server leads a stream."""

    async def ask() -> str:
        client = await nats.connect(list(cluster.urls))
        while True:
            reply = await client.request(f"$JS.API.STREAM.INFO.{stream}", b"", timeout=10)
            found = json.loads(reply.data).get("cluster", {}).get("leader")
            if found:
                await client.close()
                return str(found)

    return int(asyncio.run(ask())[1:])


def check(log: Log, count: int) -> None:
    assert [entry[1 + 1 :] for entry in log.read(1)] == [tuple(record) for record in records(count)]


def append_until_acknowledged(cluster: NatsCluster, log: JetStreamLog, count: int) -> JetStreamLog:
    """Append up to a head. If the connection was lost meanwhile, open the log again, as a broker does."""
    head = log.head
    try:
        log.append(records(count - head, head + 1))
    except LogError as error:
        if "may or may not have been written" not in error.reason:
            raise
        log.close()
        log = JetStreamLog.open(cluster.urls, "log", replicas=3, timeout=60)
        assert log.head in {head, count}
        log.append(records(count - log.head, log.head + 1))
    return log


def test_a_cluster_that_loses_servers_loses_no_acknowledged_record(cluster):
    """One server less: appends continue. Two less: they fail. All back: everything acknowledged is there."""
    log = JetStreamLog.open(cluster.urls, "log", replicas=3, timeout=60)
    log.append(records(5))
    follower = (leader(cluster, "log") + 1) % 3
    cluster.servers[follower].kill()
    log = append_until_acknowledged(cluster, log, 10)
    cluster.servers[follower].start()
    log.append(records(5, 11))
    check(log, 15)
    leading = leader(cluster, "log")
    cluster.servers[leading].kill()
    log = append_until_acknowledged(cluster, log, 20)  # waits for the election
    check(log, 20)
    log.write_checkpoint(18, b"x" * 1_000_000)
    log.close()

    log = JetStreamLog.open(cluster.urls, "log", replicas=3, timeout=6)
    cluster.servers[(leading + 1) % 3].kill()
    begun = monotonic()
    with pytest.raises(LogError):
        log.append(records(5, 21))
    assert monotonic() - begun < 60
    with pytest.raises(LogError, match="an earlier write failed"):
        log.append(records(5, 21))
    log.close()
    for server in cluster.servers:
        server.kill()
    cluster.start()
    log = JetStreamLog.open(cluster.urls, "log", replicas=3, timeout=60)
    assert log.head in {20, 25}
    check(log, log.head)
    assert log.checkpoint() == (18, b"x" * 1_000_000)
    head = log.head
    assert log.append(records(3, head + 1)) == head + 1
    check(log, head + 3)
    log.close()


def test_a_standby_on_another_server_takes_over(cluster):
    """Reads through each server, also one that lags, find all that was acknowledged."""
    active = JetStreamLog.open(cluster.urls[0], "log", replicas=3, timeout=60)
    standby = None
    for begin in range(1, 200, 20):
        active.append(records(20, begin))
        check(active, begin + 19)
        assert [entry.sequence for entry in active.read(begin, kinds=["document"])] == [*range(begin, begin + 20)]
    for url in cluster.urls[1:]:
        standby = JetStreamLog.open(url, "log", replicas=3, timeout=60)
        check(standby, active.head)
        with pytest.raises(FencedError):
            active.append(records(1, active.head + 1))
        active.close()
        active = standby
        active.append(records(20, active.head + 1))
        check(active, active.head)
    active.close()


def test_reads_are_complete_while_a_server_lags(cluster):
    """A server that stands still answers no reads; one that continues afterwards has not got everything yet."""
    log = JetStreamLog.open(cluster.urls, "log", replicas=3, timeout=60)
    log.append(records(10))
    log.close()
    leading = leader(cluster, "log")
    # Connected to the server that leads, so that the other one may stand still.
    log = JetStreamLog.open(cluster.servers[leading].url, "log", replicas=3, timeout=60)
    for begin in range(11, 2000, 400):
        lagging = cluster.servers[(leader(cluster, "log") + 1) % 3]
        if lagging.url == cluster.servers[leading].url:
            break  # the leader has changed
        lagging.pause()
        for at in range(begin, begin + 400, 4):
            log.append([*records(3, at), *records(1, at + 3, "other")])
        assert [entry.sequence for entry in log.read(begin + 379, begin + 382)] == [*range(begin + 379, begin + 382)]
        lagging.resume()
        for _ in range(3):
            for at in range(begin + 200, begin + 397, 17):
                assert [entry.sequence for entry in log.read(at, at + 3)] == [at, at + 1, at + 2]
            assert [entry.sequence for entry in log.read(1)] == list(range(1, begin + 400))
            found = [entry.sequence for entry in log.read(11, kinds=["other"])]
            assert found == list(range(14, begin + 400, 4))
    log.close()


@dataclass
class Broker:
    """Appends in a thread until `stopped`; opens the log again after an error."""

    cluster: NatsCluster
    stopped: Event = field(default_factory=Event)
    acknowledged: int = 0
    appends: int = 0
    errors: int = 0
    problem: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stopped.is_set():
                self.append_until_an_error()
        except BaseException as problem:  # noqa: BLE001 - for the test
            self.problem = problem

    def append_until_an_error(self) -> None:
        log, random = None, Random(self.errors)
        try:
            log = JetStreamLog.open(self.cluster.urls, "log", replicas=3, timeout=10)
            assert log.head >= self.acknowledged
            while not self.stopped.is_set():
                log.append(records(random.choice([1, 5, 20]), log.head + 1))
                self.acknowledged = log.head
                self.appends += 1
        except LogError:
            self.errors += 1
        finally:
            if log is not None:
                log.close()


def test_acknowledged_records_survive_kills_at_random_moments(cluster, request):
    """One server after another is killed and started again, while a broker appends."""
    random, broker = Random(4), Broker(cluster)
    thread = Thread(target=broker.run)
    thread.start()
    for _ in range(20 if request.config.getoption("--long") else 1):
        sleep(random.random())
        server = random.choice(cluster.servers)
        server.kill()
        sleep(random.random() * 3)
        server.start()
        server.wait()
        appends, begun = broker.appends, monotonic()
        while broker.appends < appends + 20 and broker.problem is None:
            sleep(0.1)
            assert monotonic() - begun < 300, "no append for five minutes"
        sleep(2)  # until the server has what it missed: if two servers miss something, nobody can acknowledge
    broker.stopped.set()
    thread.join()
    assert broker.problem is None
    log = JetStreamLog.open(cluster.urls, "log", replicas=3, timeout=60)
    assert log.head >= broker.acknowledged > 0
    check(log, log.head)
    log.close()
