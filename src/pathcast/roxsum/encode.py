"""Encoding: a batch as the message between brokers. `wire.py` has the form, `encode_kernels.py` the loops.

    rows ──survey──▶ tokens, pairs and columns in use ──▶ numbers of the message's own
         ──write──▶ streams of ranks · values by column ──▶ plain, numbered or of one length ──▶ frames

Invariant: only what the batch's own documents use is written, whatever its tables hold besides.
Cost: two passes over tokens, two over values, and zstd's time for a tenth of the documents' size.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ..documents.batch import Bytes, Int32s, Int64s
from ..errors import LimitError
from .encode_kernels import (
    FIXED,
    MAX_DISTINCT,
    NUMBERED,
    PLAIN,
    number_values,
    survey,
    write_columns,
    write_streams,
)
from .token_kernels import K_ATTRIBUTE, K_RAW_TEXT, M_COLUMN, M_FLAGS, M_NODE, NONE, RAW_TEXT
from .wire import MAX_PAIRS, Counts, TableWriter, compress, compressor_of, pack

if TYPE_CHECKING:
    from .skeletons import Skeletons
    from .summary import RoXSum

_BYTES = np.empty(0, dtype=np.uint8)
# Beside a token's flags: a value follows it.
WITH_VALUE = 4


class _Survey(NamedTuple):
    """What the rows of a batch use: pairs of tokens by slot, and how often each token and column."""

    keys: Int64s
    pair_counts: Int64s
    tokens: Int64s
    columns: Int64s
    column_bytes: Int64s


class _Pairs(NamedTuple):
    """Which tokens follow which: `ranks` by slot, `after` by the token before and by rank.

    For each token with followers, in `before`: how many different ones, how often it comes, the size of its stream.
    For each token: the bytes of a rank in its stream, and where that begins.
    """

    ranks: Int32s
    after: Int64s
    before: Int64s
    followers: Int64s
    occurrences: Int64s
    widths: Int32s
    stream_at: Int64s
    stream_sizes: Int64s


class _Columns(NamedTuple):
    """Values by column, written."""

    texts: Bytes
    text_sizes: Int64s
    numbers: Bytes
    number_sizes: Int64s
    codecs: Int32s
    lengths: Int64s  # of the columns whose values have one length
    distinct: Int64s  # of the numbered columns


def encode(batch: "RoXSum", *, level: int) -> bytes:
    """The message of a batch."""
    contents, skeletons, rows = batch.contents, batch.skeletons, batch.rows
    token_column = np.ascontiguousarray(skeletons.meta[M_COLUMN, : len(skeletons)])
    found = _surveyed(batch, token_column)
    none = len(skeletons)
    # The raw tokens and columns are always there, so that they have their numbers in every message.
    found.tokens[: RAW_TEXT + 1] += 1
    found.columns[: RAW_TEXT + 1] += 1
    used_tokens, used_columns = np.flatnonzero(found.tokens), np.flatnonzero(found.columns)
    found.tokens[: RAW_TEXT + 1] -= 1
    found.columns[: RAW_TEXT + 1] -= 1
    pairs = _ranked(found, none)
    streams = np.empty(int(pairs.stream_sizes.sum()), dtype=np.uint8)
    column_begin = np.zeros(len(found.columns) + 1, dtype=np.int64)
    np.cumsum(found.columns, out=column_begin[1:])
    starts = np.empty(int(column_begin[-1]), dtype=np.int64)
    lengths = np.empty(len(starts), dtype=np.int32)
    write_streams(
        rows, contents.token_begin, contents.tokens, contents.value_begin, contents.value_start, contents.value_length,
        token_column, none, found.keys, pairs.ranks, pairs.widths, pairs.stream_at, column_begin[:-1].copy(),
        streams, starts, lengths,
    )  # fmt: skip
    raw_values = int(column_begin[RAW_TEXT + 1])
    raw = _raw(contents.pool, starts[:raw_values], lengths[:raw_values])
    proper = used_columns[used_columns > RAW_TEXT]
    columns = _written(
        contents.pool, np.append(column_begin[proper], column_begin[-1]), starts, lengths, found.column_bytes[proper]
    )
    numbers = np.full(none + 1, len(used_tokens), dtype=np.int64)
    numbers[used_tokens] = np.arange(len(used_tokens))
    tables = TableWriter()
    tables.numbers(_steps(batch.ids))
    names, kinds = _write_tree(tables, batch, used_columns)
    tables.numbers(columns.codecs)
    tables.numbers(columns.lengths)
    tables.numbers(columns.distinct)
    _write_tokens(tables, skeletons, used_tokens, used_columns, kinds)
    # One list of followers for each token, then one for none, in the order of the tokens' numbers in the message.
    by_context = np.zeros(len(used_tokens) + 1, dtype=np.int64)
    by_context[numbers[pairs.before]] = pairs.followers
    tables.numbers(by_context)
    tables.signed(numbers[pairs.after] - np.repeat(numbers[pairs.before], pairs.followers))
    tables.numbers(pairs.occurrences[pairs.followers > 1])
    tables.numbers(lengths[:raw_values])
    table = np.frombuffer(tables.bytes(), dtype=np.uint8)
    whole = np.array([len(table)], dtype=np.int64)
    compressor = compressor_of(level)
    frames = [
        *compress(table, whole, compressor),
        *compress(streams, pairs.stream_sizes, compressor),
        *compress(columns.texts, columns.text_sizes, compressor),
        *compress(columns.numbers, columns.number_sizes, compressor),
        *compress(raw, np.array([len(raw)], dtype=np.int64), compressor),
    ]
    counts = Counts(
        documents=len(batch), next_id=batch.next_id, size=batch.size, names=names, nodes=len(batch.nodes),
        columns=len(used_columns), tokens=len(used_tokens), pairs=len(pairs.after), token_total=int(found.tokens.sum()),
        values=len(starts), raw=raw_values, tables=len(table), streams=len(streams), texts=len(columns.texts),
        numbers=len(columns.numbers), raw_bytes=len(raw), frames=len(frames),
    )  # fmt: skip
    return pack(counts, frames)


def _surveyed(batch: "RoXSum", token_column: Int32s) -> _Survey:
    contents, skeletons = batch.contents, batch.skeletons
    none, columns = len(skeletons), skeletons.columns
    size = 1 << 12
    while True:
        keys, pair_counts = np.full(size, NONE, dtype=np.int64), np.zeros(size, dtype=np.int64)
        tokens = np.zeros(none, dtype=np.int64)
        column_counts, column_bytes = np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int64)
        pairs = survey(
            batch.rows, contents.token_begin, contents.tokens, contents.value_begin, contents.value_length,
            token_column, none, keys, pair_counts, tokens, column_counts, column_bytes,
        )  # fmt: skip
        if pairs > MAX_PAIRS:
            raise LimitError(f"the documents have {pairs:,} kinds of neighbouring markup; split the batch")
        if pairs != NONE:
            return _Survey(keys, pair_counts, tokens, column_counts, column_bytes)
        size *= 8


def _ranked(found: _Survey, none: int) -> _Pairs:
    """Pairs by the token before, the most frequent first: a pair's rank is its place among those."""
    slots = np.flatnonzero(found.keys != NONE)
    before, after = np.divmod(found.keys[slots], none + 1)
    order = np.lexsort((after, -found.pair_counts[slots], before))
    slots, before, after = slots[order], before[order], after[order]
    firsts = np.flatnonzero(np.diff(before, prepend=-1))
    followers = np.diff(firsts, append=len(before))
    ranks = np.zeros(len(found.keys), dtype=np.int32)
    ranks[slots] = np.arange(len(before)) - np.repeat(firsts, followers)
    occurrences = np.add.reduceat(found.pair_counts[slots], firsts) if len(firsts) else firsts
    context = before[firsts]
    widths = np.zeros(none + 1, dtype=np.int32)
    widths[context] = stream_widths(followers)
    sizes: Int64s = occurrences * widths[context].astype(np.int64)
    stream_at = np.zeros(none + 1, dtype=np.int64)
    stream_at[context] = np.cumsum(sizes) - sizes
    return _Pairs(ranks, after, context, followers, occurrences, widths, stream_at, sizes)


