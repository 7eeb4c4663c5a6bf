# mypy: allow-untyped-defs, allow-untyped-calls
"""Publications (section 3.2): the open elements of a document as a stack of tags, and choices of them.

Only elements whose tag some predicate names are on the stack. A publication leaves out some of those that are not the
last with their tag; what is kept has its tag, the tag's occurrence among those kept, and its depth.

Cost: the stack's length for each publication, its square where tags repeat; publications double with each repetition.
"""

import numpy as np

from pathcast.kernels import part

# Rows of the arrays over the levels of a path and over stacked elements.
L_STACKED, L_FOUND, L_REPEATS, L_ROWS = range(4)
K_TAG, K_DEPTH, K_LAST, K_ROWS = range(4)


@part
def stack_tag(tag, depth, stacked, repeats, kept, is_tag):
    """Put an element on the stack if predicates name its tag: how many are there, and how many repeat a tag."""
    if 0 <= tag < len(is_tag) and is_tag[tag]:
        for k in range(stacked):
            if kept[K_TAG, k] == tag:
                repeats += 1
                break
        kept[K_TAG, stacked], kept[K_DEPTH, stacked] = tag, depth
        stacked += 1
    return stacked, repeats


@part
def find_last(stacked, repeats, kept):
    """Tell which elements are the last with their tag."""
    for k in range(stacked):
        kept[K_LAST, k] = 1
        if repeats:
            for later in range(k + 1, stacked):
                if kept[K_TAG, later] == kept[K_TAG, k]:
                    kept[K_LAST, k] = 0
                    break


@part
def publish(left_out, stacked, repeats, kept, publication):
    """The publication without the repetitions that `left_out` has a bit for; how many elements it keeps."""
    kept_tag, kept_occurrence, kept_depth = publication
    count, bit = np.int64(0), np.int64(1)
    for k in range(stacked):
        if kept[K_LAST, k] == 0:
            out_now = left_out & bit
            bit <<= 1
            if out_now:
                continue
        seen = 1
        if repeats:
            for before in range(count):
                if kept_tag[before] == kept[K_TAG, k]:
                    seen += 1
        kept_tag[count], kept_depth[count] = kept[K_TAG, k], kept[K_DEPTH, k]
        kept_occurrence[count] = seen
        count += 1
    return count
