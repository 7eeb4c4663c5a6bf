"""A structure annotation as bytes: its header, and the signal of a receiver that rejects one.

    form │ epoch │ paths before, paths defined │ digest │ needs │ document's length │ elements, attributes, texts │
    bytes of definitions │ checksum │ definitions │ elements │ attributes │ texts

Numbers of the header have fixed width, so that it is read in one step: 49 bytes. The checksum covers everything else.
"""

import struct
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

FORM = 1
_FIELDS = struct.Struct("<BIIIQIIIIII")
_CHECKSUM = struct.Struct("<I")
HEADER = _FIELDS.size + _CHECKSUM.size
_SIGNAL = struct.Struct("<BII")


class Header(NamedTuple):
    """The header of a message.

    The message defines `defined` paths from `first` on; the definitions begin at `definitions`, the elements at `body`.
    """

    epoch: int
    first: int
    defined: int
    digest: int
    needs: int
    length: int
    elements: int
    attributes: int
    texts: int
    definitions: int
    body: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A rejected annotation: the reason, and the epoch and number of label paths that the receiver has.

    `resend`: the sender can recover by sending definitions again (`encode` returns the signal to the sender).
    """

    reason: str
    epoch: int = 0
    known: int = 0
    resend: bool = False

    def encode(self) -> bytes:
        """The signal to the sender."""
        return _SIGNAL.pack(FORM, self.epoch, self.known)


def read_signal(signal: bytes) -> tuple[int, int] | None:
    """The epoch and number of paths that a receiver has; None for malformed bytes."""
    if len(signal) != _SIGNAL.size or signal[0] != FORM:
        return None
    _, epoch, known = _SIGNAL.unpack(signal)
    return epoch, known


def write(header: Header, definitions: bytes, body: bytes) -> bytes:
    """The bytes of a message; `definitions` and `body` of the header are offsets and not written."""
    fields = _FIELDS.pack(FORM, *header[:-2], len(definitions))
    return b"".join((fields, _CHECKSUM.pack(crc32(body, crc32(definitions, crc32(fields)))), definitions, body))


def read_header(message: bytes) -> Header | str:
    """The header of a message, or the reason why it is malformed."""
    if len(message) < HEADER:
        return f"truncated: {len(message):,} bytes, but the header alone has {HEADER}"
    form, epoch, first, defined, digest, needs, length, elements, attributes, texts, size = _FIELDS.unpack_from(message)
    if form != FORM:
        return (
            f"it has format {form}, but this version of Pathcast reads format {FORM}; use the same version on "
            "all routers"
        )
    (expected,) = _CHECKSUM.unpack_from(message, _FIELDS.size)
    view = memoryview(message)
    if crc32(view[HEADER:], crc32(view[: _FIELDS.size])) != expected:
        return "checksum mismatch"
    if size > len(message) - HEADER:
        return f"truncated: {size:,} bytes of label paths expected, got {len(message) - HEADER:,}"
    return Header(epoch, first, defined, digest, needs, length, elements, attributes, texts, HEADER, HEADER + size)
