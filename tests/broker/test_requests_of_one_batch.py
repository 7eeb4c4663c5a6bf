"""Requests that the sequencer carries out together: each has the effect of its place in the log."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pathcast.broker import Broker
from pathcast.broker.sequencing.sequencer_requests import TaskRequest
from pathcast.broker_log import CursorRecord, FeedRecord
from pathcast.log import LogFullError

from .broker_world import TENANT, broker_in, delivered, published, subscription

PATIENCE = 60


@contextmanager
def held(broker: Broker) -> Iterator[None]:
    """What is asked for meanwhile is carried out afterwards, together."""
    go_on = threading.Event()
    broker._sequencer.submit(TaskRequest(lambda: go_on.wait(PATIENCE)))
    try:
        yield
    finally:
        go_on.set()


def pulled(broker: Broker) -> list[int]:
    return [each.entry.sequence for each in broker.pull(TENANT, "s", 100).deliveries]


@pytest.mark.parametrize("together", [True, False])
def test_an_acknowledgement_is_not_of_the_subscription_that_gets_the_same_id(tmp_path: Path, together: bool) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", "<a/>", "<a/>")
        assert pulled(broker) == sequences
        with held(broker):
            if together:
                acknowledged, _ = broker.acknowledge(TENANT, "s", sequences)
            broker.unsubscribe(TENANT, "s")
            created = broker.subscribe(subscription("s", "//a", begin=1))
            if not together:  # the settings of a feed are a batch of their own
                broker.change([FeedRecord("other")])
                acknowledged, _ = broker.acknowledge(TENANT, "s", sequences)
        acknowledged.result(PATIENCE)
        created.result(PATIENCE)
        assert pulled(broker) == sequences


def test_what_was_replayed_meanwhile_does_not_become_a_dead_letter(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", "<a/>")
        broker.give_back(TENANT, "s", pulled(broker))
        with held(broker):
            replayed = broker.change([CursorRecord(TENANT, "s", 0, replay=True)])
            buried = broker.bury(TENANT, "s", 1)
        replayed.result(PATIENCE)
        buried.result(PATIENCE)
        assert broker.state.subscriptions[TENANT, "s"].dead is None
        assert pulled(broker) == sequences


def test_a_batch_that_does_not_fit_the_disk_leaves_no_patterns_and_no_feeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broker_in(tmp_path) as broker:
        published(broker, "news", "<a/>")

        def full(records: Any) -> int:
            raise LogFullError("no space left")

        with monkeypatch.context() as patch:
            patch.setattr(broker.log, "append", full)
            failed = [
                broker.subscribe(subscription("s", "//a")),
                broker.subscribe(subscription("t", "//a", ("trades",))),
            ]
            for each in failed:
                with pytest.raises(LogFullError):
                    each.result(PATIENCE)
        assert {name: len(index) for name, index in broker.indexes.items()} == {"news": 0}
        broker.subscribe(subscription("s", "//a")).result()
        broker.unsubscribe(TENANT, "s").result()
        assert {name: len(index) for name, index in broker.indexes.items()} == {"news": 0}
        broker.subscribe(subscription("s", "//a")).result()
        (sequence,) = published(broker, "news", "<a/>")
        assert delivered(broker, "s") == [sequence]
