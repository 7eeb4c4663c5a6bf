"""Sessions of browsers: an access token in a cookie that no script can read, and what protects it from other pages.

    POST /v1/session {"token"} ──▶ Set-Cookie: pathcast_session=TOKEN; HttpOnly; SameSite=Strict
    GET /v1/session            ──▶ who this is, and the session's CSRF token
    any change                 ◀── header pathcast-csrf, and an Origin that is this server's

The cookie holds the access token itself, so a session ends when its token is revoked or expires, and not with a
restart. A request with an Authorization header never uses the cookie.

Invariant: a request that the cookie authorises changes something only if its Origin is this server's (or listed in
`server.origins`) and its CSRF token is that of the session. Cookies are shared by all ports of a host, so another
server on the same host name would see the cookie: the workbench needs a host name whose servers are all trusted.
"""

import hashlib
import hmac
from collections.abc import Collection
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from ..problems import ProblemError

COOKIE: Final = "pathcast_session"
# Browsers accept it over HTTPS only, for this host only, and for no other path.
SECURE_COOKIE: Final = f"__Host-{COOKIE}"
CSRF_HEADER: Final = "pathcast-csrf"
# What must be possible without a session: to begin one, and to end one whose token is no longer valid.
OPEN_OPERATIONS: Final = frozenset({("POST", "/v1/session"), ("DELETE", "/v1/session")})
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def token_in_cookie(headers: Headers) -> str | None:
    """The access token in the session's cookie."""
    for header in headers.getlist("cookie"):
        cookies = cookie_parser(header)
        found = cookies.get(SECURE_COOKIE) or cookies.get(COOKIE)
        if found:
            return found
    return None


def csrf_token(token: str) -> str:
    """The CSRF token of a session: only somebody who may read answers of this server learns it."""
    return hmac.new(token.encode(), b"pathcast csrf", hashlib.sha256).hexdigest()


def is_secure(scope: Scope, headers: Headers) -> bool:
    """Whether the browser reaches this server over HTTPS, directly or through a proxy."""
    return scope["scheme"] == "https" or headers.get("origin", "").lower().startswith("https://")


def check_change(scope: Scope, headers: Headers, token: str) -> None:
    """`ProblemError` if a request that the cookie authorises changes something without the session's CSRF token."""
    if scope["method"] in _READING:
        return
    if headers.get("origin") is None and headers.get("sec-fetch-site") != "same-origin":
        raise ProblemError(
            403,
            "a change that a session's cookie authorises needs the header Origin, which browsers send; programs send "
            "Authorization: Bearer TOKEN instead of the cookie",
        )
    if not hmac.compare_digest(headers.get(CSRF_HEADER, "").encode(), csrf_token(token).encode()):
        raise ProblemError(
            403,
            f"the request has no valid CSRF token; send the csrf of GET /v1/session in the header {CSRF_HEADER}",
        )


def check_origin(headers: Headers, scope: Scope, origins: Collection[str]) -> None:
    """`ProblemError` if a page of another origin sends a request."""
    origin = headers.get("origin")
    if origin is not None:
        own = f"{scope['scheme']}://{headers.get('host', '')}"
        if origin.lower() != own.lower() and origin.lower() not in origins:
            raise ProblemError(
                403,
                f"web pages of origin {origin[:100]!r} have no access; ask the operator to list the origin in "
                "server.origins",
            )
    elif headers.get("sec-fetch-site", "none") in ("cross-site", "same-site") and not (
        scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
    ):
        raise ProblemError(
            403, "web pages of other sites have no access; ask the operator to list the origin in server.origins"
        )
