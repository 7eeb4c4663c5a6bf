"""Matching that a broker leaves to others: which documents, which patterns, and the matches sent to it.

    GET /v1/matching ──▶ work ──(any process reads the log and matches)──▶ PUT /v1/matching/ranges, …/histories

Invariant: matches that do not fit into one request are sent in several, in the order that the broker needs: ranges
forwards, histories backwards. Each is safe to send again.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct, field, json

from pathcast.kernels import Int64s

from .log_reader import LogReader

# Bytes of one request, of the 64 MiB that the broker takes.
MOST: Final = 24 << 20


class FeedRange(Struct):
    """Documents of a feed, `begin` to `to`, both inclusive, to be matched with all of its patterns."""

    feed: str
    begin: int = field(name="from")
    to: int


class History(Struct):
    """Documents of a feed, to be matched with one pattern."""

    feed: str
    pattern: str
    begin: int = field(name="from")
    to: int


class Mediator(Struct):
    """The mappings of a feed from a sequence on."""

    schema: str
    mappings: dict[str, str]


class Mediated(Struct):
    """From when on a feed has a mediator, or none."""

    begin: int
    mediator: Mediator | None


class Work(Struct):
    """What a broker leaves to others; `mediators`: those of the feeds."""

    ranges: list[FeedRange]
    histories: list[History]
    mediators: dict[str, list[Mediated]]


class Found(NamedTuple):
    """Matches: document `sequences[i]` matches pattern `patterns[rows[i]]`."""

    patterns: list[str]
    sequences: Int64s
    rows: Int64s


class _Patterns(Struct):
    feed: str
    patterns: list[str]


class MatchingWork(LogReader):
    """Asks the broker at `url` for work, and sends it matches; it can also read the broker's log."""

    def work(self) -> Work:
        """What the broker leaves to others, as of now."""
        return json.decode(self._answer("GET", "/v1/matching").content, type=Work)

    def patterns(self, feed: str) -> list[str]:
        """The patterns of a feed; those that matches of a range need, if asked for after the range."""
        answer = self._answer("GET", "/v1/matching/patterns", {"feed": feed})
        return json.decode(answer.content, type=_Patterns).patterns

    def send_range(self, work: FeedRange, found: Found) -> None:
        """Send all matches of a range."""
        for begin, to, matches in pieces(work.begin, work.to, found, MOST):
            self._send("/v1/matching/ranges", work.feed, begin, to, matches)

    def send_histories(self, feed: str, begin: int, to: int, found: Found, *, most: int = MOST) -> None:
        """Send the documents that match some patterns, all that `found.patterns` names."""
        for first, last, matches in reversed(list(pieces(begin, to, found, most))):
            none: dict[str, list[int]] = {pattern: [] for pattern in found.patterns}
            self._send("/v1/matching/histories", feed, first, last, none | matches)

    def _send(self, path: str, feed: str, begin: int, to: int, matches: Mapping[str, list[int]]) -> None:
        self._answer("PUT", path, json={"feed": feed, "from": begin, "to": to, "matches": matches})


def pieces(begin: int, to: int, found: Found, most: int) -> Iterator[tuple[int, int, dict[str, list[int]]]]:
    """A range in pieces whose matches have at most some bytes, or are of one document: begin, to and matches."""
    order = np.lexsort((found.rows, found.sequences))
    sequences, rows = found.sequences[order], found.rows[order]
    texts = np.array([len(pattern) + 8 for pattern in found.patterns] or [0])
    # As if each match came with its pattern: an upper bound.
    sizes = np.cumsum(texts[rows] + 21) if len(rows) else np.empty(0, dtype=np.int64)
    at = 0
    while True:
        before = int(sizes[at - 1]) if at else 0
        end = int(sizes.searchsorted(before + most, side="right"))
        if end >= len(sequences):
            yield begin, to, _by_pattern(found.patterns, sequences[at:], rows[at:])
            return
        # A document's matches stay together.
        cut = int(sequences.searchsorted(sequences[end]))
        if cut <= at:
            cut = int(sequences.searchsorted(sequences[end], side="right"))
        last = int(sequences[cut - 1])
        yield begin, last, _by_pattern(found.patterns, sequences[at:cut], rows[at:cut])
        begin, at = last + 1, cut
        if begin > to:
            return


def _by_pattern(patterns: list[str], sequences: Int64s, rows: Int64s) -> dict[str, list[int]]:
    order = np.lexsort((sequences, rows))
    sequences, rows = sequences[order], rows[order]
    names, firsts = np.unique(rows, return_index=True)
    parts = np.split(sequences, firsts[1:])
    return (
        {patterns[name]: part.tolist() for name, part in zip(names.tolist(), parts, strict=True)} if len(rows) else {}
    )
