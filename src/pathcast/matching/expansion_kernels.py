# mypy: allow-untyped-defs, allow-untyped-calls
"""Writing out the rows behind entries: ids or subscribers of whole batches."""

from ..kernels import kernel


@kernel("int64(ro_i8[::1], ro_i4[::1], ro_i8[::1], i8[::1])")
def measure_rows(offsets, entries, begin, out_offsets):
    """Where each document's rows will lie; how many there are in all."""
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
