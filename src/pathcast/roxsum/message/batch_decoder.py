"""Decoding: from a message to the batch that it carries, or an error.

Every number is checked before it is used as a place or a size; the result is built from the message's own tables.

From an untrusted message only the documents' bytes are used: they are read, cut and summarised like any untrusted
document, so that no message can claim a summary that its documents do not have.

Invariant: a `MessageError` or a batch; memory in proportion to the limits.
Cost: decompression, one pass over tokens, two over values; if not trusted, also reading and building.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pathcast.documents import Bytes, LabelPaths
from pathcast.errors import LimitError, MessageError
from pathcast.kernels import Int32s, Int64s
from pathcast.store import offsets_of

from ..document_content_kernels import TokenRows
from ..label_path_extent_kernels import PathTree, leaves_of_tokens
from ..markup_value_splitter import RAW_TOKENS, Skeletons, Tokens
from ..token_table_kernels import K_ATTRIBUTE, K_RAW, K_RAW_TEXT, M_COLUMN, NONE, RAW_TEXT
from ..tokenised_batch_contents import Contents, with_rows_replaced
from .batch_decoder_kernels import ReadValues, StoredColumns, deal_values, read_columns, read_tokens
from .batch_encoder import WITH_VALUE, stream_widths
from .batch_encoder_kernels import FIXED, NUMBERED
from .message_format import unpack
from .message_limits import MessageLimits
from .segment_format import Counts, TableReader, damaged, unpacked_blocks
from .token_pair_and_value_numbers_kernels import MAX_DISTINCT

if TYPE_CHECKING:
    from ..summary import RoXSum

_NO_IDS = np.empty(0, dtype=np.int64)


class _Tables(NamedTuple):
    """The tables of a segment, each number checked to be in its range."""

    ids: Int64s
    names: list[str]
    node_parent: Int32s
    node_name: Int32s
    column_node: Int32s
    column_kind: Int32s
    codecs: Int32s  # of the columns that are not raw
    lengths: Int64s  # of the columns whose values have one length; otherwise 0
    distinct: Int64s  # of the numbered columns; otherwise 0
    token_lengths: Int64s
    token_bytes: Bytes
    token_meta: Int32s
    follow_begin: Int64s
    followers: Int32s
    occurrences: Int64s
    raw_lengths: Int64s


class _Segment(NamedTuple):
    """A segment, every number in it checked: its tables, documents and tokens."""

    tables: _Tables
    contents: Contents
    tokens: Tokens

    def documents(self) -> list[bytes | str]:
        """The documents, in the order of their ids."""
        return self.contents.readable(self.tokens, np.arange(len(self.contents), dtype=np.int64))


def decode(make: Callable[[], "RoXSum"], data: memoryview, limits: MessageLimits, *, trusted: bool) -> "RoXSum":
    """Decode a message into batches made empty, which are merged where the message has several segments."""
    next_id, segments = unpack(data, limits)
    if not trusted:
        ids, documents = _documents(segments, next_id)
        with _refusing():
            return make().take_documents(documents, ids, next_id)
    batches = []
    for counts, segment in segments:
        tables, contents, tokens = _unpacked(counts, segment, next_id)
        empty = make()
        with _refusing():
            batches.append(empty.take_contents(*_trusted(empty, tables, contents, tokens), tables.ids, next_id))
    _check_distinct(np.sort(np.concatenate([_NO_IDS, *(batch.ids for batch in batches)])))
    with _refusing():
        return make().take_all(batches, next_id)


def decode_documents(
    make: Callable[[], "RoXSum"], data: memoryview, limits: MessageLimits, *, trusted: bool
) -> list[bytes]:
    """The documents of a message; unless it is trusted, an empty batch reads them as a check."""
    next_id, segments = unpack(data, limits)
    _, documents = _documents(segments, next_id)
    with _refusing():
        if not trusted:
            make().check_documents(documents)
    return [each.encode() if isinstance(each, str) else each for each in documents]


def _documents(segments: list[tuple[Counts, memoryview]], next_id: int) -> tuple[Int64s, list[bytes | str]]:
    """The ids and documents of all segments, in the order of the ids."""
    ids, documents = [_NO_IDS], []
    for counts, data in segments:
        segment = _unpacked(counts, data, next_id)
        ids.append(segment.tables.ids)
        with _refusing():
            documents += segment.documents()
    all_ids = np.concatenate(ids)
    if len(segments) > 1:
        order = np.argsort(all_ids)
        all_ids = all_ids[order]
        _check_distinct(all_ids)
        documents = [documents[place] for place in order.tolist()]
    return all_ids, documents


def _check_distinct(ids: Int64s) -> None:
    """Reject sorted ids of which two are equal."""
    twice = ids[1:][np.diff(ids) == 0]
    if len(twice):
        raise damaged(f"two of its segments have a document with the id {int(twice[0])}")


def _unpacked(counts: Counts, segment: memoryview, next_id: int) -> _Segment:
    """The checked content of a segment."""
    blocks = unpacked_blocks(counts, segment)
    tables = _read_tables(TableReader(memoryview(blocks)[: counts.tables]), counts, next_id)
    contents, tokens = _contents(counts, tables, blocks)
    if (size := int(contents.sizes.sum())) != counts.size:
        raise damaged(f"the documents have {size:,} bytes, but its counts state {counts.size:,}")
    return _Segment(tables, contents, tokens)


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn errors of documents into errors of their message."""
    try:
        yield
    except UnicodeDecodeError:
        raise damaged("a document is not valid UTF-8") from None
    except LimitError as error:
        raise MessageError(f"the message exceeds a limit: {error}") from None


