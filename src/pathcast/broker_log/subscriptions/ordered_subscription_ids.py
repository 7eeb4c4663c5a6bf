"""The ids of subscriptions in order, per tenant and per subscriber: pages of any of them, without sorting all per page.

An order is made when somebody first asks for a page of many subscriptions, and kept from then on, so a broker that is
restarted with a million subscriptions does not wait for orders that nobody asks for. Ids of a snapshot are in order
already; they are read where they are, and only those that have ended since are remembered.

Threads: the sequencer adds and removes, any thread asks; a lock guards both. A large order is made outside the lock;
what changes meanwhile is applied to it afterwards.
Cost: adding and removing 1 µs, 5 µs more per order that was made; a page O(log n) plus its length; making an order of a
million ids 0.6 s, once.
"""

import threading
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sortedcontainers import SortedList

    from .packed_subscriptions import PackedIds, PackedSubscriptions

# Fewer ids than this are sorted for each page.
_FEW: Final = 512


class _Ids:
    """Some ids: those of a snapshot except the ones that are gone, and further ones, in order once that is worth it."""

    __slots__ = ("gone", "ids", "later", "order", "packed")

    def __init__(self, packed: "PackedIds | None" = None) -> None:
        self.packed = packed
        self.gone: set[str] = set()  # of the packed ones
        self.ids: dict[str, None] = {}  # the others; unlike a set, no garbage collection scans a dictionary of texts
        self.order: SortedList[str] | None = None  # of the others
        self.later: list[str] | None = None  # ids that were added or removed while an order is being made

    def __len__(self) -> int:
        return len(self.ids) - len(self.gone) + (0 if self.packed is None else self.packed.count)

    def add(self, id: str) -> None:
        """An id is there from now on."""
        if self.packed is not None and id in self.packed:
            self.gone.discard(id)
        elif id not in self.ids:
            self.ids[id] = None
            self._changed(id)

    def remove(self, id: str) -> None:
        """An id is no longer there."""
        if self.packed is not None and id in self.packed:
            self.gone.add(id)
        elif id in self.ids:
            del self.ids[id]
            self._changed(id)

    def _changed(self, id: str) -> None:
        if self.later is not None:
            self.later.append(id)
        elif self.order is not None:
            self.adopt(id)

    def adopt(self, id: str) -> None:
        """Let the order agree with the set about one id."""
        assert self.order is not None
        if (id in self.order) != (id in self.ids):
            (self.order.add if id in self.ids else self.order.remove)(id)

    @property
    def needs_order(self) -> bool:
        """Whether an order must be made before pages are."""
        return self.order is None and len(self.ids) > _FEW

    def after(self, position: str, most: int) -> list[str]:
        """At most `most` ids behind a position, ascending."""
        if self.order is not None:
            found = list(islice(self.order.irange(position, inclusive=(False, True)), most))
        else:
            found = sorted(id for id in self.ids if id > position)[:most]
        if self.packed is not None:
            found += islice((id for id in self.packed.after(position) if id not in self.gone), most)
            found.sort()
        return found[:most]


class SubscriptionDirectory:
    """The ids of all subscriptions, by tenant and by subscriber."""

    def __init__(
        self,
        ordered: "Callable[[list[str]], SortedList[str]] | None" = None,
        packed: "PackedSubscriptions | None" = None,
    ) -> None:
        """`packed`: the subscriptions of a snapshot, which are there at first."""
        self._ordered = ordered or _ordered
        self._packed = packed
        self._of: dict[tuple[str, str | None], _Ids] = {}  # None stands for all subscribers of a tenant
        self._lock = threading.Lock()
        self._ordering = threading.Lock()  # one order is made at a time

    def _find(self, tenant: str, subscriber: str | None) -> _Ids | None:
        found = self._of.get((tenant, subscriber))
        if found is None and self._packed is not None:
            packed = self._packed.ids_of(tenant, subscriber)
            if packed is not None:
                found = self._of[tenant, subscriber] = _Ids(packed)
        return found

    def add(self, tenant: str, subscriber: str, id: str) -> None:
        """A subscription begins, or belongs to another subscriber from now on."""
        with self._lock:
            for key in ((tenant, subscriber), (tenant, None)):
                found = self._find(*key)
                if found is None:
                    found = self._of[key] = _Ids()
                found.add(id)

    def remove(self, tenant: str, subscriber: str, id: str) -> None:
        """A subscription ends."""
        with self._lock:
            for key in ((tenant, subscriber), (tenant, None)):
                found = self._find(*key)
                if found is not None:
                    found.remove(id)
                    if not found and found.packed is None:
                        del self._of[key]

    def count(self, tenant: str, subscriber: str | None = None) -> int:
        """How many subscriptions a tenant has, or one of its subscribers."""
        with self._lock:
            found = self._find(tenant, subscriber)
            return 0 if found is None else len(found)

    def tenants(self) -> set[str]:
        """The tenants with subscriptions."""
        with self._lock:
            known = {tenant: len(ids) for (tenant, subscriber), ids in self._of.items() if subscriber is None}
            packed = set() if self._packed is None else self._packed.tenants.keys() - known.keys()
            return {tenant for tenant, count in known.items() if count} | packed

    def after(self, tenant: str, position: str, most: int, subscriber: str | None = None) -> list[str]:
        """At most `most` ids behind a position, ascending."""
        with self._lock:
            found = self._find(tenant, subscriber)
            if found is None:
                return []
            if not found.needs_order:
                return found.after(position, most)
        with self._ordering:
            if found.order is None:
                self._make_order(found)
        with self._lock:
            return found.after(position, most)

    def all_of(self, tenant: str, subscriber: str) -> list[str]:
        """All ids of a subscriber, ascending."""
        return self.after(tenant, "", self.count(tenant, subscriber), subscriber)

    def _make_order(self, found: _Ids) -> None:
        with self._lock:
            known, found.later = list(found.ids), []
        order = self._ordered(known)
        with self._lock:
            found.order = order
            for id in found.later:
                found.adopt(id)
            found.later = None


def _ordered(ids: list[str]) -> "SortedList[str]":
    from sortedcontainers import SortedList

    return SortedList(ids)
