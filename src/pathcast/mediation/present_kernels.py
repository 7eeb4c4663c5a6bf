# mypy: allow-untyped-defs, allow-untyped-calls
"""Which nodes of a schema a document has: a bit for each node, and one for each attribute that becomes an element."""

import numpy as np

from ..kernels import kernel
from .rewrite_kernels import N_ATTRIBUTES, span

LOW = np.uint64(63)


@kernel(
    "void(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[:, ::1], ro_i4[:, ::1], u8[:, ::1], b1[::1])", late=True
)
def mark_present(offsets, nodes, attribute_begin, attribute_name, table, attributes, marks, is_known):
    """Mark what each document has; `is_known` is false for one with elements that the schema does not have."""
    count = table.shape[1] - 1
    for document in range(len(offsets) - 1):
        is_known[document] = offsets[document] < offsets[document + 1]
        for element in range(offsets[document], offsets[document + 1]):
            node = np.int64(nodes[element])
            if node < 0:
                is_known[document] = False
                break
            marks[document, node >> 6] |= np.uint64(1) << (np.uint64(node) & LOW)
            first = table[N_ATTRIBUTES, node]
            for k in range(first, first + span(table, N_ATTRIBUTES, node)):
                if attributes[2, k]:
                    for a in range(attribute_begin[element], attribute_begin[element + 1]):
                        if attribute_name[a] == attributes[0, k]:
                            bit = count + k
                            marks[document, bit >> 6] |= np.uint64(1) << (np.uint64(bit) & LOW)