def _read_tables(reader: TableReader, counts: Counts, next_id: int) -> _Tables:
    deltas = reader.numbers(counts.documents, next_id)
    ids = np.cumsum(deltas)
    if np.any(deltas[1:] == 0) or (len(ids) and int(ids[-1]) >= next_id):
        raise damaged("the document ids are not in ascending order")
    try:
        names = bytes(reader.texts(len(reader.data))).decode().split("\0")
    except UnicodeDecodeError:
        raise damaged("the element and attribute names are not UTF-8") from None
    names = names if counts.names else []
    if len(names) != counts.names or len(set(names)) != len(names) or "" in names:
        raise damaged(
            f"{len(names):,} element and attribute names, {len({*names} - {''}):,} of them distinct and "
            f"not empty, but its counts state {counts.names:,}"
        )
    nodes, columns, tokens = counts.nodes, counts.columns, counts.tokens
    parents, node_names = np.arange(nodes) - reader.numbers(nodes, nodes), reader.numbers(nodes, counts.names - 1)
    column_node = reader.sums(columns, NONE, nodes - 1)
    column_kind = reader.numbers(columns, counts.names + K_ATTRIBUTE - 1 - K_RAW_TEXT) + K_RAW_TEXT
    codecs = reader.numbers(max(0, columns - RAW_TEXT - 1), FIXED)
    lengths, distinct = np.zeros(len(codecs), dtype=np.int64), np.zeros(len(codecs), dtype=np.int64)
    lengths[codecs == FIXED] = reader.numbers(int(np.count_nonzero(codecs == FIXED)), counts.texts)
    distinct[codecs == NUMBERED] = reader.numbers(int(np.count_nonzero(codecs == NUMBERED)), MAX_DISTINCT)
    token_lengths, stored = reader.numbers(tokens, counts.size), reader.texts(counts.size)
    token_node, flags = reader.sums(tokens, NONE, nodes - 1), reader.numbers(tokens, 2 * WITH_VALUE - 1)
    with_value = flags >= WITH_VALUE
    token_column = np.full(tokens, NONE, dtype=np.int64)
    token_column[with_value] = reader.sums(int(np.count_nonzero(with_value)), 0, columns - 1)
    meta = np.stack([token_node, token_column, flags % WITH_VALUE]).astype(np.int32)
    follow = reader.numbers(tokens + 1, tokens + 1)
    sums = [(int(token_lengths.sum()), len(stored)), (int(follow.sum()), counts.pairs)]
    for (found, wanted), what in zip(sums, ("bytes of tokens", "pairs of tokens"), strict=True):
        if found != wanted:
            raise damaged(f"its tables state {found:,} {what}, but it has {wanted:,}")
    if not _has_raw(column_kind, meta, token_lengths):
        raise damaged("its tables of columns and tokens are inconsistent")
    followers = reader.signed(counts.pairs, tokens) + np.repeat(np.arange(tokens + 1), follow)
    if counts.pairs and (int(followers.min()) < 0 or int(followers.max()) > tokens):
        raise damaged(
            f"tokens refer to next tokens {int(followers.min()):,} to {int(followers.max()):,}; only 0 to {tokens:,} "
            "are possible"
        )
    occurrences = reader.numbers(int(np.count_nonzero(follow > 1)), counts.token_total + counts.documents)
    raw_lengths = reader.numbers(counts.raw, counts.size)
    reader.close()
    if (size := int(raw_lengths.sum())) != counts.raw_bytes:
        raise damaged(f"the raw documents have {size:,} bytes, but its counts state {counts.raw_bytes:,}")
    begin = offsets_of(follow)
    return _Tables(
        ids,
        names,
        parents.astype(np.int32),
        node_names.astype(np.int32),
        column_node.astype(np.int32),
        column_kind.astype(np.int32),
        codecs.astype(np.int32),
        lengths,
        distinct,
        token_lengths,
        np.frombuffer(stored, dtype=np.uint8),
        meta,
        begin,
        followers.astype(np.int32),
        occurrences,
        raw_lengths,
    )


