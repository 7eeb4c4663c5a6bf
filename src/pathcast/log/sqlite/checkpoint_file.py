"""Checkpoints as files beside the segments of a log: `checkpoint-00000000000000004711.bin`.

A line with the format, the checksum (CRC-32, big-endian) of sequence and data, the sequence (8 bytes, big-endian), the
data. A checkpoint appears by a rename once it is on disk, and then the earlier ones are removed.
"""

import os
import re
from pathlib import Path
from zlib import crc32

from pathcast.store import flush

from ..format_versions import other_format
from ..log_contract import Checkpoint, LogError, LogFullError

_PREFIX = "checkpoint-"
_FORMAT = 1
_MAGIC = f"pathcast checkpoint {_FORMAT}\n".encode()
_ANY_MAGIC = re.compile(rb"pathcast checkpoint ([0-9]{1,9})\n")


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
        path = _path(folder, sequence)
        try:
            content = path.read_bytes()
        except FileNotFoundError:  # replaced by a later one in the meantime
            continue
        except OSError as error:
            raise LogError(f"cannot read {path}: {error.strerror}; check its permissions and the disk") from error
        marked = _ANY_MAGIC.match(content)
        if marked is not None and int(marked[1]) != _FORMAT:
            raise LogError(other_format(str(path), int(marked[1]), _FORMAT))
        start = len(_MAGIC)
        counted = memoryview(content)[start + 4 :]
        right = content[start : start + 4] == crc32(counted).to_bytes(4, "big")
        if content[:start] != _MAGIC or not right or counted[:8] != sequence.to_bytes(8, "big"):
            raise LogError(f"{path} is damaged; restore the log from a backup")
        return Checkpoint(sequence, bytes(counted[8:]))
    return None


def write_checkpoint(folder: Path, sequence: int, data: bytes) -> None:
    """Write a checkpoint durably, and remove the earlier ones."""
    path = _path(folder, sequence)
    new = path.with_suffix(".new")
    number = sequence.to_bytes(8, "big")
    try:
        with new.open("wb") as file:
            file.write(_MAGIC + crc32(data, crc32(number)).to_bytes(4, "big") + number)
            file.write(data)
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
