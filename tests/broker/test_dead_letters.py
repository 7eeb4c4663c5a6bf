"""Dead letters: given up after `max_deliver` attempts, durable, never delivered again unless they are replayed."""

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from pathcast.broker import Broker, Gap
from pathcast.broker.sequencing.sequencer_requests import TaskRequest
from pathcast.broker_log import (
    BrokerState,
    CursorRecord,
    DeadLetter,
    DeadLetterRecord,
    SubscriptionRecord,
    TenantRecord,
    UnsubscriptionRecord,
)
from pathcast.broker_log.dead_letters import MOST, DeadLetters
from pathcast.log import SqliteLog

from .broker_world import TENANT, broker_in, published, subscription
from .served_broker import served


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def pulled(broker: Broker, most: int = 2, limit: int = 100) -> list[tuple[int, int]]:
    """What a pull leases: sequence and attempt."""
    found = broker.pull(TENANT, "s", limit, max_deliver=most)
    return [(each.entry.sequence, each.attempt) for each in found.deliveries]


def dead(broker: Broker) -> list[tuple[int, int, str]]:
    """The dead letters once everything that was asked for is done."""
    broker.bury(TENANT, "s", 1_000).result()
    found = broker.state.subscriptions[TENANT, "s"].dead
    return [] if found is None else [(each.sequence, each.attempts, each.reason) for each in found.letters.values()]


def acknowledge(broker: Broker, *sequences: int) -> None:
    future, unknown = broker.acknowledge(TENANT, "s", sequences)
    assert unknown == []
    future.result()


def test_a_delivery_that_was_tried_often_enough_is_given_up_also_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    with broker_in(tmp_path, clock=clock) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        first, second = published(broker, "news", "<a/>", "<a/>")
        assert pulled(broker) == [(first, 1), (second, 1)]
        acknowledge(broker, second)
        clock.now += 31
        assert pulled(broker) == [(first, 2)]
        clock.now += 31
        assert pulled(broker) == []
        assert dead(broker) == [(first, 2, "max_deliver")]
        clock.now += 1_000
        assert pulled(broker) == []
        assert broker.state.subscriptions[TENANT, "s"].own_cursor().floor >= second
    for _ in range(2):  # from the records, then from a checkpoint
        with broker_in(tmp_path) as broker:
            assert pulled(broker) == []
            assert dead(broker) == [(first, 2, "max_deliver")]


def test_a_replayed_dead_letter_is_due_until_it_is_acknowledged_also_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    with broker_in(tmp_path, clock=clock) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", *["<a/>"] * 4)
        pulled(broker, 1)
        acknowledge(broker, sequences[1])
        clock.now += 31
        assert pulled(broker, 1) == []
        given_up = [sequences[0], *sequences[2:]]
        assert dead(broker) == [(each, 1, "max_deliver") for each in given_up]
        future, revived, trimmed = broker.revive(TENANT, "s")
        future.result()
        assert (revived, trimmed, dead(broker)) == (given_up, 0, [])
        (new,) = published(broker, "news", "<a/>")
        assert pulled(broker, limit=2) == [(sequences[0], 1), (sequences[2], 1)]
        acknowledge(broker, sequences[0])
    for _ in range(2):
        with broker_in(tmp_path, clock=clock) as broker:
            assert pulled(broker) == [(sequences[2], 1), (sequences[3], 1), (new, 1)]
    with broker_in(tmp_path, clock=clock) as broker:
        pulled(broker, 1)
        acknowledge(broker, sequences[3], new)
        assert broker.state.subscriptions[TENANT, "s"].own_cursor().floor >= new
        clock.now += 31
        assert pulled(broker, 1) == []
        assert dead(broker) == [(sequences[2], 1, "max_deliver")]
    with broker_in(tmp_path) as broker:
        assert pulled(broker) == []


