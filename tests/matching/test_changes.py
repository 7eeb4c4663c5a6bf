"""Live changes: a view of the subscriptions never changes its meaning, whatever changes follow."""

import copy
import pickle
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pathcast import LimitError, PatternError, Subscriptions
from pathcast.matching import Tuning
from pathcast.matching.results.match_expansion import Expansion
from pathcast.matching.results.subscribers_of_document_batches import SubscriberRows

XPATHS = ["//a", "a", "/a/b", "//b[@x]", "//c", "/*", "//a[b or c]", "/", "/a//b", "//c[. = 1]"]
PEOPLE = [None, "ada", "bob", "cyd", "Dan", "eve"]
Contents = dict[int, tuple[int, str | None]]


# With this tuning, rows are laid out again after a few changes, and a few unused names are dropped.
LITTLE_ROOM = Tuning(changed_rows=7, subscriber_names=4, marked_ids=3)


@dataclass(frozen=True)
class View:
    """An expansion, and its expected content: the entry and the subscriber of each id."""

    expansion: Expansion
    contents: Contents

    def ids(self, entries: list[int]) -> list[int]:
        return sorted(number for number, (entry, _) in self.contents.items() if entry in entries)

    def people(self, entries: list[int]) -> list[str]:
        return sorted({person for entry, person in self.contents.values() if entry in entries and person is not None})

    def check(self, documents: list[list[int]]) -> None:
        """Expand documents with these entries in every possible way."""
        expansion = self.expansion
        assert expansion.ids.tolist() == sorted(self.contents)
        offsets = np.concatenate([[0], np.cumsum([len(entries) for entries in documents])]).astype(np.int64)
        together = np.array([entry for entries in documents for entry in entries], dtype=np.int32)
        id_offsets, ids = expansion.ids_of_all(offsets, together)
        ordered = expansion.ordered(id_offsets, ids.copy())
        subscribers = SubscriberRows(expansion)
        rank_offsets, ranks = subscribers.of_all(offsets, together)
        for index, entries in enumerate(documents):
            alone = np.array(entries, dtype=np.int32)
            wanted, people = self.ids(entries), self.people(entries)
            assert expansion.ids_of(alone).tolist() == wanted
            assert expansion.count(alone) == len(wanted)
            assert sorted(ids[slice(*id_offsets[index : index + 2])].tolist()) == wanted
            assert ordered[slice(*id_offsets[index : index + 2])].tolist() == wanted
            assert expansion.subscribers_of(alone) == people
            named = [subscribers.names[rank] for rank in ranks[slice(*rank_offsets[index : index + 2])]]
            assert named == people


def documents_over(entry_count: int) -> list[list[int]]:
    """Documents that match all, some, one or none of the entries, and entries that were added to the table later."""
    every = list(range(entry_count))
    return [
        every,
        every[::2],
        [],
        every[1::3],
        every[-1:],
        [*every, entry_count, entry_count + 50],
        [entry_count + 999],
    ]


