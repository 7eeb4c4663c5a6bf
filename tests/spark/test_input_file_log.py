"""The log of a stream over files: each file once, in an order that never changes, whenever the process is killed."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pathcast.errors import PipelineError
from pathcast.spark.files.file_listing import FoundFile
from pathcast.spark.files.input_file_log import FileLog


def files(*names: str) -> list[FoundFile]:
    return [FoundFile(f"/feed/{name}", 3, 1_700_000_000_000_000_000 + number) for number, name in enumerate(names)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "pathcast" / "files.jsonl"


def test_files_keep_their_numbers_and_come_once(place):
    log = FileLog(place)
    log.append(files("a", "b"))
    log.append(files("b", "c", "d"))
    log.append(files("a"))
    for opened in (log, FileLog(place)):
        assert len(opened) == 4
        assert [file.path for file in opened.between(0, 4)] == ["/feed/a", "/feed/b", "/feed/c", "/feed/d"]
        assert opened.between(1, 3) == [files("a", "b")[1], files("b", "c")[1]]
        assert opened.between(2, 2) == []
        assert "/feed/c" in opened and "/feed/e" not in opened
    assert len(place.read_text().splitlines()) == 2


def test_names_of_every_kind_come_back(place):
    odd = files("n\no", "ü [x]", "\udcff", "\u2028", '"', "\\")
    FileLog(place).append(odd)
    assert FileLog(place).between(0, len(odd)) == odd


def test_two_processes_have_one_order(place):
    one, other = FileLog(place), FileLog(place)
    one.append(files("a", "b"))
    other.append(files("b", "c"))
    one.refresh()
    assert one.between(0, 3) == other.between(0, 3)
    assert [file.path for file in one.between(0, 3)] == ["/feed/a", "/feed/b", "/feed/c"]


def test_a_line_that_a_crash_truncated_at_any_byte_does_not_count(place):
    log = FileLog(place)
    log.append(files("a"))
    whole = place.stat().st_size
    log.append(files("b", "c"))
    data = place.read_bytes()
    for end in range(whole, len(data)):
        place.write_bytes(data[:end])
        opened = FileLog(place)
        assert len(opened) == 1
        opened.append(files("d"))
        assert [file.path for file in FileLog(place).between(0, 2)] == ["/feed/a", "/feed/d"]


def test_a_last_line_of_zeros_does_not_count_and_a_damaged_one_before_others_is_an_error(place):
    log = FileLog(place)
    log.append(files("a"))
    good = place.read_bytes()
    place.write_bytes(good + bytes(40) + b"\n")
    assert len(FileLog(place)) == 1
    place.write_bytes(b'{"files": 3}\n' + good)
    with pytest.raises(PipelineError, match="is damaged at byte 0"):
        FileLog(place)


def test_a_log_that_was_removed_is_an_error(place):
    with pytest.raises(PipelineError, match="has 0 files, but the stream's checkpoint is at file 5"):
        FileLog(place).between(0, 5)


def test_a_log_is_begun_at_once_and_only_where_there_is_none(place):
    log = FileLog(place)
    log.begin([files("a", "b"), [], files("c")])
    assert [log.up_to_line(number) for number in range(3)] == [2, 2, 3]
    log.begin([files("z")])
    assert len(FileLog(place)) == 3
    with pytest.raises(PipelineError, match="has 3 lines, but the stream's checkpoint is at line 4"):
        log.up_to_line(3)


def test_an_append_writes_the_new_files_only(place):
    log = FileLog(place)
    log.append(files(*map(str, range(1000))))
    before = place.read_bytes()
    log.append(files("new"))
    assert place.read_bytes().startswith(before)
    assert json.loads(place.read_bytes()[len(before) :])["files"][0][0] == "/feed/new"


def test_files_are_on_disk_before_append_and_begin_return(tmp_path, monkeypatch):
    synced: list[tuple[int, int]] = []

    def fsync(handle: int) -> None:
        facts = os.fstat(handle)
        synced.append((facts.st_ino, facts.st_size))

    def now(place: Path) -> tuple[int, int]:
        facts = place.stat()
        return facts.st_ino, facts.st_size

    monkeypatch.setattr(os, "fsync", fsync)
    one, other = tmp_path / "one" / "files.jsonl", tmp_path / "other" / "files.jsonl"
    log = FileLog(one)
    log.append(files("a"))
    assert synced == [now(one), now(one.parent)]
    log.append(files("b"))
    assert synced[2:] == [now(one)]
    synced.clear()
    FileLog(other).begin([files("a"), files("b")])
    assert [inode for inode, _ in synced] == [now(other)[0], now(other.parent)[0]]
    assert synced[0] == now(other)


def test_files_that_another_process_appends_while_this_one_waits_for_the_lock_come_first(place, monkeypatch):
    one, other = FileLog(place), FileLog(place)
    lock = fcntl.flock

    def wait(file: Any, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        other.append(files("b", "c"))
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", wait)
    one.append(files("a", "b"))
    assert [file.path for file in FileLog(place).between(0, 3)] == ["/feed/b", "/feed/c", "/feed/a"]
