"""Live changes do not leak: memory after many cycles is memory after a few."""

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from pathcast import Subscriptions
from pathcast.matching import Tuning

XPATHS = ["//a", "/a/b", "a//c", "//a[b]", "//c[@d = 5]"]


def add_and_remove(subscriptions: Subscriptions, cycle: int) -> None:
    subscriptions.remove(subscriptions.add(XPATHS[cycle % 5]))


def the_same_id(subscriptions: Subscriptions, cycle: int) -> None:
    subscriptions.add(XPATHS[cycle % 5], id=5000)
    subscriptions.remove(5000)


def other_subscribers(subscriptions: Subscriptions, cycle: int) -> None:
    subscriptions.remove(subscriptions.add("//a", f"subscriber number {cycle}"))


def replaced(subscriptions: Subscriptions, cycle: int) -> None:
    subscriptions.replace(1 + cycle % 100, XPATHS[cycle % 5])


def first_in_first_out(subscriptions: Subscriptions, cycle: int) -> None:
    subscriptions.remove(subscriptions.add(XPATHS[cycle % 5]) - 100)


def in_bulk(subscriptions: Subscriptions, cycle: int) -> None:
    if cycle % 50 == 0:
        for added in subscriptions.add_many(XPATHS * 10):
            subscriptions.remove(added)


KINDS = [add_and_remove, first_in_first_out, the_same_id, other_subscribers, replaced, in_bulk]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_cycles_of_changes_leave_no_memory_behind(
    kind: Callable[[Subscriptions, int], None], request: pytest.FixtureRequest
) -> None:
    cycles = 1_000_000 if request.config.getoption("--long") else 3_500
    subscriptions = Subscriptions(tuning=Tuning(changed_rows=200, subscriber_names=100))
    subscriptions.add_many(XPATHS * 20)
    subscriptions.expansion()

    def most(begin: int, end: int) -> int:
        """The most memory held at some points of these cycles."""
        held = 0
        for cycle in range(begin, end):
            kind(subscriptions, cycle)
            subscriptions.expansion()
            if cycle % 293 == 0:
                gc.collect()
                held = max(held, tracemalloc.get_traced_memory()[0])
        return held

    gc.collect()
    gc.freeze()  # objects of other tests need not be scanned each time
    tracemalloc.start()
    try:
        early = most(0, 1500)
        late = most(1500, 1500 + cycles)
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    assert late < early + 20_000
    assert len(subscriptions) == 100 and len(subscriptions.table) == 5
