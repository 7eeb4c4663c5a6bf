# mypy: allow-untyped-defs, allow-untyped-calls
"""Selections in kernels: whether an element passes a test of attributes, text nodes or its string-value.

Elements, attributes and text nodes lie in document order, so that those inside an element are one range.

`content` is what tests look at, in the order in which `selected` takes it: where elements end, attributes, text nodes,
data, arena, the translation of names, the table of tests, and room for an element's text.
"""

import numpy as np

from pathcast.kernels import part, rare
from pathcast.matching.automaton.verify.condition_kernels import (
    ATTRIBUTE,
    C_KIND,
    C_TEST,
    DEEP,
    TEXT_NODE,
    element_passes,
    passes_all,
)


@rare
def selected(
    element, row, ends, attribute_begin, attribute_names, attribute_start, attribute_length, text_begin, text_end,
    text_parent, text_start, text_length, data, arena, translation, rows, limits, literals, parts, joined,
):  # fmt: skip
    """Whether the element passes the selection; `joined` is room for its text."""
    kind, last = rows[row, C_KIND], element + 1
    deep = kind >= DEEP
    if deep:
        kind &= DEEP - 1
        last = np.int64(ends[element])
    if kind == ATTRIBUTE:
        name = rows[row, C_TEST]
        for index in range(attribute_begin[element], attribute_begin[last]):
            if translation[attribute_names[index]] == name:
                length = np.int64(attribute_length[index])
                if passes_all(attribute_start[index], length, row, rows, limits, literals, parts, data, arena):
                    return True
        return False
    if kind == TEXT_NODE:
        for index in range(text_begin[element], text_end[element]):
            if deep or text_parent[index] == element:
                length = np.int64(text_length[index])
                if passes_all(text_start[index], length, row, rows, limits, literals, parts, data, arena):
                    return True
        return False
    return element_passes(
        element, row, rows, limits, literals, text_begin, text_end, text_start, text_length, data, arena, joined
    )


@part
def all_selected(element, begin, end, selects, content):
    """Whether the element passes the selections from `begin` up to `end` of a list of them."""
    (
        ends, attribute_begin, attribute_names, attribute_start, attribute_length, text_begin, text_end, text_parent,
        text_start, text_length, data, arena, translation, rows, limits, literals, parts, joined,
    ) = content  # fmt: skip
    for place in range(begin, end):
        if not selected(
            element, selects[place], ends, attribute_begin, attribute_names, attribute_start, attribute_length,
            text_begin, text_end, text_parent, text_start, text_length, data, arena, translation, rows, limits,
            literals, parts, joined,
        ):  # fmt: skip
            return False
    return True
