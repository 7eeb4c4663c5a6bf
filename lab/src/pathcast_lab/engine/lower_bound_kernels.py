# mypy: allow-untyped-defs, allow-untyped-calls
"""Floors: the least that reading a document and writing its matches can cost."""

from pathcast.kernels import kernel


@kernel("int64(ro_u1[::1])")
def sum_bytes(data):
    """Sum the bytes one by one.

    It would stop at 255, which UTF-8 never has: so the compiler can't take many at once, as no reader can that has to
    decide at each byte.
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
