"""A bound on the memory that the bodies of all requests in progress take.

Each body is bounded by its endpoint, and the time for it by the connection; this bounds their sum. What a request has
received counts until it is answered.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..problems import ProblemError


class BodyMemory:
    """Middleware that rejects parts of bodies beyond `limit` bytes for all requests."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit
        self.held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        own = 0

        async def received() -> Message:
            nonlocal own
            message = await receive()
            size = len(message.get("body", b""))
            own += size
            self.held += size
            if self.held > self._limit and size:
                raise ProblemError(
                    503,
                    "the server has no memory for another request body; send it again later",
                    headers={"retry-after": "1", "connection": "close"},
                )
            return message

        try:
            await self._app(scope, received, send)
        finally:
            self.held -= own
