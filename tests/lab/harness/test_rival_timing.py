import gc
import itertools
import weakref

import pytest

from pathcast_lab.harness import Timing, race, ratio
from pathcast_lab.harness import rival_timing as measure


class Clock:
    """A clock that stands still until a rival says how long it took."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(measure, "perf_counter", lambda: self.now)

    def takes(self, *seconds: float) -> "Rival":
        return Rival(self, seconds)


class Rival:
    def __init__(self, clock: Clock, seconds: tuple[float, ...]) -> None:
        self.clock, self.seconds, self.calls = clock, itertools.cycle(seconds), 0

    def __call__(self) -> None:
        self.calls += 1
        self.clock.now += next(self.seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_every_round_calls_each_rival_and_the_order_rotates(clock: Clock) -> None:
    called: list[str] = []

    def rival(name: str) -> measure.Rival:
        def call() -> None:
            called.append(name)
            clock.now += 1

        return call

    race({name: rival(name) for name in "abc"}, rounds=3)
    assert "".join(called[-9:]) == "abc" + "bca" + "cab"


def test_a_timing_is_per_call_however_often_a_short_rival_is_repeated(clock: Clock) -> None:
    short, long = clock.takes(0.001), clock.takes(1.0)
    times = race({"short": short, "long": long}, rounds=2, at_least=0.02)
    assert times["short"].seconds == pytest.approx((0.001, 0.001))
    assert times["long"].seconds == pytest.approx((1.0, 1.0))
    assert short.calls >= 2 * 20
    assert long.calls == 1 + 1 + 2  # warm-up, calibration, two rounds


def test_the_first_call_warms_up_and_does_not_count(clock: Clock) -> None:
    compiling = iter([100.0])
    rival = clock.takes(1.0)

    def first_slow() -> None:
        rival()
        clock.now += next(compiling, 0)

    assert race({"it": first_slow}, rounds=3)["it"].seconds == (1.0, 1.0, 1.0)


def test_a_spent_budget_ends_the_race_for_all_after_three_rounds(clock: Clock) -> None:
    times = race({"slow": clock.takes(50.0), "fast": clock.takes(1.0)}, rounds=20, budget=60)
    assert {name: len(time.seconds) for name, time in times.items()} == {"slow": 3, "fast": 3}


def test_ratios_are_taken_round_by_round_so_that_shared_noise_cancels() -> None:
    noise = [1, 5, 2, 9, 1, 3, 7]
    slow, fast = Timing(tuple(2.0 * n for n in noise)), Timing(tuple(1.0 * n for n in noise))
    assert ratio(slow, fast) == measure.Ratio(2.0, 2.0, 2.0)
    assert ratio(slow, fast).clear
    assert slow.spread > 1


def test_a_difference_within_noise_is_not_clear() -> None:
    one, other = Timing((1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.0)), Timing((1.1, 1.0, 1.0, 0.9, 1.0, 1.0, 1.1))
    assert not ratio(one, other).clear


def test_timings_of_different_races_do_not_compare() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratio(Timing((1.0, 2.0)), Timing((1.0,)))


@pytest.mark.parametrize(("rounds", "dropped"), [(3, 0), (5, 0), (6, 0), (8, 0), (9, 1), (12, 2), (15, 3)])
def test_the_interval_leaves_out_as_many_rounds_as_95_percent_allow(rounds: int, dropped: int) -> None:
    samples = [float(number) for number in range(rounds)]
    assert measure.median_interval(samples) == (dropped, rounds - 1 - dropped)


def test_the_best_round_is_the_floor() -> None:
    timing = Timing((3.0, 1.0, 2.0))
    assert (timing.best, timing.median) == (1.0, 2.0)


def test_no_garbage_is_collected_while_a_rival_is_timed() -> None:
    collecting: list[bool] = []
    race({"it": lambda: collecting.append(gc.isenabled())}, rounds=2, at_least=0)
    assert collecting[-2:] == [False, False]
    assert gc.isenabled()


def test_each_pause_of_the_collector_is_seen_and_the_last_collection_is_full() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.itself = self

    old = weakref.ref(cycle := Cycle())
    gc.collect()
    with measure.collector_watched() as pauses:
        del cycle
        gc.collect(0)
        seen = len(pauses)
        assert seen and min(pauses) > 0
    assert len(pauses) > seen and old() is None
    seen = len(pauses)
    gc.collect()
    assert len(pauses) == seen, "no thread watches"


def test_the_collector_is_back_after_a_rival_fails(clock: Clock) -> None:
    calls = itertools.count()

    def fails_later() -> None:
        clock.now += 1
        if next(calls) > 2:
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        race({"it": fails_later})
    assert gc.isenabled()
