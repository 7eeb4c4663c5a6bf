# mypy: allow-untyped-defs, allow-untyped-calls
"""Writing the rows of entries: ids or subscribers of whole batches."""

import numpy as np

from pathcast.kernels import Bools, Int32s, Int64s, Writable, kernel, part

from ..arrays.bitset_kernels import mark, mark_with_summary, read_few_marks, read_marks
from .subscriptions_by_pattern_kernels import DocumentEntries


@kernel("int64(ro_i8[::1], ro_i4[::1], ro_i8[::1], i8[::1])")
def measure_rows(offsets, entries, begin, out_offsets):
    """Compute the offsets of each document's rows; return their total number."""
    total = 0
    for document in range(len(offsets) - 1):
        for index in range(offsets[document], offsets[document + 1]):
            entry = entries[index]
            total += begin[entry + 1] - begin[entry]
        out_offsets[document + 1] = total
    return total


@kernel("void(ro_i4[::1], ro_i8[::1], ro_i4[::1], i4[::1])")
def write_rows(entries, begin, values, out):
    """The values of all rows of these entries, one after the other."""
    written = 0
    for index in range(len(entries)):
        entry = entries[index]
        for row in range(begin[entry], begin[entry + 1]):
            out[written] = values[row]
            written += 1


@kernel("int64(ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], u8[::1], i8[::1], i4[::1], int64)", late=True)
def distinct_rows(offsets, entries, begin, values, marks, out_offsets, out, first):
    """For each document from `first` on the distinct values of its entries' rows, ascending; `marks` is all zero.

    Returns the first document whose values do not fit, or the number of documents.
    """
    written = out_offsets[first]
    for document in range(first, len(offsets) - 1):
        total = 0
        for index in range(offsets[document], offsets[document + 1]):
            total += begin[entries[index] + 1] - begin[entries[index]]
        if written + min(total, 64 * len(marks)) + 8 > len(out):
            return document
        for index in range(offsets[document], offsets[document + 1]):
            for row in range(begin[entries[index]], begin[entries[index] + 1]):
                mark(marks, values[row])
        written = read_marks(marks, out, written)
        out_offsets[document + 1] = written
    return len(offsets) - 1


@kernel("void(ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_b1[::1], u8[::1], u8[::1], i8[::1], i4[::1])")
def merge_entries(offsets, entries, more_offsets, more, holding, marks, summary, out_offsets, out):
    """Each document's entries and those of `more` that hold, ascending; `out` has room for all and 8 more."""
    written = np.int64(0)
    for document in range(len(offsets) - 1):
        for index in range(offsets[document], offsets[document + 1]):
            mark_with_summary(marks, summary, entries[index])
        for index in range(more_offsets[document], more_offsets[document + 1]):
            if holding[index]:
                mark_with_summary(marks, summary, more[index])
        written = read_few_marks(marks, summary, out, written)
        out_offsets[document + 1] = written


@part
def copy_entries(found, document, out, written):
    """Append the entries of a document; return how many are written now."""
    for index in range(found.offsets[document], found.offsets[document + 1]):
        out[written] = found.entries[index]
        written += 1
    return written


@kernel
def merge_joined(
    paths: DocumentEntries,
    joined: DocumentEntries,
    twigs: DocumentEntries,
    candidates: DocumentEntries,
    holding: Bools,
    unknown: Bools,
    out_offsets: Writable[Int64s],
    out: Writable[Int32s],
) -> int:
    """Each document's entries of `paths`, `joined` and `twigs`, and those of `candidates` that hold; return how many.

    All are different, except in an `unknown` document: there the candidates include all joined and twig patterns.
    """
    written = np.int64(0)
    for document in range(len(paths.offsets) - 1):
        written = copy_entries(paths, document, out, written)
        if not unknown[document]:
            written = copy_entries(joined, document, out, written)
            written = copy_entries(twigs, document, out, written)
        for index in range(candidates.offsets[document], candidates.offsets[document + 1]):
            if holding[index]:
                out[written] = candidates.entries[index]
                written += 1
        out_offsets[document + 1] = written
    return int(written)


@kernel("void(ro_i4[::1], ro_i4[::1], i4[::1])")
def pick(places, values, out):
    """The values at these places."""
    for index in range(len(places)):
        out[index] = values[np.uint32(places[index])]


@kernel("void(ro_i8[::1], ro_i4[::1], u8[::1], u8[::1], i4[::1])", late=True)
def order_ids(offsets, ids, marks, summary, out):
    """Each document's ids, which are distinct, ascending; marks are all zero, `out` has room for all and 8 more."""
    for document in range(len(offsets) - 1):
        for index in range(offsets[document], offsets[document + 1]):
            mark_with_summary(marks, summary, ids[index])
        read_few_marks(marks, summary, out, offsets[document])