def test_revived_deliveries_obey_in_flight(tmp_path: Path) -> None:
    clock = Clock()
    with broker_in(tmp_path, clock=clock) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", *["<a/>"] * 5)
        pulled(broker, 1)
        clock.now += 31
        pulled(broker, 1)
        assert len(dead(broker)) == 5
        broker.revive(TENANT, "s")[0].result()
        found = broker.pull(TENANT, "s", 100, in_flight=3).deliveries
        assert [each.entry.sequence for each in found] == sequences[:3]
        assert broker.pull(TENANT, "s", 100, in_flight=3).deliveries == []


def test_a_replay_from_a_sequence_makes_dead_letters_after_it_ordinary_deliveries(tmp_path: Path) -> None:
    clock = Clock()
    with broker_in(tmp_path, clock=clock) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        first, second, third = published(broker, "news", *["<a/>"] * 3)
        pulled(broker, 1)
        clock.now += 31
        assert pulled(broker, 1) == []
        assert len(dead(broker)) == 3
        broker.change([CursorRecord(TENANT, "s", second - 1, replay=True)]).result()
        assert [each[0] for each in dead(broker)] == [first]
        assert pulled(broker) == [(second, 1), (third, 1)]


def test_a_due_delivery_whose_document_was_trimmed_is_a_dead_letter_and_a_gap(tmp_path: Path) -> None:
    clock = Clock()
    with broker_in(tmp_path, clock=clock) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        (first,) = published(broker, "news", "<a/>")
        # Later segments, so that there is something to trim.
        rest = [each for _ in range(4) for each in published(broker, "news", *[f"<a>{'x' * 8_000}</a>"] * 10)]
        assert pulled(broker, limit=1) == [(first, 1)]
        assert broker.trim(rest[-1]) > first
        broker.recent = type(broker.recent)(broker.log)  # as if it had been forgotten
        clock.now += 31
        found = broker.pull(TENANT, "s", 100, max_deliver=5)
        assert found.gap == Gap(first, broker.log.first)
        assert [each.entry.sequence for each in found.deliveries] == [each for each in rest if each >= broker.log.first]
        assert dead(broker) == [(first, 1, "trimmed")]
        future, revived, trimmed = broker.revive(TENANT, "s")
        future.result()
        assert (revived, trimmed) == ([], 1)
        assert broker.pull(TENANT, "s", 100, max_deliver=5).gap is None


def test_a_delivery_that_a_guard_masks_meanwhile_is_acknowledged(tmp_path: Path) -> None:
    clock = Clock()
    with broker_in(tmp_path, clock=clock) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        masked, visible = published(broker, "news", "<a/>", "<a b='1'/>")
        assert pulled(broker) == [(masked, 1), (visible, 1)]
        broker.change([TenantRecord(TENANT, "//a[@b]", "//a[@b]", {}, 1)]).result()
        clock.now += 31
        assert pulled(broker) == [(visible, 2)]
        assert dead(broker) == []
        cursor = broker.state.subscriptions[TENANT, "s"].own_cursor()
        assert not cursor.is_open(masked)
        assert cursor.is_open(visible)


@pytest.mark.parametrize("replay_first", [True, False])
def test_an_acknowledgement_and_a_replay_in_one_batch_act_in_their_order(tmp_path: Path, replay_first: bool) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        first, second = published(broker, "news", "<a/>", "<a/>")
        pulled(broker)
        replay = CursorRecord(TENANT, "s", first - 1, replay=True)
        steps: list[Callable[[], object]] = [
            lambda: broker.acknowledge(TENANT, "s", [first, second]),
            lambda: broker.change([replay]),
        ]
        in_one_batch(broker, steps[::-1] if replay_first else steps)
        assert pulled(broker) == ([] if replay_first else [(first, 1), (second, 1)])


