"""Leases hold back trimming, for a bounded time."""

from contextlib import closing
from random import Random
from threading import Event, Thread

import pytest

from pathcast.errors import LimitError
from pathcast.log import ReadLease, ReadLeases, SqliteLog, TrimmedError

from .places import records


class Seconds:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def small_log(folder):
    with closing(SqliteLog(folder, segment_bytes=1)) as log:
        for begin in range(1, 101):
            log.append(records(1, begin))
        log.write_checkpoint(100, b"")
        yield log


def extended(leases: ReadLeases, lease: ReadLease, begin: int) -> ReadLease:
    result = leases.extend(lease.id, begin)
    assert result is not None
    return result


def test_trimming_stops_at_the_first_record_that_a_lease_holds(small_log):
    leases = ReadLeases(small_log)
    later, earlier = leases.take(50), leases.take(30)
    assert leases.trim(80) == 30
    leases.release(earlier.id)
    leases.release(earlier.id)
    assert leases.trim(40) == 40
    assert leases.trim(80) == 50
    leases.release(later.id)
    assert leases.trim(80) == 80


def test_a_lease_moves_forward_with_its_reader_and_never_back(small_log):
    leases = ReadLeases(small_log)
    lease = leases.take(10)
    assert leases.trim(80) == 10
    assert extended(leases, lease, 25).begin == 25
    assert extended(leases, lease, 5).begin == 25
    assert leases.trim(80) == 25


def test_a_lease_ends_unless_it_is_extended(small_log):
    clock = Seconds()
    leases = ReadLeases(small_log, seconds=60, longest=150, clock=clock)
    lease = leases.take(10)
    assert (lease.expires, lease.until) == (160, 250)
    clock.now = 159
    assert leases.trim(80) == 10
    assert extended(leases, lease, 10).expires == 219
    clock.now = 218
    assert extended(leases, lease, 10).expires == 250  # never longer than allowed
    clock.now = 249
    assert [held.id for held in leases.held()] == [lease.id]
    clock.now = 250
    assert leases.held() == []
    assert leases.extend(lease.id, 10) is None
    assert leases.trim(80) == 80


def test_the_longest_time_bounds_the_first_term(small_log):
    clock = Seconds()
    assert ReadLeases(small_log, seconds=60, longest=5, clock=clock).take(1).expires == 105


def test_records_that_were_trimmed_cannot_be_held(small_log):
    leases = ReadLeases(small_log)
    leases.trim(21)
    with pytest.raises(TrimmedError) as caught:
        leases.take(20)
    assert caught.value.first == 21
    assert leases.take(21).begin == 21


def test_there_is_a_limit_on_leases(small_log):
    clock = Seconds()
    leases = ReadLeases(small_log, most=2, seconds=10, clock=clock)
    first, _ = leases.take(1), leases.take(1)
    with pytest.raises(LimitError, match="all 2 read leases"):
        leases.take(1)
    leases.release(first.id)
    leases.take(1)
    clock.now += 10
    assert leases.take(1).id != leases.take(1).id


def test_a_lease_for_a_longer_time_is_not_shortened_by_extending_it(small_log):
    clock = Seconds()
    leases = ReadLeases(small_log, seconds=60, longest=150, clock=clock)
    lease = leases.take(10, 1000)
    assert lease.expires == 250
    assert extended(leases, lease, 20).expires == 250
    assert leases.seconds_left(lease) == (150, 150)


def test_without_a_place_a_lease_holds_all_that_is_left(small_log):
    leases = ReadLeases(small_log)
    leases.trim(21)
    assert leases.take().begin == 21


def test_nothing_is_trimmed_until_readers_from_before_a_restart_had_time_to_come_back(small_log):
    clock = Seconds()
    leases = ReadLeases(small_log, grace=60, clock=clock)
    clock.now += 59
    assert leases.trim(80) == 1
    clock.now += 1
    assert leases.trim(80) == 80


def test_a_record_under_a_lease_is_never_trimmed_while_threads_take_and_trim(folder):
    with closing(SqliteLog(folder, segment_bytes=1)) as log:
        leases, ended, problems, taken = ReadLeases(log), Event(), [], [0] * 3

        def read(thread: int) -> None:
            random = Random(thread)
            try:
                while not ended.is_set():
                    begin = max(log.first, log.head - random.randrange(20))
                    try:
                        lease = leases.take(begin)
                    except TrimmedError:
                        continue
                    found = [entry.sequence for entry in log.read(begin)]
                    assert found == list(range(begin, begin + len(found)))
                    if found:
                        leases.extend(lease.id, found[-1])
                        assert next(log.read(found[-1])).sequence == found[-1]
                    leases.release(lease.id)
                    taken[thread] += 1
            except BaseException as error:  # noqa: BLE001 - for the test
                problems.append(error)

        threads = [Thread(target=read, args=(thread,)) for thread in range(3)]
        for thread in threads:
            thread.start()
        while (min(taken) < 20 or log.first < 50) and not problems:
            log.append(records(1, log.head + 1))
            log.write_checkpoint(log.head, b"")
            leases.trim(log.head + 1)
        ended.set()
        for thread in threads:
            thread.join()
        assert not problems, problems[0]
