"""`match_documents`: every row comes back, with its matches or with the reason why there are none."""

import time
from itertools import count
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import Row, SparkSession
from pyspark.sql import types as t

import pathcast
from pathcast import Limits
from pathcast.errors import PipelineError, SnapshotError
from pathcast.spark import PublishedIndex, match_documents, pack_index, pin_version, publish
from pathcast.spark.matching import worker_index as opening
from pathcast.spark.publishing.micro_batch_version_pins import pins_of

NEWS = [
    (1, b"<news lang='en'><title>Rain</title><p/></news>"),
    (2, b"<news><title>Sun</title></news>"),
    (3, b"<news>\n<title>"),
    (4, None),
    (5, b"<other/>"),
    (6, b"<orphan/>"),
    (7, b"\xff\xfe<\x00p\x00/\x00>\x00"),
    (8, b""),
]
MATCHES = {1: [1, 2, 3], 2: [1], 3: None, 4: None, 5: [], 6: [4], 7: [2], 8: None}
SUBSCRIBERS = {1: ["ada", "bob"], 2: ["ada"], 3: None, 4: None, 5: [], 6: [], 7: ["bob"], 8: None}


def frame(spark: SparkSession, rows=NEWS, schema: str = "id int, xml binary"):
    return spark.createDataFrame(rows, schema)


def test_ids_of_matching_subscriptions_are_added(spark, index):
    rows = match_documents(frame(spark), index).collect()
    assert {row.id: row.matches for row in rows} == MATCHES


def test_names_of_subscribers_are_added_each_once(spark, index):
    rows = match_documents(frame(spark), index, by="subscriber").collect()
    assert {row.id: row.subscribers for row in rows} == SUBSCRIBERS


def test_a_row_has_matches_or_an_error_never_both(spark, index):
    for row in match_documents(frame(spark), index).collect():
        assert (row.matches is None) != (row.error is None)


def test_an_error_says_what_is_wrong_and_where(spark, index):
    errors = {row.id: row.error for row in match_documents(frame(spark), index).collect()}
    expected = pathcast.Subscriptions().compile()
    with pytest.raises(pathcast.DocumentError) as raised:
        expected.match(NEWS[2][1] or b"")
    assert errors[3] == Row(reason=raised.value.reason, line=raised.value.line, column=raised.value.column)
    assert errors[3].line == 2
    assert "null" in errors[4].reason
    assert errors[4].line is None
    assert errors[8].reason


def test_the_added_columns_have_the_promised_types(spark, index):
    error = "struct<reason:string,line:int,column:int>"
    assert match_documents(frame(spark), index).dtypes == [
        ("id", "int"),
        ("xml", "binary"),
        ("matches", "array<int>"),
        ("error", error),
    ]
    assert match_documents(frame(spark), index, by="subscriber").dtypes[2:] == [
        ("subscribers", "array<string>"),
        ("error", error),
    ]


def test_all_columns_are_kept_whatever_their_type(spark, index):
    schema = "xml binary, tags map<string,array<int>>, place struct<x:double,y:decimal(10,2)>, at timestamp, day date"
    rows = spark.sql(
        "select cast('<p/>' as binary) xml, map('a', array(1, null)) tags, "
        "named_struct('x', 1.5d, 'y', cast(2.25 as decimal(10,2))) place, "
        "timestamp'2024-01-02 03:04:05' at, date'2024-01-02' day"
    )
    assert rows.schema.simpleString() == t._parse_datatype_string(schema).simpleString()
    [row] = match_documents(rows, index).collect()
    assert row[:5] == rows.collect()[0][:5]
    assert row.matches == [2]


def test_documents_may_be_text_in_a_column_of_any_name(spark, index):
    rows = frame(spark, [("<news><title>Ün</title></news>",), ("<news>",)], "Body string")
    matches = match_documents(rows, index, document="Body").collect()
    assert [row.matches for row in matches] == [[1], None]


