"""A cache of values by text, in bounded memory, that evicts unused values.

Two dictionaries: a value that is stored or found again moves to `recent`. When `recent` reaches half of the bound, it
becomes the older dictionary, and the previous older one, which holds the values not used since, is dropped.

Safe to use from several threads: if one thread evicts a value, another computes it again.
"""

from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")

# A safe estimate of a value's size: the value is built from the text that it is stored under.
_BYTES_A_VALUE = 512
_BYTES_A_CHARACTER = 64


class Memo(Generic[Value]):
    """Values by text, in at most `most` bytes."""

    __slots__ = ("_bytes", "_lock", "_most", "_older", "recent")

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._lock = Lock()
        self._older: dict[str, Value] = {}
        self.recent: dict[str, Value] = {}

    def __len__(self) -> int:
        return len(self.recent.keys() | self._older.keys())

    def get(self, text: str) -> Value | None:
        """The cached value of a text, or None; `recent.get` is quicker, but does not find all values."""
        value = self.recent.get(text)
        if value is None:
            value = self._older.get(text)
            if value is not None:
                self.keep(text, value)
        return value

    def keep(self, text: str, value: Value) -> None:
        """Store a value, unless it alone would take an eighth of the bound."""
        size = _BYTES_A_VALUE + _BYTES_A_CHARACTER * len(text)
        if size > self._most // 8:
            return
        with self._lock:
            if self._bytes + size > self._most // 2:
                self._older, self.recent, self._bytes = self.recent, {}, 0
            if text not in self.recent:
                self.recent[text] = value
                self._bytes += size
