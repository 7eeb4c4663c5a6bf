"""The state of the broker: what the records of the log, in their order, add up to.

    record ──apply──▶ subscriptions, cursors, feeds, guards, deduplication window

Live, after a restart and in any other reader of the log, the same records give the same state. The state is plain data:
what matches documents (feed_index.py) is built from it.

Invariant: a version of a subscription is kept as long as the log may have a document that it matches. A version during
which no document of its feeds was appended matches nothing, so it is not kept when the next one begins; what was
appended is known for sure since the last restart, and assumed before.

Only the sequencer's thread applies records. Other threads read single subscriptions; a subscription's versions are a
tuple that is replaced.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from msgspec import Struct, msgpack, structs

from pathcast.documents import Limits
from pathcast.errors import PathcastError
from pathcast.kernels import AnyArray

from .broker_records import (
    BatchRecord,
    CursorRecord,
    DocumentRecord,
    ExpiryRecord,
    FeedMediator,
    FeedRecord,
    Meta,
    SettingsRecord,
    SinkDisabledRecord,
    SubscriptionRecord,
    TenantRecord,
    UnsubscriptionRecord,
)
from .checkpoint_format import FORMAT, SavedState, saved_state, state_without_subscriptions, with_subscriptions
from .checkpoint_packing import CheckpointPacking
from .committed_batch_deduplication import CommittedBatches
from .dead_letters import DeadLetterRecord, DeadLetterReplayRecord
from .deduplication_window import SIZE, DeduplicationWindow
from .effective_feed_settings import limits_of
from .feed_matching import SparkSpans, spark_since, with_matching
from .feed_mediators import MediatorSpans, mediators_since, with_mediator
from .subscriptions.ordered_subscription_ids import SubscriptionDirectory
from .subscriptions.packed_subscriptions import PackedSubscriptions
from .subscriptions.standing_subscription import StandingSubscription, Version
from .subscriptions.standing_subscriptions import StandingSubscriptions
from .subscriptions.subscription_text_index import SubscriptionTextIndex
from .tenant_visibility_guards import GuardSpans, since, with_guard

_PACKED: Final = "subscriptions_"


# Records that change one subscription.
OfOneSubscription = (
    SubscriptionRecord
    | UnsubscriptionRecord
    | CursorRecord
    | DeadLetterRecord
    | DeadLetterReplayRecord
    | SinkDisabledRecord
)


class UnknownSubscriptionError(PathcastError):
    """There is no such subscription, or it has ended meanwhile."""


class TenantUsage(Struct):
    """What a tenant uses: how many subscriptions, and how many of them have each sink and name each feed."""

    subscriptions: int = 0
    sinks: dict[str, int] = {}
    feeds: dict[str, int] = {}

    def add(self, record: SubscriptionRecord, count: int) -> None:
        """`count` subscriptions more, or fewer, like a record."""
        self.subscriptions += count
        if record.sink is not None:
            _count(self.sinks, record.sink, count)
        for feed in record.feeds:
            _count(self.feeds, feed, count)


def _count(uses: dict[str, int], name: str, count: int) -> None:
    left = uses.get(name, 0) + count
    if left:
        uses[name] = left
    else:
        del uses[name]


class BrokerState:
    """Subscriptions, cursors and feeds as of sequence `head`."""

    def __init__(self, window: int = SIZE) -> None:
        self.head = 0
        self.ordinals = 0
        self.subscriptions = StandingSubscriptions()
        self.subscription_changes = 0  # subscriptions that came, changed or ended since this process began
        self.directory = SubscriptionDirectory()
        self.texts = SubscriptionTextIndex(self._ids_after, self._texts_of)
        self.troubled: set[tuple[str, str]] = set()  # subscriptions with dead letters or a disabled webhook
        self.feeds: dict[str, FeedRecord] = {}
        self.expired: dict[str, int] = {}  # per feed, the first sequence that is still delivered
        self.settings = SettingsRecord()
        self.guards: dict[str, GuardSpans] = {}
        self.mediators: dict[str, MediatorSpans] = {}  # per feed
        self.spark: dict[str, SparkSpans] = {}  # per feed, which documents Spark matches
        self.usage: dict[str, TenantUsage] = {}
        self.published = DeduplicationWindow(window)
        self.batches = CommittedBatches()
        self._versioned: set[tuple[str, str]] = set()  # subscriptions with earlier versions
        self._packing: CheckpointPacking | None = None  # the latest; it has what it needs once nothing is left
        self._snapshot = 0, 0  # changes and head as of the latest snapshot
        self._changes = 0  # that a restart without a snapshot takes into account, documents excepted
        self._limits: dict[str, Limits] = {}  # of feeds; replaced when a setting changes
        self._documents: dict[str, int] = {}  # per feed, the last readable document that was applied
        self._unread = 0  # any record up to here may be a document of any feed

    def apply(self, sequence: int, meta: Meta | None) -> None:
        """Take the record at a sequence into account; what is between it and the head are documents."""
        if sequence > self.head + 1:
            self._unread = sequence - 1
        self.head = sequence
        if isinstance(meta, DocumentRecord):
            if meta.error is None:
                self._documents[meta.feed] = sequence
            if meta.id is not None:
                self.published.add(meta.publisher, meta.id, sequence)
            return
        self._changes += 1
        if self._packing is not None and isinstance(meta, OfOneSubscription):
            self._packing.keep((meta.tenant, meta.id))
        match meta:
            case BatchRecord():
                self.batches.add(sequence, meta)
            case SubscriptionRecord():
                self._put(sequence, meta)
            case UnsubscriptionRecord():
                self._remove(meta)
            case CursorRecord() | DeadLetterRecord() | DeadLetterReplayRecord() | SinkDisabledRecord():
                found = self.subscriptions.get((meta.tenant, meta.id))
                if found is not None:
                    found.take(meta)
                    self._note((meta.tenant, meta.id), found)
            case FeedRecord():
                self._set_feed(sequence, meta)
            case ExpiryRecord():
                before = sequence if meta.before is None else min(meta.before, sequence)
                self.expired[meta.feed] = max(before, self.expired.get(meta.feed, 0))
            case SettingsRecord():
                self.settings = meta
                self._limits = {}
            case TenantRecord():
                self.guards[meta.tenant] = with_guard(self.guards.get(meta.tenant, ()), sequence, meta)

    def _set_feed(self, sequence: int, record: FeedRecord) -> None:
        if record.removed:
            self.feeds.pop(record.name, None)
        else:
            self.feeds[record.name] = record
        self._mediate(sequence, record.name, record.mediator)
        spans = with_matching(self.spark.get(record.name, ()), sequence, spark=record.matching == "spark")
        if spans:
            self.spark[record.name] = spans
        self._limits = {}

    def _put(self, sequence: int, record: SubscriptionRecord) -> None:
        key = record.tenant, record.id
        begin = sequence if record.begin is None else record.begin
        found = self.subscriptions.get(key)
        if found is None:
            version = Version(self.ordinals, begin, None, record)
            self.subscriptions[key] = StandingSubscription(sequence, begin, (version,))
        else:
            before = found.current
            found.disabled = None
            if before.record.subscriber != record.subscriber:
                self.directory.remove(record.tenant, before.record.subscriber, record.id)
            self._count(before.record, -1)
            if (before.record.pattern, before.record.feeds) == (record.pattern, record.feeds):
                # It matches what it matched before, so its version stays, however often it is put again.
                found.versions = (*found.versions[:-1], structs.replace(before, record=record))
            else:
                ended = Version(before.ordinal, before.begin, sequence, before.record)
                # A change takes effect where it stands in the log: what the version before it matched stays matched.
                version = Version(self.ordinals, max(begin, sequence), None, record)
                earlier = (*found.versions[:-1], ended) if self._may_match(ended) else found.versions[:-1]
                found.versions = (*earlier, version)
        self._note(key, self.subscriptions[key])
        self.directory.add(record.tenant, record.subscriber, record.id)
        self.texts.put(record.tenant, record.id)
        self._count(record, 1)
        self.ordinals += 1
        self.subscription_changes += 1  # last: other threads read it before the subscriptions

    def _ids_after(self, tenant: str, position: str, most: int) -> list[str]:
        return self.directory.after(tenant, position, most)

    def _texts_of(self, tenant: str, id: str) -> tuple[str, str, str] | None:
        found = self.subscriptions.read((tenant, id))
        return None if found is None else (id, found.record.subscriber, found.record.expression)

    def earlier_versions(self, changed: SubscriptionRecord) -> int:
        """How many earlier versions of a subscription are kept once it has changed like this at the next sequence."""
        found = self.subscriptions.get((changed.tenant, changed.id))
        if found is None:
            return 0
        before = found.current
        if (before.record.pattern, before.record.feeds) == (changed.pattern, changed.feeds):
            return len(found.versions) - 1
        ended = Version(before.ordinal, before.begin, self.head + 1, before.record)
        return len(found.versions) - 1 + self._may_match(ended)

    def _may_match(self, ended: Version) -> bool:
        """Whether there may be a document that a version matches, which ends now."""
        if ended.end is not None and ended.begin >= ended.end:
            return False
        latest = map(self._latest, ended.record.feeds) if ended.record.feeds else self._documents.values()
        return max(self._unread, *latest, 0) >= ended.begin

    def _latest(self, feed: str) -> int:
        return self._documents.get(feed, 0)

    def _note(self, key: tuple[str, str], standing: StandingSubscription) -> None:
        """Note whether a subscription is one of the few that are looked for."""
        (self.troubled.add if standing.is_troubled else self.troubled.discard)(key)
        (self._versioned.add if len(standing.versions) > 1 else self._versioned.discard)(key)

    def _remove(self, record: UnsubscriptionRecord) -> None:
        found = self.subscriptions.pop((record.tenant, record.id), None)
        if found is not None:
            self.directory.remove(found.record.tenant, found.record.subscriber, found.record.id)
            self._count(found.record, -1)
            self.troubled.discard((record.tenant, record.id))
            self._versioned.discard((record.tenant, record.id))
            self.subscription_changes += 1

    @property
    def since_snapshot(self) -> tuple[int, int]:
        """How many changes, and how many records, a restart from the latest snapshot reads."""
        changes, head = self._snapshot
        return self._changes - changes, self.head - head

    @property
    def changes(self) -> tuple[int, int]:
        """What `saved` takes once a snapshot with all changes so far has been written."""
        return self._changes, self.head

    def saved(self, changes: tuple[int, int]) -> None:
        """A snapshot has these changes."""
        self._snapshot = changes

    def limits_of(self, feed: str) -> Limits:
        """The limits in force for a feed."""
        known = self._limits
        found = known.get(feed)
        if found is None:
            found = limits_of(self.settings, self.feeds.get(feed))
            if feed in self.feeds:  # not for every name that anybody asks for
                known[feed] = found
        return found

    def mediator_of(self, feed: str) -> FeedMediator | None:
        """The mediator of the next documents of a feed."""
        spans = self.mediators.get(feed)
        return spans[-1].mediator if spans else None

    def _mediate(self, sequence: int, feed: str, mediator: FeedMediator | None) -> None:
        spans = with_mediator(self.mediators.get(feed, ()), sequence, mediator)
        if spans:
            self.mediators[feed] = spans

    def is_matched_by_spark(self, feed: str) -> bool:
        """Whether the broker leaves matching of a feed's next documents to Spark."""
        spans = self.spark.get(feed)
        return spans is not None and spans[-1][1] is None

    def usage_of(self, tenant: str) -> TenantUsage:
        """What a tenant uses."""
        return self.usage.get(tenant, TenantUsage())

    def _count(self, record: SubscriptionRecord, count: int) -> None:
        self.usage.setdefault(record.tenant, TenantUsage()).add(record, count)

    def is_named(self, feed: str) -> bool:
        """Whether a feed exists, or a subscription names it."""
        return feed in self.feeds or any(feed in usage.feeds for usage in self.usage.values())

    def guard_patterns(self) -> list[str]:
        """The patterns of all guards."""
        found = (span.record.pattern for spans in list(self.guards.values()) for span in spans)
        return list(dict.fromkeys(pattern for pattern in found if pattern is not None))

    def forget_before(self, first: int) -> None:
        """Drop versions, guards, mediators and expiries of trimmed documents, which concern none from `first` on."""
        for name in [name for name, before in self.expired.items() if before <= first]:
            del self.expired[name]
        for tenant, spans in self.guards.items():
            self.guards[tenant] = since(spans, first)
        for feed, of_feed in list(self.mediators.items()):
            if kept_spans := mediators_since(of_feed, first):
                self.mediators[feed] = kept_spans
            else:
                del self.mediators[feed]
        for feed, left in list(self.spark.items()):
            if kept_left := spark_since(left, first):
                self.spark[feed] = kept_left
            else:
                del self.spark[feed]
        for key in tuple(self._versioned):
            standing = self.subscriptions[key]
            kept = [each for each in standing.versions[:-1] if each.end is not None and each.end > first]
            standing.versions = (*kept, standing.versions[-1])
            self._note(key, standing)

    def subscription(self, tenant: str, id: str) -> StandingSubscription:
        """A subscription; `UnknownSubscriptionError` if there is none, or none any more."""
        found = self.subscriptions.get((tenant, id))
        if found is None:
            raise UnknownSubscriptionError(f"unknown subscription {id!r}; create it with PUT /v1/subscriptions/{id}")
        return found

    def of_subscriber(self, tenant: str, subscriber: str) -> Iterator[StandingSubscription]:
        """The subscriptions of a subscriber."""
        for id in self.directory.all_of(tenant, subscriber):
            yield self.subscriptions[tenant, id]

    def checkpoint(self) -> bytes:
        """The state as bytes; `restored` reads them. The deduplication window is read from the log instead."""
        return b"".join(self.checkpoint_pieces())

    def checkpoint_pieces(self) -> list[bytes]:
        """The same bytes, which nobody has to join."""
        packing = CheckpointPacking(self.head, self._rest(), self.subscriptions.to_pack())
        while packing.left:
            packing.pack()
        return packing.pieces()

    def begin_packing(self) -> CheckpointPacking:
        """Begin a checkpoint of the state as it is now; records may be applied while it is packed."""
        self._packing = CheckpointPacking(self.head, self._rest(), self.subscriptions.to_pack())
        return self._packing

    def _rest(self) -> bytes:
        """All but the subscriptions, for a checkpoint."""
        return state_without_subscriptions(
            SavedState(
                FORMAT,
                self.ordinals,
                [],
                list(self.feeds.values()),
                {tenant: list(spans) for tenant, spans in self.guards.items()},
                self.settings,
                self.expired,
                {feed: list(spans) for feed, spans in self.mediators.items()},
                self.batches.saved(),
                {feed: list(spans) for feed, spans in self.spark.items()},
            )
        )

    def arrays(self) -> dict[str, AnyArray]:
        """The whole state as arrays of a snapshot; `opened` reads them."""
        rest = {
            "state": b"".join(with_subscriptions(self._rest(), 0, [])),
            "usage": msgpack.encode(self.usage),
            "published": msgpack.encode(self.published.entries()),
        }
        arrays: dict[str, AnyArray] = {name: np.frombuffer(data, dtype=np.uint8) for name, data in rest.items()}
        packed = PackedSubscriptions.arrays(self.subscriptions.rows())
        return arrays | {_PACKED + name: array for name, array in packed.items()}

    @classmethod
    def opened(cls, head: int, arrays: Mapping[str, AnyArray], window: int = SIZE) -> "BrokerState":
        """The state as of `head` that `arrays` returned; subscriptions are read in place."""
        state = cls.restored(head, arrays["state"].tobytes(), window)
        names = [name for name in arrays if name.startswith(_PACKED)]
        packed = PackedSubscriptions({name.removeprefix(_PACKED): arrays[name] for name in names})
        state.subscriptions = StandingSubscriptions(packed)
        state.directory = SubscriptionDirectory(packed=packed)
        state.troubled = set(state.subscriptions.troubled())
        state._versioned = set(state.subscriptions.with_earlier_versions())
        state.usage = msgpack.decode(arrays["usage"].data, type=dict[str, TenantUsage])
        for publisher, id, sequence in msgpack.decode(arrays["published"].data, type=list[tuple[str, str, int]]):
            state.published.add(publisher, id, sequence)
        state.saved(state.changes)
        return state

    @classmethod
    def restored(cls, head: int, data: bytes, window: int = SIZE) -> "BrokerState":
        """The state that a checkpoint of sequence `head` holds."""
        found = saved_state(head, data)
        state = cls(window)
        state.head = state._unread = head
        state.ordinals = found.ordinals
        state.feeds = {feed.name: feed for feed in found.feeds}
        state.settings = found.settings
        state.expired = found.expired
        state.guards = {tenant: tuple(spans) for tenant, spans in found.guards.items()}
        state.mediators = {feed: tuple(spans) for feed, spans in found.mediators.items()}
        state.spark = {feed: tuple(spans) for feed, spans in found.spark.items()}
        for sequence, batch in found.batches:
            state.batches.add(sequence, batch)
        for each in found.subscriptions:
            standing = each.standing()
            record = standing.record
            state.subscriptions[record.tenant, record.id] = standing
            state._note((record.tenant, record.id), standing)
            state._count(record, 1)
            state.directory.add(record.tenant, record.subscriber, record.id)
        state._changes = len(state.subscriptions)
        return state
