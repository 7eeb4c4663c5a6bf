"""Standing joins on disk: saved joins are restored, and snapshots are not trusted."""

import copy
import os
import pickle
from contextlib import suppress
from datetime import date
from mmap import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.errors import PathcastError, QueryError, SnapshotError
from pathcast.joins import Schema, Selection, select
from pathcast.joins.partition.join_server_specification import StandingJoins
from pathcast.joins.partition.join_server_specification_snapshot import (
    KIND,
    describe,
    next_id_in,
    open_standing,
    save_standing,
)
from pathcast.messages import Interval
from pathcast.store import open_snapshot, write_snapshot
from pathcast.store.snapshot import MAPPED_BYTES
from tests.joins.test_value_partitioned_join import STOCKS
from tests.joins.world import JOINS, TABLES, draw_query

BOTH = select("Stocks", "Reviews")
SELECTIONS = [
    select("R", where={"a": 3, "p": ("x", None)}),
    select("R", "S", where={"c": Interval(1, 2.5, low_open=True), "d": (date(2026, 1, 2), None)}),
    select("T", "U", on=["T.m = U.m and T.n = U.n"], where={"n": "u"}),
    select("S", where={"c": (None, float("inf"))}),
]
RANGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=4)


@st.composite
def descriptions(draw):
    """Single subscriptions and batches, some of them removed."""
    choose = lambda options: draw(st.sampled_from(options))  # noqa: E731
    names = st.sampled_from([None, "ada", "bøb", "", 7, -(1 << 70)])
    asked: dict[str | int | None, list[str | Selection]] = {}
    for _ in range(draw(st.integers(0, 4))):
        query = choose(SELECTIONS) if draw(st.booleans()) else draw_query(choose)
        asked.setdefault(draw(names), []).append(query)
    batches = []
    for _ in range(draw(st.integers(0, 2))):
        low, width = np.array(draw(RANGES)).T
        kind = choose([np.int64, np.float64, np.int32])
        batches.append((select("R", "S"), {"a": (low, low + width), "c": (low.astype(kind), (low + 1.0))}))
    standing = StandingJoins(
        Schema(TABLES, JOINS), asked, choose(["ref-sj-clu+", "enum-sj"]), batches, choose([None, 1])
    )
    leaving = draw(st.lists(st.sampled_from([*standing]), unique=True)) if [*standing] else []
    return standing.changed(remove=leaving)


def facts_of(standing):
    """The data that a server takes from a description, to compare two descriptions."""
    subscriptions = standing.server().subscriptions
    return (
        describe(standing.schema), standing.scheme, standing.axes, standing.next_id, dict(standing.numbers),
        [(one.id, one.subscriber) for one in standing.asked],
        {id: [one.encode() for one in subscriptions[id].filters] for id in standing},
        [(each.first, each.gone, each.query.tables) for each in standing.many],
    )  # fmt: skip


@pytest.mark.slow
@settings(max_examples=25)
@given(standing=descriptions())
def test_what_was_saved_comes_back(tmp_path_factory, standing):
    folder = tmp_path_factory.mktemp("standing")
    save_standing(standing, folder / "one")
    opened = open_standing(folder / "one")
    assert facts_of(opened) == facts_of(standing)
    assert next_id_in(folder / "one") == standing.next_id
    queries, batches = ["select * from R where a > 3"], [(select("T"), {"m": ([1], [2])})]
    more = standing.changed(queries, batches=batches)
    assert facts_of(opened.changed(queries, batches=batches)) == facts_of(more)
    save_standing(opened.changed(queries, batches=batches), folder / "two")
    assert facts_of(open_standing(folder / "two")) == facts_of(more)


def small():
    ranges = {"per": (np.array([40, 50, 60]), np.array([60.0, 70, 80]))}
    asked: dict[str | int, str | Selection] = {"ada": "select * from Stocks", 3: BOTH}
    first = StandingJoins(STOCKS, asked, batches=[(BOTH, ranges)])
    return first.changed(remove=[4])


