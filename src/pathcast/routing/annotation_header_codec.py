"""Messages between routers: a header with annotations, then the document as it was published.

    length of the header │ flags │ version │ NS bits │ PS bits │ ND bits │ PD │ PS │ structure │ document's bytes

Numbers are written seven bits per byte, low bits first, the last byte below 128. NS and ND are bit strings, with a bit
per aggregate or data pattern of the advertisement (§4.3, §4.4). PS without bindings is a bit string, too, with a bit
per aggregate that NS does not rule out; it is empty if all of those match. A binding of PS is written with its length
and its labels in full: similar documents repeat the same bindings, so encoded and decoded bindings are cached. A
message without annotations costs one byte.

Invariant: `decode` returns the encoded annotations or raises `MessageError`; it rejects headers beyond `MOST_HEADER`
bytes and more than `MOST_LISTED` bindings, labels and last places together, so the memory of a header is at most 10
times its bytes and a few megabytes more.
"""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from pathcast.errors import MessageError
from pathcast.kernels import UInt8s

from .annotation_wire_kernels import (
    CUT,
    FINE,
    LONG,
    LONGEST_NUMBER,
    PADDED,
    TWICE,
    pack_beside,
    read_last_places,
    unpack_beside,
    write_last_places,
)
from .annotations.document_annotations import NOTHING, SHORT, Annotations, Bound, LastPlaces, Mask, is_short

MOST_HEADER = 16 << 20
MOST_STRUCTURE = MOST_HEADER - (1 << 20)  # leaves space for the other annotations
MOST_LISTED = 1 << 15
MOST_REMEMBERED = 1 << 13  # bindings
# The flags of a header.
TEXT, PS, PD, NS, ND, STRUCTURE, HOLDING = (1 << bit for bit in range(7))
_KNOWN = (1 << 7) - 1
_ALL = b"\x00"
_AGAIN = "request the message again"
_WHY = {
    CUT: f"the message header is truncated; {_AGAIN}",
    LONG: f"the message header is damaged: a number has more than {LONGEST_NUMBER} bytes; {_AGAIN}",
    PADDED: f"the message header is damaged: a number has more bytes than necessary; {_AGAIN}",
    TWICE: f"the message header is damaged: a data pattern occurs twice; {_AGAIN}",
}


@dataclass(frozen=True, slots=True)
class Encoded:
    """The header of a message, and the bytes of each kind of annotation in it."""

    header: bytes
    sizes: dict[str, int] = field(default_factory=dict)


def encode(annotations: Annotations, *, text: bool = False) -> Encoded:
    """The header for a document; `text`: the document is UTF-8, whatever encoding it declares."""
    if not annotations:
        return Encoded(b"\x01\x01" if text else b"\x00")
    flags = TEXT if text else 0
    sections = bytearray()
    sizes: dict[str, int] = {}
    for kind, flag, section in (
        ("-s", NS, _bits(annotations.failed)),
        ("+s", HOLDING, _bits_beside(annotations.holding, annotations.failed)),
        ("-d", ND, _bits(annotations.absent)),
        ("+d", PD, _last_places(annotations.last_places)),
        ("+s", PS, bindings_section(annotations.bindings)),
        ("+t", STRUCTURE, _block(annotations.structure)),
    ):
        if section:
            flags |= flag
            sections += section
            sizes[kind] = sizes.get(kind, 0) + len(section)
    body = bytes([flags]) + _number(annotations.version) + sections
    header = _number(len(body)) + body
    sizes["header"] = len(header) - len(sections)
    return Encoded(header, sizes)


def _number(value: int) -> bytes:
    if value < 128:
        return bytes([value])
    written = bytearray()
    while value >= 128:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def _bits(mask: Mask | None) -> bytes:
    return b"" if mask is None else _number(len(mask)) + np.packbits(mask, bitorder="little").tobytes()


def _bits_beside(holding: Mask | None, failed: Mask | None) -> bytes:
    """A bit for each aggregate that does not fail: whether it is known to match; empty if all of them are."""
    if holding is None or failed is None:
        return _bits(holding)
    if np.count_nonzero(holding) + np.count_nonzero(failed) == len(failed):
        return _ALL
    out = np.zeros(len(failed) + 7 >> 3, dtype=np.uint8)
    count = pack_beside(holding, failed, out)
    return _number(count) + out[: count + 7 >> 3].tobytes()


