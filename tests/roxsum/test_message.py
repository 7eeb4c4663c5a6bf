"""The message: decoding an encoded batch restores it, and other bytes are rejected."""

import struct
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from pathcast import Limits, MessageError
from pathcast.roxsum import MessageLimits, RoXSum
from pathcast.roxsum.message import message_format as wire
from pathcast.roxsum.message import segment_format as inner
from pathcast.roxsum.message.batch_encoder import stream_widths
from pathcast.roxsum.message.messages_by_target import encode_by_target
from pathcast.workloads import DocumentOptions, generate_documents, news_schema
from tests.documents.declared import NAMES
from tests.hostile.measured import measured
from tests.roxsum.drawn import ODD, collections, document_of, often

news = pytest.fixture(scope="module")(
    lambda: list(generate_documents(news_schema(), 60, DocumentOptions(max_levels=4), seed=1))
)


def same(one: RoXSum, other: RoXSum) -> bool:
    return (
        one.ids.tolist() == other.ids.tolist()
        and one.documents() == other.documents()
        and one.summary() == other.summary()
        and one.next_id == other.next_id
    )


@pytest.mark.slow
@often
@given(collections, st.booleans(), st.data())
def test_decoding_what_was_encoded_is_the_same_batch(
    documents: list[bytes | str], trusted: bool, data: st.DataObject
) -> None:
    batch = RoXSum.build(documents)
    ids = data.draw(st.sets(st.sampled_from(range(len(documents))))) if documents else set()
    for each in (batch, batch.restrict(ids)):
        assert same(RoXSum.decode(each.encode(), trusted=trusted), each)


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("level", [1, 19])
def test_a_decoded_batch_goes_on_like_any_other(news: list[bytes], trusted: bool, level: int) -> None:
    batch = RoXSum.build(news)
    again = RoXSum.decode(batch.encode(level=level), trusted=trusted)
    for each in (batch, again):
        assert each.add(ODD[0]) == 60
        each.remove(3)
    assert same(again, batch)
    assert same(RoXSum.decode(again.encode()), batch)
    again.extend(batch.restrict([60]))
    assert again.document(61) == ODD[0]


def test_values_of_every_kind_of_column_come_back() -> None:
    random = Random(1)
    rows = "".join(
        f"<r k='{random.choice('ab')}' n='{random.randrange(10**6)}' d='{random.randrange(10**6):06}' c='same'>"
        f"{random.randrange(600)}</r>"
        for _ in range(3000)
    )
    document = f"<t>{rows}</t>".encode()
    for trusted in (False, True):
        assert RoXSum.decode(RoXSum.build([document]).encode(), trusted=trusted).documents() == [document]


@pytest.mark.slow
@pytest.mark.parametrize("followers", [2, 256, 257, 65_536, 65_537])
def test_ranks_of_one_two_and_four_bytes_come_back(followers: int) -> None:
    """A token with this many different successors, which differ in white space."""
    blank = {48: 32, 49: 10}
    documents = [f"<a>{f'{number:017b}'.translate(blank)}<b/></a>".encode() for number in range(followers)]
    batch = RoXSum.build(documents)
    assert max(stream_widths(np.array([followers]))) == (1 if followers <= 256 else 2 if followers <= 65_536 else 4)
    for trusted in (False, True):
        assert RoXSum.decode(batch.encode(level=1), trusted=trusted).documents() == documents


def test_many_documents_of_a_kind_are_smaller_than_packed_together() -> None:
    import zstandard

    random = Random(3)
    documents = [
        f"<order id='{number}'><customer><name>{random.choice('abcdef')}</name></customer>"
        + "".join(f"<item sku='{random.randrange(50)}'><price>{random.randrange(99)}</price></item>" for _ in range(4))
        + "</order>"
        for number in range(1000)
    ]
    whole = "".join(documents).encode()
    for level in (3, 19):
        message = RoXSum.build(documents).encode(level=level)
        assert len(message) < len(zstandard.ZstdCompressor(level=level).compress(whole))
        assert 10 * len(message) < len(whole)


def test_a_message_does_not_depend_on_what_else_the_batch_has_seen() -> None:
    documents = [document_of(seed) for seed in range(20)]
    alone = RoXSum.build(documents[:3])
    part = RoXSum.build(documents).restrict([0, 1, 2])
    assert len(part.encode()) <= len(alone.encode()) + 8


# Rejected messages.