def stream_widths(followers: Int64s) -> Int32s:
    """Bytes of a rank, by how many tokens ever follow."""
    return np.array([0, 1, 2, 4], dtype=np.int32)[np.searchsorted([1, 1 << 8, 1 << 16], followers)]


def _raw(pool: Bytes, starts: Int64s, lengths: Int32s) -> Bytes:
    """Raw documents one after the other."""
    spans = zip(starts.tolist(), lengths.tolist(), strict=True)
    return np.concatenate([_BYTES, *(pool[start : start + length] for start, length in spans)])


def _written(pool: Bytes, begin: Int64s, starts: Int64s, lengths: Int32s, sizes: Int64s) -> _Columns:
    """Values by column, each column in the way that is likely to be the shortest."""
    count = np.diff(begin)
    most = int(min(count.max(initial=0), MAX_DISTINCT))
    slots = np.empty(max(16, 4 * most), dtype=np.int32)
    numbers, is_first = np.empty(len(starts), dtype=np.int32), np.empty(len(starts), dtype=np.bool_)
    distinct, distinct_bytes, fixed = (np.zeros(len(count), dtype=np.int64) for _ in range(3))
    number_values(begin, starts, lengths, pool, slots, numbers, is_first, distinct, distinct_bytes, fixed)
    repeats = (distinct > 0) & (
        (distinct == 1) | (2 * distinct <= count) & ((distinct <= 256) | (4 * distinct <= count))
    )
    even = ~repeats & (fixed > 0) & (count >= 16)
    codecs = np.where(repeats, NUMBERED, np.where(even, FIXED, PLAIN)).astype(np.int32)
    text_sizes = np.where(repeats, distinct_bytes + distinct, np.where(even, sizes, sizes + count))
    widths = np.where(repeats & (distinct > 1), np.where(distinct <= 256, 1, 2), 0).astype(np.int32)
    number_sizes: Int64s = widths.astype(np.int64) * count
    texts, out = (np.empty(int(each.sum()), dtype=np.uint8) for each in (text_sizes, number_sizes))
    write_columns(
        begin, starts, lengths, pool, numbers, is_first, codecs, np.cumsum(text_sizes) - text_sizes, widths,
        np.cumsum(number_sizes) - number_sizes, texts, out,
    )  # fmt: skip
    return _Columns(texts, text_sizes, out, number_sizes, codecs, fixed[even], distinct[repeats])


