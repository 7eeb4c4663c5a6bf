"""A stream over files, planned as Spark plans it: each file in one micro-batch, once it is complete.

Readers are driven here without Spark; a new reader over the same checkpoint stands for a restarted process.
"""

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles

from pathcast.errors import PipelineError
from pathcast.spark.files.complete_file_detection import Clock, deferred_in
from pathcast.spark.files.file_options import read_options
from pathcast.spark.files.file_source import FileStreamReader

SECOND = 10**9
NOW = 1_800_000_000 * SECOND
ALL = ReadAllAvailable()


class Time:
    """A clock that tests set; `asleep` is called on every sleep."""

    def __init__(self) -> None:
        self.passed = 0
        self.slept: list[float] = []
        self.asleep: Callable[[], object] = lambda: None

    def clock(self) -> Clock:
        return Clock(lambda: NOW + self.passed, lambda: self.passed, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.asleep()
        self.passed += round(seconds * SECOND)


class Feed:
    """A folder of files and a stream over it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.checkpoint = folder / "feed", folder / "checkpoint"
        self.folder.mkdir()
        self.time = Time()

    def write(self, name: str, text: str = "<a/>", age: float = 10) -> None:
        """Write a file that was modified `age` seconds ago."""
        (self.folder / name).write_text(text)
        self.touch(name, age)

    def touch(self, name: str, age: float = 10) -> None:
        moment = NOW + self.time.passed - round(age * SECOND)
        os.utime(self.folder / name, ns=(moment, moment))

    def reader(self, **options: str) -> FileStreamReader:
        given = {"path": str(self.folder), "checkpoint": str(self.checkpoint), **options}
        return FileStreamReader(read_options(given), self.time.clock())

    @property
    def deferred(self) -> tuple[int, list[str]] | None:
        return deferred_in(self.checkpoint)


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path)


def read(reader: FileStreamReader, start: dict, end: dict) -> list[tuple[str, bytes | None]]:
    """Names and contents of a micro-batch."""
    rows = [
        row
        for partition in reader.partitions(start, end)
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]
    return [(row["path"].rpartition("/")[2], row.get("content")) for row in rows]


def take(reader: FileStreamReader, start: dict, limit=ALL) -> tuple[list[str], dict]:
    """The names of the next micro-batch, and its end."""
    end = reader.latestOffset(start, limit)
    return [name for name, _ in read(reader, start, end)], end


def test_each_file_comes_once_in_the_order_of_time_whatever_its_name(feed):
    names = ["a.xml", "b.xml", "c [x].xml", "d{a,b}.xml", "e*.xml", "f?.xml", "[ab].xml", "n\no.xml", "l\\m.xml"]
    for age, name in enumerate(names):
        feed.write(name, age=100 - age)
    reader = feed.reader()
    taken, end = take(reader, reader.initialOffset())
    assert taken == names
    assert end == {"files": len(names)}
    assert reader.latestOffset(end, ALL) == end
    feed.write("late.xml")
    feed.write("a.xml", "<changed/>")  # a path is read once
    assert take(reader, end)[0] == ["late.xml"]


def test_a_file_that_grows_is_deferred_and_comes_once_when_it_is_complete(feed):
    feed.write("whole.xml")
    feed.write("slow.xml", "<a>", age=0.2)
    reader = feed.reader(settle="1 second")
    taken, end = take(reader, reader.initialOffset())
    assert taken == ["whole.xml"]
    assert feed.deferred == (1, [str(feed.folder / "slow.xml")])
    assert reader.reportLatestOffset() == {"files": 1, "deferred": 1}
    for _ in range(5):  # it grows all the time
        feed.time.passed += SECOND * 3 // 4
        with (feed.folder / "slow.xml").open("a") as file:
            file.write("<b/>")
        feed.touch("slow.xml", age=0)
        assert reader.latestOffset(end, ALL) == end
    (feed.folder / "slow.xml").write_text("<a></a>")
    feed.touch("slow.xml", age=0)
    feed.time.passed += 2 * SECOND
    last = reader.latestOffset(end, ALL)
    assert read(reader, end, last) == [("slow.xml", b"<a></a>")]
    assert feed.deferred == (0, [])
    assert reader.latestOffset(last, ALL) == last


def test_a_file_that_is_empty_at_first_comes_when_it_is_filled(feed):
    feed.write("later.xml", "", age=0)
    reader = feed.reader()
    start = reader.initialOffset()
    assert reader.latestOffset(start, ALL) == start
    feed.write("later.xml", "<a/>")
    assert read(reader, start, reader.latestOffset(start, ALL)) == [("later.xml", b"<a/>")]


def test_a_file_that_stays_empty_is_read(feed):
    feed.write("empty.xml", "")
    reader = feed.reader()
    start = reader.initialOffset()
    assert read(reader, start, reader.latestOffset(start, ALL)) == [("empty.xml", b"")]


def test_a_file_from_the_future_comes_when_it_has_been_watched_for_long_enough(feed):
    feed.write("ahead.xml", age=-3600)  # the file server's clock
    reader = feed.reader(settle="2 seconds")
    start = reader.initialOffset()
    assert reader.latestOffset(start, ALL) == start
    feed.time.passed += SECOND
    (feed.folder / "ahead.xml").write_text("<grown/>")
    feed.touch("ahead.xml", age=-3600)
    assert reader.latestOffset(start, ALL) == start
    feed.time.passed += SECOND
    assert reader.latestOffset(start, ALL) == start
    feed.time.passed += SECOND
    assert take(reader, start)[0] == ["ahead.xml"]


def test_a_file_that_grows_while_its_time_stays_the_same_is_deferred(feed):
    feed.write("ahead.xml", "<a>", age=-3600)
    reader = feed.reader(settle="2 seconds")
    start = reader.initialOffset()
    assert reader.latestOffset(start, ALL) == start
    feed.time.passed += SECOND
    feed.write("ahead.xml", "<a></a>", age=-3599)
    assert reader.latestOffset(start, ALL) == start
    feed.time.passed += SECOND * 3 // 2
    assert reader.latestOffset(start, ALL) == start
    feed.time.passed += SECOND
    assert read(reader, start, reader.latestOffset(start, ALL)) == [("ahead.xml", b"<a></a>")]


def test_without_settling_a_file_comes_at_once(feed):
    feed.write("now.xml", age=0)
    reader = feed.reader(settle="0 seconds")
    assert take(reader, reader.initialOffset())[0] == ["now.xml"]


@pytest.mark.parametrize("how", ["available-now", "once"])
def test_a_stream_that_ends_waits_once_for_files_to_settle_and_counts_what_still_changes(feed, how):
    feed.write("old.xml")
    feed.write("done.xml", age=0.25)
    feed.write("slow.xml", "<a>", age=0.5)

    def grow() -> None:
        feed.write("slow.xml", "<a><b/>", age=-0.75)  # at the end of the wait
        feed.write("new.xml", age=0)

    feed.time.asleep = grow
    reader = feed.reader(waitForDeferred="true" if how == "once" else "false")
    if how == "available-now":
        reader.prepareForTriggerAvailableNow()
    taken, end = take(reader, reader.initialOffset())
    assert sorted(taken) == ["done.xml", "old.xml"]
    assert feed.time.slept == [0.75]
    assert feed.deferred == (2, [str(feed.folder / "new.xml"), str(feed.folder / "slow.xml")])
    assert reader.latestOffset(end, ALL) == end
    assert feed.time.slept == [0.75]
    feed.time.passed += 60 * SECOND
    if how == "available-now":
        assert reader.latestOffset(end, ALL) == end  # what has come since is for the next run
    again = feed.reader()
    again.prepareForTriggerAvailableNow()
    assert sorted(take(again, end)[0]) == ["new.xml", "slow.xml"]
    assert feed.deferred == (0, [])


def test_a_file_that_changes_while_it_waits_for_its_micro_batch_is_deferred(feed):
    feed.write("a.xml", age=30)
    feed.write("b.xml", age=20)
    feed.write("gone.xml", age=10)
    reader = feed.reader(maxFilesPerTrigger="1")
    taken, end = take(reader, reader.initialOffset(), ReadMaxFiles(1))
    assert taken == ["a.xml"]
    feed.write("b.xml", "<half", age=0)
    (feed.folder / "gone.xml").unlink()
    assert reader.latestOffset(end, ReadMaxFiles(1)) == end
    assert feed.deferred == (1, [str(feed.folder / "b.xml")])


def test_limits_bound_a_micro_batch(feed):
    for number in range(5):
        feed.write(f"{number}.xml", "x" * 10, age=100 - number)
    reader = feed.reader(maxFilesPerTrigger="2")
    assert reader.getDefaultReadLimit() == ReadMaxFiles(2)
    sizes, offset = [], reader.initialOffset()
    while (end := reader.latestOffset(offset, ReadMaxFiles(2))) != offset:
        sizes.append(end["files"] - offset["files"])
        offset = end
    assert sizes == [2, 2, 1]
    assert feed.reader(maxBytesPerTrigger="25").getDefaultReadLimit() == ReadMaxBytes(25)


def test_bytes_bound_a_micro_batch_that_has_at_least_one_file(feed):
    for number, size in enumerate((10, 10, 10, 50, 1)):
        feed.write(f"{number}.xml", "x" * size, age=100 - number)
    reader = feed.reader()
    sizes, offset = [], reader.initialOffset()
    while (end := reader.latestOffset(offset, ReadMaxBytes(25))) != offset:
        sizes.append(end["files"] - offset["files"])
        offset = end
    assert sizes == [2, 1, 1, 1]


def test_the_latest_come_first_where_that_is_asked_for(feed):
    feed.write("old.xml", age=30)
    feed.write("middle.xml", age=20)
    reader = feed.reader(latestFirst="true")
    taken, end = take(reader, reader.initialOffset(), ReadMaxFiles(1))
    assert taken == ["middle.xml"]
    feed.write("new.xml", age=10)
    assert take(reader, end, ReadMaxFiles(1))[0] == ["new.xml"]


def test_a_filter_and_subfolders(feed):
    (feed.folder / "sub").mkdir()
    for name in ("a.xml", "a.txt", "sub/b.xml"):
        feed.write(name)
    reader = feed.reader(pathGlobFilter="*.xml", recursiveFileLookup="true")
    assert sorted(take(reader, reader.initialOffset())[0]) == ["a.xml", "b.xml"]


def test_a_process_that_is_killed_between_any_two_steps_delivers_each_file_once(feed):
    """The steps: list and log, record the offset, read, commit; `dies` of them happen before the kill."""
    for dies in range(1, 12):
        checkpoint = feed.checkpoint
        feed.checkpoint = checkpoint.with_name(f"checkpoint-{dies}")
        for number in range(4):
            feed.write(f"{dies}-{number}.xml", age=100 - number)
        done, noted, seen = {"files": 0}, None, []
        for steps in (dies, 1000):
            left = iter(range(steps))
            reader = feed.reader()
            try:
                for _ in itertools.count():
                    next(left)
                    start = done
                    end = noted if noted is not None and noted != done else reader.latestOffset(start, ReadMaxFiles(1))
                    next(left)
                    noted = end
                    if end == start:
                        break
                    next(left)
                    rows = [name for name, _ in read(reader, start, end)]
                    next(left)
                    seen += rows  # what a sink that replaces repetitions has
                    done = end
            except StopIteration:
                continue
        mine = [name for name in seen if name.startswith(f"{dies}-")]
        assert mine == [f"{dies}-{number}.xml" for number in range(4)]
        assert len(seen) == len(set(seen)) == 4 * dies
        feed.checkpoint = checkpoint


def test_a_replay_has_the_same_files_though_others_have_come_and_one_has_vanished(feed):
    feed.write("a.xml", age=30)
    feed.write("b.xml", age=20)
    reader = feed.reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    feed.write("before-all.xml", age=1000)
    (feed.folder / "b.xml").unlink()
    assert read(feed.reader(), start, end) == [("a.xml", b"<a/>"), ("b.xml", None)]


def test_files_that_were_logged_before_a_crash_are_the_next_micro_batch(feed):
    for number in range(3):
        feed.write(f"{number}.xml", age=100 - number)
    reader = feed.reader()
    start = reader.initialOffset()
    reader.latestOffset(start, ALL)  # logged, and the process dies before Spark has recorded the offset
    feed.write("earlier.xml", age=1000)
    again = feed.reader()
    taken, end = take(again, start, ReadMaxFiles(2))
    assert taken == ["0.xml", "1.xml"]
    taken, end = take(again, end, ReadMaxFiles(2))
    assert taken == ["2.xml"]
    assert take(again, end, ReadMaxFiles(2))[0] == ["earlier.xml"]


def test_a_checkpoint_without_its_log_is_an_error(feed):
    feed.write("a.xml")
    with pytest.raises(PipelineError, match="the log was removed or truncated"):
        feed.reader().latestOffset({"files": 7}, ALL)


def test_a_checkpoint_of_sparks_own_source_goes_on_with_the_files_that_it_has_not_read(feed):
    log = feed.checkpoint / "sources" / "0"
    log.mkdir(parents=True)
    entries = [["a.xml", "c%20%5Bx%5D.xml"], ["b%2520.xml"], ["d.xml"], ["logged.xml"]]

    def lines(numbers: range) -> str:
        facts = [
            {"path": f"file://{feed.folder}/{name}", "timestamp": 5, "batchId": number}
            for number in numbers
            for name in entries[number]
        ]
        return "\n".join(["v1", *map(json.dumps, facts)])

    (log / "0").write_text(lines(range(1)))
    (log / "1.compact").write_text(lines(range(2)))
    (log / "2").write_text(lines(range(2, 3)))
    (log / "3").write_text(lines(range(3, 4)))
    (log / ".3.crc").write_bytes(b"x")
    for name in ("a.xml", "c [x].xml", "b%20.xml", "d.xml", "logged.xml", "new.xml"):
        feed.write(name)
    reader = feed.reader()
    reader.partitions({"logOffset": 1}, {"logOffset": 1})  # Spark asks for this first
    assert read(reader, {"logOffset": 1}, {"logOffset": 2}) == [("d.xml", b"<a/>")]  # begun, and not done
    taken, end = take(reader, {"logOffset": 2})
    assert (taken, end) == (["logged.xml"], {"files": 5})
    assert take(feed.reader(), end)[0] == ["new.xml"]
    for name in entries[0]:
        assert name not in taken


def test_files_are_spread_over_tasks_by_their_cost(feed):
    for number in range(40):
        feed.write(f"{number:02}.xml", age=100 - number)
    reader = feed.reader(minPartitions="4")
    end = reader.latestOffset({"files": 0}, ALL)
    sizes = [len(partition.files) for partition in reader.partitions({"files": 0}, end)]
    assert sizes == [10, 10, 10, 10]
    assert reader.partitions(end, end) == []


def test_rows_are_those_of_binary_files_and_contents_can_be_left_out(feed):
    feed.write("a b.xml", age=0.5)
    reader = feed.reader(settle="0 seconds", content="false")
    (partition,) = reader.partitions({"files": 0}, reader.latestOffset({"files": 0}, ALL))
    (batch,) = reader.read(partition)
    (row,) = batch.to_pylist()
    assert set(row) == {"path", "modificationTime", "length"}
    assert row["path"] == f"file:{feed.folder}/a b.xml"
    assert row["length"] == 4
    assert row["modificationTime"].timestamp() == NOW / SECOND - 0.5


def test_a_name_that_is_not_utf_8_is_shown_with_escapes(feed):
    (feed.folder / os.fsdecode(b"\xff.xml")).write_text("<a/>")
    reader = feed.reader(settle="0 seconds")
    start = reader.initialOffset()
    assert read(reader, start, reader.latestOffset(start, ALL)) == [("\\xff.xml", b"<a/>")]


def test_large_files_come_in_several_arrow_batches(feed):
    for number in range(3):
        feed.write(f"{number}.xml", "x" * 3_000_000, age=100 - number)
    reader = feed.reader(minPartitions="1")
    (partition,) = reader.partitions({"files": 0}, reader.latestOffset({"files": 0}, ALL))
    assert [batch.num_rows for batch in reader.read(partition)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"cleanSource": "delete"},
            "option 'cleanSource' is not supported for a stream over files; omit it: remove or move",
        ),
        ({"maxFileAge": "1d"}, "whatever their age"),
        ({"maxFilePerTrigger": "1"}, "did you mean 'maxFilesPerTrigger'?"),
        ({"wholetext": "true"}, "supported: maxFilesPerTrigger, maxBytesPerTrigger, latestFirst"),
        ({"maxFilesPerTrigger": "0"}, "option 'maxFilesPerTrigger' must be a whole number of at least 1, got '0'"),
        (
            {"maxFilesPerTrigger": "1", "maxBytesPerTrigger": "1"},
            "options 'maxFilesPerTrigger' and 'maxBytesPerTrigger' cannot be combined; omit one",
        ),
        ({"latestFirst": "yes"}, "option 'latestFirst' must be true or false, got 'yes'"),
        ({"settle": "2s"}, "malformed interval '2s'; write for example \"2 seconds\""),
        ({"checkpoint": ""}, "option 'checkpoint' is missing"),
    ],
)
def test_an_option_that_does_not_hold_is_an_error(feed, options, reason):
    with pytest.raises(PipelineError) as error:
        feed.reader(**options)
    assert reason in str(error.value)
