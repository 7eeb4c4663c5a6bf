# mypy: allow-untyped-defs, allow-untyped-calls
"""Contents for kernels: tokens and values written out as documents, and values brought together."""

from pathcast.kernels import kernel


@kernel(
    "int64(ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i8[::1], ro_u1[::1], ro_i4[::1], ro_u1[::1], u1[::1])"
)
def write_documents(
    rows, token_begin, tokens, value_begin, value_start, value_length, token_offsets, stored, token_column, pool, out
):
    """Write documents one after the other; how many bytes."""
    at = 0
    for k in range(len(rows)):
        row = rows[k]
        value = value_begin[row]
        for t in range(token_begin[row], token_begin[row + 1]):
            token = tokens[t]
            for p in range(token_offsets[token], token_offsets[token + 1]):
                out[at] = stored[p]
                at += 1
            if token_column[token] >= 0:
                begin = value_start[value]
                for p in range(begin, begin + value_length[value]):
                    out[at] = pool[p]
                    at += 1
                value += 1
    return at


@kernel("int64(ro_i8[::1], ro_i4[::1], ro_u1[::1], i8[::1], u1[::1])")
def pack_values(value_start, value_length, pool, starts, out):
    """Copy values one after the other, and where each begins; how many bytes."""
    at = 0
    for value in range(len(value_start)):
        begin = value_start[value]
        starts[value] = at
        for p in range(begin, begin + value_length[value]):
            out[at] = pool[p]
            at += 1
    return at
