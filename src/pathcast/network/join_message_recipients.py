"""Recipients: the subscriptions that a message of standing joins is for, among all subscriptions or a share of them.

A message is delivered to a subscription if one of its filters matches (§2.1 of the select-join paper). A table of
filters evaluates all at once (`filter_covering_index.py`): subscriptions that were given as arrays are rows of
coordinates, which usually decide; a filter object is created only where they cannot (whole numbers beyond 53 bits). A
message to one subscription names the subscription.

Invariant: `of(message)` returns exactly the subscriptions that have a matching filter.
Cost: 16 bytes per range and filter, of which a binary join has about 12; `filter_point_index.py` has the time per
message.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pathcast.joins.partition import StandingJoins, SubscriptionSeries
from pathcast.joins.query import Subscription
from pathcast.joins.schemes import TO
from pathcast.kernels import AnyArray, Int64s
from pathcast.messages import Filter, Message

from .content_addressable.filter_point_transformation import Probe, shape
from .tree.filter_covering_index import FilterTable

Ids = Int64s
_EXACT = 1 << 53


class Recipients:
    """The filters of standing joins: of all subscriptions, or of those with `id % shares == share`."""

    def __init__(self, standing: StandingJoins, share: int = 0, shares: int = 1) -> None:
        self._table = FilterTable()
        self._single: list[int] = []
        self._share, self._shares = share, shares
        self._standing = standing
        asked = [one for one in standing.asked if one.id % shares == share]
        # Subscriptions of a series differ only in their ranges, so one of them determines the filters of all.
        models = [each._replace(ranges=_model(each), gone=frozenset()) for each in standing.many]
        server = standing.only(asked, [each.part(0, 1) for each in models]).server()
        self.subscribers: dict[int, Any] = {one.id: one.subscriber for one in asked}
        for one in asked:
            self._register(server.subscriptions[one.id])
        for each in standing.many:
            self._register_many(each, server.subscriptions[each.first])

    def of(self, message: Message) -> Ids:
        """The ids of the subscriptions that a message is for, ascending."""
        to = message.get(TO)
        if to is not None:
            here = type(to) is int and to % self._shares == self._share and to in self._standing
            return np.array([to] if here else [], np.int64)
        entries, _ = self._table.match(Probe(message))
        single = entries < 0
        if single.any():
            entries = entries.copy()
            entries[single] = np.array(self._single, np.int64)[-1 - entries[single]]
        return np.unique(entries)

    def _register(self, subscription: Subscription) -> None:
        for one in subscription.filters:
            shaped = shape(one)
            if not any(name == TO for name, _ in shaped.signature.equal):
                self._single.append(subscription.id)
                self._table.add(-len(self._single), shaped)

    def _register_many(self, many: SubscriptionSeries, model: Subscription) -> None:
        ids = np.arange(many.first, many.first + many.size)
        mine = ids % self._shares == self._share
        mine[[id - many.first for id in many.gone]] = False
        for ends in many.ranges.values():
            for end in ends:
                if end.dtype.kind == "i":
                    mine &= np.abs(end) <= _EXACT
        left = np.setdiff1d(ids[ids % self._shares == self._share], [*ids[mine], *many.gone])
        for id in left.tolist():  # coordinates do not distinguish their ends
            self._register(self._member(many, id))
        ends_of = _ends_of(many)
        for number, one in enumerate(model.filters):
            shaped = shape(one)
            if any(name == TO for name, _ in shaped.signature.equal):
                continue
            points = np.empty((int(mine.sum()), len(shaped.point)))
            for at, coordinate in enumerate(shaped.point):
                points[:, at] = np.sign(coordinate) * ends_of[abs(coordinate)][mine]
            self._table.add_rows(ids[mine], shaped.signature, points, filter_of=self._filters(many, number))

    def _filters(self, many: SubscriptionSeries, number: int) -> Callable[[int], Filter]:
        return lambda id: self._member(many, id).filters[number]

    def _member(self, many: SubscriptionSeries, id: int) -> Subscription:
        at = id - many.first
        return self._standing.only([], [many.part(at, at + 1)]).server().subscriptions[id]


def _model(many: SubscriptionSeries) -> Mapping[str, tuple[Any, Any]]:
    """Ranges with distinct ends (1 to 2, 3 to 4, …), which identify the range that each coordinate comes from."""
    return {name: (np.array([2 * at + 1]), np.array([2 * at + 2])) for at, name in enumerate(many.ranges)}


def _ends_of(many: SubscriptionSeries) -> dict[float, AnyArray]:
    """The ends of all ranges, by the corresponding end of the model."""
    found = {}
    for at, (low, high) in enumerate(many.ranges.values()):
        found[2.0 * at + 1], found[2.0 * at + 2] = low, high
    return found
