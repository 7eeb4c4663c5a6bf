"""Only the active broker answers: one whose lease is not valid now might not know what its successor has acknowledged.

The lease is checked when a request comes and whenever a part of an answer leaves, so an answer that was computed before
the process slept does not leave afterwards.
"""

from collections.abc import Callable
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..standby_application import standby_response


class NotActiveError(Exception):
    """Ends an answer that has begun."""


class WhileActive:
    """Middleware that answers 503 unless `is_valid()`; `active()` is the address of the active broker."""

    def __init__(self, app: ASGIApp, is_valid: Callable[[], bool], active: Callable[[], str]) -> None:
        self._app = app
        self._is_valid = is_valid
        self._active = active

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def checked(message: Message) -> None:
            nonlocal begun
            if not self._is_valid():
                raise NotActiveError
            begun = True
            await send(message)

        if self._is_valid():
            with suppress(NotActiveError):
                await self._app(scope, receive, checked)
                return
        if not begun:
            await standby_response(scope["path"], self._active())(scope, receive, send)
