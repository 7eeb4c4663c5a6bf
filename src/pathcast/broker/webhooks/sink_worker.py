"""The worker of one sink: a task that sends the deliveries of the subscriptions with that sink, in their order.

    pull a few (leases) ──▶ send, one at a time ──2xx──▶ acknowledge (a record of the log)
                                   └──failed──▶ give back this one and those after it, wait, pull again

Order: a subscription's next delivery is not sent before the one before it is acknowledged or a dead letter, unless its
`concurrency` is above 1. At least once: a delivery is acknowledged after the receiver answered, so what was sent when
the broker died is sent again, with the same `webhook-id`.

Waiting after a failure concerns one subscription; `Retry-After` concerns the whole sink. Cost: an idle sink is a task,
a busy one holds at most `QUEUE` documents.
"""

import asyncio
import logging
import random
import time
from collections.abc import Hashable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NotRequired, TypedDict

from msgspec import json

from pathcast.broker_log import SinkDisabledRecord, StandingSubscription, UnknownSubscriptionError

from ..api.delivery_wakeups import FEEDS, Wakeups
from ..api.document_events import shown_document
from ..broker import Broker
from ..deliveries.delivery_leases import Delivery
from ..observation.document_trace_attribute import trace_of
from ..observation.metrics import Metrics
from ..sequencing.sequencer import StoppedError
from .signing_keys import SigningKeys
from .webhook_request import Message, Outcome, WebhookClient
from .webhook_settings import WebhooksSection

if TYPE_CHECKING:
    from ..observation.tracing import Tracing

# Deliveries that are leased at a time.
QUEUE: Final = 16
# Seconds after which an idle worker looks again, and waits after an error of its own.
LOOK_SECONDS: Final = 15.0
_LOGGER: Final = logging.getLogger(__name__)


class Observation(NamedTuple):
    """Where workers note what they send."""

    metrics: Metrics
    tracing: "Tracing | None"


class Surroundings(NamedTuple):
    """What the workers of a broker share."""

    broker: Broker
    wakeups: Wakeups
    keys: SigningKeys
    settings: WebhooksSection
    threads: Any  # an executor for calls of the broker, which may read the log
    observation: Observation


class Trouble(NamedTuple):
    """Why a subscription waits: until when (monotonic), and the last error."""

    until: float
    failures: int
    error: str


class SinkStatus(TypedDict):
    """How the webhook of a subscription is doing; `disabled` is the reason why it is sent nothing."""

    url: str
    disabled: str | None
    failures: NotRequired[int]
    last_error: NotRequired[str]
    next_attempt_in: NotRequired[float]


