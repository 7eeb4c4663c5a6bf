"""The delivery index against a list of pairs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pathcast.broker.delivery_index import Batch, DeliveryIndex

DOCUMENTS = st.lists(st.lists(st.integers(0, 6), unique=True, max_size=5), min_size=1, max_size=6)


@given(
    batches=st.lists(DOCUMENTS, max_size=12),
    gaps=st.lists(st.sampled_from([1, 2, 70_000]), min_size=12, max_size=12),
    pending=st.integers(1, 30),
    limit=st.integers(0, 9),
)
def test_an_index_finds_what_a_list_of_all_pairs_holds(
    batches: list[list[list[int]]], gaps: list[int], pending: int, limit: int
) -> None:
    index, pairs, sequence = DeliveryIndex(pending), [], 0
    remaining = iter(gaps)
    for documents in batches:
        sequences = []
        sequence += next(remaining)
        for patterns in documents:
            sequence += 1
            sequences.append(sequence)
            pairs += [(pattern, sequence) for pattern in patterns]
        counts = [len(patterns) for patterns in documents]
        flat = [pattern for patterns in documents for pattern in patterns]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        index.append(Batch(np.array(sequences, dtype=np.int64), offsets, np.array(flat, dtype=np.int32)))
    for pattern in range(7):
        for position in (0, sequence // 2, sequence):
            expected = [found for of, found in pairs if of == pattern and found > position]
            assert index.after(pattern, position, limit) == expected[:limit]
