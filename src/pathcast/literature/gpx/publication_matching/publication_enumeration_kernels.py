# mypy: allow-untyped-defs, allow-untyped-calls
"""Publications (section 3.2): the open elements of a document as a stack of tags, and selections of them.

Only elements whose tag occurs in some predicate are on the stack. A publication leaves out some of those that are not
the last with their tag; a kept element has its tag, the tag's occurrence among those kept, and its depth.

Cost: the stack's length per publication, its square if tags repeat; publications double with each repetition.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Matrix, Writable, part

# Rows of `levels`, over the levels of a path, and of `stack`, over stacked elements.
L_STACKED, L_FOUND, L_REPEATS, L_ROWS = range(4)
K_TAG, K_DEPTH, K_LAST, K_ROWS = range(4)


class Publication(NamedTuple):
    """The elements that a publication keeps."""

    tags: Writable[Int32s]
    occurrences: Writable[Int32s]
    depths: Writable[Int32s]


class OpenPath(NamedTuple):
    """The path down to the current element: its levels, its stacked elements, and one publication of it."""

    levels: Writable[Matrix[Int64s]]
    elements: Writable[Int32s]
    stack: Writable[Matrix[Int32s]]
    publication: Publication


@part
def stack_tag(tag, depth, stacked, repeats, stack, is_tag):
    """Push an element if predicates name its tag; return the stack's size, and how many elements repeat a tag."""
    if 0 <= tag < len(is_tag) and is_tag[tag]:
        for k in range(stacked):
            if stack[K_TAG, k] == tag:
                repeats += 1
                break
        stack[K_TAG, stacked], stack[K_DEPTH, stacked] = tag, depth
        stacked += 1
    return stacked, repeats


@part
def find_last(stacked, repeats, stack):
    """Record which elements are the last with their tag."""
    for k in range(stacked):
        stack[K_LAST, k] = 1
        if repeats:
            for later in range(k + 1, stacked):
                if stack[K_TAG, later] == stack[K_TAG, k]:
                    stack[K_LAST, k] = 0
                    break


@part
def publish(left_out, stacked, repeats, stack, publication):
    """The publication without the repetitions that have a bit in `left_out`; return how many elements it keeps."""
    count, bit = np.int64(0), np.int64(1)
    for k in range(stacked):
        if stack[K_LAST, k] == 0:
            out_now = left_out & bit
            bit <<= 1
            if out_now:
                continue
        seen = 1
        if repeats:
            for before in range(count):
                if publication.tags[before] == stack[K_TAG, k]:
                    seen += 1
        publication.tags[count], publication.depths[count] = stack[K_TAG, k], stack[K_DEPTH, k]
        publication.occurrences[count] = seen
        count += 1
    return count
