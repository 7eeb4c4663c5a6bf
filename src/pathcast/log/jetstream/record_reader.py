"""Reading a JetStream log: records in order, of all kinds or some, from a sequence or a time.

Messages come from any replica, up to 8 MB at a time. Sequences have no gaps, so a read of all kinds notices what a
lagging replica does not have yet, and what was trimmed. A read of one kind asks the leader before it believes that
there is no more, and checks that the message with which it began is still there.

Nothing is kept on the servers for a reader.

Memory: the records of one large append, the last that was read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from zlib import crc32

from ..log_contract import LogEntry, LogError, TrimmedError
from .large_body_parts import Parts
from .message_contents import (
    Control,
    StoredAppend,
    StoredRecord,
    kind_token,
    read_append,
    read_control,
    read_records,
)
from .nats_stream import Message, Stream
from .sequence_index import SequenceIndex

# A read fetches little at first, since many readers want a few records, then more.
_FIRST_FETCH, _LARGEST_FETCH, _FETCH_MESSAGES = 1 << 20, 8 << 20, 256


@dataclass
class Extent:
    """Where a log begins and ends, in records and in messages of the stream. Only the writer changes it."""

    first: int = 1
    head: int = 0
    begin: int = 1
    last: int = 0


class Reader:
    """Reads the records within an extent, in any thread."""

    def __init__(self, stream: Stream, parts: Parts, extent: Extent) -> None:
        self.index = SequenceIndex()
        self._stream = stream
        self._parts = parts
        self._extent = extent
        self._large: tuple[bytes, list[StoredRecord]] | None = None  # the last append that was read from parts

    def entries(self, begin: int, end: int, kinds: Sequence[str] | None, *, bodies: bool) -> Iterator[LogEntry]:
        """The records from `begin` to before `end`, in order."""
        if begin >= end:
            return
        if begin < self._extent.first:
            raise TrimmedError.before(begin, self._extent.first)
        if kinds is None:
            yield from self._of_subject("record.>", begin, end, None, bodies=bodies)
            return
        wanted = frozenset(kinds)
        subjects = {f"record.one.{token}" for token in map(kind_token, wanted) if token is not None}
        if wanted:
            subjects.add("record.several")
        yield from merge(
            *(self._of_subject(subject, begin, end, wanted, bodies=bodies) for subject in subjects),
            key=attrgetter("sequence"),
        )

    def _of_subject(
        self, subject: str, begin: int, end: int, kinds: frozenset[str] | None, *, bodies: bool
    ) -> Iterator[LogEntry]:
        """The records of these kinds (None for all) in the messages on a subject."""
        for append in self._appends(f"{self._stream.name}.{subject}", begin, end, without_gaps=kinds is None):
            for record in self._records(append):
                if begin <= record.sequence < end and (kinds is None or record.kind in kinds):
                    yield self._entry(record, bodies=bodies)

    def _appends(self, subject: str, begin: int, end: int, *, without_gaps: bool) -> Iterator[StoredAppend]:
        """The messages on a subject: `begin` moves up to `end`, `position` is the next message to read."""
        position, size = self.message_of(begin), _FIRST_FETCH
        while begin < end:
            found = self._fetch(subject, position, min(_FETCH_MESSAGES, end - begin), size)
            if not without_gaps:
                self._check_kept(begin, position)
            elif not found:
                raise self.missing(begin)
            for message in found:
                append = read_append(message.data)
                if begin >= end or (append.first >= end and not without_gaps):
                    return
                if begin < self._extent.first:
                    raise TrimmedError.before(begin, self._extent.first)
                if without_gaps and not append.first <= begin <= append.last:
                    raise self.missing(begin)
                self.index.add(message.sequence, append.last)
                yield append
                begin = max(begin, append.last + 1)
                position = message.sequence + 1
            if not found:
                return
            size = min(2 * size, _LARGEST_FETCH)

    def _records(self, append: StoredAppend) -> list[StoredRecord]:
        """The records of an append. Those of a large one stay in memory: readers of single documents come again."""
        if not append.is_apart:
            return read_records(append, append.block)
        large = self._large
        if large is None or large[0] != append.part:
            block = self._parts.get("body", append.part.hex(), append.length)
            if block is None:
                raise self.missing(append.first)
            large = self._large = append.part, read_records(append, block)
        return large[1]

    def _fetch(self, subject: str, position: int, count: int, size: int) -> list[Message]:
        """The next messages; none if there are no more."""
        found = self._stream.batch(subject, position, count, size)
        if not found and position <= self._extent.last:
            following = self._stream.next(subject, position)
            found = [] if following is None else [following]
        return found

    def _entry(self, record: StoredRecord, *, bodies: bool) -> LogEntry:
        content = record.content
        complete = not record.is_apart
        if record.is_apart and (bodies or not record.has_meta):
            length = record.meta_length + record.body_length - len(content)
            rest = self._parts.get("body", record.part.hex(), length)
            if rest is None:
                raise self.missing(record.sequence)
            content, complete = content + rest, True
        if complete and crc32(content) != record.checksum:
            raise LogError(
                f"record {record.sequence} of the log {self._stream.name!r} has a wrong checksum; restore the log "
                "from a backup"
            )
        meta = content[: record.meta_length]
        return LogEntry(record.sequence, record.time, record.kind, meta, content[len(meta) :] if bodies else b"")

    def message_of(self, sequence: int) -> int:
        """The message that holds a record; `TrimmedError` if it was trimmed meanwhile."""
        low, high = self.index.around(sequence, self._extent.begin - 1, self._extent.last)
        while high - low > 1:
            middle = (low + high) // 2
            message = self._stream.at(middle)
            if message is None:
                if (first := self._actual_first()) > sequence:
                    raise TrimmedError.before(sequence, first)
                low = middle
                continue
            end = self.content(message).last
            self.index.add(middle, end)
            low, high = (middle, high) if end < sequence else (low, middle)
        return high

    def append_of(self, sequence: int) -> tuple[int, StoredAppend]:
        """The message that holds a record, and its content."""
        place = self.message_of(sequence)
        message = self._stream.at(place)
        if message is None:
            raise self.missing(sequence)
        return place, read_append(message.data)

    def _check_kept(self, begin: int, position: int) -> None:
        """`TrimmedError` if records from `begin` on, whose first message was `position`, were trimmed."""
        if (
            position <= self._extent.last
            and self._stream.at(position) is None
            and (first := self._actual_first()) > begin
        ):
            raise TrimmedError.before(begin, first)

    def _actual_first(self) -> int:
        """The oldest sequence, also if another process has taken over and trimmed the log."""
        return max(self._extent.first, self.last_control().first)

    def missing(self, sequence: int) -> LogError:
        """The error for a record that should be there."""
        if (first := self._actual_first()) > sequence:
            return TrimmedError.before(sequence, first)
        return LogError(f"record {sequence} of the log {self._stream.name!r} is missing; restore the log from a backup")

    def sequence_at(self, time: int) -> int:
        """The sequence of the first record at or after a time (in microseconds); `head + 1` if there is none."""
        found, low, high = self._extent.head + 1, self._extent.begin - 1, self._extent.last + 1
        while high - low > 1:
            middle = (low + high) // 2
            message = self._stream.at(middle)
            content = None if message is None else self.content(message)
            if content is None or content.time < time:
                low = middle
                continue
            high, found = middle, content.last + 1
            if isinstance(content, StoredAppend):
                found = next(record.sequence for record in self._records(content) if record.time >= time)
        return max(found, self._extent.first)

    def content(self, message: Message) -> StoredAppend | Control:
        """The content of a message of the stream."""
        return (
            read_control(message.data)
            if message.subject == f"{self._stream.name}.control"
            else read_append(message.data)
        )

    def last_control(self) -> Control:
        """The control message that counts now, of this process or another one."""
        message = self._stream.last(f"{self._stream.name}.control")
        if message is None:
            raise LogError(f"the stream {self._stream.name!r} has no control message; restore a backup of the stream")
        return read_control(message.data)
