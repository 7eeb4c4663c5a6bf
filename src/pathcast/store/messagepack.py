"""MessagePack of a declared type: values as bytes; the reader checks every value and runs no code.

    bytes     C1 (no MessagePack value begins with it), the version of the format, one MessagePack value

A `MessagePack` object writes and reads values of one type, made of numbers, text, bytes, dates, None, tuples, lists and
`msgspec` structs. The reader knows the type in advance, so a tuple is read as a tuple and a date as a date; the nesting
depth is that of the type; a length beyond the last byte is an error before anything is allocated. Types have no maps,
because MessagePack permits duplicate keys.

Invariant: `read(write(value)) == value`, with the same types; the `fold` of a datetime is lost. All other bytes raise
`SnapshotError` or decode to a value of the type. The caller must write values of the type; the writer does not check.
Cost: 0.3 µs per call and about 20 ns per value; a reader needs at most about 100 times the bytes in memory.
"""

from typing import Any, Final, Generic, TypeVar

from msgspec import DecodeError, msgpack

from pathcast.errors import SnapshotError

VERSION: Final = 2
_MARK: Final = 0xC1
_HEAD: Final = bytes([_MARK, VERSION])
# Version 1 was a pickle of protocol 5.
_VERSION_1: Final = b"\x80\x05"

_encode = msgpack.Encoder().encode

T = TypeVar("T")


class MessagePack(Generic[T]):
    """Writes and reads values of one type."""

    def __init__(self, kind: Any, what: str, advice: str) -> None:
        """`what` names the values in errors; `advice` is the remedy for damaged or outdated bytes."""
        self._decode = msgpack.Decoder(kind).decode
        self._what = what
        self._advice = advice

    def write(self, value: T) -> bytes:
        """The bytes of a value of the type."""
        return _HEAD + _encode(value)

    def read(self, data: bytes) -> T:
        """The value whose bytes `write` returned; `SnapshotError` for other bytes."""
        if data[:2] != _HEAD:
            raise SnapshotError(self._foreign(data))
        try:
            found: T = self._decode(memoryview(data)[2:])
        except (DecodeError, UnicodeDecodeError) as error:
            raise self.damaged(str(error)) from None
        return found

    def damaged(self, reason: str) -> SnapshotError:
        """The error for bytes that do not decode to a value of the type, or whose value is inconsistent."""
        return SnapshotError(f"cannot read {self._what}: {reason}; {self._advice}")

    def _foreign(self, data: bytes) -> str:
        version = 1 if data[:2] == _VERSION_1 else data[1] if len(data) > 1 and data[0] == _MARK else None
        if version is None:
            return f"cannot read {self._what}: the bytes are damaged or were not written by Pathcast; {self._advice}"
        advice = "update Pathcast" if version > VERSION else self._advice
        return (
            f"{self._what} has format version {version}, but this version of Pathcast reads version {VERSION}; {advice}"
        )
