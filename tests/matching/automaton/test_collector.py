"""Patterns cost the garbage collector nothing: it tracks none of their objects, and need not run to free them.

The pause of a collection grows with the objects that the collector tracks and the references that it follows from them.
Both are counted here, since times depend on the machine.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pathcast import Matcher, Subscriptions, open_index
from pathcast.matching.automaton import AutomatonEngine

from .promotion import at_rest

FEW = 1_200
DOCUMENTS = [
    f"<a lang='l{n}' id='{n}'><b x='{n}'>w{n}<c>{n}</c></b><d><c y='{n}'/><e/></d><b><c><f>text {n}</f></c></b></a>"
    for n in range(30)
]
SHAPES = [
    "/a/b[@x = {n}]",
    "//a[@lang = 'l{n}']/b[c > {n}]",
    "/a[b/c]/d[@z{few}]//e[@id = 'i{n}']",
    "/a[@id = {n}]//c[@y < {n}]/*",
    "//b[. = 'w{n}' or c = {n}]",
    "/a[not(@id = {n})]/d",
    "//a[contains(b/c, 'text {n}')]",
    "/a[starts-with(@lang, 'l{n}')]//f",
    "/a[/a/b//c = {n}]/b",
    "/a[@id != {n} and (b[@x = {n}] or not(d/e = {n}))]",
    "/a[s{few}/t{other}][d]//*[c//e]/u{third}",
]


def patterns(count: int) -> list[str]:
    """Distinct patterns of all kinds, with few names and many values."""
    numbers = range(count)
    return [SHAPES[n % len(SHAPES)].format(n=n, few=n % 17, other=n // 17 % 17, third=n // 289 % 17) for n in numbers]


def compiled(count: int) -> Matcher:
    subscriptions = Subscriptions()
    subscriptions.add_many(patterns(count))
    matcher = subscriptions.compile()
    assert len(subscriptions.table.trees) == count
    match_all(matcher)
    return matcher


def changed(count: int, matcher: Matcher | None = None) -> Matcher:
    """Half of the patterns are added one by one, and half of these are removed again."""
    matcher = compiled(count // 2) if matcher is None else matcher
    subscriptions = matcher.subscriptions
    for place, xpath in enumerate(patterns(count)[count // 2 :]):
        added = subscriptions.add(xpath)
        if place % 2:
            subscriptions.remove(added)
        if place % 500 == 0:
            match_all(matcher)
    at_rest(matcher)
    assert isinstance(matcher.engine, AutomatonEngine)
    matcher.engine.compiled()  # one index, without a second one for the latest patterns
    matched = None
    while matched is not (made := at_rest(matcher)):  # and what a thread keeps for documents of this index
        matched = made
        match_all(matcher)
    return matcher


def opened(count: int, folder: Path, *, trusted: bool) -> Matcher:
    compiled(count // 2).save(folder / str(count))
    return changed(count, open_index(folder / str(count), trusted=trusted))


def match_all(matcher: Matcher) -> None:
    for document in DOCUMENTS:
        matcher.match(document)


@pytest.fixture
def alone() -> Iterator[None]:
    """Ignore what other tests have left behind."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def work_of_a_collection() -> int:
    """The number of objects that the collector tracks, and of references that it follows from them."""
    gc.collect()
    tracked = gc.get_objects()
    return len(tracked) + len(gc.get_referents(*tracked))


def work_of_collections(matcher: Matcher) -> int:
    """The least work of four collections, each after matches, so that what a thread keeps for the next one counts."""
    works = []
    for _ in range(4):
        match_all(matcher)
        works.append(work_of_a_collection())
    return min(works)


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("kind", ["compiled", "changed", "opened", "opened by a stranger"])
def test_more_patterns_are_no_more_work_for_the_collector(kind: str, tmp_path: Path) -> None:
    kinds: dict[str, Callable[[int], Matcher]] = {
        "compiled": compiled,
        "changed": changed,
        "opened": lambda count: opened(count, tmp_path, trusted=True),
        "opened by a stranger": lambda count: opened(count, tmp_path, trusted=False),
    }
    make = kinds[kind]
    make(100)  # loads kernels, and creates all other one-time objects
    matcher = make(FEW)
    few = work_of_collections(matcher)
    matcher = make(2 * FEW)
    assert len(matcher.subscriptions) > FEW
    more = work_of_collections(matcher)
    assert more - few < 0.05 * FEW


@pytest.mark.slow
def test_patterns_are_freed_without_a_collection() -> None:
    def added() -> None:
        subscriptions = Subscriptions()
        subscriptions.add_many([f"/a[@b = {number}]/c[d = 'some text {number}']" for number in range(2000)])

    added()  # fills the cache of expressions
    gc.collect()
    gc.disable()
    try:
        before = sys.getallocatedblocks()
        for _ in range(3):
            added()
        assert sys.getallocatedblocks() - before < 3 * 2000  # less than one per pattern
    finally:
        gc.enable()


def test_adding_and_compiling_leave_the_collector_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads need it."""
    monkeypatch.setattr(gc, "disable", lambda: pytest.fail("the collector was switched off"))
    monkeypatch.setattr(gc, "freeze", lambda: pytest.fail("objects of others were frozen"))
    assert len(compiled(50).subscriptions) == 50
