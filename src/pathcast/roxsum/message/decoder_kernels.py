# mypy: allow-untyped-defs, allow-untyped-calls
"""Reading messages: ranks back to tokens, columns back to values.

Invariant: whatever the arrays hold, nothing is read or written outside them; what does not add up gives `WRONG`.
"""

import numpy as np

from pathcast.kernels import kernel

from .encoder_kernels import FIXED, NUMBERED

WRONG = -1


@kernel("int64(ro_i8[::1], ro_i4[::1], ro_i4[::1], i8[::1], ro_i8[::1], ro_u1[::1], int64, i8[::1], i4[::1])")
def read_tokens(follow_begin, followers, widths, at, stop, streams, none, token_begin, tokens):
    """The tokens of the documents; how many, or `WRONG`.

    Token `t` is followed by one of `followers[follow_begin[t] : follow_begin[t + 1]]`; by which, its stream says.
    """
    count = 0
    for index in range(len(token_begin) - 1):
        before = none
        while True:
            first = follow_begin[before]
            rank, width = np.int64(0), widths[before]
            if first == follow_begin[before + 1]:
                return np.int64(WRONG)
            if width:
                place = at[before]
                if place + width > stop[before]:
                    return np.int64(WRONG)
                for byte in range(width):
                    rank |= np.int64(streams[place + byte]) << 8 * byte
                at[before] = place + width
                if first + rank >= follow_begin[before + 1]:
                    return np.int64(WRONG)
            token = np.int64(followers[first + rank])
            if token == none:
                break
            if count >= len(tokens):
                return np.int64(WRONG)
            tokens[count] = token
            count += 1
            before = token
        if count == token_begin[index]:
            return np.int64(WRONG)
        token_begin[index + 1] = count
    return np.int64(count)


@kernel(
    "int64(ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1], ro_u1[::1], ro_i4[::1], ro_i8[::1], ro_u1[::1],"
    " u1[::1], i8[::1], i4[::1], i8[::1])"
)
def read_columns(begin, codecs, fixed, distinct, texts, widths, numbers_at, numbers, pool, starts, lengths, entries):
    """Where each value stands in the pool, which takes the texts as they are, but values of one length in order.

    Gives how many bytes of texts there were, or `WRONG`.
    """
    at = np.int64(0)
    for column in range(len(begin) - 1):
        first, codec = begin[column], codecs[column]
        count = begin[column + 1] - first
        if codec == FIXED:
            length = fixed[column]
            if length > 0 and count > (len(texts) - at) // length:
                return np.int64(WRONG)
            for k in range(count):
                for byte in range(length):
                    pool[at + k * length + byte] = texts[at + byte * count + k]
                starts[first + k] = at + k * length
                lengths[first + k] = length
            at += count * length
            continue
        wanted = distinct[column] if codec == NUMBERED else count
        for found in range(wanted):
            begun = at
            while at < len(texts) and texts[at]:
                pool[at] = texts[at]
                at += 1
            if at >= len(texts):
                return np.int64(WRONG)
            if codec == NUMBERED:
                entries[2 * found], entries[2 * found + 1] = begun, at - begun
            else:
                starts[first + found] = begun
                lengths[first + found] = at - begun
            at += 1
        if codec == NUMBERED:
            place, width = numbers_at[column], widths[column]
            for k in range(count):
                number = np.int64(0)
                for byte in range(width):
                    number |= np.int64(numbers[place + byte * count + k]) << 8 * byte
                if number >= wanted:
                    return np.int64(WRONG)
                starts[first + k] = entries[2 * number]
                lengths[first + k] = entries[2 * number + 1]
    return at


@kernel(
    "void(ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], i8[::1], ro_i8[::1], ro_i4[::1],"
    " i8[::1], i8[::1], i4[::1], i8[::1])"
)
def deal_values(
    token_begin, tokens, token_column, token_offsets, column_at, starts, lengths,
    value_begin, value_start, value_length, sizes,
):  # fmt: skip
    """Give the values of the columns to the documents, in order; the columns have as many as the documents ask for."""
    count = 0
    for index in range(len(token_begin) - 1):
        size = np.int64(0)
        for t in range(token_begin[index], token_begin[index + 1]):
            token = tokens[t]
            size += token_offsets[token + 1] - token_offsets[token]
            column = token_column[token]
            if column >= 0:
                place = column_at[column]
                value_start[count] = starts[place]
                value_length[count] = lengths[place]
                size += lengths[place]
                count += 1
                column_at[column] = place + 1
        value_begin[index + 1] = count
        sizes[index] = size
