"""GET /metrics: what the broker did and holds, in Prometheus's text format; for administrators."""

import asyncio

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from ..observation.metrics import Metrics
from .openapi import Content, describes
from .request_context import access_of


def metrics_of(request: Request) -> Metrics:
    """The metrics of the broker that the application serves."""
    metrics: Metrics = request.app.state.metrics
    return metrics


@describes("operation", scope="administer", responses={200: Content(str, "text/plain")})
async def show_metrics(request: Request) -> Response:
    """GET /metrics: show counters and gauges in the format of Prometheus."""
    access_of(request).check_administer()
    metrics = metrics_of(request)
    lags = await asyncio.to_thread(metrics.lags)
    return Response(metrics.text(lags), media_type=CONTENT_TYPE_LATEST)
