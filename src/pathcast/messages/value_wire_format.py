"""The wire format of values: numbers in as few bytes as they need, points column by column; all input is checked.

    value     by tag: null · whole number (zigzag, 7 bits per byte) · float that is whole (the same) · float (8 bytes) ·
              string, bytes (length first) · date (days), timestamp (microseconds), both since 1970 · points
    points    axes, number of rows, then column by column: one tag for all and differences from row to row where the
              values are numbers; or "as the column before", as Y repeats X in most skylines; or a tag per value

Invariant: `Reader.value` reads the value that `put_value` wrote, with its type (1 stays 1, 1.0 stays 1.0). A reader
checks a count against the remaining bytes and `WireLimits` before it allocates memory.
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
from .value_interval import Interval

NULL, WHOLE, WHOLE_FLOAT, FLOAT, STRING, DATE, TIMESTAMP, BYTES, POINTS, SKYLINE = range(10)
SAME_COLUMN, MIXED_COLUMN = 0x7E, 0x7F
_DOUBLE = Struct("<d")
_SAME, _FLOATS = bytes([SAME_COLUMN]), bytes([FLOAT])
_EPOCH, _MIDNIGHT = date(1970, 1, 1), datetime(1970, 1, 1)  # noqa: DTZ001 - without zone, as all timestamps here
_MICROSECOND = timedelta(microseconds=1)
_EXACT = 1 << 53
RESEND = "ask the sender to resend the message"


@dataclass(frozen=True, slots=True)
class WireLimits:
    """Limits on one message or filter, which bound the memory of its receiver.

    bytes: its length. values: its scalars, including those of repeated columns; in memory, a value takes about 50
    bytes.
    """

    bytes: int = 1 << 26
    values: int = 1 << 20

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise LimitError(f"WireLimits({field.name}=…) must be an int of at least 1, got {value!r}")


# Writing.


def put_number(out: bytearray, value: int) -> None:
    """Write a number from 0 up, 7 bits per byte, the lowest first."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _signed(out: bytearray, value: int) -> None:
    put_number(out, value << 1 if value >= 0 else (-value << 1) - 1)


def put_text(out: bytearray, data: bytes) -> None:
    """Write bytes, their length first."""
    put_number(out, len(data))
    out += data


@lru_cache(maxsize=1 << 12)
def written_name(name: str) -> bytes:
    """The bytes of a name; cached, since the messages of a server have few names."""
    out = bytearray()
    put_text(out, name.encode())
    return bytes(out)


_TAGS: dict[type, int] = {int: WHOLE, str: STRING, datetime: TIMESTAMP, date: DATE, bytes: BYTES, NoneType: NULL}


def _tag(value: Scalar) -> int:
    if type(value) is float:
        # -0.0 is whole, too, but would be read back as 0.0.
        whole = value.is_integer() and abs(value) < _EXACT and (value != 0 or str(value) == "0.0")
        return WHOLE_FLOAT if whole else FLOAT
    return _TAGS[type(value)]


def _integer(value: Scalar) -> int:
    """The whole number that stands for a value on the wire, for kinds that are written as whole numbers."""
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
    """Write a tag, with a mark on it, and the value."""
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
        # Equal columns have equal tags here.
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
    """Write an interval: flags for open ends, then both ends."""
    out.append(one.low_open | one.high_open << 1)
    put_value(out, one.low)
    put_value(out, one.high)


# Reading.


class Reader:
    """Decodes bytes and checks every one of them."""

    def __init__(self, data: bytes | memoryview, limits: WireLimits) -> None:
        if len(data) > limits.bytes:
            raise MessageError(
                f"the message has {len(data):,} bytes; at most {limits.bytes:,} are allowed (raise the limit with "
                "WireLimits(bytes=…))"
            )
        self._data = memoryview(data)
        self._at = 0
        self._values = limits.values
        self._limits = limits

    def kind(self, wanted: int, name: str) -> None:
        """Check the first byte, which identifies a message or a filter."""
        found = self.byte()
        if found != wanted:
            raise MessageError(
                f"not a {name}: the first byte is {found:#04x}, expected {wanted:#04x}; pass the bytes of a {name}, "
                f"or {RESEND}"
            )

    def byte(self) -> int:
        """The next byte."""
        if self._at >= len(self._data):
            raise self._truncated(1)
        self._at += 1
        return self._data[self._at - 1]

    def take(self, size: int) -> memoryview:
        """The next `size` bytes."""
        if size > len(self._data) - self._at:
            raise self._truncated(size)
        self._at += size
        return self._data[self._at - size : self._at]

    def _truncated(self, size: int) -> MessageError:
        total = len(self._data)
        what = f"the message is truncated: {total:,} bytes given, but at least {self._at + size:,} are needed"
        return MessageError(f"{what}; {RESEND}")

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
                raise MessageError(f"the message is damaged: a number has more than 10 bytes; {RESEND}")

    def signed(self) -> int:
        """A whole number of either sign."""
        value = self.number()
        return (value >> 1) ^ -(value & 1)

    def count(self, what: str) -> int:
        """A count of items that take at least a byte each."""
        found = self.number()
        if found > len(self._data) - self._at:
            raise MessageError(
                f"the message is damaged: {found:,} {what} cannot fit in its last {len(self._data) - self._at:,} bytes"
                f"; {RESEND}"
            )
        self._spend(found)
        return found

    def _spend(self, values: int) -> None:
        self._values -= values
        if self._values < 0:
            raise MessageError(
                f"the message has more than {self._limits.values:,} values (raise the limit with WireLimits(values=…))"
            )

    def string(self) -> str:
        """A string, its length first."""
        try:
            return str(self.take(self.number()), "utf-8")
        except UnicodeDecodeError as error:
            raise MessageError(f"the message is damaged: a string is not UTF-8 ({error.reason}); {RESEND}") from None

    def value(self, tag: int) -> Value:
        """A value of the kind that the tag names."""
        if tag in {POINTS, SKYLINE}:
            return self._points(pairs=tag == SKYLINE)
        return self.scalar(tag)

    def scalar(self, tag: int) -> Scalar:
        """A scalar of the kind that the tag names."""
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
        raise MessageError(f"the message is damaged: a value has unknown type {tag}; {RESEND}")

    def _points(self, *, pairs: bool) -> Points:
        axes = [self.string() for _ in range(self.count("axes"))]
        width = len(axes) * (2 if pairs else 1)
        # Points without axes have no bytes that bound the number of rows; the limit on values bounds all others.
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
            raise MessageError(
                f"the message is damaged: {rows:,} points cannot fit in its last {len(self._data) - self._at:,} bytes"
                f"; {RESEND}"
            )
        if tag == MIXED_COLUMN:
            return [self.scalar(self.byte()) for _ in range(rows)]
        if tag == NULL:
            raise MessageError(f"the message is damaged: coordinates of points have the invalid type {tag}; {RESEND}")
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
            raise MessageError(f"the filter is damaged: an interval has unknown flags {flags}; {RESEND}")
        low, high = self.scalar(self.byte()), self.scalar(self.byte())
        return Interval(low, high, bool(flags & 1), bool(flags & 2))

    def finish(self) -> None:
        """Raise `MessageError` if bytes follow."""
        if self._at < len(self._data):
            raise MessageError(
                f"the message is damaged: it has {len(self._data) - self._at:,} extra bytes at the end; {RESEND}"
            )


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
        unit = "days" if tag == DATE else "µs"
        raise MessageError(
            f"the message is damaged: a date or timestamp is out of range ({value} {unit} after 1970); {RESEND}"
        ) from None
