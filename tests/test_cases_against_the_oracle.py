"""The corpus itself is right: lxml gives the expected answer for every case."""

from collections import Counter
from operator import attrgetter

import pytest

from tests import oracle
from tests.corpus import Case, Refusal, cases, refusals


@pytest.mark.parametrize("case", cases(), ids=attrgetter("id"))
def test_lxml_gives_the_expected_answer(case: Case) -> None:
    assert oracle.matches(case.pattern, case.document, case.namespaces) is case.expected, case.why


def test_no_two_cases_share_a_name() -> None:
    names = Counter([case.id for case in cases()] + [refusal.id for refusal in refusals()])
    assert [name for name, count in names.items() if count > 1] == []


def test_every_theme_has_matches_and_misses() -> None:
    answers = {(case.theme, case.expected) for case in cases()}
    assert answers == {(case.theme, answer) for case in cases() for answer in (True, False)}


@pytest.mark.parametrize(
    ("pattern", "question"),
    [
        ("/f:a", "/*[local-name() = 'a']"),
        ("//@x", "//@*[local-name() = 'x']"),
        ("/a[and and or]", "/{a}[{and} and {or}]"),
        ("/a[not (b) or text()]", "/{a}[not ({b}) or text()]"),
        ("/a[contains(b, 'and c')]", "/{a}[contains({b}, 'and c')]"),
        ("/*[. and b]", "/*[. and {b}]"),
    ],
)
def test_names_become_tests_of_local_names(pattern: str, question: str) -> None:
    for name in ("a", "b", "and", "or"):
        question = question.replace(f"{{{name}}}", f"*[local-name() = '{name}']")
    assert oracle.by_local_names(pattern) == question


@pytest.mark.parametrize("refusal", refusals(), ids=attrgetter("id"))
def test_a_refusal_points_at_its_own_text(refusal: Refusal) -> None:
    assert refusal.pattern[refusal.column - 1 :].startswith(refusal.offending)
