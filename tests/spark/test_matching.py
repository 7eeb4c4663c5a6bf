"""`match_documents`: every row comes back, with its matches or with the reason why there are none."""

from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import types as t

import pathcast
from pathcast.errors import PipelineError, SnapshotError
from pathcast.spark import match_documents, opening

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
        expected.match(NEWS[2][1])
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
    opened = []
    monkeypatch.setattr(opening, "open_index", lambda folder, limits: opened.append(folder) or len(opened))
    monkeypatch.setattr(opening, "_opened", {})
    save("//a", tmp_path / "index")
    folder = str(tmp_path / "index")
    assert [opening.opened(folder), opening.opened(folder)] == [1, 1]
    save("//b", tmp_path / "index")
    assert [opening.opened(folder), opening.opened(folder)] == [2, 2]


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
        ("id int, xml int", {}, "column 'xml' is of type int; documents are binary or string"),
        ("xml binary, error string", {}, "column 'error' is taken"),
        ("xml binary, Matches string", {}, "column 'Matches' is taken"),
        ("xml binary, subscribers string", {"by": "subscriber"}, "column 'subscribers' is taken"),
        ("xml binary", {"by": "name"}, "by='name': must be 'id' or 'subscriber'"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(spark, index, schema, arguments, reason):
    with pytest.raises(PipelineError, match=reason):
        match_documents(frame(spark, [], schema), index, **arguments)


def test_two_columns_of_one_name_are_refused(spark, index):
    twice = frame(spark, []).selectExpr("xml", "id", "id + 1 as id")
    with pytest.raises(PipelineError, match="two columns have the same name"):
        match_documents(twice, index)


def test_a_missing_index_is_refused_and_the_way_to_make_one_said(spark, tmp_path):
    with pytest.raises(PipelineError, match=r"no index at .*nowhere; to make one: .*\.save\("):
        match_documents(frame(spark), tmp_path / "nowhere")


def test_an_index_that_is_gone_when_a_worker_wants_it_is_named(tmp_path):
    with pytest.raises(PipelineError, match=r"worker can't read the index .*gone"):
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
