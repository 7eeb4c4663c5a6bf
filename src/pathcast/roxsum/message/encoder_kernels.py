# mypy: allow-untyped-defs, allow-untyped-calls
"""Writing messages: what follows what in skeletons, and values by column.

Skeletons: which token comes next depends mostly on the one before, so a token is written as its rank among the tokens
that ever follow its predecessor, most frequent first, into a stream of that predecessor's own. Where only one ever
follows, nothing is written. The first token of a document follows a token that is none, and so does its end.

Values: all values of a column together, as numbers in a dictionary where they repeat. Pairs of neighbours and equal
values have their numbers already (`token_numbers.py`), so nothing is hashed here.
"""

from pathcast.kernels import kernel

from ..token_kernels import NONE

PLAIN, NUMBERED, FIXED = 0, 1, 2
# What is known of a pair.
P_WIDTH, P_RANK, P_STREAM, P_COLUMN, P_COLUMNS = range(5)


@kernel("void(ro_i8[::1], ro_i8[::1], ro_i4[::1], i8[::1])")
def count_pairs(rows, token_begin, pair_of, counts):
    """How often each pair of neighbouring tokens comes."""
    for k in range(len(rows)):
        row = rows[k]
        for at in range(token_begin[row] + row, token_begin[row + 1] + row + 1):
            counts[pair_of[at]] += 1


@kernel(
    "void(ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1],"
    " ro_i4[:, ::1], i8[::1], i8[::1], u1[::1], i8[::1], i4[::1], i4[::1])"
)
def write_streams(
    rows, token_begin, pair_of, value_begin, value_start, value_length, numbers,
    pairs, stream_at, column_at, streams, sorted_start, sorted_length, sorted_number,
):  # fmt: skip
    """Write ranks into the streams and sort the values by column.

    `pairs` has for each pair the bytes of a rank, the rank, the stream, and the column of the value that follows.
    """
    for k in range(len(rows)):
        row = rows[k]
        value = value_begin[row]
        for t in range(token_begin[row] + row, token_begin[row + 1] + row + 1):
            pair = pair_of[t]
            width, column = pairs[pair, P_WIDTH], pairs[pair, P_COLUMN]
            if width:
                rank, stream = pairs[pair, P_RANK], pairs[pair, P_STREAM]
                at = stream_at[stream]
                for _ in range(width):
                    streams[at] = rank & 255
                    rank >>= 8
                    at += 1
                stream_at[stream] = at
            if column >= 0:
                place = column_at[column]
                sorted_start[place], sorted_length[place] = value_start[value], value_length[value]
                sorted_number[place] = numbers[value]
                column_at[column] = place + 1
                value += 1


@kernel("void(ro_i8[::1], ro_i4[::1], i4[::1], ro_i8[::1], i4[::1], b1[::1], i8[::1], i8[::1], i8[::1])")
def renumber_values(begin, lengths, numbers, base, own, is_first, distinct, distinct_bytes, fixed):
    """Number the values of each column by their first appearance, in place of the numbers that all parts share.

    `base` is where a column's values have their own numbers in `own` (-1: none yet), `NONE` for a column without
    numbers, which then has `distinct` `NONE`; `fixed` is the length that all values of a column have.
    """
    for column in range(len(begin) - 1):
        first, last = begin[column], begin[column + 1]
        count, total = 0, 0
        length = lengths[first] if last > first else NONE
        for k in range(first, last):
            if lengths[k] != length:
                length = NONE
                break
        fixed[column] = length
        if base[column] == NONE:
            for k in range(first, last):
                is_first[k] = False
            distinct[column] = NONE
            continue
        for k in range(first, last):
            place = base[column] + numbers[k]
            fresh = own[place] == NONE
            if fresh:
                own[place] = count
                count += 1
                total += lengths[k]
            is_first[k] = fresh
            numbers[k] = own[place]
        distinct[column] = count
        distinct_bytes[column] = total


@kernel(
    "void(ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_u1[::1], ro_i4[::1], ro_b1[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i8[::1], u1[::1], u1[::1])"
)
def write_columns(begin, starts, lengths, pool, numbers, is_first, codecs, texts_at, widths, numbers_at, texts, out):
    """Write the columns: texts (values or dictionaries) from `texts_at`, numbers of `widths` bytes from `numbers_at`.

    A text ends with a zero byte, which no document has. Numbers are written low bytes first, then the high ones. Values
    of one length are written first bytes first.
    """
    for column in range(len(begin) - 1):
        first, last = begin[column], begin[column + 1]
        at, codec = texts_at[column], codecs[column]
        if codec == FIXED:
            count = last - first
            for k in range(first, last):
                for byte in range(lengths[k]):
                    texts[at + byte * count + k - first] = pool[starts[k] + byte]
            continue
        for k in range(first, last):
            if codec == PLAIN or is_first[k]:
                for p in range(starts[k], starts[k] + lengths[k]):
                    texts[at] = pool[p]
                    at += 1
                texts[at] = 0
                at += 1
        at = numbers_at[column]
        for byte in range(widths[column]):
            for k in range(first, last):
                out[at] = numbers[k] >> 8 * byte & 255
                at += 1
