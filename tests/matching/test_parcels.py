"""Patterns parsed elsewhere are entered as if they had been parsed here."""

from random import Random

import numpy as np
import pytest

import pathcast
from pathcast.matching.parcels import SENDER_BITS, Parcels, Sender
from pathcast.matching.table import PatternTable
from pathcast.patterns import parse
from tests import oracle
from tests.generators import NAMESPACES, expression, random_document, random_pattern

PLAIN = ["/", "/a", "//a//b", "/*//b", "a/b", "/a/b/c/d", "//*", "/b"]


def random_expressions(seed: int, count: int) -> list[str]:
    random = Random(seed)
    root = oracle.read(random_document(random).data).getroot()
    return [expression(random_pattern(random, root), random) for _ in range(count)] + PLAIN


def sent(parts: list[list[str]], table: PatternTable, at_once: int = 7) -> np.ndarray:
    """The entries, in `table`, of expressions that several senders parse, some at a time."""
    parcels = Parcels(table)
    patterns: list[np.ndarray] = []
    for number, expressions in enumerate(parts):
        theirs = PatternTable(table.namespaces, table.max_steps)
        sender = Sender(theirs)
        for begin in range(0, len(expressions), at_once):
            entries = theirs.enter(expressions[begin : begin + at_once]).entries
            patterns.append(entries.astype(np.int64) | number << SENDER_BITS)
            parcels.take(number, sender.parcel())
    return parcels.enter(np.concatenate(patterns))


@pytest.mark.parametrize("seed", range(8))
def test_entries_are_those_of_parsing_here(seed):
    expressions = random_expressions(seed, 300)
    here, there = (PatternTable(NAMESPACES, 256) for _ in range(2))
    expected = here.enter(expressions).entries
    third = len(expressions) // 3
    found = sent([expressions[:third], expressions[third:], expressions[:9], []], there)
    assert found[: len(expected)].tolist() == expected.tolist()
    assert found[len(expected) :].tolist() == expected[:9].tolist()
    assert [there.pattern(entry) for entry in range(len(there))] == [here.pattern(entry) for entry in range(len(here))]
    assert [there.text(entry) for entry in range(len(there))] == [here.text(entry) for entry in range(len(here))]


def test_only_what_is_asked_for_is_entered():
    theirs, here = PatternTable(None, 256), PatternTable(None, 256)
    sender, parcels = Sender(theirs), Parcels(here)
    _, _, d, e = theirs.enter(["/a", "/b[@c]", "/d", "/e[@f]"]).entries.tolist()
    parcels.take(5, sender.parcel())
    assert parcels.enter(np.array([e, d, e], dtype=np.int64) | 5 << SENDER_BITS).tolist() == [1, 0, 1]
    assert [here.text(entry) for entry in range(len(here))] == ["/d", "/e/@f"]
    assert parcels.enter(np.empty(0, dtype=np.int64)).tolist() == []


def test_a_table_that_has_patterns_already_keeps_them():
    here = PatternTable(None, 256)
    before = here.enter(["/x", "/b[@c]", "/a"]).entries.tolist()
    found = sent([["/a", "/y", "/b[@c]", "/z[@c]"]], here)
    assert found.tolist() == [before[2], 3, before[1], 4]


def test_the_largest_patterns_pass():
    deep = "/a" + "[a" * 60 + "]" * 60
    long = "/a[" + " and ".join(f"@a{n}={n}.50" for n in range(60)) + "]"
    expressions = [deep, long, "/" + "/".join("b" * 100)]
    here = PatternTable(None, 256)
    entries = sent([expressions], here)
    assert [here.pattern(entry) for entry in entries] == [parse(text) for text in expressions]


def test_columns_are_added_as_rows_would_be():
    one, other = pathcast.Subscriptions(), pathcast.Subscriptions()
    xpaths, names, ids = ["//a", "b[@c]", "//a", "/c"], ["ada", None, "bob", "ada"], [7, 3, 9, 12]
    one.add_many(xpaths, names, ids)
    entered = other.table.enter(xpaths)
    owners = np.array([0, -1, 1, 0], dtype=np.int32)
    given = other.add_entered(entered, 0, ["ada", "bob"], owners, np.array(ids, dtype=np.int32))
    assert given == ids
    assert list(other) == list(one)
    assert (other.add("//d"), len(other)) == (13, 5)
    assert list(other.add_entered(entered, 5, [], np.full(4, -1, np.int32), None)) == [14, 15, 16, 17]


@pytest.mark.parametrize(("ids", "reason"), [([1, 1], "twice"), ([0, 1], "id 0"), ([5, 2], "id 5 is in use")])
def test_columns_with_wrong_ids_are_refused_and_change_nothing(ids, reason):
    subscriptions = pathcast.Subscriptions()
    subscriptions.add("/a", id=5)
    entered = subscriptions.table.enter(["/a", "/b"])
    with pytest.raises(ValueError, match=reason):
        subscriptions.add_entered(entered, 1, ["ada"], np.zeros(2, np.int32), np.array(ids, dtype=np.int32))
    assert (len(subscriptions), subscriptions.subscribers) == (1, [])
