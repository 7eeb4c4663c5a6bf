"""Confidence intervals of the ratio of two schemes' traffic, where some events cost much more than others.

Most insertions cost about the same, but a few cost a hundred times as much: those that expose all rows of a join value
to a subscriber. Whether one of them occurs decides the mean over a hundred. So the ratio of two means has an interval
that contains it for 95 of 100 samples drawn from the events with replacement (a bootstrap).

Invariant: where both schemes were counted over the same events, both are drawn together, since an event that is
expensive for one may be cheap for the other. The same events give the same interval.
Cost: `DRAWN` times as many numbers as there are events.
"""

from collections.abc import Sequence

import numpy as np

DRAWN = 1_000


def times_interval(theirs: Sequence[int], ours: Sequence[int]) -> tuple[float, float] | None:
    """The interval of the ratio of their mean to ours; None if ours has no bytes.

    Samples in which ours has none are drawn again.
    """
    if not any(ours):
        return None
    draw = np.random.default_rng(5)
    mine, other = np.array(ours, float), np.array(theirs, float)
    found: list[float] = []
    while len(found) < DRAWN:
        rows = draw.integers(0, len(mine), len(mine))
        others = rows if len(other) == len(mine) else draw.integers(0, len(other), len(other))
        mean = float(mine[rows].mean())
        if mean:
            found.append(float(other[others].mean()) / mean)
    low, high = np.quantile(found, (0.025, 0.975)).tolist()
    return low, high
