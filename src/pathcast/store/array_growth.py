"""Growth: an array with more room, which begins with what it had."""

import numpy as np

from pathcast.kernels import AnyArray


def grown(array: AnyArray, size: int, fill: int = 0) -> AnyArray:
    """A copy of length `size`, with `fill` in the places that are new.

    >>> import numpy as np
    >>> pathcast.store.grown(np.array([1, 2]), 4, -1).tolist()
    [1, 2, -1, -1]
    """
    # The memory of zeros is not touched before something is written there.
    larger = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    if fill:
        larger[len(array) :] = fill
    return larger
