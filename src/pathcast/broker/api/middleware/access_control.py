"""Access control: every request has a valid sender before it reaches the broker.

    no tokens (loopback only)   Host must name this machine, and a browser's page must come from this server
    tokens                      `Authorization: Bearer pathcast_…`; the token's scopes become the request's `Access`
    tokens, a browser           a session's cookie instead of the header (browser_session.py)

Without tokens, anything that runs on this machine is trusted, but not a web page in a browser on it: the checks of Host
stop DNS rebinding, those of Origin and Sec-Fetch-Site stop requests that pages of other sites send. With tokens neither
is needed for programs: browsers never add the header by themselves. They do add the cookie, so requests that use it are
checked as well. Pages of the workbench hold no data and need no token.

A token that is revoked or expires ends the streams that it opened, at their next event or heartbeat.
"""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...tokens.scopes import administers, names_of
from ...tokens.token import TokenRecord
from ...tokens.token_file import Tokens
from ...workbench.pages import is_page
from ..problems import ProblemError, answered
from ..sender_access_rights import LOCAL, Access
from .browser_session import OPEN_OPERATIONS, check_change, check_origin, csrf_token, token_in_cookie

# Asked by machines that start and watch the server; the answers hold no data.
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
_SENT_BY_BROWSERS: Final = frozenset({b"origin", b"sec-fetch-site"})
_CHALLENGE: Final = 'Bearer realm="pathcast"'


class RevokedError(Exception):
    """Ends a stream whose token is no longer valid."""


class AccessControl:
    """Middleware that sets `scope["pathcast.access"]`, or answers 401, 403 or 503."""

    def __init__(
        self, app: ASGIApp, tokens: Tokens | None = None, hosts: Sequence[str] = (), origins: Sequence[str] = ()
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        try:
            if self._tokens is not None and self._needs_no_token(scope):
                await self._app(scope, receive, send)
                return
            record = self._checked(scope)
        except ProblemError as problem:
            await answered(scope, problem)(scope, receive, send)
            return
        if record is None:
            scope["pathcast.access"] = LOCAL
            await self._app(scope, receive, send)
            return
        scope["pathcast.access"] = access_with(record)
        try:
            await self._app(scope, receive, self._while_valid(record, send))
        except RevokedError:
            return

    def _checked(self, scope: Scope) -> TokenRecord | None:
        """The token of a request; None for a local user where there are no tokens."""
        if self._tokens is None:
            # Programs send neither Origin nor Sec-Fetch-Site, so most requests need one pass over their headers.
            self._check_host([value.decode("latin-1") for name, value in scope["headers"] if name == b"host"])
            if any(name in _SENT_BY_BROWSERS for name, _ in scope["headers"]):
                check_origin(Headers(scope=scope), scope, self._origins)
            return None
        headers = Headers(scope=scope)
        kind, _, text = headers.get("authorization", "").partition(" ")
        if not kind and (cookie := token_in_cookie(headers)) is not None:
            check_origin(headers, scope, self._origins)
            check_change(scope, headers, cookie)
            scope["pathcast.csrf"] = csrf_token(cookie)
            kind, text = "bearer", cookie
        if kind.lower() != "bearer" or not text.strip():
            raise ProblemError(
                401,
                "the request has no access token; send the header Authorization: Bearer TOKEN",
                headers={"www-authenticate": _CHALLENGE},
            )
        record = self._tokens.find(text.strip())
        if self._tokens.error is not None:
            raise ProblemError(
                503,
                "the server cannot read its tokens file; the operator finds the reason in the server's log",
                headers={"retry-after": "5"},
            )
        if record is None:
            raise ProblemError(
                401,
                "the access token is unknown, revoked or expired; ask the operator for a new one",
                headers={"www-authenticate": f'{_CHALLENGE}, error="invalid_token"'},
            )
        return record

    def _needs_no_token(self, scope: Scope) -> bool:
        """Whether a request is for a page of the workbench, or begins or ends a browser's session."""
        if (scope["method"], scope["path"]) in OPEN_OPERATIONS:
            check_origin(Headers(scope=scope), scope, self._origins)
            return True
        return scope["method"] in ("GET", "HEAD") and is_page(scope["path"])

    def _check_host(self, given: list[str]) -> None:
        name = _host_name(given[0]) if len(given) == 1 else ""
        if not (name in self._hosts or names_this_machine(name)):
            raise ProblemError(
                403,
                f"the Host header {', '.join(given)[:100]!r} does not name this machine; use localhost, or list the "
                "name in server.hosts",
            )

    def _while_valid(self, record: TokenRecord, send: Send) -> Send:
        """`send` that ends an answer when its token is no longer valid."""
        tokens = self._tokens
        assert tokens is not None
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            if begun and message.get("more_body", False) and not tokens.is_valid(record):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                raise RevokedError
            begun = True
            await send(message)

        return sent


def access_with(record: TokenRecord) -> Access:
    """What the bearer of a token may do."""
    scopes = record.scopes
    return Access(
        record.tenant,
        record.name,
        names_of("publish", scopes),
        names_of("read", scopes),
        names_of("subscribe", scopes),
        administers(scopes),
    )


@lru_cache(maxsize=256)
def names_this_machine(name: str) -> bool:
    """Whether a host name in a request can only mean this machine."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


@lru_cache(maxsize=256)
def _host_name(host: str) -> str:
    """The name in a Host header, without port and brackets; empty if it is malformed."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
