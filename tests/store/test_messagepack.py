"""MessagePack of a declared type: values are read back with their types; other bytes are an error, at low cost."""

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from datetime import date, datetime
from random import Random
from types import GenericAlias
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.errors import SnapshotError
from pathcast.store.messagepack import VERSION, MessagePack

HEAD = b"\xc1\x02"
ADVICE = "write it again"
NUMBERS = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.floats(), st.sampled_from([0, 1, 1.0, -0.0, 0.0]))


def without_fold(moment):
    """A datetime as the bytes store it: without `fold`, which has no meaning without a time zone."""
    return moment.replace(fold=0)


# Types and values of these types; `int | float` distinguishes 1 and 1.0.
KINDS = [
    (int | float, NUMBERS),
    (int | float | None, NUMBERS | st.none()),
    (bool, st.booleans()),
    (str | int | None, st.text() | st.integers(0, (1 << 63) - 1) | st.none()),
    (bytes | None, st.binary() | st.none()),
    (date | None, st.dates() | st.none()),
    (datetime | None, st.datetimes().map(without_fold) | st.none()),
]


@st.composite
def typed_values(draw):
    """A type of two levels of tuples and lists, and a value of it."""
    columns = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    row = GenericAlias(tuple, tuple(kind for kind, _ in columns))
    rows = st.tuples(*(values for _, values in columns))
    lists, tuples = GenericAlias(list, (row,)), GenericAlias(tuple, (row, ...))
    both = GenericAlias(tuple, (lists, GenericAlias(tuple, (row, row))))
    made: dict[GenericAlias, st.SearchStrategy[Any]] = {
        lists: st.lists(rows),
        tuples: st.lists(rows).map(tuple),
        both: st.tuples(st.lists(rows), st.tuples(rows, rows)),
    }
    shape = draw(st.sampled_from([*made]))
    return shape, draw(made[shape])


@settings(max_examples=100)
@given(given=typed_values())
def test_what_was_written_comes_back_with_its_types(given):
    kind, value = given
    values: MessagePack[Any] = MessagePack(kind, "a value", ADVICE)
    found = values.read(values.write(value))
    assert repr(found) == repr(value)


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (0.0, -0.0), (0, False), (None, 0), ("a", b"a"), ("", None)])
def test_values_that_look_alike_have_other_bytes(one, other):
    values: MessagePack[Any] = MessagePack(Any, "a value", ADVICE)
    assert values.write(one) != values.write(other)
    assert repr(values.read(values.write(one))) == repr(one)
    assert repr(values.read(values.write(other))) == repr(other)


@pytest.mark.parametrize(
    "value",
    [1 << 64, -(1 << 63) - 1, "\ud800", complex(1, 2), object()],
    ids=["large", "small", "half", "complex", "object"],
)
def test_a_value_that_the_format_lacks_is_not_written_as_another(value):
    with pytest.raises((OverflowError, UnicodeEncodeError, TypeError)):
        MessagePack(object, "a value", ADVICE).write(value)


ROW = (7, 2.5, "name", date(2026, 1, 2), None, True, b"data")
STATE_TYPE = tuple[
    list[tuple[str, list[int], list[tuple[int, float, str, date, str | None, bool, bytes]]]],
    list[tuple[int, list[int]]],
]
STATES: MessagePack[Any] = MessagePack(STATE_TYPE, "the state", "start again with a new checkpoint")
STATE = ([("R", [1, 2], [ROW, ROW]), ("S", [3], [(1 << 62, -0.0, "x" * 300, date.max, "", False, b"")])], [(3, [1, 2])])
WHOLE = STATES.write(STATE)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


@pytest.mark.parametrize("value", [Bomb(), [date(2026, 1, 1), {"x": Bomb()}], print, ({"R": [(1, (2,))]}, {3: [1]})])
@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_is_refused_and_nothing_runs(tmp_path, monkeypatch, value, protocol):
    monkeypatch.chdir(tmp_path)
    for data in (pickle.dumps(value, protocol), HEAD + pickle.dumps(value, protocol)):
        with pytest.raises(SnapshotError, match="the state"):
            STATES.read(data)
    assert not (tmp_path / "exploded").exists()


def test_other_versions_are_refused_with_advice():
    old = pickle.dumps(({"R": [(1, (2, 3.5))]}, {3: [1]}), protocol=5)
    with pytest.raises(
        SnapshotError, match=r"^the state has format version 1, .* reads version 2; start again with a new"
    ):
        STATES.read(old)
    with pytest.raises(SnapshotError, match=r"^the state has format version 3, .* reads version 2; update Pathcast$"):
        STATES.read(bytes([0xC1, VERSION + 1]) + WHOLE[2:])
    for foreign in (b"", b"\xc1", b"{}", WHOLE[2:], b"PAR1"):
        with pytest.raises(
            SnapshotError, match=r"^cannot read the state: .* were not written by Pathcast; start again with"
        ):
            STATES.read(foreign)


def long(code, count):
    return bytes([code]) + count.to_bytes(4, "big")


