"""The experiment `spark-entries`: its ways in a process give the same, and its judges judge."""

from pathlib import Path

import pytest

from pathcast_lab.harness import Rows, find
from pathcast_lab.spark.entry_experiments import ROW_TAG, SPLIT, WHOLE, _alone


def rows(whole: float, row_tag: float) -> Rows:
    speeds = {"entries_s": 1000.0, "mb_s": 10.0}
    return Rows(
        [
            {"series": WHOLE, "rival": "", **speeds},
            {"series": ROW_TAG, "rival": "", **speeds},
            {"series": SPLIT, "rival": WHOLE, "times": whole, **speeds},
            {"series": SPLIT, "rival": ROW_TAG, "times": row_tag, **speeds},
        ]
    )


@pytest.mark.parametrize(
    ("whole", "row_tag", "verdicts"),
    [(1.0, 1.1, ["held", "held"]), (0.99, 1.1, ["not held", "held"]), (1.0, 1.0, ["held", "not held"])],
)
def test_each_target_is_judged_by_its_own_figure(whole: float, row_tag: float, verdicts: list[str]) -> None:
    (experiment,) = find(["spark-entries"])
    assert [claim.judge_rows(rows(whole, row_tag)).verdict for claim in experiment.claims] == verdicts


def test_the_ways_without_spark_give_the_same(tmp_path: Path) -> None:
    documents = [b"<news serial='%d'/>" % number for number in range(50)]
    (tmp_path / "feed.xml").write_bytes(b"<feed>" + b"\n".join(documents) + b"</feed>")
    assert {way() for way in _alone(tmp_path / "feed.xml", documents).values()} == {50}
