"""Shipped objects: small objects for workers, sent with their function and unpacked once per process.

Spark sends the function of a stage to every task again, with everything that it refers to. An object that is slow to
unpack, or that learns as it is used, travels as bytes within the function and stays in the process that unpacked it.
The bytes may be a pickle: an attacker who could change them could change the function as well. Nothing on disk is a
pickle: an index is a folder (`worker_index.py`), and so are many subscriptions to joins
(`worker_join_subscriptions.py`).

Invariant: equal bytes are unpacked once per process, as long as no more than `_KEPT` others were used since.
"""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

T = TypeVar("T")
_KEPT = 8
# Objects that this process has unpacked, the least recently used first.
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
        """The result of `make` for the object and `more`, computed once per process."""
        key = self.digest, (make, *more)
        found = _unpacked.pop(key, None)
        if found is None:
            found = make(pickle.loads(self.data), *more)  # noqa: S301 - a part of the function that runs here
        _unpacked[key] = found
        while len(_unpacked) > _KEPT:
            del _unpacked[next(iter(_unpacked))]
        return found  # type: ignore[no-any-return]
