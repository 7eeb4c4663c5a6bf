"""Messages of a document with the name of its mapping, or with the mapping itself (§2.2.2).

Either routers store all mappings, and a document names the one that it needs (a *reference*: some 50 bytes), or they
store none, and the message includes the mapping (some hundred bytes to a few thousand). Both are versioned, and a
reference carries a fingerprint of the mapping: a router with another mapping under that version rejects the document
instead of matching it wrongly.

    magic · checksum · form · flags · name · version · fingerprint · (length · mapping, compressed)? · document

Invariant: `unpack(pack(…))` returns name, version, mapping and the document's bytes, exactly. Untrusted bytes that are
not such a message raise `MessageError`, in bounded time and memory.
Cost: a checksum over the bytes; a mapping that an earlier message included is cached.
"""

import zlib
from dataclasses import dataclass
from threading import Lock

from pathcast.errors import LimitError, MappingError, MessageError

from .schema_mapping import Mapping

_MAGIC = b"PCmd"
_FORM = 1
_FINGERPRINT = 16
_CHECKSUM = 4
_WITH_MAPPING = 1
# The largest included mapping, in bytes after decompression.
LIMIT = 1 << 22
# The number of cached mappings; mappings of unusual length are not cached.
_KEPT_LENGTH, _KEPT = 1 << 16, 256
_known: dict[bytes, Mapping] = {}
_keeping = Lock()


@dataclass(frozen=True, slots=True)
class Envelope:
    """A document, and the mapping that it needs: name, version and fingerprint, and the mapping itself if included."""

    name: str
    version: int
    fingerprint: bytes
    mapping: Mapping | None
    document: bytes

    def check(self, held: Mapping) -> None:
        """`MappingError` unless a stored mapping is the one that the document needs."""
        if held.fingerprint != self.fingerprint:
            raise MappingError(
                f"the registered mapping of schema '{self.name}', version {self.version}, differs from the sender's; "
                "register the sender's mapping"
            )


def pack(document: bytes, mapping: Mapping, *, with_mapping: bool) -> bytes:
    """A document as a message, with its mapping or with a reference to it."""
    name = mapping.name.encode()
    head = bytes([_FORM, _WITH_MAPPING * with_mapping])
    parts = [head, _number(len(name)), name, _number(mapping.version), mapping.fingerprint]
    if with_mapping:
        packed = zlib.compress(mapping.write().encode(), 9)
        parts += [_number(len(packed)), packed]
    body = b"".join([*parts, document])
    return _MAGIC + _checksum(body) + body


def is_packed(data: bytes) -> bool:
    """Whether bytes are a document with a mapping, or with a reference to one; no XML document begins like that."""
    return data.startswith(_MAGIC)


def original(data: bytes) -> bytes:
    """The document as it was sent, with or without a mapping."""
    return unpack(data).document if is_packed(data) else data


def unpack(data: bytes) -> Envelope:
    """The parts of a message; `MessageError` for other bytes."""
    reading = _Reading(data)
    if (magic := reading.take(len(_MAGIC))) != _MAGIC:
        raise MessageError(
            f"the message is not a mapped document: the bytes begin with {bytes(magic)!r}, expected "
            f"{_MAGIC!r}; give the bytes that Mediator.pack returned"
        )
    if reading.take(_CHECKSUM) != _checksum(memoryview(data)[reading.at :]):
        raise MessageError(
            "the mapped document in the message is damaged: checksum mismatch; request the message again"
        )
    form, flags = reading.take(2)
    if form != _FORM or flags not in (0, _WITH_MAPPING):
        raise MessageError(
            f"the mapped document in the message has format {form} and flags {flags}, but this version of "
            f"Pathcast reads format {_FORM} with flags 0 or {_WITH_MAPPING}; update Pathcast"
        )
    try:
        name = reading.take(reading.number()).decode()
    except UnicodeDecodeError:
        raise MessageError(
            "the mapped document in the message is damaged: the schema name is not valid UTF-8; request the "
            "message again"
        ) from None
    version, fingerprint = reading.number(), reading.take(_FINGERPRINT)
    mapping = _mapping(reading.take(reading.number())) if flags else None
    if mapping is not None and (
        (mapping.name, mapping.version) != (name, version) or mapping.fingerprint != fingerprint
    ):
        raise MessageError(
            f"the mapped document in the message is damaged: its header names schema '{name}', version "
            f"{version}, but its mapping is a different one; request the message again"
        )
    return Envelope(name, version, fingerprint, mapping, data[reading.at :])


def _mapping(packed: bytes) -> Mapping:
    """The mapping of a message, from the cache if an earlier message included it."""
    found = _known.get(packed)
    if found is not None:
        return found
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(packed, LIMIT)
        if unpacking.unconsumed_tail:
            raise MessageError(
                f"the mapping in the message has more than {LIMIT:,} bytes; register it at the routers, "
                "and publish with with_mapping=False"
            )
        if not unpacking.eof:
            raise MessageError("the message is damaged: its mapping is truncated; request the message again")
        found = Mapping.read(text.decode())
    except (zlib.error, UnicodeDecodeError, RecursionError) as error:
        raise MessageError(
            f"the message is damaged: cannot read its mapping: {error}; request the message again"
        ) from None
    except (MappingError, LimitError) as error:
        raise MessageError(f"cannot use the mapping in the message: {error.reason}") from None
    if len(text) <= _KEPT_LENGTH:
        with _keeping:
            while len(_known) >= _KEPT:
                del _known[next(iter(_known))]
            _known[packed] = found
    return found


def _checksum(body: bytes | memoryview) -> bytes:
    return zlib.crc32(body).to_bytes(_CHECKSUM, "big")


class _Reading:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, length: int) -> bytes:
        if length > len(self.data) - self.at:
            raise MessageError(
                f"the mapped document in the message is truncated: expected at least {self.at + length:,} bytes, "
                f"got {len(self.data):,}; request the message again"
            )
        self.at += length
        return self.data[self.at - length : self.at]

    def number(self) -> int:
        """Seven bits per byte, the lowest first; at most five bytes."""
        value = 0
        for shift in range(0, 35, 7):
            (byte,) = self.take(1)
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise MessageError(
            "the mapped document in the message is damaged: a number has more than 5 bytes; request the message again"
        )


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