# Each is truncated, is malformed, or claims to be far longer than it is.
HOSTILE = {
    "a length of a list": long(0xDD, 0xFFFFFFFF),
    "a length of a list within": b"\x92\x91\x93\xa1R" + long(0xDD, 0x0FFFFFFF),
    "lengths within lengths": long(0xDD, 1 << 20) * 400_000,
    "a length of bytes": long(0xC6, 0xFFFFFFFF),
    "a length of text": b"\x92\x91\x93" + long(0xDB, 0xFFFFFFFF) + b"R",
    "a length of a map": long(0xDF, 0xFFFFFFFF),
    "a length of an extension": long(0xC9, 0xFFFFFFFF) + b"\x05",
    "deep lists": b"\x91" * 1_000_000 + b"\x01",
    "deep maps": b"\x81\x01" * 500_000 + b"\x01",
    "deep keys": b"\x81" * 1_000_000,
    "a map": b"\x82\x00\x90\x01\x90",
    "the same key twice": b"\x92\x82\xa1R\x90\xa1R\x90\x90",
    "a key without a hash": b"\x81\x80\x01",
    "an extension": b"\xd4\x05\x01",
    "a timestamp": b"\xd6\xff\xff\xff\xff\xff",
    "a byte that means nothing": b"\xc1",
    "text that is no UTF-8": b"\x92\x91\x93\xa1\xff\x90\x90\x90",
    "a number of more than 64 bits": b"\x92\x90\x91\x92\xcf" + b"\xff" * 9,
    "a float for a whole number": b"\x92\x90\x91\x92\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\x90",
    "no end": WHOLE[2:-1],
    "more than an end": WHOLE[2:] + b"\x00",
    "two values": WHOLE[2:] * 2,
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_refused(name):
    with pytest.raises(SnapshotError, match=r"^cannot read the state: "):
        STATES.read(HEAD + HOSTILE[name])


@given(data=st.binary(max_size=40))
def test_other_bytes_are_an_error_or_a_value(data):
    for each in (data, HEAD + data):
        with suppress(SnapshotError):
            STATES.read(each)


def test_bytes_that_end_early_are_an_error():
    for end in range(len(WHOLE)):
        with pytest.raises(SnapshotError):
            STATES.read(WHOLE[:end])


PIECES = [
    b"\x90", b"\x91", b"\x92", b"\x93", b"\x97", b"\x80", b"\x81", b"\xa0", b"\xa1R", b"\xc0", b"\xc1", b"\xc2",
    b"\xc3", b"\x00", b"\x7f", b"\xff", b"\xcf" + b"\xff" * 8, b"\xd3" + b"\x80" + b"\x00" * 7,
    b"\xcb" + b"\x7f\xf8" + b"\0" * 6, b"\xca\x00\x00\x00\x01", b"\xc4\x02ab", b"\xaa2026-01-02", b"\xaa2026-13-02",
    b"\xdc\xff\xff", b"\xdd\x00\x00\x00\x01", b"\xd9\xff", b"\xc7\x00\x01", b"\xd7\xff" + b"\xff" * 8,
    b"\xde\x00\x01", b"\xff" * 8,
]  # fmt: skip


def mutations(count):
    """Mutations of written bytes, and random sequences of pieces."""
    random = Random(3)
    seeds = [WHOLE[2:], *HOSTILE.values()]
    for _ in range(count):
        if random.random() < 0.2:
            data = bytearray(WHOLE)
            data[random.randrange(2, len(data))] ^= 1 << random.randrange(8)
            yield bytes(data)
        elif random.random() < 0.7:
            data = bytearray(random.choice(random.choice([seeds, seeds[:1]]))[-2000:])
            for _ in range(random.randint(1, 4)):
                at = random.randrange(len(data) + 1)
                piece = random.choice(PIECES) if random.random() < 0.7 else random.randbytes(random.randint(0, 3))
                data[at : at + random.choice([0, 0, 1, len(piece)])] = piece
            yield HEAD + bytes(data)
        else:
            yield HEAD + b"\x92" + b"".join(random.choices(PIECES, k=random.randint(1, 30)))


def fits(value):
    """Whether a value has the types of a state, including every number."""
    again = msgspec.convert(value, STATE_TYPE, strict=True)
    return repr(again) == repr(value)


def read_within(megabytes, count):
    """Read mutations with a limit on additional memory; return how many decoded to values."""
    import resource

    assert STATES.read(WHOLE) == STATE
    given = [*(HEAD + data for data in HOSTILE.values()), *mutations(count)]
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (megabytes << 20),) * 2)
    values = 0
    for data in given:
        with suppress(SnapshotError):
            assert fits(STATES.read(data))
            values += 1
    return values


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory are set and read as Linux has them")
def test_changed_bytes_are_an_error_or_a_value_in_little_memory():
    program = "import runpy, sys; print(runpy.run_path(sys.argv[1])['read_within'](100, 20_000))"
    command = [sys.executable, "-c", program, __file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500
