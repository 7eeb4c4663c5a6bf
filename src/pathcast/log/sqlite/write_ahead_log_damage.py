"""The write-ahead log of a segment, checked before SQLite opens it: whether it still has all that was committed.

    header  frame frame commit │ frame commit │ frame commit │ …          each frame: a page, salts, a running checksum
                               └─ a damaged frame: SQLite takes this for the end, and overwrites what follows

SQLite cannot tell a damaged frame from one that a crash left unfinished. Two things can: the index beside the log
(`-shm`) counts the frames of all transactions that reached the disk, as long as the machine did not stop; and a crash
leaves at most one transaction unfinished, so two commits after a damaged frame are no leftovers of a crash.

Invariant: of a log that a crash left behind, `check_write_ahead_log` accepts what SQLite recovers.
Cost: one pass over the log, which has some 4 MB; 5 ms.
Not done: after a power cut, damage in the last transaction; it looks like one that was not finished.
"""

import struct
from functools import cache, partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from ..log_contract import LogError
from .segment_file import PAGE_SIZE

_HEADER: Final = 32
_FRAME: Final = 24
# By the last bit of the magic number: the order of bytes in the words that checksums add up.
_MAGIC: Final = {0x377F0682: "<u4", 0x377F0683: ">u4"}
_INDEX_HEADER: Final = 48
_Matrix = np.ndarray[tuple[int, int], np.dtype[np.uint32]]


class _Log(NamedTuple):
    """What a write-ahead log has: intact frames at its begin, commits after those, its salts."""

    frames: int
    later_commits: int
    salts: bytes


class _Index(NamedTuple):
    """What its index says: frames that are committed, frames that the segment has, salts."""

    committed: int
    moved: int
    salts: bytes


def check_write_ahead_log(segment: Path) -> None:
    """`LogError` if committed transactions are missing in what SQLite would recover; nothing is changed."""
    wal, shm = (segment.with_name(f"{segment.name}-{each}") for each in ("wal", "shm"))
    index = _index_of(shm)
    log = _log_of(wal)
    if log is None:
        is_missing = index is not None and index.moved < index.committed
    elif index is not None and index.salts == log.salts:
        is_missing = log.frames < index.committed
    else:
        is_missing = log.later_commits > 1
    # SQLite ignores the log of an empty file, which has never had one.
    if is_missing or (log is not None and log.frames and not segment.stat().st_size):
        raise LogError(
            f"{wal} is damaged or missing, or {segment.name} is empty: records that were acknowledged cannot be read; "
            f"restore the log from a backup, or, to continue without these records, run: sqlite3 {segment} "
            '"pragma wal_checkpoint(truncate)"'
        )


def _index_of(path: Path) -> _Index | None:
    """The index of a write-ahead log; None if there is none that can be trusted."""
    try:
        with path.open("rb") as file:
            content = file.read(2 * _INDEX_HEADER + 4)
    except FileNotFoundError:
        return None
    header = content[:_INDEX_HEADER]
    if len(content) < 2 * _INDEX_HEADER + 4 or header != content[_INDEX_HEADER : 2 * _INDEX_HEADER]:
        return None
    if _added((0, 0), header[:40], "=u4") != struct.unpack("=II", header[40:]):
        return None
    (committed,) = struct.unpack_from("=I", header, 16)
    (moved,) = struct.unpack_from("=I", content, 2 * _INDEX_HEADER)
    return _Index(committed, moved, header[32:40])


def _log_of(path: Path) -> _Log | None:
    """What a write-ahead log has; None if it is missing or empty."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    with file:
        header = file.read(_HEADER)
        if len(header) < _HEADER:
            return None
        magic, _, page_size = struct.unpack_from(">III", header)
        order = _MAGIC.get(magic, "<u4")
        sums = _added((0, 0), header[:24], order)
        is_intact = magic in _MAGIC and sums == struct.unpack_from(">II", header, 24)
        salts = header[16:24] if is_intact else None
        frames = later_commits = 0
        for frame in iter(partial(file.read, _FRAME + (page_size if is_intact else PAGE_SIZE)), b""):
            salts = frame[8:16] if salts is None else salts
            if is_intact:
                sums = _added(_added(sums, frame[:8], order), frame[_FRAME : _FRAME + page_size], order)
                is_intact = frame[8:24] == salts + struct.pack(">II", *sums)
            if is_intact:
                frames += 1
            elif frame[8:16] == salts and frame[4:8] != bytes(4):
                later_commits += 1
        return _Log(frames, later_commits, salts or b"")


def _added(sums: tuple[int, int], data: bytes, order: str) -> tuple[int, int]:
    """The running checksum of SQLite after more data: for each pair of words, s += x + t and then t += y + s."""
    words = np.frombuffer(data[: len(data) & ~7], order).astype(np.uint32)
    count = len(words) // 2
    of_sums, of_words = _factors(count)
    found = of_sums @ np.array(sums, np.uint32) + of_words @ words
    return int(found[0]), int(found[1])


@cache
def _factors(pairs: int) -> tuple[_Matrix, _Matrix]:
    """What the sums before, and each word, are multiplied with in the sums after; modulo 2**32."""
    power, step = np.eye(2, dtype=np.uint32), np.array([[1, 1], [1, 2]], np.uint32)
    of_words = np.zeros((2, 2 * pairs), np.uint32)
    for pair in reversed(range(pairs)):
        of_words[:, 2 * pair] = power[:, 0] + power[:, 1]
        of_words[:, 2 * pair + 1] = power[:, 1]
        power = step @ power
    return power, of_words
