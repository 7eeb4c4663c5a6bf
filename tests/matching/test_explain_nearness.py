"""A miss shows the nearest text, wherever it is, with the difference."""

import pytest

import pathcast
from pathcast.matching.explain import Explanation

LONG = "Genome editing with engineered nucleases has become a routine tool in many laboratories. "


def explained(xpath: str, document: str) -> Explanation:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add(xpath)
    return subscriptions.compile(engine="reference").explain(document, 1)


@pytest.mark.parametrize(
    ("value", "miss"),
    [
        (
            f"{LONG}The CRISPR screen found it.",
            "`p` is '…y laboratories. The CRISPR screen found it.', does not contain 'crispr' (only the case differs)",
        ),
        ("A CRISPR screen.", "`p` is 'A CRISPR screen.', does not contain 'crispr' (only the case differs)"),
        (
            f"{LONG}A crisp result. {LONG}",
            "`p` is '…any laboratories. A crisp result. Genome editing with engin…', does not contain 'crispr'",
        ),
        (LONG, "`p` is 'Genome editing with engineered nucleases has become a routin…', does not contain 'crispr'"),
        ("", "`p` is '', does not contain 'crispr'"),
    ],
)
def test_contains_shows_the_nearest_text_wherever_it_stands(value: str, miss: str) -> None:
    assert explained("//p[contains(., 'crispr')]", f"<a><p>{value}</p></a>").nearest == f"{miss}, line 1"


def test_the_node_that_has_the_nearest_text_is_shown() -> None:
    document = f"<a>\n<p>{LONG}</p>\n<p>{LONG}</p>\n<p>{LONG}Crispr</p></a>"
    assert explained("//p[contains(., 'crispr')]", document).nearest == (
        "`p` is '… many laboratories. Crispr', does not contain 'crispr' (only the case differs), line 4"
    )


@pytest.mark.parametrize(
    ("value", "wanted", "differs"),
    [
        ("gene\n   editing", "gene editing", "only spaces differ"),
        ("GENE   editing", "gene editing", "only case and spaces differ"),
        ("GENE EDITING", "gene editing", "only the case differs"),
        ("İstanbul ÉTÉ", "été", "only the case differs"),
        ("genediting", "gene editing", None),
    ],
)
def test_contains_says_what_differs(value: str, wanted: str, differs: str | None) -> None:
    miss = explained(f"//p[contains(., '{wanted}')]", f"<p>{LONG}{value}</p>").nearest
    assert miss.endswith(f"does not contain '{wanted}'" + (f" ({differs})" if differs else "") + ", line 1")


@pytest.mark.parametrize(
    ("test", "value", "differs"),
    [
        ("@k = 'true'", "True", "only the case differs"),
        ("@k = 'true'", " true ", "only spaces differ"),
        ("@k = 'true'", "false", None),
        ("starts-with(@k, 'On the')", "on the road", "only the case differs"),
        ("starts-with(@k, 'On the')", "On   the road", "only spaces differ"),
        ("starts-with(@k, 'On the')", "on   the road", "only case and spaces differ"),
        ("starts-with(@k, 'On the')", "off the road", None),
        ("@k > 5", "5", None),
    ],
)
def test_other_tests_say_what_differs_too(test: str, value: str, differs: str | None) -> None:
    miss = explained(f"//p[{test}]", f"<p k='{value}'/>").nearest
    assert miss.endswith(f" ({differs}), line 1" if differs else ", line 1")
    assert miss.count("differ") == (differs is not None)


def test_a_match_shows_the_text_wherever_it_stands() -> None:
    explanation = explained("//p[contains(., 'crispr')]", f"<p>{LONG}The crispr screen. {LONG}{LONG}{LONG}</p>")
    (condition,) = explanation.steps[0].parts
    assert "'…y laboratories. The crispr screen. Genome editing with engi" in str(explanation)
    assert condition.places[0].value is not None
    assert condition.places[0].value.startswith("…y laboratories. The crispr")
    assert len(condition.places[0].value) == 202
