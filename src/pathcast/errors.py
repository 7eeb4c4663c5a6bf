"""Exceptions: every error that Pathcast raises on purpose, with a reason that the user can act on.

Every error has a `reason` (one sentence, without position), a `line` and `column` (from 1) if they are known, and
an `index` (from 0) if it concerns one of several given items. `str` joins the first three. Spark sends errors from
the workers to the driver, so every error pickles to an equal one: all its state is in the keyword arguments of
`__init__`.
"""

from typing import Any


class PathcastError(Exception):
    """The base class of all errors that Pathcast raises on purpose."""

    def __init__(self, reason: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column
        self.index: int | None = None

    def __str__(self) -> str:
        return self.where() + self.reason

    def where(self) -> str:
        """`line 3, column 7: `, or the known part of it."""
        parts = [
            f"{word} {value}" for word, value in (("line", self.line), ("column", self.column)) if value is not None
        ]
        return ", ".join(parts) + ": " if parts else ""

    def __reduce__(self) -> tuple[Any, ...]:
        state = {key: value for key, value in self.__dict__.items() if key != "reason" and not key.startswith("__")}
        return _revive, (type(self), self.reason, state)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), self.reason, self.line, self.column))


def _revive(kind: type[PathcastError], reason: str, state: dict[str, Any]) -> PathcastError:
    error = kind(reason)
    error.__dict__.update(state)
    return error


class DocumentError(PathcastError):
    """A document is not well-formed, or uses a part of XML that Pathcast rejects."""


class LimitError(PathcastError):
    """An input exceeds a limit; the reason names the limit and how to raise it."""


class SizeLimitError(LimitError):
    """An input has more bytes than a limit allows; over HTTP, status 413."""


class PatternError(PathcastError):
    """A subscription is not in the supported fragment of XPath.

    `expression` is the whole subscription, `offending` the unsupported text at `column`, and `supported` lists what is
    allowed there instead.
    """

    def __init__(
        self,
        reason: str,
        *,
        line: int | None = None,
        column: int | None = None,
        expression: str | None = None,
        offending: str = "",
        supported: str | None = None,
    ) -> None:
        super().__init__(reason, line=line, column=column)
        self.expression = expression
        self.offending = offending
        self.supported = supported

    def __str__(self) -> str:
        text = super().__str__()
        if self.expression is not None:
            text += "\n" + _pointed_at(self.expression, self.column, len(self.offending))
        if self.supported is not None:
            text += f"\n  supported: {self.supported}"
        return text


def _pointed_at(expression: str, column: int | None, length: int, width: int = 96) -> str:
    """The expression with carets under the offending part; a long expression is cut around that part."""
    at = (column or 1) - 1
    begin = max(0, at - width // 2) if len(expression) > width else 0
    shown = "".join(c if c.isprintable() else "·" for c in expression[begin : begin + width])
    head, tail = "…" if begin else "", "…" if begin + width < len(expression) else ""
    line = f"    {head}{shown}{tail}"
    if column is None:
        return line
    carets = max(1, min(length, begin + width - at))
    return f"{line}\n    {' ' * (len(head) + at - begin)}{'^' * carets}"


class SnapshotError(PathcastError):
    """An index on disk is damaged, was not written by Pathcast, or has a version that cannot be read here."""


class MappingError(PathcastError):
    """A schema mapping is missing, is outdated or cannot be derived."""


class MessageError(PathcastError):
    """A message from another broker is truncated, corrupted or of the wrong type; or a value cannot be in a message."""


class PipelineError(PathcastError):
    """A pipeline's description or its environment (Java, Spark, a folder) is not usable."""


class TopologyError(PathcastError):
    """A topology, a link or a link speed is invalid, or a node does not exist."""


class SchemaError(PathcastError):
    """A table schema has a duplicate or missing name, or joins columns that cannot be joined."""


class ChangeError(PathcastError):
    """A table cannot be changed: a row does not fit its table, or does not exist. Nothing was changed."""


class QueryError(PatternError):
    """A select-join subscription is not in the supported part of SQL, or does not fit the schema."""
