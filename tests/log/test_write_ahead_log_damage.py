"""The write-ahead log after a crash: SQLite recovers all that was committed, or the log is not opened."""

import os
import shutil
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random

import pytest

from pathcast.log import LogError, LogRecord, SqliteLog, verify

from .places import records

_APPENDS, _STEP = 12, 5
_ALL = _APPENDS * _STEP
_FRAME = 24 + 16_384


def killed(folder: Path, log: SqliteLog) -> Path:
    """What a process that is killed now leaves."""
    target = folder.with_name(f"killed-{len(list(folder.parent.iterdir()))}")
    shutil.copytree(log.folder, target)
    return target


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """A log whose process was killed after its last append."""
    with closing(SqliteLog(tmp_path / "log")) as log:
        for begin in range(1, _ALL, _STEP):
            log.append(records(_STEP, begin))
        return killed(tmp_path / "log", log)


def wal(folder: Path) -> Path:
    (found,) = folder.glob("*-wal")
    return found


def shm(folder: Path) -> Path:
    (found,) = folder.glob("*-shm")
    return found


def head(folder: Path) -> int:
    with closing(SqliteLog(folder)) as log:
        assert [entry.sequence for entry in log.read(1)] == list(range(1, log.head + 1))
        return log.head


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)


def flip_log(folder: Path, place: int) -> None:
    flip(wal(folder), place)


def cut_log(folder: Path, length: int) -> None:
    os.truncate(wal(folder), length)


def changed(crashed: Path, change: Callable[[Path], object], *, power_cut: bool = False) -> Path:
    """A copy with a change; after a power cut, nothing is left of the index beside the log."""
    folder = crashed.with_name(f"{crashed.name}-{len(list(crashed.parent.iterdir()))}")
    shutil.copytree(crashed, folder)
    if power_cut:
        shm(folder).unlink()
    change(folder)
    return folder


def frames(folder: Path) -> int:
    return (wal(folder).stat().st_size - 32) // _FRAME


@pytest.mark.parametrize("power_cut", [False, True])
def test_what_a_crash_left_is_recovered(crashed: Path, power_cut: bool) -> None:
    assert head(changed(crashed, lambda folder: None, power_cut=power_cut)) == _ALL


def test_a_flipped_byte_in_any_frame_is_reported_and_nothing_is_changed(crashed: Path) -> None:
    draw = Random(1)
    places = [draw.randrange(32)] + [
        32 + number * _FRAME + draw.randrange(24 if number % 2 else _FRAME) for number in range(frames(crashed))
    ]
    assert len(places) > _APPENDS
    for place in places:
        folder = changed(crashed, partial(flip_log, place=place))
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        for read_only in (True, False):
            with pytest.raises(LogError, match="damaged or missing"):
                SqliteLog(folder, read_only=read_only)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_log_that_was_cut_anywhere_is_reported(crashed: Path) -> None:
    draw = Random(2)
    size = wal(crashed).stat().st_size
    for length in (0, 31, 32, size - 1, *(draw.randrange(size) for _ in range(20))):
        folder = changed(crashed, partial(cut_log, length=length))
        with pytest.raises(LogError, match="damaged or missing"):
            SqliteLog(folder)


def test_a_missing_log_is_reported_unless_the_segment_has_all_of_it(crashed: Path) -> None:
    with pytest.raises(LogError, match="damaged or missing"):
        SqliteLog(changed(crashed, lambda folder: wal(folder).unlink()))
    with closing(sqlite3.connect(next(crashed.glob("*.sqlite")), isolation_level=None)) as connection:
        connection.execute("pragma wal_checkpoint(passive)").fetchall()
        moved = changed(crashed, lambda folder: wal(folder).unlink())
    assert head(moved) == _ALL


def test_an_empty_segment_beside_its_write_ahead_log_is_reported(crashed: Path) -> None:
    with pytest.raises(LogError, match="is empty"):
        SqliteLog(changed(crashed, lambda folder: next(folder.glob("*.sqlite")).write_bytes(b"")))


def test_after_a_power_cut_an_unfinished_transaction_is_dropped_and_lost_ones_are_reported(crashed: Path) -> None:
    last = 32 + (frames(crashed) - 1) * _FRAME
    assert head(changed(crashed, lambda folder: flip(wal(folder), last + 100), power_cut=True)) == _ALL - _STEP
    for number in range(frames(crashed) - 4):
        for place in (12, 100):  # in the salts, in the page
            at = 32 + number * _FRAME + place
            with pytest.raises(LogError, match="damaged or missing"):
                SqliteLog(changed(crashed, partial(flip_log, place=at), power_cut=True))


def test_what_follows_the_last_commit_is_no_damage(crashed: Path) -> None:
    """An append that was under way, and what is left of the log's earlier use, which has other salts."""

    def add(folder: Path) -> None:
        content = wal(folder).read_bytes()
        header = struct.pack(">II", 1, 0)
        with wal(folder).open("ab") as file:
            file.write(header + content[16:24] + bytes(8) + b"x" * 16_384)
            file.write(struct.pack(">II", 1, 9) + bytes(16) + b"y" * 16_384)
            file.write(content[32 : 32 + 5_000])

    for power_cut in (False, True):
        assert head(changed(crashed, add, power_cut=power_cut)) == _ALL


def test_a_log_that_began_again_at_its_begin_is_recovered(tmp_path: Path) -> None:
    with closing(SqliteLog(tmp_path / "log")) as log:
        for number in range(12):
            log.append([LogRecord("document", b"", b"x" * 700_000)])
            folder = killed(tmp_path / "log", log)
            assert head(folder) == number + 1
            assert verify(log).problems == []


def test_the_advice_drops_what_cannot_be_read_and_keeps_what_is_before(crashed: Path) -> None:
    folder = changed(crashed, lambda folder: flip(wal(folder), 32 + (frames(crashed) - 1) * _FRAME))
    with pytest.raises(LogError, match=r'"pragma wal_checkpoint\(truncate\)"'):
        SqliteLog(folder)
    with closing(sqlite3.connect(next(folder.glob("*.sqlite")))) as connection:
        connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    assert head(folder) == _ALL - _STEP
