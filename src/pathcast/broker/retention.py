"""Retention: documents that are older than the broker keeps them are trimmed from the log, periodically.

The log removes whole segments, so documents stay a little longer than configured, never shorter.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from pathcast.errors import PathcastError

from .broker import Broker

_EVERY_SECONDS: Final = 60.0
_LOGGER = logging.getLogger(__name__)


class Retention:
    """Trims the log of a broker in a thread of its own, until it is closed."""

    def __init__(
        self,
        broker: Broker,
        keep_seconds: float,
        *,
        every: float = _EVERY_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._broker = broker
        self._keep_seconds = keep_seconds
        self._every = every
        self._clock = clock
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._thread.join()

    def trim(self) -> int:
        """Trim what is too old now; returns the oldest sequence that is left."""
        log = self._broker.log
        begin = log.sequence_at(int((self._clock() - self._keep_seconds) * 1_000_000))
        return self._broker.trim(begin).result() if begin > log.first else log.first

    def _run(self) -> None:
        while not self._closed.wait(self._every):
            try:
                self.trim()
            except (PathcastError, OSError) as error:
                _LOGGER.warning("cannot trim the log: %s", error)
