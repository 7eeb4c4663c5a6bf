"""Tenants over HTTP, for administrators: the guard that masks what a tenant sees.

    PUT /v1/tenants/desk   {"guard": {"expression": "//public", "namespaces": {}}, "from": "now"}

A guard masks the documents after it, or, with `from`, those from an earlier sequence on: `"from": 1` masks everything
that the log holds. `{"guard": null}` masks nothing from then on.
"""

import asyncio
from typing import TypedDict

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from pathcast.broker_log import TenantRecord
from pathcast.errors import PathcastError
from pathcast.log import END_OF_NUMBERS
from pathcast.patterns import parse

from ...broker import Broker
from ..openapi import Content, describes
from ..problems import ProblemError, problem_of
from ..request_bodies import JSON_BYTES, answer, body_of, decoded
from ..request_context import access_of, broker_of, checked_name, result_of
from .subscription_definition import XPathFilter


class TenantSettings(Struct, forbid_unknown_fields=True):
    """What an administrator sends; `guard` has no default, so that nobody removes a guard by leaving it out."""

    guard: XPathFilter | None
    begin: int | str = field(name="from", default="now")


Guarded = TypedDict("Guarded", {"from": int})


class GuardSpan(Guarded):
    """A guard in force from a sequence on, up to the next; without an expression, nothing is masked."""

    expression: str | None
    namespaces: dict[str, str]


class Tenant(TypedDict):
    """A tenant as administrators read it: `guards` in order, each in force up to the next."""

    tenant: str
    guards: list[GuardSpan]


class TenantList(TypedDict):
    """All tenants that have subscriptions or a guard."""

    tenants: list[Tenant]


@describes(
    "tenants",
    scope="administer",
    body=Content(TenantSettings, example={"guard": {"expression": "//public", "namespaces": {}}, "from": "now"}),
    responses={200: Tenant},
    errors=(422, 507),
)
async def put_tenant(request: Request) -> Response:
    """PUT /v1/tenants/{tenant}: set the guard of a tenant, which masks documents that do not match it.

    The guard is in force when this answers; with `from`, also for documents that the log already has.
    """
    access_of(request).check_administer()
    tenant, broker = checked_name(request.path_params["tenant"], "tenant"), broker_of(request)
    wanted: TenantSettings = decoded(await body_of(request, JSON_BYTES), TenantSettings, "the tenant")
    record = await asyncio.to_thread(_record, tenant, wanted)
    await result_of(request, broker.change([record]))
    return answer(_shown(broker, tenant))


@describes("tenants", scope="administer", responses={200: Tenant})
async def get_tenant(request: Request) -> Response:
    """GET /v1/tenants/{tenant}: read the guards of a tenant."""
    access_of(request).check_administer()
    return answer(_shown(broker_of(request), checked_name(request.path_params["tenant"], "tenant")))


@describes("tenants", scope="administer", responses={200: TenantList})
async def list_tenants(request: Request) -> Response:
    """GET /v1/tenants: list all tenants that have subscriptions or a guard."""
    access_of(request).check_administer()
    broker = broker_of(request)
    names = broker.state.directory.tenants() | set(broker.state.guards)
    return answer({"tenants": [_shown(broker, name) for name in sorted(names)]})


def _record(tenant: str, wanted: TenantSettings) -> TenantRecord:
    """The checked record of a tenant's settings."""
    begin = wanted.begin
    if begin != "now" and (isinstance(begin, str) or not 1 <= begin < END_OF_NUMBERS):
        raise ProblemError(422, f"from must be 'now' or a sequence from 1 to 2**63 - 1, got {str(begin)[:40]!r}")
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


def _shown(broker: Broker, tenant: str) -> Tenant:
    spans = broker.state.guards.get(tenant, ())
    return {
        "tenant": tenant,
        "guards": [
            {"from": span.begin, "expression": span.record.guard, "namespaces": span.record.namespaces}
            for span in spans
        ],
    }
