"""Read leases: a reader of history holds back trimming for as long as it reads, and no longer than allowed.

A lease has a place, `begin`: records from there on stay. The reader moves the place forward as it reads, and so extends
the lease; but a lease ends at the latest `longest` seconds after it was taken, so that a reader that is stuck, or too
slow, cannot fill the disk. After that its reads may raise `TrimmedError`.

Leases are not durable: after a restart readers take new ones. `grace` gives them the time to do so: nothing is trimmed
during the first `grace` seconds. Ids are random, so the id of a lease that a restart ended is never that of another.
Times are of a monotonic clock, in seconds.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock

from pathcast.errors import LimitError

from .log_contract import Log, TrimmedError


@dataclass(frozen=True)
class ReadLease:
    """Records from `begin` on stay until `expires`; `until` is the latest time to which it can be extended."""

    id: str
    begin: int
    expires: float
    until: float


class ReadLeases:
    """The leases on one log. All methods may be called in any thread.

    Trim the log with `ReadLeases.trim` only: then a lease that was granted holds.
    """

    def __init__(
        self,
        log: Log,
        *,
        seconds: float = 60.0,
        longest: float = 3600.0,
        most: int = 1000,
        grace: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A lease lasts `seconds` unless it is extended, at most `longest`; there are at most `most` leases.

        For the first `grace` seconds nothing is trimmed.
        """
        self.longest = longest
        self._log = log
        self._seconds, self._most = seconds, most
        self._clock = clock
        self._lock = Lock()
        self._leases: dict[str, ReadLease] = {}
        self._trims_from = clock() + grace

    def take(self, begin: int | None = None, seconds: float | None = None) -> ReadLease:
        """Keep records from `begin` on, or all there are; `TrimmedError` if one of them was trimmed already.

        `seconds`: how long the lease lasts unless it is extended, if not the usual time.
        """
        with self._lock:
            now = self._drop_expired()
            first = self._log.first
            if begin is None:
                begin = first
            if begin < first:
                raise TrimmedError.before(begin, first)
            if len(self._leases) >= self._most:
                raise LimitError(
                    f"all {self._most} read leases of the log are in use; try again later, or raise `leases` in [log] "
                    "of the broker file"
                )
            until = now + self.longest
            expires = now + (self._seconds if seconds is None else seconds)
            lease = ReadLease(secrets.token_hex(8), begin, min(expires, until), until)
            self._leases[lease.id] = lease
            return lease

    def extend(self, id: str, begin: int = 0) -> ReadLease | None:
        """Extend a lease, and release records before `begin`; None if the lease has ended."""
        with self._lock:
            now = self._drop_expired()
            held = self._leases.get(id)
            if held is None:
                return None
            expires = max(held.expires, min(now + self._seconds, held.until))
            held = replace(held, begin=max(held.begin, begin), expires=expires)
            self._leases[id] = held
            return held

    def release(self, id: str) -> bool:
        """End a lease; False if it has ended already."""
        with self._lock:
            return self._leases.pop(id, None) is not None

    def __len__(self) -> int:
        """The leases, without waiting for a trim; some may have expired."""
        return len(self._leases)

    def seconds_left(self, lease: ReadLease) -> tuple[float, float]:
        """The seconds until a lease expires unless it is extended, and until it expires in any case."""
        now = self._clock()
        return max(0.0, lease.expires - now), max(0.0, lease.until - now)

    def held(self) -> list[ReadLease]:
        """The leases in force, oldest first."""
        with self._lock:
            self._drop_expired()
            return list(self._leases.values())

    def trim(self, begin: int) -> int:
        """Trim the log up to `begin`, or to the first record that a lease holds; return the new `first`."""
        with self._lock:
            if self._drop_expired() < self._trims_from:
                return self._log.first
            return self._log.trim(min([begin, *(lease.begin for lease in self._leases.values())]))

    def _drop_expired(self) -> float:
        now = self._clock()
        for lease in [lease for lease in self._leases.values() if lease.expires <= now]:
            del self._leases[lease.id]
        return now