def refused(data: bytes, **settings: Any) -> str:
    with pytest.raises(MessageError) as caught:
        RoXSum.decode(data, **settings)
    return caught.value.reason


def refused_segment(data: bytes, change: Callable[[bytes], bytes]) -> str:
    return refused(with_segment(data, 0, change))


def parts_of(data: bytes) -> tuple[int, list[bytes]]:
    """The next id and the segments of a message."""
    next_id, segments = wire.unpack(memoryview(data), MessageLimits())
    return next_id, [bytes(segment) for _, segment in segments]


def packed(next_id: int, segments: list[bytes]) -> bytes:
    """A message of these segments, with valid sizes and checksums."""
    return wire.pack(next_id, [wire.Segment.of(segment) for segment in segments])


def with_segment(data: bytes, number: int, change: Callable[[bytes], bytes]) -> bytes:
    """A message with one of its segments changed, and valid checksums."""
    next_id, segments = parts_of(data)
    segments[number] = change(segments[number])
    return packed(next_id, segments)


def with_counts(data: bytes, **changes: int) -> bytes:
    """A message whose first segment has other counts, with valid checksums."""

    def change(segment: bytes) -> bytes:
        counts = dict(zip(inner.Counts.__slots__, _counts(segment), strict=True)) | changes
        return struct.pack(f"<{len(counts)}Q", *counts.values()) + segment[inner.COUNTS_SIZE :]

    return with_segment(data, 0, change)


def _counts(segment: bytes) -> tuple[int, ...]:
    return struct.unpack_from(f"<{len(inner.Counts.__slots__)}Q", segment)


def repacked(data: bytes, change: Callable[[bytearray], object]) -> bytes:
    """A message whose first segment's blocks were changed before compression, with valid sizes and checksums."""

    def changed(segment: bytes) -> bytes:
        counts = inner.counts_of(memoryview(segment))
        blocks = bytearray(inner.unpacked_blocks(counts, memoryview(segment)))
        length = len(blocks)
        change(blocks)
        frame = zstandard.ZstdCompressor(level=1).compress(bytes(blocks[: counts.block_bytes]))
        return inner.pack_segment(replace(counts, frames=1), [(length, frame)])

    return with_segment(data, 0, changed)


def test_errors_say_what_is_wrong() -> None:
    data = RoXSum.build(["<a>x</a>"]).encode()
    assert "truncated" in refused(data[:20])
    assert "bytes, but" in refused(data[:-1])
    assert "checksum" in refused(data[:-1] + bytes([data[-1] ^ 1]))
    assert "checksum" in refused(data[:9] + bytes([data[9] ^ 1]) + data[10:])
    assert "not a RoXSum message" in refused(b"<xml/>" * 100)
    for version in (1, 3):
        other = data[:4] + struct.pack("<H", version) + data[6:]
        assert f"version {version} and flags 0, but this version of Pathcast reads version 2" in refused(other)
        assert "encode stored messages again" in refused(other[:40])
    assert "at most 1 are allowed (raise the limit with MessageLimits(bytes=…))" in refused(
        data, limits=MessageLimits(bytes=1)
    )
    assert "is possible" in refused(with_counts(data, tokens=10**6))
    two = RoXSum.build(["<a/>", "<b/>"]).encode()
    next_id, (segment,) = parts_of(two)
    assert "the id 0" in refused(packed(next_id, [segment, segment]))
    assert "the id 0" in refused(packed(next_id, [segment, segment]), trusted=True)
    assert "ascending" in refused(packed(1, [segment]))
    assert "no documents" in refused(packed(0, [bytes(inner.COUNTS_SIZE)]))
    assert "its counts alone" in refused_segment(data, lambda segment: segment[:20])
    assert "MessageLimits(documents=…)" in refused(two, limits=MessageLimits(documents=1))


def test_a_document_beyond_the_receivers_limits_is_refused_with_its_message() -> None:
    data = RoXSum.build(["<a><b><c/></b></a>"]).encode()
    assert "cannot read document" in refused(data, document_limits=Limits(depth=2))


def test_a_message_can_not_claim_a_summary_that_its_documents_do_not_have() -> None:
    """The bytes of a token contradict the sender's tables: a receiver uses the bytes."""
    batch = RoXSum.build(["<a><b/></a>"])
    honest = batch.encode()
    forged = repacked(honest, lambda blocks: blocks.__setitem__(slice(None), blocks.replace(b"<b/>", b"<c/>")))
    assert RoXSum.decode(forged).summary() == {("a",): [], ("a", "c"): [0]}
    broken = repacked(honest, lambda blocks: blocks.__setitem__(slice(None), blocks.replace(b"<b/>", b"<b >")))
    assert "cannot read document" in refused(broken)


