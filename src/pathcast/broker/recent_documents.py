"""Documents by sequence: from memory if they were read recently, otherwise from the log.

Many subscribers read the same documents at about the same time; each is read from the log once. The memory is bounded
in bytes; the least recently used documents leave first.

Threads: any thread; a lock guards the dictionary, not the reading.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from pathcast.broker_log import DocumentRecord, meta_of
from pathcast.log import Log, LogEntry, LogError

BYTES: Final = 64 << 20


class RecentDocuments:
    """A bounded memory of documents in front of a log."""

    def __init__(self, log: Log, capacity: int = BYTES) -> None:
        self._log = log
        self.capacity = capacity
        self._entries: OrderedDict[int, tuple[LogEntry, DocumentRecord]] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def entries(self, sequences: Iterable[int]) -> list[tuple[LogEntry, DocumentRecord]]:
        """The documents with these sequences, in the same order; `TrimmedError` if one was trimmed."""
        return [self._entry(sequence) for sequence in sequences]

    def cached(self, sequences: list[int]) -> list[tuple[LogEntry, DocumentRecord]] | None:
        """The documents, if all of them are in memory."""
        with self._lock:
            found = [self._entries.get(sequence) for sequence in sequences]
        known = [each for each in found if each is not None]
        return known if len(known) == len(sequences) else None

    def _entry(self, sequence: int) -> tuple[LogEntry, DocumentRecord]:
        with self._lock:
            found = self._entries.get(sequence)
            if found is not None:
                self._entries.move_to_end(sequence)
                return found
        entry = next(iter(self._log.read(sequence, sequence + 1)), None)
        meta = None if entry is None else meta_of(entry)
        if entry is None or not isinstance(meta, DocumentRecord):
            raise LogError(f"record {sequence} of the log is not a document; run pathcast log verify")
        with self._lock:
            if sequence not in self._entries:
                self.bytes += len(entry.body)
            self._entries[sequence] = entry, meta
            while self.bytes > self.capacity and len(self._entries) > 1:
                _, (oldest, _) = self._entries.popitem(last=False)
                self.bytes -= len(oldest.body)
        return entry, meta
