# mypy: allow-untyped-defs, allow-untyped-calls
"""Floors: the least that reading a document and writing its matches can cost."""

from pathcast.kernels import kernel


@kernel("int64(ro_u1[::1])")
def sum_bytes(data):
    """Sum the bytes one by one.

    The loop would stop at 255, which does not occur in UTF-8: so the compiler cannot vectorise it, just as a reader
    that decides at each byte cannot be vectorised.
    """
    total = 0
    for place in range(len(data)):
        if data[place] == 255:
            break
        total += data[place]
    return total


@kernel("void(ro_i4[::1], i4[::1])")
def write_ids(ids, out):
    """Write every matched id once."""
    for place in range(len(ids)):
        out[place] = ids[place]
