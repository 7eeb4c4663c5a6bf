"""The join of nested paths: its cost for hostile documents."""

from collections.abc import Callable

import numpy as np
import pytest

from pathcast import Subscriptions
from pathcast.documents import DocumentBatch, read_batch
from pathcast.literature.yfilter import YFilterEngine
from pathcast.matching.automaton import AutomatonEngine

# Ways up from ever new ends: past elements of another name, past ones that lack a branch, beside one that never comes.
HOSTILE: dict[str, tuple[str, Callable[[int], str]]] = {
    "deep": ("//a[.//b][.//c]", lambda n: "<a>" + "<x>" * n + "<b/>" * n + "</x>" * n + "</a>"),
    "nested": ("//a[.//b][.//c]//d", lambda n: "<a><b/><c/>" * n + "</a>" * n),
    "wide": ("//a[b][c]/d", lambda n: "<a>" + "<b/><c/>" * n + "</a>"),
    "twice": ("//a[.//b[.//c][.//d]][.//e]", lambda n: "<a>" + "<b><c/>" * n + "<d/>" * n + "</b>" * n + "</a>"),
}


def rows(engine: YFilterEngine | AutomatonEngine, batch: DocumentBatch) -> list[list[int]]:
    offsets, entries = engine.match_batch(batch)
    return [found.tolist() for found in np.split(entries, offsets[1:-1])]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_join_costs_a_document_its_elements_and_no_more(name: str) -> None:
    xpath, document = HOSTILE[name]
    subscriptions = Subscriptions()
    subscriptions.add(xpath)
    steps = []
    for size in (200, 400):
        engine = YFilterEngine.build(subscriptions.table)
        batch = read_batch([document(size)])
        stream = engine.match_stream(batch[0])
        assert rows(engine, batch) == [stream.entries.tolist()] == rows(AutomatonEngine.build(engine.table), batch)
        steps.append(engine.statistics()["steps of joins"])
    assert 0 < steps[1] <= 2.1 * steps[0], "twice the elements, twice the steps"
