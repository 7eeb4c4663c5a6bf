"""The experiment on changes: plain paths and patterns with predicates, each compared with an index built from
scratch.
"""

from pathcast_lab.engine.subscription_change_experiments import CHANGING, CHANGING_TREES, QUIET, QUIET_TREES
from pathcast_lab.harness import find, number_in, perform


def test_changes_of_paths_and_of_patterns_with_predicates() -> None:
    (experiment,) = find(["engine-changes"])
    few = ["size=300", "changes=60", "documents=5", "seconds=0.2", "trees=200", "tree_rate=500"]
    result = perform(experiment, changes=few)
    assert "after all changes the answers are those of an index built from scratch" in result.checks
    rows = {row["series"]: row for row in result.rows}
    for quiet, changing in ((QUIET, CHANGING), (QUIET_TREES, CHANGING_TREES)):
        assert number_in(rows[quiet], "p50_us") > 0
        assert number_in(rows[changing], "changes_per_second") > 0
        assert number_in(rows[changing], "pause_ms") > 0
    assert {claim.source for claim in result.claims} == {"target"}
