"""Plain values: what was written comes back with its types, and reading runs no code."""

import os
import pickle
from contextlib import suppress
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.errors import SnapshotError
from pathcast.store.plain import read_plain, write_plain

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.dates(),
    st.datetimes(),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(SCALARS, inner)),
    max_leaves=20,
)


@settings(max_examples=50)
@given(value=VALUES)
def test_what_was_written_comes_back(value):
    found = read_plain(write_plain(value), "a value")
    assert found == value
    assert repr(found) == repr(value)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


@pytest.mark.parametrize(
    "value",
    [Bomb(), [date(2026, 1, 1), {"x": Bomb()}], print, ValueError("x"), complex(1, 2)],
    ids=["a call", "a call inside", "a function", "an error", "another number"],
)
def test_what_names_code_is_refused(tmp_path, monkeypatch, value):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SnapshotError, match=r"the state can't be read: \S+ is no plain value"):
        read_plain(pickle.dumps(value), "the state")
    assert not (tmp_path / "exploded").exists()


@given(data=st.binary(max_size=40))
def test_other_bytes_are_an_error_or_a_value(data):
    with suppress(SnapshotError):
        read_plain(data, "a value")


def test_bytes_that_end_early_are_an_error():
    whole = write_plain(({"R": [(1, (2, 3.5, "x", date(2026, 1, 2)))]}, {3: [1]}))
    for end in range(len(whole) - 1):
        with pytest.raises(SnapshotError):
            read_plain(whole[:end], "a value")
