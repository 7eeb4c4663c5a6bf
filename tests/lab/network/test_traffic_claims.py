import pytest

from pathcast_lab.harness import Rows
from pathcast_lab.network.traffic_claims import OURS, at_most, below, falls, least, lowest, saves, selections, usually


def rows_of(**schemes: list[float]) -> Rows:
    names = {"ours": OURS}
    return Rows(
        {"scheme": names.get(scheme, scheme), "network": "can", "payload": 10**power, "bytes": value}
        for scheme, values in schemes.items()
        for power, value in enumerate(values)
    )


@pytest.mark.parametrize(
    ("values", "verdict"), [([9, 5, 2], "held"), ([9, 10, 2], "not held"), ([9, 2, 3], "not held"), ([9], "one point")]
)
def test_a_figure_falls_only_if_it_falls_at_every_step(values: list[float], verdict: str) -> None:
    if verdict == "one point":
        with pytest.raises(LookupError, match="only one point was measured"):
            falls(OURS, "bytes")(rows_of(ours=values))
        return
    assert falls(OURS, "bytes")(rows_of(ours=values)).verdict == verdict
    assert falls(OURS, "bytes", rising=True)(rows_of(ours=values[::-1])).verdict == verdict


def test_ours_has_the_least_only_if_it_has_at_every_point() -> None:
    assert least("bytes")(rows_of(ours=[1, 2], other=[2, 3])).verdict == "held"
    assert least("bytes")(rows_of(ours=[1, 4], other=[9, 3])).verdict == "not held", "although its mean is the least"


def test_savings_grow_only_if_they_grow_at_every_step() -> None:
    assert saves("bytes", ("other",))(rows_of(ours=[1, 1, 1], other=[2, 3, 4])).verdict == "held"
    judged = saves("bytes", ("other",))(rows_of(ours=[1, 1, 1], other=[3, 2, 4]))
    assert judged.verdict == "not held"
    assert judged.measured == (
        "worst -1 bytes per insertion of other, from 1 bytes of payload to 10 bytes of payload; "
        "best +2 bytes per insertion of other, from 10 bytes of payload to 100 bytes of payload"
    )


def test_a_rival_far_above_at_most_points_and_near_at_one_is_not_ten_times_above() -> None:
    rows = rows_of(ours=[1, 1, 1], other=[90, 9, 80])
    assert below(10, "bytes", ("other",))(rows).verdict == "not held"
    assert usually(10, "bytes", ("other",))(rows).verdict == "held"
    assert usually(10, "bytes", ("other",))(rows).measured == (
        "2 of 3 cases; worst 9.0 times for other at 10 bytes of payload; "
        "best 90.0 times for other at 1 bytes of payload"
    )
    assert below(10, "bytes", ("other",))(rows_of(ours=[1, 0], other=[90, 9])).verdict == "held", "ours sends nothing"


def test_selections_fall_behind_only_if_they_do_at_every_step() -> None:
    rows = rows_of(ours=[1, 1, 1], **{"rel-sel": [9.0, 3.0, 2.0]})
    assert selections(rows, "can").verdict == "held"
    assert selections(rows_of(ours=[1, 1, 1], **{"rel-sel": [9.0, 2.0, 3.0]}), "can").verdict == "not held"


def test_a_scheme_is_lowest_and_ours_slightly_above_it_only_if_so_at_every_point() -> None:
    rows = rows_of(ours=[1, 1], other=[3, 0.9], **{"enum-sj": [0.9, 0.8]})
    assert lowest("enum-sj", "bytes")(rows).verdict == "held"
    assert lowest("other", "bytes")(rows).verdict == "not held"
    assert at_most(1.25, "bytes", "enum-sj")(rows).verdict == "held"
    assert at_most(1.2, "bytes", "enum-sj")(rows).verdict == "not held"
    assert at_most(1.25, "bytes", "enum-sj")(rows).measured == (
        "worst 1.25 times enum-sj's at 10 bytes of payload; best 1.11 times enum-sj's at 1 bytes of payload"
    )
