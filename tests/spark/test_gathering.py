"""Gathering: each key's rows together, in groups of bounded size, nothing lost."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.spark.gathering import Gathering, joined, sizes_of


def groups_of(rows, *, cut=3, by=("target",), max_rows=100, max_bytes=1000, held=10_000):
    batches = [
        pa.RecordBatch.from_pylist(rows[at : at + cut], pa.schema([("target", pa.string()), ("xml", pa.binary())]))
        for at in range(0, len(rows), cut)
    ]
    gathering = Gathering(by, max_rows, max_bytes, held)
    found = [group for batch in batches for group in gathering.add(batch, sizes_of(batch.column("xml")))]
    return [group.to_pylist() for group in [*found, *gathering.close()]]


rows_drawn = st.lists(
    st.builds(
        lambda target, xml: {"target": target, "xml": xml},
        st.sampled_from(["a", "b", None]),
        st.none() | st.binary(max_size=9),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(rows_drawn, st.integers(1, 5), st.integers(1, 6), st.integers(1, 30), st.integers(1, 40))
def test_every_row_is_in_one_group_of_its_key_and_groups_keep_their_bounds(rows, cut, most, most_bytes, held):
    groups = groups_of(rows, cut=cut, max_rows=most, max_bytes=most_bytes, held=held)
    for target in ("a", "b", None):
        mine = [group for group in groups if group[0]["target"] == target]
        assert [row for group in mine for row in group] == [row for row in rows if row["target"] == target]
    for group in groups:
        assert len({row["target"] for row in group}) == 1
        assert len(group) <= most
        assert len(group) == 1 or sum(len(row["xml"] or b"") for row in group) <= most_bytes


def test_a_group_is_as_large_as_it_may_be():
    rows = [{"target": "a", "xml": b"1234"}] * 5
    assert [len(group) for group in groups_of(rows, max_rows=2)] == [2, 2, 1]
    assert [len(group) for group in groups_of(rows, max_bytes=12)] == [3, 2]
    assert [len(group) for group in groups_of(rows)] == [5]


def test_when_too_much_is_held_the_largest_group_goes_first():
    rows = [{"target": "a", "xml": b"12"}, {"target": "b", "xml": b"12345"}, {"target": "a", "xml": b"12"}]
    assert [group[0]["target"] for group in groups_of(rows, held=8)] == ["b", "a"]


def test_without_columns_to_group_by_all_rows_are_one_group():
    rows = [{"target": "a", "xml": b"1"}, {"target": "b", "xml": b"2"}]
    assert groups_of(rows, by=()) == [rows]


def test_small_batches_are_joined():
    batches = [pa.RecordBatch.from_pydict({"n": [number]}) for number in range(1201)]
    assert [len(batch) for batch in joined(batches)] == [500, 500, 201]
