"""The experiment `spark-documents`: its workloads are what they claim, and its judges judge."""

import pytest

from pathcast_lab.harness import Rows, Run, find
from pathcast_lab.spark.document_matching_experiments import (
    BY_SUBSCRIBER,
    IDENTITY,
    IDENTITY_STREAM,
    INDEX_MEMORY,
    MATCHING_STREAM,
    SparkDocuments,
    Workload,
    _count,
)

SMALL = SparkDocuments(distinct=60, candidates=4_000)


@pytest.fixture(scope="module")
def work() -> Workload:
    return Workload.make(Run(scale="small", seed=0), SMALL)


@pytest.mark.parametrize("wanted", [5, 50, 5_000])
def test_a_document_matches_about_as_many_as_wanted(work, wanted):
    matcher = work.matcher(12_000, wanted)
    found = sum(len(matcher.match(document)) for document in work.documents) / len(work.documents)
    assert len(matcher.subscriptions) == 12_000
    assert 0.95 * wanted <= found <= 1.1 * wanted + 1


def test_many_matches_are_measured_on_fewer_documents():
    assert _count(SMALL, 50) == SMALL.documents
    assert _count(SMALL, 5_000) == 800


def rows(ours: float = 60, identity: float = 100, ms: float = 150, share: float = 10, cores: float = 1.6) -> Rows:
    common = {"subscriptions": 150_000, "wanted": 50}
    return Rows(
        [
            {"series": BY_SUBSCRIBER, **common, "documents_s": ours, "share": ours / identity, "times_one_core": cores},
            {"series": IDENTITY, **common, "documents_s": identity},
            {"series": IDENTITY_STREAM, "ms": 100.0},
            {"series": MATCHING_STREAM, "ms": ms},
            {"series": INDEX_MEMORY, "mapped_mb": 10.0, "share_mb": share, "workers": 2},
        ]
    )


@pytest.mark.parametrize(
    ("changed", "place"), [({"ours": 59}, 0), ({"ms": 151}, 1), ({"share": 20}, 2), ({"cores": 1.5}, 3)]
)
def test_each_target_is_judged_by_its_own_figure(changed, place):
    (experiment,) = find(["spark-documents"])
    assert [claim.judge_rows(rows()).verdict for claim in experiment.claims] == ["held"] * 4
    verdicts = [claim.judge_rows(rows(**changed)).verdict for claim in experiment.claims]
    assert verdicts == ["not held" if number == place else "held" for number in range(4)]