def _block(data: bytes | None) -> bytes:
    return b"" if data is None else _number(len(data)) + data


def _last_places(last: LastPlaces | None) -> bytes:
    """The section of last places; empty if there are none."""
    if last is None:
        return b""
    out = np.empty(2 * LONGEST_NUMBER * len(last.patterns), dtype=np.uint8)
    return _number(len(last.patterns)) + out[: write_last_places(last.patterns, last.places, out)].tobytes()


def bindings_section(bindings: tuple[Bound, ...]) -> bytes:
    """The section of bindings; empty if there are none."""
    return b"".join([_number(len(bindings)), *map(written, bindings)]) if bindings else b""


def written(bound: Bound) -> bytes:
    """A binding as bytes, with its length; short bindings are cached."""
    return (_written if is_short(bound.wildcards) else _written.__wrapped__)(bound)


@lru_cache(MOST_REMEMBERED)
def _written(bound: Bound) -> bytes:
    inside = bytearray(_number(bound.aggregate) + _number(len(bound.wildcards)))
    for place, labels in bound.wildcards:
        inside += _number(place) + _number(len(labels))
        for label in labels:
            inside += _block(label.encode())
    return _block(bytes(inside))


@dataclass(frozen=True, slots=True)
class Message:
    """A decoded message: annotations, the document, whether it is text, bytes by kind of annotation.

    `refused`: the reason if the annotations could not be read; the document itself is available.
    """

    annotations: Annotations
    document: bytes
    text: bool
    sizes: dict[str, int]
    refused: str | None = None


def decode(data: bytes) -> Message:
    """Decode a message; `MessageError` if the start of its document is unclear."""
    header, document = split(data)
    if not header:
        return Message(NOTHING, document, text=False, sizes={})
    sizes: dict[str, int] = {}
    text = bool(header[0] & TEXT)
    try:
        annotations = decode_header(header, sizes)
    except MessageError as error:
        return Message(
            NOTHING,
            document,
            text,
            {"header": len(data) - len(document)},
            refused=f"{error.reason}; its annotations are ignored",
        )
    sizes["header"] = len(data) - len(document) - sum(sizes.values())
    return Message(annotations, document, text, sizes)


def decode_header(header: bytes, sizes: dict[str, int] | None = None) -> Annotations:
    """The annotations of a header (without its length); `MessageError` if it is malformed."""
    reader = _HeaderReader(header)
    flags = reader.byte()
    if flags & ~_KNOWN or flags == 0:
        raise MessageError(
            f"unknown flags {flags:#x} in the message header; update Pathcast, or request the message again"
        )
    annotations = _annotations(reader, flags, {} if sizes is None else sizes) if flags & ~TEXT else NOTHING
    reader.close()
    return annotations


def split(data: bytes) -> tuple[bytes, bytes]:
    """The header, without its length, and the document; `MessageError` if the length is not that of a header."""
    reader = _HeaderReader(data)
    length = reader.number()
    if length > MOST_HEADER:
        raise MessageError(
            f"the message is damaged: its header has {length:,} bytes; at most {MOST_HEADER:,} are allowed; "
            "request the message again"
        )
    if length > len(data) - reader.at:
        raise MessageError(
            f"the message is truncated: its header has {length:,} bytes, but only {len(data) - reader.at:,} follow; "
            "request the message again"
        )
    return data[reader.at : reader.at + length], data[reader.at + length :]


def _annotations(reader: "_HeaderReader", flags: int, sizes: dict[str, int]) -> Annotations:
    version = reader.number()
    failed = holding = absent = structure = None
    last_places: LastPlaces | None = None
    bindings: tuple[Bound, ...] = ()
    at = reader.at
    if flags & NS:
        failed = reader.bits()
        sizes["-s"], at = reader.at - at, reader.at
    if flags & HOLDING:
        holding = reader.bits() if failed is None else reader.bits_beside(failed)
        sizes["+s"], at = reader.at - at, reader.at
    if flags & ND:
        absent = reader.bits()
        sizes["-d"], at = reader.at - at, reader.at
    if flags & PD:
        last_places = reader.last_places()
        sizes["+d"], at = reader.at - at, reader.at
    if flags & PS:
        bindings = reader.bindings()
        sizes["+s"], at = sizes.get("+s", 0) + reader.at - at, reader.at
    if flags & STRUCTURE:
        structure = reader.take(reader.number())
        sizes["+t"] = reader.at - at
    return Annotations(version, bindings, last_places, failed, absent, structure, holding)


