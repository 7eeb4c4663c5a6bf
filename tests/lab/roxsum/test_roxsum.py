"""The experiments about RoXSum: profiles do what the paper says of them, and a run checks what it times."""

import pytest

import pathcast
from pathcast.roxsum import RoXSum
from pathcast_lab.harness import find, number_in, perform
from pathcast_lab.roxsum.roxsum_workloads import AUCTION, COLLECTIONS, HUNDRED, MIXED, collection, profiles


@pytest.mark.parametrize("name", COLLECTIONS)
@pytest.mark.parametrize(("targets", "selectivity"), [(1, 1.0), (40, 1.0), (3, 0.5)])
def test_profiles_match_the_wanted_share_and_spread_over_the_targets(
    name: str, targets: int, selectivity: float
) -> None:
    batch = RoXSum.build(collection(name, 300, seed=1))
    drawn = profiles(name, batch, 200, targets, selectivity, seed=1)
    assert drawn.count >= 200 and len(drawn.by_target) == targets
    found = batch.route(drawn.by_target)
    matched = set().union(*found.values())
    assert len(matched) / len(batch) == pytest.approx(drawn.selectivity)
    assert drawn.selectivity == pytest.approx(selectivity, abs=0.06)
    assert all(found.values())


def test_a_document_of_a_hundred_schemas_goes_to_one_of_a_hundred_targets() -> None:
    batch = RoXSum.build(collection(HUNDRED, 600, seed=1))
    found = batch.route(profiles(HUNDRED, batch, 1_000, 100, 1.0, seed=1).by_target)
    assert sum(map(len, found.values())) == len(set().union(*found.values())) == 600


def test_profiles_have_three_to_seven_steps() -> None:
    batch = RoXSum.build(collection(AUCTION, 200, seed=1))
    drawn = profiles(AUCTION, batch, 300, 5, 1.0, seed=1)
    table = pathcast.Subscriptions()
    table.add_many([path for paths in drawn.by_target.values() for path in paths])
    lengths = [len(steps) for entry in range(len(table.table)) if (steps := table.table.steps(entry)) is not None]
    assert 2 <= min(lengths) <= 3 and max(lengths) <= 7


def test_sizes_are_judged_at_every_point() -> None:
    (experiment,) = find(["roxsum-size"])
    result = perform(experiment, changes=["documents=50,200", "levels=3", "collections=auction,many schemas"])
    assert result.checks["every document comes back byte for byte"] == 4
    assert {row["what"] for row in result.rows} == {
        "documents", "RoXSum tree and extents", "RoXSum message",
        "gzip, each document", "gzip, whole batch", "zstd, each document", "zstd, whole batch",
    }  # fmt: skip
    verdicts = [claim.verdict for claim in result.claims]
    assert verdicts[2:] == ["not measurable"] * 3


def test_building_is_checked_and_judged_at_every_point() -> None:
    (experiment,) = find(["roxsum-build"])
    result = perform(
        experiment, changes=["documents=20,60", "alone=10", "rounds=1", "collections=auction,many schemas"]
    )
    assert result.checks["every document comes back byte for byte"] == 4
    assert result.checks["one by one gives the same summary"] == 4
    assert len(result.rows) == 12
    (claim,) = result.claims
    assert claim.measured.count("per second") == 2, "the worst and the best"


@pytest.mark.parametrize("name", ["roxsum-fig4a", "roxsum-fig4b", "roxsum-fig4c"])
def test_a_figure_compares_the_answers_of_all_rivals(name: str) -> None:
    (experiment,) = find([name])
    changes = ["documents=60", "targets=3", "profiles=40", "rounds=1", "rival_documents=30", f"collections={MIXED}"]
    result = perform(experiment, changes=changes)
    assert "all rivals give every target the same documents, byte for byte" in result.checks
    assert {row["rival"] for row in result.rows} == {
        *("RoXSum", "yfilter", "automaton"),
        *("yfilter, in groups", "automaton, in groups", "automaton, in groups, zstd"),
    }
    assert any("extrapolated" in note for note in result.notes)
    for ours in result.rows.where(rival="RoXSum"):
        assert all(number_in(ours, part) > 0 for part in ("read_us", "message_us"))
    for grouped in result.rows.where(rival="yfilter, in groups"):
        parts = ("read_us", "match_us", "message_us")
        assert sum(number_in(grouped, part) for part in parts) == pytest.approx(number_in(grouped, "us"))
