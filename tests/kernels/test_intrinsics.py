"""Bits, words and vectors inside kernels compared with plain Python; read-only arrays."""

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pathcast.documents import Limits, Names
from pathcast.documents.scanner.character_kernels import (
    comment_bytes,
    in_names,
    in_text,
    name_bytes,
    text_bytes,
    value_bytes,
)
from pathcast.documents.scanner.scanner import Scanner
from pathcast.kernels import Bytes, bit_count, item, leading, lowest_bit, matching, set_item, word
from tests.documents.equivalence import by_expat, differences
from tests.kernels.tiny import Tiny

numbers = st.one_of(st.integers(0, (1 << 64) - 1), st.integers(0, 63).map(lambda place: 1 << place))
# Bytes at the edges of classes are the likely failures.
edges = st.sampled_from(b"\x00\x08\x09\x0a\x0b\x0d\x1f !\"&'-./09:<=>@AZ[]_`az{\x7f\x80\xc1\xdf\xff")
sixteen = st.lists(st.one_of(edges, st.integers(0, 255)), min_size=16, max_size=24).map(bytes)


@functools.cache
def compiled(instruction: Any) -> Callable[..., int]:
    """A function that calls an instruction with an array and a place."""
    operation = instruction.intrinsic

    def call(data: Any, place: int) -> Any:
        return operation(data, place)

    made: Callable[..., int] = numba.njit(call)
    return made


@functools.cache
def of_number(instruction: Any) -> Callable[[np.uint64], int]:
    operation = instruction.intrinsic

    def call(number: Any) -> Any:
        return operation(number)

    made: Callable[[np.uint64], int] = numba.njit(call)
    return made


@given(numbers)
@example(0)
@example((1 << 64) - 1)
def test_lowest_bit_and_bit_count(number: int) -> None:
    places = [place for place in range(64) if number >> place & 1]
    assert of_number(lowest_bit)(np.uint64(number)) == (places[0] if places else 64)
    assert of_number(bit_count)(np.uint64(number)) == len(places)


@pytest.mark.slow
@given(sixteen, st.integers(0, 8))
def test_a_word_is_eight_bytes_the_first_the_lowest(data: bytes, place: int) -> None:
    found = compiled(word)(np.frombuffer(data, dtype=np.uint8), place)
    assert found == int.from_bytes(data[place : place + 8], "little")


NAME = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
CLASSES = {
    "name_bytes": (name_bytes, NAME),
    "value_bytes": (value_bytes, bytes(code for code in range(0x20, 0x80) if code not in b"<&\"'")),
    "text_bytes": (text_bytes, b"\t\n" + bytes(code for code in range(0x20, 0x80) if code not in b"<&]")),
    "comment_bytes": (comment_bytes, b"\t\r\n" + bytes(code for code in range(0x20, 0x80) if code not in b"-")),
}


def first_outside(data: bytes, members: bytes) -> int:
    return next((index for index, code in enumerate(data[:16]) if code not in members), 16)


@pytest.mark.parametrize("name", CLASSES)
def test_every_byte_belongs_to_its_classes(name: str) -> None:
    intrinsic, members = CLASSES[name]
    for code in range(256):
        for place in range(16):
            data = bytearray([members[0]] * 16)
            data[place] = code
            found = compiled(intrinsic)(np.frombuffer(bytes(data), dtype=np.uint8), 0)
            assert found == first_outside(bytes(data), members)


@pytest.mark.slow
@given(st.sampled_from(sorted(CLASSES)), sixteen)
def test_leading_counts_up_to_the_first_byte_outside(name: str, data: bytes) -> None:
    intrinsic, members = CLASSES[name]
    array = np.frombuffer(data, dtype=np.uint8)
    for place in range(len(data) - 15):
        assert compiled(intrinsic)(array, place) == first_outside(data[place:], members)


BLOCKS = {
    "names": (matching(in_names), CLASSES["name_bytes"][1]),
    "text": (matching(in_text), CLASSES["text_bytes"][1]),
}


@pytest.mark.parametrize("name", BLOCKS)
@given(st.lists(st.one_of(edges, st.integers(0, 255)), min_size=64, max_size=70).map(bytes))
@example(bytes(range(64)))
@example(bytes(range(64, 128)))
@example(bytes(range(128, 192)))
@example(bytes(range(192, 256)))
def test_matching_has_a_bit_for_each_of_64_bytes(name: str, data: bytes) -> None:
    intrinsic, members = BLOCKS[name]
    array = np.frombuffer(data, dtype=np.uint8)
    for place in range(len(data) - 63):
        expected = sum(1 << k for k in range(64) if data[place + k] in members)
        assert int(compiled(intrinsic)(array, place)) & (1 << 64) - 1 == expected


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.int64])
def test_unchecked_items_are_those_of_the_array(dtype: Any) -> None:
    operation = set_item.intrinsic

    def put(array: Any, place: int, value: int) -> None:
        operation(array, place, value)

    array = np.arange(5, dtype=dtype)
    numba.njit(put)(array, 3, 77)
    assert array.tolist() == [0, 1, 2, 77, 4]
    assert [compiled(item)(array, place) for place in range(5)] == [0, 1, 2, 77, 4]


@leading
def capitals_and_percent(some: Bytes) -> Any:
    return some.either(some.between(65, 90), some.equal(37), some.with_bits(0x20).equal(0x7B))


@given(st.lists(st.sampled_from(b"AZ@[%${[z\xdb\xff"), min_size=16, max_size=16).map(bytes))
def test_classes_are_made_of_ranges_bytes_and_bits(data: bytes) -> None:
    members = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ%[{"
    assert compiled(capitals_and_percent)(np.frombuffer(data, dtype=np.uint8), 0) == first_outside(data, members)


READ_ONLY = """
import numpy as np
from tiny.caller_kernels import total
writable = np.arange(5, dtype=np.int32)
fixed = writable.copy()
fixed.flags.writeable = False
np.save("tmp.npy", writable)
mapped = np.load("tmp.npy", mmap_mode="r")
assert [total(each) for each in (writable, fixed, mapped, writable[1:4])] == [10, 10, 10, 6]
for other in (writable.astype(np.int64), writable[::2], 1):
    try:
        total(other)
    except TypeError:
        continue
    raise AssertionError("compiled again for another kind of array")
print(total.signature)
"""


@pytest.mark.slow
def test_a_kernel_takes_read_only_arrays_and_has_one_signature(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Tiny.make(tmp_path).run(READ_ONLY) == "int64(ro_i4[::1])"


def test_the_scanner_only_reads_what_it_is_given() -> None:
    names = Names(["a", "{u}b", "c" * 30])
    document = b"<a xmlns:p='u'><p:b x='1'/><%b/></a>" % (b"c" * 30)
    data = np.frombuffer(document + bytes(16), dtype=np.uint8)
    offsets = np.array([0, len(document)])
    offsets.flags.writeable = False
    assert not data.flags.writeable
    batch = Scanner(names, Limits(), "refuse").read_data(data, offsets)
    assert differences(batch, by_expat([document], names=names)) == []
