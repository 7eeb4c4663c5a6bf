"""Plain values: what was written comes back with its types; reading runs no code and takes memory as bytes are many."""

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from datetime import date
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.errors import SnapshotError
from pathcast.store.plain import read_plain, write_plain
from pathcast.store.plain_kernels import DEPTH, WEIGHT

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.dates(),
    st.datetimes(),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(SCALARS, inner)),
    max_leaves=20,
)


@settings(max_examples=50)
@given(value=VALUES)
def test_what_was_written_comes_back(value):
    found = read_plain(write_plain(value), "a value")
    assert found == value
    assert repr(found) == repr(value)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


@pytest.mark.parametrize(
    "value",
    [Bomb(), [date(2026, 1, 1), {"x": Bomb()}], print, ValueError("x"), complex(1, 2)],
    ids=["a call", "a call inside", "a function", "an error", "another number"],
)
def test_what_names_code_is_refused(tmp_path, monkeypatch, value):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SnapshotError, match=r"the state can't be read: \S+ is no plain value"):
        read_plain(pickle.dumps(value), "the state")
    assert not (tmp_path / "exploded").exists()


@given(data=st.binary(max_size=40))
def test_other_bytes_are_an_error_or_a_value(data):
    with suppress(SnapshotError):
        read_plain(data, "a value")


def nested(levels, inner=None):
    for _ in range(levels):
        inner = (inner,)
    return inner


def doubled(levels):
    """A tuple that has the one before it twice, at each level; 7 bytes each."""
    steps = b"".join(b"h" + bytes([level]) + b"h" + bytes([level]) + b"\x86\x94" for level in range(levels))
    return b"\x80\x05)\x94" + steps


