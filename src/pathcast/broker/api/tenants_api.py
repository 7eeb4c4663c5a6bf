"""Tenants over HTTP, for administrators: the guard that masks what a tenant sees.

    PUT /v1/tenants/desk   {"guard": {"expression": "//public", "namespaces": {}}, "from": "now"}

A guard masks the documents after it, or, with `from`, those from an earlier sequence on: `"from": 1` masks everything
that the log holds. `{"guard": null}` masks nothing from then on.
"""

import asyncio
from typing import Any

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from pathcast.broker_log import TenantRecord
from pathcast.errors import PathcastError
from pathcast.patterns import parse

from ..broker import Broker
from .problems import ProblemError, problem_of
from .request_bodies import JSON_BYTES, answer, body_of, decoded
from .request_context import access_of, broker_of, checked_name, result_of
from .subscription_definition import XPathFilter


class TenantSettings(Struct, forbid_unknown_fields=True):
    """What an administrator sends; `guard` has no default, so that nobody removes a guard by leaving it out."""

    guard: XPathFilter | None
    begin: int | str = field(name="from", default="now")


async def put_tenant(request: Request) -> Response:
    """PUT /v1/tenants/{tenant}: the settings are in force when this answers."""
    access_of(request).check_administer()
    tenant, broker = checked_name(request.path_params["tenant"], "tenant"), broker_of(request)
    wanted: TenantSettings = decoded(await body_of(request, JSON_BYTES), TenantSettings, "the tenant")
    record = await asyncio.to_thread(_record, tenant, wanted)
    await result_of(request, broker.change([record]))
    return answer(_shown(broker, tenant))


async def get_tenant(request: Request) -> Response:
    """GET /v1/tenants/{tenant}."""
    access_of(request).check_administer()
    return answer(_shown(broker_of(request), checked_name(request.path_params["tenant"], "tenant")))


async def list_tenants(request: Request) -> Response:
    """GET /v1/tenants: all tenants that have subscriptions or a guard."""
    access_of(request).check_administer()
    broker = broker_of(request)
    names = {tenant for tenant, _ in list(broker.state.by_subscriber)} | set(broker.state.guards)
    return answer({"tenants": [_shown(broker, name) for name in sorted(names)]})


def _record(tenant: str, wanted: TenantSettings) -> TenantRecord:
    """The checked record of a tenant's settings."""
    begin = wanted.begin
    if begin != "now" and (isinstance(begin, str) or begin < 1):
        raise ProblemError(422, f"from must be 'now' or a sequence of at least 1, got {str(begin)[:40]!r}")
    first = None if isinstance(begin, str) else begin
    if wanted.guard is None:
        return TenantRecord(tenant, begin=first)
    try:
        pattern = str(parse(wanted.guard.expression, wanted.guard.namespaces or None))
    except PathcastError as error:
        raise problem_of(error) from None
    except (TypeError, ValueError) as error:
        raise ProblemError(422, str(error)) from None
    return TenantRecord(tenant, wanted.guard.expression, pattern, wanted.guard.namespaces, first)


def _shown(broker: Broker, tenant: str) -> dict[str, Any]:
    """A tenant as administrators read it: `guards` in order, each in force up to the next."""
    spans = broker.state.guards.get(tenant, ())
    return {
        "tenant": tenant,
        "guards": [
            {"from": span.begin, "expression": span.record.guard, "namespaces": span.record.namespaces}
            for span in spans
        ],
    }
