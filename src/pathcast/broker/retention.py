"""Retention: documents beyond what a feed keeps expire, and what the broker keeps no longer is trimmed, periodically.

    feed's age, bytes ──▶ expiry record: not delivered any more     ┐
    [log] keep_time, keep_bytes ────────────────────────────────────┴──▶ trim: removed from the log

The log removes whole segments. A feed's retention removes only those without a document that another feed keeps, so
documents stay on disk a little longer than they are delivered. A feed keeps at least the bytes that it was given, and a
64th of that more.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from pathcast.broker_log import ExpiryRecord, FeedRecord
from pathcast.errors import PathcastError
from pathcast.log import SqliteLog

from .broker import Broker
from .deliveries.feed_document_blocks import StoredDocuments

_EVERY_SECONDS: Final = 60.0
_LOGGER = logging.getLogger(__name__)


class Retention:
    """Expires and trims the documents of a broker in a thread of its own, until it is closed.

    keep_seconds, keep_bytes: what the log keeps of all feeds; None for everything.
    """

    def __init__(
        self,
        broker: Broker,
        keep_seconds: float | None = None,
        keep_bytes: int | None = None,
        *,
        every: float = _EVERY_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._broker = broker
        self._keep_seconds = keep_seconds
        self._keep_bytes = keep_bytes
        self._every = every
        self._clock = clock
        self._stored = StoredDocuments(broker.log)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._thread.join()

    def trim(self) -> int:
        """Expire and trim what is too old, or too much, now; returns the oldest sequence that is left."""
        log = self._broker.log
        begin = max(self._expire(), log.first)
        if self._keep_seconds is not None:
            begin = max(begin, self._since(self._keep_seconds))
        if self._keep_bytes is not None and isinstance(log, SqliteLog):
            begin = max(begin, log.holding(self._keep_bytes))
        return self._broker.trim(begin) if begin > log.first else log.first

    def _expire(self) -> int:
        """Append expiry records where feeds need them; returns the first document that a feed keeps."""
        state = self._broker.state
        feeds = state.feeds.copy()
        if not state.expired and all(
            record.keep_seconds is None and record.keep_bytes is None for record in feeds.values()
        ):
            return 1
        stored = self._stored
        stored.read({name: record.keep_bytes for name, record in feeds.items() if record.keep_bytes is not None})
        for name in tuple(stored.feeds):
            stored.drop_before(name, max(state.expired.get(name, 0), self._broker.log.first))
        records = []
        for name, record in feeds.items():
            before, first = self._kept_from(record), stored.first(name)
            if first is not None and before > first:
                records.append((name, before))
        if records:
            self._broker.change([ExpiryRecord(name, before) for name, before in records]).result()
        for name, before in records:
            stored.drop_before(name, before)
        return min((blocks[0].first for blocks in stored.feeds.values()), default=self._broker.log.head + 1)

    def _kept_from(self, record: FeedRecord) -> int:
        before = 1
        if record.keep_bytes is not None:
            before = self._stored.beyond(record.name, record.keep_bytes)
        return before if record.keep_seconds is None else max(before, self._since(record.keep_seconds))

    def _since(self, seconds: float) -> int:
        """The first sequence that is at most this old."""
        return self._broker.log.sequence_at(int((self._clock() - seconds) * 1_000_000))

    def _run(self) -> None:
        while not self._closed.wait(self._every):
            try:
                self.trim()
            except (PathcastError, OSError) as error:
                _LOGGER.warning("cannot trim the log: %s; the broker tries again later", error)
