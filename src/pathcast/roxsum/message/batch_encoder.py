"""Encoding: a batch as a segment of a message. The form: `segment_format.py`; the loops: `batch_encoder_kernels.py`.

    rows ──count──▶ pairs, tokens and columns in use ──▶ numbers of the segment's own
         ──write──▶ streams of ranks · values by column ──▶ plain, numbered or of one length ──▶ frames

Invariant: only tokens, columns and paths of the batch's own documents are written, whatever else its tables hold.
Cost: two passes over pairs of tokens, three over values, and zstd's time for a tenth of the documents' size.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pathcast.documents import Bytes
from pathcast.errors import LimitError
from pathcast.kernels import Int32s, Int64s
from pathcast.store import offsets_of

from ..token_table_kernels import K_ATTRIBUTE, K_RAW_TEXT, M_COLUMN, M_FLAGS, M_NODE, NONE, RAW_TEXT
from .batch_encoder_kernels import (
    FIXED,
    NUMBERED,
    P_COLUMN,
    P_COLUMNS,
    P_RANK,
    P_STREAM,
    P_WIDTH,
    PLAIN,
    ColumnPlan,
    SortedValues,
    count_pairs,
    renumber_values,
    write_columns,
    write_streams,
)
from .message_format import Segment, pack
from .segment_format import MAX_PAIRS, Counts, TableWriter, compress, compressor_of, pack_segment
from .token_pair_and_value_numbers import Numbering

if TYPE_CHECKING:
    from ..markup_value_splitter import Skeletons
    from ..summary import RoXSum

_BYTES = np.empty(0, dtype=np.uint8)
# Beside a token's flags: a value follows it.
WITH_VALUE = 4


class _Pairs(NamedTuple):
    """Which tokens follow which: `by_pair` is what a kernel needs of each; `after` by the token before and by rank.

    For each token with followers, in `before`: how many different ones, how often it comes, the size of its stream.
    For each token: how often it comes, and where its stream begins. No token has the number after the last.
    """

    by_pair: Int32s
    after: Int64s
    before: Int64s
    followers: Int64s
    occurrences: Int64s
    stream_sizes: Int64s
    tokens: Int64s
    stream_at: Int64s


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
    compressor_of(level)  # an empty batch rejects a wrong level, too
    return pack(batch.next_id, [encode_segment(batch, level=level)] if len(batch) else [])


def encode_segment(batch: "RoXSum", *, level: int) -> Segment:
    """A batch as one segment."""
    contents, skeletons, rows = batch.contents, batch.skeletons, batch.rows
    token_column = np.ascontiguousarray(skeletons.meta[M_COLUMN, : len(skeletons)])
    none = len(skeletons)
    numbering = contents.numbering(rows, token_column)
    pairs = _ranked(batch, numbering, token_column)
    values = np.zeros(skeletons.columns, dtype=np.int64)
    np.add.at(values, token_column[token_column >= 0], pairs.tokens[:none][token_column >= 0])
    # The raw tokens and columns are always included, so that their numbers are the same in every message.
    used_tokens, used_columns = _used(pairs.tokens[:none]), _used(values)
    streams = np.empty(int(pairs.stream_sizes.sum()), dtype=np.uint8)
    column_begin = offsets_of(values)
    count = int(column_begin[-1])
    by_column = SortedValues(np.empty(count, np.int64), np.empty(count, np.int32), np.empty(count, np.int32))
    write_streams(
        rows,
        contents.token_begin,
        numbering.pair_of,
        contents.value_rows,
        numbering.numbers,
        pairs.by_pair,
        pairs.stream_at,
        column_begin[:-1].copy(),
        streams,
        by_column,
    )
    starts, lengths, _ = by_column
    raw_values = int(column_begin[RAW_TEXT + 1])
    raw = _raw(contents.pool, starts[:raw_values], lengths[:raw_values])
    proper = used_columns[used_columns > RAW_TEXT]
    begin = np.append(column_begin[proper], column_begin[-1])
    columns = _written(contents.pool, begin, by_column, numbering.distinct[proper])
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
        documents=len(batch),
        size=batch.size,
        names=names,
        nodes=len(batch.nodes),
        columns=len(used_columns),
        tokens=len(used_tokens),
        pairs=len(pairs.after),
        token_total=int(pairs.tokens[:none].sum()),
        values=len(starts),
        raw=raw_values,
        tables=len(table),
        streams=len(streams),
        texts=len(columns.texts),
        numbers=len(columns.numbers),
        raw_bytes=len(raw),
        frames=len(frames),
    )
    return Segment.of(pack_segment(counts, frames))


def _used(counts: Int64s) -> Int64s:
    used = counts > 0
    used[: RAW_TEXT + 1] = True
    return np.flatnonzero(used)


def _ranked(batch: "RoXSum", numbering: Numbering, token_column: Int32s) -> _Pairs:
    """Pairs by the token before, the most frequent first: a pair's rank is its place among those."""
    counts = np.zeros(len(numbering.before), dtype=np.int64)
    count_pairs(batch.rows, batch.contents.token_begin, numbering.pair_of, counts)
    used = np.flatnonzero(counts)
    if len(used) > MAX_PAIRS:
        raise LimitError(
            f"the documents have {len(used):,} distinct pairs of adjacent tokens; a message holds at most "
            f"{MAX_PAIRS:,}; send the documents in smaller batches"
        )
    none = len(token_column)
    both = numbering.before[used].astype(np.int64), numbering.after[used].astype(np.int64)
    before, after = (np.where(each < 0, none, each) for each in both)
    order = np.lexsort((after, -counts[used], before))
    used, before, after = used[order], before[order], after[order]
    firsts = np.flatnonzero(np.diff(before, prepend=-1))
    followers = np.diff(firsts, append=len(before))
    occurrences = np.add.reduceat(counts[used], firsts) if len(firsts) else firsts
    context, widths = before[firsts], stream_widths(followers)
    sizes: Int64s = occurrences * widths.astype(np.int64)
    stream_at = np.zeros(none + 1, dtype=np.int64)
    stream_at[context] = np.cumsum(sizes) - sizes
    by_pair = np.zeros((len(counts), P_COLUMNS), dtype=np.int32)
    by_pair[used, P_WIDTH] = np.repeat(widths, followers)
    by_pair[used, P_RANK] = np.arange(len(before)) - np.repeat(firsts, followers)
    by_pair[used, P_STREAM] = before
    by_pair[used, P_COLUMN] = np.append(token_column, NONE)[after]
    tokens = np.zeros(none + 1, dtype=np.int64)
    np.add.at(tokens, after, counts[used])
    return _Pairs(by_pair, after, context, followers, occurrences, sizes, tokens, stream_at)


