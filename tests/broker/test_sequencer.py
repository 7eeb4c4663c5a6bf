"""The sequencer: which requests share a batch, and when it waits for more."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from pathcast.broker.feed_index import FeedIndex
from pathcast.broker.sequencing.batch_processing import Hooks, Processed
from pathcast.broker.sequencing.sequencer import Sequencer
from pathcast.broker.sequencing.sequencer_requests import Accepted, Publication, PublishRequest, Rejected
from pathcast.broker_log import BrokerState
from pathcast.log import SqliteLog


class Observed:
    """A sequencer on a new log, with the sizes of its batches and how often it waited."""

    def __init__(self, folder: Path) -> None:
        self.log = SqliteLog(folder)
        self.batches: list[int] = []
        self.waits = 0
        indexes: dict[str, FeedIndex] = {}
        lock = threading.Lock()
        hooks = Hooks(
            lambda feed: indexes.setdefault(feed, FeedIndex()), lambda *_: lock, lambda _: None, self._processed
        )
        self.sequencer = Sequencer(self.log, BrokerState(), indexes, hooks, self._wait)

    def _processed(self, done: Processed) -> None:
        self.batches.append(sum(len(batch.sequences) for _, batch in done.matches))

    def _wait(self, seconds: float) -> None:
        self.waits += 1

    def publish(self, documents: int = 1) -> "Future[list[Accepted | Rejected]]":
        """Submit a publication."""
        future: Future[list[Accepted | Rejected]] = Future()
        bodies = [Publication(b"<a/>") for _ in range(documents)]
        self.sequencer.submit(PublishRequest("news", "ada", bodies, future, keep_invalid=False))
        return future


@pytest.fixture
def observed(tmp_path: Path) -> Iterator[Observed]:
    """A sequencer that has not started."""
    observed = Observed(tmp_path / "log")
    yield observed
    observed.sequencer.stop()
    observed.log.close()


def test_a_publisher_that_is_alone_never_waits(observed: Observed) -> None:
    observed.sequencer.start()
    for _ in range(5):
        observed.publish().result()
    assert observed.batches == [1] * 5
    assert observed.waits == 0


def test_after_a_batch_of_several_requests_the_next_waits_for_more(observed: Observed) -> None:
    together = [observed.publish() for _ in range(3)]
    observed.sequencer.start()
    for each in together:
        each.result()
    assert (observed.batches, observed.waits) == ([3], 1)
    observed.publish().result()
    assert (observed.batches, observed.waits) == ([3, 1], 2)
    observed.publish().result()
    assert (observed.batches, observed.waits) == ([3, 1, 1], 2)


def test_a_full_request_does_not_wait(observed: Observed) -> None:
    together = [observed.publish() for _ in range(2)]
    observed.sequencer.start()
    for each in together:
        each.result()
    observed.publish(64).result()
    assert (observed.batches, observed.waits) == ([2, 64], 1)
