"""The newest documents of some feeds, found by walking the log backwards.

    first ──────────────[ 4,096 ][ 2,048 ][ 1,024 ] before
                                 └── read forwards, each piece twice as large as the one after it

Invariant: the documents are all of the feeds between the oldest found and `before`, without those that have expired.
Cost: some 2 µs per record that is looked at; `examined` bounds them.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from pathcast.broker_log import DOCUMENT, DocumentRecord, meta_of
from pathcast.log import Log, TrimmedError

EXAMINED: Final = 1 << 17
_PIECE: Final = 1_024


class Newest(NamedTuple):
    """Sequences, newest first, and the sequence down to which the log was searched."""

    sequences: list[int]
    searched_from: int


class WantedDocuments(NamedTuple):
    """Documents of some feeds, or all; `dead`: only dead letters (true), or only readable documents (false)."""

    feeds: frozenset[str] | None
    dead: bool | None = None
    expired: Mapping[str, int] = {}

    def has(self, sequence: int, document: DocumentRecord) -> bool:
        """Whether a document is wanted."""
        if self.feeds is not None and document.feed not in self.feeds:
            return False
        if self.dead is not None and (document.error is not None) != self.dead:
            return False
        return sequence >= self.expired.get(document.feed, 0)


def newest_documents(
    log: Log, wanted: WantedDocuments, before: int, limit: int, *, after: int = 0, examined: int = EXAMINED
) -> Newest:
    """At most `limit` documents before a sequence, and after one."""
    found: list[int] = []
    end, piece, left = before, _PIECE, examined
    while left > 0 and len(found) < limit:
        begin = max(log.first, after + 1, end - min(piece, left))
        if begin >= end:
            break
        try:
            entries = [
                entry.sequence
                for entry in log.read(begin, end, kinds=(DOCUMENT,), bodies=False)
                if isinstance(meta := meta_of(entry), DocumentRecord) and wanted.has(entry.sequence, meta)
            ]
        except TrimmedError:
            continue  # from the oldest that is left
        found += reversed(entries)
        left -= end - begin
        end, piece = begin, 2 * piece
    if len(found) > limit:
        return Newest(found[:limit], found[limit] + 1)
    return Newest(found, end)
