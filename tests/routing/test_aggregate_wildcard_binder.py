"""Bindings hold in their document, whether found from the front or from the back, or passed on."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pathcast
from pathcast.documents import DocumentBatch, read_batch
from pathcast.matching.table.pattern_table import PatternTable
from pathcast.patterns import Pattern, parse
from pathcast.routing.advertising.subscriptions_by_wildcard_bindings import Simple
from pathcast.routing.annotations.aggregate_wildcard_binder import Binder, can_be_bound, fitting
from pathcast.routing.annotations.wildcard_substitution import Wildcards, bound
from tests.routing.drawn import plain_document, plain_pattern
from tests.routing.plain_bindings import document_bindings

seeds = st.integers(0, 1 << 20)


def matches(pattern: Pattern, document: bytes) -> bool:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add(str(pattern))
    return len(subscriptions.compile("reference").match(document).ids) > 0


def drawn(seed: int, count: int) -> tuple[bytes, list[Pattern]]:
    random = Random(seed)
    patterns = [parse(plain_pattern(random)) for _ in range(count)]
    return b"<a>%s</a>" % plain_document(random, 4).encode(), patterns


def binder_of(patterns: list[Pattern]) -> tuple[Binder, PatternTable]:
    table = PatternTable(None, 100)
    simple = [Simple(number, 1, tuple(range(Wildcards(each).count))) for number, each in enumerate(patterns)]
    return Binder(patterns, simple, table), table


def same(batch: DocumentBatch):
    return lambda number, name: batch.name_of(number) == name


@pytest.mark.slow
@settings(max_examples=60)
@given(seeds)
def test_what_is_bound_is_in_the_document(seed: int) -> None:
    document, patterns = drawn(seed, 8)
    binder, table = binder_of(patterns)
    batch = read_batch([document], names=table.names)
    matched = np.array([matches(each, document) for each in patterns])
    found = binder.bind(batch, len(batch.name), matched, room=1 << 20)
    for aggregate, wildcards in found:
        assert matches(bound(patterns[aggregate], wildcards), document)
        all_of_them = document_bindings(
            patterns[aggregate],
            range(Wildcards(patterns[aggregate]).count),
            batch[0],
            same(batch),
            batch.name_of,
            most=1000,
        )
        assert wildcards in all_of_them or len(all_of_them) >= 64
    able = {
        number
        for number, each in enumerate(patterns)
        if can_be_bound(each) and matched[number] and Wildcards(each).count
    }
    assert {each.aggregate for each in found} == able


@settings(max_examples=40)
@given(seeds, st.data())
def test_bindings_tell_only_of_what_was_read(seed: int, data: st.DataObject) -> None:
    document, patterns = drawn(seed, 8)
    binder, table = binder_of(patterns)
    batch = read_batch([document], names=table.names)
    read = data.draw(st.integers(1, len(batch.name)))
    for aggregate, wildcards in binder.bind(batch, read, np.ones(len(patterns), dtype=np.bool_), room=1 << 20):
        labels = [batch.name_of(int(number)) for number in batch.name[:read]]
        assert {label for _, names in wildcards for label in names} <= set(labels)
        assert matches(bound(patterns[aggregate], wildcards), document)


@pytest.mark.slow
@settings(max_examples=60)
@given(seeds)
def test_what_is_passed_on_is_in_the_document_too(seed: int) -> None:
    document, patterns = drawn(seed, 8)
    binder, table = binder_of(patterns)
    batch = read_batch([document], names=table.names)
    matched = np.array([matches(each, document) for each in patterns])
    for came in binder.bind(batch, len(batch.name), matched, room=1 << 20):
        for number in np.flatnonzero(matched).tolist():
            passed = binder.passed_on(patterns[came.aggregate], came, number)
            if passed is not None:
                assert passed.aggregate == number
                assert matches(bound(patterns[number], passed.wildcards), document)


def test_bindings_are_passed_on_label_by_label() -> None:
    binder, _ = binder_of([parse("/a/*/c//e"), parse("/a//e")])
    from pathcast.routing.annotations.document_annotations import Bound

    came = Bound(0, ((0, ("b",)), (1, ("d",))))
    assert binder.passed_on(parse("/a/*/c//e"), came, 1) == Bound(1, ((0, ("b", "c", "d")),))
    assert binder.passed_on(parse("/a//e"), Bound(1, ()), 0) is None


@pytest.mark.parametrize(
    ("xpath", "able"),
    [
        ("/a/*//b", True),
        ("/a[b//c]/*", True),
        ("/a[//test]/*", True),
        ("/a[@x]/*", False),
        ("/a[b = 5]/*", False),
        ("/a[b or c]/*", False),
        ("/a[not(b)]/*", False),
        ("/a/*/text()", False),
        ("/", False),
    ],
)
def test_only_patterns_of_steps_are_bound(xpath: str, able: bool) -> None:
    assert can_be_bound(parse(xpath)) is able


@pytest.mark.parametrize(("unbound", "bindings"), [(0, 8), (5, 3), (8, 0), (9, 0)])
def test_aggregates_that_need_no_binding_come_first(unbound: int, bindings: int) -> None:
    labels = [f"n{number}" for number in range(10)]
    binder, table = binder_of(
        [*(parse(f"/a/b/{each}") for each in labels), *(parse(f"/a/*/{each}") for each in labels)]
    )
    inside = "".join(f"<{each}/>" for each in labels)
    batch = read_batch([f"<a><b>{inside}</b></a>".encode()], names=table.names)
    matched = np.array([*(place < unbound for place in range(10)), *(True for _ in range(10))])
    assert len(binder.bind(batch, len(batch.name), matched, room=1 << 10)) == bindings


def test_bindings_beyond_the_room_are_left_out() -> None:
    binder, table = binder_of([parse("/a/*/c"), parse("/a/*/d")])
    batch = read_batch([b"<a><b><c/><d/></b></a>"], names=table.names)
    both = binder.bind(batch, 4, np.ones(2, dtype=np.bool_), room=100)
    assert len(both) == 2
    assert len(fitting(both, 10)) == 1
    assert fitting(both, 2) == ()
