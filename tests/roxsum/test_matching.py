"""Matching on the summary returns the matches of each document alone."""

from collections import defaultdict
from operator import attrgetter
from random import Random

import numpy as np
import pytest

import pathcast
from pathcast.matching import engines
from pathcast.patterns import Namespaces
from pathcast.roxsum import RoXSum
from pathcast.roxsum.summary_matching import Filtering
from tests import oracle
from tests.corpus import Case, cases
from tests.generators import NAMESPACES, expression, random_document, random_pattern
from tests.roxsum.drawn import document_of


def matcher_of(xpaths: list[str], namespaces: Namespaces = None, engine: str | None = None) -> pathcast.Matcher:
    subscriptions = pathcast.Subscriptions(namespaces)
    subscriptions.add_many(xpaths)
    return subscriptions.compile(engine)


def found(batch: RoXSum, matcher: pathcast.Matcher) -> dict[int, list[int]]:
    return {number: ids.tolist() for number, ids in batch.match(matcher).items()}


def one_by_one(documents: list[bytes], matcher: pathcast.Matcher) -> dict[int, list[int]]:
    answers = {number: matcher.match(document).ids.tolist() for number, document in enumerate(documents)}
    return {number: ids for number, ids in answers.items() if ids}


def test_a_plain_path_is_answered_by_extents_of_its_node_and_of_those_below() -> None:
    batch = RoXSum.build(["<a><b/></a>", "<a><b><c/></b></a>", "<a><c/></a>"])
    matcher = matcher_of(["/a/b", "//c", "/a/*", "/x"])
    assert found(batch, matcher) == {0: [1, 3], 1: [1, 2, 3], 2: [2, 3]}
    assert not batch.candidates(matcher)


def test_extents_alone_would_say_yes_where_branches_lie_under_two_parents() -> None:
    """The summary is exact for linear paths only: the document is in both branches' extents, and does not match."""
    batch = RoXSum.build(["<a><b><c/></b><b><d/></b></a>", "<a><b><c/><d/></b></a>", "<a><b><c/></b></a>"])
    matcher = matcher_of(["/a/b[c][d]"])
    extents = batch.extents
    c, d = (batch.paths.find("a", "b", name) for name in "cd")
    assert c is not None and d is not None
    assert list(extents[c] & extents[d]) == [0, 1]
    assert list(batch.candidates(matcher)) == [0, 1]
    assert found(batch, matcher) == {1: [1]}


def test_values_and_negations_are_verified_on_the_document() -> None:
    batch = RoXSum.build(["<a x='1'><b>5</b></a>", "<a x='2'><b>7</b></a>", "<a><c/></a>"])
    matcher = matcher_of(["/a[@x = 1]", "/a[b > 6]", "/a[not(b)]", "//@x", "/a[b or c]", "/a/b/text()"])
    assert found(batch, matcher) == {0: [1, 4, 5, 6], 1: [2, 4, 5, 6], 2: [3, 5]}


def test_text_is_read_again_as_text_whatever_encoding_it_declares() -> None:
    """Once cut into tokens, once raw; as bytes in the declared encoding, both would say Ã©."""
    declared = '<?xml version="1.0" encoding="ISO-8859-1"?>'
    documents = [f"{declared}<a>é</a>", f"{declared}<!DOCTYPE a [<!ELEMENT a ANY>]><a>é</a>", "<a>Ã©</a>"]
    matcher = matcher_of(["/a[. = 'é']", "/a[. = 'Ã©']"])
    batch = RoXSum.build(documents)
    for each in (batch, RoXSum.decode(batch.encode()), RoXSum.decode(batch.encode(), trusted=True)):
        assert found(each, matcher) == {0: [1], 1: [1], 2: [2]}


def test_subscriptions_that_change_are_followed() -> None:
    batch = RoXSum.build(["<a><b/></a>", "<a><c/></a>"])
    subscriptions = pathcast.Subscriptions()
    matcher = subscriptions.compile()
    assert found(batch, matcher) == {}
    first = subscriptions.add("/a/b")
    assert found(batch, matcher) == {0: [1]}
    subscriptions.add("/a[not(b)]")
    assert found(batch, matcher) == {0: [1], 1: [2]}
    subscriptions.remove(first)
    assert found(batch, matcher) == {1: [2]}


