"""Splitting, merging and joining batches on the structure itself: no document is lost, added or mixed up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pathcast
from pathcast.roxsum import RoXSum, Targets, document_targets
from tests.roxsum.drawn import collections, data_of, often, summary_of

XPATHS = ("//a", "/a/b", "//b/*", "//*[@x]", "/a[b][c]", "//c[not(d)]", "//b[. = 5]", "/e//a", "//d//d", "/")
targets = st.dictionaries(st.sampled_from(["east", "west", 3]), st.lists(st.sampled_from(XPATHS), max_size=3))


def matched(xpaths: list[str], documents: list[bytes | str]) -> list[int]:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(xpaths)
    matcher = subscriptions.compile()
    return [number for number, document in enumerate(documents) if len(matcher.match(document).ids)]


def test_the_decomposition_of_the_paper() -> None:
    """Figure 3: documents to targets by the profiles that they match, and a summary per target."""
    batch = RoXSum.build(["<a><b><c/></b><d><e/></d></a>", "<a><b><c/><f/></b></a>", "<a><g/></a>"])
    table = {"T1": ["/a/b/c"], "T2": ["/a//d/e"], "T3": ["/a/x"]}
    assert document_targets(batch.route(table)) == {0: ["T1", "T2"], 1: ["T1"]}
    parts = batch.split(table)
    assert parts["T1"].summary() == {
        ("a",): [],
        ("a", "b"): [],
        ("a", "b", "c"): [0, 1],
        ("a", "b", "f"): [1],
        ("a", "d"): [],
        ("a", "d", "e"): [0],
    }
    assert list(parts["T2"]) == [0] and parts["T2"].summary()["a", "d", "e"] == [0]
    assert len(parts["T3"]) == 0 and parts["T3"].summary() == {}


@pytest.mark.slow
@often
@given(collections, targets)
def test_a_target_gets_the_documents_that_match_one_of_its_patterns(
    documents: list[bytes | str], table: dict[object, list[str]]
) -> None:
    parts = RoXSum.build(documents).split(table)
    assert parts.keys() == table.keys()
    for target, part in parts.items():
        ids = matched(table[target], documents)
        assert list(part) == ids
        assert part.documents() == [data_of(documents[number]) for number in ids]


@pytest.mark.slow
@often
@given(collections, targets)
def test_parts_merged_are_the_batch_of_all_that_was_matched(
    documents: list[bytes | str], table: dict[object, list[str]]
) -> None:
    batch = RoXSum.build(documents)
    parts = batch.split(table)
    everything = sorted({number for part in parts.values() for number in part})
    here, sent = RoXSum.merge(parts.values()), RoXSum.merge(RoXSum.decode(part.encode()) for part in parts.values())
    for merged in (here, sent):
        assert list(merged) == everything
        assert merged.summary() == batch.restrict(everything).summary()
        assert merged.documents() == [data_of(documents[number]) for number in everything]


@pytest.mark.slow
@often
@given(collections, targets)
def test_matching_a_part_is_matching_the_batch_and_keeping_the_part(
    documents: list[bytes | str], table: dict[object, list[str]]
) -> None:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(XPATHS)
    matcher = subscriptions.compile()
    batch = RoXSum.build(documents)
    whole = {number: ids.tolist() for number, ids in batch.match(matcher).items()}
    for part in batch.split(table).values():
        found = {number: ids.tolist() for number, ids in part.match(matcher).items()}
        assert found == {number: ids for number, ids in whole.items() if number in part}


@pytest.mark.slow
@often
@given(collections, collections)
def test_batches_of_different_origin_are_joined_under_new_ids(one: list[bytes | str], two: list[bytes | str]) -> None:
    batch, other = RoXSum.build(one), RoXSum.build(two)
    ids = batch.extend(other)
    assert ids.tolist() == list(range(len(one), len(one) + len(two)))
    both = dict(enumerate([*one, *two]))
    assert batch.summary() == summary_of(both)
    assert batch.documents() == [data_of(document) for document in both.values()]
    assert other.summary() == summary_of(dict(enumerate(two)))
    assert batch.extend(batch).tolist() == list(range(len(both), 2 * len(both)))
    assert batch.documents() == 2 * [data_of(document) for document in both.values()]


def test_one_id_for_two_documents_is_refused() -> None:
    one, two = RoXSum.build(["<a/>"]), RoXSum.build(["<b/>"])
    with pytest.raises(ValueError, match="two different documents have the id 0; combine such batches with extend"):
        RoXSum.merge([one, two])
    assert RoXSum.merge([one, RoXSum.build(["<a/>"])]).documents() == [b"<a/>"]
    assert len(RoXSum.merge([])) == 0


def test_a_batch_that_grows_leaves_its_parts_as_they_were() -> None:
    batch = RoXSum.build(["<a/>", "<b/>"])
    part = batch.restrict([1])
    batch.add("<b><c/></b>")
    batch.remove(1)
    assert part.summary() == {("b",): [1]} and part.documents() == [b"<b/>"]
    assert batch.summary() == {("a",): [0], ("b",): [], ("b", "c"): [2]}


def test_profiles_come_and_go() -> None:
    table = Targets({"east": ["/a"]})
    batch = RoXSum.build(["<a/>", "<b/>"])
    profile = table.add("west", "/b")
    assert {target: list(ids) for target, ids in batch.route(table).items()} == {"east": [0], "west": [1]}
    table.remove(profile)
    table.add("east", "/*[not(a)]")
    assert {target: list(ids) for target, ids in batch.route(table).items()} == {"east": [0, 1], "west": []}
    assert list(table) == ["east", "west"] and len(table) == 2 and "west" in table
    with pytest.raises(TypeError, match="must be a list"):
        batch.split({"east": "/a"})
    with pytest.raises(pathcast.PatternError):
        table.add("east", "/a[")