def test_an_acknowledgement_is_not_of_a_subscription_that_got_the_same_name(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        first, second = published(broker, "news", "<a/>", "<a/>")
        pulled(broker)
        again: list[UnsubscriptionRecord | SubscriptionRecord] = [
            UnsubscriptionRecord(TENANT, "s"),
            subscription("s", "//a", begin=1),
        ]
        in_one_batch(
            broker,
            [lambda: broker.acknowledge(TENANT, "s", [first, second]), lambda: broker.change(again)],
        )
        assert pulled(broker) == [(first, 1), (second, 1)]


def in_one_batch(broker: Broker, steps: list[Callable[[], object]]) -> None:
    """Submit requests while the sequencer is busy, so that it gathers them together; wait until all are done."""
    held: Future[None] = Future()
    broker._sequencer.submit(TaskRequest(held.result))
    for step in steps:
        step()
    held.set_result(None)
    last = TaskRequest(held.result)
    broker._sequencer.submit(last)
    last.future.result()


def test_an_acknowledgement_that_comes_first_wins_over_giving_up(tmp_path: Path) -> None:
    clock = Clock()
    with broker_in(tmp_path, clock=clock) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        first, second = published(broker, "news", "<a/>", "<a/>")
        pulled(broker)
        clock.now += 31
        in_one_batch(
            broker,
            [lambda: broker.acknowledge(TENANT, "s", [first]), lambda: broker.bury(TENANT, "s", 1)],
        )
        assert dead(broker) == [(second, 1, "max_deliver")]


def test_dead_letters_are_bounded_and_paged() -> None:
    letters = DeadLetters()
    letters.add(DeadLetter(sequence, 1, "max_deliver") for sequence in range(1, MOST + 4))
    assert (len(letters.letters), letters.total) == (MOST, MOST + 3)
    page, more = letters.page(0, 2)
    assert ([each.sequence for each in page], more) == ([4, 5], True)
    page, more = letters.page(MOST + 1, 2)
    assert ([each.sequence for each in page], more) == ([MOST + 2, MOST + 3], False)


def test_a_checkpoint_has_the_dead_letters() -> None:
    state = BrokerState()
    state.apply(1, subscription("s", "//a"))
    letters = tuple(DeadLetter(each, 3, "max_deliver") for each in (5, 7))
    state.apply(9, DeadLetterRecord(TENANT, "s", letters))
    again = BrokerState.restored(9, state.checkpoint())
    assert again.subscriptions[TENANT, "s"].dead == state.subscriptions[TENANT, "s"].dead
    assert again.checkpoint() == state.checkpoint()


def test_dead_letters_over_http(tmp_path: Path) -> None:
    clock = Clock()
    with served(tmp_path, broker=Broker(SqliteLog(tmp_path), clock=clock)) as broker:
        http = broker.http
        http.put("/v1/subscriptions/s", json={"xpath": "//a", "config": {"max_deliver": 2}}).raise_for_status()
        sequences = [http.post("/v1/feeds/news/documents", content="<a/>").json()["sequence"] for _ in range(3)]
        one = "/v1/subscriptions/s"
        http.post(f"{one}:pull")
        http.post(f"{one}:nack", json={"sequences": sequences[:2]})
        http.post(f"{one}:pull")
        http.post(f"{one}:nack", json={"sequences": sequences[:1]})
        assert http.get(f"{one}/dead-letters").json() == {
            "dead_letters": [{"sequence": sequences[0], "attempts": 2, "reason": "max_deliver"}],
            "kept": 1,
            "total": 1,
        }
        clock.now += 31
        # The second had its last attempt, and its lease has run out: no pull is needed for it to be given up.
        assert http.get(f"{one}/status").json()["dead_letters"] == {"kept": 2, "total": 2}
        page = http.get(f"{one}/dead-letters?limit=1").json()
        assert page["next"] == sequences[0]
        (last,) = http.get(f"{one}/dead-letters?limit=1&after={page['next']}").json()["dead_letters"]
        assert last["sequence"] == sequences[1]
        replayed = http.post(f"{one}:replay", json={"dead_letters": True}).json()
        assert (replayed["replayed"], replayed["trimmed"], replayed["dead_letters"]["kept"]) == (2, 0, 0)
        found = http.post(f"{one}:pull").json()["deliveries"]
        assert [(each["sequence"], each["attempt"]) for each in found] == [
            (sequences[0], 1),
            (sequences[1], 1),
            (sequences[2], 2),
        ]
        assert http.post(f"{one}:replay", json={}).status_code == 422
        assert http.post(f"{one}:replay", json={"sequence": 1, "dead_letters": True}).status_code == 422
