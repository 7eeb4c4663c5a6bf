"""A bound on the memory that the bodies of all requests in progress take.

Each body is bounded by its endpoint, and the time for it by the connection; this bounds their sum. What a request has
received counts until it is answered.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..problems import ProblemError


class HeldBytes:
    """The bytes of bodies that are held now, and how many may be."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0


class BodyMemory:
    """Middleware that rejects parts of bodies beyond a limit for all requests."""

    def __init__(self, app: ASGIApp, memory: HeldBytes) -> None:
        self._app = app
        self._memory = memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        own, memory = 0, self._memory

        async def received() -> Message:
            nonlocal own
            message = await receive()
            size = len(message.get("body", b""))
            own += size
            memory.held += size
            if memory.held > memory.limit and size:
                raise ProblemError(
                    503,
                    "the server has no memory for another request body; send it again later",
                    headers={"retry-after": "1"},
                )
            return message

        def released(size: int) -> None:
            nonlocal own
            own -= size
            memory.held -= size

        scope["pathcast.released"] = released
        try:
            await self._app(scope, received, send)
        finally:
            memory.held -= own