def stream_widths(followers: Int64s) -> Int32s:
    """Bytes of a rank, by how many tokens ever follow."""
    return np.array([0, 1, 2, 4], dtype=np.int32)[np.searchsorted([1, 1 << 8, 1 << 16], followers)]


def _raw(pool: Bytes, starts: Int64s, lengths: Int32s) -> Bytes:
    """Raw documents one after the other."""
    spans = zip(starts.tolist(), lengths.tolist(), strict=True)
    return np.concatenate([_BYTES, *(pool[start : start + length] for start, length in spans)])


def _written(pool: Bytes, begin: Int64s, values: SortedValues, shared: Int64s) -> _Columns:
    """Values by column, each column in the way that is likely to be the shortest.

    Their numbers are those that all parts of the batch share, of which a column has `shared`.
    """
    _, lengths, numbers = values
    count = np.diff(begin)
    sizes = np.diff(np.append(0, np.cumsum(lengths, dtype=np.int64))[begin])
    room = np.maximum(shared, 0)
    base = np.where(shared < 0, NONE, np.cumsum(room) - room)
    own, is_first = np.full(int(room.sum()), NONE, dtype=np.int32), np.empty(len(lengths), dtype=np.bool_)
    distinct, distinct_bytes, fixed = (np.zeros(len(count), dtype=np.int64) for _ in range(3))
    renumber_values(begin, lengths, numbers, base, own, is_first, distinct, distinct_bytes, fixed)
    repeats = (distinct > 0) & (
        (distinct == 1) | (2 * distinct <= count) & ((distinct <= 256) | (4 * distinct <= count))
    )
    even = ~repeats & (fixed > 0) & (count >= 16)
    codecs = np.where(repeats, NUMBERED, np.where(even, FIXED, PLAIN)).astype(np.int32)
    text_sizes = np.where(repeats, distinct_bytes + distinct, np.where(even, sizes, sizes + count))
    widths = np.where(repeats & (distinct > 1), np.where(distinct <= 256, 1, 2), 0).astype(np.int32)
    number_sizes: Int64s = widths.astype(np.int64) * count
    texts, out = (np.empty(int(each.sum()), dtype=np.uint8) for each in (text_sizes, number_sizes))
    texts_at, numbers_at = np.cumsum(text_sizes) - text_sizes, np.cumsum(number_sizes) - number_sizes
    write_columns(begin, values, is_first, ColumnPlan(codecs, texts_at, widths, numbers_at), pool, texts, out)
    return _Columns(texts, text_sizes, out, number_sizes, codecs, fixed[even], distinct[repeats])


def _write_tree(tables: TableWriter, batch: "RoXSum", columns: Int64s) -> tuple[int, Int64s]:
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