class Model(RuleBasedStateMachine):
    """Subscriptions compared with a dictionary, over any history of changes, with views that are kept."""

    @initialize(start=st.integers(0, 3), shuffled=st.booleans())
    def begin(self, start: int, shuffled: bool) -> None:
        self.subscriptions = Subscriptions(tuning=LITTLE_ROOM)
        self.model: dict[int, tuple[str, str | None]] = {}
        self.next = 1
        self.version = 0
        self.views: list[View] = []
        self.listen()
        if start:
            ids = list(range(1, 20 * start + 1))
            self.add_many(ids[::-1] if shuffled else ids, XPATHS * 12, PEOPLE[1])

    def listen(self) -> None:
        """Follow the table's notifications."""
        table = self.subscriptions.table
        counts = self.subscriptions.live_counts()
        self.unused = {entry for entry, count in enumerate(counts.tolist()) if not count}

        def released(entry: int) -> None:
            assert entry not in self.unused
            self.unused.add(entry)

        def taken(entry: int) -> None:
            self.unused.remove(entry)

        table.released, table.taken = released, taken  # type: ignore[method-assign]

    def entry(self, xpath: str) -> int:
        known = len(self.subscriptions.table)
        entry, _ = self.subscriptions.table.enter_one(xpath)
        assert entry < known
        return entry

    def changed(self) -> None:
        self.version += 1
        assert self.subscriptions.version == self.version

    def add_many(self, ids: list[int], xpaths: list[str], person: str | None) -> None:
        self.subscriptions.add_many(xpaths[: len(ids)], [person] * len(ids), ids)
        self.model.update((number, (xpath, person)) for number, xpath in zip(ids, xpaths, strict=False))
        self.next = max([self.next, *(number + 1 for number in ids)])
        if ids:
            self.changed()

    xpaths = st.sampled_from(XPATHS)
    people = st.sampled_from(PEOPLE)

    @rule(xpath=xpaths, person=people | st.text("äzZ", min_size=1, max_size=3))
    def add(self, xpath: str, person: str | None) -> None:
        assert self.subscriptions.add(xpath, person) == self.next
        self.model[self.next] = xpath, person
        self.next += 1
        self.changed()

    @rule(xpath=xpaths, person=people, number=st.integers(1, 60))
    def add_own(self, xpath: str, person: str | None, number: int) -> None:
        if number in self.model:
            with pytest.raises(ValueError, match="in use"):
                self.subscriptions.add(xpath, person, number)
            return
        assert self.subscriptions.add(xpath, person, number) == number
        self.model[number] = xpath, person
        self.next = max(self.next, number + 1)
        self.changed()

    @rule(xpaths=st.lists(xpaths, max_size=25), person=people, start=st.integers(1, 60), downwards=st.booleans())
    def add_some(self, xpaths: list[str], person: str | None, start: int, downwards: bool) -> None:
        free = [number for number in range(start, start + 200) if number not in self.model][: len(xpaths)]
        self.add_many(free[::-1] if downwards else free, xpaths, person)

    @rule(xpaths=st.lists(xpaths | st.just("//a["), min_size=1, max_size=5))
    def add_good_ones(self, xpaths: list[str]) -> None:
        bad = self.subscriptions.add_many(xpaths, errors="collect")
        good = [xpath for xpath in xpaths if xpath != "//a["]
        assert len(bad) == len(xpaths) - len(good)
        for xpath in good:
            self.model[self.next] = xpath, None
            self.next += 1
        if good:
            self.changed()

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.model)))
        self.subscriptions.remove(number)
        del self.model[number]
        self.changed()

    @precondition(lambda self: len(self.model) > 8)
    @rule()
    def remove_most(self) -> None:
        for number in sorted(self.model)[2::-1] + sorted(self.model)[5:]:
            self.subscriptions.remove(number)
            del self.model[number]
            self.changed()

    @precondition(lambda self: self.model)
    @rule(data=st.data(), xpath=xpaths)
    def replace(self, data: st.DataObject, xpath: str) -> None:
        number = data.draw(st.sampled_from(sorted(self.model)))
        self.subscriptions.replace(number, xpath)
        self.model[number] = xpath, self.model[number][1]
        self.changed()

    @rule(
        call=st.sampled_from(
            [
                lambda s, missing: s.remove(missing),
                lambda s, missing: s.replace(missing, "//a"),
                lambda s, missing: s.replace(missing - 1, "//a["),
                lambda s, missing: s.add("|"),
                lambda s, missing: s.add("//a", ""),
                lambda s, missing: s.add("//a", id=0),
                lambda s, missing: s.add_many(["//a", "//new[", "//b"]),
                lambda s, missing: s.add_many(["//new"] * 2, ids=[missing, missing]),
            ]
        )
    )
    def fail(self, call: Callable[[Subscriptions, int], None]) -> None:
        with pytest.raises((KeyError, PatternError, ValueError)):
            call(self.subscriptions, max(self.model, default=0) + 1)
        assert self.subscriptions.version == self.version

    @rule(way=st.sampled_from(["state", "pickle", "copy"]))
    def go_through_a_snapshot(self, way: str) -> None:
        if way == "state":
            facts, arrays = self.subscriptions.state()
            for column in arrays.values():
                column.flags.writeable = False
            self.subscriptions = Subscriptions.restore(facts, arrays, LITTLE_ROOM)
        else:
            plain = copy.deepcopy if way == "copy" else lambda it: pickle.loads(pickle.dumps(it))
            for name in ("released", "taken"):
                delattr(self.subscriptions.table, name)
            self.subscriptions = plain(self.subscriptions)
        self.version = 0
        self.listen()

    @rule(random=st.randoms(use_true_random=False))
    def documents_come_with_entries_in_another_order(self, random: random.Random) -> None:
        rows, count = self.subscriptions.expansion().rows, len(self.subscriptions.table)
        order = random.sample(range(count), random.randint(0, count))
        rows.count_written(2 * len(rows.ids) + 1, np.array(order, dtype=np.int32))
        assert rows.single or not order or len(rows.by_group.ids) == len(rows.ids)

    @rule()
    def keep_a_view(self) -> None:
        contents = {number: (self.entry(xpath), person) for number, (xpath, person) in self.model.items()}
        expansion = self.subscriptions.expansion()
        assert expansion.version == self.version
        self.views.append(View(expansion, contents))
        del self.views[:-6]

    @invariant()
    def views_mean_what_they_meant(self) -> None:
        if hasattr(self, "views"):
            for view in self.views:
                view.check(documents_over(len(self.subscriptions.table)))

    @invariant()
    def holds_what_the_dictionary_holds(self) -> None:
        if hasattr(self, "model"):
            subscriptions = self.subscriptions
            assert {s.id: (s.xpath, s.subscriber) for s in subscriptions} == self.model
            assert len(subscriptions) == len(self.model)
            assert sorted(subscriptions.subscribers) == sorted({p for _, p in self.model.values() if p is not None})
            counts = Counter(self.entry(xpath) for xpath, _ in self.model.values())
            entry_count = len(subscriptions.table)
            assert subscriptions.live_counts().tolist() == [counts[entry] for entry in range(entry_count)]
            assert self.unused == {entry for entry in range(entry_count) if not counts[entry]}


