"""An answer for requests that the broker cuts because it stops: 503, so that clients send them again.

The server cancels what has not ended within `stop_time`. A publication that was cut may have been carried out: one with
an id is then a duplicate when it is sent again.
"""

import asyncio
from contextlib import suppress

from starlette.types import ASGIApp, Receive, Scope, Send

from ..problems import ProblemError, answered


class StoppingAnswer:
    """Middleware that answers requests which were cancelled before their answer began."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise
            problem = ProblemError(
                503,
                "the broker stopped before it could answer; send the request again, with the same id if it publishes",
                headers={"retry-after": "5"},
            )
            with suppress(RuntimeError):  # an answer that has begun ends here
                await answered(scope, problem)(scope, receive, send)
