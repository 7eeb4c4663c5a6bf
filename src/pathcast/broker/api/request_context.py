"""What a request refers to: the broker, its sender, a feed, a subscription."""

from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from starlette.requests import Request

from pathcast.broker_log import StandingSubscription

from ..broker import Broker
from ..tokens.scopes import is_name
from .delivery_wakeups import Wakeups
from .event_loop_completions import Completions
from .problems import ProblemError
from .sender_access_rights import LOCAL, Access
from .tenant_quotas import TenantQuotas

if TYPE_CHECKING:
    from ..observation.tracing import Tracing
    from ..uploads.upload_settings import UploadsSection
    from ..uploads.upload_store import UploadStore
    from ..webhooks.webhook_delivery import WebhookDelivery

T = TypeVar("T")


def broker_of(request: Request) -> Broker:
    """The broker that the application serves."""
    broker: Broker = request.app.state.broker
    return broker


def wakeups_of(request: Request) -> Wakeups:
    """What wakes waiting readers."""
    wakeups: Wakeups = request.app.state.wakeups
    return wakeups


def completions_of(request: Request) -> Completions:
    """What brings results of other threads to the event loop."""
    completions: Completions = request.app.state.completions
    return completions


async def result_of(request: Request, future: "Future[T]") -> T:
    """The result of what the broker was asked to do."""
    return await completions_of(request).result(future)


def tracing_of(request: Request) -> "Tracing | None":
    """What records traces, if anything does."""
    tracing: Tracing | None = request.app.state.tracing
    return tracing


def quotas_of(request: Request) -> TenantQuotas:
    """What tenants may use."""
    quotas: TenantQuotas = request.app.state.quotas
    return quotas


def uploads_of(request: Request) -> "tuple[UploadStore, UploadsSection]":
    """Where uploads are, and their settings."""
    uploads: tuple[UploadStore, UploadsSection] = request.app.state.uploads
    return uploads


def webhooks_of(request: Request) -> "WebhookDelivery":
    """What sends deliveries to sinks."""
    webhooks: WebhookDelivery = request.app.state.webhooks
    return webhooks


def access_of(request: Request) -> Access:
    """The sender of a request, and what they may do."""
    access: Access = request.scope.get("pathcast.access", LOCAL)
    return access


def feed_of(request: Request) -> str:
    """The feed in the path."""
    return checked_name(request.path_params["feed"], "feed")


def checked_name(name: str, what: str) -> str:
    """A valid name; `ProblemError` for any other."""
    if not is_name(name):
        raise ProblemError(
            400,
            f"invalid {what} {name[:140]!r}; use 1 to 128 letters, digits or _ . ~ @ -, the first a letter, digit or _",
        )
    return name


def subscription_of(request: Request) -> StandingSubscription:
    """The subscription in the path, if the sender may act for its subscriber."""
    access = access_of(request)
    id = checked_name(request.path_params["id"], "subscription")
    found = broker_of(request).state.subscription(access.tenant, id)
    access.check_subscriber(found.record.subscriber)
    return found
