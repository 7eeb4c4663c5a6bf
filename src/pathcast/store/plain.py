"""Plain values as bytes: numbers, texts, bytes, None, dates, and tuples, lists and dicts of these; nothing else.

The bytes are a pickle, which C code writes and reads faster than anything that could be built here. A pickle may name
any class or function, and reading it calls them; so reading looks names up in a table that has two, `date` and
`datetime`. Whoever can write the bytes can thus make the reader's values wrong, or none, but can't make it run code.
Memory is not bounded: a few forged bytes can make a pickle's reader ask for gigabytes.

Invariant: `read_plain(write_plain(value)) == value`, with types kept. What is not such bytes is a `SnapshotError`.
Cost: some 2 µs a call, and 0.1 µs a value.
"""

import io
import pickle
from datetime import date, datetime
from typing import Any

from ..errors import SnapshotError

_NAMED = {("datetime", "date"): date, ("datetime", "datetime"): datetime}
# What reading bytes that nobody of ours wrote may raise, by the documentation of pickle and by trying.
_FAILURES = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError, OverflowError, MemoryError
)  # fmt: skip


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = _NAMED.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} is no plain value")
        return found


def write_plain(value: Any) -> bytes:
    """The bytes of plain values."""
    return pickle.dumps(value, protocol=5)


def read_plain(data: bytes, what: str) -> Any:
    """What `write_plain` wrote; `what` names it in the error when these are other bytes."""
    try:
        return _Reader(io.BytesIO(data)).load()
    except _FAILURES as error:
        raise SnapshotError(f"{what} can't be read: {error}") from None
