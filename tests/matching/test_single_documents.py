"""A document matched alone has the matches that it has in a batch, in every engine.

A batch of one document takes other ways: it lies in buffers that the next document reuses, and its entries are joined
without a kernel.
"""

from random import Random

import numpy as np
import pytest

import pathcast
from pathcast import Subscriptions
from pathcast.documents import DocumentBatch, Limits, read_batch
from pathcast.errors import LimitError
from pathcast.matching import Tuning, engines
from pathcast.matching.automaton.single_document_matching import PreparedMatch, SingleMatched
from tests.matching.automaton.test_twigs import some

SETTINGS = {
    "as usual": Tuning(),
    "without room for regions": Tuning(region_rows=8),
    "with few places in the queue": Tuning(queued_tests=1),
    "with a delta": Tuning(pending_trees=4, fewest_pending_bits=64, delta_trees_per_pending=1),
}


def _patterns(seed: int, count: int) -> list[str]:
    """Paths, values, twigs, and patterns that are verified."""
    chance = Random(seed)
    twigs = some(seed, count)[0]
    values = [f"//{chance.choice('abc')}[@k = {chance.randint(1, 3)}]" for _ in range(count // 4)]
    others = [f"/a[not({chance.choice('abc')})]//{chance.choice('abc')}[. = 'x' or @k]" for _ in range(count // 4)]
    return [*twigs, *values, *others, "/", "//*", "//a", "/a/b", "//b//c"]


def _documents(seed: int) -> list[str]:
    chance = Random(seed)
    plain = some(seed)[1]
    return [document.replace("<a>", f"<a k='{chance.randint(1, 3)}'>x") for document in plain] + plain


@pytest.mark.parametrize("engine", engines())
def test_every_engine_matches_a_document_alone_as_in_a_batch(engine: str) -> None:
    subscriptions, documents = Subscriptions(), _documents(1)
    subscriptions.add_many(_patterns(1, 100))
    matcher = subscriptions.compile(engine=engine)
    together = [matches.ids.tolist() for matches in matcher.match_many(documents)]
    assert [matcher.match(document).ids.tolist() for document in documents] == together
    assert len(set(map(tuple, together))) > 5


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_the_default_engine_does_so_in_every_state(setting: str, seed: int) -> None:
    patterns, documents = _patterns(seed, 200), _documents(seed)
    subscriptions = Subscriptions(tuning=SETTINGS[setting])
    subscriptions.add_many(patterns[:40])
    matcher = subscriptions.compile()
    for first in range(40, len(patterns), 20):
        subscriptions.add_many(patterns[first : first + 20])
        for document in documents[first % 7 :: 7]:
            batch, _ = matcher.match_many([document, "<z/>"])
            assert matcher.match(document).ids.tolist() == batch.ids.tolist()
    reference = subscriptions.compile(engine="reference")
    for document in documents:
        assert matcher.match(document).ids.tolist() == reference.match(document).ids.tolist()


@pytest.mark.parametrize("trees", [[], ["//c[@k]", "//c[a][b]"]], ids=["paths", "trees"])
def test_matches_keep_their_meaning_when_the_next_document_is_read(trees: list[str]) -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//a", "//b", *trees])
    matcher = subscriptions.compile()
    documents = ["<a/>", "<b/>", "<c k=''/>", "<c><a/><b/></c>", "<d/>"]
    kept = [matcher.match(document) for document in documents]
    expected = [[1], [2], [3], [1, 2, 4], []] if trees else [[1], [2], [], [1, 2], []]
    assert [matches.ids.tolist() for matches in kept] == expected


def test_a_batch_of_no_documents_after_a_document_has_no_matches() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//a", "//a[@k]"])
    matcher = subscriptions.compile()
    matcher.match("<a k=''/>")
    offsets, ids = matcher.match_batch(read_batch([]))
    assert offsets.tolist() == [0]
    assert not np.any(ids) and not len(ids)


def test_an_unreadable_document_leaves_nothing_to_the_next() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//a", "//b[@k]"])
    matcher = subscriptions.compile()
    for _ in range(2):
        assert matcher.match("<a><b k=''/></a>").ids.tolist() == [1, 2]
        with pytest.raises(pathcast.DocumentError):
            matcher.match("<a><b k=''/>")
        assert matcher.match("<c/>").ids.tolist() == []


def test_a_document_that_takes_too_long_is_the_only_one_with_an_error() -> None:
    subscriptions = Subscriptions(tuning=Tuning(state_bytes=0))
    subscriptions.add_many(["//a//a//a//a//a//b"])
    matcher = subscriptions.compile(limits=Limits(work=50))
    for _ in range(2):
        assert matcher.match("<c/>").ids.tolist() == []
        with pytest.raises(LimitError):
            matcher.match("<a>" * 30 + "</a>" * 30)


def test_statistics_count_documents_alone_as_those_of_a_batch() -> None:
    counts = []
    for alone in (True, False):
        subscriptions = Subscriptions()
        subscriptions.add_many(_patterns(2, 60))
        matcher = subscriptions.compile()
        documents = _documents(2)
        for _ in range(2):
            _ = [matcher.match(document) for document in documents] if alone else list(matcher.match_many(documents))
        found = matcher.statistics()
        counts.append({name: found[name] for name in ("documents", "elements", "matches", "candidates that match")})
    assert counts[0] == counts[1]


def test_a_pattern_that_a_join_leaves_to_the_verifier_is_found_without_open_gates() -> None:
    subscriptions = Subscriptions()
    subscriptions.add("//b[@k = 1]//c/x")
    matcher = subscriptions.compile()
    document = f"<r><b k='1'>{'<x/>' * 70}<c><x/></c></b></r>"
    assert matcher.match(document).ids.tolist() == [1]
    assert matcher.match(document.replace("<c>", "<d>").replace("</c>", "</d>")).ids.tolist() == []
    assert [matches.ids.tolist() for matches in matcher.match_many([document, "<r/>", document])] == [[1], [], [1]]


@pytest.mark.parametrize("setting", SETTINGS)
def test_prepared_calls_do_not_outlive_what_they_hold(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents of every size, of other depths and with new names, batches between them, and new patterns."""
    prepared: list[bool] = []
    match = PreparedMatch.match

    def count(self: PreparedMatch, batch: DocumentBatch) -> SingleMatched | None:
        found = match(self, batch)
        prepared.append(found is not None)
        return found

    monkeypatch.setattr(PreparedMatch, "match", count)
    pairs = [(first, second) for first in range(4) for second in range(4)]
    both = [f"/a[not(@k = {first})]/b[@k = {second}]" for first, second in pairs]
    patterns = [*both, *_patterns(5, 184)]
    small = [f"<a k='{first}'><b k='{second}'/></a>" for first, second in pairs] + _documents(5)[::19]
    wide = [f"<a k='1'>{''.join(small[:count])}</a>" for count in (2, 5, 20)]
    deep = ["<a k='2'>" * depth + "<b k='3'/><c>x</c>" + "</a>" * depth for depth in (3, 60, 70)]
    documents = [*small, wide[0], deep[0], f"<a><b k='{'1' * 90}'/></a>", *wide[1:], *deep[1:], *small]
    subscriptions = Subscriptions(tuning=SETTINGS[setting])
    subscriptions.add_many(patterns[:100])
    matcher, many = subscriptions.compile(), 200
    for added in range(100, 200, 25):
        reference = subscriptions.compile(engine="reference")
        expected = {document: reference.match(document).ids.tolist() for document in documents}
        for place, document in enumerate((*documents, *documents, *reversed(documents))):
            assert matcher.match(document).ids.tolist() == expected[document]
            if place % 31 == 30:  # larger buffers, in which the next document must not meet values of this one
                attributes = "".join(f" a{number}=''" for number in range(many))
                list(matcher.match_many([*documents[:3], f"<a{attributes}/>"]))
                many = min(many + many // 4, 4000)
        subscriptions.add_many(patterns[added : added + 25])
    assert prepared.count(True) > 50 and prepared.count(False) > 3


def test_values_of_a_document_do_not_reach_a_later_one_after_its_buffers_have_grown() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many([f"/a[not(@k = {first})]/b[@k = {second}]" for first in range(9) for second in range(9)])
    matcher = subscriptions.compile()
    reference = subscriptions.compile(engine="reference")
    for number in range(1, 9):
        for document in (f"<a k='{number}'><b k='1'/></a>",) * 3:
            matcher.match(document)
        attributes = "".join(f" a{place}=''" for place in range(500 * number))
        list(matcher.match_many([f"<a{attributes}/>", "<c/>"]))
        document = f"<a k='{number - 1}'><b k='3'/></a>"
        assert matcher.match(document).ids.tolist() == reference.match(document).ids.tolist()
