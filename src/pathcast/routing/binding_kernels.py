# mypy: allow-untyped-defs, allow-untyped-calls
"""Embeddings of patterns in a document: which element each step comes to lie on.

A pattern's steps stand in reading order, each after the one above it. From the last step to the first, `holds` tells
for every element whether the pattern from that step down holds there; then steps are laid from the first to the last,
each on the first (or last) element that will do. Steps times elements, for each pattern.
"""

import numpy as np

from ..kernels import kernel

ANY = -2
CHILD, DESCENDANT = 0, 1


@kernel(
    "void(ro_i4[::1], ro_i4[::1], ro_i4[::1], int64,"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1],"
    " u1[:, ::1], u1[:, ::1], u1[:, ::1], i4[:, :, ::1])",
    late=True,
)
def embed(
    parents, ends, symbols, read,
    begins, node_parents, node_axes, node_symbols, chosen,
    holds, child_holds, below_holds, out,
):  # fmt: skip
    """Lay each chosen pattern over the first `read` elements, from the front and from the back.

    `out` has a row for each pattern and way, -1 first where it does not fit.
    """
    for row in range(len(chosen)):
        begin, count = begins[chosen[row]], begins[chosen[row] + 1] - begins[chosen[row]]
        for node in range(count - 1, -1, -1):
            symbol = node_symbols[begin + node]
            for element in range(read):
                child_holds[node, element] = 0
                below_holds[node, element] = 0
            for element in range(read - 1, -1, -1):
                fits = symbol == ANY or symbol == symbols[element]
                if fits:
                    for below in range(node + 1, count):
                        if node_parents[begin + below] == node:
                            if node_axes[begin + below] == CHILD:
                                fits = fits and child_holds[below, element] == 1
                            else:
                                fits = fits and below_holds[below, element] == 1
                holds[node, element] = 1 if fits else 0
                above = parents[element]
                if above >= 0:
                    if fits:
                        child_holds[node, above] = 1
                    if fits or below_holds[node, element] == 1:
                        below_holds[node, above] = 1
        for backwards in range(2):
            placed = out[backwards, row]
            for node in range(count):
                placed[node] = -1
            for node in range(count):
                child = node_axes[begin + node] == CHILD
                above, first, end = np.int64(-1), np.int64(0), np.int64(read)
                if node > 0:
                    above = np.int64(placed[node_parents[begin + node]])
                    first, end = above + 1, min(end, np.int64(ends[above]))
                for step in range(end - first):
                    place = end - 1 - step if backwards else first + step
                    if holds[node, place] == 1 and (not child or parents[place] == above):
                        placed[node] = place
                        break
                if placed[node] < 0:
                    placed[0] = -1
                    break
