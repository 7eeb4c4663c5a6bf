"""What a batch adds to the log, while it is being put together: its documents per feed, and its records.

Only the sequencer's thread uses them, and only for one batch.
"""

from collections.abc import Iterable, Mapping

from pathcast.broker_log import DeadLetter, FeedMediator, Meta, SubscriptionCursor, log_record
from pathcast.errors import PathcastError
from pathcast.log import LogRecord

from ..deliveries.delivery_index import Batch
from ..observation.batch_times import Outcomes
from .sequencer_requests import Accepted, Passed, PublishRequest, Rejected


class FeedBatch:
    """The documents of one batch for one feed: where each belongs, and which sequence each got."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.places: list[tuple[list[Accepted | Rejected | None], int]] = []
        self.errors: Mapping[int, PathcastError] = {}
        self.matched: Batch | None = None
        self.sequences: list[int] = []
        self.schemas: dict[int, str] = {}  # by place; of documents that are matched by a mapping
        self.mappings: dict[int, str | PathcastError] = {}  # by place; the mappings' texts

    def mediate(self, request: PublishRequest, mediator: FeedMediator | None) -> None:
        """Find the mappings of a request's documents, which are the next ones."""
        from pathcast.broker_log import schema_of

        for place, document in enumerate(request.documents, len(self.bodies)):
            try:
                schema = self.schemas[place] = schema_of(mediator, request.schema, document.attributes)
                assert mediator is not None
                self.mappings[place] = mediator.mappings[schema]
            except PathcastError as error:
                self.mappings[place] = error


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

    def outcomes(self, feeds: Iterable[FeedBatch]) -> Outcomes:
        """What became of the documents of the batch."""
        documents = sum(len(feed.bodies) for feed in feeds)
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
        self._passed: list[Passed] = []

    def acknowledge(self, sequences: Iterable[int], passed: Passed | None = None) -> None:
        """Acknowledge deliveries that are not given up yet."""
        if passed is not None:
            self._passed.append(passed)
        self.acknowledged.update(each for each in sequences if each not in self.letters)

    def fetched(self, cursor: SubscriptionCursor) -> int:
        """Up to where the deliveries of a cursor are known."""
        reached = [each.reached for each in self._passed if each.cursor is cursor and each.position == cursor.fetched]
        return max(reached, default=cursor.fetched)

    def bury(self, letters: Iterable[DeadLetter]) -> None:
        """Give up deliveries that are not acknowledged yet."""
        for letter in letters:
            if letter.sequence not in self.acknowledged:
                self.letters.setdefault(letter.sequence, letter)
