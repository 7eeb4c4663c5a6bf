"""The wire form of a message: a header, a table of segments, and the segments (`segment_format.py`).

    header     magic, version, flags; counts of the message; checksum of all of the header and of the table of segments
    table      the size and the checksum of each segment
    segments   each some of the documents, with all tables that these need

Segments depend on nothing in the message around them: documents that go to the same targets are encoded once, and the
messages to these targets carry copies of their bytes (`messages_by_target.py`).

Invariant: a reader checks every number against the limits and against the bytes present before it allocates anything;
the limits bound all segments together.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from pathcast.errors import MessageError

from .message_limits import MessageLimits
from .segment_format import Counts, counts_of, damaged, most_table_bytes

MAGIC = b"RoXS"
VERSION = 2
CHECKSUM = 16
MAX_NEXT_ID = 1 << 32
_PREFIX = struct.Struct("<4sHH")
# The next document id; the number of segments.
_HEAD = struct.Struct("<QQ")
_SEGMENT = struct.Struct(f"<Q{CHECKSUM}s")
HEADER = _PREFIX.size + _HEAD.size + CHECKSUM


@dataclass(frozen=True, slots=True)
class Segment:
    """An encoded segment and its checksum."""

    data: bytes
    checksum: bytes

    @classmethod
    def of(cls, data: bytes) -> "Segment":
        return cls(data, _checksum(data))


def pack(next_id: int, segments: Sequence[Segment]) -> bytes:
    """The message of these segments; their documents have different ids below `next_id`."""
    table = b"".join(_SEGMENT.pack(len(segment.data), segment.checksum) for segment in segments)
    head = _PREFIX.pack(MAGIC, VERSION, 0) + _HEAD.pack(next_id, len(segments))
    return b"".join([head, _checksum(head, table), table, *(segment.data for segment in segments)])


def unpack(data: memoryview, limits: MessageLimits) -> tuple[int, list[tuple[Counts, memoryview]]]:
    """The next document id, and the counts and bytes of the segments; `MessageError` when the message is invalid."""
    _check_prefix(data)
    if len(data) < HEADER:
        raise MessageError(
            f"the message is truncated: {len(data)} bytes, but the header alone has {HEADER}; request the message again"
        )
    next_id, count = _HEAD.unpack_from(data, _PREFIX.size)
    at = HEADER + count * _SEGMENT.size
    if at > len(data):
        raise damaged(f"truncated within the table of {count:,} segments")
    if _checksum(data[: HEADER - CHECKSUM], data[HEADER:at]) != data[HEADER - CHECKSUM : HEADER]:
        raise damaged("checksum mismatch")
    if next_id > MAX_NEXT_ID:
        raise damaged(f"the header states {next_id:,} as the next document id; at most {MAX_NEXT_ID:,} is possible")
    table = list(_SEGMENT.iter_unpack(data[HEADER:at]))
    if (size := sum(size for size, _ in table)) != len(data) - at:
        raise damaged(f"the table of segments states {size:,} bytes, but {len(data) - at:,} follow it")
    segments = []
    for size, checksum in table:
        segment = data[at : at + size]
        at += size
        if _checksum(segment) != checksum:
            raise damaged("checksum mismatch")
        segments.append((counts_of(segment), segment))
    _check_counts([counts for counts, _ in segments], limits)
    return next_id, segments


def _check_prefix(data: memoryview) -> None:
    """Reject bytes that are not a message of this version."""
    if len(data) < _PREFIX.size:
        raise MessageError(
            f"the message is truncated: {len(data)} bytes, but the header alone has {HEADER}; request the message again"
        )
    magic, version, flags = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise MessageError(
            f"not a RoXSum message: the bytes begin with {magic!r}, expected {MAGIC!r}; give the bytes that "
            "RoXSum.encode returned"
        )
    if version != VERSION or flags:
        raise MessageError(
            f"the message has version {version} and flags {flags}, but this version of Pathcast reads version "
            f"{VERSION} and flags 0; use the same version of Pathcast on both sides, and encode stored messages again"
        )


def _check_counts(segments: Sequence[Counts], limits: MessageLimits) -> None:
    """Reject segments that together exceed the limits, or that no message can have."""
    limits.check("documents", sum(counts.documents for counts in segments))
    limits.check("bytes", sum(counts.size for counts in segments))
    for counts in segments:
        if not counts.documents:
            raise damaged("a segment has no documents")
        counts.check(limits)
    if (tables := sum(counts.tables for counts in segments)) > (most := most_table_bytes(limits)):
        raise damaged(f"the segments state {tables:,} bytes of tables; at most {most:,} are possible")


def _checksum(*parts: bytes | memoryview) -> bytes:
    digest = blake2b(digest_size=CHECKSUM)
    for part in parts:
        digest.update(part)
    return digest.digest()
