"""The search that hash tables share."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pathcast.kernels import Int32s
from pathcast.matching.arrays.hash_probe_kernels import probe

SLOTS = 16
search = probe.py_func  # type: ignore[attr-defined]


def is_same(row: int, key: int, table: list[int]) -> bool:
    return table[row] == key


def filled(keys: list[int]) -> tuple[Int32s, list[int]]:
    """A table of some keys, each as often as it is once, whose hashes are their last three bits."""
    slots, table = np.full(SLOTS, -1, dtype=np.int32), list[int]()
    for key in keys:
        row, slot = search(slots, key & 7, is_same, key, table)
        if row < 0:
            assert slots[slot] < 0
            slots[slot] = len(table)
            table.append(key)
    return slots, table


@given(st.lists(st.integers(0, 40), max_size=SLOTS - 1), st.integers(0, 40))
def test_a_key_is_found_exactly_if_it_was_entered(keys: list[int], wanted: int) -> None:
    slots, table = filled(keys)
    assert sorted(table) == sorted(set(keys))
    row, _ = search(slots, wanted & 7, is_same, wanted, table)
    assert row == (table.index(wanted) if wanted in keys else -1)


def test_a_search_goes_on_at_the_beginning_after_the_last_slot() -> None:
    slots = np.full(4, -1, dtype=np.int32)
    slots[3], slots[0] = 0, 1
    assert search(slots, 3, is_same, 7, [5, 7]) == (1, 0)
    assert search(slots, 3, is_same, 9, [5, 7]) == (-1, 1)


def test_the_row_is_the_one_that_was_compared_although_its_slot_is_filled_meanwhile() -> None:
    class Filling:
        """Slots that another thread fills after each look."""

        def __init__(self) -> None:
            self.looked = 0

        def __len__(self) -> int:
            return 4

        def __getitem__(self, slot: int) -> int:
            self.looked += 1
            return -1 if self.looked == 1 else 3

    assert search(Filling(), 2, is_same, 7, []) == (-1, 2)
