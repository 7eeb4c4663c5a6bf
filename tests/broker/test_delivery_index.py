"""The delivery index against a list of pairs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pathcast.broker.deliveries.delivery_index import BLOCK, Batch, DeliveryIndex, Tuning

# Neighbours, and numbers with gaps between them, which are replaced before they are sorted.
PATTERNS = (1, 2, 3, 4, 70_000, 1_000_000, 2_000_000_000)
DOCUMENTS = st.lists(st.lists(st.sampled_from(PATTERNS), unique=True, max_size=5), min_size=1, max_size=6)
TUNINGS = st.builds(Tuning, st.integers(1, 30), st.integers(1, 4), st.integers(2, 4), st.integers(1, 60))


def batch_of(begin: int, documents: list[list[int]]) -> Batch:
    """Documents with consecutive sequences from `begin` on."""
    counts = [len(patterns) for patterns in documents]
    flat = [pattern for patterns in documents for pattern in patterns]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    sequences = np.arange(begin, begin + len(documents), dtype=np.int64)
    return Batch(sequences, offsets, np.array(flat, dtype=np.int32))


@given(
    batches=st.lists(DOCUMENTS, max_size=40),
    gaps=st.lists(st.sampled_from([1, 1, 1, 2, 10_000, 70_000]), min_size=40, max_size=40),
    tuning=TUNINGS,
    limit=st.integers(0, 9),
)
def test_an_index_finds_what_a_list_of_all_pairs_holds(
    batches: list[list[list[int]]], gaps: list[int], tuning: Tuning, limit: int
) -> None:
    index, pairs, sequence = DeliveryIndex(tuning), list[tuple[int, int]](), 0
    for documents, gap in zip(batches, gaps, strict=False):
        begin = sequence + gap + 1
        sequence = begin + len(documents) - 1
        pairs += [(pattern, begin + place) for place, patterns in enumerate(documents) for pattern in patterns]
        index.append(batch_of(begin, documents))
    wanted = np.array(sorted({found + more for _, found in pairs for more in (0, 1)}), dtype=np.int64)
    for pattern in PATTERNS:
        of_pattern = [found for of, found in pairs if of == pattern]
        for position in (0, sequence // 2, sequence):
            assert index.after(pattern, position, limit) == [found for found in of_pattern if found > position][:limit]
        if len(wanted):
            assert wanted[index.among(pattern, wanted)].tolist() == of_pattern


@given(batches=st.lists(DOCUMENTS, min_size=1, max_size=20), tuning=TUNINGS)
def test_what_is_left_after_trimming_has_everything_from_there_on(
    batches: list[list[list[int]]], tuning: Tuning
) -> None:
    index, pairs, sequence = DeliveryIndex(tuning), list[tuple[int, int]](), 1
    for documents in batches:
        pairs += [(pattern, sequence + place) for place, patterns in enumerate(documents) for pattern in patterns]
        index.append(batch_of(sequence, documents))
        sequence += len(documents)
        index.drop_before(sequence // 2)
    for pattern in PATTERNS:
        expected = [found for of, found in pairs if of == pattern and found >= sequence // 2]
        assert [found for found in index.after(pattern, 0, 1_000) if found >= sequence // 2] == expected


def test_a_block_that_is_complete_is_one_run() -> None:
    index = DeliveryIndex(Tuning(pending=64))
    for begin in range(1, BLOCK, 64):
        index.append(batch_of(begin, [[1, 2]] * 64))
    assert 1 < len(index.runs) <= 48
    index.append(batch_of(BLOCK + 1, [[1]]))
    assert [(run.first, run.last) for run in index.runs] == [(1, BLOCK)]
    assert index.after(2, BLOCK - 2, 10) == [BLOCK - 1, BLOCK]


def test_a_run_is_dropped_only_when_all_of_its_documents_were() -> None:
    index = DeliveryIndex(Tuning(pending=1, fan_out=99))
    for begin in (1, 5, BLOCK + 1, BLOCK + 5):  # two runs of a block that is closed, and two that are open
        index.append(batch_of(begin, [[1], [1]]))
    all_ = index.after(1, 0, 99)
    for first in range(1, BLOCK + 8):
        if first in all_ or first - 1 in all_:
            index.drop_before(first)
            assert index.after(1, first - 1, 99) == [each for each in all_ if each >= first]
    assert index.runs == ()


def test_no_merge_moves_more_matches_than_it_may() -> None:
    index = DeliveryIndex(Tuning(pending=1, fan_out=2, most=100))
    for begin in range(1, 3 * BLOCK, BLOCK // 64):
        index.append(batch_of(begin, [[1, 2, 3]] * 3))
    assert max(len(run.places) for run in index.runs) <= 100
    assert len(index.after(2, 0, 10_000)) == 3 * 64 * 3


def test_documents_without_matches_take_no_memory() -> None:
    index = DeliveryIndex()
    for begin in range(1, 1_000):
        index.append(batch_of(begin, [[]]))
    assert index.bytes == 0


def test_a_match_takes_two_bytes_if_its_pattern_matches_often() -> None:
    index = DeliveryIndex()
    for begin in range(1, 64 * 64, 64):
        index.append(batch_of(begin, [list(range(1, 2_001))] * 64))
    assert index.bytes < 2.2 * 64 * 64 * 2_000


@given(batches=st.lists(DOCUMENTS, min_size=1, max_size=20), tuning=TUNINGS)
def test_patterns_that_are_not_among_the_latest_have_no_later_matches(
    batches: list[list[list[int]]], tuning: Tuning
) -> None:
    index, pairs, sequence = DeliveryIndex(tuning), list[tuple[int, int]](), 1
    for documents in batches:
        pairs += [(pattern, sequence + place) for place, patterns in enumerate(documents) for pattern in patterns]
        index.append(batch_of(sequence, documents))
        sequence += len(documents)
        for position in range(sequence + 1):
            found = index.matched_after(position)
            assert found is None or found >= {pattern for pattern, matched in pairs if matched > position}
    assert index.matched_after(sequence) == set()


def test_the_latest_matches_are_listed_until_there_are_too_many() -> None:
    index = DeliveryIndex(Tuning(pending=100, batches=4))
    for begin in range(1, 9):
        index.append(batch_of(begin, [[begin, 50]]))
    assert index.matched_after(6) == {7, 8, 50}
    assert index.matched_after(3) is None
    index.append(batch_of(9, [list(range(1, 200))]))
    assert index.matched_after(8) is None
    assert index.matched_after(9) == set()
