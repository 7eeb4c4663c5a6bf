"""How far a ratio of two schemes' traffic can be trusted, given that some events cost much more than others.

Most insertions cost about the same, and few of them a hundred times as much: those that expose all rows of a join value
to somebody. A mean over a hundred is decided by whether one of those is among them. So beside the ratio of two means
stands the interval in which it lies for 95 of 100 samples that are drawn from the events again (a bootstrap).

Invariant: where both schemes were counted over the same events, both are drawn together, since an event that is dear
for the one is not for the other. The same events give the same interval.
Cost: `DRAWN` times as many numbers as there are events.
"""

from collections.abc import Sequence

import numpy as np

DRAWN = 1_000


def times_interval(theirs: Sequence[int], ours: Sequence[int]) -> tuple[float, float] | None:
    """The interval of how many times our mean theirs is; None where ours has no bytes at all.

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
