# mypy: allow-untyped-defs, allow-untyped-calls
"""Tokens and columns for kernels: hash tables from tokens and columns to their numbers.

After `MAX_PROBES` a search gives up and the document becomes raw, so that markup made to collide costs bounded time.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents.label_paths_kernels import edge_slot
from pathcast.kernels import Int32s, Int64s, Matrix, UInt8s, UInt64s, Writable, kernel, part, rare, word
from pathcast.kernels.hash_table_kernels import MIX_A, first_slot, free_slot, next_slot, slot_mask

NONE = -1
# Rows of what is known about a token, and its flags.
M_NODE, M_COLUMN, M_FLAGS, M_ROWS = range(4)
OPENS, CLOSES = 1, 2
# The tokens before a raw document, and the columns of such documents; the second is of those given as text.
RAW, RAW_TEXT = 0, 1
# Sorts of values; attributes are `K_ATTRIBUTE` + the number of their name.
K_RAW, K_RAW_TEXT, K_TEXT, K_COMMENT, K_INSTRUCTION, K_CDATA, K_ATTRIBUTE = -1, -2, 0, 1, 2, 3, 4
# `counts`: tokens and their bytes, columns, tokens and values written, what there was no room for.
N_TOKENS, N_TOKEN_BYTES, N_COLUMNS, N_OUT_TOKENS, N_OUT_VALUES, N_FULL, N_COUNTS = range(7)
MAX_PROBES = 64
GIVEN_UP = -2

HALF = np.uint64(32)


class TokenTable(NamedTuple):
    """Tokens by hash: `slots` has numbers; by number hash, `M_…` and bytes (`stored[offsets[t] : offsets[t + 1]]`)."""

    slots: Writable[Int32s]
    hashes: Writable[UInt64s]
    meta: Writable[Matrix[Int32s]]
    offsets: Writable[Int64s]
    stored: Writable[UInt8s]


class ColumnTable(NamedTuple):
    """Columns by hash: `slots` has their numbers; by number the kind of element and the sort of value."""

    slots: Writable[Int32s]
    nodes: Writable[Int32s]
    kinds: Writable[Int32s]


@part
def hash_bytes(data, begin, end, seed):
    """A hash of bytes."""
    mixed = np.uint64(seed) * MIX_A + np.uint64(end - begin)
    p = begin
    while p + 8 <= end:
        mixed = (mixed ^ word(data, p)) * MIX_A
        mixed ^= mixed >> HALF
        p += 8
    while p < end:
        mixed = (mixed ^ np.uint64(data[p])) * MIX_A
        p += 1
    return mixed ^ mixed >> HALF


@part
def same(one, p, end, other, q):
    """Whether `one[p:end]` stands in `other` at `q`."""
    while p < end:
        if one[p] != other[q]:
            return False
        p += 1
        q += 1
    return True


@rare
def token_number(data, begin, end, node, column, flags, table, counts):
    """The number of a token, assigned if it had none; `NONE` when there is no room, or `GIVEN_UP`."""
    slots, hashes, meta, offsets, stored = table
    seed = (np.int64(node) + 1) * 1_000_003 + (np.int64(column) + 1) * 4 + flags
    mixed = hash_bytes(data, begin, end, seed)
    mask = slot_mask(slots)
    slot = first_slot(mixed, mask)
    for _ in range(MAX_PROBES):
        token = slots[slot]
        if token == NONE:
            token = np.int32(counts[N_TOKENS])
            used = counts[N_TOKEN_BYTES]
            if token >= min(len(hashes), len(slots) >> 1) or used + (end - begin) > len(stored):
                return np.int64(NONE)
            for p in range(begin, end):
                stored[used] = data[p]
                used += 1
            slots[slot] = token
            hashes[token] = mixed
            meta[M_NODE, token], meta[M_COLUMN, token], meta[M_FLAGS, token] = node, column, flags
            offsets[token + 1] = used
            counts[N_TOKENS] += 1
            counts[N_TOKEN_BYTES] = used
            return np.int64(token)
        if (
            hashes[token] == mixed
            and offsets[token + 1] - offsets[token] == end - begin
            and meta[M_NODE, token] == node
            and meta[M_COLUMN, token] == column
            and meta[M_FLAGS, token] == flags
            and same(data, begin, end, stored, offsets[token])
        ):
            return np.int64(token)
        slot = next_slot(slot, mask)
    return np.int64(GIVEN_UP)


@rare
def column_number(node, kind, table, counts):
    """The number of a column, assigned if it had none; `NONE` when there is no room."""
    slot = edge_slot(table.slots, table.nodes, table.kinds, node, kind)
    column = table.slots[slot]
    if column == NONE:
        column = np.int32(counts[N_COLUMNS])
        if column >= min(len(table.nodes), len(table.slots) >> 1):
            return np.int64(NONE)
        table.slots[slot] = column
        table.nodes[column], table.kinds[column] = node, kind
        counts[N_COLUMNS] += 1
    return np.int64(column)


@kernel
def intern_tokens(
    data: UInt8s,
    edges: Int64s,
    wanted: Matrix[Int32s],
    table: TokenTable,
    counts: Writable[Int64s],
    numbers: Writable[Int32s],
) -> int:
    """Enter tokens: bytes `data[edges[k] : edges[k + 1]]`, the rest in column `k` of `wanted`; how many found room.

    A token whose probes were given up gets `GIVEN_UP`.
    """
    for k in range(len(numbers)):
        node, column, flags = wanted[M_NODE, k], wanted[M_COLUMN, k], wanted[M_FLAGS, k]
        number = token_number(data, edges[k], edges[k + 1], node, column, flags, table, counts)
        if number == NONE:
            return k
        numbers[k] = number
    return len(numbers)


@kernel
def place_tokens(hashes: UInt64s, count: int, slots: Writable[Int32s]) -> None:
    """Enter known tokens into larger slots."""
    for token in range(count):
        slots[free_slot(slots, hashes[token])] = np.int32(token)
