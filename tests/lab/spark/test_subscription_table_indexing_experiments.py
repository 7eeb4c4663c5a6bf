"""The experiment `spark-subscriptions`: its judges judge."""

import pytest

from pathcast_lab.harness import Rows, find
from pathcast_lab.spark.subscription_table_indexing_experiments import ALONE, TOGETHER, TREES


def rows(together: float, alone: float, driver: float) -> Rows:
    common = {"kind": TREES, "cores": 2}
    return Rows(
        [
            {**common, "way": TOGETHER, "s": together, "driver_us_each": driver},
            {**common, "way": ALONE, "s": alone, "driver_us_each": 100.0},
        ]
    )


@pytest.mark.parametrize(("changed", "place"), [({"together": 15.1}, 0), ({"driver": 1.1}, 1)])
def test_each_target_is_judged_by_its_own_figure(changed, place):
    (experiment,) = find(["spark-subscriptions"])
    just = {"together": 15.0, "alone": 20.0, "driver": 1.0}
    assert [claim.judge_rows(rows(**just)).verdict for claim in experiment.claims] == ["held"] * 2
    verdicts = [claim.judge_rows(rows(**just | changed)).verdict for claim in experiment.claims]
    assert verdicts == ["not held" if number == place else "held" for number in range(2)]
