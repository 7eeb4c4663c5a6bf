"""What a broker leaves to Spark, and takes from it: documents to match, and the matches.

    work     ranges of feeds with matching = "spark" · histories of patterns that a search waits for
    matches  pattern → sequences, for a range

A process that asks for work, and for a feed's patterns after that, has all patterns that the matches of the range must
have: a pattern that comes later is valid for later documents only.

Matches are taken in the sequencer's thread, so they never change beside a batch, and readers that wait are woken.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from pathcast.broker_log import MediatorSpans
from pathcast.kernels import Int64s

from .deliveries.computed_matches import Range, RangeError
from .deliveries.delivery_index import Batch
from .sequencing.batch_processing import Processed
from .sequencing.sequencer_requests import TaskRequest

if TYPE_CHECKING:
    from .broker import Broker


class FeedRange(Struct):
    """Documents of a feed, `from` to `to`, both inclusive."""

    feed: str
    begin: int = field(name="from")
    to: int


class History(Struct):
    """Documents of a feed that may match a pattern and are to be matched for it alone; both ends inclusive."""

    feed: str
    pattern: str
    begin: int = field(name="from")
    to: int


class Work(Struct):
    """What Spark is to match; `mediators`: those of the feeds, by which their documents are rewritten first."""

    ranges: list[FeedRange]
    histories: list[History]
    mediators: dict[str, MediatorSpans]


def work_of(broker: "Broker") -> Work:
    """The work of a broker, as of now."""
    head, first = broker.matched_to, broker.log.first
    ranges = [
        FeedRange(name, begin, end - 1)
        for name, index in broker.indexes.copy().items()
        for begin, end in index.computed.ranges(max(first, broker.state.expired.get(name, 0)), head)
    ]
    histories = [History(feed, text, begin, end - 1) for feed, text, begin, end in broker.search.backfills()]
    feeds = {each.feed for each in ranges} | {each.feed for each in histories}
    mediators = {feed: spans for feed in feeds if (spans := broker.state.mediators.get(feed, ()))}
    return Work(ranges, histories, mediators)


def patterns_of(broker: "Broker", feed: str) -> "Future[list[str]]":
    """All patterns that the documents of a feed are matched with."""

    def read() -> list[str]:
        index = broker.indexes.get(feed)
        return [] if index is None else [text for text, _, _ in index.patterns()]

    return broker.perform(TaskRequest(read))


def take_range(broker: "Broker", feed: str, begin: int, to: int, matches: Mapping[str, Int64s]) -> "Future[int]":
    """Take all matches of a range; the result is how many were new. `RangeError` if an earlier range is missing."""

    def take() -> int:
        index = broker.indexes.get(feed)
        if index is None:
            raise RangeError(f"unknown feed {feed!r}; ask for the work again")
        numbers = ((index.pattern(text), sequences) for text, sequences in matches.items())
        known = [(found.number, sequences) for found, sequences in numbers if found is not None]
        bounds = Range(max(broker.log.first, broker.state.expired.get(feed, 0)), broker.matched_to + 1)
        batch = index.computed.cover(begin, to + 1, bounds, known)
        broker.processed(Processed(broker.matched_to, [(feed, batch)], [], 0))
        return len(batch.patterns)

    return broker.perform(TaskRequest(take))


def take_histories(broker: "Broker", feed: str, begin: int, to: int, matches: Mapping[str, Int64s]) -> "Future[int]":
    """Take the documents of a range that match some patterns; the result is how many patterns were waited for."""

    def take() -> int:
        index = broker.indexes.get(feed)
        if index is None:
            return 0
        taken = [
            number
            for text, sequences in matches.items()
            if (number := index.lengthen(text, begin, to + 1, sequences)) is not None
        ]
        numbers = np.array(taken, dtype=np.int32)
        # No document is new, but readers that wait for these patterns search again.
        offsets = np.array([0, len(taken)], dtype=np.int64)
        batch = Batch(np.array([begin], dtype=np.int64), offsets, numbers)
        broker.processed(Processed(broker.matched_to, [(feed, batch)], [], 0))
        return len(taken)

    return broker.perform(TaskRequest(take))
