"""A clock of the machine that jumps: leases, duplicates, retention and starting points keep their meaning.

Leases run on a monotonic clock, duplicates are counted in records, and the log's times never run backwards. What is
left to the clock is when documents are too old to keep.
"""

from pathlib import Path
from typing import Any

from pathcast.broker import Accepted, Broker, Publication
from pathcast.broker.retention import Retention
from pathcast.log import SqliteLog

from .broker_world import TENANT, delivered, published, subscription

HOUR = 3_600
YEAR = 365 * 24 * HOUR
DOCUMENT = f"<a>{'x' * 20_000}</a>"


class Clock:
    """The machine's clock in seconds, which tests set, and a monotonic one."""

    def __init__(self) -> None:
        self.now = 1_000_000_000.0
        self.running = 0.0

    def broker(self, folder: Path) -> Broker:
        """A broker whose log and leases run on these clocks."""
        log = SqliteLog(folder, segment_bytes=1 << 16, clock=lambda: int(self.now * 1_000_000))
        return Broker(log, clock=lambda: self.running)


def test_leases_and_duplicates_do_not_depend_on_the_machines_clock(tmp_path: Path) -> None:
    clock = Clock()
    broker = clock.broker(tmp_path)
    broker.subscribe(subscription("s", "//a")).result()
    results: list[Any] = []
    for jump in (0, YEAR, -2 * YEAR, 1):
        clock.now += jump
        results += broker.publish("news", [Publication(b"<a/>", "1")], publisher="p").result()
    (first, *others) = results
    assert isinstance(first, Accepted)
    assert others == [Accepted(first.sequence, duplicate=True)] * 3

    def attempts() -> list[int]:
        return [each.attempt for each in broker.pull(TENANT, "s", 10, lease_seconds=30).deliveries]

    assert attempts() == [1]
    for jump in (YEAR, -2 * YEAR):
        clock.now += jump
        assert attempts() == []  # the lease holds
    clock.running += 31
    assert attempts() == [2]
    broker.close()


def test_times_never_run_backwards_and_a_restart_keeps_them(tmp_path: Path) -> None:
    clock = Clock()
    sequences: list[int] = []
    for jump in (0, YEAR, -2 * YEAR, HOUR):
        clock.now += jump
        broker = clock.broker(tmp_path)
        if not sequences:
            broker.subscribe(subscription("s", "//a")).result()
        sequences += published(broker, "news", "<a/>", "<a/>")
        broker.close()
    broker = clock.broker(tmp_path)
    times = [entry.time for entry in broker.log.read(1)]
    assert times == sorted(times)
    assert delivered(broker, "s") == sequences
    # Who subscribes from a time gets what was published since then.
    assert broker.log.sequence_at(times[-1]) == sequences[2]
    broker.close()


def test_a_clock_that_goes_back_trims_nothing_and_later_trims_what_is_too_old(tmp_path: Path) -> None:
    clock = Clock()
    broker = clock.broker(tmp_path)
    retention = Retention(broker, HOUR, every=1e6, clock=lambda: clock.now)
    broker.subscribe(subscription("s", "//a")).result()
    old = [published(broker, "news", DOCUMENT)[0] for _ in range(10)]
    clock.now -= YEAR
    assert retention.trim() == 1
    recent = [published(broker, "news", DOCUMENT)[0] for _ in range(10)]
    assert retention.trim() == 1
    assert delivered(broker, "s") == old + recent
    clock.now += YEAR + HOUR / 2
    recent += [published(broker, "news", DOCUMENT)[0] for _ in range(10)]
    assert retention.trim() == 1  # nothing is older than an hour, by the log's times
    clock.now += HOUR / 2 + 1
    first = retention.trim()
    assert 1 < first <= recent[10]
    assert delivered(broker, "s", after=first - 1)[-10:] == recent[10:]
    retention.close()
    broker.close()
