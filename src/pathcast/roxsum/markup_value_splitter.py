"""Markup and values: the tokens that a batch's documents share, and documents cut into tokens and values.

    documents ──cut──▶ tokens of each document, values of each document (places in the documents' bytes)
                 │ new tokens
                 ▼
              Skeletons: bytes, label path, column and flags of every token; label path and kind of every column

`markup_value_splitter_kernels.py` defines tokens. A column is all values of one sort (text, one attribute, …) of the
elements of one kind, that is, at label paths that end in the same two names.

Invariant: tables are append-only, so that a batch and its parts share them; a token's number never changes its meaning.
Tokens and values of a document, in order, are its bytes.
Cost: one hash probe per token. `MAX_TOKENS` and `MAX_TOKEN_BYTES` bound the tables: a document that would need more of
either, or that cannot be cut, is a single value (raw).
"""

from dataclasses import dataclass

import numpy as np

from pathcast.documents import UTF_8, Bytes, DocumentBatch, LabelPaths, codec_of, declared_encoding
from pathcast.documents.label_paths_kernels import place_edges
from pathcast.kernels import Bools, Int32s, Int64s
from pathcast.store import grown, offsets_of

from .markup_value_splitter_kernels import (
    ASKED,
    CUT,
    FULL_COLUMNS,
    FULL_OUT,
    FULL_TOKENS,
    Labels,
    Output,
    ReadDocuments,
    cut_documents,
)
from .token_table_kernels import (
    GIVEN_UP,
    K_ATTRIBUTE,
    K_RAW,
    K_RAW_TEXT,
    M_COLUMN,
    M_NODE,
    M_ROWS,
    N_COLUMNS,
    N_COUNTS,
    N_FULL,
    N_OUT_TOKENS,
    N_OUT_VALUES,
    N_TOKEN_BYTES,
    N_TOKENS,
    NONE,
    RAW,
    RAW_TEXT,
    ColumnTable,
    TokenTable,
    intern_tokens,
    place_tokens,
)

