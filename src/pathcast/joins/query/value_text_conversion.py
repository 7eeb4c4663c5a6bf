"""Values written as text, in XML or JSON: how a column's kind reads them, and rows as JSON.

Text has the forms of XML Schema: `12`, `1.5e3`, `-INF`, `2026-01-31`, `2026-01-31T12:30:00`, bytes in base 64. JSON
has finite numbers and strings, and the same text for other values, as Spark's `to_json` writes it (`-Infinity` there).
A timestamp with a time zone is converted to UTC, since kinds have no time zones.

Invariant: `read_value(kind, …)` returns the value that `write_row` wrote.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import UTC, date, datetime
from math import inf, isfinite, isinf
from typing import Any

from pathcast.messages import Scalar

from .order_preserving_key_encoding import BYTES, DATE, FLOAT, INT, STRING, TIMESTAMP, Kind

# The word of XML Schema, and that of Spark.
_INFINITE = ("INF", "Infinity")


def read_value(kind: Kind, text: str | float | None) -> Scalar:
    """A value of a kind from its text, or from JSON; `ValueError` states the problem.

    Blank text is NULL, except for strings (unchanged) and bytes (empty).
    """
    if text is None or kind is STRING:
        if text is not None and not isinstance(text, str):
            raise ValueError(f"expected a string, got {text!r:.60}")
        return text
    if isinstance(text, str):
        text = text.strip()
        if not text:
            return b"" if kind is BYTES else None
    try:
        value: Scalar = _READERS[kind.name](text)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"expected {kind.noun}, got {text!r:.60}") from None
    wrong = kind.check(value)
    if wrong is not None:
        raise ValueError(wrong)
    return value


def write_row(row: Mapping[str, Scalar]) -> str:
    """A row as JSON; `read_value` reads each value back."""
    return json.dumps({column: plain_value(value) for column, value in row.items()}, ensure_ascii=False)


def plain_value(value: Scalar) -> Any:
    """A value as JSON represents it."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, float) and isinf(value):
        return "INF" if value > 0 else "-INF"
    return value


def _int(text: Any) -> int:
    if isinstance(text, bool) or (isinstance(text, float) and not text.is_integer()) or not _is_plain(text):
        raise ValueError
    return int(text)


def _float(text: Any) -> float:
    if isinstance(text, str) and text.removeprefix("-") in _INFINITE:
        return -inf if text[0] == "-" else inf
    value = float(text)
    if isinstance(text, bool) or not isfinite(value) or not _is_plain(text):
        raise ValueError
    # `kind.check` rejects a whole number that no float equals.
    return text if isinstance(text, int) and value != text else value


def _is_plain(text: Any) -> bool:
    """Whether a number is written in digits 0 to 9; Python also accepts `1_0` and the digits of other scripts."""
    return not isinstance(text, str) or (text.isascii() and "_" not in text)


def _timestamp(text: str) -> datetime:
    value = datetime.fromisoformat(text)
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


_READERS: dict[str, Any] = {
    INT.name: _int,
    FLOAT.name: _float,
    DATE.name: date.fromisoformat,
    TIMESTAMP.name: _timestamp,
    BYTES.name: lambda text: b64decode(text, validate=True),
}
