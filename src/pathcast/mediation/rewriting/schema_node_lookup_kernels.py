# mypy: allow-untyped-defs, allow-untyped-calls
"""The node of the local schema tree for each element, and the set of nodes of a document.

An element's node follows from its parent's and its name: one look-up in a table of nodes × names. `mark_present` sets
one bit per node present, and one per attribute that becomes an element.

Cost: some 2 ns per element.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.document_batch_layout_kernels import Attributes, Elements, Texts
from pathcast.kernels import Bools, Int32s, Matrix, UInt64s, Writable, kernel, part

from .rewriting_table_layout_kernels import N_ATTRIBUTES, NONE, RewritingPlan, span

LOW = np.uint64(63)


class SchemaNodes(NamedTuple):
    """The local schema: the mapping's own number of each name, that of the root's, and the children of each node."""

    numbers: Int32s
    root: int
    children: Matrix[Int32s]


@part
def known_name(name, schema):
    """The mapping's own number of a name; 0 for one that the local schema does not have."""
    return np.int64(schema.numbers[name]) if name < len(schema.numbers) else np.int64(0)


@part
def is_split(text_parent, begin, end):
    """Whether two of these text nodes, which no start tag parts, stand side by side in one element."""
    for text in range(begin + 1, end):
        if text_parent[text] == text_parent[text - 1]:
            return True
    return False


@kernel(late=True)
def place_elements(elements: Elements, texts: Texts, schema: SchemaNodes, nodes: Writable[Int32s]) -> bool:
    """The schema node of each element, or `NONE`; a document whose root is another is `NONE` throughout.

    Returns whether there are text nodes side by side, as a comment parts them: rewritten they are one.
    """
    offsets, split, before = elements.offsets, False, np.int64(0)
    for document in range(len(offsets) - 1):
        first = offsets[document]
        for element in range(first, offsets[document + 1]):
            known = known_name(elements.names[element], schema)
            if element == first:
                nodes[element] = 0 if known == schema.root else NONE
            else:
                above = nodes[elements.parents[element]]
                nodes[element] = schema.children[above, known] if above >= 0 else NONE
            until = np.int64(texts.begins[element])
            split = split or is_split(texts.parents, before, until)
            before = until
    return split or is_split(texts.parents, before, len(texts.parents))


@kernel(late=True)
def mark_present(
    elements: Elements,
    attributes: Attributes,
    schema: SchemaNodes,
    plan: RewritingPlan,
    nodes: Writable[Int32s],
    marks: Writable[Matrix[UInt64s]],
    is_known: Writable[Bools],
) -> None:
    """Mark what each document has; `is_known` is false for one with elements that the schema does not have."""
    offsets, table, moved = elements.offsets, plan.nodes, plan.attributes
    count = table.shape[1] - 1
    for document in range(len(offsets) - 1):
        first = offsets[document]
        is_known[document] = first < offsets[document + 1]
        for element in range(first, offsets[document + 1]):
            known = known_name(elements.names[element], schema)
            if element == first:
                node = np.int64(0 if known == schema.root else NONE)
            else:
                node = np.int64(schema.children[nodes[elements.parents[element]], known])
            nodes[element] = node
            if node < 0:
                is_known[document] = False
                break
            marks[document, node >> 6] |= np.uint64(1) << (np.uint64(node) & LOW)
            begin = table[N_ATTRIBUTES, node]
            for k in range(begin, begin + span(table, N_ATTRIBUTES, node)):
                if moved[2, k]:
                    for a in range(attributes.begins[element], attributes.begins[element + 1]):
                        if attributes.names[a] == moved[0, k]:
                            bit = count + k
                            marks[document, bit >> 6] |= np.uint64(1) << (np.uint64(bit) & LOW)
