# mypy: allow-untyped-defs, allow-untyped-calls
"""Writing messages: successors of tokens, and values by column.

Skeletons: which token comes next depends mostly on the one before, so a token is written as its rank among the tokens
that ever follow its predecessor, most frequent first, into a stream of that predecessor's own. Where only one ever
follows, nothing is written. The first token of a document follows a token that is none, and so does its end.

Values: all values of a column together, as numbers in a dictionary where they repeat. Pairs of neighbours and equal
values have their numbers already (`token_pair_and_value_numbers.py`), so nothing is hashed here.
"""

from typing import NamedTuple

from pathcast.kernels import Bools, Int32s, Int64s, Matrix, UInt8s, Writable, kernel

from ..document_content_kernels import ValueRows
from ..token_table_kernels import NONE

PLAIN, NUMBERED, FIXED = 0, 1, 2
# The fields of a pair.
P_WIDTH, P_RANK, P_STREAM, P_COLUMN, P_COLUMNS = range(5)


class SortedValues(NamedTuple):
    """Values by column: start and length in the pool, number among the different values of the column."""

    starts: Writable[Int64s]
    lengths: Writable[Int32s]
    numbers: Writable[Int32s]


class ColumnPlan(NamedTuple):
    """By column: how it is written, where its texts go, the bytes of a number and where numbers go."""

    codecs: Int32s
    texts_at: Int64s
    widths: Int32s
    numbers_at: Int64s


@kernel
def count_pairs(rows: Int64s, token_begin: Int64s, pair_of: Int32s, counts: Writable[Int64s]) -> None:
    """How often each pair of neighbouring tokens comes."""
    for k in range(len(rows)):
        row = rows[k]
        for at in range(token_begin[row] + row, token_begin[row + 1] + row + 1):
            counts[pair_of[at]] += 1


@kernel
def write_streams(
    rows: Int64s,
    token_begin: Int64s,
    pair_of: Int32s,
    values: ValueRows,
    numbers: Int32s,
    pairs: Matrix[Int32s],
    stream_at: Writable[Int64s],
    column_at: Writable[Int64s],
    streams: Writable[UInt8s],
    by_column: SortedValues,
) -> None:
    """Write ranks into the streams and sort the values by column.

    `pairs` has for each pair the bytes of a rank, the rank, the stream, and the column of the value that follows.
    """
    for k in range(len(rows)):
        row = rows[k]
        value = values.begins[row]
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
                by_column.starts[place], by_column.lengths[place] = values.starts[value], values.lengths[value]
                by_column.numbers[place] = numbers[value]
                column_at[column] = place + 1
                value += 1


@kernel
def renumber_values(
    begin: Int64s,
    lengths: Int32s,
    numbers: Writable[Int32s],
    base: Int64s,
    own: Writable[Int32s],
    is_first: Writable[Bools],
    distinct: Writable[Int64s],
    distinct_bytes: Writable[Int64s],
    fixed: Writable[Int64s],
) -> None:
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


@kernel
def write_columns(
    begin: Int64s,
    values: SortedValues,
    is_first: Bools,
    plan: ColumnPlan,
    pool: UInt8s,
    texts: Writable[UInt8s],
    out: Writable[UInt8s],
) -> None:
    """Write the columns: texts (values or dictionaries) from `texts_at`, numbers of `widths` bytes from `numbers_at`.

    A text ends with a zero byte, which no document has. Numbers are written low bytes first, then the high ones. Values
    of one length are written first bytes first.
    """
    starts, lengths = values.starts, values.lengths
    for column in range(len(begin) - 1):
        first, last = begin[column], begin[column + 1]
        at, codec = plan.texts_at[column], plan.codecs[column]
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
        at = plan.numbers_at[column]
        for byte in range(plan.widths[column]):
            for k in range(first, last):
                out[at] = values.numbers[k] >> 8 * byte & 255
                at += 1