@pytest.mark.slow
def test_a_message_with_documents_in_any_encoding_is_read_or_refused() -> None:
    """The sender's document declares one encoding, the forged message another one in its place."""
    room = max(map(len, NAMES)) + 2
    honest = b"iso-8859-1'".ljust(room)
    batch = RoXSum.build([b"<?xml version='1.0' encoding='" + honest + b"?><!DOCTYPE a><a xmlns='u'>\xe9</a>"])
    data = batch.encode()
    outcomes = set()
    for name in NAMES:
        other = f"{name}'".encode().ljust(room)

        def change(blocks: bytearray, other: bytes = other) -> None:
            blocks[:] = blocks.replace(honest, other)

        try:
            outcomes.add(RoXSum.decode(repacked(data, change)).summary().keys() == batch.summary().keys())
        except MessageError as error:
            outcomes.add("cannot read document" in error.reason)
    assert outcomes == {True}


def rounds(request: pytest.FixtureRequest, few: int) -> int:
    return few * 50 if request.config.getoption("--long") else few


def fuzzed(data: bytes, *, trusted: bool) -> None:
    """A changed message is rejected, or (where the change does not matter) yields a consistent batch."""
    try:
        batch = RoXSum.decode(data, limits=MessageLimits(bytes=1 << 22), trusted=trusted)
    except MessageError:
        return
    assert len(batch.documents()) == len(batch)
    batch.summary()
    if not trusted:
        again = RoXSum.build(batch.contents.readable(batch.skeletons, batch.rows))
        places = {number: place for place, number in enumerate(batch)}
        assert again.summary() == {path: [places[n] for n in ids] for path, ids in batch.summary().items()}


@pytest.fixture(scope="module")
def messages() -> list[tuple[RoXSum, bytes]]:
    made = [RoXSum.build(ODD), RoXSum.build([document_of(seed) for seed in range(8)])]
    made.append(RoXSum.build([f"<a n='{k % 3}'><b>{k}</b></a>" for k in range(40)]))
    found = [(batch, batch.encode(level=1)) for batch in made]
    # A message of two segments: the documents in both targets, and the others of the first.
    ids = {"east": BitMap(range(40)), "west": BitMap(range(0, 40, 2))}
    message = encode_by_target(made[-1], ids, level=1, saved=1)["east"]
    assert len(parts_of(message)[1]) == 2
    return [*found, (made[-1], message)]


def test_a_truncated_message_is_refused(messages: list[tuple[RoXSum, bytes]]) -> None:
    for data in [RoXSum().encode(), *(data for _, data in messages)]:
        for length in range(0, len(data), 3):
            refused(data[:length])
        refused(data + b"\0")


def test_a_message_with_flipped_bits_is_refused(
    messages: list[tuple[RoXSum, bytes]], request: pytest.FixtureRequest
) -> None:
    random = Random(0)
    for _ in range(rounds(request, 2000)):
        _, data = random.choice(messages)
        changed = bytearray(data)
        changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
        refused(bytes(changed))


@pytest.mark.slow
@pytest.mark.parametrize("trusted", [False, True])
def test_a_forged_message_is_refused_or_holds_together(
    messages: list[tuple[RoXSum, bytes]], trusted: bool, request: pytest.FixtureRequest
) -> None:
    """Everything but the checksum may be wrong: the blocks, the sizes, the counts."""
    random = Random(1)
    for _ in range(rounds(request, 1200)):
        _, data = random.choice(messages)
        kind = random.randrange(3)
        if kind == 0:

            def change(blocks: bytearray) -> None:
                for _ in range(random.choice((1, 1, 2, 8))):
                    if blocks:
                        at = random.randrange(len(blocks))
                        blocks[at] = random.choice((0, 1, 2, 255, random.randrange(256), blocks[at] ^ 1))

            data = repacked(data, change)
        elif kind == 1:
            name = random.choice(list(inner.Counts.__slots__))
            old = _counts(parts_of(data)[1][0])[list(inner.Counts.__slots__).index(name)]
            new = random.choice((0, 1, max(0, old - 1), old + 1, 2 * old, 1 << 31, 1 << 40, (1 << 64) - 1))
            data = with_counts(data, **{name: new})
        else:
            next_id, segments = parts_of(data)
            changed = bytearray(segments[-1])
            at = random.randrange(len(changed))
            changed[at : at + random.choice((0, 1, 4))] = random.randbytes(random.choice((1, 4)))
            segments[-1] = bytes(changed)
            data = packed(random.choice((next_id, 1 << 33, 0)), random.choice((segments, segments[::-1], segments * 2)))
        fuzzed(data, trusted=trusted)


