"""Array growth: a longer copy of an array."""

import numpy as np

from pathcast.kernels import AnyArray


def grown(array: AnyArray, size: int, fill: int = 0) -> AnyArray:
    """A copy of length `size`, with `fill` in the new places.

    >>> import numpy as np
    >>> pathcast.store.grown(np.array([1, 2]), 4, -1).tolist()
    [1, 2, -1, -1]
    """
    # The operating system allocates the pages of `zeros` only when they are written.
    larger = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    if fill:
        larger[len(array) :] = fill
    return larger
