"""Closed segments are read without the log's owner, and never the one that is being written."""

import shutil
from pathlib import Path

import pytest

from pathcast.log import ClosedSegments, LogError, LogRecord, SqliteLog, TrimmedError


def filled(folder: Path, count: int = 60) -> SqliteLog:
    log = SqliteLog(folder, segment_bytes=2_000)
    for number in range(count):
        kind = "document" if number % 3 else "cursor"
        log.append([LogRecord(kind, b"{}", f"{number}".encode() + b"x" * 100)])
    return log


def test_they_have_all_records_but_those_of_the_segment_that_is_written(tmp_path: Path) -> None:
    log = filled(tmp_path / "log")
    closed = ClosedSegments(tmp_path / "log")
    assert closed.first == 1
    assert 30 < closed.last < log.head
    assert list(closed.read(1, closed.last + 1)) == list(log.read(1, closed.last + 1))
    assert list(closed.read(7, 29, kinds=["cursor"])) == list(log.read(7, 29, kinds=["cursor"]))
    with pytest.raises(LogError, match=f"no closed segment in .* has record {closed.last + 1}"):
        list(closed.read(closed.last, closed.last + 2))
    log.close()


def test_a_copy_without_the_last_segment_will_do(tmp_path: Path) -> None:
    log = filled(tmp_path / "log")
    last = ClosedSegments(tmp_path / "log").last
    (tmp_path / "copy").mkdir()
    for path in sorted((tmp_path / "log").glob("segment-*.sqlite"))[:-1]:
        shutil.copy(path, tmp_path / "copy")
    copied = ClosedSegments(tmp_path / "copy")
    assert (copied.first, copied.last) == (1, last)
    assert list(copied.read(1, last + 1)) == list(log.read(1, last + 1))
    log.close()


def test_a_log_that_was_closed_is_read_to_its_end_once_all_its_segments_are(tmp_path: Path) -> None:
    filled(tmp_path / "log").close()
    log = SqliteLog(tmp_path / "log", read_only=True)
    assert ClosedSegments(tmp_path / "log").last in range(40, log.head + 1)
    log.close()


def test_trimmed_segments_are_reported(tmp_path: Path) -> None:
    log = filled(tmp_path / "log")
    before = ClosedSegments(tmp_path / "log")
    log.write_checkpoint(log.head, b"state")
    first = log.trim(30)
    assert 1 < first <= 30
    with pytest.raises(TrimmedError) as error:
        list(before.read(1, 40))  # opened before the trim
    assert error.value.first > 1
    after = ClosedSegments(tmp_path / "log")
    assert after.first == first
    with pytest.raises(TrimmedError):
        list(after.read(1, 40))
    log.close()


def test_a_folder_without_segments_has_no_records(tmp_path: Path) -> None:
    closed = ClosedSegments(tmp_path)
    assert closed.last < closed.first
