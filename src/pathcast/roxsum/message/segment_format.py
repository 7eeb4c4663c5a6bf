"""A segment of a message: some of its documents as counts and compressed blocks.

    segment  counts, the frames' sizes, and the frames (zstd)
    blocks   the frames' content: a small one of tables, then streams, texts and numbers by column (`batch_encoder.py`)

    tables   ids of the documents · names · the tree (parent and name of each label path) · columns (label path, kind,
             how they are written) · tokens (bytes, label path, column, flags) · what follows each token

The extents are not written: a document's leaves follow from its tokens, which the message has anyway, and computed
extents cannot contradict the documents. Documents that could not be cut are sent raw and read on arrival.

A number in a table takes 1, 2, 4 or 8 bytes, the same for a whole table, low bytes of all first.

Invariant: a segment needs nothing outside itself, so several messages may carry copies of it. A reader does not trust
its counts: every count is checked against the limits and against the bytes present before anything is allocated.
"""

import struct
import threading
from dataclasses import dataclass, fields

import numpy as np
import zstandard

from pathcast.errors import MessageError
from pathcast.kernels import AnyArray, Int64s, UInt8s

from ..markup_value_splitter import MAX_TOKENS
from .message_limits import MessageLimits

# A part of a block of at least this size begins its own frame; smaller ones share frames up to this size.
OWN_FRAME = 16 << 10
SHARED_FRAME = 128 << 10
# Different label paths, and pairs of tokens that follow each other, in one segment.
MAX_NODES = 1 << 20
MAX_PAIRS = 1 << 24
_FRAME = struct.Struct("<II")
_WIDTHS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a segment."""

    documents: int
    size: int
    names: int
    nodes: int
    columns: int
    tokens: int
    pairs: int
    token_total: int
    values: int
    raw: int
    tables: int
    streams: int
    texts: int
    numbers: int
    raw_bytes: int
    frames: int

    def check(self, limits: MessageLimits) -> None:
        """Reject counts that no segment can have."""
        # The shortest token has two bytes, except white space after the root.
        most = self.size // 2 + 2 * self.documents + 2
        bounds = {
            "token_total": most,
            "tokens": min(self.token_total, MAX_TOKENS) + 2,
            "pairs": min(self.token_total + self.documents + 1, MAX_PAIRS),
            "values": self.token_total,
            "columns": min(self.values, self.tokens) + 2,
            "nodes": min(self.tables, MAX_NODES),
            "names": self.nodes + self.columns,
            "raw": self.documents,
            "raw_bytes": self.size,
            "streams": 4 * (self.token_total + self.documents),
            "texts": self.size + 2 * self.values,
            "numbers": 2 * self.values,
            "frames": 64 + self.block_bytes // (OWN_FRAME // 2),
            "tables": most_table_bytes(limits),
        }
        for name, most in bounds.items():
            if getattr(self, name) > most:
                raise damaged(f"a segment states {getattr(self, name):,} for '{name}'; at most {most:,} is possible")

    @property
    def block_bytes(self) -> int:
        """The bytes of all blocks."""
        return self.tables + self.streams + self.texts + self.numbers + self.raw_bytes


def most_table_bytes(limits: MessageLimits) -> int:
    """The largest size of the tables of all segments of a message together."""
    return 2 * limits.bytes + (1 << 20)


_NAMES = tuple(field.name for field in fields(Counts))
_COUNTS = struct.Struct(f"<{len(_NAMES)}Q")
COUNTS_SIZE = _COUNTS.size


def pack_segment(counts: Counts, frames: list[tuple[int, bytes]]) -> bytes:
    """A segment of these frames, each with the size of its content."""
    head = _COUNTS.pack(*(getattr(counts, name) for name in _NAMES))
    sizes = (_FRAME.pack(size, len(frame)) for size, frame in frames)
    return b"".join([head, *sizes, *(frame for _, frame in frames)])


def counts_of(segment: memoryview) -> Counts:
    """The counts of a segment."""
    if len(segment) < COUNTS_SIZE:
        raise damaged(f"a segment has {len(segment)} bytes, but its counts alone have {COUNTS_SIZE}")
    return Counts(*_COUNTS.unpack_from(segment))


def unpacked_blocks(counts: Counts, segment: memoryview) -> bytes:
    """The joined blocks of a segment with these counts."""
    body = segment[COUNTS_SIZE:]
    at = counts.frames * _FRAME.size
    if at > len(body):
        raise damaged(f"truncated within the table of {counts.frames:,} frames")
    sizes = [_FRAME.unpack_from(body, k * _FRAME.size) for k in range(counts.frames)]
    unpacked, packed = sum(size for size, _ in sizes), sum(stored for _, stored in sizes)
    if (unpacked, packed) != (counts.block_bytes, len(body) - at):
        raise damaged(
            f"the frames have {packed:,} bytes, {unpacked:,} unpacked; expected {len(body) - at:,} bytes, "
            f"{counts.block_bytes:,} unpacked"
        )
    decompressor = zstandard.ZstdDecompressor()
    parts = []
    for size, stored in sizes:
        frame = body[at : at + stored]
        at += stored
        try:
            if (found := zstandard.frame_content_size(frame)) != size:
                raise damaged(f"a frame has a content size of {found:,}, but the table of frames states {size:,}")
            parts.append(decompressor.decompress(frame, max_output_size=size))
        except zstandard.ZstdError as error:
            raise damaged(f"cannot decompress a frame: {error}") from None
        if len(parts[-1]) != size:
            raise damaged(f"a frame unpacks to {len(parts[-1]):,} bytes, but the table of frames states {size:,}")
    return b"".join(parts)


def damaged(reason: str) -> MessageError:
    """The error of a message whose content is inconsistent."""
    return MessageError(f"the message is damaged: {reason}; request the message again")


def compress(block: UInt8s, parts: Int64s, compressor: zstandard.ZstdCompressor) -> list[tuple[int, bytes]]:
    """A block as frames, cut between its parts (their sizes): large ones alone, small ones together."""
    if len(block) < OWN_FRAME:
        return [(len(block), compressor.compress(block.data))] if len(block) else []
    frames: list[tuple[int, bytes]] = []
    first = at = 0

    def close() -> None:
        nonlocal first
        if at > first:
            frames.append((at - first, compressor.compress(block[first:at].data)))
        first = at

    for size in parts[parts > 0].tolist():
        if size >= OWN_FRAME or at + size - first > SHARED_FRAME:
            close()
        at += size
        if size >= OWN_FRAME:
            close()
    close()
    return frames


class _Compressors(threading.local):
    """Compressors by level: making one costs more than compressing a small message. One set per thread."""

    def __init__(self) -> None:
        self.by_level: dict[int, zstandard.ZstdCompressor] = {}


_compressors = _Compressors()


def compressor_of(level: int) -> zstandard.ZstdCompressor:
    """A compressor of this level, for this thread."""
    found = _compressors.by_level.get(level)
    if found is None:
        given: object = level
        if not isinstance(given, int) or given > zstandard.MAX_COMPRESSION_LEVEL:
            raise ValueError(
                f"level must be a zstd compression level, an int up to {zstandard.MAX_COMPRESSION_LEVEL}, got {level!r}"
            )
        found = _compressors.by_level[level] = zstandard.ZstdCompressor(level=level)
    return found


class TableWriter:
    """Numbers and texts one after the other."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def numbers(self, values: AnyArray) -> None:
        """Numbers from 0 up."""
        largest = int(values.max()) if len(values) else 0
        if largest < 1 << 8:
            self.parts += [b"\x01", values.astype(np.uint8).tobytes()]
            return
        width = next(width for width in _WIDTHS if largest < 1 << 8 * width)
        planes = values.astype(f"<u{width}").view(np.uint8).reshape(-1, width).T
        self.parts += [bytes([width]), planes.tobytes()]

    def signed(self, values: Int64s) -> None:
        """Numbers on both sides of 0: 0, -1, 1, -2, … are written as 0, 1, 2, 3, …"""
        self.numbers(np.where(values < 0, -2 * values - 1, 2 * values))

    def texts(self, data: bytes) -> None:
        """Bytes, with their number before them."""
        self.parts += [struct.pack("<Q", len(data)), data]

    def bytes(self) -> bytes:
        return b"".join(self.parts)


