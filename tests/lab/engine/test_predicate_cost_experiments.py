"""The experiment on values: answers are compared first, and a part of the kinds can be run alone."""

import pytest

from pathcast_lab.harness import find, perform


def test_some_kinds_alone() -> None:
    (experiment,) = find(["engine-values"])
    result = perform(experiment, changes=["sizes=60", "documents=5", "checked=20", "rounds=1", "kinds=1 equality"])
    assert "the engine finds what the plain one finds" in result.checks
    assert "1 equality" in {row["kind"] for row in result.rows}
    assert "1 nested path" not in {row["kind"] for row in result.rows}
    assert result.claims[0].verdict in ("held", "not held")
    assert result.claims[1].verdict == "not measurable"


def test_an_unknown_kind_is_refused() -> None:
    (experiment,) = find(["engine-values"])
    with pytest.raises(ValueError, match="kinds: unknown kind '6 equalities'; the kinds are 1 equality, "):
        perform(experiment, changes=["kinds=6 equalities"])
