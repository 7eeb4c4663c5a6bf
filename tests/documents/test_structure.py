"""The index of structural places against its twin in plain Python; and documents longer than one index."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pathcast.documents.scanner.character_kernels import PADDING
from pathcast.documents.scanner.structural_byte_index_kernels import (
    AHEAD,
    ROOM,
    WINDOW,
    index_structure,
    write_places,
)
from pathcast.kernels import BEYOND, can_compress, compress_positions, kernel
from tests.documents.equivalence import by_expat, by_scanner, differences, passed_on

index = kernel("int64(ro_u1[::1], int64, int64, u4[::1])", late=True)(index_structure.py_func)  # type: ignore[attr-defined]
SIGNATURE = "int64(u4[::1], int64, uint64, int64)"
by_loop = kernel(SIGNATURE, late=True)(write_places.py_func)  # type: ignore[attr-defined]


@kernel(SIGNATURE, late=True)
def by_compression(places: Any, count: int, bits: int, block: int) -> Any:
    """As `write_places`, or -1 where the processor cannot."""
    return compress_positions(places, count, bits, block) if can_compress() else np.int64(-1)


NAME = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
TEXT = b"\t\n" + bytes(code for code in range(0x20, 0x80) if code not in b"<&]")


def structural(data: bytes, begin: int, end: int) -> list[int]:
    """The places, byte by byte."""
    found, inside = [], False
    for place in range(begin, min(end, begin + WINDOW)):
        code = data[place]
        if code == ord("<"):
            inside = True
        if code not in (NAME if inside else TEXT):
            found.append(place)
        if code == ord(">"):
            inside = False
    return found


pieces = st.sampled_from(
    [b"<", b">", b"</", b"/>", b"=", b'"', b"'", b" ", b"a", b"&", b"]", b"\xc3\xa9", b"\0", b"x" * 61]
)
contents = st.lists(pieces, max_size=150).map(b"".join)


@given(contents, st.integers(0, 70), st.integers(0, 70))
@example(b"<" * 200, 0, 0)
@example(b">" * 200, 0, 0)
@example((b"<" + b"a" * 62 + b">") * 3, 0, 0)
@example((b"<a>" * 3000), 1, 1)
def test_an_index_has_every_structural_place(content: bytes, before: int, after: int) -> None:
    begin, end = min(before, len(content)), max(len(content) - after, 0)
    data = content + bytes(PADDING)
    places = np.full(ROOM, 0xFFFFFFFF, dtype=np.uint32)
    count = index(np.frombuffer(data, dtype=np.uint8), begin, end, places)
    if len(data) >= 64:
        assert places[:count].tolist() == structural(data, begin, end)
    else:
        assert count == 0
    assert {data[place] for place in places[count : count + AHEAD]} == {0}


@given(st.integers(0, (1 << 64) - 1), st.integers(0, 40), st.integers(0, (1 << 32) - 65))
@example(0, 0, 0)
@example((1 << 64) - 1, 0, (1 << 32) - 64)
def test_places_are_written_alike_with_and_without_compression(bits: int, count: int, block: int) -> None:
    expected = [block + place for place in range(64) if bits >> place & 1]
    for write in (by_loop, by_compression):
        places = np.full(count + 64 + BEYOND, 7, dtype=np.uint32)
        end = write(places, count, bits, block)
        if write is by_loop or end >= 0:
            assert end == count + len(expected)
            assert places[count:end].tolist() == expected
            assert set(places[:count].tolist()) | set(places[end + BEYOND :].tolist()) <= {7}


TAGS = (
    b"<item id='1' x=\"2\"/>",
    b"<a  b = 'c'\n\td='it\"s > here'><b></b ></a>",
    b"<p:a xmlns:p='u' p:b='1' xml:lang='en'><p:c/></p:a>",
    b"<abcdefghijklmnopqrs tuvwxyzabcdefghijklmno='pqrstuvwxyz 0123'>text &amp; more</abcdefghijklmnopqrs>",
    b"<a>x<![CDATA[<b>]]>y</a><!-- <c d='> --><?e <f>?><g h=''>\xc3\xa9</g>",
)


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_may_lie_anywhere_at_the_end_of_an_index(tag: bytes) -> None:
    documents = [
        b"<r>%b<s/>%b<t u='v'>w</t></r>" % (b"-" * (WINDOW - shift), tag * 2) for shift in range(2 * len(tag) + 40)
    ]
    assert differences(by_scanner(documents), by_expat(documents)) == []
    assert passed_on(documents) == []


def test_a_tag_may_be_longer_than_an_index() -> None:
    attributes = b"".join(b" attribute-%d='value %d'" % (number, number) for number in range(200))
    documents = [b"<r><s/>%b<a%b/>%b</r>" % (b"x" * size, attributes, b"<b/>" * 2000) for size in (0, 3000, WINDOW)]
    assert differences(by_scanner(documents), by_expat(documents)) == []
    assert passed_on(documents) == []
