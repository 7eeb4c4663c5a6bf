"""A subscription's cursor: which deliveries are acknowledged, and which are out on a lease.

                    floor                     fetched
    ──────────────────┼──────────────────────────┼───────────────▶ sequences
     all acknowledged   acknowledged or leased     not yet fetched

`floor` and the acknowledged sequences above it are durable (they are records of the log); leases are not: after a
restart everything above the floor that is not acknowledged is delivered again. At most `in_flight` sequences above the
floor are acknowledged or leased, so a cursor's size is bounded.

A lease ends when it is acknowledged, given back (`nack`) or expired; then the delivery is fetched again, with
`attempt` one higher. Times are of a monotonic clock that the caller passes.

*Revived* sequences are dead letters that were replayed (dead_letters.py): due again whatever the floor is, and durable
until they are settled. Floor and acknowledged set do not depend on them.
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
    revived: set[int]
    waiting: list[int]  # a heap of the revived sequences that have not been handed out since

    @classmethod
    def at(cls, floor: int, acknowledged: tuple[int, ...] = (), revived: tuple[int, ...] = ()) -> "SubscriptionCursor":
        """A cursor without leases."""
        return cls(floor, set(acknowledged), floor, {}, [], {}, set(revived), sorted(revived))

    @property
    def settled(self) -> int:
        """The sequence up to which nothing is left to do: all was acknowledged, or fetched and no delivery."""
        return self.floor if self.leases or self.returned else max(self.floor, self.fetched)

    def room(self, in_flight: int) -> int:
        """How many more deliveries may be fetched."""
        return max(0, in_flight - len(self.leases) - len(self.acknowledged) - len(self.returned))

    def due(self, now: float, limit: int) -> list[int]:
        """At most `limit` deliveries that are to be handed out again."""
        self.expire(now)
        found: list[int] = []
        while self.returned and len(found) < limit and self.returned[0][0] <= now:
            found.append(heapq.heappop(self.returned)[1])
        return found

    def expire(self, now: float) -> None:
        """End the leases that have run out."""
        for sequence, lease in list(self.leases.items()):
            if lease.expires <= now:
                self.give_back(sequence, lease.expires)

    def exhausted(self, now: float, most: int, hold: float) -> list[tuple[int, int]]:
        """Deliveries handed out `most` times and not acknowledged, with their attempts.

        They stay out on a lease of `hold` seconds, so that nobody gets them while they become dead letters.
        """
        self.expire(now)
        found = [
            (sequence, self.attempts[sequence]) for _, sequence in self.returned if self.attempts[sequence] >= most
        ]
        if found:
            gone = {sequence for sequence, _ in found}
            self.returned = [each for each in self.returned if each[1] not in gone]
            heapq.heapify(self.returned)
            self.leases |= {sequence: Lease(now + hold, attempts) for sequence, attempts in found}
        return sorted(found)

    def revive(self, sequences: Iterable[int]) -> None:
        """Make dead letters due again."""
        new = set(sequences) - self.revived
        self.revived |= new
        self.waiting = sorted({*self.waiting, *new})

    def take_revived(self, limit: int) -> list[int]:
        """At most `limit` revived deliveries that have not been handed out since."""
        taken, self.waiting = self.waiting[:limit], self.waiting[limit:]
        return taken

    def is_open(self, sequence: int) -> bool:
        """Whether an acknowledgement of this sequence would change anything."""
        return sequence in self.revived or (sequence > self.floor and sequence not in self.acknowledged)

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

    def withdraw(self, sequence: int, when: float) -> None:
        """End a lease whose delivery was not tried: due again at `when`, as if it had not been handed out."""
        if self.give_back(sequence, when):
            self.attempts[sequence] -= 1

    def out(self) -> set[int]:
        """The deliveries that were handed out and are not acknowledged yet, and those that are revived."""
        return {*self.leases, *self.revived, *(sequence for _, sequence in self.returned)}

    def is_out(self, sequence: int) -> bool:
        """Whether a delivery was handed out and is not acknowledged yet, or is revived."""
        return (
            sequence in self.leases or sequence in self.revived or any(found == sequence for _, found in self.returned)
        )

    def may_die(self, sequence: int, attempts: int) -> bool:
        """Whether a delivery that was given up after some attempts is still in that condition."""
        return self.is_out(sequence) and self.attempts.get(sequence, 0) >= attempts

    def after_acknowledging(self, sequences: Iterable[int], fetched: int = 0) -> tuple[int, tuple[int, ...]]:
        """Floor and acknowledged sequences above it once `sequences` are acknowledged; changes nothing.

        The floor never passes a sequence that was not fetched: there may be deliveries below it. Up to `fetched` all
        deliveries are known, too.
        """
        done = self.acknowledged.union(sequences)
        out = (*self.leases, *(found for _, found in self.returned))
        still_out = [sequence for sequence in out if sequence not in done and sequence not in self.revived]
        floor = max(self.floor, min(still_out) - 1 if still_out else max(fetched, self.fetched))
        return floor, tuple(sorted(sequence for sequence in done if sequence > floor))

    def move(self, floor: int, acknowledged: tuple[int, ...], settled: tuple[int, ...] = ()) -> None:
        """Adopt a floor, the acknowledged sequences above it, and settled ones, as a record of the log has them."""
        done = set(acknowledged)
        if settled:
            self.revived -= set(settled)
            self.waiting = [each for each in self.waiting if each in self.revived]

        def over(found: int) -> bool:
            return (found <= floor or found in done) and found not in self.revived

        self.floor, self.acknowledged = floor, done
        self.fetched = max(self.fetched, floor)
        for sequence in [found for found in self.leases if over(found)]:
            del self.leases[sequence]
        kept = [(when, found) for when, found in self.returned if not over(found)]
        if len(kept) != len(self.returned):
            heapq.heapify(kept)
            self.returned = kept
        for sequence in [found for found in self.attempts if over(found)]:
            del self.attempts[sequence]
