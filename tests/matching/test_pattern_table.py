"""The table of patterns: entering one expression at a time gives the same result as many at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast import LimitError, PatternError
from pathcast.matching import Tuning
from pathcast.matching.table.pattern_table import PatternTable

EXPRESSIONS = ["/", "/a", "a", "//a", "//*", "//*/a", "/a/b//c", "f:a", " /a ", "./a", "//a[b]", "a[b]", "/a[@k = 1]"]
NAMESPACES = {"f": "http://example.org/f"}


@pytest.mark.slow
@given(st.lists(st.sampled_from(EXPRESSIONS), max_size=30))
def test_one_by_one_is_all_at_once(expressions: list[str]) -> None:
    together, alone = PatternTable(NAMESPACES, 50), PatternTable(NAMESPACES, 50)
    entered = together.enter(expressions)
    pairs = [alone.enter_one(expression) for expression in expressions]
    # The numbers may differ: plain paths of a list come before its trees.
    assert [alone.text(entry) for entry, _ in pairs] == [together.text(int(entry)) for entry in entered.entries]
    assert {place: text for place, (_, text) in enumerate(pairs) if text is not None} == entered.texts
    assert len(alone) == len(together)
    for entry, _ in pairs:
        assert alone.enter_one(alone.text(entry))[0] == entry


def test_paths_of_any_length_are_entered_one_by_one() -> None:
    paths = ["/a" * length for length in (1, 64, 65, 300, 2)]
    alone, together = PatternTable(None, 300), PatternTable(None, 300)
    assert [alone.enter_one(path) for path in paths] == [(entry, None) for entry in range(len(paths))]
    together.enter(paths)
    assert [alone.text(entry) for entry in range(len(paths))] == [together.text(entry) for entry in range(len(paths))]
    assert alone.trie.count == together.trie.count == 301
    assert [alone.enter_one(path)[0] for path in paths] == list(range(len(paths)))


@pytest.mark.parametrize(("expression", "error"), [("//a[", PatternError), ("/a" * 51, LimitError), ("", PatternError)])
def test_a_bad_expression_makes_no_entry(expression: str, error: type[Exception]) -> None:
    table = PatternTable(None, 50)
    with pytest.raises(error):
        table.enter_one(expression)
    assert len(table) == 0


def test_expressions_of_trees_are_remembered_up_to_a_bound() -> None:
    table = PatternTable(None, 50, Tuning(remembered_expressions=10))
    entries = [table.enter_one(f"//a[@k = {n}]")[0] for n in range(35)]
    assert len(table._entered) <= 10
    assert [table.enter_one(f"//a[@k = {n}]")[0] for n in range(35)] == entries == list(range(35))
