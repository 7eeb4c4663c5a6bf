"""Pages of subscriptions: ordered, searched, stable while subscriptions come and go."""

import json
import random
from collections.abc import Iterator

import pytest
from sortedcontainers import SortedList

from pathcast.broker.api.endpoints.subscription_search import page, wanted_by
from pathcast.broker.api.problems import ProblemError
from pathcast.broker.api.sender_access_rights import LOCAL, Access
from pathcast.broker_log import BrokerState, SubscriptionRecord, UnsubscriptionRecord
from pathcast.broker_log.subscriptions.ordered_subscription_ids import SubscriptionDirectory

from .served_broker import Served, served


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("search")) as found:
        lines = [
            json.dumps({"id": f"s{n:04}", "xpath": f"//a{n % 7}", "subscriber": ("ada", "bob")[n % 2]})
            for n in range(1_500)
        ]
        found.http.post("/v1/subscriptions", content="\n".join(lines)).raise_for_status()
        yield found


def listed(broker: Served, **given: object) -> list[str]:
    """The ids on all pages."""
    found: list[str] = []
    after = ""
    while True:
        answer = broker.http.get("/v1/subscriptions", params={**given, "after": after}).json()  # type: ignore[dict-item]
        found += [each["id"] for each in answer["subscriptions"]]
        if "next" not in answer:
            return found
        after = answer["next"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"limit": 400}, range(1_500)),
        ({"limit": 1_000, "subscriber": "bob"}, range(1, 1_500, 2)),
        ({"limit": 13, "q": "s00"}, range(100)),
        ({"limit": 50, "q": "//A3"}, range(3, 1_500, 7)),
        ({"limit": 1_000, "q": "BOB"}, range(1, 1_500, 2)),
        ({"limit": 100, "q": "//a3", "subscriber": "ada"}, range(10, 1_500, 14)),
        ({"q": "nothing like it"}, range(0)),
    ],
)
def test_pages_hold_every_subscription_that_fits_once_and_in_order(
    broker: Served, given: dict[str, object], expected: range
) -> None:
    assert listed(broker, **given) == [f"s{n:04}" for n in expected]


def test_a_list_has_a_total_and_a_search_has_none(broker: Served) -> None:
    assert broker.http.get("/v1/subscriptions", params={"subscriber": "ada"}).json()["total"] == 750
    assert "total" not in broker.http.get("/v1/subscriptions", params={"q": "s"}).json()
    assert broker.http.get("/v1/subscriptions", params={"q": "x" * 257}).status_code == 400


def state_with(count: int) -> BrokerState:
    state = BrokerState()
    for n in range(count):
        state.apply(n + 1, record(f"s{n:06}", ("ada", "bob", "eve")[n % 3]))
    return state


def record(id: str, subscriber: str, tenant: str = "default") -> SubscriptionRecord:
    return SubscriptionRecord(tenant, id, subscriber, "//a", "//a")


def test_a_page_reads_a_bounded_number_of_subscriptions() -> None:
    state = state_with(9_000)
    wanted = wanted_by(LOCAL, None, "s008999")
    pages, after = 0, ""
    while (found := page(state, "default", wanted, after, 10, examined=1_000)).next is not None:
        assert found.subscriptions == []
        after, pages = found.next, pages + 1
    assert pages == 2  # whole segments of the index of texts, of 4,096 each
    assert [id for id, _ in found.subscriptions] == ["s008999"]
    assert page(state, "default", wanted, "", 10, examined=1_000).next is None  # they are read once


def test_pages_continue_behind_an_id_while_others_come_and_go() -> None:
    state = state_with(3_000)
    wanted = wanted_by(LOCAL, None, "")
    kept, found, after, sequence = {f"s{n:06}" for n in range(0, 3_000, 2)}, list[str](), "", 3_000
    for n in range(1, 3_000, 2):
        state.apply(sequence := sequence + 1, UnsubscriptionRecord("default", f"s{n:06}"))
        if n % 100 == 1:
            state.apply(sequence := sequence + 1, record(f"s{n - 1:06}x", "ada"))
            step = page(state, "default", wanted, after, 97)
            found += [id for id, _ in step.subscriptions]
            after = step.next or "~"
    found += [id for id, _ in page(state, "default", wanted, after, 3_000).subscriptions]
    assert found == sorted(set(found))
    assert kept <= set(found)


def test_a_token_finds_the_subscriptions_of_its_subscribers_only() -> None:
    state = state_with(2_000)
    access = Access("default", "t", None, None, frozenset({"bob", "eve"}), False)
    found = page(state, "default", wanted_by(access, None, "s"), "", 2_000).subscriptions
    assert [id for id, _ in found] == [f"s{n:06}" for n in range(2_000) if n % 3]
    with pytest.raises(ProblemError):
        wanted_by(access, "ada", "")


def test_a_subscription_that_changes_hands_is_listed_under_its_new_subscriber() -> None:
    state = state_with(3)
    state.apply(4, record("s000000", "bob"))
    state.apply(5, record("s000000", "bob", tenant="other"))
    directory = state.directory
    assert directory.all_of("default", "ada") == []
    assert directory.all_of("default", "bob") == ["s000000", "s000001"]
    assert (directory.count("default"), directory.count("other"), directory.count("none")) == (3, 1, 0)
    assert directory.tenants() == {"default", "other"}
    restored = BrokerState.restored(5, state.checkpoint()).directory
    assert restored.after("default", "s000000", 9) == ["s000001", "s000002"]


def test_an_order_agrees_with_what_changed_while_it_was_made_and_after() -> None:
    generator = random.Random(1)
    known: set[str] = set()

    def change() -> None:
        for n in range(len(known), len(known) + 500):
            directory.add("t", "ada", f"{n:05}")
            known.add(f"{n:05}")
            gone = f"{generator.randrange(n + 1):05}"
            if gone in known:
                directory.remove("t", "ada", gone)
                known.remove(gone)

    def ordered(ids: list[str]) -> SortedList:
        found = SortedList(ids)
        change()
        return found

    directory = SubscriptionDirectory(ordered)
    for n in range(2_000):
        directory.add("t", "ada", f"{n:05}")
        known.add(f"{n:05}")
    assert directory.after("t", "", 30_000) == sorted(known)
    change()
    assert directory.after("t", "", 30_000) == sorted(known)
    assert directory.after("t", "", 30_000, "ada") == sorted(known)
    assert directory.after("t", "01000", 3) == [each for each in sorted(known) if each > "01000"][:3]
