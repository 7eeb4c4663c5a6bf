"""Kinds of columns, and keys: sortable codes of values, with a next and a previous key.

A key is a 64-bit integer for all kinds but strings, in the order of the values: days for dates, microseconds for
timestamps, and for floats their bits, rearranged so that they sort. A range of a subscription, open or closed, becomes
a *closed* range of keys: an open end becomes the next key. So indexes and kernels handle only closed ranges of int64.
A string has no predecessor; the keys of strings are `TextKey`s, which can denote a place just below or above a string.

Invariant: `key` keeps order and equality; `value(key(v)) == v`; a value is in an interval exactly if its key is in
`ends(interval)`. Ints and floats of one column compare by value: a whole number that no float equals needs kind `int`.
Cost: well under a microsecond per key.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import total_ordering
from math import ceil, floor, inf, isinf
from typing import Any, TypeAlias

from pathcast.errors import MessageError
from pathcast.messages import NUMBER, Interval, Scalar, check_scalar, family


@total_ordering
class TextKey:
    """A string, or the place just below (side -1) or above (1) it; rank -1 and 1 are below and above all strings."""

    __slots__ = ("rank", "side", "text")

    def __init__(self, text: str, side: int = 0, rank: int = 0) -> None:
        self.text, self.side, self.rank = text, side, rank

    def _order(self) -> tuple[int, str, int]:
        return (self.rank, self.text, self.side)

    def __lt__(self, other: "TextKey") -> bool:
        return self._order() < other._order()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextKey) and self._order() == other._order()

    def __hash__(self) -> int:
        return hash(self._order())

    def __repr__(self) -> str:
        return f"TextKey({self.text!r}, {self.side}, {self.rank})"


Key: TypeAlias = int | TextKey
Ends: TypeAlias = tuple[Any, Any]

_DOUBLE, _QUAD = struct.Struct("<d"), struct.Struct("<q")
_LARGEST = (1 << 63) - 1
_MIDNIGHT = datetime(1970, 1, 1)  # noqa: DTZ001 - without zone, as all timestamps here
_MICROSECOND = timedelta(microseconds=1)


def float_key(value: float) -> int:
    """The bits of a float as a whole number in the same order; both zeros are 0."""
    bits: int = _QUAD.unpack(_DOUBLE.pack(value + 0.0))[0]
    return bits if bits >= 0 else bits ^ _LARGEST


def float_value(key: int) -> float:
    """The float of a key; -1, which would be the negative zero, is not the key of any value."""
    value: float = _DOUBLE.unpack(_QUAD.pack(key if key >= 0 else key ^ _LARGEST))[0]
    return value


def _whole_end(value: float, sign: int) -> int:
    """The first whole number from `value` on upwards (sign 1) or downwards (-1)."""
    if isinf(value):
        return _LARGEST + 1 if value > 0 else -_LARGEST - 2
    return ceil(value) if sign > 0 else floor(value)


def _float_end(value: Any, sign: int) -> int:
    """The key of the first float from `value` on upwards or downwards: a whole number may lie between two floats."""
    near = float(value)
    beyond = near < value if sign > 0 else near > value
    return float_key(near) + sign if beyond else float_key(near)


def _microseconds(value: datetime) -> int:
    return (value - _MIDNIGHT) // _MICROSECOND


@dataclass(frozen=True)
class Kind:
    """The kind of values that a column holds."""

    name: str
    family: str
    types: tuple[type, ...]
    key: Callable[[Any], Any]
    value: Callable[[Any], Scalar]
    lowest: Any
    highest: Any
    end: Callable[[Any, int], Any]
    ordered: bool = True
    hole: int | None = None

    def ends(self, interval: Interval) -> Ends | None:
        """The closed range of keys for an interval; None when no value of this kind is in it."""
        low, high = self.lowest, self.highest
        if interval.low is not None:
            low = max(low, self._after(interval.low, 1, open_end=interval.low_open))
        if interval.high is not None:
            high = min(high, self._after(interval.high, -1, open_end=interval.high_open))
        # An end on an unused key moves inwards, so that ends are keys of values.
        low, high = (low + 1 if low == self.hole else low), (high - 1 if high == self.hole else high)
        return (low, high) if low <= high else None

    def _after(self, value: Scalar, sign: int, *, open_end: bool) -> Any:
        key = self.end(value, sign)
        if not open_end:
            return key
        if isinstance(key, TextKey):
            return TextKey(key.text, sign)
        return key + sign if self.holds_exactly(value, key) else key

    def holds_exactly(self, value: Scalar, key: int) -> bool:
        """Whether the key is exactly this value's, not that of the nearest value."""
        return self.lowest <= key <= self.highest and self.value(key) == value

    @property
    def noun(self) -> str:
        """The kind with its article, for messages."""
        return {"int": "an int", "bytes": "bytes"}.get(self.name, f"a {self.name}")

    def check(self, value: object) -> str | None:
        """Why a value can't be in a column of this kind; None when it can."""
        if value is None:
            return None
        if type(value) not in self.types:
            return f"expected {self.noun}, got {value!r:.60}"
        try:
            check_scalar(value)
        except MessageError as error:
            return error.reason
        if type(value) is int and float in self.types and float(value) != value:
            return f"a float cannot hold {value} exactly; declare the column as 'int'"
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return kind_named, (self.name,)


def _same(key: Any, _sign: int = 0) -> Any:
    return key


INT = Kind("int", NUMBER, (int,), int, int, -_LARGEST - 1, _LARGEST, _whole_end)
FLOAT = Kind(
    "float", NUMBER, (float, int), float_key, float_value, float_key(-inf), float_key(inf), _float_end, hole=-1
)
STRING = Kind(
    name="string",
    family="string",
    types=(str,),
    key=TextKey,
    value=lambda key: key.text,
    lowest=TextKey("", 0, -1),
    highest=TextKey("", 0, 1),
    end=lambda value, _: TextKey(value),
)
DATE = Kind(
    name="date",
    family="date",
    types=(date,),
    key=date.toordinal,
    value=date.fromordinal,
    lowest=date.min.toordinal(),
    highest=date.max.toordinal(),
    end=lambda value, _: value.toordinal(),
)
_DAY = 86_400_000_000
TIMESTAMP = Kind(
    name="timestamp",
    family="timestamp",
    types=(datetime,),
    key=_microseconds,
    value=lambda key: _MIDNIGHT + timedelta(microseconds=key),
    lowest=(date.min.toordinal() - 719_163) * _DAY,
    highest=(date.max.toordinal() - 719_162) * _DAY - 1,
    end=lambda value, _: _microseconds(value),
)
BYTES = Kind("bytes", "bytes", (bytes,), _same, _same, b"", b"", _same, ordered=False)

_NAMES = {
    **dict.fromkeys(("int", "integer", "bigint"), INT),
    **dict.fromkeys(("float", "double", "real", "number"), FLOAT),
    **dict.fromkeys(("string", "text", "varchar"), STRING),
    "date": DATE,
    **dict.fromkeys(("timestamp", "datetime"), TIMESTAMP),
    **dict.fromkeys(("bytes", "blob"), BYTES),
}
KIND_NAMES = ("int", "float", "string", "date", "timestamp", "bytes")


def kind_named(name: str) -> Kind:
    """The kind of this name; `KeyError` when there is none."""
    return _NAMES[name.lower()]


def kind_of(value: Scalar) -> Kind:
    """The kind that a column without a declared kind takes from a value: numbers become floats."""
    return {NUMBER: FLOAT, "string": STRING, "date": DATE, "timestamp": TIMESTAMP, "bytes": BYTES}[
        family(value) or NUMBER
    ]
