"""Delivery leases: deliveries that are handed out, and come again unless they are acknowledged in time.

    found after the cursor ──lease──▶ out ──acknowledge──▶ done
              ▲                        │ give_back, defer, lease over
              └──────── due again ◀────┤
                                       └─ too many attempts, or no document any more ──▶ dead letter

A pull leases deliveries that are due again first, then revived dead letters, then new ones, and hands them out by
sequence.

Invariant: a cursor is changed only under its lock, so no delivery has two leases at once. What is acknowledged or
became a dead letter is a record of the log; leases are in memory, so after a restart those that were out are due again.
Nobody holds a cursor's lock while it searches: the sequencer needs the lock, and a search may read the log.
Cost: per pull one search for new deliveries, and one look-up per document.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

from pathcast.broker_log import (
    ATTEMPTS,
    TRIMMED,
    BrokerState,
    DeadLetter,
    DeadLetterReplayRecord,
    DocumentRecord,
    StandingSubscription,
)
from pathcast.errors import PathcastError
from pathcast.log import Log, LogEntry, TrimmedError

from ..sequencing.sequencer_requests import AcknowledgeRequest, ChangeRequest, DeadLetterRequest, Passed, Request
from .delivery_search import Found
from .document_cache import RecentDocuments

# Deliveries that one step of a pull asks for.
_STEP: Final = 256
# Seconds that a delivery stays out while it becomes a dead letter; longer only if the log is full, then again.
_BURIAL: Final = 60.0


class AcknowledgementError(PathcastError):
    """Too many deliveries would be acknowledged while one before them is not."""


class Delivery(NamedTuple):
    """A document that a subscription matched."""

    entry: LogEntry
    document: DocumentRecord
    attempt: int = 1


class Gap(NamedTuple):
    """Deliveries that can no longer be made: documents from `begin` to before `end` were trimmed, or have expired.

    `feed`: only those of this feed have, by its retention; None for all.
    """

    begin: int
    end: int
    feed: str | None = None

    def joined(self, other: "Gap") -> "Gap":
        """One gap for both."""
        feed = self.feed if self.feed == other.feed else None
        return Gap(min(self.begin, other.begin), max(self.end, other.end), feed)

    @property
    def reason(self) -> str:
        """The reason in one word."""
        return "trimmed" if self.feed is None else "expired"


class Pulled(NamedTuple):
    """What a pull returned; `more`: it ended before the end of the log, so the next one may find something."""

    deliveries: list[Delivery]
    gap: Gap | None
    more: bool = False


class _Leased(NamedTuple):
    """Leases of one pull: sequence and number of the attempt of each."""

    deliveries: list[tuple[int, int]]
    gap: Gap | None
    more: bool


class LeaseHooks(NamedTuple):
    """What the leases need of the broker."""

    deliveries: Callable[[StandingSubscription, int, int], Found]  # after a position, up to a limit
    expired: Callable[[StandingSubscription, int], list[Gap]]  # after a position
    is_visible: Callable[[str, str, int], bool]  # a document of a feed to a tenant
    recent: Callable[[], RecentDocuments]
    matched_to: Callable[[], int]
    lock_of: Callable[[str, str], AbstractContextManager[object]]  # the lock of a subscription's cursor
    submit: Callable[[Request], None]  # to the sequencer


class DeliveryLeases:
    """Hands out the deliveries of a broker's subscriptions, and takes them back."""

    def __init__(self, log: Log, state: BrokerState, hooks: LeaseHooks, clock: Callable[[], float]) -> None:
        self._log = log
        self._state = state
        self._hooks = hooks
        self._clock = clock

    def pull(
        self,
        tenant: str,
        id: str,
        limit: int,
        *,
        lease_seconds: float = 30.0,
        in_flight: int = 256,
        max_deliver: int | None = None,
        steps: int | None = None,
    ) -> Pulled:
        """Lease at most `limit` deliveries: those due again first, then new ones.

        After `max_deliver` attempts, a delivery becomes a dead letter instead. So does one whose document was trimmed
        or has expired meanwhile, which is also a gap; one that a guard masks by now is acknowledged. `steps` bounds how
        often the call searches; each search reads a bounded number of documents.
        """
        while True:
            leased = self._lease(tenant, id, limit, lease_seconds, in_flight, max_deliver, steps)
            deliveries, lost = self._read(tenant, id, leased.deliveries)
            gap = leased.gap
            if lost is not None:
                gap = lost if gap is None else lost.joined(gap)
            if deliveries or gap is not None or not leased.deliveries or steps is not None:
                return Pulled(deliveries, gap, leased.more)

    def passed(self, standing: StandingSubscription, done: Sequence[int]) -> Passed | None:
        """How far all deliveries are acknowledged once `done` are, some of which were not handed out by a pull.

        Documents that were trimmed are passed with the deliveries after them; those that Spark has not matched yet are
        not passed. `AcknowledgementError` if more than
        `in_flight` deliveries would be acknowledged out of order: a cursor's size is bounded.
        """
        record = standing.record
        with self._hooks.lock_of(record.tenant, record.id):
            cursor = standing.own_cursor()
            position, acknowledged = cursor.fetched, cursor.acknowledged.union(done)
        at = reached = position
        first_open: int | None = None
        last = max(acknowledged)
        while at < last and first_open is None:
            found, _ = self._found(standing, at, _STEP)
            first_open = next((each for each in found.sequences if each not in acknowledged), None)
            before = found.sequences if first_open is None else found.sequences[: found.sequences.index(first_open)]
            if before:
                reached = before[-1]
            at = found.searched_to
            if found.waits and first_open is None:
                first_open = at + 1  # until Spark has matched it, it may be a delivery
        most = record.config.get("in_flight", 256)
        if sum(each > reached for each in acknowledged) > most:
            raise AcknowledgementError(
                f"more than {most:,} deliveries of subscription {record.id!r} would be acknowledged out of order; "
                f"acknowledge document {first_open} first, or set a larger config.in_flight"
            )
        return Passed(cursor, position, reached) if reached > position else None

    def give_back(self, tenant: str, id: str, sequences: Iterable[int], delay: float = 0.0) -> list[int]:
        """End leases without acknowledging; returns the sequences that had no lease."""
        standing = self._state.subscription(tenant, id)
        with self._hooks.lock_of(tenant, id):
            cursor = standing.own_cursor()
            return [each for each in sequences if not cursor.give_back(each, self._clock() + delay)]

    def defer(self, tenant: str, id: str, failed: Sequence[int], unsent: Sequence[int], delay: float) -> None:
        """Make leased deliveries due again at one time, so in their order; the attempt of `unsent` does not count."""
        standing = self._state.subscription(tenant, id)
        with self._hooks.lock_of(tenant, id):
            cursor, when = standing.own_cursor(), self._clock() + delay
            for sequence in failed:
                cursor.give_back(sequence, when)
            for sequence in unsent:
                cursor.withdraw(sequence, when)

    def bury(self, tenant: str, id: str, most: int) -> Future[int]:
        """Deliveries handed out `most` times become dead letters; the result is the head of the log after that.

        It waits for those that are becoming dead letters already.
        """
        standing = self._state.subscription(tenant, id)
        with self._hooks.lock_of(tenant, id):
            found = standing.own_cursor().exhausted(self._clock(), most, _BURIAL)
        return self._give_up(tenant, id, [DeadLetter(*each, ATTEMPTS) for each in found])

    def _give_up(self, tenant: str, id: str, letters: list[DeadLetter]) -> Future[int]:
        request = DeadLetterRequest(tenant, id, letters)
        self._hooks.submit(request)
        return request.future

    def revive(self, tenant: str, id: str) -> tuple[Future[int], list[int], int]:
        """Make dead letters due again; also returns which, and how many were trimmed and cannot be."""
        standing = self._state.subscription(tenant, id)
        known = [] if standing.dead is None else list(standing.dead.letters)
        wanted = [sequence for sequence in known if sequence >= self._log.first]
        if wanted:
            request = ChangeRequest([DeadLetterReplayRecord(tenant, id, tuple(wanted))])
            self._hooks.submit(request)
            return request.future, wanted, len(known) - len(wanted)
        nothing: Future[int] = Future()
        nothing.set_result(self._hooks.matched_to())
        return nothing, [], len(known)

    def _read(self, tenant: str, id: str, leased: list[tuple[int, int]]) -> tuple[list[Delivery], Gap | None]:
        """The documents of leased deliveries, as far as there still are any."""
        deliveries: list[Delivery] = []
        masked: list[int] = []
        lost: list[DeadLetter] = []
        feeds: set[str | None] = set()  # of what is lost; None for what was trimmed
        for sequence, attempt in leased:
            try:
                ((entry, document),) = self._hooks.recent().entries([sequence])
                # What was found just now is visible; a guard may have come since an earlier attempt.
                if not self._hooks.is_visible(tenant, document.feed, sequence):
                    masked.append(sequence)
                elif sequence < self._state.expired.get(document.feed, 0):
                    lost.append(DeadLetter(sequence, attempt - 1, TRIMMED))
                    feeds.add(document.feed)
                else:
                    deliveries.append(Delivery(entry, document, attempt))
            except TrimmedError:
                lost.append(DeadLetter(sequence, attempt - 1, TRIMMED))
                feeds.add(None)
        if masked:
            self._hooks.submit(AcknowledgeRequest(self._state.subscription(tenant, id), masked))
        if not lost:
            return deliveries, None
        self._give_up(tenant, id, lost)
        return deliveries, Gap(
            lost[0].sequence, max(self._log.first, lost[-1].sequence + 1), feeds.pop() if len(feeds) == 1 else None
        )

    def _lease(
        self,
        tenant: str,
        id: str,
        limit: int,
        lease_seconds: float,
        in_flight: int,
        max_deliver: int | None,
        steps: int | None,
    ) -> _Leased:
        """Lease at most `limit` deliveries."""
        standing = self._state.subscription(tenant, id)
        now = self._clock()
        expires = now + lease_seconds
        lock = self._hooks.lock_of(tenant, id)
        with lock:
            cursor = standing.own_cursor()
            if max_deliver is not None and (dead := cursor.exhausted(now, max_deliver, _BURIAL)):
                self._give_up(tenant, id, [DeadLetter(*each, ATTEMPTS) for each in dead])
            expired = self._hooks.expired(standing, cursor.fetched)
            gap = max(expired, key=lambda each: each.end) if expired else None
            if gap is not None and standing.record.feeds == (gap.feed,) and len(standing.versions) == 1:
                cursor.fetched = gap.end - 1
            again = cursor.due(now, limit)
            again += cursor.take_revived(min(limit - len(again), cursor.room(in_flight)))
            leased = [(sequence, cursor.lease(sequence, expires)) for sequence in again]
        searches = 0
        while True:
            with lock:
                cursor = standing.own_cursor()
                position = cursor.fetched
                room = min(limit - len(leased), cursor.room(in_flight))
            if room <= 0 or searches == steps:
                break
            searches += 1
            found, trimmed = self._found(standing, position, min(room, _STEP))
            with lock:
                # Another pull, or a replay, may have moved the cursor during the search: then look again.
                if standing.cursor is not cursor or cursor.fetched != position or cursor.room(in_flight) < room:
                    continue
                gap = gap if trimmed is None else trimmed
                cursor.fetched = max(position, found.searched_to)
                new = [sequence for sequence in found.sequences if sequence not in cursor.acknowledged]
                leased += [(sequence, cursor.lease(sequence, expires)) for sequence in new]
            if trimmed is None and (found.waits or found.searched_to >= self._hooks.matched_to()):
                return _Leased(sorted(leased), gap, more=False)
        return _Leased(sorted(leased), gap, more=room > 0)

    def _found(self, standing: StandingSubscription, position: int, limit: int) -> tuple[Found, Gap | None]:
        """New deliveries after a position; if documents there were trimmed, none, and the gap."""
        try:
            return self._hooks.deliveries(standing, position, limit), None
        except TrimmedError as error:
            return Found([], error.first - 1), Gap(max(position + 1, standing.begin), error.first)
