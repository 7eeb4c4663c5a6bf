"""Spans: lists of numbers that lie one after the other in an array; and arrays by the first part of their names."""

from itertools import accumulate

import numpy as np

from pathcast.kernels import AnyArray, Int64s
from pathcast.store import offsets_of


def gathered(begin: Int64s, values: AnyArray, chosen: Int64s) -> tuple[Int64s, AnyArray]:
    """Some of the lists of an array, in this order: list `k` is `values[begin[k] : begin[k + 1]]`, of both results."""
    firsts = np.asarray(begin)[chosen]
    counts = np.asarray(begin)[chosen + 1] - firsts
    ends = offsets_of(counts)
    places = np.arange(int(ends[-1]), dtype=np.int64)
    places += np.repeat(firsts - ends[:-1], counts)
    return ends, np.asarray(values)[places]


def least(begin: Int64s, costs: AnyArray) -> Int64s:
    """Of each list of costs, `costs[begin[k] : begin[k + 1]]`, the place of the first least one; -1 for no costs."""
    counts = np.diff(begin)
    found = np.full(len(counts), -1, dtype=np.int64)
    owners = np.flatnonzero(counts)
    if len(owners):
        lowest = np.minimum.reduceat(costs, begin[:-1][owners])
        best = np.flatnonzero(costs == np.repeat(lowest, counts[owners]))
        owner = np.repeat(owners, counts[owners])[best]
        # The last that is written counts.
        found[owner[::-1]] = best[::-1]
    return found


def ends_of(lengths: list[int], begin: int) -> Int64s:
    """Where lists of these lengths end that lie one after the other from `begin` on."""
    return np.array(list(accumulate(lengths, initial=begin))[1:], dtype=np.int64)


def part_of(arrays: dict[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
