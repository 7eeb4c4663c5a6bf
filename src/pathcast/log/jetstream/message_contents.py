"""The contents of the messages of a JetStream log.

Records: the message of one append, on the subject `LOG.record.one.KIND` or, with several kinds, `LOG.record.several`:

    version · number of records · sequence of the first · time of the last · position in the parts stream
    part or zeros · length of the block, and the block unless it is a part
    block: kinds, then per record: kind · time · checksum · lengths of meta and body · part or zeros · length, content

A *part* is what is too large for a message (see large_body_parts.py): the body of one record, or the whole block. The
position is the last message that was in the parts stream before the append: no record from here on refers to an
earlier one.

A *control* message, on the subject `LOG.control`, is a JSON object: who writes the log, where it begins and ends, and
its checkpoint. Opening, writing a checkpoint and trimming write a new one; the last one counts.

The checksum of a record is the CRC-32 of meta and body, which every read of the body verifies.
"""

from collections.abc import Sequence
from struct import Struct, error
from typing import NamedTuple
from urllib.parse import quote
from zlib import crc32

import msgspec

from ..log_contract import LogEntry, LogError

_HEADER = Struct(">BIQqQ16sQ")
_RECORD = Struct(">IqIIQ16sI")
_LENGTH = Struct(">I")
_VERSION = 1
_INSIDE = bytes(16)
# Of the token in a subject: a line of NATS's protocol has at most 4,096 bytes.
_KIND_LENGTH = 200


class StoredRecord(NamedTuple):
    """A record in a block. `content` is meta and body, or for one that is stored apart the meta or nothing."""

    sequence: int
    kind: str
    time: int
    checksum: int
    meta_length: int
    body_length: int
    part: bytes
    content: bytes

    @property
    def is_apart(self) -> bool:
        return self.part != _INSIDE

    @property
    def has_meta(self) -> bool:
        """Whether the block holds the meta of a record that is stored apart."""
        return len(self.content) == self.meta_length


class StoredAppend(NamedTuple):
    """A message with the records of an append: `size` of them. `block` is empty if it is a part."""

    size: int
    first: int
    time: int
    parts_before: int
    part: bytes
    length: int
    block: bytes

    @property
    def last(self) -> int:
        return self.first + self.size - 1

    @property
    def is_apart(self) -> bool:
        return self.part != _INSIDE


class StoredCheckpoint(msgspec.Struct, frozen=True):
    """Where the data of a checkpoint are."""

    sequence: int
    part: str
    length: int
    checksum: int


class Owner(NamedTuple):
    """The writer of a log: a readable name, an id of this opening, and its time."""

    name: str
    id: str
    opened: int


class Control(msgspec.Struct, frozen=True):
    """The state of a log besides its records. `last` and `time` are those of the last record before this message."""

    version: int
    last: int
    time: int
    first: int
    owner: str
    owner_id: str
    opened: int
    checkpoint: StoredCheckpoint | None


def kind_token(kind: str) -> str | None:
    """A kind as a part of a subject, in which some characters have a meaning; None if it is too long for that."""
    token = quote(kind, safe="").replace(".", "%2E") or "%"
    return token if len(token) <= _KIND_LENGTH else None


def subject_of(records: Sequence[StoredRecord]) -> str:
    """The subject of an append, without the name of the log."""
    kinds = {record.kind for record in records}
    token = kind_token(records[0].kind) if len(kinds) == 1 else None
    return "record.several" if token is None else f"record.one.{token}"


def stored_record(entry: LogEntry, part: bytes, content: bytes) -> StoredRecord:
    """A record for a block; `part` (empty for none) has what is not in `content`."""
    checksum = crc32(entry.body, crc32(entry.meta))
    return StoredRecord(
        entry.sequence, entry.kind, entry.time, checksum, len(entry.meta), len(entry.body), part or _INSIDE, content
    )


def records_block(records: Sequence[StoredRecord]) -> bytes:
    """The block with these records."""
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(record.kind for record in records))}
    pieces = [_LENGTH.pack(len(kinds))]
    for kind in kinds:
        pieces += (_LENGTH.pack(len(kind.encode())), kind.encode())
    for record in records:
        pieces += (_RECORD.pack(kinds[record.kind], *record[2:7], len(record.content)), record.content)
    return b"".join(pieces)


def append_data(records: Sequence[StoredRecord], parts_before: int, block: bytes, part: bytes) -> bytes:
    """The message of an append, with its block or the part that holds it."""
    first, last = records[0].sequence, records[-1]
    header = (_VERSION, len(records), first, last.time, parts_before, part or _INSIDE, len(block))
    return _HEADER.pack(*header) + (b"" if part else block)


def read_append(data: bytes) -> StoredAppend:
    """The content of a message with records."""
    try:
        version, size, first, time, parts_before, part, length = _HEADER.unpack_from(data)
    except error as problem:
        raise LogError(f"damaged message in the log: {problem}; restore the log from a backup") from problem
    _check_version(version)
    append = StoredAppend(size, first, time, parts_before, part, length, data[_HEADER.size :])
    if append.size < 1 or len(append.block) != (0 if append.is_apart else append.length):
        raise LogError(
            f"damaged message in the log: its block has {len(append.block)} bytes, expected {append.length}; "
            "restore the log from a backup"
        )
    return append


def read_records(append: StoredAppend, block: bytes) -> list[StoredRecord]:
    """The records of an append, whose block is this one."""
    try:
        (count,), at, kinds, records = _LENGTH.unpack_from(block), _LENGTH.size, list[str](), list[StoredRecord]()
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(block, at)
            begin, at = at + _LENGTH.size, at + _LENGTH.size + length
            kinds.append(block[begin:at].decode())
        for sequence in range(append.first, append.last + 1):
            kind, time, checksum, meta_length, body_length, part, length = _RECORD.unpack_from(block, at)
            begin, at = at + _RECORD.size, at + _RECORD.size + length
            record = (sequence, kinds[kind], time, checksum, meta_length, body_length, part, block[begin:at])
            records.append(StoredRecord(*record))
    except (error, UnicodeDecodeError, IndexError) as problem:
        raise LogError(
            f"damaged records {append.first} to {append.last} in the log: {problem}; restore the log from a backup"
        ) from problem
    if at != len(block):
        raise LogError(
            f"damaged records {append.first} to {append.last} in the log: {len(block)} bytes, expected {at}; restore "
            "the log from a backup"
        )
    return records


def control_data(last: int, time: int, first: int, checkpoint: StoredCheckpoint | None, owner: Owner) -> bytes:
    """The control message for a state."""
    return msgspec.json.encode(
        Control(_VERSION, last, time, first, owner.name, owner.id, owner.opened, checkpoint),
    )


def read_control(data: bytes) -> Control:
    """The content of a control message."""
    try:
        control = msgspec.json.decode(data, type=Control)
    except msgspec.MsgspecError as problem:
        raise LogError(f"damaged control message in the log: {problem}; restore the log from a backup") from problem
    _check_version(control.version)
    return control


def _check_version(version: int) -> None:
    if version != _VERSION:
        raise LogError(
            f"the log has messages of version {version}, but this version of Pathcast reads version "
            f"{_VERSION}; update Pathcast"
        )
