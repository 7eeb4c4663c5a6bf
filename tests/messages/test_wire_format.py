"""Bytes of messages and filters: everything can be read back, and all input is checked."""

import tracemalloc
from datetime import date, datetime
from random import Random

import pytest
from hypothesis import given

from pathcast import MessageError
from pathcast.messages import (
    Box,
    Filter,
    In,
    Interval,
    Message,
    Points,
    SomePoint,
    WireLimits,
    decode,
    decode_filter,
)
from tests.messages.strategies import ANY_MESSAGES, FILTERS

NOON = datetime.fromisoformat("2026-01-01T12:30:00.000005")
EXAMPLE = Message(
    {
        "a": 1, "b": 1.0, "c": -0.0, "d": 52.1, "e": "GOOG", "f": date(1969, 7, 20), "g": NOON,
        "h": b"\x00\xff", "i": None, "j": Points.of(["x"], [(1, 1), (4, 4), (9, 9)], pairs=True), "k": float("-inf"),
        "l": Points.of(["x", "y"], [(1, None), ("a", 2.5)]), "m": -(1 << 63), "n": Points((), ((), ())),
    },
    payload=["e", "h"],
)  # fmt: skip


def exactly(message: Message) -> list[tuple[str, str]]:
    return sorted((name, repr(value)) for name, value in message.items())


@pytest.mark.slow
@given(ANY_MESSAGES)
def test_every_message_comes_back_with_its_types(message: Message) -> None:
    again = decode(message.encode())
    assert exactly(again) == exactly(message) and again.payload == message.payload
    assert again.encode() == message.encode()


@pytest.mark.slow
@given(ANY_MESSAGES)
def test_a_message_of_checked_attributes_is_the_same(message: Message) -> None:
    again = Message.trusted(dict(message), message.payload)
    assert again == message and again.payload == message.payload


@pytest.mark.slow
@given(FILTERS)
def test_every_filter_comes_back(one: Filter) -> None:
    assert decode_filter(one.encode()) == one


def test_the_example_comes_back() -> None:
    assert exactly(decode(EXAMPLE.encode())) == exactly(EXAMPLE)
    assert decode(memoryview(EXAMPLE.encode())).payload == {"e", "h"}


def test_a_skyline_on_the_diagonal_takes_a_byte_or_two_a_point() -> None:
    empty = Message({"s": Points.of(["x"], [], pairs=True)})
    many = Message({"s": Points.of(["x"], [(float(at), float(at)) for at in range(0, 2000, 50)], pairs=True)})
    assert many.size - empty.size <= 2 + 2 * 40


def test_messages_that_differ_in_order_only_are_equal() -> None:
    assert Message({"a": 1, "b": 2}) == Message({"b": 2, "a": 1})
    assert Message({"a": 1}) != Message({"a": 1.0}) and Message({"a": 1}) != Message({"a": 1}, payload=["a"])
    assert len({Message({"a": 1}), Message({"a": 1})}) == 1


def test_payload_comes_off_and_on_again() -> None:
    one = Message({"a": 1, "photo": b"x" * 100}, payload=["photo"])
    other = Message({"a": 2, "photo": b"x" * 100}, payload=["photo"])
    assert one.payload_id() == other.payload_id() != Message({"a": 1, "photo": b"y"}, payload=["photo"]).payload_id()
    assert one.bare() == Message({"a": 1}) and one.bare().payload_id() is None
    assert one.bare().with_payload(decode(other.payload_message().encode())) == one


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"a": 1 << 63}, "64 bits"),
        ({"a": float("nan")}, "NaN"),
        ({"a": "\ud800"}, "surrogate"),
        ({"a": True}, "type bool"),
        ({"a": [1]}, "type list"),
        ({"": 1}, "non-empty"),
    ],
)
def test_what_no_message_can_hold_is_refused(attributes: dict, reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        Message(attributes)


def test_a_timestamp_with_a_zone_is_refused() -> None:
    from datetime import UTC

    with pytest.raises(MessageError, match="zone"):
        Message({"a": datetime(2026, 1, 1, tzinfo=UTC)})
    with pytest.raises(MessageError, match="not in the message: b"):
        Message({"a": 1}, payload=["b"])


@pytest.mark.slow
@pytest.mark.parametrize("data", [EXAMPLE.encode(), Filter((SomePoint("p", Box.of({"x": Interval(1, 9)})),)).encode()])
def test_damaged_bytes_are_refused_or_mean_something_else(data: bytes) -> None:
    random = Random(5)
    read = decode if data[0] == EXAMPLE.encode()[0] else decode_filter
    for cut in range(len(data)):
        with pytest.raises(MessageError):
            read(data[:cut])
    with pytest.raises(MessageError, match="extra bytes at the end"):
        read(data + b"\0")
    for _ in range(3000):
        damaged = bytearray(data)
        for _ in range(random.randint(1, 3)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        try:
            one = read(bytes(damaged))
        except MessageError:
            continue
        assert read(one.encode()) == one


HUGE = b"\xff\xff\xff\xff\x7f"


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1" + HUGE,
        b"\xc1\x01" + HUGE,
        b"\xc1\x01\x01a\x04" + HUGE,
        b"\xc1\x01\x01a\x08" + HUGE,
        b"\xc1\x01\x01a\x08\x00" + HUGE,
        b"\xc1\x01\x01a\x08\x01x" + HUGE + b"\x7e",
        b"\xc1\x01\x01a\x08\x03xxx" + HUGE,
        b"\xc1\x01\x01a\x08\x01\x01x\x05\x00\x00\x00\x00\x00\x00",
        b"\xc1\x01\x01a\x01" + b"\xff" * 20,
        b"\xc1\x01\x01a\x05" + b"\xff" * 8 + b"\x01",
        b"\xc1\x02\x01b\x00\x01a\x00",
        b"\xc1\x01\x01a\x20",
        b"\xc2\x01\x09\x01a",
        b"\xc2\x01\x00\x01a\x00\x08\x00\x00",
        b"",
        b"\x00",
    ],
)
def test_hostile_bytes_are_refused_in_little_memory(data: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(MessageError):
        (decode_filter if data[:1] == b"\xc2" else decode)(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_limits_are_kept() -> None:
    many = Message({"s": Points.of(["x"], [(at,) for at in range(100)])})
    assert decode(many.encode(), WireLimits(values=102)) == many
    with pytest.raises(MessageError, match=r"more than \d+ values"):
        decode(many.encode(), WireLimits(values=101))
    with pytest.raises(MessageError, match="at most 50"):
        decode(many.encode(), WireLimits(bytes=50))
    one = Filter((In("a", Interval(1, 2)),))
    assert decode_filter(one.encode(), WireLimits(values=1)) == one