MAX_TOKENS = 1 << 20
MAX_TOKEN_BYTES = 64 << 20
RAW_TOKENS = np.array([[NONE, NONE], [RAW, RAW_TEXT], [0, 0]], dtype=np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """A fixed set of tokens: `stored[token_offsets[t] : token_offsets[t + 1]]`, and `meta` of each."""

    token_offsets: Int64s
    stored: Bytes
    meta: Int32s

    def token(self, number: int) -> bytes:
        """The bytes of a token."""
        begin, end = self.token_offsets[number : number + 2].tolist()
        return self.stored[begin:end].tobytes()


class Skeletons:
    """A growing table of tokens and columns over one tree of label paths."""

    def __init__(self, paths: LabelPaths) -> None:
        self.paths = paths
        self._node_kind = np.full(1, NONE, dtype=np.int32)
        self._first_of_kind: dict[tuple[int, int], int] = {}
        self._counts = np.zeros(N_COUNTS, dtype=np.int64)
        self._tokens = TokenTable(
            np.full(1024, NONE, dtype=np.int32),
            np.zeros(512, dtype=np.uint64),
            np.zeros((M_ROWS, 512), dtype=np.int32),
            np.zeros(513, dtype=np.int64),
            np.zeros(1 << 13, dtype=np.uint8),
        )
        self._columns = ColumnTable(
            np.full(256, NONE, dtype=np.int32), np.full(128, NONE, dtype=np.int32), np.zeros(128, dtype=np.int32)
        )
        self._columns.kinds[:2] = K_RAW, K_RAW_TEXT
        self._counts[N_COLUMNS] = 2
        self._place_columns(0)
        self.intern(np.zeros(1, dtype=np.uint8), np.zeros(3, dtype=np.int64), RAW_TOKENS)

    def __len__(self) -> int:
        return int(self._counts[N_TOKENS])

    @property
    def columns(self) -> int:
        """The number of columns."""
        return int(self._counts[N_COLUMNS])

    @property
    def meta(self) -> Int32s:
        """Kind of element, column and flags of every token, a row each (`M_NODE`, `M_COLUMN`, `M_FLAGS`)."""
        return self._tokens.meta

    @property
    def token_offsets(self) -> Int64s:
        """Token `t` is `stored[token_offsets[t] : token_offsets[t + 1]]`."""
        return self._tokens.offsets[: len(self) + 1]

    @property
    def stored(self) -> Bytes:
        """The bytes of all tokens."""
        return self._tokens.stored

    @property
    def column_node(self) -> Int32s:
        """The kind of element of every column; `NONE` outside the root element."""
        return self._columns.nodes[: self.columns]

    @property
    def column_kind(self) -> Int32s:
        """The sort of value of every column (`K_TEXT`, …)."""
        return self._columns.kinds[: self.columns]

    def token(self, number: int) -> bytes:
        """The bytes of a token."""
        begin, end = self._tokens.offsets[number : number + 2].tolist()
        return self._tokens.stored[begin:end].tobytes()

    @classmethod
    def of(cls, paths: LabelPaths, column_node: Int32s, column_kind: Int32s, tokens: Tokens) -> "Skeletons":
        """The table with these columns and tokens, under their numbers; ValueError when one occurs twice."""
        skeletons = cls(paths)
        columns = skeletons.enter_columns(column_node, column_kind)
        numbers = skeletons.intern(tokens.stored, tokens.token_offsets, tokens.meta)
        for found, what in ((columns, "column"), (numbers, "token")):
            if np.any(found == GIVEN_UP):
                raise ValueError(
                    f"the batch has {len(found):,} {what}s; at most {MAX_TOKENS:,} of "
                    f"{MAX_TOKEN_BYTES:,} bytes are allowed; summarize the documents in smaller batches"
                )
            if not np.array_equal(found, np.arange(len(found))):
                raise ValueError(
                    f"the batch has duplicate {what}s among its {len(found):,}; summarize the documents again"
                )
        return skeletons

    def node_kinds(self) -> Int32s:
        """For each label path the first one that ends in the same two names, and `NONE` for the entry of no element."""
        known, count = len(self._node_kind) - 1, len(self.paths)
        if known < count:
            names, parents = self.paths.name_ids, self.paths.parents
            above = np.where(parents[known:] < 0, np.int32(NONE), names[parents[known:]])
            pairs = zip(above.tolist(), names[known:].tolist(), range(known, count), strict=True)
            kinds = [self._first_of_kind.setdefault((parent, name), node) for parent, name, node in pairs]
            self._node_kind = np.concatenate([self._node_kind[:-1], np.array([*kinds, NONE], dtype=np.int32)])
        return self._node_kind

    # Growing.

    def intern(self, data: Bytes, edges: Int64s, wanted: Int32s) -> Int32s:
        """The numbers of tokens (`data[edges[k] : edges[k + 1]]`, and column `k` of `wanted`), given now if need be.

        `GIVEN_UP` for a token that the table can't take.
        """
        numbers = np.full(wanted.shape[1], GIVEN_UP, dtype=np.int32)
        done = 0
        while True:
            left = np.ascontiguousarray(wanted[:, done:])
            done += intern_tokens(data, edges[done:], left, self._tokens, self._counts, numbers[done:])
            if done == len(numbers) or not self._grow_tokens(int(edges[done + 1] - edges[done])):
                return numbers

    def enter_columns(self, nodes: Int32s, kinds: Int32s) -> Int32s:
        """The numbers of columns, given now if need be."""
        known = {
            pair: k for k, pair in enumerate(zip(self.column_node.tolist(), self.column_kind.tolist(), strict=True))
        }
        numbers = [known.setdefault(pair, len(known)) for pair in zip(nodes.tolist(), kinds.tolist(), strict=True)]
        first, count = self.columns, len(known)
        while len(self._columns.nodes) < count or len(self._columns.slots) < 2 * count:
            self._grow_columns()
        fresh = np.array(list(known)[first:], dtype=np.int32).reshape(-1, 2)
        self._columns.nodes[first:count], self._columns.kinds[first:count] = fresh[:, 0], fresh[:, 1]
        self._counts[N_COLUMNS] = count
        self._place_columns(first)
        return np.array(numbers, dtype=np.int32)

    def absorb(self, other: "Skeletons", nodes: Int32s, node_of: Int32s, used: Bools) -> Int32s:
        """For each token of another table its number here; `NONE` for those not `used`, `GIVEN_UP` where it has none.

        `nodes` are the other tree's paths that its documents have, `node_of` translates them.
        """
        # A kind is the first path that ends so: there of all paths, here of those that come.
        kind_of = np.full(len(other.paths) + 1, NONE, dtype=np.int32)
        kind_of[other.node_kinds()[nodes[::-1]]] = self.node_kinds()[node_of[nodes[::-1]]]
        wanted = np.flatnonzero(used)
        meta = other.meta[:, wanted]
        columns = np.unique(meta[M_COLUMN][meta[M_COLUMN] >= 0])
        kinds = other.column_kind[columns].copy()
        named = kinds >= K_ATTRIBUTE
        names = [self.paths.names.add(other.paths.names[name]) for name in (kinds[named] - K_ATTRIBUTE).tolist()]
        kinds[named] = np.array(names, dtype=np.int32) + K_ATTRIBUTE
        column_of = np.full(other.columns + 1, NONE, dtype=np.int32)
        column_of[columns] = self.enter_columns(kind_of[other.column_node[columns]], kinds)
        meta[M_NODE], meta[M_COLUMN] = kind_of[meta[M_NODE]], column_of[meta[M_COLUMN]]
        offsets = other.token_offsets
        lengths = offsets[wanted + 1] - offsets[wanted]
        edges = offsets_of(lengths)
        places = np.repeat(offsets[wanted] - edges[:-1], lengths) + np.arange(edges[-1])
        numbers = np.full(len(other), NONE, dtype=np.int32)
        numbers[wanted] = self.intern(np.append(other.stored[places], np.uint8(0)), edges, meta)
        return numbers

    def cut(self, batch: DocumentBatch, paths: Int32s) -> "Pieces":
        """Cut the documents of a batch, given the label path of each element."""
        count = len(batch)
        status = np.full(count, CUT, dtype=np.int8)
        asked = [*batch.encodings, *batch.errors]
        status[asked] = ASKED
        kinds = batch.translation(self.paths.names, add=True)[batch.attribute_name] + np.int32(K_ATTRIBUTE)
        read = ReadDocuments(batch.data, batch.data_offsets, batch.offsets, batch.attribute_begin)
        labels = Labels(paths, kinds, self.paths.parents, self.node_kinds())
        room = 4 * len(batch.name) + len(batch.attribute_name) + 4 * count + 64
        value_room = len(batch.attribute_name) + len(batch.text_start) + 2 * count + 64
        output = Output(
            np.zeros(count + 1, dtype=np.int64),
            np.empty(room, dtype=np.int32),
            np.zeros(count + 1, dtype=np.int64),
            np.empty(value_room, dtype=np.int64),
            np.empty(value_room, dtype=np.int32),
        )
        counts = self._counts
        counts[[N_OUT_TOKENS, N_OUT_VALUES]] = 0
        done = 0
        while True:
            done = cut_documents(read, labels, status, done, self._columns, self._tokens, counts, output)
            if done == count:
                break
            full = int(counts[N_FULL])
            if full == FULL_OUT:
                size = 2 * len(output.value_starts)
                output = output._replace(
                    tokens=np.resize(output.tokens, 2 * len(output.tokens)),
                    value_starts=np.resize(output.value_starts, size),
                    value_lengths=np.resize(output.value_lengths, size),
                )
            elif full == FULL_COLUMNS:
                self._grow_columns()
            elif full == FULL_TOKENS and not self._grow_tokens(1):
                status[done] = ASKED
        raw = np.flatnonzero(status != CUT)
        firsts = output.token_begins[raw]
        output.tokens[firsts] = [RAW_TEXT if _is_text(batch, index) else RAW for index in raw.tolist()]
        n_tokens, n_values = counts[[N_OUT_TOKENS, N_OUT_VALUES]].tolist()
        return Pieces(
            output.token_begins,
            output.tokens[:n_tokens],
            output.value_begins,
            output.value_starts[:n_values],
            output.value_lengths[:n_values],
        )

    def _grow_tokens(self, length: int) -> bool:
        """Make room for more tokens, one of this length at least; False when the table cannot grow further."""
        count, used = len(self), int(self._counts[N_TOKEN_BYTES])
        if count >= MAX_TOKENS or used + length > MAX_TOKEN_BYTES:
            return False
        _, hashes, meta, offsets, stored = self._tokens
        if count >= len(hashes):
            size = 2 * len(hashes)
            slots = np.full(2 * size, NONE, dtype=np.int32)
            place_tokens(hashes, count, slots)
            self._tokens = TokenTable(
                slots,
                grown(hashes, size),
                np.concatenate([meta, np.zeros_like(meta)], axis=1),
                grown(offsets, size + 1),
                stored,
            )
        else:
            size = max(2 * len(stored), used + length)
            self._tokens = self._tokens._replace(stored=grown(stored, min(size, MAX_TOKEN_BYTES)))
        return True

    def _grow_columns(self) -> None:
        _, nodes, kinds = self._columns
        size = 2 * len(nodes)
        slots = np.full(2 * size, NONE, dtype=np.int32)
        self._columns = ColumnTable(slots, grown(nodes, size), grown(kinds, size))
        self._place_columns(0)

    def _place_columns(self, first: int) -> None:
        """Enter the columns from `first` on into the hash table."""
        place_edges(self._columns.nodes, self._columns.kinds, first, self.columns, self._columns.slots)


class Pieces:
    """Tokens and values of documents: those of document `i` lie between `begin[i]` and `begin[i + 1]`."""

    def __init__(
        self, token_begin: Int64s, tokens: Int32s, value_begin: Int64s, value_start: Int64s, value_length: Int32s
    ) -> None:
        self.token_begin, self.tokens = token_begin, tokens
        self.value_begin, self.value_start, self.value_length = value_begin, value_start, value_length


def declares_other_encoding(document: bytes) -> bool:
    """Whether a document, or its first token, declares an encoding other than UTF-8."""
    name = declared_encoding(document)
    return name is not None and codec_of(name) != UTF_8


def _is_text(batch: DocumentBatch, index: int) -> bool:
    """Whether a document was given as text, so that the encoding that it declares does not hold."""
    return index not in batch.encodings and declares_other_encoding(batch[index].data)
