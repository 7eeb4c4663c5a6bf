"""The experiment on single documents: shortened documents are well-formed, and both ways find the same."""

from xml.etree import ElementTree

import pytest

from pathcast.workloads import generate_documents, news_schema
from pathcast_lab.engine.single_document_experiments import shortened
from pathcast_lab.harness import find, perform


@pytest.mark.parametrize("size", [1, 80, 400, 100_000])
def test_a_shortened_document_is_the_beginning_of_it(size: int) -> None:
    for document in generate_documents(news_schema(), 20, seed=1):
        short = shortened(document, size)
        few, many = (list(ElementTree.fromstring(each).iter()) for each in (short, document))
        assert [element.tag for element in few] == [element.tag for element in many][: len(few)]
        assert len(short) <= size or len(few) == 1, "the root is always there"
        assert len(few) == len(many) or len(short) > size // 2 or size < 200


def test_both_ways_are_compared_and_timed() -> None:
    (experiment,) = find(["engine-single"])
    changes = ["sizes=80,300", "subscriptions=40", "documents=5", "rounds=1"]
    result = perform(experiment, changes=changes)
    assert "both ways find the same matches" in result.checks
    assert {row["size"] for row in result.rows} == {80, 300}
    assert result.claims[0].verdict in ("held", "not held")
