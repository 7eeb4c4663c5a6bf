"""The wire format of messages and filters: no schema, all input checked; value_wire_format.py defines values.

    message   0xC1, number of attributes, then each in order of names: name, tag, value; the tag's high bit: payload
    filter    0xC2, number of terms, then each: tag, names, interval, value or box

Invariant: `decode(encode(m)) == m`, with the same types.
Cost: linear. A message about an inserted tuple takes about 10 bytes in addition to names and values.
"""

from pathcast.errors import MessageError

from .attribute_message import Message
from .attribute_values import Points, Value
from .filters import Between, Box, Covers, Differs, Filter, In, NoPoint, SomePoint, Term
from .value_wire_format import RESEND, Reader, WireLimits, put_interval, put_number, put_text, put_value, written_name

MESSAGE, FILTER = 0xC1, 0xC2
PAYLOAD = 0x80
DEFAULT = WireLimits()
_TERMS: tuple[type[Term], ...] = (In, Differs, Covers, Between, SomePoint, NoPoint)


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    out = begun(len(message))
    attributes, payload = message._attributes, message.payload
    for name in sorted(attributes):
        out += written_name(name)
        put_value(out, attributes[name], PAYLOAD if name in payload else 0)
    return bytes(out)


def begun(count: int) -> bytearray:
    """The first bytes of a message with `count` attributes."""
    out = bytearray((MESSAGE,))
    put_number(out, count)
    return out


def written_attribute(name: str, value: Value, *, payload: bool = False) -> bytes:
    """The bytes of one attribute; a message is `begun(count)` and then its attributes in order of their names."""
    out = bytearray(written_name(name))
    put_value(out, value, PAYLOAD if payload else 0)
    return bytes(out)


def decode(data: bytes | memoryview, limits: WireLimits = DEFAULT) -> Message:
    """The message in some bytes; `MessageError` if they are not exactly one message."""
    reader = Reader(data, limits)
    reader.kind(MESSAGE, "message")
    attributes: dict[str, Value] = {}
    payload = []
    last = ""
    for _ in range(reader.count("attributes")):
        name = reader.string()
        if name <= last:
            raise MessageError(
                f"the message is damaged: attribute names are not in ascending order ({last!r:.60}, "
                f"{name!r:.60}); {RESEND}"
            )
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
    put_number(out, len(one.terms))
    for term in one.terms:
        out.append(_TERMS.index(type(term)))
        match term:
            case In(attribute, interval):
                put_text(out, attribute.encode())
                put_interval(out, interval)
            case Differs(attribute, value):
                put_text(out, attribute.encode())
                put_value(out, value)
            case Covers(low, high, interval) | Between(low, high, interval):
                put_text(out, low.encode())
                put_text(out, high.encode())
                put_interval(out, interval)
            case SomePoint(attribute, box) | NoPoint(attribute, box):
                put_text(out, attribute.encode())
                put_number(out, len(box.ranges))
                for axis, interval in box.ranges:
                    put_text(out, axis.encode())
                    put_interval(out, interval)
    return bytes(out)


def decode_filter(data: bytes | memoryview, limits: WireLimits = DEFAULT) -> Filter:
    """The filter in some bytes; `MessageError` if they are not exactly one filter."""
    reader = Reader(data, limits)
    reader.kind(FILTER, "filter")
    terms = tuple(_term(reader) for _ in range(reader.count("terms")))
    reader.finish()
    return Filter(terms)


def _term(reader: "Reader") -> Term:
    tag = reader.byte()
    if tag >= len(_TERMS):
        raise MessageError(f"the filter is damaged: a term has unknown type {tag}; {RESEND}")
    kind = _TERMS[tag]
    name = reader.string()
    if kind is In:
        return In(name, reader.interval())
    if kind is Differs:
        value = reader.value(reader.byte())
        if isinstance(value, Points):
            raise MessageError(f"the filter is damaged: {name!r:.60} is compared with points, not a scalar; {RESEND}")
        return Differs(name, value)
    if kind is Covers:
        return Covers(name, reader.string(), reader.interval())
    if kind is Between:
        return Between(name, reader.string(), reader.interval())
    box = Box.of({reader.string(): reader.interval() for _ in range(reader.count("axes"))})
    return SomePoint(name, box) if kind is SomePoint else NoPoint(name, box)
