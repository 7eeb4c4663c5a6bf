# mypy: allow-untyped-defs, allow-untyped-calls
"""Array layout: the arrays that the scanner reads and writes, and their rows."""

from typing import NamedTuple

from pathcast.kernels import Int32s, Int64s, Matrix, UInt8s, UInt32s, Writable

OK, ASK = 0, 1

# Rows of the element table, of the attribute and text tables.
E_NAME, E_PARENT, E_DEPTH, E_END, E_POSITION, E_ATTRIBUTES, E_TEXT_BEGIN, E_TEXT_END, E_ROWS = range(9)
A_NAME, A_LENGTH, A_ROWS = range(3)
T_PARENT, T_LENGTH, T_ROWS = range(3)
# Rows of the stack of open elements, of names that wait for the end of their tag, of namespace bindings.
S_ELEMENT, S_NAME, S_NAME_END, S_BINDINGS, S_ROWS = range(5)
W_NAME, W_COLON, W_NAME_END, W_ROWS = range(4)
B_PREFIX, B_PREFIX_END, B_URI, B_URI_END, B_ROWS = range(5)
MAX_BINDINGS = 64
# Namespaces with more bytes are passed to expat, which may reject them.
LONGEST_NAMESPACE = 16384

# `counts`: what a scan has written so far, the stamp of the last element, whether a name found no place among others
# (crowded) or no room in the table (full), and the number of names with which a document has too many. Of the current
# document: a bound on its different prefixes, and how many bindings it has had in scope at once.
N_ELEMENTS, N_ATTRIBUTES, N_TEXTS, N_ARENA, N_NAMES, N_NAME_BYTES, N_STAMP, N_CROWDED, N_FULL, N_MOST = range(10)
N_PREFIXES, N_BINDINGS = range(10, 12)
# Of the index of structural places: where it begins, how many places it has, and the first that was not visited.
N_INDEX_BEGIN, N_PLACES, N_PLACE, N_COUNTS = range(12, 16)
# `limits`.
L_DEPTH, L_SIZE, L_ATTRIBUTES, L_NAME, L_NAMES, L_COUNT = range(6)


class ScanRows(NamedTuple):
    """The output of a scan: elements, attributes and text nodes, where values start, and decoded values."""

    elements: Writable[Matrix[Int32s]]
    attributes: Writable[Matrix[Int32s]]
    attribute_starts: Writable[Int64s]
    texts: Writable[Matrix[Int32s]]
    text_starts: Writable[Int64s]
    arena: Writable[UInt8s]


class ScanScratch(NamedTuple):
    """Working memory of a scan: `stamps` has the last tag with each name, `spelling` room for one name.

    `places` is an index of structural places (`structural_byte_index_kernels.py`).
    """

    counts: Writable[Int64s]
    stamps: Writable[Int64s]
    stack: Writable[Matrix[Int64s]]
    waiting: Writable[Matrix[Int64s]]
    bindings: Writable[Matrix[Int64s]]
    spelling: Writable[UInt8s]
    places: Writable[UInt32s]
