"""Numbers of neighbouring tokens and of equal values of a column, found once for all parts of a batch.

A message writes a token as its rank among those that follow its predecessor, and a repeated value as a number. Finding
pairs of neighbours and equal values takes hashing; the parts of a batch mostly share their documents (ten targets per
document are common), so hashing is done once for the batch, and each part only counts.

Invariant: the numbers of pairs, and of values within a column, are dense from 0 on and mean the same in every part.
Cost: one hash probe per token and one per value, once; then 4 bytes per token and per value while the batch lives.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pathcast.documents import Bytes
from pathcast.kernels import Int32s, Int64s

from ..document_content_kernels import TokenRows, ValueRows
from ..token_table_kernels import NONE, RAW_TEXT
from .token_pair_and_value_numbers_kernels import ValueNumbers, number_pairs, number_values, place_pairs, place_values

_PAIRS, _SLOTS = 1 << 12, 1 << 12


class Numbering(NamedTuple):
    """Pairs and values by number.

    The pairs of row `r`, of no token and its first one, …, of its last token and none, begin at
    `pair_of[token_begin[r] + r]`; a pair's tokens are `before` and `after` (-1: none). `numbers` is by value;
    `distinct` by column, -1 for one whose values have no numbers.
    """

    pair_of: Int32s
    before: Int32s
    after: Int32s
    numbers: Int32s
    distinct: Int64s


class Kept:
    """Keeps the numbering of all rows, once the requested parts make up a quarter of them."""

    def __init__(self) -> None:
        self._numbering: Numbering | None = None
        self._asked = 0

    def expect(self, rows: int) -> None:
        """Note that this many rows are going to be requested, in parts."""
        self._asked += rows

    def of(self, rows: Int64s, total: int, number: Callable[[Int64s], Numbering]) -> Numbering:
        """A numbering in which at least these rows have their numbers."""
        self._asked += len(rows)
        if self._numbering is None and 4 * self._asked >= total:
            self._numbering = number(np.arange(total))
        return number(rows) if self._numbering is None else self._numbering


def numbered_pairs(rows: Int64s, token_begin: Int64s, tokens: Int32s) -> tuple[Int32s, Int32s, Int32s]:
    """The pairs of some rows: by place, and the two tokens of each."""
    pair_of = np.empty(len(tokens) + len(token_begin) - 1, dtype=np.int32)
    before, after = (np.empty(_PAIRS, dtype=np.int32) for _ in range(2))
    slots, known = np.full(2 * _PAIRS, NONE, dtype=np.int32), np.zeros(1, dtype=np.int64)
    done = 0
    while True:
        done = number_pairs(rows, done, token_begin, tokens, slots, before, after, known, pair_of)
        pairs = int(known[0])
        if done == len(rows):
            return pair_of, before[:pairs], after[:pairs]
        needed = pairs + int(token_begin[rows[done] + 1] - token_begin[rows[done]]) + 1
        more = np.empty((1 << (2 * needed).bit_length()) - len(before), dtype=np.int32)
        before, after = np.concatenate([before, more]), np.concatenate([after, more])
        slots = np.full(2 * len(before), NONE, dtype=np.int32)
        place_pairs(before, after, pairs, slots)


def numbered_values(
    rows: Int64s, tokens: TokenRows, values: ValueRows, pool: Bytes, token_column: Int32s
) -> tuple[Int32s, Int64s]:
    """The values of some rows: their numbers, and how many different ones each column has."""
    columns = int(token_column.max(initial=NONE)) + 1
    numbers = np.empty(len(values.lengths), dtype=np.int32)
    seen, distinct, entered = (np.zeros(size, dtype=np.int64) for size in (columns, columns, 1))
    distinct[: RAW_TEXT + 1] = NONE  # whole documents
    found = ValueNumbers(entered, seen, distinct, numbers)
    slots = np.full(_SLOTS, NONE, dtype=np.int64)
    done = 0
    while True:
        done = number_values(rows, done, tokens, values, token_column, pool, slots, found)
        if done == len(rows):
            return numbers, distinct
        needed = int(values.begins[rows[done] + 1] - values.begins[rows[done]] + entered[0])
        larger = np.full(1 << (4 * needed).bit_length(), NONE, dtype=np.int64)
        place_values(slots, values.starts, values.lengths, pool, larger)
        slots = larger
