"""What a standby answers: that it is alive, but that another broker is the active one, and where."""

from collections.abc import Callable

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .problems import ProblemError, problem_response


def standby_response(path: str, active: str) -> Response:
    """The answer to any request while the broker at `active`, or nobody, is the active one."""
    if path == "/healthz":
        return PlainTextResponse("standing by\n")
    where = f"the active broker is {active}" if active else "no broker is active"
    return problem_response(
        ProblemError(
            503,
            f"this broker is a standby and {where}; give the client the addresses of all brokers",
            headers={"retry-after": "1"},
            more={"active": active or None},
        )
    )


def standby_application(active: Callable[[], str]) -> ASGIApp:
    """The ASGI application of a standby. It answers without reading a body."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await standby_response(scope["path"], active())(scope, receive, send)

    return answer
