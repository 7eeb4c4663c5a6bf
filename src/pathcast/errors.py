"""What can go wrong, as exceptions that a person can act on and that a pickle can carry.

Every error has a `reason` (one sentence, without position), a `line` and `column` (from 1) where they are known, and
an `index` (from 0) where it is about one of several things that were given. `str` joins the first three. Errors
travel from Spark's workers to the driver, so each pickles to an equal one: all state lives in the keyword arguments
that `__init__` takes.
"""

from typing import Any


class PathcastError(Exception):
    """The root of all errors that Pathcast raises on purpose."""

    def __init__(self, reason: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column
        self.index: int | None = None

    def __str__(self) -> str:
        return self.where() + self.reason

    def where(self) -> str:
        """`line 3, column 7: `, or as much of it as is known."""
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
    """A document is not well-formed, or uses a part of XML that Pathcast refuses."""


class LimitError(PathcastError):
    """Something outside exceeds a limit; the reason names the limit and how to raise it."""


class PatternError(PathcastError):
    """A subscription is not in the supported fragment of XPath.

    `expression` is the whole subscription, `offending` the text that starts at `column`, `supported` says what could
    stand there instead.
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
    """The expression with carets under the offending part; long ones are cut around it."""
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
    """An index on disk is damaged, foreign, or of a version that this Pathcast cannot read."""


class MappingError(PathcastError):
    """A schema mapping is missing, outdated or cannot be derived."""


class MessageError(PathcastError):
    """A message from another broker is truncated, corrupted or not what it claims to be."""


class PipelineError(PathcastError):
    """A pipeline's description or its environment (Java, Spark, a folder) is not usable."""


class TopologyError(PathcastError):
    """A topology, a link or the speed of one can't be used, or there is no such node."""


class SchemaError(PathcastError):
    """A schema of tables names something twice or not at all, or joins what can't be joined."""


class ChangeError(PathcastError):
    """A change of a table can't be made: a row does not fit its table, or is not there. Nothing was changed."""


class QueryError(PatternError):
    """A select-join subscription is not in the supported part of SQL, or does not fit the schema."""