def test_no_documents_give_no_rows(spark, index):
    assert match_documents(frame(spark, []), index).collect() == []


def test_a_partition_keeps_its_order_over_many_batches(spark, index):
    rows = [(number, b"<p/>" if number % 3 else b"<q/>") for number in range(50)]
    matched = match_documents(frame(spark, rows).coalesce(1), index).collect()
    assert [row.id for row in matched] == list(range(50))
    assert [row.matches for row in matched] == [[2] if number % 3 else [] for number in range(50)]


def test_a_stream_is_matched_like_a_table(spark, index, tmp_path):
    frame(spark).write.parquet(str(tmp_path / "news"))
    stream = spark.readStream.schema("id int, xml binary").parquet(str(tmp_path / "news"))
    query = (
        match_documents(stream, index)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "matched"))
    )
    query.awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "matched")).collect()
    assert {row.id: row.matches for row in rows} == MATCHES


def test_an_index_is_opened_once_and_again_when_written_anew(tmp_path, monkeypatch):
    times = count(1)
    monkeypatch.setattr(opening, "open_index", lambda folder, **_: next(times))
    monkeypatch.setattr(opening, "_opened", {})
    save("//a", tmp_path / "index")
    folder = str(tmp_path / "index")

    def opened_twice() -> list[object]:
        return [opening.opened(folder), opening.opened(folder)]

    assert opened_twice() == [1, 1]
    save("//b", tmp_path / "index")
    assert opened_twice() == [2, 2]


def test_workers_notice_an_index_that_was_written_anew(spark, tmp_path):
    save("//a", tmp_path / "index")
    rows = frame(spark, [(1, b"<a/>"), (2, b"<b/>")])
    assert [row.matches for row in match_documents(rows, tmp_path / "index").orderBy("id").collect()] == [[1], []]
    save("//b", tmp_path / "index")
    assert [row.matches for row in match_documents(rows, tmp_path / "index").orderBy("id").collect()] == [[], [1]]


def test_a_relative_path_means_the_drivers_folder(spark, tmp_path, monkeypatch):
    save("//a", tmp_path / "index")
    monkeypatch.chdir(tmp_path)
    assert match_documents(frame(spark, [(1, b"<a/>")]), "index").collect()[0].matches == [1]


