"""The contract of logs (log_contract.py), for each kind of log."""

import pickle
from contextlib import closing
from itertools import pairwise
from random import Random
from threading import Event, Thread

import pytest

from pathcast.log import Log, LogEntry, LogError, LogFullError, LogRecord, TrimmedError

from .appending_process import AppendingProcess
from .places import TRIMMED_IN_SMALL_UNITS, Place, SettableClock, records


def sequences(log: Log, begin: int = 1, end: int | None = None) -> list[int]:
    return [entry.sequence for entry in log.read(begin, end)]


def test_a_new_log_is_empty(log):
    assert (log.first, log.head) == (1, 0)
    assert list(log.read(1)) == []
    assert log.checkpoint() is None
    assert log.sequence_at(0) == 1


def test_records_are_read_as_they_were_appended(place):
    log = place.open(SettableClock(77))
    given = [
        LogRecord("document", b"{}", b"<a/>"),
        LogRecord("größe", b"", bytes(range(256)) * 300),
        LogRecord("x", b"1"),
    ]
    assert log.append(given) == 1
    assert list(log.read(1)) == [LogEntry(at, 77, *record) for at, record in enumerate(given, 1)]
    log.close()


def test_appending_returns_the_sequence_of_the_first_record(log):
    assert [log.append(records(count)) for count in (1, 3, 1, 70, 1)] == [1, 2, 5, 6, 76]
    assert (log.first, log.head) == (1, 76)
    assert sequences(log) == list(range(1, 77))


def test_appending_nothing_changes_nothing(log):
    log.append(records(2))
    assert log.append([]) == 3
    assert log.head == 2


def test_a_range_is_read_without_its_end(log):
    for begin in range(1, 30):
        log.append(records(1, begin))
    assert sequences(log, 5, 8) == [5, 6, 7]
    assert sequences(log, 5, 5) == sequences(log, 8, 5) == sequences(log, 30) == sequences(log, 1000) == []
    assert sequences(log, 28, 1000) == [28, 29]
    assert sequences(log, 0, 2) == sequences(log, -5, 2) == [1]


def test_a_long_range_is_read_in_order(log):
    for begin in range(1, 3001, 1000):
        log.append(records(1000, begin))
    assert [entry[2:] for entry in log.read(1)] == [tuple(record) for record in records(3000)]


def test_only_the_kinds_that_are_asked_for_are_read(log):
    for begin in range(1, 1001, 10):
        log.append([*records(8, begin), *records(1, begin + 8, "subscription"), *records(1, begin + 9, "limit")])
    assert [entry.sequence for entry in log.read(15, 41, kinds=["limit", "subscription"])] == [19, 20, 29, 30, 39, 40]
    assert len(list(log.read(1, kinds=["document"]))) == 800
    assert list(log.read(1, kinds=["other"])) == list(log.read(1, kinds=[])) == []


def test_bodies_are_left_out_on_request(log):
    log.append(records(5))
    assert [entry[2:] for entry in log.read(1, bodies=False)] == [(r.kind, r.meta, b"") for r in records(5)]


def test_a_read_ends_where_the_log_ended_when_it_began(log):
    log.append(records(3))
    reading = log.read(1)
    assert next(reading).sequence == 1
    log.append(records(3, 4))
    assert [entry.sequence for entry in reading] == [2, 3]


def test_all_records_are_appended_or_none(log):
    log.append(records(2))
    for wrong in (LogRecord("\ud800", b""), LogRecord("a", None), LogRecord(None, b""), LogRecord("a", b"", "text")):  # type: ignore[arg-type]
        with pytest.raises((TypeError, ValueError)):
            log.append([*records(2, 3), wrong])
    assert log.append(records(1, 3)) == 3
    assert [entry[2:] for entry in log.read(1)] == [tuple(record) for record in records(3)]


def test_times_never_run_backwards(place):
    clock = SettableClock(1000)
    log = place.open(clock)
    for clock.now in (1000, 1500, 200, 1400, 1600):
        log.append(records(3))
    log.close()
    clock.now = 3
    log = place.open(clock)
    log.append(records(1))
    times = [entry.time for entry in log.read(1)]
    assert times == [1000] * 3 + [1500] * 9 + [1600] * 4
    log.close()


