"""Where tests keep logs. A place opens its log again and again, in this process or, pickled, in another one.

To test another kind of log, add a line to `PLACES`.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pytest

from pathcast.log import Clock, JetStreamLog, Log, LogEntry, LogRecord, SqliteLog, system_clock


class Place(Protocol):
    def open(self, clock: Clock = system_clock) -> Log:
        """Open the log that is here; create it if there is none."""


@dataclass(frozen=True)
class SqlitePlace:
    folder: Path
    segment_bytes: int

    def open(self, clock: Clock = system_clock) -> SqliteLog:
        return SqliteLog(self.folder, segment_bytes=self.segment_bytes, clock=clock)


@dataclass(frozen=True)
class JetStreamPlace:
    server: str
    name: str

    def open(self, clock: Clock = system_clock) -> JetStreamLog:
        return JetStreamLog.open(self.server, self.name, clock=clock)


# Each makes a new, empty place; the folder is its own. `request` gives access to fixtures, such as a server's.
PLACES: dict[str, Callable[[Path, pytest.FixtureRequest], Place]] = {
    "sqlite": lambda folder, request: SqlitePlace(folder, 200),
    "sqlite in one segment": lambda folder, request: SqlitePlace(folder, 1 << 30),
    "jetstream": lambda folder, request: JetStreamPlace(request.getfixturevalue("nats_server").url, uuid4().hex),
}
# The same for `parametrize`: a server is a process, which fast runs do not start.
PLACE_NAMES = [pytest.param(name, marks=pytest.mark.slow if name == "jetstream" else ()) for name in PLACES]
# Those that begin a new unit of storage every few records, so that trimming removes some.
TRIMMED_IN_SMALL_UNITS = set(PLACES) - {"sqlite in one segment"}


@dataclass
class SettableClock:
    """A clock that tests set."""

    now: int = 1_000

    def __call__(self) -> int:
        return self.now


@dataclass
class ListLog:
    """The model of a log, with which other logs are compared."""

    first: int = 1
    entries: list[LogEntry] = field(default_factory=list)

    @property
    def head(self) -> int:
        return self.first + len(self.entries) - 1

    def append(self, records: list[LogRecord], time: int) -> None:
        self.entries += [LogEntry(self.head + 1 + at, time, *record) for at, record in enumerate(records)]

    def trimmed(self, first: int) -> None:
        self.entries = self.entries[first - self.first :]
        self.first = first


def records(count: int, begin: int = 1, kind: str = "document") -> list[LogRecord]:
    """Records with different contents."""
    return [LogRecord(kind, b'{"n":%d}' % n, b"<n>%d</n>" % n) for n in range(begin, begin + count)]


_MEMORY, _ROOM = Path("/dev/shm"), 2 << 30


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A folder in memory, if there is room: tests kill processes, not machines, so they need not wait for a disk."""
    is_roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM
    with tempfile.TemporaryDirectory(dir=_MEMORY if is_roomy else None) as created:
        yield Path(created)