class _HeaderReader:
    """Reads a header and checks all of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.listed = 0

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise MessageError(_WHY[CUT])
        self.at += size
        return self.data[self.at - size : self.at]

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self) -> int:
        at = self.at
        if at < len(self.data) and self.data[at] < 128:  # most are
            self.at = at + 1
            return self.data[at]
        value = 0
        for place in range(LONGEST_NUMBER):
            byte = self.byte()
            value |= (byte & 127) << 7 * place
            if byte < 128:
                if place and not byte:
                    raise MessageError(_WHY[PADDED])
                return value
        raise MessageError(_WHY[LONG])

    def count(self) -> int:
        """The number of items that follow; each takes at least a byte."""
        count = self.number()
        if count > len(self.data) - self.at:
            raise MessageError(_WHY[CUT])
        self._list(count)
        return count

    def _list(self, count: int) -> None:
        self.listed += count
        if self.listed > MOST_LISTED:
            raise MessageError(
                f"the message header lists {self.listed:,} items; at most {MOST_LISTED:,} are allowed; forward "
                "the document with fewer annotations"
            )

    def bits(self) -> Mask:
        count, packed = self._packed()
        return np.unpackbits(packed, count=count, bitorder="little").view(np.bool_)

    def _packed(self) -> tuple[int, UInt8s]:
        count = self.number()
        packed = np.frombuffer(self.take(count + 7 >> 3), dtype=np.uint8)
        if count & 7 and packed[-1] >> (count & 7):
            raise MessageError(f"the message header is damaged: bits follow the end of a bit string; {_AGAIN}")
        return count, packed

    def bits_beside(self, failed: Mask) -> Mask:
        """As `bits`, for each aggregate that does not fail; if there are no bits, all of them hold."""
        count, packed = self._packed()
        if not count:
            return ~failed
        holding = np.empty(len(failed), dtype=np.bool_)
        if unpack_beside(packed, count, failed, holding) != count:
            raise MessageError(
                f"the message header is damaged: {count:,} match bits, but "
                f"{np.count_nonzero(~failed):,} aggregates can match; {_AGAIN}"
            )
        if np.count_nonzero(holding) == count:
            raise MessageError(
                f"the message header is damaged: it contains match bits although all aggregates match; {_AGAIN}"
            )
        return holding

    def last_places(self) -> LastPlaces:
        patterns, places = np.empty((2, self._some()), dtype=np.int64)
        state = np.array([self.at, FINE], dtype=np.int64)
        read_last_places(np.frombuffer(self.data, dtype=np.uint8), patterns, places, state)
        self.at, why = state.tolist()
        if why != FINE:
            raise MessageError(_WHY[why])
        return LastPlaces(patterns, places)

    def bindings(self) -> tuple[Bound, ...]:
        return tuple([self._bound(self.take(self.number())) for _ in range(self._some())])

    def _bound(self, written: bytes) -> Bound:
        """A binding; short bindings are cached."""
        bound, listed = (_read if len(written) <= SHORT else _read.__wrapped__)(written)
        self._list(listed)
        return bound

    def _some(self) -> int:
        count = self.count()
        if not count:
            raise MessageError(f"the message header is damaged: a list of annotations is empty; {_AGAIN}")
        return count

    def label(self) -> str:
        try:
            return self.take(self.number()).decode()
        except UnicodeDecodeError:
            raise MessageError(f"the message header is damaged: a label is not UTF-8; {_AGAIN}") from None

    def close(self) -> None:
        if self.at != len(self.data):
            raise MessageError(
                f"the message header is damaged: {len(self.data) - self.at:,} extra bytes after its last annotation; "
                f"{_AGAIN}"
            )


@lru_cache(MOST_REMEMBERED)
def _read(written: bytes) -> tuple[Bound, int]:
    """A binding from its bytes, and the number of items that it lists."""
    reader = _HeaderReader(written)
    aggregate, wildcards = reader.number(), []
    for _ in range(reader.count()):
        place = reader.number()
        wildcards.append((place, tuple([reader.label() for _ in range(reader.count())])))
    reader.close()
    return Bound(aggregate, tuple(wildcards)), reader.listed
