"""The log in NATS JetStream: a stream with replicas on several servers.

    LOG           LOG.record.…: appended records · LOG.control: who writes the log, where it begins, its checkpoint
    LOG-parts     what is too large for a message, and the data of checkpoints

An append is one message, so all its records are stored or none. What is too large for that is stored before, as parts
that the message refers to. Messages of records of one kind have a subject of their own. Reads need no consumers.

**Durable** means what the servers make of it. With `replicas=3`, the servers of a majority have the records when
`append` returns, so one server may be lost with its disk; they write to disk within their `sync_interval` (two minutes
by default), so a power cut of all of them at once can lose records. With `replicas=1`, set `sync_interval: always` in
the server's `jetstream` block: records are then on its disk when `append` returns. Otherwise a power cut or a crash of
the operating system loses what the server acknowledged since it last wrote to disk; a crash of the server alone loses
nothing. No client can see this setting.

**One writer.** Each publish names the last message of the stream that the writer knows of, and the server rejects the
publish if there is a later one. Opening writes a control message: from then on, every change by a process that
opened the log earlier fails with `FencedError`, and that process can only read.

**The outcome is unknown** if the answer to a publish does not arrive: the records may be stored or not. `append` then
raises `LogError`, and this object rejects further changes. Opening the log again reads what is there; a late message
of the earlier publish cannot arrive afterwards, since the control message of the opening comes first.

Invariant: only the owner of the last control message writes. Everything before the control message's `first` is
trimmed, also while the messages are still there.
Cost: a round trip and one write on each server per append; a second round trip for an append of more than a megabyte.
"""

import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Any
from uuid import uuid4
from zlib import crc32

from ..log_contract import (
    Checkpoint,
    Clock,
    FencedError,
    LogEntry,
    LogError,
    LogFullError,
    LogRecord,
    check_contents,
    check_continuation,
    system_clock,
)
from .large_body_parts import Parts
from .message_contents import (
    Owner,
    StoredCheckpoint,
    StoredRecord,
    append_data,
    control_data,
    read_append,
    records_block,
    stored_record,
    subject_of,
)
from .nats_connection import NatsConnection
from .nats_stream import ConflictError, Message, Stream
from .record_reader import Extent, Reader

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
# Bytes of a message; NATS advises against more than a megabyte. Its headers take a few hundred of the server's limit.
_MESSAGE_BYTES, _HEADER_BYTES = 1000 << 10, 4 << 10


