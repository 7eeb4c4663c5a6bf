"""All standing subscriptions, by tenant and id: objects, and rows of a snapshot that nobody has asked for yet.

    get ──▶ objects ──miss──▶ rows of the snapshot ──decode──▶ an object, from then on

A row is *taken* once its subscription is an object or has ended; from then on the objects alone decide.

Invariant: without a snapshot this is a dictionary of objects; with one, it has the same content. An object that was
returned for a key stays the one of that key, so it can be changed.
Threads: the sequencer's thread adds and removes; any thread gets. A lock guards the step from a row to an object.
"""

import threading
from collections.abc import Iterator, MutableMapping

import numpy as np

from ..checkpoint_packing import SubscriptionsToPack
from .packed_subscriptions import EARLIER_VERSIONS, EVERYWHERE, SINK, TROUBLED, PackedSubscriptions, Row
from .standing_subscription import SavedSubscription, StandingSubscription, encode_subscription

Key = tuple[str, str]


class StandingSubscriptions(MutableMapping[Key, StandingSubscription]):
    """Subscriptions by tenant and id."""

    def __init__(self, packed: PackedSubscriptions | None = None) -> None:
        self._objects: dict[Key, StandingSubscription] = {}
        self._packed = packed
        self._taken = bytearray(0 if packed is None else len(packed))
        self._left = len(self._taken)  # rows that are not taken
        self._lock = threading.Lock()

    def __getitem__(self, key: Key) -> StandingSubscription:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: Key, default: StandingSubscription | None = None) -> StandingSubscription | None:  # type: ignore[override]
        """The subscription of a key."""
        found = self._objects.get(key)
        if found is not None:
            return found
        if self._packed is not None:
            found = self._unpacked(self._packed, key)
        return default if found is None else found

    def read(self, key: Key) -> StandingSubscription | None:
        """The subscription of a key, to be read: that of a row is decoded for the caller, and not kept."""
        found = self._objects.get(key)
        if found is not None or self._packed is None:
            return found
        row = self._packed.find(*key)
        if row < 0:
            return None
        return self._objects.get(key) if self._taken[row] else self._packed.standing(row)

    def _unpacked(self, packed: PackedSubscriptions, key: Key) -> StandingSubscription | None:
        """The object of a row, made now; that of another thread if it was faster."""
        row = packed.find(*key)
        if row < 0:
            return None
        with self._lock:
            if self._taken[row]:
                return self._objects.get(key)
            self._take(row)
            found = self._objects[key] = packed.standing(row)
            return found

    def _take(self, row: int) -> None:
        self._taken[row] = 1
        self._left -= 1

    def __setitem__(self, key: Key, standing: StandingSubscription) -> None:
        row = -1 if self._packed is None else self._packed.find(*key)
        with self._lock:
            if row >= 0 and not self._taken[row]:
                self._take(row)
            self._objects[key] = standing

    def __delitem__(self, key: Key) -> None:
        if key not in self:  # which makes it an object
            raise KeyError(key)
        with self._lock:
            del self._objects[key]

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._objects) + self._left

    def __iter__(self) -> Iterator[Key]:
        objects, rows = self._parts()
        yield from [key for key, _ in objects]
        if self._packed is not None and len(rows):
            left = np.zeros(len(self._taken), dtype=np.bool_)
            left[rows] = True
            yield from (key for key, is_left in zip(self._packed.keys(), left.tolist(), strict=True) if is_left)

    def items(self) -> Iterator[tuple[Key, StandingSubscription]]:  # type: ignore[override]
        """All subscriptions as of now, to be read: those of rows are decoded for the caller, and not kept."""
        objects, rows = self._parts()
        yield from objects
        if self._packed is not None:
            for row in rows:
                yield self._packed.key(row), self._packed.standing(row)

    def values(self) -> Iterator[StandingSubscription]:  # type: ignore[override]
        """As `items`, without the keys."""
        return (standing for _, standing in self.items())

    def _parts(self, flag: int = 0) -> tuple[list[tuple[Key, StandingSubscription]], list[int]]:
        """The objects and the rows that are not taken, as of now; with a flag, only the rows that have it."""
        with self._lock:
            objects = list(self._objects.items())
            if not self._left or self._packed is None:
                return objects, []
            left = np.frombuffer(bytes(self._taken), dtype=np.uint8) == 0
        if flag:
            left &= (self._packed.flags & flag) != 0
        return objects, np.flatnonzero(left).tolist()

    # Without a look at all rows.

    def with_sink(self) -> list[Key]:
        """The subscriptions with a sink."""
        objects, rows = self._parts(SINK)
        found = [key for key, standing in objects if standing.record.sink is not None]
        return found if self._packed is None else found + [self._packed.key(row) for row in rows]

    def troubled(self) -> list[Key]:
        """The subscriptions with dead letters or a disabled webhook."""
        objects, rows = self._parts(TROUBLED)
        found = [key for key, standing in objects if standing.is_troubled]
        return found if self._packed is None else found + [self._packed.key(row) for row in rows]

    def everywhere(self) -> Iterator[StandingSubscription]:
        """The subscriptions that name no feed, to be read."""
        objects, rows = self._parts(EVERYWHERE)
        yield from (standing for _, standing in objects if not standing.record.feeds)
        if self._packed is not None:
            yield from map(self._packed.standing, rows)

    def with_earlier_versions(self) -> list[Key]:
        """The subscriptions with more than one version."""
        objects, rows = self._parts(EARLIER_VERSIONS)
        found = [key for key, standing in objects if len(standing.versions) > 1]
        return found if self._packed is None else found + [self._packed.key(row) for row in rows]

    def settled(self) -> list[int]:
        """The sequence up to which nothing is left to do, of each subscription with a cursor."""
        objects, rows = self._parts()
        found = [standing.cursor.settled for _, standing in objects if standing.cursor is not None]
        if self._packed is not None and rows:
            of_rows = self._packed.settled[rows]
            found += of_rows[of_rows >= 0].tolist()
        return found

    # As bytes.

    def to_pack(self) -> SubscriptionsToPack:
        """All subscriptions as of now, for a checkpoint."""
        with self._lock:
            objects = self._objects.copy()
            left = np.flatnonzero(np.frombuffer(bytes(self._taken), dtype=np.uint8) == 0)
        packed = self._packed
        if packed is None:
            return SubscriptionsToPack(objects, iter(()), 0)
        return SubscriptionsToPack(objects, (packed.encoded(int(row)) for row in left), len(left))

    def rows(self) -> Iterator[Row]:
        """Each subscription as snapshots have it."""
        objects, rows = self._parts()
        for _, standing in objects:
            yield Row.of(standing, encode_subscription(SavedSubscription.of(standing)))
        if self._packed is not None:
            yield from self._packed.kept(rows)
