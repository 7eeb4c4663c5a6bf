"""What became of published documents, as publishers read it."""

from typing import NotRequired, TypedDict

from msgspec import to_builtins

from pathcast.broker_log import Failure

from ...sequencing.sequencer_requests import Accepted, Rejected
from ..problems import Position, problem_of


class Published(TypedDict):
    """A document that is durable; `duplicate`: it was already; `error`: it is kept as a dead letter."""

    sequence: int
    duplicate: bool
    error: NotRequired[Failure]


class EventError(Position, total=False):
    """Why an event was rejected (`status`, `detail`), or why its document is kept as a dead letter (`reason`)."""

    status: int
    detail: str
    reason: str


class EventResult(TypedDict, total=False):
    """An event of a batch, or an entry: an accepted one has a sequence, a rejected one only the error."""

    sequence: int
    duplicate: bool
    error: EventError
    offset: int


class BatchResult(TypedDict):
    """A result per event, in the order of the events."""

    results: list[EventResult]


def event_result(result: Accepted | Rejected) -> EventResult:
    """The result of an event, or an entry."""
    if isinstance(result, Rejected):
        error = problem_of(result.error)
        rejected: EventError = {"status": error.status, "detail": error.reason}
        if result.error.line is not None:
            rejected["line"] = result.error.line
        if result.error.column is not None:
            rejected["column"] = result.error.column
        return {"error": rejected}
    shown: EventResult = {"sequence": result.sequence, "duplicate": result.duplicate}
    if result.error is not None:
        shown["error"] = to_builtins(result.error)
    return shown


def published_result(result: Accepted) -> Published:
    """The result of a document that was accepted."""
    shown: Published = {"sequence": result.sequence, "duplicate": result.duplicate}
    if result.error is not None:
        shown["error"] = result.error
    return shown