def rewritten(folder, change):
    """A valid snapshot with facts and arrays modified by `change`; its checksums are right."""
    save_standing(small(), folder / "right")
    snapshot = open_snapshot(folder / "right", KIND)
    facts, arrays = copy.deepcopy(snapshot.facts), {name: array.copy() for name, array in snapshot.arrays.items()}
    change(facts, arrays)
    write_snapshot(folder / "wrong", KIND, facts, arrays)
    return folder / "wrong"


def put(place, *path_and_value):
    """A change: something else at a place of the facts (0) or of the arrays (1)."""
    *path, value = path_and_value

    def change(*parts):
        at = parts[place]
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(put(0, "next_id", 5), "subscription id 5 is not below the next id, 5", id="an id too large"),
        pytest.param(put(0, "next_id", "6"), "'next_id' in the manifest", id="text for a number"),
        pytest.param(put(0, "schema", []), "'schema' in the manifest", id="no schema"),
        pytest.param(put(0, "schema", "tables", [["A", [["k", None]]]]), "malformed table", id="no kind"),
        pytest.param(put(0, "schema", "tables", [["A", [["k", "wide"]]]]), "unknown kind 'wide'", id="an unknown kind"),
        pytest.param(put(0, "schema", "joins", ["A.b = C.d"]), "unknown table 'A'", id="a join of nothing"),
        pytest.param(put(0, "axes", "x"), "'axes' in the manifest", id="axes"),
        pytest.param(put(0, "scheme", "ref-j"), "sends join results", id="a scheme that can't be cut"),
        pytest.param(put(0, "forms", 0, 0, 9), "not numbered from 1 without gaps", id="a form's number"),
        pytest.param(put(0, "forms", 0, 1, "X"), "malformed semijoin", id="a form's table"),
        pytest.param(put(0, "forms", 1, 2, 7), "does not fit the schema", id="a form's edge"),
        pytest.param(put(0, "forms", 1, 3, ["symbl"]), "does not fit the schema", id="a form's axis"),
        pytest.param(put(0, "batches", 0, "columns", 0, 2, "whole"), "but only . are left", id="too few ends"),
        pytest.param(put(0, "batches", 0, "size", 2), "belong to no batch", id="a batch too small"),
        pytest.param(put(0, "batches", 0, "size", 1 << 60), "is not below the next id", id="a huge batch"),
        pytest.param(put(0, "batches", 0, "columns", []), "from id .* on has no ranges", id="a batch without ranges"),
        pytest.param(put(0, "batches", 0, "columns", 0, 1, "gone"), "but only . are left", id="ends of another kind"),
        pytest.param(put(0, "batches", 0, "gone", 2), "needs 2 values of .gone", id="more gone than there are"),
        pytest.param(put(0, "batches", 0, 7), "instead of a JSON object", id="a batch that is none"),
        pytest.param(put(1, "gone", np.array([9])), "must list removed subscriptions", id="gone that was not there"),
        pytest.param(put(1, "gone", np.array([4.0])), "'gone' is 1-dimensional float64", id="an array of another kind"),
        pytest.param(put(1, "ids", np.array([2, 1])), "must ascend", id="ids in disorder"),
        pytest.param(put(1, "ids", np.array([[1, 2]])), "the array 'ids'", id="an array of two dimensions"),
        pytest.param(put(1, "ids", np.array([1])), "it has 2 subscribers for 1 subscriptions", id="fewer ids"),
        pytest.param(put(1, "queries_kinds", 0, 9), "its queries have unknown kind 9", id="a query of no kind"),
        pytest.param(put(1, "queries_offsets", 1, 1 << 40), "do not ascend from 0 to", id="an offset beyond the bytes"),
        pytest.param(put(1, "queries_offsets", 1, -1), "do not ascend from 0 to", id="an offset before the bytes"),
        pytest.param(put(1, "subscribers_offsets", np.zeros(9, np.int64)), "2 byte strings", id="too many offsets"),
        pytest.param(lambda _, arrays: arrays.pop("real"), "the array 'real' is missing", id="an array is missing"),
    ],
)  # fmt: skip
def test_a_snapshot_that_says_what_can_not_be_is_refused(tmp_path, change, reason):
    with pytest.raises(SnapshotError, match=reason) as raised:
        open_standing(rewritten(tmp_path, change))
    assert "publish the subscriptions again" in str(raised.value)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(put(1, "queries", 0, 0xFF), id="SQL that is not UTF-8"),
        pytest.param(put(1, "queries_kinds", np.ones(2, np.uint8)), id="SQL as a selection"),
        pytest.param(put(1, "subscribers_kinds", np.full(2, 2, np.uint8)), id="a name as a number"),
    ],
)
def test_what_only_an_entry_can_tell_is_said_when_it_is_looked_at(tmp_path, change):
    opened = open_standing(rewritten(tmp_path, change))
    with pytest.raises(SnapshotError, match="subscription 1 cannot be decoded .*; publish"):
        opened.server()


