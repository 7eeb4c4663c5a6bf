"""Every engine handles empty input: a batch without documents, a table without patterns, minimal documents."""

import numpy as np
import pytest

from pathcast import Subscriptions
from pathcast.documents import read_batch
from pathcast.matching import engines
from pathcast.matching.engine_contract import Skipping
from pathcast.matching.engine_registry import engine_class

# A path, a filter, a branch, the document alone, and patterns that engines delegate.
PATTERNS = ["/a", "//b[@k = 1]", "/a[b]/c", "/", "/*/*", "/a[not(b)]", "//a[. = 'x' or c]"]


@pytest.mark.parametrize("engine", engines())
@pytest.mark.parametrize("patterns", [PATTERNS, []], ids=["patterns", "no patterns"])
def test_a_batch_of_no_documents_has_no_matches(engine: str, patterns: list[str]) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(patterns)
    built = engine_class(engine).build(subscriptions.table)
    answers = [built.match_batch(read_batch([]))]
    if isinstance(built, Skipping):
        answers.append(built.match_except(read_batch([]), np.zeros(len(patterns), dtype=np.bool_)))
    for offsets, entries in answers:
        assert offsets.tolist() == [0] and entries.tolist() == []
    assert list(subscriptions.compile(engine=engine).match_many([])) == []


@pytest.mark.parametrize("engine", engines())
def test_a_document_that_could_not_be_read_matches_nothing_and_leaves_the_others_alone(engine: str) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(PATTERNS)
    built = engine_class(engine).build(subscriptions.table)
    offsets, entries = built.match_batch(read_batch(["<a", "<a/>", "</a>"], errors="return"))
    assert offsets.tolist() == [0, 0, 3, 3]
    assert {subscriptions.table.text(entry) for entry in entries.tolist()} == {"/", "/a", "/a[not(b)]"}