def test_the_time_of_a_log_is_that_of_its_last_records(place):
    clock = SettableClock(50)
    log = place.open(clock)
    assert log.time == 0
    for now in (60, 40, 90):
        clock.now = now
        log.append(records(3))
        assert {entry.time for entry in log.read(log.head - 2)} == {log.time}
    log.close()
    again = place.open(clock)
    assert again.time == 90
    again.close()


def test_a_time_leads_to_the_first_record_at_or_after_it(place):
    clock = SettableClock()
    log = place.open(clock)
    for clock.now in range(1000, 2000, 10):
        log.append(records(2))
    for time in (0, 999, 1000, 1001, 1010, 1500, 1985, 1990, 1991, 5000):
        expected = next((entry.sequence for entry in log.read(1) if entry.time >= time), 201)
        assert log.sequence_at(time) == expected
    log.write_checkpoint(100, b"")
    first = log.trim(101)
    assert log.sequence_at(0) == first
    log.close()


def test_a_closed_log_is_opened_again_with_all_it_had(place):
    for begin in range(1, 60, 3):
        log = place.open()
        assert log.append(records(3, begin)) == begin
        log.write_checkpoint(begin, b"state %d" % begin)
        log.close()
    log = place.open()
    assert [entry[2:] for entry in log.read(1)] == [tuple(record) for record in records(60)]
    assert log.checkpoint() == (58, b"state 58")
    log.close()


def test_a_closed_log_rejects_every_call(place):
    log = place.open()
    log.append(records(3))
    half_read = log.read(1)
    next(half_read)
    log.close()
    log.close()
    for call in (
        lambda: log.append(records(1)),
        lambda: list(log.read(1)),
        lambda: log.sequence_at(0),
        log.checkpoint,
        lambda: log.write_checkpoint(1, b""),
        lambda: log.trim(1),
        lambda: log.begin_at(4),
        lambda: log.restore([LogEntry(4, 10**16, "a", b"", b"")]),
    ):
        with pytest.raises(LogError, match="closed"):
            call()


def test_only_the_latest_checkpoint_is_kept(log):
    log.append(records(100))
    log.write_checkpoint(0, b"nothing")
    assert log.checkpoint() == (0, b"nothing")
    log.write_checkpoint(9, b"nine")
    log.write_checkpoint(9, b"nine again")
    assert log.checkpoint() == (9, b"nine again")
    large = Random(3).randbytes(3_000_000)
    log.write_checkpoint(100, large)
    assert log.checkpoint() == (100, large)


def test_the_data_of_a_checkpoint_may_come_in_pieces(log):
    log.append(records(9))
    for pieces in (
        [],
        [b""],
        [b"ni", b"", b"ne"],
        [Random(size).randbytes(size) for size in (1, 700_000, 3, 2_000_000)],
    ):
        log.write_checkpoint(9, *pieces)
        assert log.checkpoint() == (9, b"".join(pieces))
    assert log.trim(9) <= 9


def test_one_thread_trims_while_another_appends(log, place, request):
    appending = Thread(target=lambda: [log.append(records(1, number)) for number in range(1, 201)])
    appending.start()
    while appending.is_alive():
        head = log.head
        log.write_checkpoint(head, b"state")
        log.trim(max(1, head - 20))
    appending.join()
    first = log.first
    assert first > 1 or request.node.callspec.params["place"] not in TRIMMED_IN_SMALL_UNITS
    expected = [(number, b"<n>%d</n>" % number) for number in range(first, 201)]
    assert [(entry.sequence, entry.body) for entry in log.read(first)] == expected
    log.close()
    with closing(place.open()) as again:
        assert [(entry.sequence, entry.body) for entry in again.read(first)] == expected


def test_a_checkpoint_is_of_records_in_the_log_and_never_goes_back(log):
    log.append(records(100))
    for wrong in (-1, 101):
        with pytest.raises(ValueError, match=f"sequence must be .*, got {wrong}$"):
            log.write_checkpoint(wrong, b"")
    log.write_checkpoint(50, b"fifty")
    with pytest.raises(ValueError, match="sequence must be .*, got 49$"):
        log.write_checkpoint(49, b"")
    assert log.checkpoint() == (50, b"fifty")