@pytest.mark.parametrize(
    ("schema", "arguments", "reason"),
    [
        ("id int, body binary", {}, "no column 'xml'.*the columns are id, body"),
        ("id int, xml int", {}, "column 'xml' is of type int; documents must be binary or string"),
        ("xml binary, error string", {}, "column 'error' already exists"),
        ("xml binary, Matches string", {}, "column 'Matches' already exists"),
        ("xml binary, subscribers string", {"by": "subscriber"}, "column 'subscribers' already exists"),
        ("xml binary", {"by": "name"}, "by must be 'id' or 'subscriber', got 'name'"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(spark, index, schema, arguments, reason):
    with pytest.raises(PipelineError, match=reason):
        match_documents(frame(spark, [], schema), index, **arguments)


def test_two_columns_of_one_name_are_refused(spark, index):
    twice = frame(spark, []).selectExpr("xml", "id", "id + 1 as id")
    with pytest.raises(PipelineError, match="two columns are named 'id'"):
        match_documents(twice, index)


def test_a_missing_index_is_refused_and_the_way_to_make_one_said(spark, tmp_path):
    with pytest.raises(PipelineError, match=r"no index at .*nowhere; create it with .*\.save\("):
        match_documents(frame(spark), tmp_path / "nowhere")


def test_an_index_that_is_gone_when_a_worker_wants_it_is_named(tmp_path):
    with pytest.raises(PipelineError, match=r"worker cannot read the index .*gone"):
        opening.opened(str(tmp_path / "gone"))


def test_a_damaged_index_is_not_used(tmp_path):
    save("//a", tmp_path / "index")
    (tmp_path / "index" / "manifest.json").write_text("{}")
    with pytest.raises(SnapshotError):
        opening.opened(str(tmp_path / "index"))


def save(xpath: str, folder: Path) -> None:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add(xpath)
    subscriptions.compile().save(folder)


# Versions: one for all rows of a table, one for each batch of a stream.


def by_batch(rows, folder, write):
    """Run a stream to its end, one file a batch; the query."""
    writer = rows.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    query = writer.foreachBatch(write).start()
    query.awaitTermination()
    return query


def files(spark, folder, count: int):
    for number in range(count):
        frame(spark, [(number, b"<a/>"), (number, b"<b/>")]).coalesce(1).write.mode("append").parquet(
            str(folder / "in")
        )
    return spark.readStream.schema("id int, xml binary").option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))


def publish_xpath(xpath: str, folder: Path) -> int:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add(xpath)
    return publish(subscriptions.compile(), folder)


def test_a_table_is_matched_with_the_version_that_was_newest_when_it_was_asked_for(spark, tmp_path):
    rows = frame(spark, [(1, b"<a/>")])
    publish_xpath("//a", tmp_path)
    matched = match_documents(rows, tmp_path)
    publish_xpath("//b", tmp_path)
    assert matched.collect()[0].matches == [1]
    assert match_documents(rows, tmp_path).collect()[0].matches == []
    assert match_documents(rows, PublishedIndex(tmp_path, 1)).collect()[0].matches == [1]
    with pytest.raises(PipelineError, match="the index .* has no version 7; use one of 1, 2"):
        match_documents(rows, PublishedIndex(tmp_path, 7))


def test_a_plain_index_has_no_version_to_ask_for(spark, index):
    with pytest.raises(PipelineError, match="has no versions"):
        match_documents(frame(spark), PublishedIndex(index, 1))


def test_a_running_stream_takes_up_a_new_version_and_replays_with_the_old_one(spark, tmp_path):
    found = []

    def write(rows, batch):
        found.append((batch, [row.matches for row in rows.collect()]))
        publish_xpath("//b" if batch == 0 else "//nothing", tmp_path / "index")

    publish_xpath("//a", tmp_path / "index")
    query = by_batch(match_documents(files(spark, tmp_path, 2), tmp_path / "index"), tmp_path, write)
    assert found == [(0, [[1], []]), (1, [[], [1]])]
    # As a crash would leave it: batch 1 ran and was not committed.
    for file in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / file).unlink(missing_ok=True)
    by_batch(match_documents(files(spark, tmp_path, 1), tmp_path / "index"), tmp_path, write)
    assert found[2:] == [(1, [[], [1]]), (2, [[], []])]
    assert pins_of(tmp_path / "index", query.id) == {0: 1, 1: 2, 2: 4}


def test_matching_inside_foreach_batch_is_pinned_too(spark, tmp_path):
    publish_xpath("//a", tmp_path / "index")
    found = []

    def write(rows, batch):
        for _ in range(2):
            matched = match_documents(rows, PublishedIndex(tmp_path / "index", pins=tmp_path / "pins"))
            found.append([row.matches for row in matched.collect()])
            publish_xpath("//b", tmp_path / "index")

    query = by_batch(files(spark, tmp_path, 1), tmp_path, write)
    assert found == [[[1], []], [[1], []]]
    assert pins_of(tmp_path / "index", query.id, tmp_path / "pins") == {0: 1}


def test_a_stream_whose_tasks_do_not_know_their_batch_is_refused(tmp_path):
    publish_xpath("//a", tmp_path)
    with pytest.raises(PipelineError, match=r"inside foreachBatch, with PublishedIndex\(index, version=pin_version\("):
        opening.Index(str(tmp_path), streaming=True).choose()
    assert pin_version(tmp_path, "mine", 3) == 1
    publish_xpath("//b", tmp_path)
    assert [pin_version(tmp_path, "mine", 3), pin_version(tmp_path, "mine", 4)] == [1, 2]


