"""A subscription's cursor: which deliveries are acknowledged, and which are out on a lease.

                    floor                     fetched
    ──────────────────┼──────────────────────────┼───────────────▶ sequences
     all acknowledged   acknowledged or leased     not yet fetched

`floor` and the acknowledged sequences above it are durable (they are records of the log); leases are not: after a
restart everything above the floor that is not acknowledged is delivered again. At most `in_flight` sequences above the
floor are acknowledged or leased, so a cursor's size is bounded.

A lease ends when it is acknowledged, given back (`nack`) or expired; then the delivery is fetched again, with
`attempt` one higher. Times are of a monotonic clock that the caller passes.
"""

import heapq
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct


class Lease(NamedTuple):
    """A delivery that somebody works on: until when, and for which time it was handed out."""

    expires: float
    attempt: int


class SubscriptionCursor(Struct, gc=False):
    """The cursor of one subscription."""

    floor: int
    acknowledged: set[int]
    fetched: int
    leases: dict[int, Lease]
    returned: list[tuple[float, int]]  # a heap of when a delivery may be handed out again, and its sequence
    attempts: dict[int, int]

    @classmethod
    def at(cls, floor: int, acknowledged: tuple[int, ...] = ()) -> "SubscriptionCursor":
        """A cursor without leases."""
        return cls(floor, set(acknowledged), floor, {}, [], {})

    @property
    def settled(self) -> int:
        """The sequence up to which nothing is left to do: all was acknowledged, or fetched and no delivery."""
        return self.floor if self.leases or self.returned else max(self.floor, self.fetched)

    def room(self, in_flight: int) -> int:
        """How many more deliveries may be fetched."""
        return max(0, in_flight - len(self.leases) - len(self.acknowledged) - len(self.returned))

    def due(self, now: float, limit: int) -> list[int]:
        """At most `limit` deliveries that are to be handed out again."""
        for sequence, lease in list(self.leases.items()):
            if lease.expires <= now:
                self.give_back(sequence, lease.expires)
        found: list[int] = []
        while self.returned and len(found) < limit and self.returned[0][0] <= now:
            found.append(heapq.heappop(self.returned)[1])
        return found

    def lease(self, sequence: int, expires: float) -> int:
        """Hand a delivery out; returns the number of this attempt, from 1."""
        attempt = self.attempts.get(sequence, 0) + 1
        self.attempts[sequence] = attempt
        self.leases[sequence] = Lease(expires, attempt)
        self.fetched = max(self.fetched, sequence)
        return attempt

    def give_back(self, sequence: int, when: float) -> bool:
        """End a lease without an acknowledgement: the delivery is due again at `when`. False if there is no lease."""
        if self.leases.pop(sequence, None) is None:
            return False
        heapq.heappush(self.returned, (when, sequence))
        return True

    def is_out(self, sequence: int) -> bool:
        """Whether a delivery was handed out and is not acknowledged yet."""
        return sequence in self.leases or any(found == sequence for _, found in self.returned)

    def after_acknowledging(self, sequences: Iterable[int]) -> tuple[int, tuple[int, ...]]:
        """Floor and acknowledged sequences above it once `sequences` are acknowledged; changes nothing.

        The floor never passes a sequence that was not fetched: there may be deliveries below it.
        """
        done = self.acknowledged.union(sequences)
        out = (*self.leases, *(found for _, found in self.returned))
        still_out = [sequence for sequence in out if sequence not in done]
        floor = max(self.floor, min(still_out) - 1 if still_out else self.fetched)
        return floor, tuple(sorted(sequence for sequence in done if sequence > floor))

    def move(self, floor: int, acknowledged: tuple[int, ...]) -> None:
        """Adopt a floor and the acknowledged sequences above it, as a record of the log has them."""
        done = set(acknowledged)
        self.floor, self.acknowledged = floor, done
        self.fetched = max(self.fetched, floor)
        for sequence in [found for found in self.leases if found <= floor or found in done]:
            del self.leases[sequence]
        kept = [(when, found) for when, found in self.returned if found > floor and found not in done]
        if len(kept) != len(self.returned):
            heapq.heapify(kept)
            self.returned = kept
        for sequence in [found for found in self.attempts if found <= floor or found in done]:
            del self.attempts[sequence]
