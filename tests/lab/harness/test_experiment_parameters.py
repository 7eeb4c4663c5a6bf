from dataclasses import dataclass

import pytest

from pathcast_lab.harness.experiment_parameters import ParameterError, as_dict, as_text, changed


@dataclass(frozen=True)
class Sweep:
    documents: int = 500
    skew: float = 0.5
    distinct: bool = True
    schema: str = "news"
    sizes: tuple[int, ...] = (1, 2)
    engines: tuple[str, ...] = ("gpx", "yfilter")
    max_levels: int = 6


def test_each_value_is_read_by_the_type_of_its_field() -> None:
    changes = ["documents=1_000", "skew=1", "distinct=no", "schema=a=b", "sizes=10, 20", "engines=gpx-ap"]
    assert changed(Sweep(), changes) == Sweep(1000, 1.0, False, "a=b", (10, 20), ("gpx-ap",))


def test_a_key_may_be_written_with_hyphens() -> None:
    assert changed(Sweep(), ["max-levels=8"]) == Sweep(max_levels=8)


def test_what_is_not_set_stays() -> None:
    assert changed(Sweep(), ["skew=0"]) == Sweep(skew=0.0)
    assert changed(Sweep(), []) == Sweep()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("documents", "malformed parameter 'documents'; write key=value, such as documents=100"),
        ("document=3", "unknown parameter 'document'; the parameters are documents=500, skew=0.5"),
        ("documents=many", "documents: expected int, got 'many'"),
        ("documents=-3", "documents: must be at least 0, got '-3'"),
        ("skew=nan", "skew: must be at least 0, got 'nan'"),
        ("distinct=maybe", "distinct: expected bool, got 'maybe'"),
        ("sizes=1,x", "sizes: expected comma-separated int values, got '1,x'"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(change: str, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        changed(Sweep(), [change])


def test_text_of_a_value_reads_back_to_it() -> None:
    sweep = Sweep(7, 0.25, False, "x", (3,), ("a", "b"))
    assert changed(Sweep(), [f"{name}={as_text(value)}" for name, value in as_dict(sweep).items()]) == sweep