def _has_raw(kinds: Int64s, meta: Int32s, lengths: Int64s) -> bool:
    """Whether the tokens and columns of raw documents, and no others, have their numbers, and tokens have bytes."""
    return bool(
        kinds[: RAW_TEXT + 1].tolist() == [K_RAW, K_RAW_TEXT]
        and np.all(kinds[RAW_TEXT + 1 :] >= 0)
        and np.array_equal(meta[:, : RAW_TEXT + 1], RAW_TOKENS)
        and np.all((meta[M_COLUMN, RAW_TEXT + 1 :] > RAW_TEXT) | (meta[M_COLUMN, RAW_TEXT + 1 :] == NONE))
        and np.array_equal(lengths == 0, np.arange(len(lengths)) <= RAW_TEXT)
    )


def _contents(counts: Counts, tables: _Tables, blocks: bytes) -> tuple[Contents, Tokens]:
    """The documents in the segment's own numbers, and the segment's tokens."""
    data = np.frombuffer(blocks, dtype=np.uint8)
    edges = np.cumsum([counts.tables, counts.streams, counts.texts, counts.numbers, counts.raw_bytes])
    streams, texts, numbers, raw = (data[edges[k] : edges[k + 1]] for k in range(4))
    token_begin, tokens = _tokens(counts, tables, streams)
    token_offsets = offsets_of(tables.token_lengths)
    token_column = np.ascontiguousarray(tables.token_meta[M_COLUMN])
    column_counts = np.bincount(token_column[tokens] + 1, minlength=counts.columns + 1)[1:]
    found = int(column_counts.sum()), int(column_counts[: RAW_TEXT + 1].sum())
    if found != (counts.values, counts.raw):
        raise damaged(
            f"{found[0]:,} values, {found[1]:,} of them raw, but its counts state {counts.values:,} and {counts.raw:,}"
        )
    starts, lengths, pool = _values(counts, tables, column_counts, texts, numbers, raw)
    stop = np.cumsum(column_counts)
    value_begin = np.zeros(counts.documents + 1, dtype=np.int64)
    value_start, value_length = np.empty(counts.values, dtype=np.int64), np.empty(counts.values, dtype=np.int32)
    sizes = np.empty(counts.documents, dtype=np.int64)
    read = ReadValues(value_begin, value_start, value_length)
    at = stop - column_counts
    deal_values(TokenRows(token_begin, tokens), token_column, token_offsets, at, starts, lengths, read, sizes)
    leaves = np.empty(0, dtype=np.int32)
    stored = np.append(tables.token_bytes, np.uint8(0))
    leaf_begin = np.zeros(counts.documents + 1, dtype=np.int64)
    contents = Contents(token_begin, tokens, value_begin, value_start, value_length, leaf_begin, leaves, sizes, pool)
    return contents, Tokens(token_offsets, stored, tables.token_meta)


