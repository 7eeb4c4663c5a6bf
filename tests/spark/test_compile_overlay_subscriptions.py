"""`compile_overlay`: a table of subscriptions becomes an overlay, in a task; an invalid row gets a reason."""

import pyarrow as pa
import pytest

from pathcast import Subscriptions
from pathcast.errors import PipelineError
from pathcast.routing import Policy
from pathcast.routing.overlay import engine_for
from pathcast.spark.matching.worker_index import Index
from pathcast.spark.overlay.compile_overlay_subscriptions import compile_overlay
from pathcast.spark.overlay.routing_worker_tasks import Way, routing
from pathcast.transmission import Topology

COLUMNS = "id string, subscriber string, xpath string, router string"
TABLE = [
    ("1", "ada", "/a/b", "r2"),
    ("2", "bob", "//c", "r4"),
    ("x", "bob", "//c", "r4"),
    ("2", "eve", "//c", "r4"),
    ("3", "", "//c", "r4"),
    ("4", "eve", "//c[", "r4"),
    ("5", "eve", "//c", "r99"),
    ("6", "fay", "/a", "r7"),
]
CHANGES = [
    (3, "6", "fay", "", "r7", "removed"),
    (1, "6", "fay", "//d", "r7", "added"),
    (2, "1", "ada", "//d", "r5", "added"),
    (4, "9", "gus", "//d", "r5", "removed"),
    (5, "8", "gus", "//d", "r5", "moved"),
]


def delivered(folder, document):
    policy = Policy("L")
    way = Way(Index(str(folder), version=None), policy, engine_for(policy, None), "xml", links=False)
    (found,) = routing(way)(iter([pa.RecordBatch.from_pydict({"xml": pa.array([document], pa.binary())})]))
    return {(visit["router"], name) for visit in found["visits"][0].as_py() for name in visit["subscribers"]}


def reasons(report):
    return {row.id: row.reason.split(":")[0] for row in report.invalid.collect()}


def test_rows_are_subscribed_or_told_and_changes_follow_in_their_order(spark, tmp_path):
    table = spark.createDataFrame(TABLE, COLUMNS).repartition(3)
    report = compile_overlay(table.orderBy("id"), tmp_path / "overlay", Topology.tree(3))
    assert report.line == "version 1: 3 subscriptions, 3 added, 0 removed, 0 changed, 0 unchanged, 5 invalid"
    again = compile_overlay(table.orderBy("id"), tmp_path / "overlay", Topology.tree(3))
    assert again.line == "version 1, unchanged: 3 subscriptions, 5 invalid"
    assert set(reasons(report)) == {None, 2, 3, 4, 5}
    found = delivered(tmp_path / "overlay" / "versions" / "00000001", b"<a><b/><c/></a>")
    assert found - {("r4", "bob"), ("r4", "eve")} == {("r2", "ada"), ("r7", "fay")}
    assert len(found) == 3
    changes = spark.createDataFrame(CHANGES, f"sequence int, {COLUMNS}, change string").repartition(2)
    first = table.where("id in ('1', '6')")
    report = compile_overlay(first, tmp_path / "overlay", Topology.tree(3), changes=changes, policy="L+s-sd")
    assert report.line == "version 2: 1 subscriptions, 0 added, 2 removed, 1 changed, 0 unchanged, 2 invalid"
    assert reasons(report) == {
        9: "cannot remove subscription 9",
        8: "change must be 'added' or 'removed', got 'moved'",
    }
    assert report.invalid.columns == ["id", "subscriber", "xpath", "change", "reason", "column"]
    assert delivered(tmp_path / "overlay" / "versions" / "00000002", b"<a><d/></a>") == {("r5", "ada")}


def test_what_fails_in_the_task_is_raised_as_it_is_and_an_empty_table_is_an_overlay(spark, tmp_path):
    table = spark.createDataFrame([], COLUMNS)
    Subscriptions().compile().save(tmp_path / "index")
    with pytest.raises(PipelineError, match="is an index without versions"):
        compile_overlay(table, tmp_path / "index", Topology.tree(2))
    with pytest.raises(PipelineError, match="the changes have no column 'change'"):
        compile_overlay(table, tmp_path / "overlay", Topology.tree(2), changes=table)
    report = compile_overlay(table, tmp_path / "overlay", Topology.tree(2))
    assert (report.version, report.subscriptions, report.invalid_count) == (1, 0, 0)
