"""`and`, `or` and `not` of tests of one value: they agree with lxml, and cost hardly more than one test."""

from itertools import combinations
from pathlib import Path
from time import process_time

import pytest

import pathcast
from pathcast import Subscriptions
from pathcast.documents import Names
from pathcast.matching.automaton.verify.boolean_test_kernels import LOOK
from pathcast.matching.automaton.verify.shared_pattern_conditions import Conditions
from pathcast.matching.engine_contract import Costed
from pathcast.patterns import parse
from tests import oracle

# Three tests that hold in all combinations, and conditions on the document, which hold or not.
CHOICES = [
    "contains(., 'p') or contains(., 'q')",
    "contains(., 'p') and contains(., 'q') or contains(., 'r')",
    "contains(., 'p') and (contains(., 'q') or contains(., 'r'))",
    "not(contains(., 'p'))",
    "not(contains(., 'p') and contains(., 'q') and contains(., 'r'))",
    "not(contains(., 'p') or not(contains(., 'q') and not(contains(., 'r'))))",
    "not(. = 'p') and not(. = 'q')",
    ". = '' or . = 'pq' or . > 5",
    "not(. < 5) or . = 'q'",
    "contains(., 'p') or /d/e",
    "not(//e or contains(., 'q'))",
    "//e = 'x' and (contains(., 'p') or not(//e/@x) and contains(., 'r'))",
    "contains(//e, 'x') or . = 'q'",
    "/d",
]
PLACES = ["//i/@x[{}]", "//i/text()[{}]", "/d[i[not(@x[{}])]]", "/d[.//@x[{}] and i]", "/d[contains(i/@x[{}], 'q')]",
          "//i[starts-with(text()[{}], 'p')]", "//*[@x[{}][. != 'r']]", "//text()[contains(., 'q')][{}]",
          "//i[{}]", "/d[i[{}]/b]", "//*[not({})]", "/d[contains(i[{}], 'q')]", "/d[i[{}] and not(e)]"]  # fmt: skip
XPATHS = [place.format(choice) for place in PLACES for choice in CHOICES]
VALUES = ["".join(some) for count in range(4) for some in combinations("pqr", count)] + ["4", "6", " 7 "]
DOCUMENTS = [
    f"<d>{more}<i x='{value}'>{value}<b/>{other}</i></d>"
    for more in ("", "<e/>", "<e x='q'>x</e>")
    for value, other in zip(VALUES, [*VALUES[3:], *VALUES[:3]], strict=True)
]


def test_they_hold_where_lxml_says_and_in_an_opened_index_too(tmp_path: Path) -> None:
    questions = [oracle.ask(xpath) for xpath in XPATHS]
    trees = [oracle.read(document.encode()) for document in DOCUMENTS]
    wanted = [[i + 1 for i, ask in enumerate(questions) if oracle.answer(ask, tree)] for tree in trees]
    subscriptions = Subscriptions()
    subscriptions.add_many(XPATHS[::2], ids=range(1, len(XPATHS) + 1, 2))
    subscriptions.compile().save(tmp_path / "index")
    opened = pathcast.open_index(tmp_path / "index")
    opened.subscriptions.add_many(XPATHS[1::2], ids=range(2, len(XPATHS) + 1, 2))
    assert [matches.ids.tolist() for matches in opened.match_many(DOCUMENTS)] == wanted


@pytest.mark.parametrize("choice", ["//i[. = 'p' or contains(., 'q')]", "//i[not(contains(., 'v'))]", "//i[. != 'v']"])
def test_a_choice_reads_the_elements_of_its_step_alone(choice: str) -> None:
    subscriptions = Subscriptions()
    subscriptions.add(choice)
    matcher = subscriptions.compile()
    assert not matcher.match("<r>" + 10 * "<i>v</i>" + 5_000 * "<o>pq</o>" + "</r>")
    assert isinstance(matcher.engine, Costed)
    (read,) = matcher.engine.costs().bytes.tolist()
    assert read < 10 * 2 * 2 * LOOK, "ten elements, two tests, and not five thousand others"


def test_elements_inside_each_other_are_searched_once() -> None:
    depth = 900
    document = depth * "<i>" + 20_000 * "v" + depth * "</i>"
    subscriptions = Subscriptions()
    subscriptions.add_many(["//i[contains(., 'p') or contains(., 'q')]", "//i[not(contains(., 'v'))]"])
    matcher = subscriptions.compile()
    assert not matcher.match(document)
    assert isinstance(matcher.engine, Costed)
    read = matcher.engine.costs().bytes.tolist()
    assert all(20_000 <= each <= 2 * (20_000 + depth * LOOK) for each in read), "at most once for each of two tests"


def test_a_choice_has_as_many_rows_as_tests() -> None:
    table = Conditions(Names())
    table.add(parse("/a/@x"))
    before = len(table)
    tests = " or ".join(f". = '{number}' and not(. = 'w{number}')" for number in range(50))
    table.add(parse(f"/a/@x[not({tests})]"))
    assert len(table) <= before + 100 + 4, "besides, the step, the attribute, yes and no"


@pytest.mark.parametrize(
    "choice", ["{}[. = 'p' or contains(., 'q')]", "{}[not(contains(., 'v'))]", "{}[//q or . = 'p']"]
)
@pytest.mark.parametrize("value", ["@x", "text()"])
def test_a_choice_costs_hardly_more_than_a_test(value: str, choice: str) -> None:
    """Otherwise it would cost a hundred times as much."""
    times = []
    for xpath in (choice, "{}[contains(., 'q')]"):
        subscriptions = Subscriptions()
        subscriptions.add("//i/" + xpath.format(value))
        matcher = subscriptions.compile()
        for document in ("<i x='q'>q</i>", "<r>" + 5_000 * "<i x='v'>v</i>" + "</r>"):
            began = process_time()
            matches = bool(matcher.match(document))
        times.append(process_time() - began)
        assert not matches
    assert times[0] < 20 * times[1]
