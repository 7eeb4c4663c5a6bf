"""A checkpoint that is put together in pieces, while later records are applied to the state.

    state as of H ──pack──▶ some subscriptions ──pack──▶ … ──▶ pieces of the checkpoint of H
                     ▲
    record after H ──┴─ the subscription that it changes is packed first, as it was

The thread that applies records also calls `pack`, a few thousand subscriptions at a time, with other work in between.

Invariant: the pieces are the state as of `sequence`, whatever is applied before the last subscription is packed.
Cost: 1 µs per subscription, less if a snapshot has it; to begin, 28 ns per subscription (28 ms for a million).
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from .checkpoint_format import with_subscriptions
from .subscriptions.standing_subscription import SavedSubscription, StandingSubscription, encode_subscription

# Subscriptions that are packed at a time, in some 2 ms.
MOST: Final = 2_000


class SubscriptionsToPack(NamedTuple):
    """All subscriptions as of now: objects, and those that a snapshot has, whose bytes never change."""

    objects: dict[tuple[str, str], StandingSubscription]
    stored: Iterator[memoryview]
    stored_count: int


class CheckpointPacking:
    """A checkpoint of `sequence` in the making. All methods are called by the thread that applies records."""

    def __init__(self, sequence: int, rest: bytes, subscriptions: SubscriptionsToPack) -> None:
        """`rest`: the state without its subscriptions (checkpoint_format.py)."""
        self.sequence = sequence
        self._rest = rest
        self._objects, self._stored, self._stored_left = subscriptions
        self._count = 0
        self._encoded: list[bytes] = []

    @property
    def left(self) -> int:
        """How many subscriptions are not packed yet."""
        return len(self._objects) + self._stored_left

    def keep(self, key: tuple[str, str]) -> None:
        """Pack a subscription as it is now: it is about to change."""
        standing = self._objects.pop(key, None)
        if standing is not None:
            self._add([_encoded(standing)])

    def pack(self, most: int = MOST) -> None:
        """Pack at most this many of the subscriptions that are left."""
        objects = self._objects
        changed = [_encoded(objects.popitem()[1]) for _ in range(min(most, len(objects)))]
        stored = list(islice(self._stored, most - len(changed)))
        self._stored_left -= len(stored)
        self._add([*changed, *stored])

    def _add(self, encoded: list[bytes | memoryview]) -> None:
        self._count += len(encoded)
        self._encoded.append(b"".join(encoded))

    def pieces(self) -> list[bytes]:
        """The checkpoint, once nothing is left. To be called once: the bytes are the caller's."""
        assert not self.left
        encoded, self._encoded = self._encoded, []
        return with_subscriptions(self._rest, self._count, encoded)


def _encoded(standing: StandingSubscription) -> bytes:
    return encode_subscription(SavedSubscription.of(standing))
