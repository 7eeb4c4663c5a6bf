"""The state of the broker: what the records of the log, in their order, add up to.

    record ──apply──▶ subscriptions, cursors, feeds, guards, deduplication window

Live, after a restart and in any other reader of the log, the same records give the same state. The state is plain data:
what matches documents (feed_index.py) is built from it.

A *version* of a subscription matches document N when `begin <= N < end`. A change ends one version and begins the next,
under the same cursor, so changing a subscription loses nothing. Ordinals number the versions in the order of the log.

Only the sequencer's thread applies records. Other threads read single subscriptions; a subscription's versions are a
tuple that is replaced.
"""

import time
from collections.abc import Iterator
from typing import Final

from msgspec import DecodeError, Struct, ValidationError, msgpack

from pathcast.documents import Limits
from pathcast.log import LogError

from .broker_records import (
    CursorRecord,
    DocumentRecord,
    ExpiryRecord,
    FeedRecord,
    Meta,
    SettingsRecord,
    SinkDisabledRecord,
    SubscriptionRecord,
    TenantRecord,
    UnsubscriptionRecord,
)
from .dead_letters import DeadLetter, DeadLetterRecord, DeadLetterReplayRecord, DeadLetters
from .deduplication_window import SIZE, DeduplicationWindow
from .feed_settings import limits_of
from .guards import GuardSpan, GuardSpans, since, with_guard
from .subscription_activity import LastDelivery, LastError
from .subscription_cursor import SubscriptionCursor
from .subscription_directory import SubscriptionDirectory

_FORMAT: Final = 1
# Versions kept per subscription: one that changes all the time must not grow without bound.
_VERSIONS: Final = 1_000


class Version(Struct, frozen=True, gc=False):
    """A version of a subscription: it matches the documents `begin <= N < end` of its feeds, or of all feeds."""

    ordinal: int
    begin: int
    end: int | None
    record: SubscriptionRecord


class StandingSubscription(Struct, gc=False):
    """A subscription with its current version, those before it (a replay may need them), and its cursor.

    `begin` is the first sequence that it can match, even if the version that did was forgotten with its documents: they
    are a gap for a reader that asks for them.
    """

    created: int
    begin: int
    versions: tuple[Version, ...]
    cursor: SubscriptionCursor | None = None
    dead: DeadLetters | None = None
    last_delivery: LastDelivery | None = None
    last_error: LastError | None = None
    disabled: str | None = None  # why its webhook is sent nothing

    @property
    def current(self) -> Version:
        """The version in force."""
        return self.versions[-1]

    @property
    def record(self) -> SubscriptionRecord:
        """The definition in force."""
        return self.versions[-1].record

    def own_cursor(self) -> SubscriptionCursor:
        """The cursor, created when it is first needed."""
        self.cursor = self.present_cursor()
        return self.cursor

    def present_cursor(self) -> SubscriptionCursor:
        """The cursor, or what it will be once it is needed."""
        return SubscriptionCursor.at(self.begin - 1) if self.cursor is None else self.cursor

    def delivered(self, sequence: int, way: str) -> None:
        """A document was handed out."""
        self.last_delivery = LastDelivery(sequence, way, time.time())

    def failed(self, reason: str) -> None:
        """A delivery failed, or cannot be made."""
        self.last_error = LastError(reason, time.time())

    def take(self, meta: CursorRecord | DeadLetterRecord | DeadLetterReplayRecord | SinkDisabledRecord) -> None:
        """Take a record about deliveries of this subscription into account."""
        match meta:
            case CursorRecord():
                self.move_cursor(meta)
            case DeadLetterRecord():
                self.bury(meta)
            case DeadLetterReplayRecord():
                self.revive(meta)
            case SinkDisabledRecord() if meta.sink == self.record.sink:
                self.disabled = meta.reason

    def move_cursor(self, record: CursorRecord) -> None:
        """Adopt a cursor from the log. A replay makes the dead letters above its floor ordinary deliveries."""
        if not record.replay:
            self.own_cursor().move(record.floor, record.acknowledged, record.settled)
            return
        revived = () if self.cursor is None else tuple(each for each in self.cursor.revived if each <= record.floor)
        self.cursor = SubscriptionCursor.at(record.floor, (), revived)
        if self.dead is not None:
            self.dead.remove([each for each in self.dead.letters if each > record.floor])

    def bury(self, record: DeadLetterRecord) -> None:
        """Keep dead letters."""
        if self.dead is None:
            self.dead = DeadLetters()
        self.dead.add(record.letters)

    def revive(self, record: DeadLetterReplayRecord) -> None:
        """Make dead letters due again."""
        if self.dead is not None:
            known = [each for each in record.sequences if each in self.dead.letters]
            self.dead.remove(known)
            self.own_cursor().revive(known)


