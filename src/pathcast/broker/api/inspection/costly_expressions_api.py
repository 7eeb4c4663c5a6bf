"""The expressions that take most of the engine's time, for administrators: they are those of all tenants."""

import asyncio
from typing import TypedDict

from starlette.requests import Request
from starlette.responses import Response

from ...broker import Broker
from ..openapi import describes
from ..request_bodies import answer
from ..request_context import access_of, broker_of


class CostlyExpression(TypedDict):
    """A normal form, the documents of a feed that it was tried on, and its share of the time for such trials."""

    feed: str
    expression: str
    tried_on: int
    share: float


class CostlyExpressions(TypedDict):
    """The most expensive expressions of each feed, those with the largest share first."""

    expressions: list[CostlyExpression]


@describes("subscriptions", scope="administer", responses={200: CostlyExpressions})
async def list_costly(request: Request) -> Response:
    """GET /v1/expressions/costly: list the expressions that are tried on most documents, and their share of the time.

    Expressions that are found by look-ups alone are not tried. GET /v1/subscriptions?q= finds who uses one.
    """
    access_of(request).check_administer()
    return answer({"expressions": await asyncio.to_thread(_costly, broker_of(request))})


def _costly(broker: Broker) -> list[CostlyExpression]:
    found: list[CostlyExpression] = [
        {"feed": name, "expression": each["xpath"], "tried_on": each["tried on"], "share": each["share"]}
        for name, index in list(broker.indexes.items())
        for each in index.most_expensive()
    ]
    return sorted(found, key=lambda each: -each["share"])
