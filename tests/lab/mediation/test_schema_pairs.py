"""Pairs of real document formats: their truth, and what is found of it."""

import pytest

from pathcast.documents import read
from pathcast.mediation import correspond, infer_tree
from pathcast.mediation.schemas import nodes_of
from pathcast_lab.harness import find, number_in, perform
from pathcast_lab.mediation.schema_pair_suite import schema_pairs


def test_the_truth_has_more_than_300_pairs_and_is_one_to_one() -> None:
    pairs = schema_pairs(3)
    assert sum(len(pair.truth) for pair in pairs) > 300
    for pair in pairs:
        assert len(set(pair.truth.values())) == len(pair.truth)
        trees = [infer_tree(samples) for samples in (pair.first_samples, pair.second_samples)]
        places = [set(nodes_of(tree)) for tree in trees]
        assert len(pair.truth.keys() & places[0]) > 0.9 * len(pair.truth)
        assert len(set(pair.truth.values()) & places[1]) > 0.9 * len(pair.truth)


def test_the_same_seed_gives_the_same_documents() -> None:
    assert schema_pairs(2) == schema_pairs(2)
    assert schema_pairs(2, seed=1) != schema_pairs(2)
    assert read(schema_pairs(1)[0].first_samples[0]).name(0) == "bibtex"


@pytest.mark.slow
def test_twins_show_nearly_all_pairs() -> None:
    for pair in schema_pairs(5, items="same"):
        if pair.domain == "product":
            found = correspond(infer_tree(pair.first_samples), infer_tree(pair.second_samples))
            right = sum(pair.truth.get(each.local) == each.glob for each in found)
            assert 2 * right / (len(found) + len(pair.truth)) > 0.85, pair.name


@pytest.mark.slow
def test_an_experiment_reports_what_is_found() -> None:
    (found,) = find(["mediation-correspondence"])
    rows = perform(found, changes=["documents=2", "twins=2", "domains=contact,product"]).rows
    totals = {row["samples"]: number_in(row, "f1") for row in rows.where(domain="all")}
    assert totals["the same items"] > totals["none"]
