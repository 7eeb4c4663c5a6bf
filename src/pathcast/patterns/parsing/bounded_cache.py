"""A memo: values by text, the ones in use kept, in bounded memory.

Two dictionaries: what is kept or found again goes into the `recent` one. When that has grown to half of the bound it
becomes the older one, and what was not asked for since the last change is forgotten.

Safe to use from several threads: a value that one of them forgets is made anew by another.
"""

from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")

# What a value takes, on the safe side: it is made of the text that it is kept under.
_BYTES_A_VALUE = 512
_BYTES_A_CHARACTER = 64


class Memo(Generic[Value]):
    """Values by text, in at most so many bytes."""

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
        """The value of a text, if it is kept; `recent.get` is quicker, but does not find all."""
        value = self.recent.get(text)
        if value is None:
            value = self._older.get(text)
            if value is not None:
                self.keep(text, value)
        return value

    def keep(self, text: str, value: Value) -> None:
        """Keep a value; one that alone would take an eighth of the room is not worth it."""
        size = _BYTES_A_VALUE + _BYTES_A_CHARACTER * len(text)
        if size > self._most // 8:
            return
        with self._lock:
            if self._bytes + size > self._most // 2:
                self._older, self.recent, self._bytes = self.recent, {}, 0
            if text not in self.recent:
                self.recent[text] = value
                self._bytes += size
