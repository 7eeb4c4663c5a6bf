import pytest

from pathcast_lab.network.traffic_ratio_interval import times_interval


def test_rare_dear_events_widen_the_interval_of_a_ratio_of_means() -> None:
    rare = [10] * 99 + [1_000]
    low, high = times_interval([100] * 100, rare) or (0, 0)
    assert low < 100 / 19.9 < high == pytest.approx(10)
    assert times_interval([3 * size for size in rare], rare) == pytest.approx((3, 3))  # drawn together
    low, high = times_interval([3 * size for size in rare[:99]], rare) or (0, 0)
    assert low < high == pytest.approx(3)
    assert times_interval([1, 2], [0, 0]) is None
