"""The log in SQLite: crashes, full disks, damage, other processes, and segments that never change."""

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from pathcast.log import LogEntry, LogError, LogFullError, LogRecord, SqliteLog, TrimmedError
from pathcast.log.sqlite.segment_file import SegmentWriter, is_closed
from pathcast.log.sqlite.segment_reader import RetiredError

from .places import records

_CHECKOUT = Path(__file__).resolve().parents[2]


def filled(folder: Path, count: int = 60, segment_bytes: int = 1, step: int = 5) -> None:
    with closing(SqliteLog(folder, segment_bytes=segment_bytes)) as log:
        for begin in range(1, count + 1, step):
            log.append(records(step, begin))


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("segment-*.sqlite"))


def hashes(paths: list[Path]) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def contents(log: SqliteLog) -> list[tuple]:
    return [entry[2:] for entry in log.read(log.first)]


def writer_of(log: SqliteLog) -> sqlite3.Connection:
    assert log._writer is not None
    return log._writer._connection


def run(code: str, *arguments: object) -> str:
    """The output of Python code in another process."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=_CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Segments


def test_a_segment_of_the_given_size_is_closed_and_the_next_one_begins(folder):
    with closing(SqliteLog(folder, segment_bytes=100_000)) as log:
        for _ in range(30):
            log.append([LogRecord("document", b"", b"x" * 10_000)])
    assert [path.name for path in segments(folder)] == [f"segment-{begin:020d}.sqlite" for begin in (1, 11, 21)]


def test_the_size_of_a_segment_counts_after_opening_it_again(folder):
    for _ in range(30):
        with closing(SqliteLog(folder, segment_bytes=100_000)) as log:
            log.append([LogRecord("document", b"", b"x" * 10_000)])
    assert 3 <= len(segments(folder)) <= 6


def test_a_closed_segment_never_changes(folder):
    filled(folder, 30)
    before = hashes(segments(folder)[:-1])
    assert len(before) == 5
    with closing(SqliteLog(folder, segment_bytes=1)) as log:
        for begin in range(31, 61, 5):
            log.append(records(5, begin))
        contents(log)
        log.write_checkpoint(60, b"")
        log.sequence_at(0)
        log.trim(11)
    after = hashes(segments(folder))
    assert {name: after[name] for name in before if name in after} == dict(list(before.items())[2:])
    for path in segments(folder)[:-1]:
        assert not list(folder.glob(f"{path.name}?*"))  # nothing beside it


@pytest.mark.slow
def test_closed_segments_are_read_by_other_processes_and_from_copies(folder):
    code = """if True:
        import sys; from pathcast.log import SqliteLog
        log = SqliteLog(sys.argv[1], read_only=True)
        print(log.first, log.head, [entry.sequence for entry in log.read(log.first)], log.checkpoint())
    """
    with closing(SqliteLog(folder / "log", segment_bytes=1)) as log:
        for begin in range(1, 31, 5):
            log.append(records(5, begin))
        log.write_checkpoint(7, b"seven")
        assert run(code, folder / "log") == f"1 30 {list(range(1, 31))} Checkpoint(sequence=7, data=b'seven')\n"
        copy = folder / "copy"
        copy.mkdir()
        for path in segments(folder / "log")[1:4]:
            shutil.copy(path, copy)
        before = hashes(segments(copy))
        copy.chmod(0o555)
        assert run(code, copy) == f"6 20 {list(range(6, 21))} None\n"
        copy.chmod(0o755)
        assert hashes(list(copy.iterdir())) == before
        log.append(records(5, 31))
    # A log that was closed can be copied whole.
    shutil.copytree(folder / "log", folder / "whole")
    (folder / "whole").chmod(0o555)
    assert run(code, folder / "whole") == f"1 35 {list(range(1, 36))} Checkpoint(sequence=7, data=b'seven')\n"
    (folder / "whole").chmod(0o755)


def test_a_segment_that_another_process_reads_is_continued_and_closed_later(folder):
    with closing(SqliteLog(folder, segment_bytes=100_000)) as log:
        log.append(records(5))
        with closing(sqlite3.connect(segments(folder)[0])) as reader:
            assert reader.execute("select count(*) from records").fetchone() == (5,)
            for _ in range(20):
                log.append([LogRecord("document", b"", b"x" * 10_000)])
            assert len(segments(folder)) == 1
        for _ in range(2):
            log.append([LogRecord("document", b"", b"x" * 10_000)])
        assert len(segments(folder)) == 2
        assert [entry.sequence for entry in log.read(1)] == list(range(1, 28))


def test_a_write_ahead_log_beside_a_closed_segment_is_moved_into_it(folder):
    """As after a power cut that undid the removal of the write-ahead log."""
    log = SqliteLog(folder / "log")
    log.append(records(7))
    first, interrupted = segments(folder / "log")[0], folder / "interrupted"
    interrupted.mkdir()
    for path in (first, first.with_name(f"{first.name}-wal")):
        shutil.copy(path, interrupted)
    log.close()
    with closing(SqliteLog(folder / "later")) as later:
        later.begin_at(8)
        later.append(records(3, 8))
    shutil.copy(segments(folder / "later")[0], interrupted)
    with (
        sqlite3.connect(f"file:{interrupted / first.name}?immutable=1", uri=True) as without,
        pytest.raises(sqlite3.Error),
    ):
        without.execute("select * from records").fetchall()
    without.close()
    with closing(SqliteLog(interrupted)) as log:
        assert contents(log) == [tuple(record) for record in records(10)]
        assert sorted(path.name for path in interrupted.glob(f"{first.name}*")) == [first.name]


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_leftover_beside_a_closed_segment_is_removed(folder, suffix):
    """As after a power cut that undid the removal of a file that had been emptied."""
    filled(folder, 10)
    path = segments(folder)[0]
    path.with_name(f"{path.name}{suffix}").touch()
    assert not is_closed(path)
    with closing(SqliteLog(folder)) as log:
        assert contents(log) == [tuple(record) for record in records(10)]
        assert is_closed(path)


def test_every_commit_waits_for_the_disk(folder):
    with closing(SqliteLog(folder)) as log:
        assert writer_of(log).execute("pragma synchronous").fetchone() == (2,)  # FULL
        assert writer_of(log).execute("pragma journal_mode").fetchone() == ("wal",)


def test_a_segment_is_retired_when_its_last_reader_has_finished(folder):
    filled(folder, 10)
    with closing(SqliteLog(folder)) as log:
        segment = log._segments[0]
        retiring = Thread(target=segment.retire)
        with segment._connection() as connection:
            retiring.start()
            retiring.join(0.05)
            assert retiring.is_alive()
            assert connection.execute("select count(*) from records").fetchone() == (5,)
        retiring.join()
        with pytest.raises(sqlite3.ProgrammingError):  # it was closed
            connection.execute("select count(*) from records")
        with pytest.raises(RetiredError):
            segment.chunk(1, 2)


def test_the_write_ahead_log_stays_small(folder):
    with closing(SqliteLog(folder)) as log:
        for _ in range(30):
            log.append([LogRecord("document", b"", b"x" * 1_000_000)])
        assert sum(path.stat().st_size for path in folder.glob("*-wal")) < 8_000_000
        assert segments(folder)[0].stat().st_size > 24_000_000


def test_few_files_stay_open_however_many_segments_are_read(folder):
    filled(folder, 100, step=1)
    with closing(SqliteLog(folder, segment_bytes=1)) as log:
        before = len(list(Path("/proc/self/fd").iterdir()))
        readings = [log.read(begin) for begin in range(1, 101)]
        for reading in readings:
            next(reading)
        assert len(list(Path("/proc/self/fd").iterdir())) < before + 60
        assert [sum(1 for _ in reading) for reading in readings] == list(range(99, -1, -1))


def test_a_read_holds_few_large_records_at_a_time(folder):
    with closing(SqliteLog(folder)) as log:
        log.append([LogRecord("document", b"", bytes([n]) * 3_000_000) for n in range(9)])
        chunk, behind = log._segments[0].chunk(1, 10)
        assert (len(chunk), behind) == (2, 3)
        assert [entry.body[0] for entry in log.read(1)] == list(range(9))


def test_a_sparse_kind_is_searched_in_short_steps(folder):
    """A step keeps others from closing the segment."""
    with closing(SqliteLog(folder)) as log:
        log.append([*records(20_000), *records(1, 1, "limit")])
        assert log._segments[0].chunk(1, 20_002, ["limit"]) == ([], 8193)
        assert [entry.sequence for entry in log.read(1, kinds=["limit"])] == [20_001]


def test_an_empty_last_segment_is_continued(folder):
    """As after a crash between the creation of a segment and its first record."""
    with closing(SqliteLog(folder, clock=lambda: 5000)) as log:
        log.append(records(3))
    SegmentWriter(folder, 4).close()
    with closing(SqliteLog(folder, clock=lambda: 1000)) as log:
        assert (log.first, log.head) == (1, 3)
        assert log.append(records(1, 4)) == 4
        assert [entry.time for entry in log.read(1)] == [5000] * 4
    (folder / f"segment-{5:020d}.sqlite").touch()  # not even a header
    with closing(SqliteLog(folder)) as log:
        assert log.append(records(1, 5)) == 5
        assert contents(log) == [tuple(record) for record in records(5)]


def test_trimming_closes_the_files_that_it_removes(folder):
    filled(folder, 40)
    with closing(SqliteLog(folder, segment_bytes=1)) as log:
        contents(log)
        log.write_checkpoint(40, b"")
        log.trim(36)
        opened = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        assert [path for path in opened if str(folder) in path and "deleted" in path] == []
        assert any(str(folder) in path for path in opened)


# Full disks and failing disks


def test_a_full_disk_rejects_an_append_and_the_log_remains_usable(folder):
    with closing(SqliteLog(folder)) as log:
        log.append(records(5))
        connection = writer_of(log)
        (pages,) = connection.execute("pragma page_count").fetchone()
        connection.execute(f"pragma max_page_count = {pages + 4}")
        with pytest.raises(LogFullError, match="no space left"):
            log.append([LogRecord("document", b"", b"x" * 3000)] * 100)
        assert (log.head, len(contents(log))) == (5, 5)
        assert log.append(records(1, 6)) == 6  # a small one still fits
        connection.execute("pragma max_page_count = 1000000")
        assert log.append(records(20, 7)) == 7
        assert contents(log) == [tuple(record) for record in records(26)]
    with closing(SqliteLog(folder)) as log:
        assert contents(log) == [tuple(record) for record in records(26)]


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "segment_bytes"), [(300_000, 1 << 30), (300_000, 250_000), (60_000, 50_000)])
def test_a_limit_on_the_size_of_files_rejects_an_append_and_loses_nothing(folder, limit, segment_bytes):
    """The write fails in the write-ahead log, when it is moved into the file, or in a checkpoint."""
    code = """if True:
        import resource, sys
        from pathcast.log import LogFullError, LogRecord, SqliteLog
        from tests.log.places import records
        folder, limit, segment_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        log = SqliteLog(folder, segment_bytes=segment_bytes)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        full = 0
        for _ in range(60):
            try:
                log.append([r._replace(body=r.body * 1000) for r in records(2, log.head + 1)])
            except LogFullError:
                full += 1
        try:
            log.write_checkpoint(log.head, bytes(limit))
            raise SystemExit("the checkpoint must not fit")
        except LogFullError:
            full += 1
        assert log.checkpoint() is None
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        log.append([r._replace(body=r.body * 1000) for r in records(2, log.head + 1)])
        log.write_checkpoint(log.head, b"fits")
        print(log.head, full)
    """
    head, full = map(int, run(code, folder, limit, segment_bytes).split())
    assert full > 0
    with closing(SqliteLog(folder)) as log:
        assert log.head == head
        assert contents(log) == [(r.kind, r.meta, r.body * 1000) for r in records(head)]
        assert log.checkpoint() == (head, b"fits")


def test_after_an_error_nobody_appends_until_the_log_is_opened_again(folder):
    log = SqliteLog(folder)
    log.append(records(3))
    writer_of(log).close()  # stands for a disk that fails
    with pytest.raises(LogError, match="cannot write"):
        log.append(records(1, 4))
    with pytest.raises(LogError, match="an earlier write failed"):
        log.append(records(1, 4))
    assert len(contents(log)) == 3
    log.close()
    with closing(SqliteLog(folder)) as log:
        assert log.append(records(1, 4)) == 4


# Damage


def test_no_flipped_byte_goes_unnoticed_or_spoils_other_records(folder, request):
    """Each read returns what was appended, or an error; a record that is returned is right."""
    filled(folder, 40, 500)
    path = segments(folder)[0]
    whole = path.read_bytes()
    used = [place for place, byte in enumerate(whole) if byte]
    with closing(SqliteLog(folder, read_only=True)) as log:
        expected = list(log.read(1))
        end = log._segments[1].begin
    random, noticed = Random(5), 0
    for _ in range(5000 if request.config.getoption("--long") else 300):
        place = random.choice(used)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ random.randrange(1, 256)]) + whole[place + 1 :])
        with closing(SqliteLog(folder, read_only=True)) as log:
            read: list[LogEntry] = []
            begin, errors = 1, 0
            while begin < end:
                try:
                    read += log.read(begin, end)
                    break
                except LogError:
                    errors += 1
                    begin = read[-1].sequence + 2 if read and read[-1].sequence >= begin else begin + 1
            assert len(read) == end - 1 - errors
            assert set(read) <= set(expected)
            assert list(log.read(end)) == expected[end - 1 :]
            noticed += errors > 0
    assert noticed > 100
    path.write_bytes(whole)


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(
    ("text", "bodies"), [(b"<n>4</n>", True), (b'{"n":4}', True), (b'{"n":4}', False), (b"document{", False)]
)
def test_a_damaged_record_is_named_after_the_records_before_it(folder, text, bodies, closed):
    filled(folder, 10, step=1, segment_bytes=1 << 20)
    if closed:
        with closing(SqliteLog(folder, segment_bytes=1)) as log:
            log.append(records(1, 11))
    path = segments(folder)[0]
    content = path.read_bytes()
    # Of records in a page, the last is stored first.
    place = content.index(text) if text != b"document{" else content.index(b'{"n":4}') - 1
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with closing(SqliteLog(folder)) as log:
        reading = log.read(1, bodies=bodies)
        assert [next(reading).sequence for _ in range(3)] == [1, 2, 3]
        with pytest.raises(LogError, match="record 4 in .* has a wrong checksum"):
            next(reading)
        assert next(log.read(5)).sequence == 5


def test_a_truncated_segment_is_reported(folder):
    filled(folder, 40, 500)
    path = segments(folder)[0]
    os.truncate(path, 8192)
    with pytest.raises(LogError, match=path.name):
        SqliteLog(folder)
    with (
        closing(SqliteLog(folder, read_only=True)) as log,
        pytest.raises(LogError, match="cannot read .*malformed"),
    ):
        list(log.read(1))


@pytest.mark.parametrize("missing", [2, 5])
def test_a_missing_segment_is_reported(folder, missing):
    filled(folder, 60)
    segments(folder)[missing].unlink()
    with pytest.raises(LogError, match=f"ends with record {missing * 5}, but the next .* with {missing * 5 + 6};"):
        SqliteLog(folder)
    with closing(SqliteLog(folder, read_only=True)) as log:
        with pytest.raises(LogError, match=f"record {missing * 5 + 1} is missing"):
            list(log.read(1))
        assert len(list(log.read(missing * 5 + 6))) == 60 - missing * 5 - 5


def test_a_missing_last_segment_is_reported_if_a_checkpoint_covers_it(folder):
    filled(folder, 60)
    with closing(SqliteLog(folder)) as log:
        log.write_checkpoint(58, b"")
    segments(folder)[-1].unlink()
    with pytest.raises(LogError, match="ends with record 55, but its checkpoint covers records up to 58"):
        SqliteLog(folder)


def test_a_renamed_segment_is_reported(folder):
    filled(folder, 10, step=10)
    segments(folder)[0].rename(folder / f"segment-{3:020d}.sqlite")
    with pytest.raises(LogError, match="begins with record 1 instead of 3"):
        SqliteLog(folder)


def test_a_damaged_checkpoint_is_reported_and_protects_the_records(folder):
    filled(folder, 60)
    with closing(SqliteLog(folder)) as log:
        log.write_checkpoint(50, b"state")
        path = next(folder.glob("checkpoint-*"))
        content = path.read_bytes()
        assert log.trim(10) > 1  # it was found whole, once
        for damaged in (content[:-1], content + b"x", content[:-1] + b"f", b"", b"X" + content[1:]):
            path.write_bytes(damaged)
            with pytest.raises(LogError, match="is damaged"):
                log.checkpoint()
            with pytest.raises(LogError, match="is damaged"):
                log.trim(40)
        assert len(contents(log)) == 61 - log.first
        assert log.first < 40
        path.write_bytes(content)
        path.rename(folder / f"checkpoint-{51:020d}.bin")
        with pytest.raises(LogError, match="is damaged"):
            log.checkpoint()


def test_an_unfinished_checkpoint_is_ignored_and_removed(folder):
    filled(folder, 10)
    unfinished = folder / f"checkpoint-{7:020d}.new"
    unfinished.write_bytes(b"pathcast")
    with closing(SqliteLog(folder)) as log:
        assert log.checkpoint() is None
        log.write_checkpoint(9, b"")
        assert not unfinished.exists()


# Other files and other processes


def test_other_files_in_the_folder_are_left_alone(folder):
    others = ["README.txt", "segment-1.sqlite", "segment-00000000000000000001.sqlite.bak", "checkpoint-x.txt"]
    for name in others:
        (folder / name).write_text("mine")
    filled(folder, 60)
    with closing(SqliteLog(folder)) as log:
        log.write_checkpoint(60, b"")
        log.trim(61)
        assert log.head == 60
    assert [(folder / name).read_text() for name in others[:3]] == ["mine"] * 3


def test_a_foreign_file_in_the_place_of_a_segment_is_reported(folder):
    path = folder / f"segment-{1:020d}.sqlite"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(LogError, match="not a database"):
        SqliteLog(folder)
    path.unlink()
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute("create table records (sequence)")
    for read_only in (False, True):
        with pytest.raises(LogError, match="was not written by Pathcast"):
            SqliteLog(folder, read_only=read_only)


def test_a_later_format_is_reported(folder):
    filled(folder)
    with closing(sqlite3.connect(segments(folder)[-1])) as later:
        later.execute("pragma user_version = 2")
    with pytest.raises(LogError, match="has format 2, but this version of Pathcast reads format 1"):
        SqliteLog(folder)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_place_where_no_log_can_be_is_reported(folder, read_only):
    (folder / "file").write_text("")
    for place in (folder / "file", folder / "file" / "log"):
        with pytest.raises(LogError, match=str(place)):
            SqliteLog(place, read_only=read_only)


@pytest.mark.slow
def test_a_second_process_cannot_append(folder):
    code = """if True:
        import sys; from pathcast.log import LogError, SqliteLog
        try:
            SqliteLog(sys.argv[1])
        except LogError as error:
            print(error)
    """
    with closing(SqliteLog(folder)) as log:
        assert run(code, folder) == f"the log in {folder} is in use by another process; stop that process first\n"
        with pytest.raises(LogError, match="in use"):
            SqliteLog(folder)
        log.append(records(1))
    assert run(code, folder) == ""


def test_a_log_is_read_while_it_grows_and_is_trimmed(folder):
    with closing(SqliteLog(folder, segment_bytes=1)) as log:
        for begin in range(1, 61, 5):
            log.append(records(5, begin))
        with closing(SqliteLog(folder, read_only=True)) as other:
            reading = other.read(1)
            assert next(reading).sequence == 1
            log.append(records(5, 61))
            assert contents(other) == [tuple(record) for record in records(60)]
            log.append(records(5, 66))
            assert len(segments(folder)) == 14  # the reader does not keep segments from being closed
            log.write_checkpoint(60, b"state")
            assert other.checkpoint() == (60, b"state")
            log.trim(41)
            for write in (
                lambda: other.append(records(1)),
                lambda: other.write_checkpoint(60, b""),
                lambda: other.trim(51),
                lambda: other.begin_at(3),
            ):
                with pytest.raises(LogError, match="open read-only"):
                    write()


def test_a_reader_learns_that_another_process_trimmed_the_log(folder):
    with closing(SqliteLog(folder, segment_bytes=1)) as log:
        for begin in range(1, 61, 5):
            log.append(records(5, begin))
        with closing(SqliteLog(folder, read_only=True)) as other:
            log.write_checkpoint(60, b"state")
            log.trim(41)
            for call in (lambda: list(other.read(3)), lambda: other.sequence_at(0)):
                with pytest.raises(TrimmedError) as caught:
                    call()
                assert caught.value.first == 41
            assert len(list(other.read(41))) == 20


def test_a_closed_log_is_read_without_writing_beside_it(folder):
    """From a read-only disk, that is: SQLite creates files beside one that it takes for written."""
    filled(folder, 10)
    before = sorted(folder.iterdir())
    with closing(SqliteLog(folder, read_only=True)) as log:
        reading = log._segments[-1]
        assert reading.closed
        with reading._connection() as connection:
            connection.execute("select * from records").fetchall()
            assert sorted(folder.iterdir()) == before


def test_a_log_that_is_only_read_is_not_created(folder):
    with pytest.raises(LogError, match="no log in"):
        SqliteLog(folder / "none", read_only=True)
    assert not (folder / "none").exists()


def test_a_log_that_was_killed_is_read_without_opening_it_to_append(folder):
    log = SqliteLog(folder / "log")
    log.append(records(7))
    shutil.copytree(folder / "log", folder / "killed")
    log.close()
    with closing(SqliteLog(folder / "killed", read_only=True)) as log:
        assert contents(log) == [tuple(record) for record in records(7)]
