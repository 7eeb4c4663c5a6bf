"""Webhook delivery: a worker per sink, for the subscriptions that have one now.

    subscription changes (from the sequencer) ──▶ which worker has it ──▶ workers start, end, and take over

A sink that never answers keeps its own worker waiting, and no other. Names are resolved in threads of their own, so a
resolver that hangs delays webhooks, never the HTTP surface.

All methods but `processed` belong to the event loop's thread.
"""

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import httpx

from pathcast.broker_log import StandingSubscription, SubscriptionRecord

from ..api.delivery_wakeups import Wakeups
from ..api.problems import ProblemError
from ..broker import Broker
from ..sequencing.batch_processing import Processed
from .signing_keys import SigningKeys
from .sink_addresses import SinkError, checked_sink
from .sink_worker import Observation, SinkStatus, SinkWorker, Surroundings
from .webhook_request import WebhookClient
from .webhook_settings import WebhooksSection

_RESOLVERS: Final = 32
_THREADS: Final = 4


class WebhookDelivery:
    """Sends the deliveries of all subscriptions with a sink, from `start` to `close`."""

    def __init__(
        self, broker: Broker, wakeups: Wakeups, keys: SigningKeys, settings: WebhooksSection, observation: Observation
    ) -> None:
        self.keys = keys
        self._broker = broker
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._resolvers = ThreadPoolExecutor(_RESOLVERS, "webhook-names")
        self._threads = ThreadPoolExecutor(_THREADS, "webhooks")
        self._around = Surroundings(broker, wakeups, keys, settings, self._threads, observation)
        self._context: ssl.SSLContext | None = None
        self._workers: dict[tuple[str, str], SinkWorker] = {}
        self._of: dict[tuple[str, str], SinkWorker] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        observation.metrics.watch_webhooks(
            lambda: sum(each.queued for each in self._workers.values()), lambda: len(self._workers)
        )

    def check(self, record: SubscriptionRecord) -> None:
        """Raise a `ProblemError` unless the sink of a subscription may be one."""
        if record.sink is not None:
            try:
                checked_sink(record.sink, allow_private=self._settings.allow_private)
            except SinkError as error:
                raise ProblemError(422, error.reason) from None

    def start(self) -> None:
        """Begin to send."""
        if any(usage.sinks for usage in list(self._broker.state.usage.values())):
            self._place(self._broker.state.subscriptions.with_sink())

    async def close(self) -> None:
        """Stop sending; a delivery without an answer comes again after the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown(wait=False)
        self._resolvers.shutdown(wait=False)

    def processed(self, done: Processed) -> None:
        """A batch was processed; called in the sequencer's thread."""
        if done.changed:
            keys = [(tenant, id) for tenant, id, _ in done.changed]
            try:
                self._loop.call_soon_threadsafe(self._place, keys)
            except RuntimeError:  # the loop has ended
                return

    def _place(self, keys: list[tuple[str, str]]) -> None:
        """Give each subscription to the worker of its sink."""
        for key in keys:
            standing = self._broker.state.subscriptions.get(key)
            is_sent = standing is not None and standing.disabled is None and not standing.record.config.get("paused")
            sink = standing.record.sink if standing is not None and is_sent else None
            worker = self._of.get(key)
            if worker is not None and worker.sink != sink:
                del self._of[key]
                worker.ids.discard(key[1])
                worker.troubles.pop(key[1], None)
                if not worker.ids:
                    del self._workers[worker.tenant, worker.sink]
                worker.changed.set()
                worker = None
            if worker is None and sink is not None:
                worker = self._of[key] = self._worker(key[0], sink)
                worker.ids.add(key[1])
            if worker is not None:
                worker.changed.set()

    def _worker(self, tenant: str, sink: str) -> SinkWorker:
        """The worker of a sink, which has at least one subscription as soon as its task begins."""
        worker = self._workers.get((tenant, sink))
        if worker is None:
            if self._context is None:
                self._context = httpx.create_ssl_context(trust_env=False)
            client = WebhookClient(self._settings, self._context, self._resolvers)
            worker = self._workers[tenant, sink] = SinkWorker(tenant, sink, self._around, client)
            task = self._loop.create_task(worker.run())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return worker

    def shown(self, tenant: str, id: str, standing: StandingSubscription) -> SinkStatus:
        """How a subscription's webhook is doing, for its status."""
        worker = self._of.get((tenant, id))
        if worker is not None and standing.disabled is None:
            return worker.shown(id)
        return {"url": standing.record.sink or "", "disabled": standing.disabled}