def _write_tree(tables: TableWriter, batch: "RoXSum", columns: Int64s) -> tuple[int, npt.NDArray[np.int64]]:
    """Names, label paths and columns in use; how many names, and the message's number for each kind of element."""
    skeletons, paths, nodes = batch.skeletons, batch.paths, batch.nodes
    # A kind is the first label path that ends so; in the message, the first of those that the message has.
    kinds = np.full(len(paths) + 1, NONE, dtype=np.int64)
    kinds[skeletons.node_kinds()[nodes[::-1]]] = np.arange(len(nodes))[::-1]
    sorts = skeletons.column_kind[columns].astype(np.int64)
    named = sorts >= K_ATTRIBUTE
    used = np.zeros(len(paths.names), dtype=np.bool_)
    used[paths.name_ids[nodes]] = used[sorts[named] - K_ATTRIBUTE] = True
    names, places = np.flatnonzero(used), np.cumsum(used) - 1
    sorts[named] = places[sorts[named] - K_ATTRIBUTE] + K_ATTRIBUTE
    number = np.full(len(paths) + 1, NONE, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    tables.texts("\0".join(map(paths.names.__getitem__, names.tolist())).encode())
    tables.numbers(np.arange(len(nodes)) - number[paths.parents[nodes]])
    tables.numbers(places[paths.name_ids[nodes]])
    tables.signed(_steps(kinds[skeletons.column_node[columns]]))
    tables.numbers(sorts - K_RAW_TEXT)
    return len(names), kinds


def _write_tokens(tables: TableWriter, skeletons: "Skeletons", tokens: Int64s, columns: Int64s, kinds: Int64s) -> None:
    offsets = skeletons.token_offsets
    lengths = offsets[tokens + 1] - offsets[tokens]
    edges = np.cumsum(lengths) - lengths
    tables.numbers(lengths)
    tables.texts(skeletons.stored[np.repeat(offsets[tokens] - edges, lengths) + np.arange(lengths.sum())].tobytes())
    meta = skeletons.meta[:, tokens]
    tables.signed(_steps(kinds[meta[M_NODE]]))
    places = np.full(skeletons.columns + 1, NONE, dtype=np.int64)
    places[columns] = np.arange(len(columns))
    with_value = meta[M_COLUMN] >= 0
    tables.numbers(meta[M_FLAGS] + WITH_VALUE * with_value)
    tables.signed(_steps(places[meta[M_COLUMN][with_value]]))


def _steps(values: Int64s) -> Int64s:
    """The first value, then the difference of each from the one before."""
    steps = values.copy()
    steps[1:] -= values[:-1]
    return steps
