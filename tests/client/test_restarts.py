"""Clients of a broker that is killed in the middle of a publication and of a stream: nothing lost, nothing twice."""

import threading
import time
from pathlib import Path

import pytest

import pathcast
from pathcast.client import Delivery, Gap
from tests.broker.broker_process import BrokerProcess


@pytest.mark.slow
def test_streams_and_publications_survive_a_broker_that_is_killed(tmp_path: Path) -> None:
    accepted: list[int] = []
    received: list[Delivery | Gap] = []
    retried: list[float] = []
    with (
        BrokerProcess(tmp_path / "data") as broker,
        pathcast.connect(broker.address, on_retry=lambda _, seconds: retried.append(seconds)) as client,
    ):
        client.subscribe("all", "//n", ["kill"])
        events = client.events("all")

        def publish() -> None:
            for start in range(0, 12_000, 400):
                documents = [f"<n k='{number}'/>" for number in range(start, start + 400)]
                accepted.extend(each.sequence for each in client.publish("kill", documents))

        def read() -> None:
            received.extend(next(events) for _ in range(12_000))

        threads = [threading.Thread(target=each, daemon=True) for each in (publish, read)]
        for thread in threads:
            thread.start()
        for goal in (1_200, 4_800, 8_000):
            while len(accepted) < goal and threads[0].is_alive():
                time.sleep(0.002)
            broker.kill()
            broker.start()
        for thread in threads:
            thread.join(120)
        events.close()
    assert retried
    bodies = [each.body for each in received if isinstance(each, Delivery)]
    assert bodies == [b"<n k='%d'/>" % number for number in range(12_000)]
    assert [each.sequence for each in received if isinstance(each, Delivery)] == accepted
