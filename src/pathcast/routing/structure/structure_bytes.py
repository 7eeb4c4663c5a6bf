"""A structure annotation as bytes: its header, and the signal of a receiver that refused.

    form │ epoch │ paths before, paths defined │ digest │ needs │ document's length │ elements, attributes, texts │
    bytes of definitions │ checksum │ definitions │ elements │ attributes │ texts

Numbers of the header have their full width, so that it is read in one step: 49 bytes. The checksum is over all else.
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
    """What a message says of itself.

    It defines `defined` paths from `first` on; `definitions` and `body` are where these and the elements begin.
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
    """An annotation that can't be used: why, and how many label paths of which epoch the receiver has.

    `resend`: the sender can mend it by defining anew, if it is told (`encode` gives the bytes to tell it with).
    """

    reason: str
    epoch: int = 0
    known: int = 0
    resend: bool = False

    def encode(self) -> bytes:
        """The signal to the sender."""
        return _SIGNAL.pack(FORM, self.epoch, self.known)


def read_signal(signal: bytes) -> tuple[int, int] | None:
    """Epoch and number of paths that a receiver has; None for bytes that say neither."""
    if len(signal) != _SIGNAL.size or signal[0] != FORM:
        return None
    _, epoch, known = _SIGNAL.unpack(signal)
    return epoch, known


def write(header: Header, definitions: bytes, body: bytes) -> bytes:
    """The message; `definitions` and `body` of the header are places and not written."""
    fields = _FIELDS.pack(FORM, *header[:-2], len(definitions))
    return b"".join((fields, _CHECKSUM.pack(crc32(body, crc32(definitions, crc32(fields)))), definitions, body))


def read_header(message: bytes) -> Header | str:
    """What a message says of itself, or why it is none."""
    if len(message) < HEADER:
        return "it is truncated"
    form, epoch, first, defined, digest, needs, length, elements, attributes, texts, size = _FIELDS.unpack_from(message)
    if form != FORM:
        return f"unknown format {form}, expected {FORM}"
    (expected,) = _CHECKSUM.unpack_from(message, _FIELDS.size)
    view = memoryview(message)
    if crc32(view[HEADER:], crc32(view[: _FIELDS.size])) != expected:
        return "it is damaged"
    if size > len(message) - HEADER:
        return "it is truncated"
    return Header(epoch, first, defined, digest, needs, length, elements, attributes, texts, HEADER, HEADER + size)
