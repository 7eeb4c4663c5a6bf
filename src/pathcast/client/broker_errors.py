"""Errors of clients: what a broker answered, or that none did."""

from typing import Any

from pathcast.errors import PathcastError


class BrokerError(PathcastError):
    """The broker did not do what it was asked.

    `status` is the HTTP status, `reason` the problem's detail; `line` and `column` are positions in a document or an
    expression; `problem` holds all fields of the answer.
    """

    def __init__(
        self,
        reason: str,
        *,
        line: int | None = None,
        column: int | None = None,
        status: int = 0,
        problem: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(reason, line=line, column=column)
        self.status = status
        self.problem = problem or {}

    def __str__(self) -> str:
        # The explanation of an expression has its position, and shows the place.
        explanation = self.problem.get("explanation")
        return explanation if isinstance(explanation, str) else super().__str__()


class UnreachableError(PathcastError):
    """No answer came within the client's patience; whether the broker did what it was asked is not known."""
