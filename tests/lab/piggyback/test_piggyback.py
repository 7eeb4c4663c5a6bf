"""The piggyback paper's evaluation: its workload is what the paper says, and a run compares what it times."""

from itertools import product

import numpy as np
import pytest

import pathcast
from pathcast.documents import read_batch
from pathcast.routing import document_route_report as report
from pathcast_lab.harness import Rows, find, number_in, perform
from pathcast_lab.piggyback import overlay_timing
from pathcast_lab.piggyback import piggyback_claims as claims
from pathcast_lab.piggyback.overlay_timing import Way
from pathcast_lab.piggyback.piggyback_workloads import (
    BIBLIOGRAPHY,
    LARGE_SMALL,
    NEWS_50,
    NEWS_130,
    TREEBANK,
    Workload,
    documents_of,
    overlay_of,
    schema_of,
    subscriptions_of,
    wanting,
)

TINY = ["subscriptions=20", "documents=1", "rounds=1", "repeats=1", "levels=3", "fractions=0.25,1.0"]


@pytest.mark.parametrize(("name", "elements"), [(NEWS_50, 50), (NEWS_130, 130), (TREEBANK, 144), (BIBLIOGRAPHY, 117)])
def test_documents_have_the_papers_sizes(name, elements):
    sizes = np.diff(read_batch(documents_of(name, 5, seed=1)).offsets)
    assert sizes.mean() == pytest.approx(elements, rel=0.1)


def test_a_large_document_is_one_document():
    (document,) = documents_of(LARGE_SMALL, 5, seed=1)
    assert 200_000 <= len(document) < 260_000 and len(read_batch([document]).name) > 2_000


def test_about_a_tenth_of_the_subscriptions_matches_and_only_with_the_test_element():
    workload = Workload(NEWS_130, 200, 3, levels=2)
    documents = documents_of(NEWS_130, 3, seed=2)
    drawn = subscriptions_of(workload, documents, seed=2)
    assert [len(each) for each in drawn] == [200, 200, 200]
    assert all("[.//test]" in xpath for each in drawn for xpath in each)
    overlay = overlay_of(workload, drawn)
    marked = [document.replace(b"</news>", b"<test/></news>") for document in documents]
    expected = wanting(drawn, overlay.routers)
    for document, plain in zip(marked, documents, strict=True):
        who = expected(document)
        assert 0.04 < len(who) / 600 < 0.2
        assert {each.subscriber for each in overlay.publish(document, "L").deliveries} == who
        assert not overlay.publish(plain, "L").deliveries
    aggregates = overlay.router("r1").received["r2"].aggregates
    assert all("//test" in str(aggregate) for aggregate in aggregates)


def test_a_set_that_there_is_not_is_named():
    with pytest.raises(pathcast.PathcastError, match="unknown set of documents 'sonnets'"):
        schema_of("sonnets")


OTHERS = ("piggyback-structure", "piggyback-profile")
FIGURES = [each.name for each in find(["piggyback-*"]) if each.name not in OTHERS]


def test_what_is_decoded_is_compared_with_what_is_read():
    (experiment,) = find(["piggyback-structure"])
    result = perform(experiment, changes=["subscriptions=60", "documents=3", "rounds=1", "engines=automaton,xtrie"])
    assert result.checks == {"what was decoded matches as what was read": 3 * 2 * 3 + 3 * 3}
    quick = [row for row in result.rows if row["series"] == "match from label paths"]
    assert [(row["engine"], row["kind"]) for row in quick] == [
        ("automaton", kind) for kind in ("plain paths", "nested paths", "values")
    ]
    assert all(claim.verdict != "not measurable" for claim in result.claims)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_compares_deliveries_before_it_times(name):
    (experiment,) = find([name])
    small = experiment.parameters["small"]
    changes = [*TINY]
    if len(small.sets) > 1:
        changes.append(f"sets={small.sets[0]},{small.sets[-1]}")
    if len(small.bandwidths) > 2:
        changes.append("bandwidths=1MB/s,10GB/s")
    if len(small.engines) > 1:
        changes.append("engines=xtrie,automaton")
    result = perform(experiment, changes=changes)
    assert all("delivers what one matcher" in check for check in result.checks)
    assert {row["f"] for row in result.rows} == {0.25, 1.0}
    assert all(number_in(row, "ms") > 0 and number_in(row, "deliveries") > 0 for row in result.rows)
    if "L+t" in small.policies:
        structured = [row for row in result.rows if row["policy"] == "L+t"]
        assert structured and all(row["parsed"] == 0 and number_in(row, "bytes+t") > 0 for row in structured)
        assert any("automaton reads a document to its end" in note for note in result.notes)


