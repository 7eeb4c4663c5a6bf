"""The broker without its network: publish, subscribe, deliver, acknowledge; durable and exact.

    publish ──▶ sequencer ──▶ log ──▶ state, feed indexes ──▶ deliveries ──▶ events, pull, webhooks

The HTTP surface (`api/`) translates requests to calls of this class; tests call it directly.

Threads: any thread may call any method. Methods that change something return a future, which is completed once the
change is durable.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Final, NamedTuple

from pathcast.broker_log import (
    BrokerState,
    DocumentRecord,
    Meta,
    StandingSubscription,
    SubscriptionRecord,
    UnsubscriptionRecord,
    log_record,
    new_settings,
)
from pathcast.documents import Limits
from pathcast.log import Log, LogEntry, ReadLeases, TrimmedError

from .delivery_search import DeliverySearch, Found
from .feed_index import FeedIndex
from .rebuild import Rebuild
from .recent_documents import RecentDocuments
from .requests import Accepted, AcknowledgeRequest, ChangeRequest, Publication, PublishRequest, Rejected, TaskRequest
from .restart import indexes_for, state_of
from .sequencer import Hooks, Processed, Sequencer

_LOCKS: Final = 64
# Deliveries that one step of a pull asks for.
_STEP: Final = 256


class Delivery(NamedTuple):
    """A document that a subscription matched."""

    entry: LogEntry
    document: DocumentRecord
    attempt: int = 1


class Gap(NamedTuple):
    """Deliveries that can no longer be made: documents from `begin` to before `end` were trimmed."""

    begin: int
    end: int


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
    ) -> None:
        self.log = log
        self.leases = ReadLeases(log, clock=clock) if leases is None else leases
        self.recent = RecentDocuments(log)
        self._clock = clock
        self._locks = [threading.Lock() for _ in range(_LOCKS)]
        self._listeners: set[Callable[[Processed], None]] = set()
        self.state: BrokerState = state_of(log)
        settings = new_settings(Limits.given(limits), self.state.settings)
        if settings is not None:
            self.state.apply(log.append([log_record(settings)]), settings)
        self.matched_to = log.head  # every document up to this sequence has been matched
        self.indexes = indexes_for(self.state)
        self.rebuild = Rebuild(log, self.indexes, log.head + 1)
        self.search = DeliverySearch(log, self.indexes, self.state.guards)
        hooks = Hooks(self._index_of, self._lock_of, self._matched)
        self._sequencer = Sequencer(log, self.state, self.indexes, hooks)
        self._sequencer.start()

    def close(self) -> None:
        """Carry out what was asked for, then write a checkpoint and release the log."""
        self._sequencer.stop()
        self.rebuild.stop()
        if self._sequencer.failure is None and self.log.head:
            self.log.write_checkpoint(self.state.head, self.state.checkpoint())
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
                if sequence > cursor.floor and sequence not in cursor.acknowledged:
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
        self.log.write_checkpoint(self.state.head, self.state.checkpoint())
        first = self.leases.trim(min(begin, self.state.head + 1))
        self.state.forget_before(first)
        if self.rebuild.done:  # otherwise it appends to the same indexes; the next trim drops what is left
            for index in self.indexes.values():
                index.drop_before(first)
        return first

    def give_back(self, tenant: str, id: str, sequences: Iterable[int], delay: float = 0.0) -> list[int]:
        """End leases without acknowledging; returns the sequences that had no lease."""
        standing = self.state.subscriptions[tenant, id]
        with self._lock_of(tenant, id):
            cursor = standing.own_cursor()
            return [each for each in sequences if not cursor.give_back(each, self._clock() + delay)]

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

    def pull(self, tenant: str, id: str, limit: int, *, lease_seconds: float = 30.0, in_flight: int = 256) -> Pulled:
        """Lease at most `limit` deliveries: those due again first, then new ones."""
        standing = self.state.subscriptions[tenant, id]
        gap = None
        with self._lock_of(tenant, id):
            cursor = standing.own_cursor()
            now = self._clock()
            chosen = cursor.due(now, limit)
            room = min(limit - len(chosen), cursor.room(in_flight))
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
            attempts = [cursor.lease(sequence, now + lease_seconds) for sequence in chosen]
        entries = self.recent.entries(chosen)
        return Pulled([Delivery(*each, attempt) for each, attempt in zip(entries, attempts, strict=True)], gap)

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