# Each is a pickle, or begins as one, that costs its reader far more than its length.
HOSTILE = {
    "a far place in the memo": b"\x80\x05Nr\x00\x00\x00\x08.",
    "a far place in the memo, as text": b"\x80\x05Np134217728\n.",
    "a length of bytes": b"\x80\x05\x8e" + (1 << 32).to_bytes(8, "little") + b"x.",
    "a length below 0": b"\x80\x05\x8e" + b"\xff" * 8 + b"x.",
    "a length of an array of bytes": b"\x80\x05\x96" + (1 << 32).to_bytes(8, "little") + b"x.",
    "doubled tuples": b"(" + doubled(60) + b"t.",
    "doubled tuples as a key": b"}" + doubled(60)[2:] + b"Ns.",
    "doubled by copies of the top": b"\x80\x05)" + b"2\x86" * 60 + b".",
    "doubled lists": b"\x80\x05]\x94" + b"".join(b"](h%ch%ce\x94" % (at, at) for at in range(60)) + b"t.",
    "a list in itself": b"\x80\x05]\x94h\x00a.",
    "a list in itself, from outside": b"\x80\x05]\x94h\x00h\x00a\x86.",
    "a list in a tuple in it": b"\x80\x05]\x94h\x00\x85a.",
    "a list that is kept twice": b"\x80\x05]\x94\x94h\x00a.",
    "a deep key": b"\x80\x05}N" + b"\x85" * 1_000_000 + b"Ns.",
    "deep lists": b"\x80\x05" + b"]" * 1_000_000 + b"a" * 999_999 + b".",
    "a large number many times": b"\x80\x05(\x8b\x00\x00\x01\x00" + b"\x01" * 65536 + b"\x94" + b"h\x00" * 9999 + b"t.",
    "no end": b"\x80\x05(NNN",
    "more than an end": b"\x80\x05N.N.",
    "a mark alone": b"\x80\x05(.",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_costly_pickle_is_refused(name):
    with pytest.raises(SnapshotError, match="a value can't be read"):
        read_plain(HOSTILE[name], "a value")


def test_values_that_occur_often_come_back():
    row, listed = (1, "x", date(2026, 1, 2)), [1, 2]
    values = [row, listed, {"a": listed, "b": [row] * 100}, (listed, listed)]
    assert read_plain(write_plain(values), "a value") == values
    wide = tuple(range(2 * WEIGHT - 4))
    assert read_plain(write_plain([wide] * 1000), "a value") == [wide] * 1000
    many = [tuple(str(at)) for at in range(5000)], (None,) * 5000
    assert read_plain(write_plain(many), "a value") == many


def test_values_nest_up_to_a_depth():
    deep = nested(DEPTH - 1)
    assert read_plain(write_plain(deep), "a value") == deep
    with pytest.raises(SnapshotError):
        read_plain(write_plain(nested(DEPTH)), "a value")


# Pieces of pickles, ours and others.
PIECES = [
    b"(", b".", b"0", b"2", b"N", b"K\x01", b"M\x01\x02", b"G@\x00\x00\x00\x00\x00\x00\x00", b"\x8a\x01\x07",
    b"\x8c\x01a", b"C\x02ab", b"X\x01\x00\x00\x00b", b")", b"]", b"}", b"\x85", b"\x86", b"\x87", b"t", b"a", b"e",
    b"s", b"u", b"\x94", b"h\x00", b"h\x01", b"h\x02", b"j\x00\x00\x00\x00", b"r\xff\xff\xff\x07", b"\x93", b"R", b"b",
    b"\x81", b"\x8e", b"\x8c\x08datetime\x8c\x04date\x93", b"C\x04\x07\xea\x01\x02", b"\x8f", b"\x91", b"\x90", b"\x96",
    b"\xff" * 8,
]  # fmt: skip


def mutations(count):
    """Bytes that are nearly what was written, and heaps of pieces."""
    random = Random(3)
    row = (7, 2.5, "name", date(2026, 1, 2), None, True, b"data")
    seeds = [write_plain(({"R": [(1, row), (2, row)], "S": [(3, (1 << 70, "x" * 300))]}, {3: [1, 2], 4: [5]}))]
    seeds += [write_plain([(at, "R", None, row, True) for at in range(5)]), *HOSTILE.values()]
    for _ in range(count):
        if random.random() < 0.5:
            data = bytearray(random.choice(random.choice([seeds, seeds[:2]]))[-2000:])
            for _ in range(random.randint(1, 4)):
                at = random.randrange(len(data) + 1)
                piece = random.choice(PIECES) if random.random() < 0.7 else random.randbytes(random.randint(0, 3))
                data[at : at + random.choice([0, 0, 1, len(piece)])] = piece
            yield bytes(data)
        else:
            # Of the pieces that ask for little on the stack, more come to an end.
            pieces = random.choices(random.choice([PIECES, PIECES[4:15] + PIECES[23:27]]), k=random.randint(1, 60))
            yield b"\x80\x05(K\x01\x8c\x01a\x94" + b"".join(pieces) + b"t."


def weight(value):
    if isinstance(value, dict):
        return 1 + sum(weight(key) + weight(each) for key, each in value.items())
    return 1 + sum(map(weight, value)) if isinstance(value, (list, tuple)) else 1


def read_within(megabytes, count):
    """Read mutations with so much memory more than now; how many were values."""
    import resource

    read_plain(write_plain([date(2026, 1, 2)]), "a value")
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (megabytes << 20),) * 2)
    values = 0
    for data in [*HOSTILE.values(), *mutations(count)]:
        with suppress(SnapshotError):
            value = read_plain(data, "a value")
            hash(repr(value))
            assert weight(value) <= WEIGHT * len(data)
            values += 1
    return values


@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory are set and read as Linux has them")
def test_changed_bytes_are_an_error_or_a_value_in_little_memory():
    program = "import runpy, sys; print(runpy.run_path(sys.argv[1])['read_within'](100, 20_000))"
    command = [sys.executable, "-c", program, __file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500


def test_bytes_that_end_early_are_an_error():
    whole = write_plain(({"R": [(1, (2, 3.5, "x", date(2026, 1, 2)))]}, {3: [1]}))
    for end in range(len(whole) - 1):
        with pytest.raises(SnapshotError):
            read_plain(whole[:end], "a value")