class TableReader:
    """Reads the bytes of a `TableWriter`, and checks everything."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 0

    def _take(self, size: int) -> memoryview:
        if size > len(self.data) - self.at:
            raise damaged(
                f"its tables are truncated: expected at least {self.at + size:,} bytes, got {len(self.data):,}"
            )
        self.at += size
        return self.data[self.at - size : self.at]

    def numbers(self, count: int, most: int) -> Int64s:
        """`count` numbers, none larger than `most`."""
        width = self._take(1)[0]
        if width not in _WIDTHS:
            raise damaged(f"the tables have numbers of {width} bytes, expected {' or '.join(map(str, _WIDTHS))}")
        planes = np.frombuffer(self._take(count * width), dtype=np.uint8).reshape(width, count)
        values = np.ascontiguousarray(planes.T).view(f"<u{width}").reshape(count)
        if count and int(values.max()) > most:
            raise damaged(f"a number in the tables is {int(values.max()):,}; at most {most:,} is possible")
        return values.astype(np.int64)

    def signed(self, count: int, most: int) -> Int64s:
        """`count` numbers, none further than `most` from 0."""
        values = self.numbers(count, 2 * most + 1)
        return np.where(values & 1, -(values >> 1) - 1, values >> 1)

    def sums(self, count: int, least: int, most: int) -> Int64s:
        """`count` numbers within bounds, written as the difference of each from the one before."""
        values = np.cumsum(self.signed(count, most + 1))
        if count and (int(values.min()) < least or int(values.max()) > most):
            found = f"from {int(values.min()):,} to {int(values.max()):,}"
            raise damaged(f"numbers in the tables are {found}; only {least:,} to {most:,} are possible")
        return values

    def texts(self, most: int) -> memoryview:
        """Bytes, up to `most`."""
        (size,) = struct.unpack("<Q", self._take(8))
        if size > most:
            raise damaged(f"a text has {size:,} bytes; at most {most:,} are possible")
        return self._take(size)

    def close(self) -> None:
        """Reject leftover bytes."""
        if self.at != len(self.data):
            raise damaged(f"its tables have {len(self.data) - self.at:,} extra bytes at the end")
