"""One optimal assignment: of all one-to-one choices of pairs, the one with the greatest sum of scores.

A node without a good partner stays alone: a pair counts only if its score is above 0.

Invariant: no node is in two pairs, and no other choice has a greater sum.
Cost: cubic in the nodes of the smaller side (`scipy.optimize.linear_sum_assignment`); 300 × 300 take some milliseconds.
"""

import numpy as np

from pathcast.extras import extra
from pathcast.kernels import Floats


def optimal_assignment(scores: Floats) -> list[tuple[int, int]]:
    """The pairs of rows and columns, in the order of rows.

    >>> optimal_assignment(np.array([[3.0, 2.0], [2.5, -1.0]]))
    [(0, 1), (1, 0)]
    """
    with extra("mediation"):
        from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(np.maximum(scores, 0.0), maximize=True)
    return [
        (row, column) for row, column in zip(rows.tolist(), columns.tolist(), strict=True) if scores[row, column] > 0
    ]
