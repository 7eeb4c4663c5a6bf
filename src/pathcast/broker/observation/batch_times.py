"""When a batch did what, as the sequencer noted it: a handful of clock readings per batch, none per document."""

from typing import NamedTuple


class BatchTimes(NamedTuple):
    """Readings of `time.perf_counter` in seconds; how long each publication waited for the batch to begin."""

    begun: float
    matching: float
    matched: float
    appending: float
    durable: float
    waits: list[float]
    records: int


class Outcomes(NamedTuple):
    """What became of the documents of a batch. `kept`: unreadable, in the log as dead letters."""

    accepted: int = 0
    duplicate: int = 0
    rejected: int = 0
    kept: int = 0
