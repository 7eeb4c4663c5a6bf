"""The clock of a router: measures processing step by step, in CPU time of the thread.

A router that forwards late is timed as it runs. A router that forwards early decides links in the middle of a document,
and an engine reports the *place* of a decision (start tags read), not its time. So the document is run once for the
results and then again for each place of a decision, by a stream that stops there, over bytes that end there: its
time is the time of that decision. Nothing is interpolated, and nothing waits for a whole pass.

Cost: a run per place. All places where a copy leaves for a neighbour are timed; of the others, where local subscribers
are decided, at most `MOST_PLACES`, fewer in a long document, and a subscriber between two of them gets the time of the
later one.
Invariant: times of reading and of matching increase with the place.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import NamedTuple, TypeVar

import numpy as np

from pathcast.documents import Document, DocumentBatch
from pathcast.matching import Entries, Mask, Streaming, StreamMatches

from .well_formed_document_truncation import cut

T = TypeVar("T")
Read = Callable[[bytes], DocumentBatch]
MOST_PLACES, LEAST_PLACES = 24, 6
_MOST_READ = 1 << 19  # start tags read to time local places
_LOOKS = 20


class Clock:
    """Measures steps; each runs `repeats` times, and the fastest counts, minus the time to read the clock."""

    is_running = True

    def __init__(self, repeats: int = 1) -> None:
        self.repeats = repeats
        self._look = 0.0
        self._look = min(self.timed(_nothing)[1] for _ in range(_LOOKS))

    def timed(self, step: Callable[[], T]) -> tuple[T, float]:
        """The result of a step, and its seconds."""
        best = float("inf")
        for _ in range(self.repeats):
            began = time.thread_time()
            result = step()
            best = min(best, time.thread_time() - began)
        return result, max(best - self._look, 0.0)


class StoppedClock(Clock):
    """A clock that does not measure: all steps take 0 seconds."""

    is_running = False

    def timed(self, step: Callable[[], T]) -> tuple[T, float]:
        """The result of a step, and 0 seconds."""
        return step(), 0.0


def _nothing() -> None:
    """A step that takes no time."""


class Elapsed(NamedTuple):
    """Seconds of a stream, up to some place."""

    reading: float
    matching: float

    def earlier(self, other: "Elapsed") -> "Elapsed":
        """The minimum of each time."""
        return Elapsed(min(self.reading, other.reading), min(self.matching, other.matching))

    def later(self, other: "Elapsed") -> "Elapsed":
        """The maximum of each time."""
        return Elapsed(max(self.reading, other.reading), max(self.matching, other.matching))


_NO_TIME = Elapsed(0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A document that was matched as a stream.

    `decided` has the place of each group's first match, `seconds` the time to each of these places, and `total` the
    time until the stream stopped.
    """

    matches: StreamMatches
    decided: dict[int, int]
    seconds: dict[int, Elapsed]
    total: Elapsed


def first_places(matches: StreamMatches, group: Entries) -> dict[int, int]:
    """For each group with a match, the number of start tags read at its first match."""
    order = np.argsort(matches.positions, kind="stable")
    groups, first = np.unique(group[matches.entries[order]], return_index=True)
    places = matches.positions[order][first]
    return {g: p for g, p in zip(groups.tolist(), places.tolist(), strict=True) if g >= 0}


def run_stream(
    clock: Clock,
    engine: Streaming,
    read: Read | None,
    document: Document,
    reading: float,
    *,
    skip: Mask,
    group: Entries,
    urgent: Callable[[dict[int, int]], set[int]],
) -> Stream:
    """Match a document as a stream; `reading` is the time to read it, and `urgent` places are always timed.

    Without `read`, the whole document is known before the stream begins: its reading time counts at every place.
    """
    waiting = np.where(skip, -1, group).astype(np.int32)
    skipped = skip if skip.any() else None
    matches, matching = clock.timed(lambda: engine.match_stream(document, skip=skipped, link=waiting))
    decided = first_places(matches, waiting)

    if not clock.is_running:
        return Stream(matches, decided, dict.fromkeys(decided.values(), _NO_TIME), _NO_TIME)

    def reading_to(place: int) -> float:
        return reading if read is None or place >= len(document) else _reading(clock, read, document, place)

    total = Elapsed(reading_to(matches.read), matching)
    seconds: dict[int, Elapsed] = {}
    place_of = np.full(int(waiting.max(initial=-1)) + 2, np.iinfo(np.int32).max, dtype=np.int64)
    place_of[list(decided)] = list(decided.values())
    most = min(MOST_PLACES, max(LEAST_PLACES, _MOST_READ // max(1, len(document))))
    for place in _chosen(set(decided.values()), urgent(decided), most):
        if place >= matches.read:
            seconds[place] = total
            continue
        until = np.where(place_of[waiting] <= place, waiting, -1).astype(np.int32)
        _, early = clock.timed(partial(engine.match_stream, document, skip=skipped, link=until))
        seconds[place] = total.earlier(Elapsed(reading_to(place), early))
    return Stream(matches, decided, _growing(seconds, decided.values(), total), total)


def _chosen(places: set[int], urgent: set[int], most: int) -> list[int]:
    """The places to time, ascending."""
    others = sorted(places - urgent)
    if len(others) > most:
        others = [others[round(k * (len(others) - 1) / (most - 1))] for k in range(most)]
    return sorted(urgent.union(others))


def _growing(seconds: dict[int, Elapsed], places: Iterable[int], total: Elapsed) -> dict[int, Elapsed]:
    """The seconds of each place: those of the next timed place, never less than at an earlier place."""
    timed = sorted(seconds)
    times = list(accumulate((seconds[place] for place in timed), Elapsed.later))
    found = {}
    for place in places:
        at = bisect_left(timed, place)
        found[place] = times[at] if at < len(timed) else total
    return found


def _reading(clock: Clock, read: Read, document: Document, place: int) -> float:
    """The seconds to read a document up to the start tag number `place`."""
    part = cut(document, place)
    return clock.timed(lambda: read(part))[1]
