"""Ragged arrays: lists of numbers stored one after the other in an array; and arrays selected by name prefix."""

from itertools import accumulate

import numpy as np

from pathcast.kernels import AnyArray, Int64s
from pathcast.store import offsets_of


def gathered(begin: Int64s, values: AnyArray, chosen: Int64s) -> tuple[Int64s, AnyArray]:
    """Some lists of an array, in this order; in both, list `k` is `values[begin[k] : begin[k + 1]]`."""
    firsts = np.asarray(begin)[chosen]
    counts = np.asarray(begin)[chosen + 1] - firsts
    ends = offsets_of(counts)
    places = np.arange(int(ends[-1]), dtype=np.int64)
    places += np.repeat(firsts - ends[:-1], counts)
    return ends, np.asarray(values)[places]


def least(begin: Int64s, costs: AnyArray) -> Int64s:
    """The position of the first least cost of each list, `costs[begin[k] : begin[k + 1]]`; -1 for an empty list."""
    counts = np.diff(begin)
    found = np.full(len(counts), -1, dtype=np.int64)
    owners = np.flatnonzero(counts)
    if len(owners):
        lowest = np.minimum.reduceat(costs, begin[:-1][owners])
        best = np.flatnonzero(costs == np.repeat(lowest, counts[owners]))
        owner = np.repeat(owners, counts[owners])[best]
        # The last write wins.
        found[owner[::-1]] = best[::-1]
    return found


def ends_of(lengths: list[int], begin: int) -> Int64s:
    """The ends of consecutive lists of these lengths that start at `begin`."""
    return np.array(list(accumulate(lengths, initial=begin))[1:], dtype=np.int64)


def part_of(arrays: dict[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    """The arrays whose names start with `prefix`, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