TestAnyHistory = Model.TestCase
TestAnyHistory.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


@pytest.mark.parametrize("stride", [1, 3, 1000, 100_003])
def test_ids_ascend_however_far_apart_they_are(stride: int) -> None:
    chance = random.Random(stride)
    numbers = chance.sample(range(stride, 20_000 * stride, stride), 5000)
    subscriptions = Subscriptions(tuning=LITTLE_ROOM)
    subscriptions.add_many([f"//n{place % 50}" for place in range(5000)], ids=numbers)
    contents: Contents = {number: (place % 50, None) for place, number in enumerate(numbers)}
    documents = [sorted(chance.sample(range(51), size)) for size in (50, 1, 0, 20)]
    View(subscriptions.expansion(), dict(contents)).check(documents)
    contents[subscriptions.add("//n7")] = 7, None
    assert subscriptions.expansion().stamp == 1
    View(subscriptions.expansion(), contents).check(documents)


# Notifications of the table.


def told(subscriptions: Subscriptions) -> list[tuple[str, int]]:
    """The notifications that the table of the subscriptions receives from now on."""
    news: list[tuple[str, int]] = []
    table = subscriptions.table
    table.released = lambda entry: news.append(("released", entry))  # type: ignore[method-assign]
    table.taken = lambda entry: news.append(("taken", entry))  # type: ignore[method-assign]
    return news


def test_the_table_hears_of_entries_that_fall_free_and_are_taken_again() -> None:
    subscriptions = Subscriptions(tuning=LITTLE_ROOM)
    news = told(subscriptions)
    subscriptions.add_many(["//a", "//a", "//b"])
    subscriptions.remove(1)
    assert news == [], "one of two equal ones keeps the other"
    subscriptions.remove(2)
    subscriptions.add("a")
    subscriptions.remove(4)
    subscriptions.add_many(["//c", "//a", "//a"])
    assert news == [("released", 0), ("taken", 0)] * 2
    news.clear()
    subscriptions.replace(3, ".//b")
    assert news == [], "the same pattern in other words"
    subscriptions.replace(3, "//d")
    subscriptions.replace(3, "//b")
    assert news == [("released", 1), ("released", 3), ("taken", 1)]
    assert subscriptions.live_counts().tolist() == [2, 1, 1, 0]


def test_entries_of_subscriptions_that_get_no_ids_fall_free() -> None:
    subscriptions = Subscriptions(tuning=LITTLE_ROOM)
    subscriptions.add("//a", id=2**31 - 1)
    news = told(subscriptions)
    with pytest.raises(LimitError):
        subscriptions.add_many(["//a", "//b", "|", "//c[d]"], errors="collect")
    assert news == [("released", 1), ("released", 2)] and subscriptions.version == 1
    subscriptions.add_many(["//b", "//b"], ids=[1, 2])
    assert news[2:] == [("taken", 1)]


# Single calls.


def test_iterating_goes_on_while_subscriptions_are_removed() -> None:
    subscriptions = Subscriptions(tuning=LITTLE_ROOM)
    subscriptions.add_many([f"//n{number}" for number in range(300)])
    seen = []
    for subscription in subscriptions:
        seen.append(subscription.xpath)
        subscriptions.remove(subscription.id)
        if subscription.id == 5:
            subscriptions.remove(300)
    assert seen == [f"//n{number}" for number in range(299)] and len(subscriptions) == 0


def test_only_whole_numbers_are_looked_up() -> None:
    subscriptions = Subscriptions(tuning=LITTLE_ROOM)
    subscriptions.add("//a", id=9)
    assert subscriptions[np.int64(9)].xpath == "//a"  # type: ignore[index]
    for wrong in ("9", 9.0, None):
        with pytest.raises(TypeError):
            subscriptions.remove(wrong)  # type: ignore[arg-type]
    assert 9 in subscriptions


def test_texts_of_a_snapshot_survive_changes_around_them() -> None:
    subscriptions = Subscriptions(tuning=LITTLE_ROOM)
    subscriptions.add_many([f" //a[@k = {number}]" for number in range(200)])
    again = Subscriptions.restore(*subscriptions.state(), LITTLE_ROOM)
    again.replace(150, "//b")
    again.replace(151, " b")
    for number in range(1, 140):
        again.remove(number)
    again.add(" //z", id=5)
    assert [s.xpath for s in again][:12] == [f" //a[@k = {number}]" for number in range(139, 149)] + ["//b", " b"]
    assert again[5].xpath == " //z"
    assert [tuple(s) for s in Subscriptions.restore(*again.state())] == [tuple(s) for s in again]


def test_a_subscriber_without_subscriptions_is_not_listed() -> None:
    subscriptions = Subscriptions(tuning=LITTLE_ROOM)
    subscriptions.add_many(["//a"] * 4, ["bob", "ada", "bob", None])
    subscriptions.remove(1)
    assert subscriptions.subscribers == ["ada", "bob"]
    subscriptions.remove(2)
    assert subscriptions.subscribers == ["bob"]
