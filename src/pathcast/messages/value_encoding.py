"""The wire form of values: numbers in as few bytes as they need, points column by column, nothing believed.

    value     by tag: null · whole number (zigzag, 7 bits a byte) · float that is whole (the same) · float (8 bytes) ·
              string, bytes (length first) · date (days), timestamp (microseconds), both since 1970 · points
    points    axes, number of rows, then column by column: one tag for all and differences from row to row where the
              values are numbers; or "as the column before", which is what Y is to X in most skylines; or a tag each

Invariant: what `put_value` wrote, `Reader.value` reads back with types kept (1 stays 1, 1.0 stays 1.0). A reader
allocates nothing on the word of a message: a count is held against the bytes that are left and `WireLimits` first.
Cost: linear.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from functools import lru_cache
from struct import Struct, pack
from types import NoneType

from pathcast.errors import LimitError, MessageError

from .attribute_values import Points, Scalar, Value
from .intervals import Interval

NULL, WHOLE, WHOLE_FLOAT, FLOAT, STRING, DATE, TIMESTAMP, BYTES, POINTS, SKYLINE = range(10)
SAME_COLUMN, MIXED_COLUMN = 0x7E, 0x7F
_DOUBLE = Struct("<d")
_SAME, _FLOATS = bytes([SAME_COLUMN]), bytes([FLOAT])
_EPOCH, _MIDNIGHT = date(1970, 1, 1), datetime(1970, 1, 1)  # noqa: DTZ001 - without zone, as all timestamps here
_MICROSECOND = timedelta(microseconds=1)
_EXACT = 1 << 53


@dataclass(frozen=True, slots=True)
class WireLimits:
    """What one message or filter may make its receiver spend.

    bytes: its length. values: scalars in it, those counted that repeat a column; an object in memory takes some 50
    bytes a value.
    """

    bytes: int = 1 << 26
    values: int = 1 << 20

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise LimitError(f"WireLimits({field.name}={value!r}): a limit is a whole number from 1 up")


# Writing.


def put_number(out: bytearray, value: int) -> None:
    """A number from 0 up, 7 bits a byte, the lowest first."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _signed(out: bytearray, value: int) -> None:
    put_number(out, value << 1 if value >= 0 else (-value << 1) - 1)


def put_text(out: bytearray, data: bytes) -> None:
    """Bytes, their length first."""
    put_number(out, len(data))
    out += data


@lru_cache(maxsize=1 << 12)
def written_name(name: str) -> bytes:
    """A name as it is written: messages of a server have few."""
    out = bytearray()
    put_text(out, name.encode())
    return bytes(out)


_TAGS: dict[type, int] = {int: WHOLE, str: STRING, datetime: TIMESTAMP, date: DATE, bytes: BYTES, NoneType: NULL}


def _tag(value: Scalar) -> int:
    if type(value) is float:
        # -0.0 is whole, too, but would come back as 0.0.
        whole = value.is_integer() and abs(value) < _EXACT and (value != 0 or str(value) == "0.0")
        return WHOLE_FLOAT if whole else FLOAT
    return _TAGS[type(value)]


def _integer(value: Scalar) -> int:
    """A value of one of the kinds that are written as whole numbers, as that number."""
    if type(value) is int:
        return value
    if isinstance(value, datetime):
        return (value - _MIDNIGHT) // _MICROSECOND
    if isinstance(value, date):
        return (value - _EPOCH).days
    return int(value)  # type: ignore[arg-type]


_INTEGERS = frozenset({WHOLE, WHOLE_FLOAT, DATE, TIMESTAMP})


def _content(out: bytearray, tag: int, value: Scalar) -> None:
    if tag == FLOAT:
        out += _DOUBLE.pack(value)
    elif tag in _INTEGERS:
        _signed(out, _integer(value))
    elif tag == STRING:
        put_text(out, value.encode())  # type: ignore[union-attr]
    elif tag == BYTES:
        put_text(out, value)  # type: ignore[arg-type]


def put_value(out: bytearray, value: Value, mark: int = 0) -> None:
    """A tag, with a mark on it, and what it announces."""
    if not isinstance(value, Points):
        tag = _tag(value)
        out.append(tag | mark)
        _content(out, tag, value)
        return
    out.append((SKYLINE if value.pairs else POINTS) | mark)
    put_number(out, len(value.axes))
    for axis in value.axes:
        out += written_name(axis)
    put_number(out, len(value.rows))
    before: Sequence[Scalar] | None = None
    for column in zip(*value.rows, strict=True):
        _column(out, column, before)
        before = column


def _column(out: bytearray, column: Sequence[Scalar], before: Sequence[Scalar] | None) -> None:
    if all(type(one) is float and not one.is_integer() for one in column):
        # Tags of equal columns can't differ here.
        out += _SAME if column == before else _FLOATS + pack(f"<{len(column)}d", *column)
        return
    tags = [_tag(one) for one in column]
    if before is not None and column == before and tags == [_tag(one) for one in before]:
        out.append(SAME_COLUMN)
        return
    if len(set(tags)) > 1 or tags[0] == NULL:
        out.append(MIXED_COLUMN)
        for tag, one in zip(tags, column, strict=True):
            out.append(tag)
            _content(out, tag, one)
        return
    out.append(tags[0])
    last = 0
    for one in column:
        if tags[0] in _INTEGERS:
            value = _integer(one)
            _signed(out, value - last)
            last = value
        else:
            _content(out, tags[0], one)


