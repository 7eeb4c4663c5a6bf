"""Export of a log to one file or pipe, and import into a new log: backup, migration between kinds of logs.

    pathcast log 1⏎
    HEAD  {"first": 501, "head": 900, "checkpoint": 500}
    RECS  records 501 … 612
    RECS  records 613 … 900
    CKPT  sequence (8 bytes), data             if there is a checkpoint
    DONE  number of records (8 bytes)

After the first line, a block is its name (4 bytes), the length of its content (8 bytes), a checksum of name, length and
content (CRC-32, 4 bytes), and the content. A record in a RECS block is its sequence and time (8 bytes each), the
lengths of kind, meta and body (4 bytes each), then kind (UTF-8), meta and body. Numbers are big-endian.

Sequences and times stay what they are: whatever refers to a sequence (cursors, replays) stays true in the new log.

Invariant: an import that returns has taken over every record; a file that was cut or damaged is an error. The log is
then incomplete: delete it.
Cost: a few megabytes of memory, except for records that are larger; a transaction of the new log per block.
"""

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NamedTuple
from zlib import crc32

from .log_contract import Log, LogEntry, LogError

FIRST_LINE = b"pathcast log 1\n"
_BLOCK = struct.Struct(">4sQ")
_RECORD = struct.Struct(">QQIII")
_NUMBER = struct.Struct(">Q")
_BLOCK_BYTES, _BLOCK_RECORDS = 4 << 20, 1024
_PIECE = 1 << 20
# A record of the largest size has a block of its own.
_LONGEST_BLOCK = 1 << 30

Progress = Callable[[int, int], object]


class TransferredLog(NamedTuple):
    """The extent of an export or import."""

    first: int
    head: int
    checkpoint: int | None


def export_log(log: Log, target: BinaryIO, *, progress: Progress = lambda done, total: None) -> TransferredLog:
    """Write all records of a log and its checkpoint; `progress` gets the number of records, and of all records.

    Records that are appended in the meantime are not exported. `TrimmedError` if records are trimmed in the meantime.
    """
    checkpoint = log.checkpoint()  # first: the records after it are in the log then
    exported = TransferredLog(log.first, log.head, None if checkpoint is None else checkpoint.sequence)
    total = exported.head + 1 - exported.first
    target.write(FIRST_LINE)
    _write_block(target, b"HEAD", json.dumps(exported._asdict()).encode())
    done = 0
    for entries in _batches(log.read(exported.first, exported.head + 1)):
        content = bytearray()
        for entry in entries:
            kind = entry.kind.encode()
            content += _RECORD.pack(entry.sequence, entry.time, len(kind), len(entry.meta), len(entry.body))
            content += kind
            content += entry.meta
            content += entry.body
        _write_block(target, b"RECS", content)
        done += len(entries)
        progress(done, total)
    if checkpoint is not None:
        _write_block(target, b"CKPT", _NUMBER.pack(checkpoint.sequence) + checkpoint.data)
    _write_block(target, b"DONE", _NUMBER.pack(done))
    return exported


def import_log(log: Log, source: BinaryIO, *, progress: Progress = lambda done, total: None) -> TransferredLog:
    """Take over an exported log, with its sequences and times, into a log that has no records.

    `LogError` if the log is not new, or if the source is not a whole, undamaged export.
    """
    stream = _Blocks(source)
    imported = _header(stream)
    done, total = 0, imported.head + 1 - imported.first
    checkpoint: int | None = None
    try:
        log.begin_at(imported.first)
        while True:
            name, content = stream.next()
            if name == b"RECS":
                entries = _records(content)
                log.restore(entries)
                done += len(entries)
                progress(done, total)
            elif name == b"CKPT":
                (checkpoint,) = _NUMBER.unpack_from(content)
                log.write_checkpoint(checkpoint, content[_NUMBER.size :])
            elif name == b"DONE":
                break
            else:
                raise stream.damaged(f"unknown block {name!r}")
        whole = (imported.first, log.head, checkpoint) == imported and _NUMBER.unpack(content) == (done,)
    except (ValueError, struct.error) as error:
        raise stream.damaged(str(error)) from error
    if not whole:
        raise stream.damaged("records, or the checkpoint, are missing")
    return imported


def _header(stream: "_Blocks") -> TransferredLog:
    name, content = stream.next()
    try:
        if name == b"HEAD":
            imported = TransferredLog(**json.loads(content))
            if all(type(number) is int for number in imported if number is not None):
                return imported
    except (TypeError, ValueError):
        pass
    raise stream.damaged("the header is malformed")


def _batches(entries: Iterator[LogEntry]) -> Iterator[list[LogEntry]]:
    batch: list[LogEntry] = []
    size = 0
    for entry in entries:
        more = len(entry.body) + len(entry.meta)
        if batch and (len(batch) == _BLOCK_RECORDS or size + more > _BLOCK_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += more
    if batch:
        yield batch


def _records(content: bytes) -> Sequence[LogEntry]:
    entries, place = [], 0
    while place < len(content):
        sequence, time, *lengths = _RECORD.unpack_from(content, place)
        place += _RECORD.size
        parts = []
        for length in lengths:
            parts.append(content[place : place + length])
            place += length
        entries.append(LogEntry(sequence, time, parts[0].decode(), parts[1], parts[2]))
    if place != len(content):
        raise ValueError("a record is incomplete")
    return entries


def _write_block(target: BinaryIO, name: bytes, content: bytes | bytearray) -> None:
    start = _BLOCK.pack(name, len(content))
    target.write(start + crc32(content, crc32(start)).to_bytes(4, "big"))
    target.write(content)


class _Blocks:
    """Reads the blocks of an export, verified."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._place = 0
        line = self._read(len(FIRST_LINE), partly=True)
        if line != FIRST_LINE:
            if line.startswith(FIRST_LINE[:-2]) and line[len(FIRST_LINE) - 2 : len(FIRST_LINE) - 1].isdigit():
                raise LogError(
                    f"this export has a later format, {line.decode().strip()!r}; import it with a later version of "
                    "Pathcast"
                )
            raise LogError(
                f"not an export of a log: the file begins with {line!r}, expected {FIRST_LINE!r}; give a file that "
                "pathcast log export wrote"
            )

    def next(self) -> tuple[bytes, bytes]:
        """The name and content of the next block."""
        start = self._read(_BLOCK.size)
        name, length = _BLOCK.unpack(start)
        checksum = self._read(4)
        if length > _LONGEST_BLOCK:
            raise self.damaged(f"a block has {length:,} bytes; at most {_LONGEST_BLOCK:,} are possible")
        content = self._read(length)
        if crc32(content, crc32(start)).to_bytes(4, "big") != checksum:
            raise self.damaged("a block has a wrong checksum")
        return name, content

    def damaged(self, reason: str) -> LogError:
        """The error for a file that is not as `export_log` writes it."""
        return LogError(f"the export is damaged before byte {self._place}: {reason}; export the log again")

    def _read(self, size: int, *, partly: bool = False) -> bytes:
        pieces = []
        while size:
            piece = self._source.read(min(size, _PIECE))
            if not piece:
                if partly:
                    break
                raise LogError(f"the export is truncated after byte {self._place}; export the log again")
            pieces.append(piece)
            size -= len(piece)
            self._place += len(piece)
        return b"".join(pieces)
