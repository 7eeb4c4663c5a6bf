"""Tasks that are killed, repeated or run twice in parallel: a version exists once and complete, or not at all."""

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pathcast
from pathcast.errors import PipelineError
from pathcast.matching import Tuning
from pathcast.spark import publish
from pathcast.spark.publishing import index_versions as versions
from pathcast.spark.publishing.index_publishing_task import Publishing
from pathcast.spark.publishing.index_shard_writer import ShardWriting
from pathcast.spark.publishing.index_shards import shard_folder, shards_in
from pathcast.spark.publishing.index_versions import latest, version_folder
from pathcast.spark.publishing.index_versions import versions as versions_in
from pathcast.spark.publishing.parallel_pattern_compilation import default_settings
from pathcast.spark.publishing.subscription_row_parser import CHANGES, TABLE
from pathcast.spark.publishing.subscription_row_resolution import resolving
from pathcast.spark.publishing.task_error_codec import read_failure

SETTINGS = default_settings(None, None)
TYPES = {"id": pa.int64(), "of": pa.int32(), "place": pa.int64()}
TABLE_ROWS = [(1, "ada", "//a"), (2, None, "//b[@c]"), (3, "bob", "//["), (2, "eve", "//twice")]
CHANGE_ROWS = [(1, None, "", "removed"), (5, "cyd", "//new", "added"), (9, None, "", "removed")]


class Killed(BaseException):
    """As if the process ended here."""


def batch(rows, of):
    """Rows as a task gets them."""
    names = ["id", "subscriber", "xpath", "change", "given", "of", "place"]
    full = [(*row[:3], *(row[3:] or ("added",)), str(row[0]), of, place) for place, row in enumerate(rows)]
    columns = zip(*full, strict=True)
    return pa.RecordBatch.from_pydict(
        {name: pa.array(each, TYPES.get(name, pa.string())) for name, each in zip(names, columns, strict=True)}
    )


def publishing(folder, of, attempts="one"):
    return Publishing(str(folder), attempts, SETTINGS, of == TABLE, True, of == CHANGES, 3, 600.0)


def ran(work, rows):
    """The result of a task, as rows."""
    return [row for each in work.function()(iter([rows])) for row in each.to_pylist()]


def kept(folder, number):
    return list(pathcast.open_index(version_folder(folder, number)).subscriptions)


def left_over(folder):
    return sorted(path.name.split("-")[0] for path in (folder / "versions").iterdir() if path.name.startswith("."))


def test_a_task_that_runs_twice_publishes_once_and_tells_the_same(tmp_path):
    table, changes = batch(TABLE_ROWS, TABLE), batch(CHANGE_ROWS, CHANGES)
    first = ran(publishing(tmp_path, TABLE), table)
    assert ran(publishing(tmp_path, TABLE), table) == first
    assert [row["reason"] is None for row in first] == [True, False, False]
    changed = ran(publishing(tmp_path, CHANGES, "changes"), changes)
    # Without the token they would have been made already.
    assert ran(publishing(tmp_path, CHANGES, "changes"), changes) == changed
    assert (changed[0]["version_count"], changed[0]["added_count"], changed[0]["removed_count"]) == (2, 1, 1)
    assert versions_in(tmp_path) == [1, 2]
    assert [each.id for each in kept(tmp_path, 2)] == [2, 5]


