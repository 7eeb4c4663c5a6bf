# mypy: allow-untyped-defs, allow-untyped-calls
"""Selections in kernels: whether an element passes a test of attributes, text nodes or its string-value.

Elements, attributes and text nodes lie in document order, so that those inside an element are one range.

`content` is what tests look at, in the order in which `selected` takes it: where elements end, attributes, text nodes,
data, arena, the translation of names, the table of tests, and room for an element's text.
"""

import numpy as np

from pathcast.documents.document_batch_kernels import Attributes, Content, Texts, Values
from pathcast.kernels import part, rare
from pathcast.matching.automaton.verify.condition_kernels import (
    ATTRIBUTE,
    C_KIND,
    C_TEST,
    DEEP,
    TEXT_NODE,
    Tests,
    element_passes,
    passes_all,
)


@part
def values_of(columns):
    """Values, given as the columns of attributes, of text nodes, data and arena."""
    return Values(Attributes(*columns[:4]), Texts(*columns[4:9]), Content(*columns[9:]))


@rare
def selected(element, row, ends, values, translation, tests, joined):
    """Whether the element passes the selection; `joined` is room for its text."""
    attributes, texts, content = values.attributes, values.texts, values.content
    kind, last = tests.rows[row, C_KIND], element + 1
    deep = kind >= DEEP
    if deep:
        kind &= DEEP - 1
        last = np.int64(ends[element])
    if kind == ATTRIBUTE:
        name = tests.rows[row, C_TEST]
        for index in range(attributes.begins[element], attributes.begins[last]):
            if translation[attributes.names[index]] == name:
                if passes_all(attributes.starts[index], np.int64(attributes.lengths[index]), row, tests, content):
                    return True
        return False
    if kind == TEXT_NODE:
        for index in range(texts.begins[element], texts.ends[element]):
            if deep or texts.parents[index] == element:
                if passes_all(texts.starts[index], np.int64(texts.lengths[index]), row, tests, content):
                    return True
        return False
    return element_passes(element, row, tests, texts, content, joined)


@part
def all_selected(element, begin, end, selects, content):
    """Whether the element passes the selections from `begin` up to `end` of a list of them."""
    values, tests = values_of(content[1:12]), Tests(*content[13:17])
    for place in range(begin, end):
        if not selected(element, selects[place], content[0], values, content[12], tests, content[17]):
            return False
    return True