def test_a_worker_keeps_only_a_few_versions_open(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "_opened", {})
    folders = [str(tmp_path / str(number)) for number in range(6)]
    for folder in folders:
        save("//a", Path(folder))
        opening.opened(folder)
        opening.opened(folders[0])
    assert [folder for folder, *_ in opening._opened] == [*folders[3:], folders[0]]


# Documents by path, limits, and an index that comes as an artifact.


def test_documents_are_read_by_path_inside_the_workers(spark, index, tmp_path):
    (tmp_path / "one.xml").write_bytes(b"<news><title/></news>")
    (tmp_path / "large.xml").write_bytes(b"<p>" + b" " * 200 + b"</p>")
    paths: list[tuple[int, str | None]] = [
        (1, str(tmp_path / "one.xml")),
        (2, f"file://{tmp_path}/one.xml"),
        (3, str(tmp_path / "none.xml")),
    ]
    paths += [(4, None), (5, str(tmp_path / "large.xml"))]
    rows = match_documents(
        frame(spark, paths, "id int, path string"), index, document_path="path", limits=Limits(size=100)
    ).collect()
    assert {row.id: row.matches for row in rows} == {1: [1], 2: [1], 3: None, 4: None, 5: None}
    errors = {row.id: row.error.reason for row in rows if row.error}
    assert "none.xml" in errors[3] and "null" in errors[4] and "size" in errors[5]
    with pytest.raises(PipelineError, match="no column 'file' with paths"):
        match_documents(frame(spark), index, document_path="file")
    with pytest.raises(PipelineError, match="'xml' is of type binary; paths of documents must be strings"):
        match_documents(frame(spark), index, document_path="xml")


def test_limits_hold_for_documents_by_value(spark, index):
    rows = match_documents(
        frame(spark, [(1, b"<p/>"), (2, b"<p>" + b"x" * 50 + b"</p>")]), index, limits=Limits(size=30)
    )
    assert {row.id: row.matches for row in rows.collect()} == {1: [2], 2: None}


def test_poisonous_documents_cost_a_bounded_time_and_the_others_go_on(spark, index):
    poison = [
        b"<!DOCTYPE p [<!ENTITY a 'aaaaaaaaaa'>"
        + b"".join(b"<!ENTITY %c '%s'>" % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9))
        + b"]><p>&j;</p>",
        b"<p>" * 200_000,
        b"<p " + b" ".join(b"a%d=''" % n for n in range(100_000)) + b"/>",
        b"<p>" + b"&amp;" * 200_000,
        b"<" + b"n" * 1_000_000 + b"/>",
        b"<p>" + b"".join(b"<n%d/>" % n for n in range(50_000)) + b"</p>",
        b"<p>" + b"]]" * 300_000 + b">",
        bytes(1_000_000),
    ]
    rows = [(number, xml) for number, xml in enumerate(poison)] + [(100, b"<p/>")]
    began = time.perf_counter()
    found = {row.id: (row.matches, row.error) for row in match_documents(frame(spark, rows), index).collect()}
    assert time.perf_counter() - began < 30
    assert found[100] == ([2], None)
    assert found[5][0] == [2]
    assert all(found[number][1] is not None for number in range(len(poison)) if number != 5)


def test_an_index_may_come_as_an_artifact(spark, tmp_path):
    save("//a", tmp_path / "index")
    pack_index(tmp_path / "index", tmp_path / "packed.zip")
    spark.addArtifacts(f"{tmp_path}/packed.zip#packed", archive=True)
    rows = frame(spark, [(1, b"<a/>"), (2, b"<b/>")])
    assert [row.matches for row in match_documents(rows, "artifact:packed").orderBy("id").collect()] == [[1], []]
    with pytest.raises(PythonException, match="no index in the artifact 'missing'"):
        match_documents(rows, "artifact:missing").collect()
    with pytest.raises(PipelineError, match="artifact 'artifact:packed' has no versions"):
        match_documents(rows, PublishedIndex("artifact:packed", 1))