class TenantUsage(Struct):
    """What a tenant uses: how many subscriptions, and how many of them have each sink."""

    subscriptions: int = 0
    sinks: dict[str, int] = {}

    def add(self, record: SubscriptionRecord, count: int) -> None:
        """`count` subscriptions more, or fewer, like a record."""
        self.subscriptions += count
        if record.sink is not None:
            left = self.sinks.get(record.sink, 0) + count
            if left:
                self.sinks[record.sink] = left
            else:
                del self.sinks[record.sink]


class _Saved(Struct):
    """One subscription in a checkpoint."""

    created: int
    versions: list[Version]
    cursor: tuple[int, list[int]] | None
    revived: list[int] = []
    dead: list[DeadLetter] = []
    dead_total: int = 0
    begin: int = 0
    disabled: str | None = None


class _Format(Struct):
    """What every format of a checkpoint begins with."""

    format: int


class _Checkpoint(Struct):
    """The state as a checkpoint of the log holds it."""

    format: int
    ordinals: int
    subscriptions: list[_Saved]
    feeds: list[FeedRecord]
    guards: dict[str, list[GuardSpan]] = {}
    settings: SettingsRecord = SettingsRecord()
    expired: dict[str, int] = {}


class BrokerState:
    """Subscriptions, cursors and feeds as of sequence `head`."""

    def __init__(self, window: int = SIZE) -> None:
        self.head = 0
        self.ordinals = 0
        self.subscriptions: dict[tuple[str, str], StandingSubscription] = {}
        self.directory = SubscriptionDirectory()
        self.feeds: dict[str, FeedRecord] = {}
        self.expired: dict[str, int] = {}  # per feed, the first sequence that is still delivered
        self.settings = SettingsRecord()
        self.guards: dict[str, GuardSpans] = {}
        self.usage: dict[str, TenantUsage] = {}
        self.published = DeduplicationWindow(window)
        self._limits: dict[str, Limits] = {}  # of feeds; replaced when a setting changes

    def apply(self, sequence: int, meta: Meta | None) -> None:
        """Take the record at a sequence into account."""
        self.head = sequence
        match meta:
            case DocumentRecord(publisher=publisher, id=str() as id):
                self.published.add(publisher, id, sequence)
            case SubscriptionRecord():
                self._put(sequence, meta)
            case UnsubscriptionRecord():
                self._remove(meta)
            case CursorRecord() | DeadLetterRecord() | DeadLetterReplayRecord() | SinkDisabledRecord():
                found = self.subscriptions.get((meta.tenant, meta.id))
                if found is not None:
                    found.take(meta)
            case FeedRecord():
                if meta.removed:
                    self.feeds.pop(meta.name, None)
                else:
                    self.feeds[meta.name] = meta
                self._limits = {}
            case ExpiryRecord():
                before = sequence if meta.before is None else min(meta.before, sequence)
                self.expired[meta.feed] = max(before, self.expired.get(meta.feed, 0))
            case SettingsRecord():
                self.settings = meta
                self._limits = {}
            case TenantRecord():
                self.guards[meta.tenant] = with_guard(self.guards.get(meta.tenant, ()), sequence, meta)

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
            ended = Version(before.ordinal, before.begin, sequence, before.record)
            # A change takes effect where it stands in the log: what the version before it matched stays matched.
            version = Version(self.ordinals, max(begin, sequence), None, record)
            found.versions = (*found.versions[:-1], ended, version)[-_VERSIONS:]
        self.directory.add(record.tenant, record.subscriber, record.id)
        self._count(record, 1)
        self.ordinals += 1

    def _remove(self, record: UnsubscriptionRecord) -> None:
        found = self.subscriptions.pop((record.tenant, record.id), None)
        if found is not None:
            self.directory.remove(found.record.tenant, found.record.subscriber, found.record.id)
            self._count(found.record, -1)

    def limits_of(self, feed: str) -> Limits:
        """The limits in force for a feed."""
        known = self._limits
        found = known.get(feed)
        if found is None:
            found = limits_of(self.settings, self.feeds.get(feed))
            if feed in self.feeds:  # not for every name that anybody asks for
                known[feed] = found
        return found

    def usage_of(self, tenant: str) -> TenantUsage:
        """What a tenant uses."""
        return self.usage.get(tenant, TenantUsage())

    def _count(self, record: SubscriptionRecord, count: int) -> None:
        self.usage.setdefault(record.tenant, TenantUsage()).add(record, count)

    def guard_patterns(self) -> list[str]:
        """The patterns of all guards."""
        found = (span.record.pattern for spans in list(self.guards.values()) for span in spans)
        return list(dict.fromkeys(pattern for pattern in found if pattern is not None))

    def forget_before(self, first: int) -> None:
        """Drop versions, guards and expiries of trimmed documents, which concern none from `first` on."""
        for name in [name for name, before in self.expired.items() if before <= first]:
            del self.expired[name]
        for tenant, spans in self.guards.items():
            self.guards[tenant] = since(spans, first)
        for standing in self.subscriptions.values():
            if len(standing.versions) > 1:
                kept = [each for each in standing.versions[:-1] if each.end is not None and each.end > first]
                standing.versions = (*kept, standing.versions[-1])

    def of_subscriber(self, tenant: str, subscriber: str) -> Iterator[StandingSubscription]:
        """The subscriptions of a subscriber."""
        for id in self.directory.all_of(tenant, subscriber):
            yield self.subscriptions[tenant, id]

    def checkpoint(self) -> bytes:
        """The state as bytes; `restored` reads them. The deduplication window is read from the log instead."""
        saved = [
            _Saved(
                each.created,
                list(each.versions),
                None if each.cursor is None else (each.cursor.floor, sorted(each.cursor.acknowledged)),
                [] if each.cursor is None else sorted(each.cursor.revived),
                [] if each.dead is None else list(each.dead.letters.values()),
                0 if each.dead is None else each.dead.total,
                each.begin,
                each.disabled,
            )
            for each in self.subscriptions.values()
        ]
        return msgpack.encode(
            _Checkpoint(
                _FORMAT,
                self.ordinals,
                saved,
                list(self.feeds.values()),
                {tenant: list(spans) for tenant, spans in self.guards.items()},
                self.settings,
                self.expired,
            )
        )

    @staticmethod
    def is_outdated(data: bytes) -> bool:
        """Whether an earlier Pathcast wrote a checkpoint in a format that this one does not read."""
        try:
            return msgpack.decode(data, type=_Format).format < _FORMAT
        except (DecodeError, ValidationError):
            return False

    @classmethod
    def restored(cls, head: int, data: bytes, window: int = SIZE) -> "BrokerState":
        """The state that a checkpoint of sequence `head` holds."""
        try:
            version = msgpack.decode(data, type=_Format).format
            if version != _FORMAT:
                advice = (
                    "update Pathcast" if version > _FORMAT else "start a version that reads both; CHANGELOG.md names it"
                )
                raise LogError(
                    f"the state in the checkpoint at {head} has format {version}; this Pathcast reads {_FORMAT}: "
                    f"{advice}"
                )
            found = msgpack.decode(data, type=_Checkpoint)
        except (DecodeError, ValidationError) as error:
            raise LogError(f"the checkpoint at {head} is malformed: {error}; restore a backup") from None
        state = cls(window)
        state.head, state.ordinals = head, found.ordinals
        state.feeds = {feed.name: feed for feed in found.feeds}
        state.settings = found.settings
        state.expired = found.expired
        state.guards = {tenant: tuple(spans) for tenant, spans in found.guards.items()}
        for each in found.subscriptions:
            record = each.versions[-1].record
            standing = StandingSubscription(each.created, each.begin or each.versions[0].begin, tuple(each.versions))
            if each.cursor is not None:
                standing.cursor = SubscriptionCursor.at(each.cursor[0], tuple(each.cursor[1]), tuple(each.revived))
            standing.disabled = each.disabled
            if each.dead_total:
                standing.dead = DeadLetters({letter.sequence: letter for letter in each.dead}, each.dead_total)
            state.subscriptions[record.tenant, record.id] = standing
            state._count(record, 1)
            state.directory.add(record.tenant, record.subscriber, record.id)
        return state
