"""Problems: every error that the broker answers with, as `application/problem+json` (RFC 9457).

    {"title": "Unprocessable Content", "status": 422, "detail": "…", "line": 3, "column": 7}

`detail` says what is wrong and what to do. An unreadable document or expression has its position.
"""

import logging
from http import HTTPStatus
from typing import Any, Final, TypedDict

from msgspec import json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from pathcast.broker_log import UnknownSubscriptionError
from pathcast.errors import PathcastError, PatternError, SizeLimitError
from pathcast.log import LogError, LogFullError, TrimmedError

from ..deliveries.delivery_leases import AcknowledgementError
from ..sequencing.sequencer import StoppedError

_LOGGER: Final = logging.getLogger(__name__)


class ProblemError(PathcastError):
    """An error with an HTTP status, headers, and further fields of the answer."""

    def __init__(
        self, status: int, reason: str, *, headers: dict[str, str] | None = None, more: dict[str, Any] | None = None
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = headers or {}
        self.more = more or {}


def problem_of(error: PathcastError) -> ProblemError:
    """The problem that an error of Pathcast is for a client."""
    match error:
        case ProblemError():
            return error
        case LogFullError():
            return ProblemError(507, error.reason, headers={"retry-after": "60"})
        case StoppedError():
            return ProblemError(503, error.reason, headers={"retry-after": "5"})
        case UnknownSubscriptionError():
            return ProblemError(404, error.reason)
        case AcknowledgementError():
            return ProblemError(409, error.reason)
        case TrimmedError():
            return ProblemError(410, error.reason, more={"first": error.first})
        case PatternError():
            return ProblemError(
                422, error.reason, more={**position(error), "explanation": str(error), "supported": error.supported}
            )
        case LogError():
            # The reason names files of the server.
            _LOGGER.error("%s", error.reason)
            return ProblemError(
                500, "the server cannot read or write its log; see the log output of the server process"
            )
        case SizeLimitError():
            return ProblemError(413, error.reason, more={**position(error)})
        case _:
            return ProblemError(422, error.reason, more={**position(error)})


class Position(TypedDict, total=False):
    """Where an error is, as far as that is known."""

    line: int
    column: int


def position(error: PathcastError) -> Position:
    """Line and column of an error, if they are known."""
    found: Position = {}
    if error.line is not None:
        found["line"] = error.line
    if error.column is not None:
        found["column"] = error.column
    return found


def problem_response(problem: ProblemError) -> Response:
    """The answer for a problem."""
    more = {key: value for key, value in problem.more.items() if value is not None}
    content = {"title": HTTPStatus(problem.status).phrase, "status": problem.status, "detail": problem.reason, **more}
    return Response(json.encode(content), problem.status, problem.headers, "application/problem+json")


def answered(scope: Scope, problem: ProblemError) -> Response:
    """The answer for a problem of a request, which is counted."""
    scope["app"].state.metrics.problem(problem.status)
    return problem_response(problem)


async def on_pathcast_error(request: Request, error: Exception) -> Response:
    """Starlette's handler for errors of Pathcast."""
    assert isinstance(error, PathcastError)
    return answered(request.scope, problem_of(error))


async def on_http_error(request: Request, error: Exception) -> Response:
    """Starlette's handler for unknown paths and methods."""
    assert isinstance(error, HTTPException)
    advice = {
        404: "unknown path; paths begin with /v1/feeds, /v1/documents, /v1/subscriptions, /v1/subscribers or /v1/log",
        405: "the path does not support this method; use a method that the allow header lists",
    }
    problem = ProblemError(error.status_code, advice.get(error.status_code, error.detail))
    problem.headers = dict(error.headers or {})
    return answered(request.scope, problem)