class JetStreamLog:
    """A `Log` in JetStream; see the module for what its promises rest on. `open` creates it if it is missing."""

    def __init__(self, connection: NatsConnection, name: str, owner: Owner, clock: Clock) -> None:
        self.name = name
        self._connection = connection
        self._clock = clock
        self._owner = owner
        self._limit = min(_MESSAGE_BYTES, connection.client.max_payload - _HEADER_BYTES)
        self._stream = Stream(connection, name)
        self._parts = Parts(Stream(connection, f"{name}-parts"), self._limit // 2)
        self._extent = Extent()
        self._reader = Reader(self._stream, self._parts, self._extent)
        self._writing = Lock()  # each message names the one before it
        self._failure: LogError | None = None
        self._checkpoint: StoredCheckpoint | None = None
        self._time = 0  # of the last record

    @classmethod
    def open(
        cls,
        servers: str | Sequence[str],
        name: str,
        *,
        replicas: int = 1,
        timeout: float = 30.0,
        clock: Clock = system_clock,
        options: Mapping[str, Any] | None = None,
    ) -> "JetStreamLog":
        """Take over the log with this name from the process that wrote to it.

        `timeout` (seconds) is how long calls wait for an answer, also while servers elect a new leader. `options` go to
        `nats.connect`: `user_credentials`, `tls` and the like.
        """
        log = cls.follow(servers, name, replicas=replicas, timeout=timeout, clock=clock, options=options)
        try:
            log.take_over()
        except BaseException:
            log.close()
            raise
        return log

    @classmethod
    def follow(
        cls,
        servers: str | Sequence[str],
        name: str,
        *,
        replicas: int = 1,
        timeout: float = 30.0,
        clock: Clock = system_clock,
        options: Mapping[str, Any] | None = None,
    ) -> "JetStreamLog":
        """Read the log with this name while another process writes to it; `refresh` finds what it wrote."""
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"the name of a log must consist of up to 200 letters, digits, '-' and '_', got {name!r}")
        connection = NatsConnection([servers] if isinstance(servers, str) else servers, options or {}, timeout)
        try:
            owner = Owner(f"{socket.gethostname()}:{os.getpid()}", uuid4().hex, clock())
            log = cls(connection, name, owner, clock)
            log._failure = LogError("this process follows the log and does not own it; call take_over() first")
            Stream(connection, f"{name}-parts").create(replicas)
            log._stream.create(replicas)
        except BaseException:
            connection.close()
            raise
        return log

    def refresh(self) -> int:
        """Look where a log that is followed ends now, and where it begins; return `head`."""
        self._check_open()
        last = self._stream.last(f"{self.name}.>")
        if (0 if last is None else last.sequence) < self._extent.last:
            raise LogError(
                f"the stream {self.name!r} no longer has message {self._extent.last}: its servers lost messages; "
                "restore a backup of the stream"
            )
        if last is not None and last.sequence > self._extent.last:
            self._extent.begin = max(self._stream.state().first, 1)
            self._continue_after(last)
            self._reader.index.forget(self._extent.begin)
        return self._extent.head

    def take_over(self) -> None:
        """Become the one process that writes to the log; the process that wrote to it until now is fenced."""
        parts = Stream(self._connection, f"{self.name}-parts")
        self._failure = None
        while True:
            parts_before = parts.state().last
            state = self._stream.state()
            if state.messages not in {0, state.last + 1 - state.first}:
                raise LogError(
                    f"the stream {self.name!r} has only {state.messages} of its messages {state.first} to "
                    f"{state.last}; "
                    "restore a backup of the stream"
                )
            self._extent.begin, self._extent.last = max(state.first, 1), state.last
            if state.last > 0:
                self._continue_after(self._stream.last(f"{self.name}.>"))
            try:
                self._write_control()
                break
            except FencedError:  # somebody wrote in the meantime: continue after that
                self._failure = None
        self._parts.position = parts_before
        if self._extent.first > 1:
            self._finish_trim()
        self._parts.remove_other_checkpoints(self._checkpoint.part if self._checkpoint else None, parts_before)

    def _continue_after(self, last: Message | None) -> None:
        """Take over the state as of the last message."""
        if last is None:
            raise LogError(f"all messages of the stream {self.name!r} were deleted; restore a backup of the stream")
        content = self._reader.content(last)
        control = self._reader.last_control()
        self._extent.last, self._extent.head, self._time = last.sequence, content.last, content.time
        self._extent.first, self._checkpoint = control.first, control.checkpoint
        # A trim of a full stream may have been interrupted between its purge and its message.
        oldest = self._stream.next(f"{self.name}.>", 1)
        if oldest is not None and oldest.subject != f"{self.name}.control":
            self._extent.first = max(self._extent.first, read_append(oldest.data).first)
        covered = self._checkpoint.sequence if self._checkpoint is not None else 0
        if self._extent.first > max(control.first, covered + 1):
            raise LogError(
                f"records up to {self._extent.first - 1} of the log {self.name!r} are missing; restore the log "
                "from a backup"
            )

    @property
    def first(self) -> int:
        """The sequence of the oldest record that can be read; `head + 1` if there is none."""
        return self._extent.first

    @property
    def head(self) -> int:
        """The sequence of the last durable record; 0 if there has never been one."""
        return self._extent.head

    @property
    def time(self) -> int:
        """The time of the last durable record, for the process that appends; 0 if there is none."""
        return self._time

    def append(self, records: Sequence[LogRecord]) -> int:
        """Append all records or none; return the sequence of the first. They are durable when this returns."""
        begin = self._extent.head + 1
        time = max(self._time, self._clock())
        self._write([LogEntry(sequence, time, *record) for sequence, record in enumerate(records, begin)])
        return begin

    def restore(self, entries: Sequence[LogEntry]) -> None:
        """Append entries of another log, all or none, with their sequences and times; durable when this returns."""
        check_continuation(entries, self._extent.head, self._time)
        self._write(entries)

    def _write(self, entries: Sequence[LogEntry]) -> None:
        with self._writing:
            self._write_alone(entries)

    def _write_alone(self, entries: Sequence[LogEntry]) -> None:
        self._check_writable()
        check_contents(entries)
        if not entries:
            return
        parts, parts_before = list[str](), self._parts.position
        try:
            records = [self._stored(entry, parts) for entry in entries]
            block, apart = records_block(records), b""
            if len(block) > self._limit:
                parts.append(self._parts.put("body", block))
                apart = bytes.fromhex(parts[-1])
            self._publish(subject_of(records), append_data(records, parts_before, block, apart))
        except LogFullError:
            for part in parts:
                self._parts.remove("body", part)
            raise
        self._reader.index.add(self._extent.last, entries[-1].sequence)
        self._time, self._extent.head = entries[-1].time, entries[-1].sequence

    def _stored(self, entry: LogEntry, parts: list[str]) -> StoredRecord:
        """A record for a message; one that takes more than half of it is stored first, as a part."""
        if len(entry.meta) + len(entry.body) <= self._limit // 2:
            return stored_record(entry, b"", entry.meta + entry.body)
        inside = entry.meta if len(entry.meta) <= self._limit // 2 else b""
        parts.append(self._parts.put("body", entry.body if inside else entry.meta + entry.body))
        return stored_record(entry, bytes.fromhex(parts[-1]), inside)

    def _publish(self, subject: str, data: bytes) -> None:
        """Write a message after the last one that this process knows of."""
        self._failure = LogError(f"an earlier change of the log {self.name!r} was interrupted; open the log again")
        try:
            last = self._stream.publish(f"{self.name}.{subject}", data, self._extent.last)
        except LogFullError:
            self._failure = None
            raise
        except ConflictError:
            self._failure = self._conflict()
            raise self._failure from None
        except LogError as error:
            self._failure = error
            raise
        if last != self._extent.last + 1:
            self._failure = LogError(
                f"message {self._extent.last + 1} of the log {self.name!r} was stored as message {last}: something "
                "else wrote to its stream; restore a backup of the stream"
            )
            raise self._failure
        self._failure = None
        self._extent.last = last

    def _conflict(self) -> LogError:
        """The error after a server rejected a change because of the last message."""
        last = self._stream.last(f"{self.name}.>")
        if last is None:
            return LogError(f"the stream {self.name!r} was deleted or emptied; restore a backup of the stream")
        if last.sequence < self._extent.last:
            return LogError(
                f"the stream {self.name!r} ends with message {last.sequence}, but its servers acknowledged "
                f"{self._extent.last} and have lost messages; restore a backup of the stream"
            )
        control = self._reader.last_control()
        if control.owner_id == self._owner.id:
            return LogError(
                f"something other than Pathcast wrote to the stream {self.name!r}; restore a backup of the stream"
            )
        return FencedError(
            f"another broker ({control.owner}) has taken over the log {self.name!r}; stop this broker, or "
            "open the log again to take it back"
        )

    def _write_control(self, **changes: Any) -> None:
        """Write the state with these changes, which are then in force."""
        state = {
            "last": self._extent.head,
            "time": self._time,
            "first": self._extent.first,
            "checkpoint": self._checkpoint,
            **changes,
        }
        self._publish("control", control_data(**state, owner=self._owner))
        self._reader.index.add(self._extent.last, state["last"])
        self._checkpoint, self._extent.head, self._extent.first = state["checkpoint"], state["last"], state["first"]

    def begin_at(self, sequence: int) -> None:
        """Let a log that never had a record begin with this sequence."""
        if sequence < 1:
            raise ValueError(f"sequence must be at least 1, got {sequence}")
        self._check_writable()
        if self._extent.head >= self._extent.first or self._checkpoint is not None:
            raise LogError(f"the log {self.name!r} already has records; import into a new log")
        self._write_control(last=sequence - 1, first=sequence)

    def read(
        self, begin: int, end: int | None = None, *, kinds: Sequence[str] | None = None, bodies: bool = True
    ) -> Iterator[LogEntry]:
        """The records from `begin` to before `end`, in order; see `Log.read`."""
        end = self._extent.head + 1 if end is None else min(end, self._extent.head + 1)
        return self._entries(max(begin, 1), end, kinds, bodies=bodies)

    def _entries(self, begin: int, end: int, kinds: Sequence[str] | None, *, bodies: bool) -> Iterator[LogEntry]:
        self._check_open()
        yield from self._reader.entries(begin, end, kinds, bodies=bodies)

    def sequence_at(self, time: int) -> int:
        """The sequence of the first record at or after a time (in microseconds); `head + 1` if there is none."""
        self._check_open()
        return self._reader.sequence_at(time)

    def checkpoint(self) -> Checkpoint | None:
        """The latest checkpoint."""
        if self._extent.last == 0:  # followed, before anybody owned it
            return None
        while True:
            self._check_open()
            stored = self._reader.last_control().checkpoint
            if stored is None:
                return None
            data = self._parts.get("checkpoint", stored.part, stored.length)
            if data is not None and crc32(data) == stored.checksum:
                return Checkpoint(stored.sequence, data)
            if self._reader.last_control().checkpoint == stored:
                raise LogError(f"the checkpoint of the log {self.name!r} is damaged; restore the log from a backup")

    def write_checkpoint(self, sequence: int, *data: bytes) -> None:
        """Store a checkpoint durably; earlier ones are removed."""
        with self._writing:
            self._check_writable()
            earlier = self._checkpoint
            lowest = max(self._extent.first - 1, earlier.sequence if earlier is not None else 0)
            if not lowest <= sequence <= self._extent.head:
                raise ValueError(
                    f"sequence must be from {lowest} to {self._extent.head}, the head of the log, got {sequence}"
                )
        part = self._parts.put("checkpoint", *data)  # appends continue meanwhile: it may be large
        checksum = 0
        for piece in data:
            checksum = crc32(piece, checksum)
        with self._writing:
            self._check_writable()
            self._write_control(checkpoint=StoredCheckpoint(sequence, part, sum(map(len, data)), checksum))
        if earlier is not None:
            self._parts.remove("checkpoint", earlier.part)

    def trim(self, begin: int) -> int:
        """Remove messages with records before `begin`; return the new `first`."""
        with self._writing:
            return self._trim(begin)

    def _trim(self, begin: int) -> int:
        self._check_writable()
        covered = self._checkpoint.sequence if self._checkpoint is not None else 0
        if begin - 1 > covered:
            raise LogError(
                f"trim({begin}) would remove records after {covered}, the last that the checkpoint covers; write a "
                "checkpoint first"
            )
        if begin <= self._extent.first:
            return self._extent.first
        first = begin
        if begin <= self._extent.head:
            first = self._reader.append_of(begin)[1].first
        if first > self._extent.first:
            self._exclude(first)
            self._finish_trim()
        return self._extent.first

    def _exclude(self, first: int) -> None:
        """Write that the log now begins here. For a purge there is always space, for a message not."""
        try:
            self._write_control(first=first)
        except LogFullError:
            if self._reader.last_control().owner_id != self._owner.id:
                raise self._conflict() from None
            self._extent.first = first
            self._finish_trim()
            self._write_control()

    def _finish_trim(self) -> None:
        """Remove the messages before `first`, which the last control message already excludes."""
        begin, parts_before = self._extent.last, self._parts.position
        if self._extent.first <= self._extent.head:
            begin, append = self._reader.append_of(self._extent.first)
            parts_before = append.parts_before
        if begin > self._extent.begin:
            self._stream.purge(before=begin)
            self._extent.begin = begin
            self._reader.index.forget(begin)
        self._parts.remove_bodies(parts_before)

    def _check_open(self) -> None:
        if self._connection.closed:
            raise LogError(f"the log {self.name!r} is closed; open it again")

    def _check_writable(self) -> None:
        self._check_open()
        if self._failure is not None:
            raise type(self._failure)(
                f"cannot write to the log {self.name!r}: an earlier write failed ({self._failure.reason}); fix "
                "the cause, then close the log and open it again"
            )

    def close(self) -> None:
        """Disconnect; another process may open the log at any time, closed or not."""
        self._connection.close()
