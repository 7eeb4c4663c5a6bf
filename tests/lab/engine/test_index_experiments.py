"""The experiment on indexes: what an opened one finds is compared before anything is timed."""

from subprocess import CalledProcessError

import pytest

from pathcast_lab.engine import index_experiments as engine_index
from pathcast_lab.harness import find, perform


def test_it_builds_saves_opens_and_starts() -> None:
    (experiment,) = find(["engine-index"])
    result = perform(experiment, changes=["plain=50", "trees=30", "opens=1", "first_starts=0", "starts=1"])
    assert "an opened index finds what the one in memory finds" in result.checks
    seen = {(row["kind"], row["what"]) for row in result.rows}
    kinds = {(kind, what) for kind in ("plain paths", "with predicates") for what in ("build", "save", "open")}
    assert kinds | {("", "later starts")} <= seen
    assert [claim.verdict for claim in result.claims[:4]] == ["not measurable"] * 4


def test_a_start_that_gives_another_answer_is_no_figure() -> None:
    with pytest.raises(CalledProcessError):
        engine_index._start("//b")
