"""Deliveries that were read from a stream and acknowledged: the cursor follows, and its size is bounded."""

from pathlib import Path
from random import Random

import pytest
from msgspec import structs

from pathcast.broker import Broker
from pathcast.broker.deliveries.delivery_leases import AcknowledgementError
from pathcast.broker.sequencing.batch_records import Settled
from pathcast.broker.sequencing.sequencer_requests import Passed
from pathcast.broker_log import SubscriptionCursor

from .broker_world import TENANT, broker_in, published, subscription
from .served_broker import served


def cursor_of(broker: Broker) -> tuple[int, set[int]]:
    cursor = broker.state.subscriptions[TENANT, "s"].present_cursor()
    return cursor.floor, cursor.acknowledged


def acknowledged(broker: Broker, *sequences: int) -> None:
    future, unknown = broker.acknowledge(TENANT, "s", sequences)
    assert unknown == []
    future.result()


def pulled(broker: Broker) -> list[int]:
    return [each.entry.sequence for each in broker.pull(TENANT, "s", 1_000, in_flight=1_000).deliveries]


def test_the_cursor_follows_what_is_acknowledged_in_order(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", *["<a/>", "<b/>"] * 300)[::2]
        for sequence in sequences[:299]:
            acknowledged(broker, sequence)
            # What lies between two deliveries is passed, too.
            assert cursor_of(broker) == (sequence, set()) or cursor_of(broker) == (sequence + 1, set())
        assert pulled(broker) == sequences[299:]
    with broker_in(tmp_path) as broker:
        assert pulled(broker) == sequences[299:]


def test_what_is_acknowledged_out_of_order_is_bounded_by_in_flight(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        record = structs.replace(subscription("s", "//a"), config={"in_flight": 3})
        broker.subscribe(record).result()
        sequences = published(broker, "news", *["<a/>"] * 10)
        acknowledged(broker, *sequences[1:4])
        with pytest.raises(AcknowledgementError, match=f"acknowledge document {sequences[0]} first"):
            broker.acknowledge(TENANT, "s", [sequences[5]])
        assert cursor_of(broker) == (0, set(sequences[1:4]))
        acknowledged(broker, sequences[5], sequences[0])
        assert cursor_of(broker) == (sequences[3], {sequences[5]})
        assert pulled(broker) == [sequences[4], *sequences[6:]]


def test_an_acknowledgement_beyond_the_bound_is_status_409(tmp_path: Path) -> None:
    with served(tmp_path) as broker:
        broker.http.put("/v1/subscriptions/s", json={"xpath": "//a", "config": {"in_flight": 1}}).raise_for_status()
        sequences = [broker.http.post("/v1/feeds/news/documents", content="<a/>").json()["sequence"] for _ in range(3)]
        answer = broker.http.post("/v1/subscriptions/s:ack", json={"sequences": sequences[1:]})
        assert answer.status_code == 409
        assert f"acknowledge document {sequences[0]} first" in answer.json()["detail"]
        broker.http.post("/v1/subscriptions/s:ack", json={"sequences": sequences}).raise_for_status()
        assert broker.http.get("/v1/subscriptions/s/status").json()["cursor"] >= sequences[-1]


def test_a_gap_is_passed_only_with_a_delivery_after_it(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        for _ in range(20):
            published(broker, "news", *[f"<a>{'x' * 1_000}</a>"] * 10)
        first = broker.trim(150)
        assert first > 100
        left = [*range(first, broker.log.head + 1)]
        acknowledged(broker, left[1])
        assert cursor_of(broker)[0] < first - 1
        acknowledged(broker, left[0])
        assert cursor_of(broker) == (left[1], set())


def test_what_was_passed_counts_only_for_the_cursor_as_it_was() -> None:
    """A pull may have fetched more meanwhile, and a replay has made another cursor."""
    cursor = SubscriptionCursor.at(10)
    settled = Settled()
    settled.acknowledge([11, 12], Passed(cursor, 10, 12))
    assert settled.fetched(cursor) == 12
    assert settled.fetched(SubscriptionCursor.at(10)) == 10
    cursor.fetched = 11
    assert settled.fetched(cursor) == 11


def test_whatever_way_deliveries_come_and_are_acknowledged_each_comes_until_then(tmp_path: Path) -> None:
    """Streams and pulls of one subscription, mixed: what is left comes, and nothing else."""
    random = Random(5)
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        done: set[int] = set()
        all_: list[int] = []
        for _ in range(150):
            names = random.choices(["<a/>", "<b/>"], k=3)
            sequences = published(broker, "news", *names)
            all_ += [sequence for sequence, name in zip(sequences, names, strict=True) if name == "<a/>"]
            match random.randrange(3):
                case 0:
                    some = random.sample(all_, min(len(all_), 3))
                    acknowledged(broker, *some)
                    done.update(some)
                case 1:
                    came = [each.entry.sequence for each in broker.pull(TENANT, "s", 2, in_flight=1_000).deliveries]
                    assert not done.intersection(came)
                    acknowledged(broker, *came[:1])
                    done.update(came[:1])
                    broker.give_back(TENANT, "s", came[1:])
                case _:
                    left = [each for each in all_ if each not in done][:2]
                    acknowledged(broker, *left)
                    done.update(left)
            floor, above = cursor_of(broker)
            assert {each for each in all_ if each <= floor} <= done
            assert above <= done
            assert {each for each in done if each > floor} == above
        assert pulled(broker) == [each for each in all_ if each not in done]
