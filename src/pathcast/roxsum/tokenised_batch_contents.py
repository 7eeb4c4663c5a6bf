"""Contents: the documents of a batch as tokens and values, and the leaf label paths of each.

Row `r` is a document: its tokens are `tokens[token_begin[r] : token_begin[r + 1]]`, its values are in `pool`, its
leaves are the label paths of its elements without children, each once. All numbers refer to one `Skeletons`.

Invariant: contents never change; a batch and its parts share them and differ only in their rows.
Cost: 4 bytes per token, 12 per value, 4 per leaf, and the values' bytes (with the markup around them for documents that
were just read: those are not copied); after parts have been encoded, 4 more per token and per value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pathcast.documents import Bytes, DocumentBatch
from pathcast.kernels import Int32s, Int64s, UInt32s
from pathcast.store import offsets_of

from .document_content_kernels import TokenBytes, TokenRows, ValueRows, pack_values, write_documents
from .label_path_extent_kernels import leaves_of_elements, mark_leaves, turn_round
from .markup_value_splitter import Skeletons, Tokens, declares_other_encoding
from .message.token_pair_and_value_numbers import Kept, Numbering, numbered_pairs, numbered_values
from .token_table_kernels import M_COLUMN, RAW_TEXT


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """Documents as arrays; see the module's text for what the arrays mean."""

    token_begin: Int64s
    tokens: Int32s
    value_begin: Int64s
    value_start: Int64s
    value_length: Int32s
    leaf_begin: Int64s
    leaves: Int32s
    sizes: Int64s
    pool: Bytes
    _kept: Kept = field(default_factory=Kept)

    @classmethod
    def empty(cls) -> "Contents":
        """No documents."""
        begin, none = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32)
        return cls(begin, none, begin, begin[:0], none, begin, none, begin[:0], np.empty(0, dtype=np.uint8))

    @classmethod
    def of(cls, skeletons: Skeletons, batch: DocumentBatch) -> "Contents":
        """The documents of a batch, one per row; shares the batch's bytes."""
        paths = skeletons.paths.add(batch)
        pieces = skeletons.cut(batch, paths)
        leaf_begin = np.zeros(len(batch) + 1, dtype=np.int64)
        leaves = np.empty(len(paths), dtype=np.int32)
        stamps = np.zeros(len(skeletons.paths), dtype=np.int64)
        count = leaves_of_elements(batch.offsets, batch.end, paths, stamps, leaf_begin, leaves)
        return cls(
            pieces.token_begin,
            pieces.tokens.copy(),
            pieces.value_begin,
            pieces.value_start.copy(),
            pieces.value_length.copy(),
            leaf_begin,
            leaves[:count].copy(),
            np.diff(batch.data_offsets),
            batch.data,
        )

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def joined(cls, parts: Sequence["Contents"]) -> "Contents":
        """The rows of several, one after the other."""
        if len(parts) == 1:
            return parts[0]
        bases = np.cumsum([0, *(len(part.pool) for part in parts)])
        return cls(
            _joined_begins([part.token_begin for part in parts]),
            np.concatenate([part.tokens for part in parts]),
            _joined_begins([part.value_begin for part in parts]),
            np.concatenate([part.value_start + base for part, base in zip(parts, bases, strict=False)]),
            np.concatenate([part.value_length for part in parts]),
            _joined_begins([part.leaf_begin for part in parts]),
            np.concatenate([part.leaves for part in parts]),
            np.concatenate([part.sizes for part in parts]),
            np.concatenate([part.pool for part in parts]),
        )

    def selected(self, rows: Int64s) -> "Contents":
        """These rows only, with only the bytes of their values."""
        token_begin, at_tokens = _picked(self.token_begin, rows)
        value_begin, at_values = _picked(self.value_begin, rows)
        leaf_begin, at_leaves = _picked(self.leaf_begin, rows)
        length = self.value_length[at_values]
        starts = np.empty(len(length), dtype=np.int64)
        pool = np.empty(int(length.sum(dtype=np.int64)), dtype=np.uint8)
        pack_values(self.value_start[at_values], length, self.pool, starts, pool)
        tokens, leaves = self.tokens[at_tokens], self.leaves[at_leaves]
        return Contents(token_begin, tokens, value_begin, starts, length, leaf_begin, leaves, self.sizes[rows], pool)

    def renumbered(self, token_of: Int32s, node_of: Int32s) -> "Contents":
        """The same rows in the numbers of another table and tree."""
        return Contents(
            self.token_begin,
            token_of[self.tokens],
            *self.value_rows,
            self.leaf_begin,
            node_of[self.leaves],
            self.sizes,
            self.pool,
        )

    # Reading.

    @property
    def token_rows(self) -> TokenRows:
        """The tokens as kernels take them."""
        return TokenRows(self.token_begin, self.tokens)

    @property
    def value_rows(self) -> ValueRows:
        """The values as kernels take them."""
        return ValueRows(self.value_begin, self.value_start, self.value_length)

    def expect(self, rows: int) -> None:
        """Prepare for `numbering` of this many rows, in parts."""
        self._kept.expect(rows)

    def numbering(self, rows: Int64s, token_column: Int32s) -> Numbering:
        """Neighbours and equal values, at least those of these rows; `token_column` is by token, -1 without a value."""

        def number(rows: Int64s) -> Numbering:
            return Numbering(
                *numbered_pairs(rows, self.token_begin, self.tokens),
                *numbered_values(rows, self.token_rows, self.value_rows, self.pool, token_column),
            )

        return self._kept.of(rows, len(self), number)

    def documents(self, skeletons: Skeletons | Tokens, rows: Int64s) -> list[bytes]:
        """The original bytes of documents."""
        sizes = self.sizes[rows]
        edges = offsets_of(sizes)
        out = np.empty(int(edges[-1]), dtype=np.uint8)
        column = np.ascontiguousarray(skeletons.meta[M_COLUMN])
        spelled = TokenBytes(skeletons.token_offsets, skeletons.stored, column)
        written = write_documents(rows, self.token_rows, self.value_rows, spelled, self.pool, out)
        assert written == len(out)
        data = out.tobytes()
        return [data[begin:end] for begin, end in zip(edges.tolist(), edges[1:].tolist(), strict=False)]

    def readable(self, skeletons: Skeletons | Tokens, rows: Int64s) -> list[bytes | str]:
        """Documents as input of a reader: as text where the declared encoding is not the actual one."""
        first = self.tokens[self.token_begin[rows]]
        as_text = {
            token: token == RAW_TEXT or declares_other_encoding(skeletons.token(token))
            for token in np.unique(first).tolist()
        }
        documents = self.documents(skeletons, rows)
        if not any(as_text.values()):
            return list(documents)
        return [
            document.decode() if as_text[token] else document
            for document, token in zip(documents, first.tolist(), strict=True)
        ]

    def leaves_of(self, rows: Int64s) -> Int32s:
        """The label paths that end in some of these rows, each once."""
        used = np.zeros(int(self.leaves.max(initial=-1)) + 1, dtype=np.bool_)
        mark_leaves(rows, self.leaf_begin, self.leaves, used)
        return np.flatnonzero(used).astype(np.int32)

    def extents(self, rows: Int64s, ids: UInt32s, nodes: int) -> tuple[Int64s, UInt32s]:
        """The ids of the rows that end in each of the label paths: path `n`'s are `begin[n] : begin[n + 1]`."""
        begin = np.zeros(nodes + 2, dtype=np.int64)
        lengths = self.leaf_begin[rows + 1] - self.leaf_begin[rows]
        out = np.empty(int(lengths.sum()), dtype=np.uint32)
        turn_round(rows, self.leaf_begin, self.leaves, ids, begin, out)
        return begin[:-1], out


