"""The short way to publish: the path that most requests have leads to its endpoint without the router.

Starlette tries the routes one after the other and wraps each endpoint in layers that catch errors, which takes as long
as the endpoint itself. Everything else about a publication is as for other requests: this is the innermost middleware,
so access control and the bounds on bodies come before it, and a path or method that does not match goes to the router.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pathcast.errors import PathcastError

from ..problems import answered, problem_of

PATH: Final = "/v1/feeds/{feed}/documents"
_PATH: Final = re.compile(PATH.replace("{feed}", "(?P<feed>[^/]+)"))


class PublicationRoute:
    """Middleware that answers POST requests to `PATH` with an endpoint."""

    def __init__(self, app: ASGIApp, endpoint: Callable[[Request], Awaitable[Response]]) -> None:
        self._app = app
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        found = _PATH.fullmatch(scope["path"]) if scope.get("method") == "POST" and not scope.get("root_path") else None
        if found is None:
            await self._app(scope, receive, send)
            return
        scope["path_params"] = found.groupdict()
        try:
            response = await self._endpoint(Request(scope, receive))
        except PathcastError as error:
            response = answered(scope, problem_of(error))
        await response(scope, receive, send)
