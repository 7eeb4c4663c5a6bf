"""Annotations arrive as they were sent; malformed headers are rejected."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.errors import MessageError
from pathcast.routing import annotation_header_codec as wire
from pathcast.routing.annotation_header_codec import MOST_HEADER, decode, decode_header, encode, split
from pathcast.routing.annotations.document_annotations import NOTHING, SHORT, Annotations, Bound, LastPlaces

numbers = st.integers(0, 1 << 20)
masks = st.none() | st.lists(st.booleans(), max_size=40).map(lambda bits: np.array(bits, dtype=np.bool_))
labels = st.lists(st.text(min_size=1, max_size=8), max_size=4).map(tuple)
bounds = st.builds(Bound, numbers, st.lists(st.tuples(numbers, labels), max_size=3).map(tuple))
last_places = st.dictionaries(numbers, numbers, max_size=5).map(lambda places: LastPlaces.of(places.items()))


@st.composite
def annotations_drawn(draw: st.DrawFn) -> Annotations:
    failed, holding = draw(masks), draw(masks)
    if failed is not None and holding is not None:  # of the same aggregates, each at most one of both
        holding = np.resize(holding, len(failed)) & ~failed
    bindings, structure = draw(st.lists(bounds, max_size=4)), draw(st.none() | st.binary())
    return Annotations(draw(numbers), tuple(bindings), draw(last_places), failed, draw(masks), structure, holding)


annotations = annotations_drawn()


@pytest.mark.slow
@given(annotations, st.booleans(), st.binary())
def test_a_message_is_taken_apart_as_it_was_put_together(sent: Annotations, text: bool, document: bytes) -> None:
    header = encode(sent, text=text)
    message = decode(header.header + document)
    assert message.document == document
    assert message.text == text
    assert message.annotations == (sent or NOTHING)
    assert message.refused is None


@pytest.mark.slow
@given(annotations)
def test_sizes_by_kind_add_up_to_the_header(sent: Annotations) -> None:
    header = encode(sent)
    if sent:
        assert sum(header.sizes.values()) == len(header.header)
        assert decode(header.header).sizes == header.sizes


def test_a_message_without_annotations_costs_one_byte() -> None:
    assert len(encode(NOTHING).header) == 1


def test_a_bit_string_has_a_bit_an_aggregate() -> None:
    header = encode(Annotations(1, failed=np.ones(800, dtype=np.bool_)))
    assert header.sizes["-s"] == 2 + 100


def test_what_holds_has_a_bit_for_each_aggregate_that_does_not_fail() -> None:
    failed = np.arange(800) >= 40
    assert encode(Annotations(1, failed=failed, holding=~failed & (np.arange(800) > 0))).sizes["+s"] == 1 + 5
    assert encode(Annotations(1, failed=failed, holding=~failed)).sizes["+s"] == 1
    assert encode(Annotations(1, holding=~failed)).sizes["+s"] == 2 + 100


@settings(max_examples=400)
@given(st.binary(max_size=60))
def test_any_bytes_are_taken_or_refused(data: bytes) -> None:
    try:
        annotations = decode_header(data)
    except MessageError:
        return
    again = encode(annotations, text=bool(data[0] & 1)).header
    assert split(again)[0] == data


@pytest.mark.slow
@settings(max_examples=200)
@given(annotations, st.data())
def test_a_damaged_header_never_hides_the_document(sent: Annotations, data: st.DataObject) -> None:
    header = bytearray(encode(sent).header)
    body, _ = split(bytes(header))
    for _ in range(data.draw(st.integers(1, 3))):
        if body:
            header[-data.draw(st.integers(1, len(body)))] = data.draw(st.integers(0, 255))
    message = decode(bytes(header) + b"<a/>")
    assert message.document == b"<a/>"
    assert message.refused is None or message.annotations == NOTHING


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"\x80", "flags"),
        (b"\x48\x01\x03\x01\x03\x01", "match bits, but"),
        (b"\x48\x01\x03\x01\x01\x01", "match bits, but"),
        (b"\x48\x01\x03\x01\x02\x05", "bits follow the end"),
        (b"\x48\x01\x03\x01\x02\x03", "although all aggregates match"),
        (b"\x08\x01\xff\xff\xff\xff\x0f", "truncated"),
        (b"\x08\x01\x01\x03", "bits follow the end"),
        (b"\x02\x01\xff\xff\xff\xff\x0f", "truncated"),
        (b"\x02\x01\x01\x03\x00\x01\x00", "truncated"),
        (b"\x02\x01\x01\x03\x00\x00\x05", "extra bytes"),
        (b"\x02\x01\x00", "is empty"),
        (b"\x02\x01\x01\x06\x00\x01\x00\x01\x01\xff", "not UTF-8"),
        (b"\x04\x01\x00", "is empty"),
        (b"\x04\x01\x02\x01\x01\x00\x01", "occurs twice"),
        (b"\x04\x81\x00", "more bytes than necessary"),
        (b"\x04\xff\xff\xff\xff\xff\x01", "more than 5 bytes"),
        (b"\x08\x01\x00\x00", "extra bytes"),
    ],
)
def test_hostile_headers_are_refused(header: bytes, reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        decode_header(header)


def test_a_header_that_is_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(MessageError, match="at most"):
        split(encode(Annotations(1, structure=bytes(MOST_HEADER))).header)


@pytest.mark.parametrize("start", [b"\x02\x01", b"\x04\x01"])
def test_a_header_lists_no_more_than_can_be_of_use(start: bytes) -> None:
    with pytest.raises(MessageError, match="lists 65,536 items"):
        decode_header(start + b"\x80\x80\x04" + b"\x01" * (1 << 17))


def test_long_bindings_list_no_more_than_can_be_of_use_together() -> None:
    many = tuple(Bound(number, ((0, ("a",) * 3000),)) for number in range(12))
    with pytest.raises(MessageError, match="lists"):
        decode_header(split(encode(Annotations(1, many)).header)[0])


def test_only_short_bindings_are_remembered() -> None:
    wire._written.cache_clear()
    for number in range(3):
        long = Bound(number, ((0, ("a" * SHORT,)),))
        assert decode(encode(Annotations(1, (long,))).header).annotations.bindings == (long,)
    encode(Annotations(1, (Bound(0, ((0, ("a",)),)),)))
    assert wire._written.cache_info().currsize == 1
