# mypy: allow-untyped-defs, allow-untyped-calls
"""Which node of the local schema tree each element is, and which nodes a document has.

An element's node follows from its parent's and its name: one look-up in a table of nodes × names. `mark_present` keeps
of that a bit for each node, and one for each attribute that becomes an element.

Cost: some 2 ns an element.
"""

import numpy as np

from pathcast.kernels import kernel, part

from .layout_kernels import N_ATTRIBUTES, NONE, span

LOW = np.uint64(63)


@part
def known_name(name, small):
    """The mapping's own number of a name; 0 for one that the local schema does not have."""
    return np.int64(small[name]) if name < len(small) else np.int64(0)


@part
def is_split(text_parent, begin, end):
    """Whether two of these text nodes, which no start tag parts, stand side by side in one element."""
    for text in range(begin + 1, end):
        if text_parent[text] == text_parent[text - 1]:
            return True
    return False


@kernel(
    "boolean(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[:, ::1], int64, i4[::1])",
    late=True,
)
def place_elements(offsets, name, parent, text_begin, text_parent, small, child, root, nodes):
    """The schema node of each element, or `NONE`; a document whose root is another is `NONE` throughout.

    Returns whether there are text nodes side by side, as a comment parts them: rewritten they are one.
    """
    split, before = False, np.int64(0)
    for document in range(len(offsets) - 1):
        first = offsets[document]
        for element in range(first, offsets[document + 1]):
            known = known_name(name[element], small)
            if element == first:
                nodes[element] = 0 if known == root else NONE
            else:
                above = nodes[parent[element]]
                nodes[element] = child[above, known] if above >= 0 else NONE
            until = np.int64(text_begin[element])
            split = split or is_split(text_parent, before, until)
            before = until
    return split or is_split(text_parent, before, len(text_parent))


@kernel(
    "void(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[:, ::1], int64, i4[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[:, ::1], ro_i4[:, ::1], u8[:, ::1], b1[::1])",
    late=True,
)
def mark_present(
    offsets, name, parent, small, child, root, nodes, attribute_begin, attribute_name, table, attributes, marks,
    is_known,
):  # fmt: skip
    """Mark what each document has; `is_known` is false for one with elements that the schema does not have."""
    count = table.shape[1] - 1
    for document in range(len(offsets) - 1):
        first = offsets[document]
        is_known[document] = first < offsets[document + 1]
        for element in range(first, offsets[document + 1]):
            known = known_name(name[element], small)
            if element == first:
                node = np.int64(0 if known == root else NONE)
            else:
                node = np.int64(child[nodes[parent[element]], known])
            nodes[element] = node
            if node < 0:
                is_known[document] = False
                break
            marks[document, node >> 6] |= np.uint64(1) << (np.uint64(node) & LOW)
            begin = table[N_ATTRIBUTES, node]
            for k in range(begin, begin + span(table, N_ATTRIBUTES, node)):
                if attributes[2, k]:
                    for a in range(attribute_begin[element], attribute_begin[element + 1]):
                        if attribute_name[a] == attributes[0, k]:
                            bit = count + k
                            marks[document, bit >> 6] |= np.uint64(1) << (np.uint64(bit) & LOW)
