import pytest

from pathcast_lab.harness import Rows
from pathcast_lab.network.traffic_claims import OURS, falls, least, saves


def rows_of(**schemes: list[float]) -> Rows:
    names = {"ours": OURS}
    return Rows(
        {"scheme": names.get(scheme, scheme), "network": "can", "bytes": value}
        for scheme, values in schemes.items()
        for value in values
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
    assert (judged.verdict, judged.measured) == ("not held", "other 2 → 1 → 3")