@pytest.mark.slow
def test_a_hostile_message_is_refused_in_little_memory() -> None:
    """A short message with large content, and one with large counts, against limits of 16 MB."""
    found = measured(
        """
import zstandard
from pathcast import MessageError
from pathcast.roxsum import MessageLimits, RoXSum
from pathcast.roxsum.message import message_format as wire
from pathcast.roxsum.message import segment_format as inner

limits = MessageLimits(bytes=16 << 20)
base = dict.fromkeys(inner.Counts.__slots__, 0)
size = 16 << 20
bomb = zstandard.ZstdCompressor(level=3).compress(bytes(2 * size))
honest = {**base, "documents": 1000, "size": size, "token_total": size // 2, "tokens": 1000, "values": size // 2,
          "tables": 2 * size, "frames": 1}
small = {**honest, "documents": 1, "size": 1000, "token_total": 500, "tokens": 10, "values": 500}
for counts, frames, copies in (
    (honest, [(2 * size, bomb)], 1), ({**honest, "tables": 1 << 40}, [(1 << 31, bomb)], 1),
    ({**base, "documents": 1 << 40}, [], 1), ({**honest, "frames": 1 << 33}, [], 1), (small, [(2 * size, bomb)], 500),
):
    try:
        segment = wire.Segment.of(inner.pack_segment(inner.Counts(**counts), frames))
        RoXSum.decode(wire.pack(1 << 20, [segment] * copies), limits=limits)
    except MessageError as error:
        print(error.reason[:60])
repeated = RoXSum.build([b"<a>" + b"<b/>" * 3_000_000 + b"</a>"]).encode()
print(len(repeated) < 1000)
try:
    RoXSum.decode(repeated, limits=MessageLimits(bytes=1 << 20))
except MessageError as error:
    print(error.reason[:60])
"""
    )
    assert len(found.printed) == 7 and found.printed[5] == "True"
    assert "the segments state 16,777,216,000" in found.printed[4]
    assert found.megabytes < 600, found


def test_documents_with_entities_travel_raw_and_need_a_receiver_that_expands_them() -> None:
    document = b'<!DOCTYPE a [<!ENTITY e "<b>x</b>">]><a>&e;<c/></a>'
    batch = RoXSum.build([document, b"<a/>"], entities="expand")
    assert batch.summary() == {("a",): [1], ("a", "b"): [0], ("a", "c"): [0]}
    data = batch.encode()
    for trusted in (False, True):
        again = RoXSum.decode(data, entities="expand", trusted=trusted)
        assert same(again, batch)
        assert {t: list(d) for t, d in again.route({"t": ["/a[b = 'x']"]}).items()} == {"t": [0]}
        assert "cannot read document" in refused(data, trusted=trusted)


@pytest.mark.parametrize("trusted", [False, True])
def test_documents_alone_are_those_of_the_batch(trusted: bool) -> None:
    documents: list[bytes | str] = [
        b"<a><b>1</b></a>",
        "<?xml version='1.0' encoding='UTF-16'?><c>é</c>",
        b"<a><b>2</b></a>\n",
    ]
    message = RoXSum.build(documents).encode()
    expected = RoXSum.decode(message, trusted=trusted).documents()
    assert RoXSum.decode_documents(message, trusted=trusted) == expected
    with pytest.raises(MessageError):
        RoXSum.decode_documents(message[:-1], trusted=trusted)


def test_a_part_can_be_numbered_anew_with_documents_in_any_order_and_several_times() -> None:
    batch = RoXSum.build(["<a><b>1</b></a>", "<c/>", "<a><b>2</b></a>"])
    part = batch.renumbered([2, 0, 2])
    assert part.ids.tolist() == [0, 1, 2]
    assert RoXSum.decode(part.encode()).documents() == [b"<a><b>2</b></a>", b"<a><b>1</b></a>", b"<a><b>2</b></a>"]
    assert len(part.nodes) < len(batch.nodes)
    with pytest.raises(KeyError, match="unknown document id 3"):
        batch.renumbered([0, 3])
