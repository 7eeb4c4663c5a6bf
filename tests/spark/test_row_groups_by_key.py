"""Gathering: rows are grouped by key, in groups of bounded size, and none is lost."""

from itertools import chain

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.spark.matching.row_groups_by_key import GroupCollector, joined


def groups_of(rows, **options):
    return [group for groups in given_of(rows, **options) for group in groups]


def given_of(rows, *, cut=3, by=("target",), max_rows=100, max_bytes=1000, held=10_000):
    """The groups that are emitted together, each as rows with their documents."""
    batches = [
        pa.RecordBatch.from_pylist(rows[at : at + cut], pa.schema([("target", pa.string()), ("xml", pa.binary())]))
        for at in range(0, len(rows), cut)
    ]
    gathering = GroupCollector(by, "xml", max_rows, max_bytes, held)
    found = []
    for given_out in chain((each for batch in batches for each in gathering.add(batch)), gathering.close()):
        left = iter(given_out.rows.to_pylist())
        found.append(
            [[next(left) | {"xml": gathering.documents.value(n)} for n in group] for group in given_out.documents]
        )
    assert gathering.documents.held == 0
    return found


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


def test_when_too_much_is_held_the_largest_groups_go_until_half_is_left():
    rows = [{"target": to, "xml": xml} for to, xml in (("a", b"12"), ("b", b"12345"), ("c", b"678"), ("a", b"34"))]
    given_out = given_of(rows, cut=1, held=10)
    assert [[group[0]["target"] for group in groups] for groups in given_out] == [["b", "a"], ["c"]]


def test_a_document_of_many_rows_is_held_once():
    rows = [{"target": str(number), "xml": b"12345"} for number in range(20)]
    assert [len(groups) for groups in given_of(rows, held=8)] == [20]


def test_without_columns_to_group_by_all_rows_are_one_group():
    rows = [{"target": "a", "xml": b"1"}, {"target": "b", "xml": b"2"}]
    assert groups_of(rows, by=()) == [rows]


def test_small_batches_are_joined():
    batches = [pa.RecordBatch.from_pydict({"n": [number]}) for number in range(1201)]
    assert [len(batch) for batch in joined(batches)] == [500, 500, 201]
