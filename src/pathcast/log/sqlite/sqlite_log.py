"""The log on this machine: a folder of SQLite segments.

    log/.lock                   held by the process that appends
    log/segment-….sqlite        records; only the last segment is written
    log/checkpoint-….bin        the state that the owner made of all records up to this sequence

A segment that has reached its size is closed, and the next one begins. Trimming removes whole segments, oldest first,
up to the latest checkpoint. A crash at any point leaves a folder that opens: a segment appears when its file does, a
checkpoint appears by a rename.

Invariant: a sequence that `append` returned is on disk; the segments are consecutive.
Cost: one transaction and one fsync per append, so the caller gathers records; see segment_file.py. A search by time
is a bisection, 100 µs.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from threading import Lock

from pathcast.store import flush

from ..log_contract import (
    END_OF_NUMBERS,
    Checkpoint,
    Clock,
    LogEntry,
    LogError,
    LogFullError,
    LogRecord,
    TrimmedError,
    check_contents,
    check_continuation,
    system_clock,
)
from .checkpoint_file import check_checkpoint, checkpoint_stamp, latest_checkpoint, read_checkpoint, write_checkpoint
from .folder_lock import shared_lock, sole_lock
from .segment_file import SegmentWriter, is_closed, segment_begins, segment_path, wal_path
from .segment_reader import IdleConnections, RetiredError, SegmentReader
from .write_ahead_log_damage import check_write_ahead_log

# Bytes of records per segment.
SEGMENT_BYTES = 256 << 20


class SqliteLog:
    """A `Log` in a folder; the folder is created if it is missing.

    >>> import tempfile
    >>> from pathcast.log import LogRecord, SqliteLog
    >>> log = SqliteLog(tempfile.mkdtemp())
    >>> log.append([LogRecord("document", b"{}", b"<a/>"), LogRecord("document", b"{}", b"<b/>")])
    1
    >>> [entry.body for entry in log.read(2)]
    [b'<b/>']
    >>> log.close()
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        segment_bytes: int = SEGMENT_BYTES,
        clock: Clock = system_clock,
        read_only: bool = False,
    ) -> None:
        """`segment_bytes`: bytes of records after which a segment is closed.

        `read_only`: read the log as it is now, also while another process writes it, or from a folder that cannot be
        written; records that are missing or damaged are reported when they are read.
        """
        self.folder = Path(folder)
        self._segment_bytes = segment_bytes
        self._clock = clock
        self._idle = IdleConnections()
        self._change = Lock()  # of the list of segments
        self._failure: str | None = None
        self._closed = False
        self._read_only = read_only
        self._segments: list[SegmentReader] = []
        self._writer: SegmentWriter | None = None
        self._whole: tuple[int, int, int] | None = None  # the checkpoint that was found undamaged
        self._lock_file, in_use = shared_lock(self.folder) if read_only else (sole_lock(self.folder), False)
        try:
            if read_only:
                self._open_to_read(in_use=in_use)
            else:
                self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        begins = segment_begins(self.folder)
        for begin in begins:
            check_write_ahead_log(segment_path(self.folder, begin))
        begins = begins or [1]
        for begin in begins[:-1]:
            path = segment_path(self.folder, begin)
            if not is_closed(path) and not SegmentWriter(self.folder, begin).finish():
                raise LogError(f"cannot close the segment {path}: another process is reading it; stop that process")
        self._segments = [self._reader(begin, closed=True) for begin in begins[:-1]]
        for segment, next_begin in zip(self._segments, begins[1:], strict=True):
            _check_continuity(segment, next_begin)
        self._head, self._time = begins[-1] - 1, 0
        if self._segments:
            self._time = self._segments[-1].time_of(self._head)
        self._begin_segment()
        if (covered := latest_checkpoint(self.folder) or 0) > self._head:
            raise LogError(
                f"the log in {self.folder} ends with record {self._head}, but its checkpoint covers records up to "
                f"{covered}; restore the log from a backup"
            )

    def _open_to_read(self, *, in_use: bool) -> None:
        begins = segment_begins(self.folder)
        if not begins:
            raise LogError(f"no log in {self.folder}; give the folder of a log")
        self._segments = [self._reader(begin, closed=True) for begin in begins[:-1]]
        path = segment_path(self.folder, begins[-1])
        if not in_use:
            check_write_ahead_log(path)
        # If nobody writes it and it has no write-ahead log, then the file has all its records.
        closed = is_closed(path) or not (in_use or wal_path(path).exists())
        self._segments.append(SegmentReader(self.folder, begins[-1], self._idle, closed=closed, keep=closed))
        last = self._segments[-1].ends()[1]
        self._head, self._time = begins[-1] - 1 if last is None else last, 0

    def _reader(self, begin: int, *, closed: bool) -> SegmentReader:
        return SegmentReader(self.folder, begin, self._idle, closed=closed)

    @property
    def first(self) -> int:
        """The sequence of the oldest record that can be read; `head + 1` if there is none."""
        return self._segments[0].begin

    @property
    def head(self) -> int:
        """The sequence of the last durable record; 0 if there has never been one."""
        return self._head

    @property
    def time(self) -> int:
        """The time of the last durable record, for the process that appends; 0 if there is none."""
        return self._time

    @property
    def segments(self) -> int:
        """The number of segments of the log."""
        return len(self._segments)

    def append(self, records: Sequence[LogRecord]) -> int:
        """Append all records or none; return the sequence of the first. They are durable when this returns."""
        begin = self._head + 1
        time = max(self._time, self._clock())
        self._write([LogEntry(sequence, time, *record) for sequence, record in enumerate(records, begin)])
        return begin

    def restore(self, entries: Sequence[LogEntry]) -> None:
        """Append entries of another log, all or none, with their sequences and times; durable when this returns."""
        check_continuation(entries, self._head, self._time)
        self._write(entries)

    def _write(self, entries: Sequence[LogEntry]) -> None:
        self._check_writable()
        check_contents(entries)
        if not entries:
            return
        try:
            if self._writer is not None and self._writer.bytes >= self._roll_at:
                self._finish_segment()
            if self._writer is None:
                self._begin_segment()
            writer = self._writer
            assert writer is not None
            writer.append(entries)
        except LogFullError:
            raise
        except LogError as error:
            self._failure = error.reason
            raise
        self._head, self._time = writer.head, writer.time
        try:
            writer.empty_wal()
        except LogError as error:  # of no effect on these records
            self._failure = error.reason

    def _finish_segment(self) -> None:
        """Close the last segment. If another process reads it, continue it, and try again later."""
        assert self._writer is not None
        with self._change:
            last = self._segments[-1]
            last.retire()
            finished = False
            try:
                finished = self._writer.finish()
            finally:
                self._segments = [*self._segments[:-1], self._reader(last.begin, closed=finished)]
        if finished:
            self._writer = None
        else:
            self._roll_at = self._writer.bytes + self._segment_bytes // 16

    def _begin_segment(self) -> None:
        """Begin, or continue, the segment after `head`; after an error, the next append tries again."""
        writer = SegmentWriter(self.folder, self._head + 1)
        flush(self.folder)
        with self._change:
            self._segments = [*self._segments, self._reader(writer.begin, closed=False)]
        self._writer = writer
        self._head, self._time = writer.head, max(self._time, writer.time)
        self._roll_at = self._segment_bytes

    def begin_at(self, sequence: int) -> None:
        """Let a log that never had a record begin with this sequence."""
        if not 1 <= sequence < END_OF_NUMBERS:
            raise ValueError(f"sequence must be at least 1 and less than 2**63, got {sequence}")
        self._check_writable()
        if self._head >= self.first or latest_checkpoint(self.folder) is not None:
            raise LogError(f"the log in {self.folder} already has records; import into an empty folder")
        assert self._writer is not None
        with self._change:
            old = self._segments[0]
            old.retire()
            self._writer.close()
            self._segments, self._writer, self._head = [], None, sequence - 1
        old.path.unlink()
        self._begin_segment()

    def read(
        self, begin: int, end: int | None = None, *, kinds: Sequence[str] | None = None, bodies: bool = True
    ) -> Iterator[LogEntry]:
        """The records from `begin` to before `end`, in order; see `Log.read`."""
        end = self._head + 1 if end is None else min(end, self._head + 1)
        return self._entries(max(begin, 1), end, kinds, bodies=bodies)

    def _entries(self, begin: int, end: int, kinds: Sequence[str] | None, *, bodies: bool) -> Iterator[LogEntry]:
        self._check_open()
        while begin < end:
            segment, stop = self._segment_of(begin)
            try:
                found, begin = segment.chunk(begin, min(stop, end), kinds, bodies=bodies)
            except RetiredError:
                continue
            except LogError:
                self._check_not_trimmed_by_another(begin)
                raise
            yield from found

    def _segment_of(self, sequence: int) -> tuple[SegmentReader, int]:
        """The segment with a record, and the first sequence behind the segment."""
        with self._change:
            self._check_open()
            segments, head = self._segments, self._head
        if sequence < segments[0].begin:
            raise TrimmedError.before(sequence, segments[0].begin)
        place = bisect_right(segments, sequence, key=attrgetter("begin")) - 1
        return segments[place], head + 1 if place == len(segments) - 1 else segments[place + 1].begin

    def sequence_at(self, time: int) -> int:
        """The sequence of the first record at or after a time (in microseconds); `head + 1` if there is none."""
        low, high = self.first, self._head + 1
        while low < high:
            middle = (low + high) // 2
            try:
                found = self._segment_of(middle)[0].time_of(middle)
            except RetiredError:
                continue
            except TrimmedError as error:
                low, high = error.first, max(high, error.first)
                continue
            except LogError:
                self._check_not_trimmed_by_another(middle)
                raise
            if found < time:
                low = middle + 1
            else:
                high = middle
        self._check_open()
        return low

    def holding(self, keep_bytes: int) -> int:
        """The first sequence of the newest segments whose files have at least `keep_bytes`, or of all."""
        with self._change:
            self._check_open()
            segments = self._segments
        size = 0
        for segment in reversed(segments):
            size += segment.path.stat().st_size
            if size >= keep_bytes:
                return segment.begin
        return segments[0].begin

    def checkpoint(self) -> Checkpoint | None:
        """The latest checkpoint."""
        self._check_open()
        return read_checkpoint(self.folder)

    def write_checkpoint(self, sequence: int, *data: bytes) -> None:
        """Store a checkpoint durably; earlier ones are removed."""
        self._check_writable()
        latest = latest_checkpoint(self.folder)
        lowest = self.first - 1 if latest is None else latest
        if not lowest <= sequence <= self._head:
            raise ValueError(f"sequence must be from {lowest} to {self._head}, the head of the log, got {sequence}")
        write_checkpoint(self.folder, sequence, *data)

    def _check_checkpoint(self) -> None:
        """`LogError` if the checkpoint, which replaces records, is damaged; read once while it stays the same."""
        found = checkpoint_stamp(self.folder)
        if found is None or found != self._whole:
            check_checkpoint(self.folder)
            self._whole = found

    def trim(self, begin: int) -> int:
        """Remove whole segments before `begin`; return the new `first`."""
        self._check_open()
        covered = latest_checkpoint(self.folder) or 0
        if begin - 1 > covered:
            raise LogError(
                f"trim({begin}) would remove records after {covered}, the last that the checkpoint covers; write a "
                "checkpoint first"
            )
        kept = max(0, bisect_right(self._segments, begin, key=attrgetter("begin")) - 1)
        if kept:
            self._check_writable()
            self._check_checkpoint()
            with self._change:
                removed, self._segments = self._segments[:kept], self._segments[kept:]
            self._remove(removed)
        return self.first

    def _remove(self, segments: Sequence[SegmentReader]) -> None:
        try:
            for segment in segments:
                segment.retire()
                segment.path.unlink()
                flush(self.folder)  # in order: a power cut must not leave a gap
        except OSError as error:
            raise LogError(
                f"cannot remove {error.filename}: {error.strerror}; check the permissions of the folder"
            ) from error

    def _check_not_trimmed_by_another(self, begin: int) -> None:
        """`TrimmedError` if the process that writes this log has removed a segment."""
        if self._read_only and begin < (first := min(segment_begins(self.folder), default=self._head + 1)):
            raise TrimmedError.before(begin, first)

    def _check_open(self) -> None:
        if self._closed:
            raise LogError(f"the log in {self.folder} is closed; open it again")

    def _check_writable(self) -> None:
        self._check_open()
        if self._read_only:
            raise LogError(f"the log in {self.folder} is open read-only; open it without read_only=True")
        if self._failure is not None:
            raise LogError(
                f"cannot write to the log in {self.folder}: an earlier write failed ({self._failure}); fix the "
                "cause, then close the log and open it again"
            )

    def close(self) -> None:
        """Release the log."""
        with self._change:
            if self._closed:
                return
            self._closed = True
            for segment in self._segments:
                segment.retire()
            if self._writer is not None:
                self._writer.close()
            if self._lock_file is not None:
                os.close(self._lock_file)


def _check_continuity(segment: SegmentReader, next_begin: int) -> None:
    first, last = segment.ends()
    if first != segment.begin or last is None:
        raise LogError(
            f"{segment.path} begins with record {first} instead of {segment.begin}; restore the log from a backup"
        )
    if last != next_begin - 1:
        raise LogError(
            f"{segment.path} ends with record {last}, but the next segment begins with {next_begin}; restore "
            "the log from a backup"
        )
