"""The broker without its network: publish, subscribe, deliver, acknowledge; durable and exact.

    publish ──▶ sequencer ──▶ log ──▶ state, feed indexes ──▶ deliveries ──▶ events, pull, webhooks

The HTTP surface (`api/`) translates requests to calls of this class; tests call it directly.

Threads: any thread may call any method. Methods that change something return a future, which is completed once the
change is durable.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from pathcast.broker_log import (
    Meta,
    StandingSubscription,
    SubscriptionRecord,
    UnsubscriptionRecord,
    log_record,
    new_settings,
)
from pathcast.documents import Limits
from pathcast.errors import SnapshotError
from pathcast.log import FencedError, Log, LogFullError, ReadLeases, TrimmedError

from .deliveries.delivery_index_rebuild import Rebuild
from .deliveries.delivery_leases import DeliveryLeases, Gap, LeaseHooks, Pulled
from .deliveries.delivery_search import DeliverySearch, Found
from .deliveries.document_cache import AppendedBatch, RecentDocuments
from .feed_index import FeedIndex
from .log_trimming import LogTrimming
from .restart import restored
from .restart_snapshot import RestartSnapshot, Restored
from .sequencing.batch_processing import Hooks, Processed
from .sequencing.batch_records import Changes
from .sequencing.sequencer import Sequencer
from .sequencing.sequencer_requests import (
    Accepted,
    AcknowledgeRequest,
    ChangeRequest,
    CommitRequest,
    Committed,
    NotCommitted,
    Outcome,
    Publication,
    PublishRequest,
    Rejected,
    TaskRequest,
)

_LOGGER: Final = logging.getLogger(__name__)
_LOCKS: Final = 64
T = TypeVar("T")


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
        snapshot: RestartSnapshot | None = None,
        before: Restored | None = None,
        backfill: int | None = None,
    ) -> None:
        """`backfill`: histories of more sequences than this are left to Spark; None leaves none.

        `snapshot`: from which to restart if it can be used, and which `close` renews.

        `before`: what the log adds up to as far as it was read before, to read only what follows.
        """
        self.log = log
        self.snapshot = snapshot
        self.leases = ReadLeases(log, clock=clock) if leases is None else leases
        self.recent = RecentDocuments(log)
        self._locks = [threading.Lock() for _ in range(_LOCKS)]
        self._listeners: set[Callable[[Processed], None]] = set()
        self.state, self.indexes = restored(log, snapshot, before)
        settings = new_settings(Limits.given(limits), self.state.settings)
        if settings is not None:
            self.state.apply(log.append([log_record(settings)]), settings)
        self.matched_to = log.head  # every document up to this sequence has been matched
        for name, index in self.indexes.items():
            index.read_within(self.state.limits_of(name))
            index.begin_at(log.head + 1, self.state.spark.get(name, ()))
        self.rebuild = Rebuild(log, self.indexes, log.head + 1, self.state.mediators)
        state_ = self.state
        self.search = DeliverySearch(log, self.indexes, state_.guards, state_.expired, state_.mediators, backfill)
        hooks = Hooks(self._index_of, self._lock_of, self._appended, self._matched)
        self._sequencer = Sequencer(log, self.state, self.indexes, hooks)
        self._trimming = LogTrimming(log, self.state, self.leases, self._in_sequencer, self._forget_before)
        self._leased = DeliveryLeases(log, self.state, self._lease_hooks(), clock)
        self._sequencer.start()

    def close(self) -> None:
        """Carry out what was asked for, then write a checkpoint and release the log."""
        self._sequencer.stop()
        self.rebuild.stop()
        with self._trimming.lock:
            self._close()

    def _close(self) -> None:
        try:
            if self._sequencer.failure is None and self.log.head:
                self.log.write_checkpoint(self.state.head, *self.state.checkpoint_pieces())
                state = self.state
                if self.snapshot is not None and self.snapshot.is_due(*state.since_snapshot):
                    self.snapshot.write(Restored(state, self.indexes), self.log)
        except (LogFullError, SnapshotError) as error:
            _LOGGER.warning(
                "cannot write checkpoint and snapshot: %s; check the disk (without them, the next start takes longer)",
                error,
            )
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
        self,
        feed: str,
        documents: Sequence[Publication],
        *,
        publisher: str = "",
        keep_invalid: bool = False,
        schema: str | None = None,
        tenant: str | None = None,
    ) -> Future[list[Accepted | Rejected]]:
        """Publish documents to a feed; each is accepted or rejected on its own.

        `schema` is that of all documents, one of the feed's mediator; otherwise each may have the attribute dataschema.
        `tenant` is the creator of the feed, if it is new.
        """
        future: Future[list[Accepted | Rejected]] = Future()
        self.publish_for(
            future, feed, documents, publisher=publisher, keep_invalid=keep_invalid, schema=schema, tenant=tenant
        )
        return future

    def publish_for(
        self,
        outcome: Outcome,
        feed: str,
        documents: Sequence[Publication],
        *,
        publisher: str,
        keep_invalid: bool,
        schema: str | None = None,
        tenant: str | None = None,
    ) -> None:
        """Publish documents as `publish` does, for somebody who has where to leave the results."""
        self._sequencer.submit(
            PublishRequest(feed, publisher, documents, outcome, keep_invalid=keep_invalid, schema=schema, tenant=tenant)
        )

    def commit(
        self,
        publisher: str,
        batch: str,
        documents: Mapping[str, Sequence[Publication]],
        *,
        keep_invalid: bool = False,
        tenant: str | None = None,
    ) -> Future[Committed | NotCommitted]:
        """Publish documents by feed, all or none; a batch that the publisher has committed before publishes nothing."""
        request = CommitRequest(publisher, batch, documents, keep_invalid=keep_invalid, tenant=tenant)
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
        """Acknowledge deliveries; also returns the sequences that are no deliveries of the subscription.

        `AcknowledgementError` if too many that were not handed out would be acknowledged out of order.
        """
        standing = self.state.subscription(tenant, id)
        with self._lock_of(tenant, id):
            cursor = standing.own_cursor()
            unsettled = [sequence for sequence in dict.fromkeys(sequences) if cursor.is_open(sequence)]
            out = cursor.out()
        # Without the lock: each of the others is looked up, and the sequencer needs the lock.
        known: list[int] = []
        unknown: list[int] = []
        for sequence in unsettled:
            is_delivery = sequence in out or self._is_delivery(standing, sequence)
            (known if is_delivery else unknown).append(sequence)
        passed = None
        if any(sequence not in out for sequence in known):  # read from a stream
            passed = self._leased.passed(standing, known)
        request = AcknowledgeRequest(standing, known, passed)
        if known:
            self._sequencer.submit(request)
        else:
            request.future.set_result(self.matched_to)
        return request.future, unknown

    def trim(self, begin: int) -> int:
        """Remove documents before `begin` from the log, as far as it can; returns the oldest that is left.

        Read leases hold it back. Subscriptions and cursors stay: a checkpoint is written first, unless one covers what
        is removed. Other requests continue meanwhile (log_trimming.py).
        """
        return self._trimming.trim(begin)

    def _forget_before(self, first: int) -> None:
        self.recent.drop_before(first)
        self.state.forget_before(first)
        if self.rebuild.done:  # otherwise it appends to the same indexes; the next trim drops what is left
            for name, index in self.indexes.items():
                index.drop_before(max(first, self.state.expired.get(name, 0)))

    # Deliveries.

    def deliveries(self, subscription: StandingSubscription, position: int, limit: int, *, scan: bool = True) -> Found:
        """At most `limit` deliveries after a position; `TrimmedError` if documents after it were trimmed.

        Without `scan`, the search never reads the log, and may end before the head for that reason.
        """
        first, head = max(position + 1, subscription.begin), self.matched_to
        if first < self.log.first and first <= head:
            raise TrimmedError.before(first, self.log.first)
        return self.search.after(subscription, position, limit, head, scan=scan)

    def quiet(self, subscriptions: Sequence[StandingSubscription], position: int) -> list[bool]:
        """For each subscription, whether it surely has no deliveries after a position."""
        if position + 1 < self.log.first:
            return [False] * len(subscriptions)
        return self.search.quiet(subscriptions, position)

    def is_visible(self, tenant: str, feed: str, sequence: int) -> bool:
        """Whether a tenant may see a document of the log, as far as its guard is concerned."""
        return sequence <= self.matched_to and self.search.is_visible(tenant, feed, sequence)

    def check_not_expired(self, feed: str, sequence: int) -> None:
        """`TrimmedError` if a document of a feed is beyond the feed's retention."""
        first = self.state.expired.get(feed, 0)
        if sequence < first:
            raise TrimmedError(
                f"document {sequence} has expired by the retention of feed {feed!r}; read from {first}", first=first
            )

    def expired(self, subscription: StandingSubscription, position: int) -> list[Gap]:
        """For each feed, the documents after a position that have expired but are not trimmed yet."""
        begin = max(position + 1, subscription.begin)
        ends = self.state.expired.copy()
        versions = subscription.versions_after(position)
        feeds = {name for version in versions for name in version.record.feeds}
        if not all(version.record.feeds for version in versions):
            feeds |= ends.keys()
        gaps = [Gap(begin, ends[name], name) for name in sorted(feeds & ends.keys())]
        return [gap for gap in gaps if gap.end > max(begin, self.log.first)]

    # Leases: see `DeliveryLeases`.

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
        """Lease at most `limit` deliveries: those due again first, then new ones. `steps`: searches at most."""
        return self._leased.pull(
            tenant, id, limit, lease_seconds=lease_seconds, in_flight=in_flight, max_deliver=max_deliver, steps=steps
        )

    def give_back(self, tenant: str, id: str, sequences: Iterable[int], delay: float = 0.0) -> list[int]:
        """End leases without acknowledging; returns the sequences that had no lease."""
        return self._leased.give_back(tenant, id, sequences, delay)

    def defer(self, tenant: str, id: str, failed: Sequence[int], unsent: Sequence[int], delay: float) -> None:
        """Make leased deliveries due again at one time, so in their order; the attempt of `unsent` does not count."""
        self._leased.defer(tenant, id, failed, unsent, delay)

    def bury(self, tenant: str, id: str, most: int) -> Future[int]:
        """Deliveries handed out `most` times become dead letters; the result is the head of the log after that."""
        return self._leased.bury(tenant, id, most)

    def revive(self, tenant: str, id: str) -> tuple[Future[int], list[int], int]:
        """Make dead letters due again; also returns which, and how many were trimmed and cannot be."""
        return self._leased.revive(tenant, id)

    def _lease_hooks(self) -> LeaseHooks:
        return LeaseHooks(
            self.deliveries,
            self.expired,
            self.is_visible,
            lambda: self.recent,
            lambda: self.matched_to,
            self._lock_of,
            self._sequencer.submit,
        )

    def _is_delivery(self, standing: StandingSubscription, sequence: int) -> bool:
        """Whether a subscription gets a document; at most that one is read."""
        if not max(standing.begin, self.log.first) <= sequence <= self.matched_to:
            return False
        try:
            return self.search.after(standing, sequence - 1, 1, sequence, patient=False).sequences == [sequence]
        except TrimmedError:
            return False

    def _lock_of(self, tenant: str, id: str) -> threading.Lock:
        return self._locks[hash((tenant, id)) % _LOCKS]

    def perform(self, request: TaskRequest) -> Future[Any]:
        """Do some work in the sequencer's thread, between batches; the result is what the work returns."""
        self._sequencer.submit(request)
        return request.future

    def _in_sequencer(self, work: Callable[[], T]) -> Future[T]:
        return self.perform(TaskRequest(work))

    def processed(self, done: Processed) -> None:
        """Tell readers that there is something to search for; called by such work."""
        self._matched(done)

    # Called by the sequencer, in its thread.

    def listen(self, listener: Callable[[Processed], None]) -> Callable[[], None]:
        """Call `listener` after each batch, in the sequencer's thread; returns what ends that."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def _appended(self, changes: Changes) -> None:
        records = [(record, meta) for record, (_, meta) in zip(changes.records, changes.metas, strict=True)]
        self.recent.append(AppendedBatch(changes.begin, self.log.time, records))

    def _matched(self, done: Processed) -> None:
        self.matched_to = done.head
        for listener in tuple(self._listeners):
            listener(done)

    def _index_of(self, feed: str) -> FeedIndex:
        """The index of a feed, created when the feed is first named."""
        index = self.indexes.get(feed)
        if index is None:
            index = FeedIndex(self.state.limits_of(feed))
            everywhere = [each.record.pattern for each in self.state.subscriptions.everywhere()]
            index.add([*everywhere, *self.state.guard_patterns()], 0)
            spans = self.state.spark.get(feed, ())
            if spans:
                index.computed.leave(spans, self.log.head)
            self.indexes[feed] = index
        return index