def test_a_batch_meets_the_subscriptions_of_one_moment_whatever_changes_while_it_is_filtered() -> None:
    subscriptions = pathcast.Subscriptions()
    first, second = subscriptions.add_many(["//b", "//a[b = 'x']"])
    matcher = subscriptions.compile()
    batch = RoXSum.build(["<a><b>x</b></a>", "<a><b>y</b></a>", "<c/>"])
    filtering = Filtering(batch, matcher)
    subscriptions.remove(first)
    subscriptions.remove(second)
    subscriptions.add_many(["//a", "//c[not(d)]", *(f"//a/n{number}" for number in range(5_000))])
    for id in range(5, 5_005):  # enough patterns to rebuild the table
        subscriptions.remove(id)
    matcher.match("<a/>")
    assert matcher.engine.table is not filtering.view.table
    offsets, ids = filtering.ids()
    assert [part.tolist() for part in np.split(ids, offsets[1:-1])] == [[first, second], [first], []]
    assert found(batch, matcher) == {0: [3], 1: [3], 2: [4]}


@pytest.mark.parametrize("engine", engines())
def test_any_engine_runs_over_the_summary(engine: str) -> None:
    documents = [document_of(seed) for seed in range(12)]
    matcher = matcher_of(["//a/b", "//*[@x]//b", "/a//b/*", "//b[a]/c"], engine=engine)
    assert found(RoXSum.build(documents), matcher) == one_by_one(documents, matcher)


@pytest.mark.parametrize("theme", sorted({case.theme for case in cases()}))
def test_every_case_has_its_answer(theme: str) -> None:
    """All documents of a theme in one batch, all its patterns in one matcher."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases():
        if case.theme == theme:
            groups[repr(case.namespaces)].append(case)
    for group in groups.values():
        matcher = matcher_of([case.pattern for case in group], group[0].namespaces)
        readable = pathcast.roxsum.RoXSum.build(map(attrgetter("document"), group), errors="return")
        answers = readable.match(matcher)
        wrong = [
            case.id
            for number, case in enumerate(group)
            if number in readable and ((number + 1) in answers.get(number, ())) is not case.expected
        ]
        assert not wrong


@pytest.mark.parametrize("seed", range(6))
def test_random_patterns_on_random_documents_are_answered_as_lxml_does(seed: int) -> None:
    random = Random(seed)
    drawn = [random_document(random) for _ in range(25)]
    trees = [oracle.read(document.data) for document in drawn]
    patterns = [random_pattern(random, random.choice(trees).getroot()) for _ in range(60)]
    xpaths = [expression(pattern, random) for pattern in patterns]
    namespaces: Namespaces = "ignore" if seed % 3 == 0 else NAMESPACES
    questions = [oracle.ask(xpath, namespaces) for xpath in xpaths]
    expected = {
        number: [k + 1 for k, question in enumerate(questions) if oracle.answer(question, tree)]
        for number, tree in enumerate(trees)
    }
    batch = RoXSum.build([document.data for document in drawn], entities="expand")
    matcher = matcher_of(xpaths, namespaces)
    answers = found(batch, matcher)
    assert answers == {number: ids for number, ids in expected.items() if ids}


def test_label_paths_longer_than_the_documents_are_not_worth_a_pass() -> None:
    wide = b"".join(b"<n%d/>" % number for number in range(100))
    documents = [b"<a>" * 990 + b"<b/><c/>" + wide + b"</a>" * 990, b"<a/>"]
    batch = RoXSum.build(documents)
    matcher = matcher_of(["//b", "/a", "//a[b][c]"])
    assert len(batch.nodes) * batch.depth > max(1 << 20, batch.token_count)
    assert found(batch, matcher) == one_by_one(documents, matcher)
    assert {t: list(d) for t, d in batch.route({"x": ["//b"], "y": ["/a"]}).items()} == {"x": [0], "y": [0, 1]}


def test_a_document_that_would_cost_too_much_is_refused_as_matching_it_alone_would() -> None:
    documents = [b"<a>" * 60 + b"</a>" * 60, b"<a/>"]
    limits = pathcast.Limits(depth=1000)
    matcher = matcher_of(["//a" * 30, "/a"])
    batch = RoXSum.build(documents, limits=limits)
    assert found(batch, matcher) == one_by_one(documents, matcher)
