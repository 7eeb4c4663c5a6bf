# mypy: allow-untyped-defs, allow-untyped-calls
"""Writing messages: what follows what in skeletons, and values by column.

Skeletons: which token comes next depends mostly on the one before, so a token is written as its rank among the tokens
that ever follow its predecessor, most frequent first, into a stream of that predecessor's own. Where only one ever
follows, nothing is written. The first token of a document follows a token that is none, and so does its end.

Values: all values of a column together, as numbers in a dictionary where they repeat.
"""

import numpy as np

from ..kernels import kernel, part
from .token_kernels import MIX, NONE, hash_bytes, same

HALF = np.uint64(32)
MAX_PROBES = 64
MAX_DISTINCT = 1 << 16
PLAIN, NUMBERED, FIXED = 0, 1, 2


@part
def pair_slot(keys, key):
    """The slot of a pair of tokens; it holds the key, or `NONE` where that would go."""
    mask = np.uint64(len(keys) - 1)
    mixed = np.uint64(key) * MIX
    slot = (mixed ^ mixed >> HALF) & mask
    while keys[slot] != NONE and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel(
    "int64(ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], int64,"
    " i8[::1], i8[::1], i8[::1], i8[::1], i8[::1])"
)
def survey(
    rows, token_begin, tokens, value_begin, value_length, token_column, none,
    keys, pair_counts, token_counts, column_counts, column_bytes,
):  # fmt: skip
    """Count tokens, pairs of tokens, values; how many different pairs, or `NONE` when they do not fit into `keys`.

    `none` is the number that stands for no token.
    """
    pairs = 0
    for k in range(len(rows)):
        row = rows[k]
        value = value_begin[row]
        before = none
        for t in range(token_begin[row], token_begin[row + 1] + 1):
            token = none
            if t < token_begin[row + 1]:
                token = np.int64(tokens[t])
                token_counts[token] += 1
                column = token_column[token]
                if column >= 0:
                    column_counts[column] += 1
                    column_bytes[column] += value_length[value]
                    value += 1
            key = before * (none + 1) + token
            slot = pair_slot(keys, key)
            if keys[slot] == NONE:
                if 2 * pairs >= len(keys):
                    return np.int64(NONE)
                keys[slot] = key
                pairs += 1
            pair_counts[slot] += 1
            before = token
    return np.int64(pairs)


@kernel(
    "void(ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], int64,"
    " ro_i8[::1], ro_i4[::1], ro_i4[::1], i8[::1], i8[::1], u1[::1], i8[::1], i4[::1])"
)
def write_streams(
    rows, token_begin, tokens, value_begin, value_start, value_length, token_column, none,
    keys, ranks, widths, stream_at, column_at, streams, sorted_start, sorted_length,
):  # fmt: skip
    """Write ranks into the streams (of `widths` bytes each, from `stream_at` on) and sort the values by column."""
    for k in range(len(rows)):
        row = rows[k]
        value = value_begin[row]
        before = none
        for t in range(token_begin[row], token_begin[row + 1] + 1):
            token = none
            if t < token_begin[row + 1]:
                token = np.int64(tokens[t])
                column = token_column[token]
                if column >= 0:
                    place = column_at[column]
                    sorted_start[place] = value_start[value]
                    sorted_length[place] = value_length[value]
                    column_at[column] = place + 1
                    value += 1
            width = widths[before]
            if width:
                rank = ranks[pair_slot(keys, before * (none + 1) + token)]
                at = stream_at[before]
                for _ in range(width):
                    streams[at] = rank & 255
                    rank >>= 8
                    at += 1
                stream_at[before] = at
            before = token


@kernel("void(ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_u1[::1], i4[::1], i4[::1], b1[::1], i8[::1], i8[::1], i8[::1])")
def number_values(begin, starts, lengths, pool, slots, numbers, is_first, distinct, distinct_bytes, fixed):
    """Number the different values of each column as they come.

    `distinct` is `NONE` for a column where that does not pay; `fixed` is the length that all values of a column have.
    """
    for column in range(len(begin) - 1):
        first, last = begin[column], begin[column + 1]
        size = 16
        while size < 2 * min(last - first, MAX_DISTINCT):
            size *= 2
        for slot in range(size):
            slots[slot] = NONE
        mask = np.uint64(size - 1)
        count, total, pays = 0, 0, True
        length = np.int64(lengths[first]) if last > first else np.int64(NONE)
        for k in range(first, last):
            if lengths[k] != length:
                length = np.int64(NONE)
            is_first[k] = False
            if not pays:
                continue
            slot = hash_bytes(pool, starts[k], starts[k] + lengths[k], 0) & mask
            probes = 0
            while True:
                other = slots[slot]
                if other == NONE or (
                    lengths[other] == lengths[k] and same(pool, starts[k], starts[k] + lengths[k], pool, starts[other])
                ):
                    break
                slot = (slot + np.uint64(1)) & mask
                probes += 1
                if probes > MAX_PROBES:
                    pays = False
                    break
            if not pays:
                continue
            if slots[slot] == NONE:
                slots[slot] = np.int32(k)
                numbers[k] = count
                is_first[k] = True
                count += 1
                total += lengths[k]
                seen = k - first + 1
                if count >= MAX_DISTINCT or (seen >= 512 and 4 * count > 3 * seen):
                    pays = False
            else:
                numbers[k] = numbers[slots[slot]]
        distinct[column] = count if pays else NONE
        distinct_bytes[column] = total
        fixed[column] = length


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
