"""The broker without its network: publish, subscribe, deliver, acknowledge; durable and exact.

    publish ──▶ sequencer ──▶ log ──▶ state, feed indexes ──▶ deliveries ──▶ events, pull, webhooks

The HTTP surface (`api/`) translates requests to calls of this class; tests call it directly.

Threads: any thread may call any method. Methods that change something return a future, which is completed once the
change is durable.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Final, NamedTuple

from pathcast.broker_log import (
    ATTEMPTS,
    TRIMMED,
    BrokerState,
    DeadLetter,
    DeadLetterReplayRecord,
    DocumentRecord,
    Meta,
    StandingSubscription,
    SubscriptionRecord,
    UnsubscriptionRecord,
    log_record,
    new_settings,
)
from pathcast.documents import Limits
from pathcast.log import FencedError, Log, LogEntry, LogFullError, ReadLeases, TrimmedError

from .delivery_search import DeliverySearch, Found
from .feed_index import FeedIndex
from .rebuild import Rebuild
from .recent_documents import RecentDocuments
from .requests import (
    Accepted,
    AcknowledgeRequest,
    ChangeRequest,
    DeadLetterRequest,
    Publication,
    PublishRequest,
    Rejected,
    TaskRequest,
)
from .restart import indexes_for, state_of
from .sequencer import Hooks, Processed, Sequencer

_LOGGER: Final = logging.getLogger(__name__)
_LOCKS: Final = 64
# Deliveries that one step of a pull asks for.
_STEP: Final = 256
# Seconds that a delivery stays out while it becomes a dead letter; longer only if the log is full, then again.
_BURIAL: Final = 60.0


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
    """What a pull returned."""

    deliveries: list[Delivery]
    gap: Gap | None


class Broker:
    """A broker over a log. `limits` bound the documents of feeds without their own; `leases` hold back trimming.

    >>> import tempfile
    >>> from pathcast.broker import Broker, Publication
    >>> from pathcast.broker_log import SubscriptionRecord
    >>> from pathcast.log import SqliteLog
    >>> broker = Broker(SqliteLog(tempfile.mkdtemp()))
    >>> record = SubscriptionRecord("default", "titles", "ada", expression="//title", pattern="//title")
    >>> broker.subscribe(record).result()
    1
    >>> results = broker.publish("news", [Publication(b"<nitf><title/></nitf>")]).result()
    >>> [delivery.entry.body for delivery in broker.pull("default", "titles", 10).deliveries]
    [b'<nitf><title/></nitf>']
    >>> broker.close()
    """

    def __init__(
        self,
        log: Log,
        *,
        limits: Limits | None = None,
        leases: ReadLeases | None = None,
        clock: Callable[[], float] = time.monotonic,
        state: BrokerState | None = None,
    ) -> None:
        """`state`: what the log adds up to as far as it was read before, to read only what follows."""
        self.log = log
        self.leases = ReadLeases(log, clock=clock) if leases is None else leases
        self.recent = RecentDocuments(log)
        self._clock = clock
        self._locks = [threading.Lock() for _ in range(_LOCKS)]
        self._listeners: set[Callable[[Processed], None]] = set()
        self.state: BrokerState = state_of(log, state)
        settings = new_settings(Limits.given(limits), self.state.settings)
        if settings is not None:
            self.state.apply(log.append([log_record(settings)]), settings)
        self.matched_to = log.head  # every document up to this sequence has been matched
        self.indexes = indexes_for(self.state)
        self.rebuild = Rebuild(log, self.indexes, log.head + 1)
        self.search = DeliverySearch(log, self.indexes, self.state.guards, self.state.expired)
        hooks = Hooks(self._index_of, self._lock_of, self._matched)
        self._sequencer = Sequencer(log, self.state, self.indexes, hooks)
        self._sequencer.start()

    def close(self) -> None:
        """Carry out what was asked for, then write a checkpoint and release the log."""
        self._sequencer.stop()
        self.rebuild.stop()
        try:
            if self._sequencer.failure is None and self.log.head:
                self.log.write_checkpoint(self.state.head, self.state.checkpoint())
        except LogFullError as error:
            _LOGGER.warning("no checkpoint: %s; the next start reads more of the log", error)
        except FencedError:
            pass  # the broker that took over the log writes its own
        finally:
            self.log.close()

    @property
    def failure(self) -> Exception | None:
        """Why the broker no longer accepts anything; None while it works."""
        return self._sequencer.failure

    @property
    def requests_waiting(self) -> int:
        """How many requests wait for a batch."""
        return self._sequencer.waiting

    # Changes.

    def publish(
        self, feed: str, documents: Sequence[Publication], *, publisher: str = "", keep_invalid: bool = False
    ) -> Future[list[Accepted | Rejected]]:
        """Publish documents to a feed; each is accepted or rejected on its own."""
        request = PublishRequest(feed, publisher, documents, keep_invalid=keep_invalid)
        self._sequencer.submit(request)
        return request.future

    def change(self, records: Sequence[Meta]) -> Future[int]:
        """Append records that change the state, all at once; the result is the sequence of the first."""
        request = ChangeRequest(records)
        self._sequencer.submit(request)
        return request.future

    def subscribe(self, record: SubscriptionRecord) -> Future[int]:
        """Create or change a subscription; the result is the sequence at which it takes effect."""
        return self.change([record])

    def unsubscribe(self, tenant: str, id: str) -> Future[int]:
        """End a subscription; the result is the sequence at which it ends."""
        return self.change([UnsubscriptionRecord(tenant, id)])

    def acknowledge(self, tenant: str, id: str, sequences: Iterable[int]) -> tuple[Future[int], list[int]]:
        """Acknowledge deliveries; also returns the sequences that are no deliveries of the subscription."""
        standing = self.state.subscriptions[tenant, id]
        known: list[int] = []
        unknown: list[int] = []
        with self._lock_of(tenant, id):
            cursor = standing.own_cursor()
            for sequence in sequences:
                if cursor.is_open(sequence):
                    is_delivery = cursor.is_out(sequence) or self._is_delivery(standing, sequence)
                    (known if is_delivery else unknown).append(sequence)
        request = AcknowledgeRequest(tenant, id, known)
        if known:
            self._sequencer.submit(request)
        else:
            request.future.set_result(self.matched_to)
        return request.future, unknown

    def trim(self, begin: int) -> Future[int]:
        """Remove documents before `begin` from the log, as far as it can; the result is the oldest that is left.

        Read leases hold it back. Subscriptions and cursors stay: a checkpoint is written first.
        """
        request = TaskRequest(lambda: self._trim(begin))
        self._sequencer.submit(request)
        return request.future

    def _trim(self, begin: int) -> int:
        end = min(begin, self.state.head + 1)
        try:
            self.log.write_checkpoint(self.state.head, self.state.checkpoint())
        except LogFullError:
            # Trimming must free a full disk: what the latest checkpoint covers can go without another.
            latest = self.log.checkpoint()
            if latest is None:
                raise
            end = min(end, latest.sequence + 1)
        first = self.leases.trim(end)
        self.state.forget_before(first)
        if self.rebuild.done:  # otherwise it appends to the same indexes; the next trim drops what is left
            for name, index in self.indexes.items():
                index.drop_before(max(first, self.state.expired.get(name, 0)))
        return first

    def give_back(self, tenant: str, id: str, sequences: Iterable[int], delay: float = 0.0) -> list[int]:
        """End leases without acknowledging; returns the sequences that had no lease."""
        standing = self.state.subscriptions[tenant, id]
        with self._lock_of(tenant, id):
            cursor = standing.own_cursor()
            return [each for each in sequences if not cursor.give_back(each, self._clock() + delay)]

    def defer(self, tenant: str, id: str, failed: Sequence[int], unsent: Sequence[int], delay: float) -> None:
        """Make leased deliveries due again at one time, so in their order; the attempt of `unsent` does not count."""
        standing = self.state.subscriptions[tenant, id]
        with self._lock_of(tenant, id):
            cursor, when = standing.own_cursor(), self._clock() + delay
            for sequence in failed:
                cursor.give_back(sequence, when)
            for sequence in unsent:
                cursor.withdraw(sequence, when)

    # Deliveries.

    def deliveries(self, subscription: StandingSubscription, position: int, limit: int, *, scan: bool = True) -> Found:
        """At most `limit` deliveries after a position; `TrimmedError` if documents after it were trimmed.

        Without `scan`, the search never reads the log, and may end before the head for that reason.
        """
        first, head = max(position + 1, subscription.begin), self.matched_to
        if first < self.log.first and first <= head:
            raise TrimmedError.before(first, self.log.first)
        return self.search.after(subscription, position, limit, head, scan=scan)

    def is_visible(self, tenant: str, feed: str, sequence: int) -> bool:
        """Whether a tenant may see a document of the log, as far as its guard is concerned."""
        return sequence <= self.matched_to and self.search.is_visible(tenant, feed, sequence)

    def check_not_expired(self, feed: str, sequence: int) -> None:
        """`TrimmedError` if a document of a feed is beyond the feed's retention."""
        first = self.state.expired.get(feed, 0)
        if sequence < first:
            raise TrimmedError(f"document {sequence} is beyond the retention of feed {feed!r}", first=first)

    def expired(self, subscription: StandingSubscription, position: int) -> list[Gap]:
        """For each feed, the documents after a position that have expired but are not trimmed yet."""
        begin = max(position + 1, subscription.begin)
        ends = self.state.expired.copy()
        feeds = {name for version in subscription.versions for name in version.record.feeds}
        if not all(version.record.feeds for version in subscription.versions):
            feeds |= ends.keys()
        gaps = [Gap(begin, ends[name], name) for name in sorted(feeds & ends.keys())]
        return [gap for gap in gaps if gap.end > max(begin, self.log.first)]

    def bury(self, tenant: str, id: str, most: int) -> Future[int]:
        """Deliveries handed out `most` times become dead letters; the result is the head of the log after that.

        It waits for those that are becoming dead letters already.
        """
        standing = self.state.subscriptions[tenant, id]
        with self._lock_of(tenant, id):
            found = standing.own_cursor().exhausted(self._clock(), most, _BURIAL)
        return self._give_up(tenant, id, [DeadLetter(*each, ATTEMPTS) for each in found])

    def _give_up(self, tenant: str, id: str, letters: list[DeadLetter]) -> Future[int]:
        request = DeadLetterRequest(tenant, id, letters)
        self._sequencer.submit(request)
        return request.future

    def revive(self, tenant: str, id: str) -> tuple[Future[int], list[int], int]:
        """Make dead letters due again; also returns which, and how many were trimmed and cannot be."""
        standing = self.state.subscriptions[tenant, id]
        known = [] if standing.dead is None else list(standing.dead.letters)
        wanted = [sequence for sequence in known if sequence >= self.log.first]
        if wanted:
            return self.change([DeadLetterReplayRecord(tenant, id, tuple(wanted))]), wanted, len(known) - len(wanted)
        nothing: Future[int] = Future()
        nothing.set_result(self.matched_to)
        return nothing, [], len(known)

    def pull(
        self,
        tenant: str,
        id: str,
        limit: int,
        *,
        lease_seconds: float = 30.0,
        in_flight: int = 256,
        max_deliver: int | None = None,
    ) -> Pulled:
        """Lease at most `limit` deliveries: those due again first, then new ones.

        After `max_deliver` attempts, a delivery becomes a dead letter instead. So does one whose document was trimmed
        or has expired meanwhile, which is also a gap; one that a guard masks by now is acknowledged.
        """
        while True:
            leased, gap = self._lease(tenant, id, limit, lease_seconds, in_flight, max_deliver)
            deliveries, lost = self._read(tenant, id, leased)
            if lost is not None:
                gap = lost if gap is None else lost.joined(gap)
            if deliveries or gap is not None or not leased:
                return Pulled(deliveries, gap)

    def _read(self, tenant: str, id: str, leased: list[tuple[int, int]]) -> tuple[list[Delivery], Gap | None]:
        """The documents of leased deliveries, as far as there still are any."""
        deliveries: list[Delivery] = []
        masked: list[int] = []
        lost: list[DeadLetter] = []
        feeds: set[str | None] = set()  # of what is lost; None for what was trimmed
        for sequence, attempt in leased:
            try:
                ((entry, document),) = self.recent.entries([sequence])
                # What was found just now is visible; a guard may have come since an earlier attempt.
                if not self.is_visible(tenant, document.feed, sequence):
                    masked.append(sequence)
                elif sequence < self.state.expired.get(document.feed, 0):
                    lost.append(DeadLetter(sequence, attempt - 1, TRIMMED))
                    feeds.add(document.feed)
                else:
                    deliveries.append(Delivery(entry, document, attempt))
            except TrimmedError:
                lost.append(DeadLetter(sequence, attempt - 1, TRIMMED))
                feeds.add(None)
        if masked:
            self._sequencer.submit(AcknowledgeRequest(tenant, id, masked))
        if not lost:
            return deliveries, None
        self._give_up(tenant, id, lost)
        return deliveries, Gap(
            lost[0].sequence, max(self.log.first, lost[-1].sequence + 1), feeds.pop() if len(feeds) == 1 else None
        )

    def _lease(
        self, tenant: str, id: str, limit: int, lease_seconds: float, in_flight: int, max_deliver: int | None
    ) -> tuple[list[tuple[int, int]], Gap | None]:
        """Lease at most `limit` deliveries: sequence and number of the attempt."""
        standing = self.state.subscriptions[tenant, id]
        with self._lock_of(tenant, id):
            cursor = standing.own_cursor()
            now = self._clock()
            if max_deliver is not None and (dead := cursor.exhausted(now, max_deliver, _BURIAL)):
                self._give_up(tenant, id, [DeadLetter(*each, ATTEMPTS) for each in dead])
            expired = self.expired(standing, cursor.fetched)
            gap = max(expired, key=lambda each: each.end) if expired else None
            if gap is not None and standing.record.feeds == (gap.feed,) and len(standing.versions) == 1:
                cursor.fetched = gap.end - 1
            chosen = cursor.due(now, limit)
            chosen += cursor.take_revived(min(limit - len(chosen), cursor.room(in_flight)))
            room = min(limit - len(chosen), cursor.room(in_flight) - len(chosen))
            while room > 0:
                try:
                    found = self.deliveries(standing, cursor.fetched, min(room, _STEP))
                except TrimmedError as error:
                    gap = Gap(max(cursor.fetched + 1, standing.begin), error.first)
                    cursor.fetched = error.first - 1
                    continue
                new = [sequence for sequence in found.sequences if sequence not in cursor.acknowledged]
                chosen += new
                room -= len(new)
                cursor.fetched = max(cursor.fetched, found.searched_to)
                if found.searched_to >= self.matched_to:
                    break
            chosen.sort()
            return [(sequence, cursor.lease(sequence, now + lease_seconds)) for sequence in chosen], gap

    def _is_delivery(self, standing: StandingSubscription, sequence: int) -> bool:
        try:
            return self.deliveries(standing, sequence - 1, 1).sequences == [sequence]
        except TrimmedError:
            return False

    def _lock_of(self, tenant: str, id: str) -> threading.Lock:
        return self._locks[hash((tenant, id)) % _LOCKS]

    # Called by the sequencer, in its thread.

    def listen(self, listener: Callable[[Processed], None]) -> Callable[[], None]:
        """Call `listener` after each batch, in the sequencer's thread; returns what ends that."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def _matched(self, done: Processed) -> None:
        self.matched_to = done.head
        for listener in tuple(self._listeners):
            listener(done)

    def _index_of(self, feed: str) -> FeedIndex:
        """The index of a feed, created when the feed is first named."""
        index = self.indexes.get(feed)
        if index is None:
            index = FeedIndex(self.state.limits_of(feed))
            everywhere = [each.record.pattern for each in self.state.subscriptions.values() if not each.record.feeds]
            index.add([*everywhere, *self.state.guard_patterns()], 0)
            self.indexes[feed] = index
        return index
