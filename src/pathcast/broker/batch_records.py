"""What a batch adds to the log, while it is being put together: its documents per feed, and its records.

Only the sequencer's thread uses them, and only for one batch.
"""

from collections.abc import Iterable, Mapping

from pathcast.broker_log import DeadLetter, Meta, log_record
from pathcast.documents import DocumentBatch
from pathcast.log import LogRecord

from .delivery_index import Batch
from .observation.batch_times import Outcomes
from .requests import Accepted, Rejected


class FeedBatch:
    """The documents of one batch for one feed: where each belongs, and which sequence each got."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.places: list[tuple[list[Accepted | Rejected | None], int]] = []
        self.read: DocumentBatch | None = None
        self.matched: Batch | None = None
        self.sequences: list[int] = []


class Changes:
    """The records of a batch, with the sequences that they will get once the log has them."""

    def __init__(self, head: int) -> None:
        self.begin = head + 1
        self.records: list[LogRecord] = []
        self.metas: list[tuple[int, Meta]] = []
        self.published: dict[tuple[str, str], int] = {}
        self.feeds: set[str] = set()
        self.of: dict[int, int] = {}
        self.duplicate = self.rejected = self.kept = 0  # documents

    @property
    def next(self) -> int:
        """The sequence of the next record."""
        return self.begin + len(self.records)

    def outcomes(self, feeds: Mapping[str, FeedBatch]) -> Outcomes:
        """What became of the documents of the batch."""
        documents = sum(len(feed.bodies) for feed in feeds.values())
        accepted = documents - self.duplicate - self.rejected - self.kept
        return Outcomes(accepted, self.duplicate, self.rejected, self.kept)

    def add(self, meta: Meta, body: bytes = b"") -> int:
        """One more record; returns its sequence."""
        sequence = self.next
        self.records.append(log_record(meta, body))
        self.metas.append((sequence, meta))
        return sequence


class Settled:
    """What one subscription acknowledged in a batch, and what is given up; whatever came first counts."""

    def __init__(self) -> None:
        self.acknowledged: set[int] = set()
        self.letters: dict[int, DeadLetter] = {}

    def acknowledge(self, sequences: Iterable[int]) -> None:
        """Acknowledge deliveries that are not given up yet."""
        self.acknowledged.update(each for each in sequences if each not in self.letters)

    def bury(self, letters: Iterable[DeadLetter]) -> None:
        """Give up deliveries that are not acknowledged yet."""
        for letter in letters:
            if letter.sequence not in self.acknowledged:
                self.letters.setdefault(letter.sequence, letter)
