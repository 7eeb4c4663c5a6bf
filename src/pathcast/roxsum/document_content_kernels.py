# mypy: allow-untyped-defs, allow-untyped-calls
"""Contents for kernels: write tokens and values as documents, and pack values."""

from typing import NamedTuple

from pathcast.kernels import Int32s, Int64s, UInt8s, Writable, kernel


class TokenRows(NamedTuple):
    """The tokens of documents: those of row `r` are `numbers[begins[r] : begins[r + 1]]`."""

    begins: Int64s
    numbers: Int32s


class ValueRows(NamedTuple):
    """The values of documents: those of row `r` are `begins[r] : begins[r + 1]`, each a start and length in a pool."""

    begins: Int64s
    starts: Int64s
    lengths: Int32s


class TokenBytes(NamedTuple):
    """The bytes of tokens, `stored[offsets[t] : offsets[t + 1]]`, and the column of the value after it (-1: none)."""

    offsets: Int64s
    stored: UInt8s
    columns: Int32s


@kernel
def write_documents(
    rows: Int64s, tokens: TokenRows, values: ValueRows, spelled: TokenBytes, pool: UInt8s, out: Writable[UInt8s]
) -> int:
    """Write documents consecutively; return the number of bytes."""
    at = 0
    for k in range(len(rows)):
        row = rows[k]
        value = values.begins[row]
        for t in range(tokens.begins[row], tokens.begins[row + 1]):
            token = tokens.numbers[t]
            for p in range(spelled.offsets[token], spelled.offsets[token + 1]):
                out[at] = spelled.stored[p]
                at += 1
            if spelled.columns[token] >= 0:
                begin = values.starts[value]
                for p in range(begin, begin + values.lengths[value]):
                    out[at] = pool[p]
                    at += 1
                value += 1
    return at


@kernel
def pack_values(
    value_start: Int64s, value_length: Int32s, pool: UInt8s, starts: Writable[Int64s], out: Writable[UInt8s]
) -> int:
    """Copy values consecutively, and their offsets; return the number of bytes."""
    at = 0
    for value in range(len(value_start)):
        begin = value_start[value]
        starts[value] = at
        for p in range(begin, begin + value_length[value]):
            out[at] = pool[p]
            at += 1
    return at
