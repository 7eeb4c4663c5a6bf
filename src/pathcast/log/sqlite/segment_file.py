"""One segment of the log: a SQLite file with consecutive records, and its writer.

    segment-00000000000000000001.sqlite     records 1 … 4711, closed
    segment-00000000000000004712.sqlite     records 4712 …, the one that is written (-wal and -shm beside it)

The segment that is written is in WAL mode with `synchronous=FULL`: a committed transaction survives a power cut.
Closing it moves the write-ahead log into the file and leaves WAL mode. From then on the file never changes: other
processes may read it, and it may be copied.

Bodies have a table of their own, so that a search for times or kinds reads 60 bytes per record. A record has two
checksums (CRC-32): one of its body, one of everything else, so that a record read without its body is verified, too.

The writer moves the write-ahead log into the file itself, after every `_WAL_BYTES`: SQLite's automatic checkpoints
hide their errors, and an fsync that failed unnoticed is a loss.

Cost: an append of 64 records of 4 KB takes 1 ms of CPU time (a single record 0.6 ms, 256 records 3 ms) and one fsync:
0.2 ms on a disk with a cache that survives a power cut, some 5 ms on one without. Moving the write-ahead log adds a
third of the CPU time, and a pause of 8 ms every 16 such appends; after every MB instead of 4 MB it adds 40 %, and the
pause is 2.4 ms.
With pages of 4 KB instead of 16 KB, appending and moving take 1.15 times the CPU time, and reading 1.3 times; with
32 KB 0.8 times, but 1.2 times for single records, which write two pages. The write-ahead log and the file take 2.7
times the bytes of records of 4 KB together (2.6 with pages of 4 KB, 3.3 with 64 KB).
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import pack
from zlib import crc32

from ..format_versions import other_format
from ..log_contract import LogEntry, LogError, LogFullError

PREFIX, SUFFIX = "segment-", ".sqlite"
# Marks in the header of the file: of Pathcast's segments, and of their format.
APPLICATION, VERSION = 0x50436C67, 1
_RECORDS = """
create table records (
    sequence integer primary key, time integer not null, kind text not null, meta blob not null,
    checksum integer not null, body_checksum integer not null
) strict
"""
_BODIES = "create table bodies (sequence integer primary key, body blob not null) strict"
PAGE_SIZE = 16_384
_EMPTY_PAGES = 3
# Bytes of records after which the write-ahead log is moved into the file.
_WAL_BYTES = 4 << 20
# Where the header of a SQLite file has the format versions for writing and reading: 1, or 2 in WAL mode.
_FORMAT_VERSIONS = slice(18, 20)
# What a damaged file leads to: SQLite's error messages quote it, and Python decodes them.
DAMAGE = (sqlite3.Error, UnicodeDecodeError)
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}


def segment_path(folder: Path, begin: int) -> Path:
    """The file of the segment whose first record has sequence `begin`."""
    return folder / f"{PREFIX}{begin:020d}{SUFFIX}"


def segment_begins(folder: Path) -> list[int]:
    """The first sequences of all segments in a folder, in order."""
    return sorted(int(path.name[len(PREFIX) : -len(SUFFIX)]) for path in folder.glob(f"{PREFIX}{'[0-9]' * 20}{SUFFIX}"))


def wal_path(path: Path) -> Path:
    """The write-ahead log of a segment."""
    return path.with_name(f"{path.name}-wal")


def is_closed(path: Path) -> bool:
    """Whether a segment needs no recovery and is not in WAL mode."""
    if wal_path(path).exists() or path.with_name(f"{path.name}-journal").exists():
        return False
    with path.open("rb") as file:
        return file.read(20)[_FORMAT_VERSIONS] == b"\1\1"


def checksum_of(entry: LogEntry, body_checksum: int) -> int:
    """The checksum of a record without its body."""
    kind = entry.kind.encode()
    numbers = pack(">QQII", entry.sequence, entry.time, body_checksum, len(kind))
    return crc32(entry.meta, crc32(kind, crc32(numbers)))


@contextmanager
def damage_reported(path: Path) -> Iterator[None]:
    """Every error of SQLite becomes a `LogError`."""
    try:
        yield
    except DAMAGE as error:
        if code_of(error) in _FULL:
            raise LogFullError(f"no space left for {path}: {error}; free disk space, or trim the log") from error
        raise LogError(f"cannot read {path}: {error}; check the disk, or restore the log from a backup") from error


def code_of(error: Exception) -> int:
    """SQLite's extended result code; 0 for errors that Python's module raises itself."""
    return getattr(error, "sqlite_errorcode", 0)


class SegmentWriter:
    """Appends records to the last segment of a log."""

    def __init__(self, folder: Path, begin: int) -> None:
        self.begin = begin
        self.path = segment_path(folder, begin)
        with damage_reported(self.path):
            self._connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            try:
                first, head, last_time = self._prepared()
            except BaseException:
                self._connection.close()
                raise
        self.head: int = begin - 1 if head is None else head
        self.time: int = last_time or 0
        (pages,) = self._connection.execute("pragma page_count").fetchone()
        self.bytes = (int(pages) - _EMPTY_PAGES) * PAGE_SIZE  # of records, roughly
        self._in_wal = 0
        if first not in {None, begin}:
            self._connection.close()
            raise LogError(f"{self.path} begins with record {first} instead of {begin}; restore the log from a backup")

    def _prepared(self) -> tuple[int | None, int | None, int | None]:
        """The first and last sequence and the last time of a segment, which is created if its file is empty."""
        execute = self._connection.execute
        # First of all: a file of another program or version is left as it is.
        (application,) = execute("pragma application_id").fetchone()
        (version,) = execute("pragma user_version").fetchone()
        if (application, version) != (0, 0):
            check_format(self.path, application, version)
        execute(f"pragma page_size = {PAGE_SIZE}")
        execute("pragma journal_mode = wal")
        execute("pragma synchronous = full")
        execute("pragma fullfsync = 1")
        execute("pragma wal_autocheckpoint = 0")
        if (application, version) == (0, 0):
            if execute("select count(*) from sqlite_schema").fetchone() != (0,):
                raise LogError(f"{self.path} was not written by Pathcast; move it out of the folder of the log")
            execute("begin immediate")
            execute(f"pragma application_id = {APPLICATION}")
            execute(f"pragma user_version = {VERSION}")
            execute(_RECORDS)
            execute(_BODIES)
            execute("commit")
        first, head = execute(
            "select (select min(sequence) from records), (select max(sequence) from records)"
        ).fetchone()
        row = execute("select time from records where sequence = ?", (head,)).fetchone()
        return first, head, row and row[0]

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Append all entries in one transaction, which is on disk when this returns."""
        rows, bodies = [], []
        for entry in entries:
            body_checksum = crc32(entry.body)
            rows.append((*entry[:4], checksum_of(entry, body_checksum), body_checksum))
            bodies.append((entry.sequence, entry.body))
        try:
            self._connection.execute("begin immediate")
            self._connection.executemany("insert into records values (?, ?, ?, ?, ?, ?)", rows)
            self._connection.executemany("insert into bodies values (?, ?)", bodies)
            self._connection.execute("commit")
        except sqlite3.Error as error:
            self._undo(error)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("rollback")
            raise
        self.head += len(rows)
        self.time = entries[-1].time
        size = sum(len(entry.meta) + len(entry.body) for entry in entries)
        self.bytes += size
        self._in_wal += size

    def _undo(self, error: sqlite3.Error) -> None:
        """Roll back a failed append; a full disk is a `LogFullError`, everything else a `LogError`."""
        full = code_of(error) in _FULL
        try:
            if self._connection.in_transaction:
                self._connection.execute("rollback")
        except sqlite3.Error:
            full = False
        if full:
            raise LogFullError(f"no space left for {self.path}: {error}; free disk space, or trim the log") from error
        raise LogError(
            f"cannot write to {self.path}: {error}; check the disk and the permissions, then restart the process"
        ) from error

    def empty_wal(self) -> None:
        """Move the write-ahead log into the file if it has grown; without space for that, it continues to grow."""
        if self._in_wal < _WAL_BYTES:
            return
        try:
            self._connection.execute("pragma wal_checkpoint(passive)").fetchall()
        except sqlite3.Error as error:
            if code_of(error) not in _FULL:
                raise LogError(
                    f"cannot write to {self.path}: {error}; check the disk and the permissions, then restart the "
                    "process"
                ) from error
        self._in_wal = 0

    def finish(self) -> bool:
        """Make the file one that never changes, and close it.

        Returns False, and leaves the file open, while another process reads it.
        """
        with damage_reported(self.path):
            try:
                self._connection.execute("pragma wal_checkpoint(truncate)").fetchall()
                (mode,) = self._connection.execute("pragma journal_mode = delete").fetchone()
            except sqlite3.Error as error:
                if code_of(error) & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                mode = "wal"
        if mode == "delete":
            self._connection.close()
        return bool(mode == "delete")

    def close(self) -> None:
        """Close the file; a later writer continues with it."""
        self._connection.close()


def check_format(path: Path, application: int, version: int) -> None:
    """`LogError` unless these marks in a file's header are those of a segment that this version of Pathcast reads."""
    if application != APPLICATION:
        raise LogError(f"{path} was not written by Pathcast; move it out of the folder of the log")
    if version != VERSION:
        raise LogError(other_format(str(path), version, VERSION))
