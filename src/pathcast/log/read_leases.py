"""Read leases: a reader of history holds back trimming for as long as it reads, and no longer than allowed.

A lease has a place, `begin`: records from there on stay. The reader moves the place forward as it reads, and so extends
the lease; but a lease ends at the latest `longest` seconds after it was taken, so that a reader that is stuck, or too
slow, cannot fill the disk. After that its reads may raise `TrimmedError`.

Leases are not durable: after a restart readers take new ones. Times are of a monotonic clock, in seconds.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock

from pathcast.errors import LimitError

from .log_contract import Log, TrimmedError


@dataclass(frozen=True)
class ReadLease:
    """Records from `begin` on stay until `expires`; `until` is the latest time to which it can be extended."""

    id: int
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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A lease lasts `seconds` unless it is extended, at most `longest`; there are at most `most` leases."""
        self._log = log
        self._seconds, self._longest, self._most = seconds, longest, most
        self._clock = clock
        self._lock = Lock()
        self._leases: dict[int, ReadLease] = {}
        self._last_id = 0

    def take(self, begin: int) -> ReadLease:
        """Keep records from `begin` on; `TrimmedError` if one of them was trimmed already."""
        with self._lock:
            now = self._drop_expired()
            if begin < (first := self._log.first):
                raise TrimmedError.before(begin, first)
            if len(self._leases) >= self._most:
                raise LimitError(f"{self._most} readers have leases on the log; try again later, or raise `most`")
            self._last_id += 1
            until = now + self._longest
            lease = ReadLease(self._last_id, begin, min(now + self._seconds, until), until)
            self._leases[lease.id] = lease
            return lease

    def extend(self, lease: ReadLease, begin: int) -> ReadLease | None:
        """Extend a lease, and release records before `begin`; None if the lease has ended."""
        with self._lock:
            now = self._drop_expired()
            held = self._leases.get(lease.id)
            if held is None:
                return None
            held = replace(held, begin=max(held.begin, begin), expires=min(now + self._seconds, held.until))
            self._leases[lease.id] = held
            return held

    def release(self, lease: ReadLease) -> None:
        """End a lease; ending it again does nothing."""
        with self._lock:
            self._leases.pop(lease.id, None)

    def held(self) -> list[ReadLease]:
        """The leases in force, oldest first."""
        with self._lock:
            self._drop_expired()
            return list(self._leases.values())

    def trim(self, begin: int) -> int:
        """Trim the log up to `begin`, or to the first record that a lease holds; return the new `first`."""
        with self._lock:
            self._drop_expired()
            return self._log.trim(min([begin, *(lease.begin for lease in self._leases.values())]))

    def _drop_expired(self) -> float:
        now = self._clock()
        for lease in [lease for lease in self._leases.values() if lease.expires <= now]:
            del self._leases[lease.id]
        return now
