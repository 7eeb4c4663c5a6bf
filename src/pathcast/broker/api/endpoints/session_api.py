"""Sessions over HTTP: a browser begins and ends one; anybody asks what their token may do."""

from typing import NotRequired, TypedDict

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from ...tokens.token_file import Tokens
from ..middleware.access_control import access_with
from ..middleware.browser_session import COOKIE, SECURE_COOKIE, csrf_token, is_secure
from ..openapi import Answer, Content, describes
from ..problems import ProblemError
from ..request_bodies import JSON_BYTES, answer, body_of, decoded
from ..request_context import access_of
from ..sender_access_rights import LOCAL, Access


class SessionRequest(Struct, forbid_unknown_fields=True):
    """The access token of the session."""

    token: str


class Session(TypedDict):
    """Who the sender is, and what they may do. null: all feeds, or all subscribers. `csrf`: only with a cookie."""

    tenant: str
    name: str
    publish: list[str] | None
    read: list[str] | None
    subscribe: list[str] | None
    administer: bool
    login: bool
    csrf: NotRequired[str]


@describes("sessions", responses={200: Session})
async def get_session(request: Request) -> Response:
    """GET /v1/session: read what the sender's token may do.

    `login`: the broker has tokens. A browser sends `csrf` in the header `pathcast-csrf` of every request that changes
    something.
    """
    content = _shown(access_of(request), login=_tokens(request) is not None)
    csrf = request.scope.get("pathcast.csrf")
    if csrf is not None:
        content["csrf"] = csrf
    return answer(content, headers={"cache-control": "no-store"})


@describes(
    "sessions",
    body=Content(SessionRequest, example={"token": "pathcast_0123456789ab_…"}),
    responses={
        200: Answer(Session, "The cookie of the session, in `Set-Cookie`; none where the broker has no tokens."),
    },
    errors=(401, 403, 503),
)
async def post_session(request: Request) -> Response:
    """POST /v1/session: begin a browser's session with an access token.

    The answer sets an HttpOnly cookie with SameSite=Strict, which authorises further requests as the token does.
    """
    tokens = _tokens(request)
    if tokens is None:
        return answer(_shown(LOCAL, login=False), headers={"cache-control": "no-store"})
    wanted: SessionRequest = decoded(await body_of(request, JSON_BYTES), SessionRequest, "the session")
    text = wanted.token.strip()
    record = tokens.find(text)
    if tokens.error is not None:
        raise ProblemError(
            503,
            "the server cannot read its tokens file; the operator finds the reason in the server's log",
            headers={"retry-after": "5"},
        )
    if record is None:
        raise ProblemError(401, "the access token is unknown, revoked or expired; ask the operator for a new one")
    response = answer({**_shown(access_with(record), login=True), "csrf": csrf_token(text)})
    response.headers["cache-control"] = "no-store"
    secure = is_secure(request.scope, request.headers)
    response.set_cookie(
        SECURE_COOKIE if secure else COOKIE, text, path="/", secure=secure, httponly=True, samesite="strict"
    )
    return response


@describes("sessions", responses={204: Answer()}, errors=(403, 503))
async def delete_session(request: Request) -> Response:  # noqa: ARG001 - what Starlette calls
    """DELETE /v1/session: end a browser's session; the token stays valid."""
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    response.delete_cookie(SECURE_COOKIE, path="/", secure=True, httponly=True, samesite="strict")
    return response


def _tokens(request: Request) -> Tokens | None:
    tokens: Tokens | None = request.app.state.tokens
    return tokens


def _shown(access: Access, *, login: bool) -> Session:
    return {
        "tenant": access.tenant,
        "name": access.name,
        "publish": None if access.publish is None else sorted(access.publish),
        "read": None if access.read is None else sorted(access.read),
        "subscribe": None if access.subscribers is None else sorted(access.subscribers),
        "administer": access.administer,
        "login": login,
    }
