"""What `pathcast backfill` does, without Spark and HTTP: work that a broker leaves to others."""

import random
from contextlib import suppress

import numpy as np

from pathcast.broker import Broker
from pathcast.broker.deliveries.computed_matches import RangeError
from pathcast.broker.left_to_spark import FeedRange, History, patterns_of, take_histories, take_range, work_of
from pathcast.broker_log import PatternMatcher, groups_of_documents
from pathcast.kernels import Int64s


def matches_of(broker: Broker, feed: str, begin: int, to: int, patterns: list[str]) -> dict[str, Int64s]:
    """The documents of a range that match each of some patterns."""
    matcher = PatternMatcher()
    matcher.add(patterns)
    parts: dict[str, list[Int64s]] = {pattern: [np.empty(0, dtype=np.int64)] for pattern in patterns}
    for group in groups_of_documents(broker.log, begin, to + 1):
        if feed in group:
            sequences, rows = matcher.match(feed, group[feed], broker.state.mediators.get(feed, ()))
            for at, pattern in enumerate(patterns):
                parts[pattern].append(sequences[rows == at])
    return {pattern: np.concatenate(each) for pattern, each in parts.items()}


def work_once(broker: Broker, draw: random.Random | None = None) -> int:
    """Do all of a broker's work; with `draw`, a random part of it, and some of it twice."""
    work = work_of(broker)
    tasks: list[FeedRange | History] = [*work.ranges, *work.histories]
    for task in tasks:
        begin, to = task.begin, task.to
        if draw is not None:
            if isinstance(task, FeedRange):
                to = draw.randrange(begin, to + 1)
                begin = max(broker.log.first, begin - draw.randrange(3)) if draw.random() < 0.3 else begin
            else:
                begin = draw.randrange(begin, to + 1)
        if isinstance(task, FeedRange):
            patterns = patterns_of(broker, task.feed).result()
            found = matches_of(broker, task.feed, begin, to, patterns)
            # A range that begins before the start of the process must end there.
            with suppress(*[RangeError] * (begin < task.begin)):
                take_range(broker, task.feed, begin, to, found).result()
        else:
            found = matches_of(broker, task.feed, begin, to, [task.pattern])
            take_histories(broker, task.feed, begin, to, found).result()
    return len(tasks)
