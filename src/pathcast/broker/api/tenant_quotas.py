"""Quotas: what each tenant may use.

    subscriptions, sinks,
    feeds created, earlier
    versions               counted by the state, plus what was admitted and is not in the log yet
    publish rate           a bucket per tenant, filled at the rate, with at most one second's worth. A publication may
                           overdraw it, so one of any size passes; the next waits until the debt is paid

Threads: the event loop's only, so what is admitted is counted before anybody else asks.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

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
        self._feeds: dict[str, set[str]] = defaultdict(set)
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
                f"the expression has {size:,} bytes with its namespaces; at most {quotas.expression:,} allowed; "
                "shorten it",
            )
        key = tenant, record.id
        if self._state.earlier_versions(record) + self._changing[key] > quotas.versions:
            raise ProblemError(
                429,
                f"subscription {record.id!r} has changed {quotas.versions:,} times, the most allowed, since documents "
                "that are still in the log, and readers may need every version; delete the subscription and create "
                "it again, or ask the operator to raise quotas.versions or to trim the log",
                headers=_RETRY,
            )
        usage, new, sinks = self._state.usage_of(tenant), self._new[tenant], self._sinks[tenant]
        is_new = key not in self._state.subscriptions and record.id not in new
        if is_new and quotas.subscriptions is not None and usage.subscriptions + len(new) >= quotas.subscriptions:
            raise ProblemError(
                429,
                f"the tenant already has {quotas.subscriptions:,} subscriptions, the most allowed; delete one first",
                headers=_RETRY,
            )
        if record.sink is not None and record.sink not in usage.sinks and record.sink not in sinks:
            if len(usage.sinks) + len(sinks) >= quotas.sinks:
                raise ProblemError(
                    429,
                    f"the tenant already has {quotas.sinks:,} sinks, the most allowed; use one of them, or delete the "
                    "subscriptions of one",
                    headers=_RETRY,
                )
            sinks.add(record.sink)
        if is_new:
            new.add(record.id)
        self._changing[key] += 1

    def settle(self, records: Iterable[SubscriptionRecord]) -> None:
        """Stop counting what was admitted: it is in the state, or will not be."""
        for record in records:
            self._new[record.tenant].discard(record.id)
            key = record.tenant, record.id
            self._changing[key] -= 1
            if not self._changing[key]:
                del self._changing[key]
            if record.sink is not None:
                self._sinks[record.tenant].discard(record.sink)

    def admit_feed(self, tenant: str, feed: str) -> None:
        """Count a feed that a request may create; `ProblemError` if it is new and exceeds the quota.

        Feeds whose creator is not recorded count for nobody. Cost: a pass over all feeds, if this one is new.
        """
        most = self._quotas.feeds
        if most is None or feed in self._state.feeds:
            return
        created = sum(each.creator == tenant for each in self._state.feeds.copy().values())
        if created + len(self._feeds[tenant] - {feed}) >= most:
            raise ProblemError(
                429,
                f"cannot create feed {feed!r}: the tenant already created {most:,} feeds, the most allowed; "
                "publish to one of them, or delete one first",
                headers=_RETRY,
            )
        self._feeds[tenant].add(feed)

    def settle_feed(self, tenant: str, feed: str) -> None:
        """Stop counting a feed that was admitted: it is in the state, or will not be."""
        self._feeds[tenant].discard(feed)

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
