"""The sequencer: one thread that gives everything its place in the log, a batch at a time.

    requests ──gather──▶ batch ──process (batch_processing.py)──▶ durable, matched, answered

A batch is what has arrived, and what arrives within 2 ms; the wait ends when nothing came for 0.3 ms. After a batch of
one request nothing is waited for, so a publisher that is alone never waits. A batch ends at 64 documents, or at 512 if
they are waiting already: its records are appended in one transaction, so the busier the broker, the more documents
share one fsync and one call of the matcher. A record that changes the settings of feeds, or replays deliveries, is a
batch of its own.

Invariant: every request that was submitted is completed or fails, whatever happens to the thread.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Final

from pathcast.broker_log import BrokerState
from pathcast.errors import PathcastError
from pathcast.log import Log

from ..feed_index import FeedIndex
from .batch_processing import BatchProcessing, Hooks, Processed
from .sequencer_requests import Request, fail, parts, weight

# How long a batch waits for more requests, in seconds: in all, and after the last one.
GATHER_SECONDS: Final = 0.002
IDLE_SECONDS: Final = 0.0003
# How many documents end the wait; the most documents and bytes per batch, if they are waiting already.
GATHER_DOCUMENTS: Final = 64
MOST_DOCUMENTS: Final = 512
MOST_BYTES: Final = 4 << 20
_LOGGER: Final = logging.getLogger(__name__)


class StoppedError(PathcastError):
    """The broker is stopping or has failed: the request was not carried out, or nobody knows whether it was."""


class Sequencer:
    """The thread that gathers requests into batches and has them processed."""

    def __init__(
        self,
        log: Log,
        state: BrokerState,
        indexes: dict[str, FeedIndex],
        hooks: Hooks,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`sleep` waits for further requests, for some seconds."""
        self._state = state
        self._hooks = hooks
        self._processing = BatchProcessing(log, state, indexes, hooks)
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._failure: PathcastError | None = None
        self._stopped = False
        self._sleep = sleep
        self._is_alone = True  # whether the last batch was one request
        self._submitting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="sequencer", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    @property
    def failure(self) -> PathcastError | None:
        """Why the sequencer no longer works."""
        return self._failure

    @property
    def waiting(self) -> int:
        """How many requests wait for a batch."""
        return self._requests.qsize()

    def submit(self, request: Request) -> None:
        """Queue a request; its future is completed by the sequencer."""
        with self._submitting:
            if self._stopped:
                raise self._failure or StoppedError("the broker is stopping; try again once it has started")
            self._requests.put(request)

    def stop(self) -> None:
        """Carry out what was submitted, then end."""
        with self._submitting:
            self._stopped = True
            self._requests.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        going = True
        while going:
            batch, going = self._gather()
            if not batch:
                continue
            try:
                for part in parts(batch):
                    self._processing.process(part)
            except BaseException as error:  # noqa: BLE001 - whatever it was, no request may wait forever
                self._give_up(batch, error)
                going = False

    def _give_up(self, batch: list[Request], error: BaseException) -> None:
        """Nobody knows what is in the log: fail everything; a restart reads the truth."""
        reason = f"an error stopped the broker: {error}; restart the broker"
        self._failure = StoppedError(reason)
        self._failure.__cause__ = error
        _LOGGER.critical("%s", reason, exc_info=error)
        with self._submitting:
            self._stopped = True
            waiting = batch
            while not self._requests.empty():
                request = self._requests.get()
                if request is not None:
                    waiting = [*waiting, request]
        for request in waiting:
            fail(request, self._failure)
        self._hooks.processed(Processed(self._state.head, [], self._all_changed(), 0))

    def _all_changed(self) -> list[tuple[str, str, str]]:
        """Every subscription: all waiting readers must see that the broker has failed."""
        standing = self._state.subscriptions.items()
        return [(tenant, id, each.record.subscriber) for (tenant, id), each in standing]

    def _gather(self) -> tuple[list[Request], bool]:
        """The next batch, and whether there may be another."""
        first = self._requests.get()
        if first is None:
            return [], False
        batch = [first]
        documents, size = weight(first)
        deadline = time.monotonic() + GATHER_SECONDS
        slept = self._is_alone
        while documents < MOST_DOCUMENTS and size < MOST_BYTES:
            try:
                request = self._requests.get_nowait()
            except queue.Empty:
                if slept or documents >= GATHER_DOCUMENTS or time.monotonic() >= deadline:
                    break
                # Not `get` with a timeout: before Python 3.12 it can miss a timeout this short and wait without end.
                self._sleep(IDLE_SECONDS)
                slept = True
                continue
            slept = False
            if request is None:
                return batch, False
            batch.append(request)
            more = weight(request)
            documents, size = documents + more[0], size + more[1]
        self._is_alone = len(batch) == 1
        return batch, True
