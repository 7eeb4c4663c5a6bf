"""Patterns that stay are nothing to the collector of cyclic garbage."""

import gc
import sys

import pytest

from pathcast import Subscriptions
from pathcast.matching.table.bulk import collector_resting
from pathcast.matching.table.tree_patterns import Trees
from pathcast.patterns.tree_pattern import AllOf, AnyOf, First, Node, Pattern, conditions_in

EXPRESSIONS = [
    "/a[b]/c",
    "//a[@b = 'x'][c > 5]/d[e]",
    "//a[b or not(c and @d)]",
    "/a[contains(b/c, 'x')]",
    "/a[/b//c]",
    "/a[starts-with(., 'x') or text() = 'y']//*[@z]",
]


def tracked_parts(pattern: Pattern) -> list[object]:
    """What the collector looks at among a pattern and all that it is made of."""
    assert pattern.root is not None
    held: list[object] = [pattern]
    for part in conditions_in(pattern.root):
        held.append(part)
        if isinstance(part, (Node, AllOf, AnyOf)):
            held.append(part.conditions)
        elif isinstance(part, First):
            held.append(part.steps)
    return [part for part in held if gc.is_tracked(part)]


def trees_of(subscriptions: Subscriptions) -> Trees:
    return subscriptions.table.trees


def test_the_collector_sees_no_pattern_that_was_added() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(EXPRESSIONS[:3])
    for expression in EXPRESSIONS[3:]:
        subscriptions.add(expression)
    trees = trees_of(subscriptions)
    assert len(trees) == len(EXPRESSIONS)
    assert [tracked_parts(trees[entry]) for entry in trees] == [[]] * len(EXPRESSIONS)


def test_nor_one_that_was_parsed_again() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(EXPRESSIONS)
    trees = Trees.restore(None, trees_of(subscriptions).arrays())
    assert [tracked_parts(trees[entry]) for entry in trees] == [[]] * len(EXPRESSIONS)


def test_what_it_does_not_see_is_freed_all_the_same() -> None:
    def added() -> None:
        subscriptions = Subscriptions()
        subscriptions.add_many([f"/a[@b = {number}]/c[d = 'some text {number}']" for number in range(2000)])

    added()  # what is remembered of expressions takes its place
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(3):
        added()
    gc.collect()
    assert sys.getallocatedblocks() - before < 2000  # of 60,000 that were made each time


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_rests_and_goes_on_as_before(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        with collector_resting():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
