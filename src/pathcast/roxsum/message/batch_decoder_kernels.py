# mypy: allow-untyped-defs, allow-untyped-calls
"""Reading messages: ranks back to tokens, columns back to values.

Invariant: whatever the arrays hold, nothing is read or written outside them; inconsistent input returns `WRONG`.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, UInt8s, Writable, kernel

from ..document_content_kernels import TokenRows
from .batch_encoder_kernels import FIXED, NUMBERED

WRONG = -1


class StoredColumns(NamedTuple):
    """By column: first value, how it is written, the length of all values, number of different ones; their numbers.

    A number has `widths` bytes; those of a column begin at `numbers_at`.
    """

    begins: Int64s
    codecs: Int32s
    lengths: Int64s
    distinct: Int64s
    widths: Int32s
    numbers_at: Int64s


class ReadValues(NamedTuple):
    """The values of documents, to be written: where each document's begin, start and length of each in the pool."""

    begins: Writable[Int64s]
    starts: Writable[Int64s]
    lengths: Writable[Int32s]


@kernel
def read_tokens(
    follow_begin: Int64s,
    followers: Int32s,
    widths: Int32s,
    at: Writable[Int64s],
    stop: Int64s,
    streams: UInt8s,
    none: int,
    token_begin: Writable[Int64s],
    tokens: Writable[Int32s],
) -> int:
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
                return WRONG
            if width:
                place = at[before]
                if place + width > stop[before]:
                    return WRONG
                for byte in range(width):
                    rank |= np.int64(streams[place + byte]) << 8 * byte
                at[before] = place + width
                if first + rank >= follow_begin[before + 1]:
                    return WRONG
            token = int(followers[first + rank])
            if token == none:
                break
            if count >= len(tokens):
                return WRONG
            tokens[count] = token
            count += 1
            before = token
        if count == token_begin[index]:
            return WRONG
        token_begin[index + 1] = count
    return count


@kernel
def read_columns(
    columns: StoredColumns,
    texts: UInt8s,
    numbers: UInt8s,
    pool: Writable[UInt8s],
    starts: Writable[Int64s],
    lengths: Writable[Int32s],
    entries: Writable[Int64s],
) -> int:
    """Where each value stands in the pool, which takes the texts as they are, but values of one length in order.

    Gives how many bytes of texts there were, or `WRONG`.
    """
    begin, codecs = columns.begins, columns.codecs
    at = np.int64(0)
    for column in range(len(begin) - 1):
        first, codec = begin[column], codecs[column]
        count = begin[column + 1] - first
        if codec == FIXED:
            length = columns.lengths[column]
            if length > 0 and count > (len(texts) - at) // length:
                return WRONG
            for k in range(count):
                for byte in range(length):
                    pool[at + k * length + byte] = texts[at + byte * count + k]
                starts[first + k] = at + k * length
                lengths[first + k] = length
            at += count * length
            continue
        wanted = columns.distinct[column] if codec == NUMBERED else count
        for found in range(wanted):
            begun = at
            while at < len(texts) and texts[at]:
                pool[at] = texts[at]
                at += 1
            if at >= len(texts):
                return WRONG
            if codec == NUMBERED:
                entries[2 * found], entries[2 * found + 1] = begun, at - begun
            else:
                starts[first + found] = begun
                lengths[first + found] = at - begun
            at += 1
        if codec == NUMBERED:
            place, width = columns.numbers_at[column], columns.widths[column]
            for k in range(count):
                number = np.int64(0)
                for byte in range(width):
                    number |= np.int64(numbers[place + byte * count + k]) << 8 * byte
                if number >= wanted:
                    return WRONG
                starts[first + k] = entries[2 * number]
                lengths[first + k] = entries[2 * number + 1]
    return int(at)


@kernel
def deal_values(
    tokens: TokenRows,
    token_column: Int32s,
    token_offsets: Int64s,
    column_at: Writable[Int64s],
    starts: Int64s,
    lengths: Int32s,
    read: ReadValues,
    sizes: Writable[Int64s],
) -> None:
    """Give the values of the columns to the documents, in order; the columns have as many as the documents ask for."""
    count = 0
    for index in range(len(tokens.begins) - 1):
        size = np.int64(0)
        for t in range(tokens.begins[index], tokens.begins[index + 1]):
            token = tokens.numbers[t]
            size += token_offsets[token + 1] - token_offsets[token]
            column = token_column[token]
            if column >= 0:
                place = column_at[column]
                read.starts[count] = starts[place]
                read.lengths[count] = lengths[place]
                size += lengths[place]
                count += 1
                column_at[column] = place + 1
        read.begins[index + 1] = count
        sizes[index] = size
