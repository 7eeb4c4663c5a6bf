"""When recent documents became durable, by their sequence: a reading per batch, of the last thousands of batches.

Older documents, and those of an earlier process, have none: the age of a replayed document does not show how fast the
broker delivers.
"""

import math
import threading
from bisect import bisect_left
from typing import Final

_BATCHES: Final = 8_192


class DurableTimes:
    """The sequencer's thread adds batches, any thread asks."""

    def __init__(self, head: int) -> None:
        # Entry 0 stands for everything before the batches that are remembered.
        self._heads = [head]
        self._times = [math.nan]
        self._lock = threading.Lock()

    def add(self, head: int, time: float) -> None:
        """All records up to `head` are durable."""
        with self._lock:
            self._heads.append(head)
            self._times.append(time)
            if len(self._heads) > 2 * _BATCHES:
                del self._heads[:_BATCHES], self._times[:_BATCHES]

    def ages(self, sequences: list[int], now: float) -> list[float]:
        """How long ago documents became durable, in seconds; those that are not recent are left out."""
        found: list[float] = []
        with self._lock:
            for sequence in sequences:
                batch = bisect_left(self._heads, sequence)
                if batch == len(self._heads):
                    found.append(0.0)  # a reader was faster than this list: the document is durable since just now
                elif batch:
                    found.append(max(0.0, now - self._times[batch]))
        return found