def test_trimming_removes_records_before_a_sequence(log, request):
    for begin in range(1, 101, 5):
        log.append(records(5, begin))
    log.write_checkpoint(60, b"sixty")
    first = log.trim(51)
    assert first == log.first <= 51
    if request.node.callspec.params["place"] in TRIMMED_IN_SMALL_UNITS:
        assert first > 20
    assert sequences(log, first) == list(range(first, 101))
    assert log.append(records(1, 101)) == 101
    assert log.trim(5) == first
    if first > 1:
        with pytest.raises(TrimmedError) as caught:
            sequences(log, 1, 3)
        assert caught.value.first == first
        with pytest.raises(TrimmedError):
            sequences(log, first - 1)


def test_records_that_no_checkpoint_covers_are_not_trimmed(log):
    log.append(records(50))
    with pytest.raises(LogError, match="checkpoint"):
        log.trim(2)
    log.write_checkpoint(30, b"")
    with pytest.raises(LogError, match="checkpoint"):
        log.trim(32)
    assert sequences(log) == list(range(1, 51))
    assert log.trim(1) == 1
    assert log.trim(31) <= 31


def test_errors_survive_a_pickle():
    for error in (TrimmedError.before(3, 9), LogFullError("no space"), LogError("damaged")):
        again = pickle.loads(pickle.dumps(error))
        assert again == error and type(again) is type(error)
    assert TrimmedError.before(3, 9).first == 9


def test_what_was_trimmed_stays_trimmed(place):
    log = place.open()
    for begin in range(1, 101, 5):
        log.append(records(5, begin))
    log.write_checkpoint(100, b"all")
    first = log.trim(101)
    log.close()
    log = place.open()
    assert (log.first, log.head) == (first, 100)
    assert log.checkpoint() == (100, b"all")
    assert log.append(records(1, 101)) == 101
    assert sequences(log, first) == list(range(first, 102))
    log.close()


def test_a_reader_learns_that_the_rest_of_its_range_was_trimmed(log, request):
    for begin in range(1, 2001, 20):
        log.append(records(20, begin))
    reading = log.read(1)
    read = [next(reading).sequence for _ in range(10)]
    log.write_checkpoint(2000, b"")
    first = log.trim(2001)
    with pytest.raises(TrimmedError) if first > 1000 else pytest.raises(StopIteration):
        while True:
            read.append(next(reading).sequence)
    assert read == list(range(1, len(read) + 1))


def test_a_log_begins_at_a_given_sequence(place):
    log = place.open()
    log.begin_at(501)
    assert (log.first, log.head) == (501, 500)
    log.write_checkpoint(500, b"five hundred")
    log.close()
    log = place.open()
    assert (log.first, log.head, log.checkpoint()) == (501, 500, (500, b"five hundred"))
    assert list(log.read(501)) == []
    with pytest.raises(TrimmedError):
        list(log.read(1))
    with pytest.raises(ValueError, match="sequence must be .*, got 499$"):
        log.write_checkpoint(499, b"")
    assert log.append(records(3, 501)) == 501
    assert sequences(log, 501) == [501, 502, 503]
    assert log.sequence_at(0) == 501
    log.close()


def test_only_a_new_log_begins_at_a_given_sequence(log):
    log.begin_at(5)
    log.begin_at(7)
    log.append(records(1, 7))
    with pytest.raises(LogError, match="already has records"):
        log.begin_at(9)
    assert (log.first, log.head) == (7, 7)


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_log_begins_at_one_at_least(log, wrong):
    with pytest.raises(ValueError, match=f"sequence must be .*, got {wrong}$"):
        log.begin_at(wrong)


def test_a_log_with_a_checkpoint_is_not_new(log):
    log.write_checkpoint(0, b"")
    with pytest.raises(LogError, match="already has records"):
        log.begin_at(9)


