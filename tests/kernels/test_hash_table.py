"""The search that hash tables share."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast.kernels import Int32s
from pathcast.kernels.hash_table_kernels import find_pair, free_slot, probe

SLOTS = 16


def plain(part: Any) -> Callable[..., Any]:
    """The plain twin of a part, which calls the plain twins of other parts."""
    function = part.py_func
    known = {name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__}
    twins = {name: plain(value) if hasattr(value, "py_func") else value for name, value in known.items()}
    return FunctionType(function.__code__, twins)


search, search_pair, search_free = plain(probe), plain(find_pair), plain(free_slot)


def is_same(row: int, key: int, table: list[int]) -> bool:
    return table[row] == key


def filled(keys: list[int]) -> tuple[Int32s, list[int]]:
    """A table of distinct keys, whose hashes are their last three bits."""
    slots, table = np.full(SLOTS, -1, dtype=np.int32), list[int]()
    for key in keys:
        row, slot = search(slots, np.uint64(key & 7), is_same, key, table)
        if row < 0:
            assert slots[slot] < 0
            slots[slot] = len(table)
            table.append(key)
    return slots, table


@given(st.lists(st.integers(0, 40), max_size=SLOTS - 1), st.integers(0, 40))
def test_a_key_is_found_exactly_if_it_was_entered(keys: list[int], wanted: int) -> None:
    slots, table = filled(keys)
    assert sorted(table) == sorted(set(keys))
    row, _ = search(slots, np.uint64(wanted & 7), is_same, wanted, table)
    assert row == (table.index(wanted) if wanted in keys else -1)


@given(st.lists(st.integers(0, 40), max_size=SLOTS - 1, unique=True))
def test_a_missing_key_belongs_where_the_search_for_it_ends(keys: list[int]) -> None:
    slots, _ = filled(keys)
    other = np.full(SLOTS, -1, dtype=np.int32)
    for row, key in enumerate(keys):
        other[search_free(other, np.uint64(key & 7))] = row
    assert (slots == other).all()


def test_a_pair_is_found_by_both_of_its_keys() -> None:
    slots = np.array([0, 1, 2, -1], dtype=np.int32)
    columns = [5, 5, 6], [7, 8, 8]
    assert search_pair(slots, np.uint64(0), (5, 8), columns) == (1, 1)
    assert search_pair(slots, np.uint64(0), (6, 8), columns) == (2, 2)
    assert search_pair(slots, np.uint64(0), (6, 7), columns) == (-1, 3)


@pytest.mark.parametrize("hashed", [3, 3 + 4 * 1000, (1 << 64) - 1])
def test_a_search_goes_on_at_the_beginning_after_the_last_slot(hashed: int) -> None:
    slots = np.full(4, -1, dtype=np.int32)
    slots[3], slots[0] = 0, 1
    assert search(slots, np.uint64(hashed), is_same, 7, [5, 7]) == (1, 0)
    assert search(slots, np.uint64(hashed), is_same, 9, [5, 7]) == (-1, 1)


def test_the_row_is_the_one_that_was_compared_although_its_slot_is_filled_meanwhile() -> None:
    class Filling:
        """Slots that another thread fills after each read."""

        def __init__(self) -> None:
            self.looked = 0

        def __len__(self) -> int:
            return 4

        def __getitem__(self, slot: int) -> int:
            self.looked += 1
            return -1 if self.looked == 1 else 3

    assert search(Filling(), np.uint64(2), is_same, 7, []) == (-1, 2)
