"""What a checkpoint of the log holds: the state without the deduplication window, which the log itself has.

Subscriptions are encoded one by one (standing_subscription.py), so a checkpoint can be put together in pieces.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import DecodeError, Struct, ValidationError, msgpack, structs

from pathcast.log import LogError

from .broker_records import FeedRecord, SettingsRecord
from .committed_batch_deduplication import SavedBatch
from .feed_mediators import MediatorSpan
from .subscriptions.standing_subscription import SavedSubscription
from .tenant_visibility_guards import GuardSpan

FORMAT: Final = 1


class _Format(Struct):
    """What every format of a checkpoint begins with."""

    format: int


class SavedState(Struct):
    """The state as a checkpoint holds it."""

    format: int
    ordinals: int
    subscriptions: list[SavedSubscription]
    feeds: list[FeedRecord]
    guards: dict[str, list[GuardSpan]] = {}
    settings: SettingsRecord = SettingsRecord()
    expired: dict[str, int] = {}
    mediators: dict[str, list[MediatorSpan]] = {}
    batches: list[SavedBatch] = []
    spark: dict[str, list[tuple[int, int | None]]] = {}


def state_without_subscriptions(state: SavedState) -> bytes:
    """All but the subscriptions, encoded; `with_subscriptions` completes it."""
    fields = structs.asdict(state)
    del fields["subscriptions"]
    # A MessagePack map of up to 15 entries begins with this byte; the subscriptions will be its last entry.
    return bytes([0x80 | (len(fields) + 1)]) + b"".join(
        msgpack.encode(name) + msgpack.encode(value) for name, value in fields.items()
    )


def with_subscriptions(rest: bytes, count: int, encoded: Sequence[bytes]) -> list[bytes]:
    """A checkpoint in pieces; `encoded` has `count` subscriptions, one after the other."""
    return [rest + msgpack.encode("subscriptions") + b"\xdd" + count.to_bytes(4, "big"), *encoded]


def is_outdated(data: bytes) -> bool:
    """Whether an earlier version of Pathcast wrote a checkpoint in a format that this one does not read."""
    try:
        return msgpack.decode(data, type=_Format).format < FORMAT
    except (DecodeError, ValidationError):
        return False


def saved_state(head: int, data: bytes) -> SavedState:
    """What the checkpoint of sequence `head` holds."""
    try:
        version = msgpack.decode(data, type=_Format).format
        if version != FORMAT:
            advice = (
                "update Pathcast" if version > FORMAT else "start a version that reads both formats (see CHANGELOG.md)"
            )
            raise LogError(
                f"the checkpoint at {head} has state format {version}, but this version of Pathcast reads format "
                f"{FORMAT}; {advice}"
            )
        return msgpack.decode(data, type=SavedState)
    except (DecodeError, ValidationError) as error:
        raise LogError(f"the checkpoint at {head} is malformed: {error}; restore the log from a backup") from None