@pytest.mark.parametrize("moment", ["saved", "told", "renamed"])
def test_a_task_that_is_killed_leaves_no_half_and_is_made_up_for(tmp_path, monkeypatch, moment):
    work, rows = publishing(tmp_path, TABLE), batch(TABLE_ROWS, TABLE)
    publish(pathcast.Subscriptions().compile(), tmp_path)

    def killed(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # a killed process cleans nothing up
        if moment == "saved":
            patch.setattr(versions.Turn, "_commit", killed)
        elif moment == "told":
            patch.setattr(Path, "rename", killed)
        else:
            patch.setattr(versions, "flush", killed)
        with pytest.raises(Killed):
            ran(work, rows)
    assert versions_in(tmp_path) == ([1, 2] if moment == "renamed" else [1])
    told = ran(work, rows)
    assert (told[0]["version_count"], told[0]["subscriptions_count"], len(told)) == (2, 2, 3)
    assert versions_in(tmp_path) == [1, 2]
    assert [each.id for each in kept(tmp_path, 2)] == [1, 2]
    assert left_over(tmp_path) == [".told"]


def written(work, rows):
    """The results of the tasks that write shards: the rows of all, and the folders."""
    resolved = pa.Table.from_batches(resolving(SETTINGS, work.shards)(iter([rows])))
    told = []
    for shard in range(work.shards):
        mine = resolved.filter(pc.equal(resolved["shard"], shard))
        nobodys = [{"shard": shard, "kept": False}]
        batches = [*pa.Table.from_pylist(nobodys, resolved.schema).to_batches(), *mine.to_batches()]
        told += work.function()(iter(batches))
    return pa.Table.from_batches(told)


def sorted_rows():
    rows = [*((*row, "added", TABLE) for row in TABLE_ROWS), *((*row, CHANGES) for row in CHANGE_ROWS)]
    full = [batch([row[:4]], row[4]).to_pylist()[0] | {"place": place} for place, row in enumerate(rows)]
    full.sort(key=lambda row: (row["id"], row["of"], row["place"]))
    said = [pa.field("reason", pa.string()), pa.field("column", pa.int32())]
    return pa.RecordBatch.from_pylist(full, pa.schema([*batch(TABLE_ROWS, TABLE).schema, *said]))


def test_shards_of_attempts_that_nobody_tells_of_are_in_no_version(tmp_path):
    work = ShardWriting(str(tmp_path), "token", SETTINGS, 2, 3, 600.0)
    rows = sorted_rows()
    written(work, rows)  # an attempt whose answer was lost
    told = written(work, rows)
    assert versions_in(tmp_path) == [] and left_over(tmp_path) == [".parts"]
    counts = told.filter(pc.is_null(told["reason"]))
    report = work.commit(counts).to_pylist()
    assert report == work.commit(counts).to_pylist()
    assert [report[0][f"{name}_count"] for name in ("version", "subscriptions", "added", "removed", "invalid")] == [
        1, 2, 2, 0, 3,
    ]  # fmt: skip
    assert versions_in(tmp_path) == [1] and shards_in(version_folder(tmp_path, 1)) == 2
    assert sorted(path.name for path in version_folder(tmp_path, 1).iterdir()) == ["shard-0", "shard-1"]
    found = [each for number in (0, 1) for each in kept_in(tmp_path, number)]
    assert sorted(each.id for each in found) == [2, 5]
    assert left_over(tmp_path) == [".told"]


def kept_in(folder, shard):
    return pathcast.open_index(shard_folder(version_folder(folder, latest(folder)), shard)).subscriptions


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_last_task_that_is_killed_is_made_up_for(tmp_path, monkeypatch, moves):
    """Killed after this many of the renames that make a version of two shards."""
    work = ShardWriting(str(tmp_path), "token", SETTINGS, 2, 3, 600.0)
    told = written(work, sorted_rows())
    counts = told.filter(pc.is_null(told["reason"]))
    rename = Path.rename
    done: list[Path] = []

    def renamed(path, target):
        if len(done) == moves:
            raise Killed
        done.append(path)
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", renamed)
        with pytest.raises(Killed):
            work.commit(counts)
    assert versions_in(tmp_path) == []
    publish(pathcast.Subscriptions().compile(), tmp_path)  # somebody else's turn comes first
    assert work.commit(counts).to_pylist()[0]["version_count"] == 2
    assert shards_in(version_folder(tmp_path, 2)) == 2
    assert sorted(each.id for number in (0, 1) for each in kept_in(tmp_path, number)) == [2, 5]


def test_a_shard_that_is_not_where_all_see_it_and_a_failure_are_told(tmp_path):
    work = ShardWriting(str(tmp_path), "token", SETTINGS, 2, 3, 600.0)
    told = written(work, sorted_rows())
    counts = told.filter(pc.is_null(told["reason"]))
    elsewhere = ShardWriting(str(tmp_path / "elsewhere"), "token", SETTINGS, 2, 3, 600.0)
    (row,) = [row for each in elsewhere.committing()(iter(counts.to_batches())) for row in each.to_pylist()]
    assert "publish to a folder that all workers share" in str(read_failure(row["failure"]))
    assert versions_in(tmp_path / "elsewhere") == []
    pathcast.Subscriptions().compile().save(tmp_path / "plain")
    plain = ShardWriting(str(tmp_path / "plain"), "token", SETTINGS, 2, 3, 600.0)
    with pytest.raises(PipelineError, match="is an index without versions"):
        plain.commit(written(plain, sorted_rows()))


def test_what_was_left_for_a_day_goes_and_what_is_at_work_stays(tmp_path):
    publish(pathcast.Subscriptions().compile(), tmp_path)
    home = tmp_path / "versions"
    for name in ("old", "new"):
        (home / f".parts-{name}" / "shard-0-0").mkdir(parents=True)
        (home / f".told-{name}").touch()
    for name in (".parts-old", ".told-old"):
        os.utime(home / name, (1, 1))
    publish(pathcast.Subscriptions().compile(), tmp_path)
    assert sorted(path.name for path in home.iterdir() if path.name[0] == ".") == [".parts-new", ".told-new"]


def test_changes_that_leave_most_patterns_unused_find_their_own(tmp_path):
    last = Tuning().unused_entries + 20
    rows = [(number, None, f"/a/b{number}[c]") for number in range(1, last + 6)]
    ran(publishing(tmp_path, TABLE), batch(rows, TABLE))
    changes = [(number, None, "", "removed") for number in range(1, last + 1)]
    changes += [(number, None, f"/x[@y = {number}]", "added") for number in range(9100, 9110)]
    told = ran(publishing(tmp_path, CHANGES, "changes"), batch(changes, CHANGES))
    assert [told[0][f"{name}_count"] for name in ("added", "removed", "subscriptions")] == [10, last, 15]
    matcher = pathcast.open_index(version_folder(tmp_path, 2))
    assert matcher.match("<x y='9104'/>").ids.tolist() == [9104]
    assert matcher.match(f"<a><b{last + 3}><c/></b{last + 3}></a>").ids.tolist() == [last + 3]
