"""The closed segments of a log: files that never change, read without its owner, on any machine that sees them.

    segment-1  segment-4712  segment-9000 │ segment-14230
    ─────────── closed ────────────────── │ being written: not touched

Nothing is locked, and the last segment is not opened, so the folder may be on a network file system, or a copy.

Invariant: what `read` returns is what the log holds. A segment that was trimmed in the meantime is a `TrimmedError`.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from ..log_contract import LogEntry, LogError, TrimmedError
from .segment_file import is_closed, segment_begins, segment_path
from .segment_reader import IdleConnections, SegmentReader


class ClosedSegments:
    """The closed segments in a folder as they are now; `first` to `last` are the sequences of their records."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        begins = segment_begins(self.folder)
        self._ends = dict(pairwise(begins))
        if begins and is_closed(segment_path(self.folder, begins[-1])):
            last = self._reader(begins[-1]).ends()[1]
            if last is not None:
                self._ends[begins[-1]] = last + 1
        self._ends = {begin: end for begin, end in self._ends.items() if self._is_closed(begin)}
        self.first = min(self._ends, default=1)
        self.last = max(self._ends.values(), default=self.first) - 1

    def read(self, begin: int, end: int, *, kinds: Sequence[str] | None = None) -> Iterator[LogEntry]:
        """The records from `begin` to before `end`, which must be among them."""
        if begin < self.first:
            raise TrimmedError.before(begin, self.first)
        while begin < end:
            start = max((each for each in self._ends if each <= begin), default=self.first)
            stop = min(end, self._ends[start])
            if stop <= begin:
                raise LogError(f"no closed segment in {self.folder} has record {begin}; give the folder of the log")
            reader = self._reader(start)
            while begin < stop:
                try:
                    found, begin = reader.chunk(begin, stop, kinds)
                except LogError:
                    if not segment_path(self.folder, start).exists():
                        raise TrimmedError.before(begin, self._ends[start]) from None
                    raise
                yield from found

    def _is_closed(self, begin: int) -> bool:
        try:
            return is_closed(segment_path(self.folder, begin))
        except FileNotFoundError:  # trimmed a moment ago
            return False

    def _reader(self, begin: int) -> SegmentReader:
        return SegmentReader(self.folder, begin, IdleConnections(), closed=True, keep=False)