@pytest.mark.slow
@settings(max_examples=40)
@given(data=st.data())
def test_whatever_bytes_an_array_has_there_is_an_error_or_an_answer(tmp_path_factory, data):
    def change(facts, arrays):
        name = data.draw(st.sampled_from(sorted(arrays)))
        flat = arrays[name].view(np.uint8)
        if len(flat):
            flat[data.draw(st.integers(0, len(flat) - 1))] = data.draw(st.integers(0, 255))

    folder = rewritten(tmp_path_factory.mktemp("standing"), change)
    with suppress(PathcastError):
        open_standing(folder).server()


def test_a_damaged_file_is_refused(tmp_path):
    save_standing(small(), tmp_path / "one")
    (file,) = tmp_path.glob("one/data-*/queries.bin")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"?")
    with pytest.raises(SnapshotError, match="does not match its checksum"):
        open_standing(tmp_path / "one")
    file.write_bytes(content[:-1])
    with pytest.raises(SnapshotError, match="is damaged: it has"):
        open_standing(tmp_path / "one")


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_a_snapshot_with_a_pickle_is_told_to_be_published_again_and_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = np.frombuffer(pickle.dumps(Bomb()), np.uint8)
    write_snapshot(tmp_path / "old", KIND, {"next_id": 2}, {"standing": data})
    for opening in (open_standing, next_id_in):
        with pytest.raises(
            SnapshotError,
            match="has layout 1, but this version of Pathcast reads layout 2; .*"
            "publish the subscriptions again, to another",
        ):
            opening(tmp_path / "old")
    assert not (tmp_path / "exploded").exists()
    write_snapshot(tmp_path / "new", KIND, {"layout": 3}, {})
    with pytest.raises(SnapshotError, match="layout 3, but this version of Pathcast reads layout 2; update Pathcast"):
        open_standing(tmp_path / "new")
    write_snapshot(tmp_path / "else", "index", {}, {})
    with pytest.raises(SnapshotError, match="of kind 'index'"):
        open_standing(tmp_path / "else")


def test_a_subscriber_that_is_no_plain_value_is_refused_before_anything_is_written(tmp_path):
    for name, reason in ((("a", 1), "a string, an int or None"), ("\ud800", "UTF-8")):
        with pytest.raises(QueryError, match=reason):
            save_standing(StandingJoins(STOCKS, {name: "select * from Stocks"}), tmp_path / "one")
    assert not (tmp_path / "one").exists()


def test_ranges_of_large_batches_stay_where_they_lie(tmp_path):
    low = np.arange(MAPPED_BYTES // 8, dtype=np.int64)
    save_standing(StandingJoins(STOCKS, {}, batches=[(BOTH, {"per": (low, low + 20.0)})]), tmp_path / "one")
    ends = open_standing(tmp_path / "one").many[0].ranges["per"]
    assert [end.tolist() for end in ends] == [low.tolist(), (low + 20.0).tolist()]
    for end in ends:
        assert not end.flags.writeable
        below: object = end
        while isinstance(below, np.ndarray):
            below = below.base
        assert isinstance(below, mmap)


def test_ranges_of_small_batches_come_back(tmp_path):
    save_standing(small(), tmp_path / "one")
    ends = open_standing(tmp_path / "one").many[0].ranges["per"]
    assert [end.tolist() for end in ends] == [[40, 50, 60], [60.0, 70.0, 80.0]]
    assert not any(end.flags.writeable for end in ends)
