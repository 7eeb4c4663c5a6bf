"""Shipped: something small that workers need, sent with their function and unpacked once per process.

Spark gives the function of a stage to every task anew, with all that it refers to. What takes time to take apart, or
learns as it is used, travels as bytes within the function and stays with the process that unpacked it. Whoever could
change the bytes could change the function, so they may be a pickle. What lies on disk is never one: an index is a
folder (`worker_index.py`), and so are many subscriptions to joins (`worker_subscriptions.py`).

Invariant: equal bytes are unpacked once per process, as long as no more than `_KEPT` others were used since.
"""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

T = TypeVar("T")
_KEPT = 8
# What this process has unpacked, the least recently used first.
_unpacked: dict[tuple[bytes, Any], Any] = {}


@dataclass(frozen=True, slots=True)
class ShippedObject:
    """An object as bytes."""

    data: bytes
    digest: bytes

    @classmethod
    def of(cls, value: object) -> "ShippedObject":
        """Pack something that can be pickled."""
        data = pickle.dumps(value, protocol=5)
        return cls(data, blake2b(data, digest_size=16).digest())

    def open(self, make: Callable[..., T], *more: Any) -> T:
        """What `make` makes of the object and of `more`; in each process made once."""
        key = self.digest, (make, *more)
        found = _unpacked.pop(key, None)
        if found is None:
            found = make(pickle.loads(self.data), *more)  # noqa: S301 - a part of the function that runs here
        _unpacked[key] = found
        while len(_unpacked) > _KEPT:
            del _unpacked[next(iter(_unpacked))]
        return found  # type: ignore[no-any-return]
