"""While the log is trimmed, publications continue: nothing of it that takes long is done in their way."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from pathcast.broker import Broker, Publication
from pathcast.broker.log_trimming import LogTrimming
from pathcast.broker_log import BrokerState, CheckpointPacking
from pathcast.log import ReadLeases, SqliteLog

from .broker_world import TENANT, broker_in, delivered, published, subscription

T = TypeVar("T")
_TEXT = "x" * 4_000


class _SlowLog(SqliteLog):
    """A log on a disk that hangs: what trimming does to it waits until the test lets it continue."""

    def __init__(self, folder: Path) -> None:
        self.begun, self.continues = threading.Event(), threading.Event()
        self.slow = "none"
        super().__init__(folder, segment_bytes=1 << 14)

    def _hang(self, what: str) -> None:
        if what == self.slow:
            self.begun.set()
            assert self.continues.wait(120)

    def write_checkpoint(self, sequence: int, *data: bytes) -> None:
        self._hang("checkpoint")
        super().write_checkpoint(sequence, *data)

    def trim(self, begin: int) -> int:
        self._hang("trim")
        return super().trim(begin)


@pytest.mark.parametrize("slow", ["checkpoint", "trim"])
def test_documents_are_published_while_the_files_are_written_and_removed(tmp_path: Path, slow: str) -> None:
    log = _SlowLog(tmp_path)
    with closing(Broker(log)) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = [published(broker, "news", f"<a>{_TEXT}</a>")[0] for _ in range(10)]
        log.slow, first = slow, list[int]()
        trimming = threading.Thread(target=lambda: first.append(broker.trim(sequences[-1])))
        trimming.start()
        try:
            assert log.begun.wait(60)
            assert broker.publish("news", [Publication(b"<a/>")] * 2).result(60)
            sequences += range(broker.matched_to - 1, broker.matched_to + 1)
            broker.subscribe(subscription("t", "//b")).result(60)
            assert broker.acknowledge(TENANT, "s", sequences[-1:])[0].result(60)
        finally:
            log.continues.set()
            trimming.join()
        assert 1 < first[0] <= sequences[9]
        left = [each for each in sequences if each >= first[0]]
    with broker_in(tmp_path) as broker:
        assert delivered(broker, "s", first[0] - 1) == left
        assert (TENANT, "t") in broker.state.subscriptions


def test_a_checkpoint_is_packed_some_thousand_subscriptions_at_a_time(tmp_path: Path) -> None:
    state, steps = BrokerState(), list[int]()
    log = SqliteLog(tmp_path)
    for number in range(5_000):
        state.apply(number + 1, subscription(f"s{number}", "//a"))
    packing: list[CheckpointPacking] = []

    def perform(work: Callable[[], T]) -> "Future[T]":
        """Between two of these, a broker carries out the batches that wait."""
        left = packing[0].left if packing else 0
        done: Future[T] = Future()
        done.set_result(work())
        result = done.result()
        if isinstance(result, CheckpointPacking):
            packing.append(result)
        elif packing:
            steps.append(left - packing[0].left)
        return done

    written = list[tuple[int, bytes]]()

    class Log(SqliteLog):
        def write_checkpoint(self, sequence: int, *data: bytes) -> None:
            written.append((sequence, b"".join(data)))

        def trim(self, begin: int) -> int:
            return begin

    log.close()
    with closing(Log(tmp_path)) as log:
        trimming = LogTrimming(log, state, ReadLeases(log), perform, lambda _: None)
        assert trimming.trim(5_001) == 5_001
    assert len(steps) >= 3
    assert max(steps) <= 2_000
    ((sequence, data),) = written
    assert sequence == 5_000
    assert len(BrokerState.restored(sequence, data).subscriptions) == 5_000


def test_a_broker_that_closes_lets_a_trim_end_first(tmp_path: Path) -> None:
    log = _SlowLog(tmp_path)
    broker = Broker(log)
    sequences = [published(broker, "news", f"<a>{_TEXT}</a>")[0] for _ in range(10)]
    log.slow, failures = "checkpoint", list[BaseException]()

    def trim() -> None:
        try:
            broker.trim(sequences[-1])
        except Exception as error:  # noqa: BLE001 - the test looks at it
            failures.append(error)

    trimming = threading.Thread(target=trim)
    trimming.start()
    assert log.begun.wait(60)
    log.slow = "none"
    closing_thread = threading.Thread(target=broker.close)
    closing_thread.start()
    while not broker._sequencer._stopped:
        pass
    log.continues.set()
    trimming.join()
    closing_thread.join()
    # The records may be gone; what the broker would forget with them goes with the process.
    assert [str(each) for each in failures] == ["the broker is stopping; try again once it has started"]
    with closing(SqliteLog(tmp_path)) as again:
        assert again.head == sequences[-1]
        checkpoint = again.checkpoint()
        assert checkpoint is not None
        assert checkpoint.sequence == again.head
