"""The application: which path leads to which function, and what lives as long as the server does."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from pathcast.errors import PathcastError

from ..broker import Broker
from ..observation.metrics import Metrics
from ..observation.recent_activity import RecentActivity
from ..settings.broker_sections import BrokerSettings, TelemetrySection
from ..tokens.token_file import Tokens
from ..uploads.upload_store import UploadStore
from ..webhooks.signing_keys import FILE, SigningKeys
from ..webhooks.sink_worker import Observation
from ..webhooks.webhook_delivery import WebhookDelivery
from ..workbench.pages import workbench_routes
from .delivery_wakeups import Wakeups
from .document_events import DocumentEvents
from .endpoints import (
    atomic_batch_uploads_api,
    documents_api,
    events_api,
    explain_api,
    feeds_api,
    health_and_stored_document_api,
    log_api,
    matching_api,
    pull_api,
    session_api,
    subscriptions_api,
    tenant_guards_api,
)
from .event_loop_completions import Completions
from .inspection import (
    costly_expressions_api,
    delivery_history_api,
    document_list_api,
    expressions_api,
    overview_api,
)
from .metrics import show_metrics
from .middleware import publication_route
from .middleware.access_control import AccessControl
from .middleware.body_memory import BodyMemory, HeldBytes
from .middleware.publication_route import PublicationRoute
from .middleware.stopping_answer import StoppingAnswer
from .openapi.document import openapi, show_openapi
from .problems import on_http_error, on_pathcast_error
from .tenant_quotas import TenantQuotas

if TYPE_CHECKING:
    from ..observation.tracing import Tracing

_SWEEP_SECONDS = 60.0


def application(
    broker: Broker, settings: BrokerSettings | None = None, outermost: Sequence[Middleware] = ()
) -> Starlette:
    """The ASGI application of a broker, behind further middleware; the caller closes the broker when the server has
    stopped.
    """
    settings = settings or BrokerSettings()
    server, file = settings.server, settings.tokens.file
    tokens = None if file is None else Tokens(Path(file))

    key_file = settings.webhooks.key_file
    keys = SigningKeys(Path(settings.data) / FILE if key_file is None else Path(key_file))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        app.state.wakeups, app.state.completions = Wakeups(loop), Completions(loop)
        tracing = app.state.tracing
        observation = Observation(app.state.metrics, tracing)
        webhooks = app.state.webhooks = WebhookDelivery(broker, app.state.wakeups, keys, settings.webhooks, observation)
        listeners = [webhooks.processed, app.state.metrics.processed, app.state.wakeups.processed]
        ends = [broker.listen(each) for each in ([] if tracing is None else [tracing.processed]) + listeners]
        webhooks.start()
        sweeping = asyncio.create_task(_sweep_forever(uploads))
        sampling = asyncio.create_task(app.state.recent_activity.sample_forever())
        try:
            yield
        finally:
            sweeping.cancel()
            sampling.cancel()
            for end in ends:
                end()
            await webhooks.close()
            if tracing is not None:
                await asyncio.to_thread(tracing.close)  # it sends what is left, and waits for the collector

    described, bodies = routes(), HeldBytes(settings.connections.bodies)
    app = Starlette(
        routes=[*described, *workbench_routes()],
        lifespan=lifespan,
        middleware=[
            Middleware(StoppingAnswer),
            *outermost,
            Middleware(AccessControl, tokens=tokens, hosts=server.hosts, origins=server.origins),
            Middleware(BodyMemory, memory=bodies),
            Middleware(PublicationRoute, endpoint=documents_api.publish),
        ],
        exception_handlers={PathcastError: on_pathcast_error, HTTPException: on_http_error},
    )
    app.router.redirect_slashes = False  # a redirect repeats the Host header, and clients may not repeat the body
    app.state.openapi = openapi(described)
    app.state.broker, app.state.tokens = broker, tokens
    app.state.explaining = asyncio.Semaphore(1)
    app.state.trying, app.state.counting = asyncio.Semaphore(1), asyncio.Semaphore(1)
    app.state.committing = asyncio.Semaphore(1)
    metrics = app.state.metrics = Metrics(broker)
    app.state.recent_activity = RecentActivity(metrics)
    metrics.gauge("pathcast_body_bytes", "Bytes of request bodies in memory.", lambda: bodies.held)
    metrics.gauge("pathcast_body_limit_bytes", "Largest allowed value of pathcast_body_bytes.", lambda: bodies.limit)
    events = app.state.document_events = DocumentEvents()
    metrics.gauge("pathcast_event_bytes", "Bytes of encoded events in memory.", lambda: events.bytes)
    metrics.gauge(
        "pathcast_event_limit_bytes", "Largest allowed value of pathcast_event_bytes.", lambda: events.capacity
    )
    place = Path(settings.data) / "uploads" if settings.uploads.folder is None else Path(settings.uploads.folder)
    uploads = UploadStore(place, expire=settings.uploads.expire, tenant_bytes=settings.uploads.tenant)
    app.state.uploads = uploads, settings.uploads
    metrics.gauge("pathcast_upload_bytes", "Bytes of uploads that are not committed.", lambda: uploads.size)
    app.state.tracing = None if settings.telemetry is None else _tracing(settings.telemetry)
    app.state.quotas = TenantQuotas(settings.quotas, broker.state)
    return app


async def _sweep_forever(uploads: UploadStore) -> None:
    """Delete expired uploads, also while nobody uploads."""
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        await asyncio.to_thread(uploads.sweep)


def _tracing(section: TelemetrySection) -> "Tracing":
    from ..observation.tracing import Tracing

    return Tracing.to(section)


def routes() -> list[Route]:
    """All routes. Those with a verb behind a colon come before those that end with the id."""
    one, all_ = "/v1/subscriptions/{id}", "/v1/subscriptions"
    return [
        Route("/v1/feeds", feeds_api.list_feeds, methods=["GET"]),
        Route("/v1/feeds/{feed}", feeds_api.get_feed, methods=["GET"]),
        Route("/v1/feeds/{feed}", feeds_api.put_feed, methods=["PUT"]),
        Route("/v1/feeds/{feed}", feeds_api.delete_feed, methods=["DELETE"]),
        Route(publication_route.PATH, documents_api.publish, methods=["POST"]),
        Route("/v1/uploads", atomic_batch_uploads_api.post_upload, methods=["POST"]),
        Route("/v1/uploads:commit", atomic_batch_uploads_api.commit_uploads, methods=["POST"]),
        Route("/v1/uploads/{upload}", atomic_batch_uploads_api.delete_upload, methods=["DELETE"]),
        Route("/v1/documents", document_list_api.list_documents, methods=["GET"]),
        Route("/v1/documents/{sequence}/recipients", document_list_api.list_recipients, methods=["GET"]),
        Route("/v1/documents/{sequence}", health_and_stored_document_api.get_document, methods=["GET"]),
        Route(f"{all_}:check", subscriptions_api.check_subscription, methods=["POST"]),
        Route(all_, subscriptions_api.list_subscriptions, methods=["GET"]),
        Route(all_, subscriptions_api.post_subscriptions, methods=["POST"]),
        Route(f"{one}/events", events_api.subscription_events, methods=["GET"]),
        Route(f"{one}/status", pull_api.status, methods=["GET"]),
        Route(f"{one}/secret", subscriptions_api.get_secret, methods=["GET"]),
        Route(f"{one}/deliveries", delivery_history_api.list_deliveries, methods=["GET"]),
        Route(f"{one}/dead-letters", pull_api.dead_letters, methods=["GET"]),
        Route(f"{one}:pull", pull_api.pull, methods=["POST"]),
        Route(f"{one}:ack", pull_api.acknowledge, methods=["POST"]),
        Route(f"{one}:nack", pull_api.give_back, methods=["POST"]),
        Route(f"{one}:replay", pull_api.replay, methods=["POST"]),
        Route(one, subscriptions_api.get_subscription, methods=["GET"]),
        Route(one, subscriptions_api.put_subscription, methods=["PUT"]),
        Route(one, subscriptions_api.delete_subscription, methods=["DELETE"]),
        Route("/v1/subscribers/{name}/events", events_api.subscriber_events, methods=["GET"]),
        Route("/v1/expressions:try", expressions_api.try_expression, methods=["POST"]),
        Route("/v1/expressions:count", expressions_api.count_matches, methods=["POST"]),
        Route("/v1/expressions/costly", costly_expressions_api.list_costly, methods=["GET"]),
        Route("/v1/explain", explain_api.explain, methods=["POST"]),
        Route("/v1/log", log_api.read_log, methods=["GET"]),
        Route("/v1/matching", matching_api.read_work, methods=["GET"]),
        Route("/v1/matching/patterns", matching_api.read_patterns, methods=["GET"]),
        Route("/v1/matching/ranges", matching_api.put_range, methods=["PUT"]),
        Route("/v1/matching/histories", matching_api.put_histories, methods=["PUT"]),
        Route("/v1/log/checkpoint", log_api.read_checkpoint, methods=["GET"]),
        Route("/v1/log/leases", log_api.list_leases, methods=["GET"]),
        Route("/v1/log/leases", log_api.post_lease, methods=["POST"]),
        Route("/v1/log/leases/{lease}", log_api.put_lease, methods=["PUT"]),
        Route("/v1/log/leases/{lease}", log_api.delete_lease, methods=["DELETE"]),
        Route("/v1/tenants", tenant_guards_api.list_tenants, methods=["GET"]),
        Route("/v1/tenants/{tenant}", tenant_guards_api.get_tenant, methods=["GET"]),
        Route("/v1/tenants/{tenant}", tenant_guards_api.put_tenant, methods=["PUT"]),
        Route("/v1/session", session_api.get_session, methods=["GET"]),
        Route("/v1/session", session_api.post_session, methods=["POST"]),
        Route("/v1/session", session_api.delete_session, methods=["DELETE"]),
        Route("/v1/overview", overview_api.overview, methods=["GET"]),
        Route("/openapi.json", show_openapi, methods=["GET"]),
        Route("/metrics", show_metrics, methods=["GET"]),
        Route("/healthz", health_and_stored_document_api.health, methods=["GET"]),
        Route("/readyz", health_and_stored_document_api.ready, methods=["GET"]),
    ]
