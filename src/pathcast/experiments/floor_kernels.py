# mypy: allow-untyped-defs, allow-untyped-calls
"""Floors: the least that reading a document and writing its matches can cost."""

from ..kernels import kernel


@kernel("int64(ro_u1[::1])")
def sum_bytes(data):
    """Look at every byte once."""
    total = 0
    for place in range(len(data)):
        total += data[place]
    return total


@kernel("void(ro_i4[::1], i4[::1])")
def write_ids(ids, out):
    """Write every matched id once."""
    for place in range(len(ids)):
        out[place] = ids[place]
