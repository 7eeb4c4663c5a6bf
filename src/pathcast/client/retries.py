"""Retries: how long to wait after a failure, and when to give up.

Exponential back-off with full jitter, so that clients of a broker that restarts do not all come back at once. The
broker's `Retry-After` is the least that is waited.

Invariant: no wait ends later than `patience` seconds after the first failure since the last success.
"""

import random
import time
from collections.abc import Callable
from typing import Final

from pathcast.errors import PathcastError

from .broker_errors import UnreachableError

FIRST_SECONDS: Final = 0.1
MOST_SECONDS: Final = 10.0

OnRetry = Callable[[PathcastError, float], None]


class Retries:
    """The failures of one call, or of one stream, since its last success."""

    def __init__(self, patience: float, on_retry: OnRetry | None = None, most: float = MOST_SECONDS) -> None:
        self._patience = patience
        self._on_retry = on_retry
        self._most = most
        self._since: float | None = None
        self.failures = 0

    def succeeded(self) -> None:
        """An answer came: the next failure is the first."""
        self._since, self.failures = None, 0

    def seconds(self, error: PathcastError, at_least: float = 0.0) -> float:
        """The wait before the next attempt; raises an error if patience is over."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        left = self._since + self._patience - now
        if left <= at_least:
            if isinstance(error, UnreachableError) and self.failures:
                raise UnreachableError(f"{error.reason} (after {self.failures + 1} attempts)")
            raise error
        ceiling = min(self._most, FIRST_SECONDS * 2 ** min(self.failures, 16))
        self.failures += 1
        seconds = min(left, at_least + random.uniform(ceiling / 2, ceiling))
        if self._on_retry is not None:
            self._on_retry(error, seconds)
        return seconds
