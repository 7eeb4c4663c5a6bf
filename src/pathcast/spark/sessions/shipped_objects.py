"""Shipped: something small that workers need, sent with their function and unpacked once per process.

Spark gives the function of a stage to every task anew, with all that it refers to. What takes time to take apart, or
learns as it is used, travels as bytes and stays with the process that unpacked it. An index does not travel so: it is a
folder (`worker_index.py`).

PySpark broadcasts a function that has grown large, and its state functions can't open a broadcast; so what is large
lies in a file that every worker can read, named by its content. It is unpacked only if it has the digest that came with
the function, so that whoever can write to the folder can't make a worker run something else.

Invariant: equal bytes are unpacked once per process, as long as no more than `_KEPT` others were used since.
"""

import os
import pickle
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from pathcast.errors import PipelineError

T = TypeVar("T")
_KEPT = 8
# So many bytes travel with a function at most; PySpark broadcasts one from a million on.
MOST_BYTES = 256 << 10
# What this process has unpacked, the least recently used first.
_unpacked: dict[tuple[bytes, Any], Any] = {}


@dataclass(frozen=True, slots=True)
class Shipped:
    """An object as bytes."""

    data: bytes | None
    digest: bytes
    file: str | None = None

    @classmethod
    def of(cls, value: object) -> "Shipped":
        """Pack something that can be pickled."""
        data = pickle.dumps(value, protocol=5)
        return cls(data, blake2b(data, digest_size=16).digest())

    def lightened(self, folder: str | os.PathLike[str] | None, what: str) -> "Shipped":
        """The same in a file of a folder, if it is large; `PipelineError` when there is none to put it."""
        if self.data is None or len(self.data) <= MOST_BYTES:
            return self
        if folder is None:
            raise PipelineError(
                f"{what} take {len(self.data):,} bytes, too many to travel with the stage; give folder=…, a folder "
                "that every worker can read, to put them in (in a pipeline file: joins.versions)"
            )
        home = Path(folder).absolute()
        place = home / f"{self.digest.hex()}.pathcast"
        if not place.exists():
            home.mkdir(parents=True, exist_ok=True)
            fresh = place.with_name(f".{place.name}-{secrets.token_hex(8)}")
            fresh.write_bytes(self.data)
            fresh.replace(place)
        return Shipped(None, self.digest, str(place))

    def open(self, make: Callable[..., T], *more: Any) -> T:
        """What `make` makes of the object and of `more`; in each process made once."""
        key = self.digest, (make, *more)
        found = _unpacked.pop(key, None)
        if found is None:
            found = make(pickle.loads(self._bytes()), *more)  # noqa: S301 - what the driver packed
        _unpacked[key] = found
        while len(_unpacked) > _KEPT:
            del _unpacked[next(iter(_unpacked))]
        return found  # type: ignore[no-any-return]

    def _bytes(self) -> bytes:
        if self.data is not None:
            return self.data
        assert self.file is not None
        try:
            data = Path(self.file).read_bytes()
        except OSError as error:
            raise PipelineError(
                f"a Spark worker can't read {self.file} ({error.strerror}); choose a folder that every worker can read"
            ) from None
        if blake2b(data, digest_size=16).digest() != self.digest:
            raise PipelineError(f"{self.file} is not what the stage was made with")
        return data
