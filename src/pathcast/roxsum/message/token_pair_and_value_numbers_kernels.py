# mypy: allow-untyped-defs, allow-untyped-calls
"""Numbers of pairs and values: pairs of neighbouring tokens, and equal values of a column, get one number each.

Both are hash tables with open addressing. A column whose values hardly repeat is dropped after some hundred of them,
and so is one with `MAX_DISTINCT` different values: its values have no numbers, and need no more hashing.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, UInt8s, Writable, kernel, part
from pathcast.kernels.hash_table_kernels import MIX_A, find_pair, first_slot, free_slot, next_slot, slot_mask

from ..document_content_kernels import TokenRows, ValueRows
from ..token_table_kernels import NONE, hash_bytes, same

HALF = np.uint64(32)
MAX_PROBES = 64
MAX_DISTINCT = 1 << 16
COLUMN_BITS = 24
COLUMNS = (1 << COLUMN_BITS) - 1
# After this many mostly different values of a column, numbers do not pay.
TRIED = 512


@part
def pair_slot(slots, pair_before, pair_after, before, after):
    """The slot of a pair of tokens; it holds the pair's number, or `NONE` where that would go."""
    mixed = (np.uint64(before + 1) * MIX_A + np.uint64(after + 1)) * MIX_A
    return find_pair(slots, mixed ^ mixed >> HALF, (before, after), (pair_before, pair_after))[1]


@kernel
def number_pairs(
    rows: Int64s,
    first: int,
    token_begin: Int64s,
    tokens: Int32s,
    slots: Writable[Int32s],
    pair_before: Writable[Int32s],
    pair_after: Writable[Int32s],
    known: Writable[Int64s],
    pair_of: Writable[Int32s],
) -> int:
    """Number the pairs of the rows from the `first` on; how many rows it did. `known[0]` pairs have numbers.

    The tokens of a row, and then its end, have their pairs in `pair_of` from `token_begin[row] + row` on. It stops
    before a row for which the tables may be too small: at most half of the slots are used.
    """
    room = min(len(pair_before), len(slots) >> 1)
    pairs = known[0]
    for k in range(first, len(rows)):
        row = rows[k]
        begin, end = token_begin[row], token_begin[row + 1]
        if pairs + (end - begin) + 1 > room:
            return k
        before = np.int32(NONE)
        for t in range(begin, end + 1):
            after = tokens[t] if t < end else np.int32(NONE)
            slot = pair_slot(slots, pair_before, pair_after, before, after)
            pair = np.int32(slots[slot])
            if pair == NONE:
                pair = np.int32(pairs)
                slots[slot], pair_before[pair], pair_after[pair] = pair, before, after
                pairs += 1
            pair_of[t + row] = pair
            before = after
        known[0] = pairs
    return len(rows)


@kernel
def place_pairs(pair_before: Int32s, pair_after: Int32s, pairs: int, slots: Writable[Int32s]) -> None:
    """Enter known pairs into larger slots."""
    for pair in range(pairs):
        slots[pair_slot(slots, pair_before, pair_after, pair_before[pair], pair_after[pair])] = np.int32(pair)


class ValueNumbers(NamedTuple):
    """Numbers of values; by column how many values were seen and how many different ones there are.

    `entered[0]` slots are used.
    """

    entered: Writable[Int64s]
    seen: Writable[Int64s]
    distinct: Writable[Int64s]
    numbers: Writable[Int32s]


@kernel
def number_values(
    rows: Int64s,
    first: int,
    tokens: TokenRows,
    values: ValueRows,
    token_column: Int32s,
    pool: UInt8s,
    slots: Writable[Int64s],
    found: ValueNumbers,
) -> int:
    """Number the different values of each column as they come, in the rows from the `first` on; how many rows it did.

    `distinct` is how many a column has, `NONE` where numbers don't pay. A slot holds the place of the first such value
    and below that its column (`COLUMN_BITS`). It stops before a row for which half of the
    slots may be too few.
    """
    entered, seen, distinct, numbers = found
    mask = slot_mask(slots)
    for k in range(first, len(rows)):
        row = rows[k]
        value = values.begins[row]
        if 2 * (entered[0] + values.begins[row + 1] - value) > len(slots):
            return k
        for t in range(tokens.begins[row], tokens.begins[row + 1]):
            column = np.int64(token_column[tokens.numbers[t]])
            if column < 0:
                continue
            here, value = value, value + 1
            numbers[here] = NONE
            if distinct[column] == NONE:
                continue
            seen[column] += 1
            begin, length = values.starts[here], values.lengths[here]
            slot = first_slot(hash_bytes(pool, begin, begin + length, column), mask)
            probes, known = 0, np.int64(NONE)
            while slots[slot] != NONE and probes <= MAX_PROBES:
                other = slots[slot] >> COLUMN_BITS
                if (
                    slots[slot] & COLUMNS == column
                    and values.lengths[other] == length
                    and same(pool, begin, begin + length, pool, values.starts[other])
                ):
                    known = np.int64(other)
                    break
                slot = next_slot(slot, mask)
                probes += 1
            if known != NONE:
                numbers[here] = numbers[known]
                continue
            count = distinct[column]
            if probes > MAX_PROBES or count >= MAX_DISTINCT or (seen[column] >= TRIED and 4 * count > 3 * seen[column]):
                distinct[column] = NONE
                continue
            slots[slot] = here << COLUMN_BITS | column
            numbers[here] = np.int32(count)
            distinct[column] = count + 1
            entered[0] += 1
    return len(rows)


@kernel
def place_values(old: Int64s, value_start: Int64s, value_length: Int32s, pool: UInt8s, slots: Writable[Int64s]) -> None:
    """Enter known values into larger slots."""
    for k in range(len(old)):
        if old[k] != NONE:
            value = old[k] >> COLUMN_BITS
            begin = value_start[value]
            hashed = hash_bytes(pool, begin, begin + value_length[value], old[k] & COLUMNS)
            slots[free_slot(slots, hashed)] = old[k]
