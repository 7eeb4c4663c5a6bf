# mypy: allow-untyped-defs, allow-untyped-calls
"""Selections in kernels: whether an element passes a test of attributes, text nodes or its string-value.

Elements, attributes and text nodes are in document order, so that those inside an element are one range.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Values
from pathcast.kernels import Int32s, UInt8s, Writable, part, rare
from pathcast.matching.automaton.verify.value_condition_kernels import (
    ATTRIBUTE,
    C_KIND,
    C_TEST,
    DEEP,
    TEXT_NODE,
    Tests,
    element_passes,
    passes_all,
)


class TestedValues(NamedTuple):
    """The data that selections test: the ends of elements, values, the symbols of names, and the tests.

    `selects` lists the selections of patterns; `joined` is room for an element's text.
    """

    ends: Int32s
    values: Values
    symbols: Int32s
    tests: Tests
    selects: Int32s
    joined: Writable[UInt8s]


@rare
def selected(element, row, tested):
    """Whether the element passes the selection."""
    attributes, texts, content = tested.values
    tests, symbols = tested.tests, tested.symbols
    kind, last = tests.rows[row, C_KIND], element + 1
    deep = kind >= DEEP
    if deep:
        kind &= DEEP - 1
        last = np.int64(tested.ends[element])
    if kind == ATTRIBUTE:
        name = tests.rows[row, C_TEST]
        for index in range(attributes.begins[element], attributes.begins[last]):
            if symbols[attributes.names[index]] == name:
                if passes_all(attributes.starts[index], np.int64(attributes.lengths[index]), row, tests, content):
                    return True
        return False
    if kind == TEXT_NODE:
        for index in range(texts.begins[element], texts.ends[element]):
            if deep or texts.parents[index] == element:
                if passes_all(texts.starts[index], np.int64(texts.lengths[index]), row, tests, content):
                    return True
        return False
    return element_passes(element, row, tests, texts, content, tested.joined)


@part
def all_selected(element, begin, end, tested):
    """Whether the element passes the selections from `begin` up to `end` of the list."""
    for place in range(begin, end):
        if not selected(element, tested.selects[place], tested):
            return False
    return True
