"""A subscription as of a sequence: its versions, its cursor, its dead letters; and its bytes in checkpoints.

A *version* of a subscription matches document N when `begin <= N < end`. A change ends one version and begins the next,
under the same cursor, so changing a subscription loses nothing. Ordinals number the versions in the order of the log.
"""

import time
from bisect import bisect_right

from msgspec import Struct, msgpack

from ..broker_records import CursorRecord, SinkDisabledRecord, SubscriptionRecord
from ..dead_letters import DeadLetter, DeadLetterRecord, DeadLetterReplayRecord, DeadLetters
from .last_delivery_and_error import LastDelivery, LastError
from .subscription_cursor import SubscriptionCursor


class Version(Struct, frozen=True, gc=False):
    """A version of a subscription: it matches the documents `begin <= N < end` of its feeds, or of all feeds."""

    ordinal: int
    begin: int
    end: int | None
    record: SubscriptionRecord


def _end(version: Version) -> int:
    assert version.end is not None
    return version.end


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

    def versions_after(self, position: int) -> tuple[Version, ...]:
        """The versions that may match documents after a position."""
        return self.versions[bisect_right(self.versions[:-1], position + 1, key=_end) :]

    @property
    def is_troubled(self) -> bool:
        """Whether somebody should look at it: it has dead letters, or its webhook is sent nothing."""
        return self.disabled is not None or (self.dead is not None and bool(self.dead.letters))

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


class SavedSubscription(Struct):
    """A subscription in a checkpoint. Leases are not durable."""

    created: int
    versions: list[Version]
    cursor: tuple[int, list[int]] | None
    revived: list[int] = []
    dead: list[DeadLetter] = []
    dead_total: int = 0
    begin: int = 0
    disabled: str | None = None

    @classmethod
    def of(cls, standing: StandingSubscription) -> "SavedSubscription":
        """What a checkpoint keeps of a subscription."""
        cursor, dead = standing.cursor, standing.dead
        return cls(
            standing.created,
            list(standing.versions),
            None if cursor is None else (cursor.floor, sorted(cursor.acknowledged)),
            [] if cursor is None else sorted(cursor.revived),
            [] if dead is None else list(dead.letters.values()),
            0 if dead is None else dead.total,
            standing.begin,
            standing.disabled,
        )

    def standing(self) -> StandingSubscription:
        """The subscription."""
        found = StandingSubscription(self.created, self.begin or self.versions[0].begin, tuple(self.versions))
        if self.cursor is not None:
            found.cursor = SubscriptionCursor.at(self.cursor[0], tuple(self.cursor[1]), tuple(self.revived))
        found.disabled = self.disabled
        if self.dead_total:
            found.dead = DeadLetters({letter.sequence: letter for letter in self.dead}, self.dead_total)
        return found


encode_subscription = msgpack.Encoder().encode
decode_subscription = msgpack.Decoder(SavedSubscription).decode
