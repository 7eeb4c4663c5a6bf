"""Neighbouring tokens and equal values get the numbers that brute force gives them, in every part of a batch."""

from itertools import pairwise

import numpy as np
import pytest

from pathcast.roxsum import RoXSum
from pathcast.roxsum.message.token_pair_and_value_numbers_kernels import MAX_DISTINCT
from pathcast.roxsum.token_table_kernels import M_COLUMN, RAW_TEXT


def notices(count: int) -> list[bytes]:
    """Ever new names (tokens, pairs), a value that is always new, one of two, and one of 3,000."""
    return [
        b'<n><x%d/><id>%d</id><sort kind="%d"/><code>%d</code></n>' % (k % 4_000, k, k % 2, k // 2 % 3_000)
        for k in range(count)
    ]


def columns_of(batch: RoXSum) -> np.ndarray:
    return np.ascontiguousarray(batch.skeletons.meta[M_COLUMN, : len(batch.skeletons)])


def check(batch: RoXSum, rows: np.ndarray) -> None:
    """The numbering of rows against dictionaries."""
    contents, column_of = batch.contents, columns_of(batch)
    numbering = contents.numbering(rows, column_of)
    pairs: dict[int, tuple[int, int]] = {}
    values: dict[int, dict[bytes, set[int]]] = {}
    for row in rows.tolist():
        begin, end = contents.token_begin[row], contents.token_begin[row + 1]
        tokens = [-1, *contents.tokens[begin:end].tolist(), -1]
        found = numbering.pair_of[begin + row : end + row + 1].tolist()
        for pair, both in zip(found, pairwise(tokens), strict=True):
            assert pairs.setdefault(pair, both) == both == (numbering.before[pair], numbering.after[pair])
        value = int(contents.value_begin[row])
        for token in tokens[1:-1]:
            if column_of[token] >= 0:
                start, length = int(contents.value_start[value]), int(contents.value_length[value])
                data = contents.pool[start : start + length].tobytes()
                values.setdefault(int(column_of[token]), {}).setdefault(data, set()).add(int(numbering.numbers[value]))
                value += 1
    assert len(set(pairs.values())) == len(pairs)
    for column, found_numbers in values.items():
        if numbering.distinct[column] >= 0:
            assert all(len(numbers) == 1 for numbers in found_numbers.values())
            different = {number for numbers in found_numbers.values() for number in numbers}
            assert len(different) == len(found_numbers)
            assert max(different) < numbering.distinct[column]


def test_pairs_and_values_are_numbered_beyond_the_first_tables():
    batch = RoXSum.build(notices(6_000))
    numbering = batch.contents.numbering(batch.rows, columns_of(batch))
    assert len(numbering.before) > 4_096
    assert numbering.distinct.max() == 3_000
    check(batch, batch.rows)


def test_a_column_whose_values_never_repeat_has_no_numbers_and_raw_documents_have_none():
    batch = RoXSum.build(notices(1_500))
    numbering = batch.contents.numbering(batch.rows, columns_of(batch))
    assert set(numbering.distinct[: RAW_TEXT + 1].tolist()) == {-1}
    given_up = int((numbering.distinct[RAW_TEXT + 1 :] < 0).sum())
    assert given_up == 1


@pytest.mark.parametrize("step", [40, 7, 2])
def test_parts_are_numbered_alone_until_together_they_are_a_quarter(step):
    whole = RoXSum.build(notices(400))
    found = []
    for first in range(step):
        part = whole.restrict(range(first, 400, step))
        assert RoXSum.decode(part.encode()).documents() == part.documents()
        check(part, part.rows)
        found.append(whole.contents.numbering(part.rows[:0], columns_of(whole)))
    shared = [each is found[-1] for each in found]
    # Each part asks twice: in `encode` and in `check`.
    assert shared == [4 * 2 * (first + 1) * (400 // step) >= 400 for first in range(step)]


def test_a_part_and_the_whole_share_no_more_than_numbers():
    batch = RoXSum.build(notices(300))
    batch.encode()
    part = batch.restrict([5, 17, 299])
    alone = RoXSum.build([])
    alone.extend(part)
    assert part.encode() != batch.encode()
    assert RoXSum.decode(part.encode()).documents() == part.documents() == alone.documents()
    assert len(part.encode()) <= len(alone.encode()) + 16


def test_as_many_different_values_as_two_bytes_can_say_are_numbered_and_no_more():
    for count, numbered in ((MAX_DISTINCT, True), (MAX_DISTINCT + 1, False)):
        text = b"".join(b'<a k="%d"/>' % (k // 2) for k in range(2 * count))
        batch = RoXSum.build([b"<r>" + text + b"</r>"])
        numbering = batch.contents.numbering(batch.rows, columns_of(batch))
        assert (numbering.distinct.max() == count) == numbered
        assert RoXSum.decode(batch.encode()).documents() == batch.documents()