def put_interval(out: bytearray, one: Interval) -> None:
    """An interval: which ends are open, then both."""
    out.append(one.low_open | one.high_open << 1)
    put_value(out, one.low)
    put_value(out, one.high)


# Reading.


class Reader:
    """Takes bytes apart and believes none of them."""

    def __init__(self, data: bytes | memoryview, limits: WireLimits) -> None:
        if len(data) > limits.bytes:
            raise MessageError(f"the message has {len(data):,} bytes; at most {limits.bytes:,} allowed")
        self._data = memoryview(data)
        self._at = 0
        self._values = limits.values

    def kind(self, wanted: int, name: str) -> None:
        """The first byte, which says what this is."""
        found = self.byte()
        if found != wanted:
            raise MessageError(f"this is no {name}: it begins with {found:#04x}")

    def byte(self) -> int:
        """The next byte."""
        if self._at >= len(self._data):
            raise MessageError("the message is cut off")
        self._at += 1
        return self._data[self._at - 1]

    def take(self, size: int) -> memoryview:
        """The next so many bytes."""
        if size > len(self._data) - self._at:
            raise MessageError("the message is cut off")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self) -> int:
        """A number that `put_number` wrote."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise MessageError("the message has a number of more than ten bytes")

    def signed(self) -> int:
        """A whole number of either sign."""
        value = self.number()
        return (value >> 1) ^ -(value & 1)

    def count(self, what: str) -> int:
        """A number of things of at least a byte each."""
        found = self.number()
        if found > len(self._data) - self._at:
            raise MessageError(f"the message claims {found:,} {what} and has {len(self._data) - self._at:,} bytes left")
        self._spend(found)
        return found

    def _spend(self, values: int) -> None:
        self._values -= values
        if self._values < 0:
            raise MessageError("the message holds more values than WireLimits(values=…) allows")

    def string(self) -> str:
        """A string, its length first."""
        try:
            return str(self.take(self.number()), "utf-8")
        except UnicodeDecodeError as error:
            raise MessageError(f"the message has a string that is not UTF-8: {error.reason}") from None

    def value(self, tag: int) -> Value:
        """A value of a kind that its tag has told."""
        if tag in {POINTS, SKYLINE}:
            return self._points(pairs=tag == SKYLINE)
        return self.scalar(tag)

    def scalar(self, tag: int) -> Scalar:
        """The same, and no points."""
        if tag == NULL:
            return None
        if tag in _INTEGERS:
            return _restored(tag, self.signed())
        if tag == FLOAT:
            value: float = _DOUBLE.unpack(self.take(8))[0]
            return value
        if tag == STRING:
            return self.string()
        if tag == BYTES:
            return bytes(self.take(self.number()))
        raise MessageError(f"the message has a value of unknown kind {tag}")

    def _points(self, *, pairs: bool) -> Points:
        axes = [self.string() for _ in range(self.count("axes"))]
        width = len(axes) * (2 if pairs else 1)
        # Points of no axes have no bytes to be counted against; the number of values bounds all others.
        rows = self.number()
        self._spend(rows * max(1, width))
        if not rows or not width:
            return Points.of(axes, [()] * rows, pairs=pairs)
        columns: list[list[Scalar]] = []
        for _ in range(width):
            tag = self.byte()
            if tag == SAME_COLUMN and columns:
                columns.append(columns[-1])
            else:
                columns.append(self._column(tag, rows))
        return Points.of(axes, zip(*columns, strict=True), pairs=pairs)

    def _column(self, tag: int, rows: int) -> list[Scalar]:
        if rows > len(self._data) - self._at:
            raise MessageError(f"the message claims {rows:,} points and is cut off")
        if tag == MIXED_COLUMN:
            return [self.scalar(self.byte()) for _ in range(rows)]
        if tag == NULL:
            raise MessageError("the message has a column of nothing")
        if tag not in _INTEGERS:
            return [self.scalar(tag) for _ in range(rows)]
        column: list[Scalar] = []
        last = 0
        for _ in range(rows):
            last += self.signed()
            column.append(_restored(tag, last))
        return column

    def interval(self) -> Interval:
        """An interval that `put_interval` wrote."""
        flags = self.byte()
        if flags > 3:
            raise MessageError(f"the filter has an interval with flags {flags}")
        low, high = self.scalar(self.byte()), self.scalar(self.byte())
        return Interval(low, high, bool(flags & 1), bool(flags & 2))

    def finish(self) -> None:
        """Nothing may follow."""
        if self._at < len(self._data):
            raise MessageError(f"{len(self._data) - self._at:,} bytes follow the end of the message")


_RESTORE: dict[int, Callable[[int], Scalar]] = {
    WHOLE: int,
    WHOLE_FLOAT: float,
    DATE: lambda days: _EPOCH + timedelta(days=days),
    TIMESTAMP: lambda microseconds: _MIDNIGHT + timedelta(microseconds=microseconds),
}


def _restored(tag: int, value: int) -> Scalar:
    try:
        return _RESTORE[tag](value)
    except (OverflowError, ValueError):
        raise MessageError(f"the message has a date {value} units from 1970, beyond the calendar") from None
