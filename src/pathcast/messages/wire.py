"""The wire form of messages and filters: numbers in as few bytes as they need, no schema, nothing believed.

    message   0xC1, number of attributes, then each in order of names: name, tag, value; the tag's high bit: payload
    filter    0xC2, number of terms, then each: tag, names, interval, value or box
    value     by tag: null · whole number (zigzag, 7 bits a byte) · float that is whole (the same) · float (8 bytes) ·
              string, bytes (length first) · date (days), timestamp (microseconds), both since 1970 · points
    points    axes, number of rows, then column by column: one tag for all and differences from row to row where the
              values are numbers; or "as the column before", which is what Y is to X in most skylines; or a tag each

Invariant: `decode(encode(m)) == m` with types kept (1 stays 1, 1.0 stays 1.0). A reader allocates nothing on the word
of a message: a count is held against the bytes that are left and against `WireLimits` first.
Cost: linear. For a message of an inserted tuple, some 10 bytes beside names and values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from struct import Struct, pack
from types import NoneType

from ..errors import MessageError
from .filters import Between, Box, Covers, Differs, Filter, In, NoPoint, SomePoint, Term
from .intervals import Interval
from .message import Message
from .values import Points, Scalar, Value

MESSAGE, FILTER = 0xC1, 0xC2
NULL, WHOLE, WHOLE_FLOAT, FLOAT, STRING, DATE, TIMESTAMP, BYTES, POINTS, SKYLINE = range(10)
SAME_COLUMN, MIXED_COLUMN = 0x7E, 0x7F
PAYLOAD = 0x80
_DOUBLE = Struct("<d")
_SAME, _FLOATS = bytes([SAME_COLUMN]), bytes([FLOAT])
_EPOCH, _MIDNIGHT = date(1970, 1, 1), datetime(1970, 1, 1)  # noqa: DTZ001 - without zone, as all timestamps here
_MICROSECOND = timedelta(microseconds=1)
_EXACT = 1 << 53
_TERMS: tuple[type[Term], ...] = (In, Differs, Covers, Between, SomePoint, NoPoint)


@dataclass(frozen=True, slots=True)
class WireLimits:
    """What one message or filter may make its receiver spend.

    bytes: its length. values: scalars in it, those counted that repeat a column; an object in memory takes some 50
    bytes a value.
    """

    bytes: int = 1 << 26
    values: int = 1 << 20


DEFAULT = WireLimits()


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    out = begun(len(message))
    attributes, payload = message._attributes, message.payload
    for name in sorted(attributes):
        out += written_name(name)
        _value(out, attributes[name], PAYLOAD if name in payload else 0)
    return bytes(out)


def begun(count: int) -> bytearray:
    """What a message of so many attributes begins with."""
    out = bytearray((MESSAGE,))
    _number(out, count)
    return out


def written_attribute(name: str, value: Value, *, payload: bool = False) -> bytes:
    """One attribute of a message; a message is its beginning and its attributes in the order of their names."""
    out = bytearray(written_name(name))
    _value(out, value, PAYLOAD if payload else 0)
    return bytes(out)


def decode(data: bytes | memoryview, limits: WireLimits = DEFAULT) -> Message:
    """The message in some bytes; `MessageError` when there is none, or more than that."""
    reader = _Reader(data, limits)
    reader.kind(MESSAGE, "message")
    attributes: dict[str, Value] = {}
    payload = []
    last = ""
    for _ in range(reader.count("attributes")):
        name = reader.string()
        if name <= last:
            raise MessageError("the attributes of the message are not in order")
        last = name
        tag = reader.byte()
        if tag & PAYLOAD:
            payload.append(name)
        attributes[name] = reader.value(tag & ~PAYLOAD)
    reader.finish()
    return Message(attributes, payload)


def encode_filter(one: Filter) -> bytes:
    """The bytes of a filter."""
    out = bytearray([FILTER])
    _number(out, len(one.terms))
    for term in one.terms:
        out.append(_TERMS.index(type(term)))
        match term:
            case In(attribute, interval):
                _text(out, attribute.encode())
                _interval(out, interval)
            case Differs(attribute, value):
                _text(out, attribute.encode())
                _value(out, value)
            case Covers(low, high, interval) | Between(low, high, interval):
                _text(out, low.encode())
                _text(out, high.encode())
                _interval(out, interval)
            case SomePoint(attribute, box) | NoPoint(attribute, box):
                _text(out, attribute.encode())
                _number(out, len(box.ranges))
                for axis, interval in box.ranges:
                    _text(out, axis.encode())
                    _interval(out, interval)
    return bytes(out)


def decode_filter(data: bytes | memoryview, limits: WireLimits = DEFAULT) -> Filter:
    """The filter in some bytes; `MessageError` when there is none, or more than that."""
    reader = _Reader(data, limits)
    reader.kind(FILTER, "filter")
    terms = tuple(_term(reader) for _ in range(reader.count("terms")))
    reader.finish()
    return Filter(terms)


def _term(reader: "_Reader") -> Term:
    tag = reader.byte()
    if tag >= len(_TERMS):
        raise MessageError(f"the filter has a term of unknown kind {tag}")
    kind = _TERMS[tag]
    name = reader.string()
    if kind is In:
        return In(name, reader.interval())
    if kind is Differs:
        value = reader.value(reader.byte())
        if isinstance(value, Points):
            raise MessageError("the filter compares with points")
        return Differs(name, value)
    if kind is Covers:
        return Covers(name, reader.string(), reader.interval())
    if kind is Between:
        return Between(name, reader.string(), reader.interval())
    box = Box.of({reader.string(): reader.interval() for _ in range(reader.count("axes"))})
    return SomePoint(name, box) if kind is SomePoint else NoPoint(name, box)


# Writing.


def _number(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _signed(out: bytearray, value: int) -> None:
    _number(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _text(out: bytearray, data: bytes) -> None:
    _number(out, len(data))
    out += data


@lru_cache(maxsize=1 << 12)
def written_name(name: str) -> bytes:
    """A name as it is written: messages of a server have few."""
    out = bytearray()
    _text(out, name.encode())
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
        _text(out, value.encode())  # type: ignore[union-attr]
    elif tag == BYTES:
        _text(out, value)  # type: ignore[arg-type]


def _value(out: bytearray, value: Value, mark: int = 0) -> None:
    """A tag, with a mark on it, and what it announces."""
    if not isinstance(value, Points):
        tag = _tag(value)
        out.append(tag | mark)
        _content(out, tag, value)
        return
    out.append((SKYLINE if value.pairs else POINTS) | mark)
    _number(out, len(value.axes))
    for axis in value.axes:
        out += written_name(axis)
    _number(out, len(value.rows))
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


def _interval(out: bytearray, one: Interval) -> None:
    out.append(one.low_open | one.high_open << 1)
    _value(out, one.low)
    _value(out, one.high)


# Reading.


class _Reader:
    """Takes bytes apart and believes none of them."""

    def __init__(self, data: bytes | memoryview, limits: WireLimits) -> None:
        if len(data) > limits.bytes:
            raise MessageError(f"the message has {len(data):,} bytes; at most {limits.bytes:,} allowed")
        self._data = memoryview(data)
        self._at = 0
        self._values = limits.values

    def kind(self, wanted: int, name: str) -> None:
        found = self.byte()
        if found != wanted:
            raise MessageError(f"this is no {name}: it begins with {found:#04x}")

    def byte(self) -> int:
        if self._at >= len(self._data):
            raise MessageError("the message is cut off")
        self._at += 1
        return self._data[self._at - 1]

    def take(self, size: int) -> memoryview:
        if size > len(self._data) - self._at:
            raise MessageError("the message is cut off")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self) -> int:
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
        try:
            return str(self.take(self.number()), "utf-8")
        except UnicodeDecodeError as error:
            raise MessageError(f"the message has a string that is not UTF-8: {error.reason}") from None

    def value(self, tag: int) -> Value:
        if tag in {POINTS, SKYLINE}:
            return self._points(pairs=tag == SKYLINE)
        return self.scalar(tag)

    def scalar(self, tag: int) -> Scalar:
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
        flags = self.byte()
        if flags > 3:
            raise MessageError(f"the filter has an interval with flags {flags}")
        low, high = self.scalar(self.byte()), self.scalar(self.byte())
        return Interval(low, high, bool(flags & 1), bool(flags & 2))

    def finish(self) -> None:
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