def test_entries_of_another_log_keep_their_sequences_and_times(place):
    entries = [LogEntry(sequence, sequence // 10 * 100, "a", b"{}", b"x" * sequence) for sequence in range(41, 99)]
    log = place.open(SettableClock(5))
    log.begin_at(41)
    log.restore(entries[:20])
    log.restore(entries[20:])
    log.restore([])
    assert list(log.read(41)) == entries
    assert log.append(records(1)) == 99
    assert [entry.time for entry in log.read(98)] == [900, 900]
    log.close()


def test_entries_that_do_not_continue_a_log_are_rejected(place):
    log = place.open(SettableClock(500))
    log.append(records(2))
    for sequence, time in ((2, 500), (4, 500), (3, 499)):
        with pytest.raises(ValueError):  # noqa: PT011 - about a sequence or about a time
            log.restore([LogEntry(sequence, time, "a", b"", b"")])
    with pytest.raises(ValueError):  # noqa: PT011
        log.restore([LogEntry(3, 600, "a", b"", b""), LogEntry(5, 700, "a", b"", b"")])
    with pytest.raises(ValueError):  # noqa: PT011
        log.restore([LogEntry(3, 600, "a", b"", b""), LogEntry(4, 599, "a", b"", b"")])
    assert log.head == 2
    log.close()


def test_readers_in_threads_see_a_growing_prefix_while_the_log_grows_and_is_trimmed(log):
    """Each read is without gaps, in order, with the right contents, and reaches at least the head at its beginning."""
    ended, problems = Event(), []
    reads = [0] * 3

    def read(thread: int) -> None:
        random = Random(thread)
        try:
            while not ended.is_set():
                head = log.head
                begin = max(log.first, head - random.randrange(300))
                try:
                    found = list(log.read(begin, kinds=["document"] if thread == 0 else None))
                    log.sequence_at(random.randrange(10**17))
                except TrimmedError:
                    assert log.first > begin
                    continue
                assert [entry[2:] for entry in found] == [tuple(r) for r in records(len(found), begin)]
                assert len(found) >= head + 1 - begin
                assert log.checkpoint() is None or log.checkpoint()[0] >= 0
                reads[thread] += 1
        except BaseException as error:  # noqa: BLE001 - for the test
            problems.append(error)

    threads = [Thread(target=read, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    random = Random(9)
    while min(reads) < 5 and not problems:
        log.append(records(random.choice([1, 5, 20]), log.head + 1))
        if random.random() < 0.2:
            log.write_checkpoint(log.head, b"state")
            log.trim(max(1, log.head - 200))
    ended.set()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]


@pytest.mark.slow
def test_what_an_append_returned_survives_a_kill(place: Place, request: pytest.FixtureRequest):
    """Appends, rolls to new segments, checkpoints and trims, cut short at random moments."""
    rounds = 60 if request.config.getoption("--long") else 3
    for seed in range(rounds):
        random = Random(seed)
        calls = AppendingProcess(place, seed).kill_after(random.randrange(1, 60), random.random() * 0.02)
        log = place.open()
        _check_that_nothing_is_lost(log, calls)
        log.append(records(3, log.head + 1))
        log.close()


def _check_that_nothing_is_lost(log: Log, calls: list[list[str]]) -> None:
    appended = max([int(last) for call, *_, last in calls if call == "append"], default=0)
    checkpoints = [int(sequence) for call, sequence in ((c[0], c[-1]) for c in calls) if call == "checkpoint"]
    trims = [int(first) for call, first in ((c[0], c[-1]) for c in calls) if call == "trim"]
    assert log.head >= appended
    entries = list(log.read(log.first))
    assert [entry[2:] for entry in entries] == [tuple(record) for record in records(len(entries), log.first)]
    assert log.head == log.first + len(entries) - 1
    assert all(one.time <= other.time for one, other in pairwise(entries))
    assert log.first >= max(trims, default=1)
    checkpoint = log.checkpoint()
    assert checkpoint is not None or not checkpoints
    if checkpoint is not None:
        assert checkpoint.sequence >= max(checkpoints, default=0)
        assert checkpoint.data == b"%d" % checkpoint.sequence * 1000
    assert log.first - 1 <= (0 if checkpoint is None else checkpoint.sequence)
