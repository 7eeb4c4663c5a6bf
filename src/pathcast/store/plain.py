"""Plain values as bytes: numbers, texts, bytes, None, dates, and tuples, lists and dicts of these; nothing else.

The bytes are a pickle, which C code writes and reads faster than anything that could be built here. But a pickle is a
program: it may name any function and have it called, ask for gigabytes by a length or a number in a few bytes, double a
value at each step, or nest it until hashing it overflows the stack. So bytes are looked over first, by a kernel
(`plain_kernels.py`), and only what operations of our own writer within bounds are is given to pickle. Names are looked
up in a table that has two, `date` and `datetime`.

Invariant: `read_plain(write_plain(value)) == value`, with types kept, for values that nest at most 100 levels. What is
not such bytes is a `SnapshotError`. Whoever can write the bytes can make the reader's values wrong, or none, but can't
make it run code, nor take more than some hundred bytes of memory for each of theirs. Time is bounded less well: keys of
a dict can be chosen to collide.
Cost: some 3 µs a call, and 0.1 µs a value.
"""

import io
import pickle
from datetime import date, datetime
from typing import Any

import numpy as np

from pathcast.errors import SnapshotError

from .plain_kernels import REFUSED, ROOM, look_over

_NAMED = {("datetime", "date"): date, ("datetime", "datetime"): datetime}
# What reading bytes that nobody of ours wrote may raise, by the documentation of pickle and by trying.
_FAILURES = (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError, OverflowError)


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
        if _looked_over(data):
            return _Reader(io.BytesIO(data)).load()
        return pickle.loads(data)  # noqa: S301 - it has no names, so nothing can be called
    except _FAILURES as error:
        raise SnapshotError(f"{what} can't be read: {error}") from None


def _looked_over(data: bytes) -> int:
    """Whether names are looked up in bytes that may be read; `ValueError` for others."""
    given = np.frombuffer(data, np.uint8)
    # A value of our own takes some ten bytes.
    room = 1000 + len(data) // 4
    found = look_over(given, np.empty(room, np.int64), np.empty(room, np.int32))
    if found == ROOM:
        room = 2 + len(data)
        found = look_over(given, np.empty(room, np.int64), np.empty(room, np.int32))
    if found < 0:
        raise ValueError(f"byte {REFUSED - found} begins nothing that plain values have")
    return int(found)
