"""Verification finds every problem of a log, and none in a whole one."""

import sqlite3
from contextlib import closing

from pathcast.log import SqliteLog, verify

from .places import PLACES, Place, records
from .test_sqlite_log import filled, segments


def test_a_whole_log_has_no_problems(place):
    with closing(place.open()) as log:
        report = verify(log)
        assert (report.records, report.bytes, report.checkpoint, report.problems) == (0, 0, None, [])
        for begin in range(1, 3000, 100):
            log.append(records(100, begin))
        log.write_checkpoint(2900, b"state")
        log.trim(2801)
        done: list[int] = []
        report = verify(log, progress=done.append)
        assert (report.first, report.head, report.checkpoint) == (log.first, 3000, 2900)
        assert report.records == 3001 - log.first
        assert report.bytes == sum(len(entry.meta) + len(entry.body) for entry in log.read(log.first))
        assert report.problems == []
        assert done == sorted(done) and done[-1] == report.records


def test_every_problem_is_reported(folder):
    filled(folder, 100)
    with closing(SqliteLog(folder)) as log:
        log.write_checkpoint(50, b"state")
    paths = segments(folder)
    for sql, path in (
        ("update bodies set body = x'00' where sequence = 7", paths[1]),
        ("update records set meta = x'00' where sequence in (13, 14)", paths[2]),
        ("delete from records where sequence in (22, 24)", paths[4]),
        ("delete from bodies where sequence = 35", paths[6]),
    ):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(sql)
    paths[9].unlink()
    next(folder.glob("checkpoint-*")).write_bytes(b"state")
    with closing(SqliteLog(folder, read_only=True)) as log:
        report = verify(log)
    assert report.records == 100 - 1 - 2 - 2 - 1 - 5
    *of_records, last = map(str, report.problems)
    assert [line.partition(":")[0] for line in of_records] == [
        "record 7", "records 13 to 14", "record 22", "record 24", "record 35", "records 46 to 50",
    ]  # fmt: skip
    assert "record 7 in" in of_records[0] and "wrong checksum" in of_records[0]
    assert "record 22 is missing in" in of_records[2]
    assert "checkpoint" in last and "is damaged" in last
    assert report.checkpoint is None


def test_times_that_run_backwards_are_reported():
    class Wrong:
        first, head = 5, 7

        def read(self, begin, end):
            times = {5: 10, 6: 9, 7: 10}
            return (_entry(sequence, times[sequence]) for sequence in range(begin, end))

        def checkpoint(self):
            return None

    report = verify(Wrong())  # type: ignore[arg-type]
    assert [str(problem) for problem in report.problems] == [
        "record 6: time 9 is earlier than 10, the time of the previous record",
        "records 1 to 4 are neither in the log nor covered by a checkpoint",
    ]


def test_records_that_a_log_leaves_out_are_reported():
    class Wrong:
        first, head = 1, 9

        def read(self, begin, end):
            return (_entry(sequence, 0) for sequence in (1, 2, 5, 6) if begin <= sequence < end)

        def checkpoint(self):
            return (11, b"")

    class Checkpointed(Wrong):
        def checkpoint(self):
            from pathcast.log import Checkpoint

            return Checkpoint(11, b"")

    report = verify(Checkpointed())  # type: ignore[arg-type]
    assert [str(problem) for problem in report.problems] == [
        "records 3 to 4: missing",
        "records 7 to 9: missing",
        "the checkpoint covers records up to 11, but the log ends with record 9",
    ]
    assert report.records == 4


def test_records_trimmed_in_the_meantime_are_no_problem(folder, request):
    place: Place = PLACES["sqlite"](folder / "log", request)
    with closing(place.open()) as log:
        for begin in range(1, 2001, 20):
            log.append(records(20, begin))
        log.write_checkpoint(2000, b"")

        class Trimmed:
            """A log that is trimmed while it is verified."""

            def __getattr__(self, name):
                return getattr(log, name)

            def read(self, begin, end):
                for entry in log.read(begin, end):
                    yield entry
                    if entry.sequence == 100:
                        log.trim(1000)

        report = verify(Trimmed())  # type: ignore[arg-type]
        assert report.problems == []
        assert 100 < report.records < 1500


def _entry(sequence, time):
    from pathcast.log import LogEntry

    return LogEntry(sequence, time, "a", b"", b"")