def _tokens(counts: Counts, tables: _Tables, streams: Bytes) -> tuple[Int64s, Int32s]:
    follow = np.diff(tables.follow_begin)
    widths = stream_widths(follow)
    sizes = np.zeros(counts.tokens + 1, dtype=np.int64)
    sizes[follow > 1] = tables.occurrences * widths[follow > 1]
    stop = np.cumsum(sizes)
    if int(stop[-1]) != len(streams):
        raise damaged(f"the token streams have {len(streams):,} bytes, but the tables state {int(stop[-1]):,}")
    at = stop - sizes
    token_begin = np.zeros(counts.documents + 1, dtype=np.int64)
    tokens = np.empty(counts.token_total, dtype=np.int32)
    # The followers of no token stand last in the message.
    read = read_tokens(
        tables.follow_begin, tables.followers, widths, at, stop, streams, counts.tokens, token_begin, tokens
    )
    if read < 0:
        raise damaged("a document in the token streams has an impossible next token, or too many tokens")
    if read != counts.token_total:
        raise damaged(f"the token streams have {read:,} tokens, but its counts state {counts.token_total:,}")
    if not np.array_equal(at, stop):
        raise damaged(f"{int((stop - at).sum()):,} bytes of the token streams are not used")
    return token_begin, tokens


def _values(
    counts: Counts, tables: _Tables, column_counts: Int64s, texts: Bytes, numbers: Bytes, raw: Bytes
) -> tuple[Int64s, Int32s, Bytes]:
    """All values by column: where they start in the pool, their lengths, the pool."""
    starts, lengths = np.empty(counts.values, dtype=np.int64), np.empty(counts.values, dtype=np.int32)
    starts[: counts.raw] = len(texts) + np.cumsum(tables.raw_lengths) - tables.raw_lengths
    lengths[: counts.raw] = tables.raw_lengths
    count = column_counts[RAW_TEXT + 1 :]
    begin = counts.raw + offsets_of(count)
    widths = np.where(tables.distinct > 1, np.where(tables.distinct <= 256, 1, 2), 0).astype(np.int32)
    number_sizes = widths * count
    if np.any((tables.codecs == NUMBERED) & (tables.distinct == 0)):
        raise damaged("a column of numbered values has no distinct values")
    if (size := sum(number_sizes.tolist())) != len(numbers):
        raise damaged(f"its columns need {size:,} bytes of value numbers, but it has {len(numbers):,}")
    pool = np.empty(len(texts) + len(raw), dtype=np.uint8)
    pool[len(texts) :] = raw
    entries = np.empty(2 * MAX_DISTINCT, dtype=np.int64)
    numbers_at = np.cumsum(number_sizes) - number_sizes
    stored = StoredColumns(begin, tables.codecs, tables.lengths, tables.distinct, widths, numbers_at)
    read = read_columns(stored, texts, numbers, pool, starts, lengths, entries)
    if read != len(texts):
        raise damaged(f"the column tables do not fit the {len(texts):,} bytes of values")
    return starts, lengths, pool


def _trusted(empty: "RoXSum", tables: _Tables, contents: Contents, tokens: Tokens) -> tuple[Skeletons, Contents]:
    """The tables and contents as the segment has them, leaves worked out from the tokens; raw documents are read."""
    try:
        paths = LabelPaths.of(tables.names, tables.node_parent, tables.node_name)
        skeletons = Skeletons.of(paths, tables.column_node, tables.column_kind, tokens)
    except ValueError as error:
        raise damaged(
            f"the tables of label paths and columns are inconsistent: {str(error).partition('; ')[0]}"
        ) from None
    leaf_begin = np.zeros(len(contents) + 1, dtype=np.int64)
    leaves = np.empty(len(contents.tokens), dtype=np.int32)
    stamps = np.zeros(len(paths), dtype=np.int64)
    tree = PathTree(paths.slots, paths.parents, paths.name_ids, skeletons.node_kinds())
    count = leaves_of_tokens(contents.token_rows, tokens.meta, tree, stamps, leaf_begin, leaves)
    if count < 0:
        raise damaged(f"the tags of document {-1 - count} do not form a tree with one root")
    leaves = leaves[:count].copy()
    raw = np.flatnonzero(contents.tokens[contents.token_begin[:-1]] <= RAW_TEXT)
    if len(raw):
        read = Contents.of(skeletons, empty.read_again(contents.readable(tokens, raw)))
        leaf_begin, leaves = with_rows_replaced(leaf_begin, leaves, raw, read.leaf_begin, read.leaves)
    return skeletons, replace(contents, leaf_begin=leaf_begin, leaves=leaves)