def _joined_begins(parts: Sequence[Int64s]) -> Int64s:
    ends = np.cumsum([0, *(int(part[-1]) for part in parts)])
    shifted = [part[:-1] + end for part, end in zip(parts, ends, strict=False)]
    return np.append(np.concatenate(shifted), ends[-1]).astype(np.int64)


def _picked(begin: Int64s, rows: Int64s) -> tuple[Int64s, Int64s]:
    """The offsets of some rows' parts once selected, and the places of those parts."""
    lengths = begin[rows + 1] - begin[rows]
    edges = offsets_of(lengths)
    return edges, np.repeat(begin[rows] - edges[:-1], lengths) + np.arange(edges[-1])


def with_rows_replaced(
    offsets: Int64s, values: Int32s, places: Int64s, new_offsets: Int64s, new_values: Int32s
) -> tuple[Int64s, Int32s]:
    """Rows of values with those at `places` replaced."""
    lengths = np.diff(offsets)
    is_new = np.zeros(len(lengths), dtype=np.bool_)
    is_new[places] = True
    old = values[np.repeat(~is_new, lengths)]
    lengths[places] = np.diff(new_offsets)
    out = np.empty(int(lengths.sum()), dtype=np.int32)
    fresh = np.repeat(is_new, lengths)
    out[fresh], out[~fresh] = new_values, old
    out_offsets = np.zeros(len(offsets), dtype=np.int64)
    np.cumsum(lengths, out=out_offsets[1:])
    return out_offsets, out
