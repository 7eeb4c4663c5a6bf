"""Where the histories of test_broker_model.py happen: a log, and who may write to it.

A crash keeps the log as it is at that moment. With SQLite that is a copy of the folder, taken while the broker runs; no
other process can open the log of a broker that runs.

On JetStream a standby takes over: at once when the active broker stops, and after a crash once its lease has run out.
The standby has followed the log up to some earlier moment, or not at all. The crashed broker, which may only have been
asleep, must then know that it is no longer active, and must not be able to write any more.
"""

import shutil
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import pytest

from pathcast.broker import Broker, BrokerSettings, Publication
from pathcast.broker.restart import renew
from pathcast.broker.restart_snapshot import RestartSnapshot
from pathcast.broker.settings.broker_sections import LogSection
from pathcast.broker.settings.jetstream_section import JetStreamSection
from pathcast.broker.standby import Standby
from pathcast.errors import PathcastError
from pathcast.log import Log, LogError, SqliteLog

from .settable_clock import SettableClock

# Seconds for which the active broker holds the lease on the log: longer than a history waits.
_ACTIVE = 3_600.0


class Place:
    """Where the log of one history is, and who may write to it."""

    def start(self, clock: SettableClock) -> Broker:
        """The broker on an empty log."""
        raise NotImplementedError

    def restart(self, broker: Broker) -> Broker:
        """Stop a broker; returns the one that follows it."""
        raise NotImplementedError

    def crash(self, broker: Broker) -> Broker:
        """The broker that continues with the log as it is at this moment; closes the crashed one."""
        raise NotImplementedError

    def look(self, broker: Broker) -> None:
        """Another process looks at the log while a broker is active."""
        raise NotImplementedError

    def snapshot(self) -> None:
        """Another process writes a snapshot for restarts while a broker is active."""
        raise NotImplementedError

    def end(self, broker: Broker) -> None:
        """Stop the last broker."""
        broker.close()


class SqlitePlace(Place):
    def __init__(self, folder: Path) -> None:
        self._folders = (folder / str(number) for number in count())
        self._folder = next(self._folders)
        self._snapshot = RestartSnapshot(folder / "snapshot", few=3, compiled=2)

    def _open(self) -> Log:
        return SqliteLog(self._folder, segment_bytes=400)

    def start(self, clock: SettableClock) -> Broker:
        self._clock = clock
        return Broker(self._open(), clock=clock, snapshot=self._snapshot)

    def restart(self, broker: Broker) -> Broker:
        broker.close()
        return self.start(self._clock)

    def crash(self, broker: Broker) -> Broker:
        crashed, self._folder = self._folder, next(self._folders)
        shutil.copytree(crashed, self._folder, ignore=shutil.ignore_patterns("*-shm", "lock"))
        broker.close()
        return self.start(self._clock)

    def look(self, broker: Broker) -> None:
        with pytest.raises(LogError, match="in use by another process"):
            self._open()

    def snapshot(self) -> None:
        with closing(SqliteLog(self._folder, segment_bytes=400, read_only=True)) as log:
            renew(self._snapshot, log)


class SnapshotSettings(BrokerSettings):
    """Settings of a broker that also writes small snapshots."""

    def snapshot(self) -> RestartSnapshot:
        return RestartSnapshot(Path(self.data), few=3, compiled=2)


class JetStreamPlace(Place):
    def __init__(self, server: str, name: str, folder: Path) -> None:
        # Nothing holds back a trim after a take-over.
        log = LogSection(kind="jetstream", lease_time=0.0)
        jetstream = JetStreamSection(servers=(server,), stream=name, lease_time=_ACTIVE)
        self._settings = SnapshotSettings(data=str(folder), log=log, jetstream=jetstream)
        self._numbers = count()
        self._next: Standby | None = None  # has looked at the log

    def _standby(self) -> Standby:
        return Standby(self._settings, f"http://{next(self._numbers)}", self._clock)

    def start(self, clock: SettableClock) -> Broker:
        self._clock = clock
        self._active = self._standby()
        assert self._active.take()
        return self._active.broker()

    def _successor(self) -> Standby:
        """A standby, which cannot take over yet."""
        successor, self._next = self._next or self._standby(), None
        assert self._active.is_valid()
        assert not successor.take()
        assert successor.holder
        return successor

    def _take_over(self, successor: Standby) -> Broker:
        assert successor.take()
        assert successor.is_valid()
        self._active = successor
        return successor.broker()

    def restart(self, broker: Broker) -> Broker:
        successor = self._successor()
        broker.close()
        self._active.close()
        return self._take_over(successor)

    def crash(self, broker: Broker) -> Broker:
        successor, crashed = self._successor(), self._active
        self._clock.now += _ACTIVE
        assert not crashed.is_valid(), "it would still answer"
        follower = self._take_over(successor)
        with pytest.raises(PathcastError):
            broker.publish("news", [Publication(b"<a/>")]).result(60)
        with suppress(PathcastError):
            broker.close()
        crashed.close()
        assert successor.is_valid(), "the broker that crashed has released the lease of its successor"
        return follower

    def look(self, broker: Broker) -> None:
        if self._next is None:
            self._next = self._standby()
        assert not self._next.take()
        self._next.catch_up()

    def snapshot(self) -> None:
        with closing(self._settings.jetstream.followed()) as log:
            renew(self._settings.snapshot(), log)

    def end(self, broker: Broker) -> None:
        broker.close()
        self._active.close()
        if self._next is not None:
            self._next.close()
