"""The index of subscriptions' texts: searches agree with a look at every subscription, whatever changes meanwhile."""

import random
import threading

import pytest

from pathcast.broker.api.endpoints.subscription_search import Wanted, page
from pathcast.broker_log import BrokerState, SubscriptionRecord, UnsubscriptionRecord
from pathcast.broker_log.subscriptions.subscription_text_index import SubscriptionTextIndex

TENANT = "default"
EVERYBODY = Wanted(None)
# ß, the Kelvin sign and İ have other lengths, or become letters of ASCII, without case.
WORDS = ("rain", "RAIN", "Straße", "strasse", "K", "kelvin", "İ", "x\0y", "wind", "//a")


def record(id: str, subscriber: str, expression: str) -> SubscriptionRecord:
    return SubscriptionRecord(TENANT, id, subscriber, expression, "//a")


def all_pages(state: BrokerState, wanted: Wanted, limit: int, examined: int = 100) -> list[str]:
    """The ids on all pages of a search."""
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        step = page(state, TENANT, wanted, after, limit, examined=examined)
        assert len(step.subscriptions) <= limit
        found += [id for id, _ in step.subscriptions]
        after = step.next
    return found


def looked_at(state: BrokerState, wanted: Wanted) -> list[str]:
    """The same, from every subscription."""
    text = wanted.text.casefold()
    return sorted(
        id
        for (_, id), standing in state.subscriptions.items()
        if (wanted.subscribers is None or standing.record.subscriber in wanted.subscribers)
        and any(text in each.casefold() for each in (id, standing.record.subscriber, standing.record.expression))
    )


class Churn:
    """A state that changes at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.state = BrokerState()
        self.sequence = 0

    def change(self, times: int) -> None:
        for _ in range(times):
            self.sequence += 1
            id = self.random.choice(("s", "S", "ß")) + str(self.random.randrange(12_000))
            if self.random.random() < 0.2:
                self.state.apply(self.sequence, UnsubscriptionRecord(TENANT, id))
            else:
                subscriber = self.random.choice([word for word in WORDS if "\0" not in word])
                expression = f"//{'/'.join(self.random.choices(WORDS, k=2))}"
                self.state.apply(self.sequence, record(id, subscriber, expression))

    def wanted(self) -> Wanted:
        text = self.random.choice((*WORDS, "s11", "S1199", "ss1", "nothing", "y\0r", "n//", "a//"))
        return Wanted(self.random.choice((None, frozenset({"rain", "K"}))), text)


@pytest.mark.parametrize("seed", range(2))
def test_a_search_agrees_with_a_look_at_every_subscription(seed: int) -> None:
    churn = Churn(seed)
    churn.change(9_000)
    for size in (0, 1, 700, 3_000, 1, 6_000):
        churn.change(size)
        if size == 700:  # a restart from a snapshot: rows instead of objects
            churn.state = BrokerState.opened(churn.sequence, churn.state.arrays())
        for _ in range(4):
            wanted = churn.wanted()
            assert all_pages(churn.state, wanted, 7 if len(wanted.text) > 3 else 900) == looked_at(churn.state, wanted)


def test_a_search_after_a_restart_decodes_rows_without_keeping_them() -> None:
    churn = Churn(1)
    churn.change(9_000)
    state = BrokerState.opened(churn.sequence, churn.state.arrays())
    assert all_pages(state, Wanted(None, "nothing has this"), 50) == []
    assert state.subscriptions._objects == {}


def test_a_rare_text_is_found_with_one_page_once_the_index_is_made() -> None:
    state = BrokerState()
    for n in range(30_000):
        state.apply(n + 1, record(f"s{n:05}", "ada", f"//a{n}"))
    wanted = Wanted(None, "//a29999")
    assert all_pages(state, wanted, 50, 20_000) == ["s29999"]
    found = page(state, TENANT, wanted, "", 50)
    assert ([id for id, _ in found.subscriptions], found.next) == (["s29999"], None)


def test_what_was_put_before_a_search_is_found_while_others_put_more() -> None:
    state = BrokerState()
    for n in range(20_000):
        state.apply(n + 1, record(f"s{n:05}", "ada", "//a"))
    failures: list[tuple[int, list[str]]] = []
    done = 20_000

    def search() -> None:
        while done < 26_000:
            newest = done
            found = all_pages(state, Wanted(None, f"=w{newest}="), 50, 5_000)
            # Each text stands in one subscription, until that is put again, some time later.
            if newest > 20_000 and newest > done - 1_500 and len(found) != 1:
                failures.append((newest, found))

    searcher = threading.Thread(target=search)
    searcher.start()
    for n in range(20_001, 26_001):
        state.apply(n, record(f"s{n * 7 % 20_000:05}", "ada", f"//a[. = '=w{n}=']"))
        done = n
    searcher.join()
    assert failures == []


def test_a_page_compares_a_bounded_number_of_candidates() -> None:
    state = BrokerState()
    for n in range(6_000):
        state.apply(n + 1, record(f"s{n:04}", "ada" if n < 3_000 else "bob", "//a"))
    bobs = Wanted(frozenset({"bob"}), "//a")
    assert len(all_pages(state, bobs, 50, 1_000)) == 3_000
    found = page(state, TENANT, bobs, "", 50, examined=1_000)
    assert (found.subscriptions, found.next) == ([], "s0999")


def test_an_id_that_comes_while_a_segment_is_joined_is_a_candidate_once() -> None:
    ids = [f"s{n:04}" for n in range(5_000)]

    def after(_: str, position: str, most: int) -> list[str]:
        found = [id for id in ids if id > position][:most]
        if len(ids) == 5_000:  # they come once the ids have been read
            for id in ("s0001x", "s4999x"):
                ids.append(id)
                ids.sort()
                index.put(TENANT, id)
        return found

    index = SubscriptionTextIndex(after, lambda _, id: (id, "ada", "//a"))
    first = index.candidates(TENANT, "x", "")
    assert (list(first.ids), first.next, first.read) == (["s0001x"], "s4095", 4_096)
    last = index.candidates(TENANT, "x", "s4095")
    assert (list(last.ids), last.next) == (["s4999x"], None)


def test_candidates_stay_while_their_segment_is_forgotten() -> None:
    ids = [f"s{n:04}" for n in range(1_000)]
    index = SubscriptionTextIndex(lambda *_: list(ids), lambda _, id: (id, "ada", "//a"))
    found = index.candidates(TENANT, "s0999", "")
    for id in ids:
        index.put(TENANT, id)
    assert list(found.ids) == ["s0999"]
    assert index.candidates(TENANT, "s0999", "").read == 1_000


def test_an_index_that_nobody_searches_remembers_nothing() -> None:
    index = SubscriptionTextIndex(lambda *_: [], lambda *_: None)
    index.put(TENANT, "s1")
    assert index._of == {}
