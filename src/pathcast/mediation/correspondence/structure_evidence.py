"""Evidence of structure: what the pairs chosen so far imply for each other pair.

    above     the share of the nearest ancestors whose partners are ancestors of the other node
    beside    the share of the siblings' partners that are siblings of the other node
    below     the share of the descendants whose partners are descendants of the other node

Invariant: likeness is 0 to 1; a pair is no evidence for itself.
Cost: five products of matrices of nodes × nodes.
"""

from collections.abc import Sequence

import numpy as np

from pathcast.kernels import Floats

from .pair_evidence import parent_numbers

# What an ancestor counts beside the one below it.
_UPWARDS = 0.5


class TreeShape:
    """Ancestors and siblings of the nodes of a tree as matrices."""

    def __init__(self, paths: Sequence[str]) -> None:
        parents = parent_numbers(paths)
        count = len(paths)
        self.ancestors = np.zeros((count, count))  # by distance
        self.above = np.zeros((count, count))  # 0 or 1
        for at in range(count):
            up, weight = int(parents[at]), 1.0
            while up >= 0:
                self.ancestors[at, up], self.above[at, up] = weight, 1.0
                up, weight = int(parents[up]), weight * _UPWARDS
        self.beside = (parents[:, None] == parents[None, :]).astype(float)
        np.fill_diagonal(self.beside, 0.0)


def structure_evidence(here: TreeShape, there: TreeShape, chosen: Floats) -> dict[str, Floats]:
    """The features, given the confidence of each chosen pair (0 for the others)."""
    return {
        "above": _agreement(here.ancestors, here.above, there.ancestors, there.above, chosen),
        "beside": _agreement(here.beside, here.beside, there.beside, there.beside, chosen),
        "below": _agreement(here.above.T, here.above.T, there.above.T, there.above.T, chosen),
    }


def _agreement(here: Floats, has: Floats, there: Floats, has_there: Floats, chosen: Floats) -> Floats:
    """The share of the chosen pairs around two nodes that are around both, weighted on each side in turn."""
    forth = here @ chosen @ has_there.T, (here @ chosen).sum(axis=1)[:, None]
    back = has @ chosen @ there.T, (chosen @ there.T).sum(axis=0)[None, :]
    return np.asarray((forth[0] + back[0]) / np.maximum(1e-9, forth[1] + back[1]))
