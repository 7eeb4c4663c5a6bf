"""Where deliveries begin, as clients write it: `"now"`, a sequence, or a time.

A time means the first document that was appended at or after it, by the log's own clock, which never runs backwards.
"""

from datetime import datetime

from msgspec import ValidationError, convert

from pathcast.log import END_OF_NUMBERS, Log

from ..problems import ProblemError


def sequence_of(given: int | str, log: Log, name: str) -> int | None:
    """The sequence that a client means; None for now. `name` is the key, for error messages."""
    if given == "now":
        return None
    if isinstance(given, str):
        try:
            time = convert(given, datetime)
        except ValidationError:
            raise ProblemError(
                422, f"{name} {given[:40]!r} must be 'now', a sequence, or a time such as '2026-01-31T12:00:00Z'"
            ) from None
        if time.tzinfo is None:
            raise ProblemError(422, f"{name} {given!r} has no time zone; add a time zone, such as Z")
        return log.sequence_at(int(time.timestamp() * 1_000_000))
    if not 1 <= given < END_OF_NUMBERS:
        raise ProblemError(422, f"{name} must be at least 1 and less than 2**63, got {given}")
    return given
