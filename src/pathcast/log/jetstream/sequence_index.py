"""Which message of the stream holds a record.

A message holds many records, and control messages hold none, so sequences of records and of messages differ. But both
ascend: with *end* the sequence of the last record up to and including a message, the message that holds record n is
the first one whose end is at least n. A bisection over messages finds it, between ends that are known already.

Cost: one known end per 64 messages; 6 requests for a record between two of them, up to 20 in a stream that this
process has not read yet.
"""

from bisect import bisect_left
from threading import Lock

_SPACING = 64


class SequenceIndex:
    """Ends of some messages, for any thread."""

    def __init__(self) -> None:
        self._change = Lock()
        self._messages: list[int] = []
        self._ends: list[int] = []

    def add(self, message: int, end: int) -> None:
        """Remember the end of a message, unless that of a near one is known."""
        with self._change:
            at = bisect_left(self._messages, message)
            near_before = at > 0 and message - self._messages[at - 1] < _SPACING
            if near_before or (at < len(self._messages) and self._messages[at] - message < _SPACING):
                return
            self._messages.insert(at, message)
            self._ends.insert(at, end)

    def around(self, sequence: int, before: int, last: int) -> tuple[int, int]:
        """Messages `low < high` of which the first ends before a record, and the second does not."""
        with self._change:
            at = bisect_left(self._ends, sequence)
            low = max(self._messages[at - 1], before) if at > 0 else before
            high = min(self._messages[at], last) if at < len(self._messages) else last
        return low, high

    def forget(self, before: int) -> None:
        """Forget messages that were trimmed."""
        with self._change:
            at = bisect_left(self._messages, before)
            del self._messages[:at], self._ends[:at]
