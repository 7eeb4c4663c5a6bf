"""Checkpoints as files beside the segments of a log: `checkpoint-00000000000000004711.bin`.

A line with the format, the checksum (CRC-32, big-endian) of sequence and data, the sequence (8 bytes, big-endian), the
data. A checkpoint appears by a rename once it is on disk, and then the earlier ones are removed.

Writing and checking go by pieces, so that they keep no other thread waiting, however large a checkpoint is.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from pathcast.store import flush

from ..format_versions import other_format
from ..log_contract import Checkpoint, LogError, LogFullError

_PREFIX = "checkpoint-"
_FORMAT = 1
_MAGIC = f"pathcast checkpoint {_FORMAT}\n".encode()
_ANY_MAGIC = re.compile(rb"pathcast checkpoint ([0-9]{1,9})\n")
_PIECE = 1 << 20


def latest_checkpoint(folder: Path) -> int | None:
    """The sequence of the latest checkpoint in a folder."""
    found = [path.stem[len(_PREFIX) :] for path in folder.glob(f"{_PREFIX}{'[0-9]' * 20}.bin")]
    return max(map(int, found), default=None)


def checkpoint_stamp(folder: Path) -> tuple[int, int, int] | None:
    """Sequence, size and time of the latest checkpoint, by which a change of the file shows."""
    sequence = latest_checkpoint(folder)
    if sequence is None:
        return None
    found = _path(folder, sequence).stat()
    return sequence, found.st_size, found.st_mtime_ns


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """The latest checkpoint in a folder."""
    while (sequence := latest_checkpoint(folder)) is not None:
        try:
            return Checkpoint(sequence, b"".join(_pieces(_path(folder, sequence), sequence)))
        except FileNotFoundError:  # replaced by a later one in the meantime
            continue
    return None


def check_checkpoint(folder: Path) -> None:
    """`LogError` if the latest checkpoint in a folder is damaged; not while another one may be written."""
    sequence = latest_checkpoint(folder)
    if sequence is not None:
        for _ in _pieces(_path(folder, sequence), sequence):
            pass


def _pieces(path: Path, sequence: int) -> Iterator[bytes]:
    """The data of a checkpoint; `LogError`, at the latest after the last piece, if they are damaged."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC) + 12)
            marked = _ANY_MAGIC.match(start)
            if marked is not None and int(marked[1]) != _FORMAT:
                raise LogError(other_format(str(path), int(marked[1]), _FORMAT))
            magic, checksum, number = start[:-12], start[-12:-8], start[-8:]
            found = crc32(number)
            while piece := file.read(_PIECE):
                found = crc32(piece, found)
                yield piece
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LogError(f"cannot read {path}: {error.strerror}; check its permissions and the disk") from error
    if magic != _MAGIC or checksum != found.to_bytes(4, "big") or number != sequence.to_bytes(8, "big"):
        raise LogError(f"{path} is damaged; restore the log from a backup")


def write_checkpoint(folder: Path, sequence: int, *data: bytes) -> None:
    """Write a checkpoint durably, and remove the earlier ones."""
    path = _path(folder, sequence)
    new = path.with_suffix(".new")
    number = sequence.to_bytes(8, "big")
    try:
        with new.open("wb") as file:
            checksum = crc32(number)
            for piece in data:
                checksum = crc32(piece, checksum)
            file.write(_MAGIC + checksum.to_bytes(4, "big") + number)
            file.writelines(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        flush(folder)
        for old in folder.glob(f"{_PREFIX}*"):
            if old.name < path.name:
                old.unlink()
    except OSError as error:
        new.unlink(missing_ok=True)
        raise LogFullError(f"cannot write {path}: {error.strerror}; check permissions and free disk space") from error


def _path(folder: Path, sequence: int) -> Path:
    return folder / f"{_PREFIX}{sequence:020d}.bin"
