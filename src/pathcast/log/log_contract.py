"""The contract of a log: records appended in one order, durable when `append` returns, read by sequence.

A log knows nothing of what its records mean. A record has a kind (a word), `meta` (a small JSON text) and a body (any
bytes). Its sequence is its place in the order: the first record of a log has sequence 1, the next 2, and so on without
gaps. Its time never runs backwards, even if the clock does, so a time can be searched for by bisection.

    first ─────────────── checkpoint ─────────── head
      oldest record that       state as of           last durable
      can be read              this sequence         record

A *checkpoint* is what the owner of the log makes of all records up to a sequence. To restart, the owner opens the
latest checkpoint and reads the records after it. Records may only be trimmed up to the latest checkpoint.

A log that takes the place of another (import, migration) begins with the sequence with which the other begins, which
trimming may have moved above 1: `begin_at`, `restore` for its records, and `write_checkpoint`.

Threads: one thread at a time appends; one at a time, maybe another, writes checkpoints and trims; any thread reads at
any time. Appends do not wait for the data of a checkpoint.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from pathcast.errors import PathcastError

# Microseconds since 1970, in UTC. A log gets its clock as an argument.
Clock = Callable[[], int]


def system_clock() -> int:
    """The time of this machine, in microseconds since 1970, in UTC."""
    return time.time_ns() // 1000


class LogRecord(NamedTuple):
    """A record to append."""

    kind: str
    meta: bytes
    body: bytes = b""


class LogEntry(NamedTuple):
    """A record in its place. `time` is in microseconds since 1970, in UTC."""

    sequence: int
    time: int
    kind: str
    meta: bytes
    body: bytes


class Checkpoint(NamedTuple):
    """A checkpoint: the owner's summary of all records up to and including `sequence`."""

    sequence: int
    data: bytes


class LogError(PathcastError):
    """The log cannot be opened, is damaged, or cannot be written to."""


class LogFullError(LogError):
    """There is no space for more records. Nothing was appended; the log remains usable."""


class FencedError(LogError):
    """Another process has taken over the log. Nothing was appended, and this process must stop writing to it."""


class TrimmedError(LogError):
    """The requested records were trimmed; `first` is the oldest sequence that can be read."""

    def __init__(self, reason: str, *, first: int = 1, line: int | None = None, column: int | None = None) -> None:
        super().__init__(reason, line=line, column=column)
        self.first = first

    @classmethod
    def before(cls, begin: int, first: int) -> "TrimmedError":
        """The error for a read from `begin` when the oldest record is `first`."""
        return cls(f"the log has trimmed records {begin} to {first - 1}; read from {first}", first=first)


# SQLite's limit for a row is 1,000,000,000 bytes.
_RECORD_BYTES = 999_000_000
# Sequences and times are below it.
END_OF_NUMBERS = 1 << 63


def check_contents(records: Sequence[Any]) -> None:
    """`TypeError` or `ValueError` unless these records can be stored: every log rejects the same ones."""
    for at, record in enumerate(records):
        if not isinstance(record.kind, str) or not isinstance(record.meta, bytes) or not isinstance(record.body, bytes):
            raise TypeError(
                f"record {at}: kind must be str, meta must be bytes and body must be bytes, got "
                f"kind={type(record.kind).__name__}, meta={type(record.meta).__name__} and "
                f"body={type(record.body).__name__}"
            )
        record.kind.encode()
        if (size := len(record.meta) + len(record.body)) > _RECORD_BYTES:
            raise ValueError(
                f"record {at} has {size:,} bytes of meta and body; at most {_RECORD_BYTES:,} are allowed; divide "
                "the record"
            )


def check_continuation(entries: Sequence[LogEntry], head: int, time: int) -> None:
    """`ValueError` unless these entries continue a log with this head, the last record of which has this time."""
    for at, entry in enumerate(entries):
        if entry.sequence != head + 1 + at:
            raise ValueError(
                f"the log needs sequence {head + 1 + at} next, got {entry.sequence} in entry {at}; "
                "give entries without gaps"
            )
        if entry.time < time:
            raise ValueError(
                f"record {entry.sequence} has time {entry.time}, but the previous record has time {time}; give "
                "times in "
                "ascending order"
            )
        if max(entry.sequence, entry.time) >= END_OF_NUMBERS:
            raise ValueError(
                f"sequence and time of a record must be less than 2**63, got {entry.sequence} and {entry.time}"
            )
        time = entry.time


class Log(Protocol):
    """Records in one order. `SqliteLog` keeps them on this machine, `JetStreamLog` on a cluster of NATS servers."""

    @property
    def first(self) -> int:
        """The sequence of the oldest record that can be read; `head + 1` if there is none."""

    @property
    def head(self) -> int:
        """The sequence of the last durable record; 0 if there has never been one."""

    @property
    def time(self) -> int:
        """The time of the last durable record, for the process that appends; 0 if there is none. All records of one
        call of `append` have the same time.
        """

    def append(self, records: Sequence[LogRecord]) -> int:
        """Append all records or none; return the sequence of the first. They are durable when this returns.

        `LogFullError` if there is no space: nothing was appended. `TypeError` or `ValueError` for records that cannot
        be stored (`check_contents`). After any other error the records may
        be in the log or not, and the log rejects further appends: close the log, open it again and look.
        """

    def begin_at(self, sequence: int) -> None:
        """Let a log that never had a record begin with this sequence: `first` becomes it, and `head` the one before.

        `LogError` if the log has or had records, or has a checkpoint.
        """

    def restore(self, entries: Sequence[LogEntry]) -> None:
        """Append entries of another log, all or none, with their sequences and times; durable when this returns.

        `ValueError` unless the sequences continue this log without a gap, and the times do not run backwards.
        """

    def read(
        self, begin: int, end: int | None = None, *, kinds: Sequence[str] | None = None, bodies: bool = True
    ) -> Iterator[LogEntry]:
        """The records from `begin` to before `end` (the end of the log, as of now, for None), in order.

        `kinds`: only records of these kinds. `bodies=False` leaves the bodies empty, which is faster.
        `TrimmedError` if a record in this range was trimmed, also while reading.
        """

    def sequence_at(self, time: int) -> int:
        """The sequence of the first record at or after a time (in microseconds); `head + 1` if there is none."""

    def checkpoint(self) -> Checkpoint | None:
        """The latest checkpoint."""

    def write_checkpoint(self, sequence: int, *data: bytes) -> None:
        """Store a checkpoint durably; earlier ones are removed. Its data may come in any number of pieces.

        `ValueError` unless `sequence` is at least that of the latest checkpoint and of `first - 1`, and at most `head`.
        """

    def trim(self, begin: int) -> int:
        """Remove records before `begin`, in the units in which they are stored; return the new `first`.

        `LogError` if the latest checkpoint is before `begin - 1`: records that no checkpoint covers stay.
        """

    def close(self) -> None:
        """Release the log; all other methods then raise `LogError`. Closing a closed log does nothing.

        A log that was not closed is opened again without a loss.
        """