def test_the_parts_of_a_profile_add_up_to_the_response_time():
    (experiment,) = find(["piggyback-profile"])
    result = perform(experiment, changes=[*TINY[:-1], "policies=ES,L+s-sd", "rounds=2"])
    rows = Rows(result.rows)
    assert overlay_timing.STEPS == report.STEPS
    for policy, f in product(("ES", "L+s-sd"), (0.25, 1.0)):
        parts = rows.where(policy=policy, f=f)
        assert sum(parts.numbers("us")) == pytest.approx(1e3 * number_in(parts[0], "ms"))
        assert sum(parts.numbers("share")) == pytest.approx(1)
    assert rows.number("us", policy="ES", f=1.0, part="below: match") > 0
    assert rows.number("us", policy="L+s-sd", f=1.0, part="root: make") > 0
    assert all(claim.verdict != "not measurable" for claim in result.claims)


def test_of_several_rounds_the_quickest_step_counts():
    workload = Workload(NEWS_50, 30, 1, levels=3)
    (document,) = documents_of(NEWS_50, 1, seed=4)
    overlay = overlay_of(workload, subscriptions_of(workload, [document], seed=4))
    marked = document.replace(b"</news>", b"<test/></news>")
    for policy in ("ES", "L+s-sd"):
        reports = [overlay.publish(marked, policy, "xtrie") for _ in range(3)]
        way = Way(reports, "r1")
        assert way.response(1e9) <= min(Way([each], "r1").response(1e9) for each in reports)
        assert all(
            way.stays[name].spent[step] == min(each.per_router[name].spent[step] for each in reports)
            for name in reports[0].per_router
            for step in reports[0].per_router[name].spent
        )


def test_times_on_other_links_are_those_of_an_overlay_with_such_links():
    workload = Workload(NEWS_50, 30, 1, levels=3)
    (document,) = documents_of(NEWS_50, 1, seed=3)
    marked = document.replace(b"</news>", b"<test/></news>")
    overlay = overlay_of(workload, subscriptions_of(workload, [document], seed=3))
    report = overlay.publish(marked, "L+s-sd")
    way = Way([report], "r1")
    assert way.response(10e6) == pytest.approx(report.response_time)
    hops = {"r1": 0, "r2": 1, "r3": 1}
    far = [hops.get(each.router, 2) for each in report.deliveries]
    slower = way.response(1e3) - way.response(float("inf"))
    assert slower == pytest.approx(np.mean(far) * len(marked) / 1000, rel=0.2)


def rows_of(**times: dict[float, float]) -> Rows:
    common = dict.fromkeys(("set", "subscriptions", "nested", "keep", "skew", "engine"), "x") | {"bandwidth": "10GB/s"}
    return Rows({**common, "policy": policy, "f": f, "ms": ms} for policy, at in times.items() for f, ms in at.items())


def test_claims_are_judged_by_response_times():
    rows = rows_of(ES={0.25: 10.0, 1.0: 20.0}, lazy={0.25: 8.0, 1.0: 10.0})
    assert claims.saves("lazy", "ES", {0.25: 0.19, 1.0: 0.49})(rows).verdict == "held"
    assert claims.saves("lazy", "ES", {1.0: 0.51})(rows).verdict == "not held"
    assert claims.loses("ES", "lazy", 1.0)(rows).verdict == "held"
    assert claims.loses("lazy", "ES", 1.0)(rows).verdict == "not held"
    assert claims.ranked("lazy", "ES")(rows).verdict == "held"
    assert claims.ranked("ES", "lazy")(rows).verdict == "not held"
    assert claims.best_of("lazy", "ES")(rows).verdict == "held"
    assert claims.best_of("ES", "lazy")(rows).verdict == "not held"
    assert claims.alike("lazy", "ES", 0.1)(rows).verdict == "not held"
    assert claims.alike("ES", "ES", 0.1)(rows).verdict == "held"
    assert (
        claims.alike("lazy", "ES", 0.1)(rows).measured
        == "worst lazy saves 50% at f = 1; best lazy saves 20% at f = 0.25"
    )


def test_claims_that_name_no_place_are_judged_wherever_the_first_match_comes():
    rows = rows_of(ES={0.25: 8.0, 1.0: 20.0}, lazy={0.25: 10.0, 1.0: 10.0})
    assert claims.loses("ES", "lazy", 1.0)(rows).verdict == "held"
    assert claims.loses("ES", "lazy")(rows).verdict == "not held"
    assert claims.ranked("lazy", "ES")(rows).verdict == "not held"
    near = rows_of(ES={0.25: 10.0, 1.0: 20.0}, lazy={0.25: 9.9, 1.0: 10.0})
    assert claims.loses("ES", "lazy")(near).verdict == "not measurable", "a per cent is noise"
