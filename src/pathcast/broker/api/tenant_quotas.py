"""Quotas: what each tenant may use.

    subscriptions, sinks,
    feeds created or named,
    earlier versions       counted by the state, plus what was admitted and is not in the log yet
    publish rate           a bucket per tenant, filled at the rate, with at most one second's worth. A publication may
                           overdraw it, so one of any size passes; the next waits until the debt is paid

Threads: the event loop's only, so what is admitted is counted before anybody else asks.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from pathcast.broker_log import BrokerState, SubscriptionRecord

from ..settings.broker_sections import Quotas
from .problems import ProblemError

# Seconds after which a tenant may ask again for a subscription: somebody has to end one first.
_RETRY = {"retry-after": "60"}


class TenantQuotas:
    """Admits subscriptions and publications."""

    def __init__(self, quotas: Quotas, state: BrokerState, clock: Callable[[], float] = time.monotonic) -> None:
        self._quotas = quotas
        self._state = state
        self._clock = clock
        self._new: dict[str, set[str]] = defaultdict(set)  # ids of subscriptions that are on their way to the log
        self._sinks: dict[str, set[str]] = defaultdict(set)
        self._feeds: dict[str, Counter[str]] = defaultdict(Counter)  # which requests on their way may create or name
        self._changing: Counter[tuple[str, str]] = Counter()  # changes of subscriptions on their way to the log
        self._buckets: dict[str, tuple[float, float]] = {}

    def admit(self, record: SubscriptionRecord) -> None:
        """Count a subscription that will be created or changed; `ProblemError` if it exceeds a quota."""
        quotas, tenant = self._quotas, record.tenant
        size = len(record.expression.encode("utf-8", "surrogatepass"))
        size += sum(len(prefix) + len(uri) for prefix, uri in record.namespaces.items())
        if size > quotas.expression:
            raise ProblemError(
                422,
                f"the expression has {size:,} bytes with its namespaces; at most {quotas.expression:,} are "
                "allowed; shorten the expression",
            )
        key = tenant, record.id
        if self._state.earlier_versions(record) + self._changing[key] > quotas.versions:
            raise ProblemError(
                429,
                f"subscription {record.id!r} has changed {quotas.versions:,} times, the maximum, since documents "
                "that are still in the log, and readers may need every version; delete the subscription and create "
                "it again, or ask the operator to raise quotas.versions or to trim the log",
                headers=_RETRY,
            )
        self._check_feeds(tenant, record.feeds)
        usage, new, sinks = self._state.usage_of(tenant), self._new[tenant], self._sinks[tenant]
        is_new = key not in self._state.subscriptions and record.id not in new
        if is_new and quotas.subscriptions is not None and usage.subscriptions + len(new) >= quotas.subscriptions:
            raise ProblemError(
                429,
                f"the tenant already has {quotas.subscriptions:,} subscriptions, the maximum; delete a "
                "subscription first",
                headers=_RETRY,
            )
        if record.sink is not None and record.sink not in usage.sinks and record.sink not in sinks:
            if len(usage.sinks) + len(sinks) >= quotas.sinks:
                raise ProblemError(
                    429,
                    f"the tenant already has {quotas.sinks:,} sinks, the maximum; use an existing sink, or delete all "
                    "subscriptions of a sink",
                    headers=_RETRY,
                )
            sinks.add(record.sink)
        if is_new:
            new.add(record.id)
        self._feeds[tenant].update(record.feeds)
        self._changing[key] += 1

    def settle(self, records: Iterable[SubscriptionRecord]) -> None:
        """Stop counting what was admitted: it is in the state, or will not be."""
        for record in records:
            self._new[record.tenant].discard(record.id)
            _settle(self._changing, (record.tenant, record.id))
            for feed in record.feeds:
                _settle(self._feeds[record.tenant], feed)
            if record.sink is not None:
                self._sinks[record.tenant].discard(record.sink)

    def admit_feed(self, tenant: str, feed: str) -> None:
        """Count a feed that a request may create; `ProblemError` if it is new and exceeds the quota."""
        self._check_feeds(tenant, (feed,))
        self._feeds[tenant][feed] += 1

    def _check_feeds(self, tenant: str, feeds: tuple[str, ...]) -> None:
        """`ProblemError` if some of these feeds are new and exceed the quota.

        Feeds whose creator is not recorded count for nobody. Cost: a pass over all feeds, if there are new ones.
        """
        most, there, on_their_way = self._quotas.feeds, self._state.feeds, self._feeds[tenant]
        named = self._state.usage_of(tenant).feeds
        new = {each for each in feeds if each not in there and each not in named and each not in on_their_way}
        if not new:
            return
        used = {name for name, each in there.copy().items() if each.creator == tenant}
        used |= {each for each in (*named.copy(), *on_their_way) if each not in there}
        if len(used) + len(new) > most:
            raise ProblemError(
                429,
                f"cannot create feed {min(new)!r}: the tenant already created {most:,} feeds, or its subscriptions "
                "name them, the maximum; use an existing feed, or delete a feed first",
                headers=_RETRY,
            )

    def settle_feed(self, tenant: str, feed: str) -> None:
        """Stop counting a feed that was admitted: it is in the state, or will not be."""
        _settle(self._feeds[tenant], feed)

    def check_rate(self, tenant: str) -> None:
        """`ProblemError` if a tenant has published more than its rate."""
        rate = self._quotas.publish_rate
        if rate is not None and (left := self._left(tenant, rate)) <= 0:
            raise ProblemError(
                429,
                f"the tenant has published more than {rate:,} bytes per second; wait before the next publication",
                headers={"retry-after": str(max(1, math.ceil(-left / rate)))},
            )

    def publish(self, tenant: str, size: int) -> None:
        """Count the bytes of a publication."""
        rate = self._quotas.publish_rate
        if rate is not None:
            self._buckets[tenant] = self._left(tenant, rate) - size, self._clock()

    def _left(self, tenant: str, rate: int) -> float:
        left, since = self._buckets.get(tenant, (float(rate), self._clock()))
        return min(float(rate), left + (self._clock() - since) * rate)


def _settle(counts: Counter[Any], name: object) -> None:
    counts[name] -= 1
    if not counts[name]:
        del counts[name]
