"""The ids of subscriptions in order, per tenant and per subscriber: pages of any of them, without sorting all per page.

An order is made when somebody first asks for a page of many subscriptions, and kept from then on, so a broker that is
restarted with a million subscriptions does not wait for orders that nobody asks for.

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

# Fewer ids than this are sorted for each page.
_FEW: Final = 512


class _Ids:
    """Some ids, in order once that is worth it."""

    __slots__ = ("ids", "later", "order")

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.order: SortedList[str] | None = None
        self.later: list[str] | None = None  # ids that were added or removed while an order is being made

    def changed(self, id: str) -> None:
        """An id is new, or gone."""
        if self.later is not None:
            self.later.append(id)
        elif self.order is not None:
            self.adopt(id)

    def adopt(self, id: str) -> None:
        """Let the order agree with the set about one id."""
        assert self.order is not None
        if (id in self.order) != (id in self.ids):
            (self.order.add if id in self.ids else self.order.remove)(id)


class SubscriptionDirectory:
    """The ids of all subscriptions, by tenant and by subscriber."""

    def __init__(self, ordered: "Callable[[list[str]], SortedList[str]] | None" = None) -> None:
        self._ordered = ordered or _ordered
        self._of: dict[tuple[str, str | None], _Ids] = {}  # None stands for all subscribers of a tenant
        self._lock = threading.Lock()
        self._ordering = threading.Lock()  # one order is made at a time

    def add(self, tenant: str, subscriber: str, id: str) -> None:
        """A subscription begins, or belongs to another subscriber from now on."""
        with self._lock:
            for key in ((tenant, subscriber), (tenant, None)):
                found = self._of.get(key)
                if found is None:
                    found = self._of[key] = _Ids()
                if id not in found.ids:
                    found.ids.add(id)
                    found.changed(id)

    def remove(self, tenant: str, subscriber: str, id: str) -> None:
        """A subscription ends."""
        with self._lock:
            for key in ((tenant, subscriber), (tenant, None)):
                found = self._of[key]
                found.ids.discard(id)
                found.changed(id)
                if not found.ids:
                    del self._of[key]

    def count(self, tenant: str, subscriber: str | None = None) -> int:
        """How many subscriptions a tenant has, or one of its subscribers."""
        found = self._of.get((tenant, subscriber))
        return 0 if found is None else len(found.ids)

    def tenants(self) -> set[str]:
        """The tenants with subscriptions."""
        with self._lock:
            return {tenant for tenant, subscriber in self._of if subscriber is None}

    def after(self, tenant: str, position: str, most: int, subscriber: str | None = None) -> list[str]:
        """At most `most` ids behind a position, ascending."""
        with self._lock:
            found = self._of.get((tenant, subscriber))
            if found is None:
                return []
            if len(found.ids) <= _FEW:
                return sorted(id for id in found.ids if id > position)[:most]
        with self._ordering:
            if found.order is None:
                self._make_order(found)
        with self._lock:
            assert found.order is not None
            return list(islice(found.order.irange(position, inclusive=(False, True)), most))

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
