"""Offsets of lists that lie one after the other in an array: list `k` is `values[offsets[k] : offsets[k + 1]]`."""

import numpy as np
import numpy.typing as npt

from pathcast.kernels import Int64s


def offsets_of(lengths: npt.ArrayLike) -> Int64s:
    """The offsets where lists of these lengths begin, and where the last one ends.

    >>> pathcast.store.offsets_of([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    counts = np.asarray(lengths, dtype=np.int64)
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets
