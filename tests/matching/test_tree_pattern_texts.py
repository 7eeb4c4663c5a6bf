"""Patterns of a snapshot are found by meaning, without parsing them."""

import numpy as np
import pytest

from pathcast.matching.table import tree_pattern_texts as module
from pathcast.matching.table.tree_pattern_texts import Trees
from pathcast.patterns import Pattern, parse

EXPRESSIONS = [
    "/a[b]/c",
    "//a[@b = 'ü']",
    "//a[text() > 5 or not(b)]//c",
    "/a[contains(b, 'x')]",
    "/p:a[@p:b]",
    "/a[b < 0.1234567890123456789012345]",
]
NAMESPACES = {"p": "http://example.org/p"}


def entered(expressions: list[str], trees: Trees, first: int) -> Trees:
    for entry, expression in enumerate(expressions, first):
        trees.add(2 * entry, parse(expression, NAMESPACES))
    return trees


def reopened(trees: Trees) -> Trees:
    return Trees.restore(NAMESPACES, trees.arrays())


@pytest.fixture
def opened() -> Trees:
    return reopened(entered(EXPRESSIONS, Trees(NAMESPACES), 0))


def test_a_pattern_of_a_snapshot_is_found(opened: Trees) -> None:
    for entry, expression in enumerate(EXPRESSIONS):
        assert opened.find(parse(expression, NAMESPACES)) == 2 * entry
        assert opened[2 * entry] == parse(expression, NAMESPACES)
    assert opened.find(parse("/a[c]/b")) == 0
    assert opened.find(parse("/a[c]/d")) is None


def test_a_number_is_found_however_it_was_written(opened: Trees) -> None:
    assert opened.find(parse("/a[b < 0.12345678901234567890123450]")) == 10
    assert opened.find(parse("/a[b < 0.2345678901234567890123450]")) is None


def test_many_are_told_apart_and_found_by_their_texts() -> None:
    expressions = [f"/a[b = {number}]/c{number % 7}" for number in range(3000)]
    opened = reopened(entered(expressions, Trees(NAMESPACES), 0))
    assert [opened.find(parse(expression)) for expression in expressions] == list(range(0, 6000, 2))
    assert opened.find(parse("/a[b = 3000]/c4")) is None


def test_trees_of_another_process_are_taken_over_once() -> None:
    trees = entered(["/x[y]", *EXPRESSIONS[:2]], Trees(NAMESPACES), 0)
    others = entered([*EXPRESSIONS[:5], "/z[y]"], Trees(NAMESPACES), 0)
    assert trees.merge(others.arrays(), 7).tolist() == [2, 4, 7, 8, 9, 10]
    assert list(trees) == [0, 2, 4, 7, 8, 9, 10]
    assert trees[10] == parse("/z[y]") and trees.find(parse(EXPRESSIONS[3])) == 8
    assert trees.merge(others.arrays(), 11).tolist() == [2, 4, 7, 8, 9, 10]


def test_some_are_left_out_without_being_parsed(opened: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = np.array([-1, -1, 0, -1, 1, -1, -1, -1, 2, -1, -1], dtype=np.int32)
    fewer = opened.selected(moved)
    assert list(fewer) == [0, 1, 2]
    assert [fewer.find(parse(EXPRESSIONS[place], NAMESPACES)) for place in (1, 2, 4, 3)] == [0, 1, 2, None]
    assert fewer[2] == parse(EXPRESSIONS[4], NAMESPACES)


def test_what_was_added_to_an_opened_one_is_found_too(opened: Trees) -> None:
    entered(["/x[y]"], opened, 6)
    again = reopened(opened)
    for trees in (opened, again):
        assert list(trees) == [0, 2, 4, 6, 8, 10, 12] and len(trees) == 7
        assert trees.find(parse("/x[y]")) == 12
        assert trees.find(parse("//a[@b = 'ü']")) == 2
        assert trees[12] == parse("/x[y]")


def test_opening_finding_and_saving_parse_nothing(opened: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    def parsed(text: str, namespaces: object) -> Pattern:
        pytest.fail(f"{text} was parsed")

    monkeypatch.setattr(module, "parse_printed", parsed)
    assert opened.find(parse("/a[b]/c")) == 0
    entered(["/x[y]"], opened, 6)
    again = reopened(opened).arrays()
    assert all(np.array_equal(again[name], column) for name, column in opened.arrays().items())


def test_no_trees_are_saved_and_opened_as_well() -> None:
    trees = reopened(Trees(None))
    assert len(trees) == 0 and list(trees) == [] and trees.find(parse("/a[b]")) is None
