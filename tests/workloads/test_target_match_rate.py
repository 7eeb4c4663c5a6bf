"""The match rate: measured correctly, met closely, rejected clearly."""

from typing import Any

import pytest
from lxml import etree

from pathcast.documents.schema.document_schema import Schema
from pathcast.documents.schema.dtd_reader import read_dtd
from pathcast.errors import DocumentError, LimitError
from pathcast.workloads import (
    DocumentOptions,
    SubscriptionOptions,
    Values,
    generate_documents,
    generate_subscriptions,
    news_schema,
)
from pathcast.workloads.path_selectivity import Sample
from pathcast.workloads.schema_walks import Comparison, Path
from pathcast.workloads.value_pools import TextStyle
from tests.workloads.test_subscription_generator import EVEN, walker


def measured(expressions: list[str], documents: list[bytes]) -> float:
    trees = [etree.fromstring(document) for document in documents]
    matched = sum(bool(expression(tree)) for expression in map(etree.XPath, expressions) for tree in trees)
    return matched / len(expressions) / len(documents)


@pytest.mark.slow
@pytest.mark.parametrize("schema", [news_schema(), EVEN], ids=["news", "even"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"wildcard": 0.6, "descendant": 0.6, "max_depth": 9},
        {"predicates": 1},
        {"nested": 2, "descendant": 0.5},
        {"predicates": 2, "nested": 2, "wildcard": 0.5},
    ],
    ids=str,
)
def test_the_share_is_that_of_lxml(schema: Schema, options: dict[str, Any]) -> None:
    documents = list(
        generate_documents(schema, 30, DocumentOptions(max_levels=4 if schema is EVEN else 6, max_repeats=2))
    )
    trees = [etree.fromstring(document) for document in documents]
    sample = Sample(documents)
    drawer = walker(schema, **options)
    positive = 0
    for path in (drawer.path() for _ in range(300)):
        expected = sum(bool(tree.xpath(str(path))) for tree in trees) / 30
        assert sample.share(path) == pytest.approx(expected), str(path)
        positive += expected > 0
    assert positive > 0


def test_the_share_of_word_searches_is_that_of_lxml() -> None:
    schema, style = news_schema(), "words"
    values = Values(schema, text="words")
    documents = list(generate_documents(schema, 30, values=values))
    sample, trees = Sample(documents), [etree.fromstring(document) for document in documents]
    positive = 0
    for element in ("title", "paragraph", "section", "given-name", "news"):
        for word in ("tax", "rail", "Ada", "2031", "nothing of the kind"):
            path = Path([f"//{element}"], {0: [Comparison(".", "contains", word, False)]})
            expected = sum(bool(tree.xpath(str(path))) for tree in trees) / 30
            assert sample.share(path) == pytest.approx(expected), (str(path), style)
            positive += expected > 0
    assert positive > 10


def test_text_nodes_are_compared_one_by_one() -> None:
    sample = Sample([b"<r><a>1<b/>2</a></r>", b"<r><a> 3\n</a></r>", b"<r><a>x</a></r>", b"<r><a/></r>"])

    def share(operator: str, value: str) -> float:
        return sample.share(Path(["/r", "/a"], {1: [Comparison("text()", operator, value, True)]}))

    assert [share("=", "1"), share("=", "2"), share("=", "12"), share("=", "3")] == [0.25, 0.25, 0, 0.25]
    assert [share("<=", "1"), share(">=", "2"), share(">=", "4")] == [0.25, 0.5, 0]


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.0, 0.0006, 0.01, 0.03, 0.3])
@pytest.mark.parametrize("options", [{}, {"distinct": True}, {"predicates": 1}, {"nested": 1}], ids=str)
def test_the_mean_share_meets_the_target(rate: float, options: dict[str, Any]) -> None:
    documents = list(generate_documents(news_schema(), 50, seed=6))
    count = 600
    wanted = SubscriptionOptions(match_rate=rate, **options)
    expressions = generate_subscriptions(news_schema(), count, wanted, seed=6, documents=documents)
    assert len(expressions) == count
    if options.get("distinct"):
        assert len(set(expressions)) == count
    assert measured(expressions, documents) == pytest.approx(rate, abs=max(0.1 * rate, 0.02 / count))


@pytest.mark.slow
def test_matching_and_non_matching_ones_are_mixed_evenly() -> None:
    documents = list(generate_documents(news_schema(), 50, seed=6))
    expressions = generate_subscriptions(
        news_schema(), 900, SubscriptionOptions(match_rate=0.05), seed=6, documents=documents
    )
    for part in range(3):
        assert measured(expressions[part * 300 :][:300], documents) == pytest.approx(0.05, abs=0.005)
    shares = [measured([expression], documents) for expression in expressions[:300]]
    assert any(share == 0 for share in shares)
    assert any(share > 0.3 for share in shares)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["integers", "words"])
def test_without_documents_the_first_two_hundred_of_the_same_seed_serve(text: TextStyle) -> None:
    expressions = generate_subscriptions(
        news_schema(), 100, SubscriptionOptions(match_rate=0.2, predicates=1), seed=8, text=text
    )
    documents = list(generate_documents(news_schema(), 200, seed=8, text=text))
    assert measured(expressions, documents) == pytest.approx(0.2, abs=0.02)


def test_a_few_subscriptions_meet_a_rate_too() -> None:
    documents = list(generate_documents(news_schema(), 50, seed=6))
    for rate in (0.1, 0.5):
        (expression,) = generate_subscriptions(
            news_schema(), 1, SubscriptionOptions(match_rate=rate), documents=documents
        )
        assert measured([expression], documents) == pytest.approx(rate, abs=0.1 * rate + 0.01)


def test_a_rate_that_no_candidate_has_is_refused_with_what_there_is() -> None:
    schema = read_dtd("<!ELEMENT r (a)> <!ELEMENT a EMPTY>")
    with pytest.raises(
        LimitError, match=r"50\.0000% cannot be reached: 0 of 1 subscriptions .* match 100\.00% to 100\.00%"
    ):
        generate_subscriptions(schema, 1, SubscriptionOptions(match_rate=0.5))


@pytest.mark.slow
def test_a_rate_that_distinct_ones_cannot_keep_up_is_refused() -> None:
    with pytest.raises(
        LimitError, match=r"90\.0000% cannot be reached: [\d,]+ of 5,000 distinct subscriptions were found"
    ):
        generate_subscriptions(news_schema(), 5_000, SubscriptionOptions(match_rate=0.9, distinct=True, max_depth=2))


def test_an_unreadable_document_in_the_sample_is_named() -> None:
    with pytest.raises(DocumentError, match=r"document 2 of the sample cannot be read: mismatched tag") as caught:
        generate_subscriptions(EVEN, 1, SubscriptionOptions(match_rate=0.1), documents=[b"<r/>", b"<r>\n<a></r>"])
    assert caught.value.line == 2


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="the sample has no documents; give at least one"):
        generate_subscriptions(EVEN, 1, SubscriptionOptions(match_rate=0.1), documents=[])


def test_progress_reaches_the_end() -> None:
    reports: list[int] = []
    generate_subscriptions(news_schema(), 250, SubscriptionOptions(match_rate=0.1), progress=reports.append)
    assert reports == [100, 200, 250]