class SinkWorker:
    """Sends to one sink of one tenant. `ids` are its subscriptions; the worker ends once there are none."""

    def __init__(self, tenant: str, sink: str, around: Surroundings, client: WebhookClient) -> None:
        self.tenant = tenant
        self.sink = sink
        self.ids: set[str] = set()
        self.queued = 0  # deliveries that are leased and have no answer yet
        self.throttled_until = 0.0
        self.troubles: dict[str, Trouble] = {}
        self.changed = asyncio.Event()
        self._around = around
        self._client = client
        self._random = random.Random()
        self._clock = time.monotonic  # not the loop's, which may lag: a delivery must be due when its worker looks

    async def run(self) -> None:
        """Send until there are no subscriptions left, or the broker stops."""
        try:
            while self.ids and not self._around.wakeups.closing:
                try:
                    await self._round()
                except StoppedError:
                    return
                except Exception:  # no error may end deliveries to a sink
                    _LOGGER.exception(
                        "a webhook worker of tenant %r failed and continues; please report this traceback as a bug",
                        self.tenant,
                    )
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            await self._client.close()

    async def _round(self) -> None:
        """Send what is there for each subscription, then wait for more."""
        with self._around.wakeups.registered(self._wakeup_keys()) as event:
            self.changed = event
            sent = False
            for id in sorted(self.ids):
                now = self._clock()
                trouble = self.troubles.get(id)
                if self.throttled_until <= now and (trouble is None or trouble.until <= now):
                    with suppress(UnknownSubscriptionError):  # it has ended meanwhile
                        sent |= await self._deliver(id)
            if not sent and self.ids and not self._around.wakeups.closing:
                try:
                    await asyncio.wait_for(event.wait(), self._pause())
                except TimeoutError:
                    return

    def _pause(self) -> float:
        """Seconds until the next attempt is due, `LOOK_SECONDS` at most."""
        now = self._clock()
        waits = [
            max(trouble.until, self.throttled_until) - now for id, trouble in self.troubles.items() if id in self.ids
        ]
        waits += [self.throttled_until - now] if self.throttled_until > now else []
        return max(0.001, min([LOOK_SECONDS, *waits]))

    def _wakeup_keys(self) -> Iterator[Hashable]:
        broker = self._around.broker
        yield FEEDS
        for id in self.ids:
            yield "subscription", self.tenant, id
            standing = broker.state.subscriptions.get((self.tenant, id))
            if standing is not None:
                for feed in standing.record.feeds or tuple(broker.indexes):
                    index = broker.indexes.get(feed)
                    pattern = None if index is None else index.pattern(standing.record.pattern)
                    if pattern is not None:
                        yield "pattern", feed, pattern.number

    async def _call(self, call: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._around.threads, lambda: call(*arguments))

    async def _deliver(self, id: str) -> bool:
        """Send a few deliveries of a subscription; whether there were any."""
        broker, settings = self._around.broker, self._around.settings
        standing = broker.state.subscriptions.get((self.tenant, id))
        if standing is None or standing.record.sink != self.sink or standing.disabled is not None:
            return False
        config = standing.record.config
        # Leases outlast what is sent with them: nobody else gets these deliveries meanwhile.
        pulled = await self._call(
            lambda: broker.pull(
                self.tenant,
                id,
                min(QUEUE, config.get("in_flight", QUEUE)),
                lease_seconds=QUEUE * (settings.timeout + 1.0) + 60.0,
                in_flight=config.get("in_flight", 256),
                max_deliver=self._max_deliver(id),
                steps=1,
            )
        )
        if pulled.gap is not None:
            _LOGGER.warning(
                "webhook subscription %r of tenant %r missed documents that were trimmed; raise the retention of its "
                "feeds",
                id,
                self.tenant,
            )
            gap = pulled.gap
            standing.failed(
                f"documents {gap.begin} to {gap.end - 1} were gone before the broker sent them: {gap.reason}"
            )
        if not pulled.deliveries:
            return pulled.gap is not None or bool(pulled.more)
        secret = await self._call(self._around.keys.secret_of, self.tenant, id, standing.created)
        try:
            await self._send_all(id, standing, pulled.deliveries, secret)
        finally:
            self.queued = 0
        return True

    async def _send_all(self, id: str, standing: StandingSubscription, deliveries: list[Delivery], secret: str) -> None:
        """Send deliveries in groups of `concurrency`, until one fails."""
        concurrency = standing.record.config.get("concurrency", 1)
        acknowledged: list[Future[int]] = []
        for begin in range(0, len(deliveries), concurrency):
            left = deliveries[begin:]
            if id not in self.ids:
                await self._defer(id, [], left, 0.0)
                break
            self.queued = len(left)
            group = left[:concurrency]
            messages = [Message(message_id(standing, each), message_body(id, each), secret) for each in group]
            outcomes = await asyncio.gather(*map(self._send, group, messages))
            done = [each for each, outcome in zip(group, outcomes, strict=True) if outcome.delivered]
            if done:
                sequences = [each.entry.sequence for each in done]
                standing.delivered(sequences[-1], "webhook")
                self._around.observation.metrics.delivered("webhook", sequences)
                future, _ = await self._call(self._around.broker.acknowledge, self.tenant, id, sequences)
                acknowledged.append(future)
            if len(done) < len(group):
                each, outcome = next(each for each in zip(group, outcomes, strict=True) if not each[1].delivered)
                standing.failed(f"document {each.entry.sequence} was not delivered: {outcome.error}")
                await self._failed(id, left, dict(zip((e.entry.sequence for e in group), outcomes, strict=True)))
                break
            self.troubles.pop(id, None)
        for future in acknowledged:
            await asyncio.wrap_future(future)

    async def _send(self, delivery: Delivery, message: Message) -> Outcome:
        """Send a message once, and note how that went."""
        metrics, tracing = self._around.observation
        begin = time.perf_counter()
        if tracing is None:
            outcome = await self._client.send(self.sink, message._replace(trace=trace_of(delivery.document)))
        else:
            with tracing.webhook(delivery.entry, delivery.document, delivery.attempt) as (trace, answered):
                outcome = await self._client.send(self.sink, message._replace(trace=trace))
                answered(outcome.status, outcome.error)
        metrics.webhook(outcome.name, time.perf_counter() - begin)
        return outcome

    async def _failed(self, id: str, left: list[Delivery], outcomes: dict[int, Outcome]) -> None:
        """Some of a group were not delivered: give back what is left, and decide when it is sent again."""
        settings = self._around.settings
        failed = {sequence: each for sequence, each in outcomes.items() if not each.delivered}
        error = next(each.error for each in failed.values()) or ""
        counted = [sequence for sequence, each in failed.items() if each.wait is None and not each.gone]
        unsent = [
            each
            for each in left
            if each.entry.sequence not in counted
            and (each.entry.sequence not in outcomes or each.entry.sequence in failed)
        ]
        if any(each.gone for each in failed.values()):
            await self._defer(id, counted, unsent, 0.0)
            record = SinkDisabledRecord(self.tenant, id, self.sink, error)
            await asyncio.wrap_future(self._around.broker.change([record]))
            return
        waits = [each.wait for each in failed.values() if each.wait is not None]
        delay = 0.0
        failures = 0
        if counted:
            before = self.troubles.get(id)
            attempt = min(each.attempt for each in left if each.entry.sequence in counted)
            failures = 1 if before is None else before.failures + 1
            delay = backoff(self._random, attempt, settings.first_delay, settings.longest_delay)
            most = self._max_deliver(id)
            letters = sum(each.attempt >= most for each in left if each.entry.sequence in counted)
            if letters:
                self._around.observation.metrics.webhook_dead_letters(letters)
            if attempt >= most:
                delay = 0.0  # it becomes a dead letter now, and the next one is tried
        if waits:
            wait = min(max(waits), settings.longest_delay)
            self.throttled_until = self._clock() + wait
            delay = max(delay, wait)
        await self._defer(id, counted, unsent, delay)
        # After the cursor's time, so that everything that was given back is due again: in its order.
        self.troubles[id] = Trouble(self._clock() + delay, failures, error)

    def _max_deliver(self, id: str) -> int:
        standing = self._around.broker.state.subscriptions.get((self.tenant, id))
        config = {} if standing is None else standing.record.config
        return int(config.get("max_deliver", self._around.settings.max_deliver))

    async def _defer(self, id: str, failed: list[int], unsent: list[Delivery], delay: float) -> None:
        sequences = [each.entry.sequence for each in unsent]
        try:
            await self._call(self._around.broker.defer, self.tenant, id, failed, sequences, delay)
        except UnknownSubscriptionError:
            return

    def shown(self, id: str) -> SinkStatus:
        """How deliveries of a subscription are going."""
        now = self._clock()
        trouble = self.troubles.get(id)
        failures = 0 if trouble is None else trouble.failures
        content: SinkStatus = {"url": self.sink, "disabled": None, "failures": failures}
        if trouble is not None:
            content["last_error"] = trouble.error
            content["next_attempt_in"] = round(max(0.0, max(trouble.until, self.throttled_until) - now), 3)
        return content


def backoff(random_: random.Random, attempt: int, first: float, longest: float) -> float:
    """Seconds to wait after an attempt failed: exponential, with full jitter."""
    return random_.uniform(0.0, min(longest, first * 2.0 ** min(attempt - 1, 60)))


def message_id(standing: StandingSubscription, delivery: Delivery) -> str:
    """The id of a delivery: the same for all attempts, and for no other delivery of this broker."""
    return f"msg_{standing.created}_{delivery.entry.sequence}"


def message_body(id: str, delivery: Delivery) -> bytes:
    """The body of a webhook; the same for all attempts."""
    time_ = datetime.fromtimestamp(delivery.entry.time / 1_000_000, UTC)
    shown = shown_document(delivery.entry, delivery.document)
    return json.encode({"type": "pathcast.document", "timestamp": time_, "data": {"subscription": id, **shown}})
