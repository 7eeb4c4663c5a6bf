"""Documents by sequence: from memory if they were appended or read recently, otherwise from the log.

    batch ──appended──▶ latest batches ──when others follow: what somebody has read──▶ documents read recently ◀── log

Many subscribers read the same documents at about the same time, most of them right after they were appended. Each is
read from the log once, and neighbours in the log together: a read costs some 20 µs with SQLite, and a round trip with
JetStream. The memory is bounded in bytes; the least recently used documents leave first.

Invariant: a document in memory is the one that the log has, and not one that was trimmed.
Cost: a batch that nobody reads, some 10 µs and its bytes until others follow.
Threads: one appends; any thread reads. A lock guards the dictionary, not the reading.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pathcast.broker_log import DocumentRecord, Meta, meta_of
from pathcast.log import Log, LogEntry, LogError, LogRecord

BYTES: Final = 64 << 20
# Documents are read together if at most this many records of the log are between them.
_BETWEEN: Final = 4
# The latest batches: at most this many, in this part of the memory.
_LATEST: Final = 64
_LATEST_PART: Final = 8

Document = tuple[LogEntry, DocumentRecord]


class AppendedBatch:
    """The records of one call of `Log.append`; entries are made when somebody asks for them."""

    __slots__ = ("_documents", "_records", "_time", "begin", "bytes")

    def __init__(self, begin: int, time: int, records: Sequence[tuple[LogRecord, Meta]]) -> None:
        self.begin = begin
        self.bytes = sum(len(record.body) for record, _ in records)
        self._time = time
        self._records = records
        self._documents: dict[int, Document] = {}

    @property
    def end(self) -> int:
        """The sequence after the last."""
        return self.begin + len(self._records)

    def document(self, sequence: int) -> Document | None:
        """The document with a sequence of the batch; None if that is another record."""
        found = self._documents.get(sequence)
        if found is None:
            record, meta = self._records[sequence - self.begin]
            if not isinstance(meta, DocumentRecord):
                return None
            found = self._documents[sequence] = LogEntry(sequence, self._time, *record), meta
        return found

    @property
    def read(self) -> dict[int, Document]:
        """The documents that somebody has asked for."""
        return self._documents


class RecentDocuments:
    """A bounded memory of documents in front of a log."""

    def __init__(self, log: Log, capacity: int = BYTES) -> None:
        self._log = log
        self.capacity = capacity
        self._entries: OrderedDict[int, Document] = OrderedDict()
        self._latest: tuple[AppendedBatch, ...] = ()
        self._lock = threading.Lock()
        self.bytes = 0

    def append(self, batch: AppendedBatch) -> None:
        """Keep a batch that was appended to the log just now, until others follow."""
        with self._lock:
            latest, size = [*self._latest, batch], batch.bytes + sum(each.bytes for each in self._latest)
            self.bytes += batch.bytes
            while latest and (size > self.capacity // _LATEST_PART or len(latest) > _LATEST):
                dropped = latest.pop(0)
                size -= dropped.bytes
                self.bytes -= dropped.bytes
                self._keep(dropped.read)
            self._latest = tuple(latest)

    def drop_before(self, sequence: int) -> None:
        """Documents before a sequence were trimmed."""
        with self._lock:
            dropped = [each for each in self._latest if each.begin < sequence]
            self._latest = tuple(each for each in self._latest if each.begin >= sequence)
            self.bytes -= sum(each.bytes for each in dropped)
            for each in [number for number in self._entries if number < sequence]:
                self.bytes -= len(self._entries.pop(each)[0].body)

    def entries(self, sequences: Iterable[int]) -> list[Document]:
        """The documents with these sequences, in the same order; `TrimmedError` if one was trimmed."""
        wanted = list(sequences)
        found: dict[int, Document] = {}
        with self._lock:
            for sequence in wanted:
                document = self._appended(sequence)
                if document is None and sequence in self._entries:
                    self._entries.move_to_end(sequence)
                    document = self._entries[sequence]
                if document is not None:
                    found[sequence] = document
        missing = sorted({each for each in wanted if each not in found})
        for group in _neighbours(missing):
            found.update(self._read(group))
        return [found[sequence] for sequence in wanted]

    def cached(self, sequences: list[int]) -> list[Document] | None:
        """The documents, if all of them are in memory."""
        with self._lock:
            found = [self._appended(sequence) or self._entries.get(sequence) for sequence in sequences]
        known = [each for each in found if each is not None]
        return known if len(known) == len(sequences) else None

    def _appended(self, sequence: int) -> Document | None:
        """A document of the latest batches; with the lock."""
        for batch in reversed(self._latest):
            if batch.begin <= sequence:
                return batch.document(sequence) if sequence < batch.end else None
        return None

    def _keep(self, found: Mapping[int, Document]) -> None:
        """Keep documents that were read, and drop those that were used least recently; with the lock."""
        for sequence, (entry, meta) in found.items():
            if sequence not in self._entries:
                self.bytes += len(entry.body)
            self._entries[sequence] = entry, meta
        while self.bytes > self.capacity and len(self._entries) > 1:
            _, (oldest, _) = self._entries.popitem(last=False)
            self.bytes -= len(oldest.body)

    def _read(self, sequences: list[int]) -> dict[int, Document]:
        """Documents that are near each other in the log, by one read."""
        wanted = frozenset(sequences)
        found: dict[int, Document] = {}
        for entry in self._log.read(sequences[0], sequences[-1] + 1):
            if entry.sequence in wanted and isinstance(meta := meta_of(entry), DocumentRecord):
                found[entry.sequence] = entry, meta
        for sequence in sequences:
            if sequence not in found:
                raise LogError(f"record {sequence} of the log is not a document; run pathcast log verify")
        with self._lock:
            self._keep(found)
        return found


def _neighbours(sequences: list[int]) -> list[list[int]]:
    """Ascending sequences in groups that are read together."""
    groups: list[list[int]] = []
    for sequence in sequences:
        if groups and sequence - groups[-1][-1] <= _BETWEEN + 1:
            groups[-1].append(sequence)
        else:
            groups.append([sequence])
    return groups
