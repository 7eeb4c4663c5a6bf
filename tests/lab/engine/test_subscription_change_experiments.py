"""The experiment on changes: plain paths and patterns with predicates, each compared with an index built from
scratch.
"""

from pathcast_lab.engine.parallel_matching import ONE, PROCESSES, TWO
from pathcast_lab.engine.subscription_change_experiments import CHANGING, CHANGING_TREES, QUIET, QUIET_TREES
from pathcast_lab.harness import Rows, find, number_in, perform


def test_changes_of_paths_and_of_patterns_with_predicates() -> None:
    (experiment,) = find(["engine-changes"])
    few = ["size=300", "changes=60", "documents=5", "seconds=0.2", "trees=200", "tree_rate=500"]
    result = perform(experiment, changes=[*few, "batches=2", "rounds=3"])
    assert "after all changes the answers are those of an index built from scratch" in result.checks
    rows = {row["series"]: row for row in result.rows}
    for quiet, changing in ((QUIET, CHANGING), (QUIET_TREES, CHANGING_TREES)):
        assert number_in(rows[quiet], "p50_us") > 0
        assert number_in(rows[changing], "changes_per_second") > 0
        assert number_in(rows[changing], "pause_ms") > 0
        assert number_in(rows[changing], "worst_us") >= number_in(rows[changing], "p99_us")
    assert all(number_in(rows[series], "per_second") > 0 for series in (ONE, TWO, PROCESSES))
    assert number_in(rows[CHANGING_TREES], "tracked") > number_in(rows[CHANGING_TREES], "of_patterns")
    assert {claim.source for claim in result.claims} == {"target"}


def test_reasons_are_what_was_measured() -> None:
    (experiment,) = find(["engine-changes"])
    longest = {"worst_us": 31_000.0, "worst_cpu_us": 2_000.0, "worst_collector_us": 500.0}
    objects = {"tracked": 50_000, "patterns": 20_000, "of_patterns": 800, "pause_ms": 60.0}
    rows = Rows(
        [
            {"series": QUIET_TREES, "worst_us": 7_000.0},
            {"series": CHANGING_TREES, **longest, **objects},
            {"series": ONE, "per_second": 100.0, "cpu_us": 10.0},
            {"series": TWO, "per_second": 140.0, "cpu_us": 12.0},
            {"series": PROCESSES, "per_second": 150.0},
        ]
    )
    reasons = " ".join(claim.reason_on(rows) for claim in experiment.claims)
    for measured in ("31.0 ms", "2.0 ms", "0.5 ms", "7.0 ms", "50,000 objects", "1.50 times", "1.20 times"):
        assert measured in reasons
