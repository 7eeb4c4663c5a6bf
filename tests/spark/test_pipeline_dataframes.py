"""A pipeline on Spark: it does what its file describes, in batches, in streams, and after a crash."""

import json
import os
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import pathcast
from pathcast.errors import PipelineError
from pathcast.mediation import Mediator, infer_tree
from pathcast.roxsum import RoXSum
from pathcast.spark.pipeline.dry_run_plan import plan
from pathcast.spark.pipeline.output_folder_owners import check_outputs
from pathcast.spark.pipeline.pipeline_dataframes import deliveries, match, write
from pathcast.spark.pipeline.pipeline_file import Pipeline, read_pipeline
from pathcast.spark.pipeline.run_pipeline import AnyReport, Report, compile_table, micro_batch, pins_of, reports_of, run
from pathcast.spark.publishing.index_versions import publish
from tests.spark.test_output_folder_owners import begin

NEWS = [
    (1, b"<news lang='en'><title>Rain</title><p/></news>"),
    (2, b"<news><title>Sun</title></news>"),
    (3, b"<news>\n<title>"),
    (4, b"<other/>"),
]
DELIVERED = [(1, "ada"), (1, "bob"), (2, "ada")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index with a version, and two files of news."""
    publish(matcher({"/news/title": "ada", "//p": "bob"}), tmp_path / "index")
    (tmp_path / "news").mkdir()
    for number, rows in enumerate((NEWS[:2], NEWS[2:])):
        write_news(tmp_path / "news" / f"{number}.parquet", rows)
        os.utime(tmp_path / "news" / f"{number}.parquet", (number, number))  # a stream takes the oldest first
    return tmp_path


def matcher(subscriptions: dict[str, str]) -> "pathcast.Matcher":
    known = pathcast.Subscriptions()
    known.add_many(list(subscriptions), list(subscriptions.values()))
    return known.compile()


def write_news(file: Path, rows: list[tuple[int, bytes]]) -> None:
    numbers, documents = zip(*rows, strict=True)
    pq.write_table(pa.table({"number": pa.array(numbers, pa.int64()), "xml": pa.array(documents, pa.binary())}), file)


def pipeline(folder: Path, text: str = "", *, source: str = "", deliveries: str = "", stream: str = "") -> Pipeline:
    source = source or 'format = "parquet"\npath = "news"\nschema = "number long, xml binary"'
    text = f"""
[source]
{source}
[subscriptions]
index = "index"
{text}
[deliveries]
path = "deliveries"
{deliveries}
[dead_letters]
path = "dead"
{stream}
"""
    (folder / "pipeline.toml").write_text(text, encoding="utf-8")
    return read_pipeline(folder / "pipeline.toml")


STREAM = '[stream]\ncheckpoint = "checkpoint"\n[source.options]\nmaxFilesPerTrigger = 1'


def ignored(report: AnyReport) -> None:
    """Ignores the reports of a run."""


def run_to_end(spark: SparkSession, described: Pipeline) -> list[Report]:
    """Run a pipeline of documents alone to its end, and return the report of each batch."""
    reports: list[Report] = []

    def tell(report: AnyReport) -> None:
        assert isinstance(report, Report)
        reports.append(report)

    assert run(spark, described, tell)
    return reports


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return found


def delivered(folder: Path) -> list[tuple[int, str]]:
    return sorted((row["number"], row["subscriber"]) for row in rows(folder / "deliveries"))


def test_a_batch_delivers_and_keeps_dead_letters_with_their_origin(spark, folder):
    (report,) = run_to_end(spark, pipeline(folder))
    assert delivered(folder) == DELIVERED
    assert set(rows(folder / "deliveries")[0]) == {"number", "xml", "subscriber"}
    (dead,) = rows(folder / "dead")
    assert (dead["number"], dead["xml"], dead["error"]["line"]) == (3, NEWS[2][1], 2)
    assert dead["source_file"].endswith("/news/1.parquet")
    assert dead["source_offset"] == 0
    assert (report.batch, report.version, report.documents, report.matches, report.dead_letters) == (None, 1, 4, 3, 1)


def test_a_batch_without_dead_letters_still_has_their_table(spark, folder):
    (folder / "news" / "1.parquet").unlink()
    run(spark, pipeline(folder), ignored)
    assert pq.read_table(folder / "dead").num_rows == 0


def test_columns_are_chosen_and_documents_listed_once(spark, folder):
    chosen = 'per = "document"\nby = "id"\ncolumns = ["number"]'
    run(spark, pipeline(folder, deliveries=chosen), ignored)
    assert sorted((row["number"], row["matches"]) for row in rows(folder / "deliveries")) == [(1, [1, 2]), (2, [1])]
    assert set(rows(folder / "deliveries")[0]) == {"number", "matches"}


def test_the_mode_says_what_happens_to_what_is_there(spark, folder):
    run(spark, pipeline(folder), ignored)
    with pytest.raises(PipelineError, match="the batch failed: .*already exists"):
        run(spark, pipeline(folder), ignored)
    run(spark, pipeline(folder, deliveries='mode = "overwrite"', stream='mode = "append"'), ignored)
    assert delivered(folder) == DELIVERED
    assert len(rows(folder / "dead")) == 2


@pytest.mark.parametrize("form", ["files", "binaryFile", "text"])
def test_documents_come_from_files_of_their_own(spark, folder, form):
    for number, xml in NEWS:
        (folder / "news" / f"{number}.xml").write_bytes(xml)
    source = f'format = "{form}"\npath = "news/*.xml"' + ("\noptions = { wholetext = true }" if form == "text" else "")
    run(spark, pipeline(folder, source=source), ignored)
    names = [row["subscriber"] for row in rows(folder / "deliveries")]
    assert sorted(names) == ["ada", "ada", "bob"]
    (dead,) = rows(folder / "dead")
    assert dead["path" if form != "text" else "source_file"].endswith("/3.xml")
    held = dead["value"].encode() if form == "text" else dead["content"]
    assert held == NEWS[2][1]
    assert "content" not in rows(folder / "deliveries")[0] or form == "binaryFile"


def test_dead_letters_of_a_stream_of_files_hold_the_document_if_its_size_allows_it(spark, folder):
    (folder / "feed").mkdir()
    wrong = {"broken.xml": b"<a>" + bytes(range(256)), "empty": b" ", "large.xml": b"<a>" + 500 * b"x" + b"</a>"}
    for name, xml in wrong.items():
        (folder / "feed" / name).write_bytes(xml)
    source = 'format = "files"\npath = "feed"'
    run(
        spark,
        pipeline(folder, source=source, stream='[limits]\nsize = 400\n[stream]\ncheckpoint = "checkpoint"'),
        ignored,
    )
    found = {Path(row["path"]).name: row["content"] for row in rows(folder / "dead")}
    assert found == wrong | {"large.xml": None}


def test_columns_of_dead_letters_choose_whether_they_hold_the_document(spark, folder):
    (folder / "news" / "3.xml").write_bytes(NEWS[2][1])
    source = 'format = "files"\npath = "news/*.xml"'
    found = []
    for columns in (["path"], ["content"]):
        described = pipeline(folder, source=source, deliveries='mode = "overwrite"')
        assert described.dead_letters is not None
        sink = replace(described.dead_letters, columns=tuple(columns), mode="overwrite")
        run(spark, replace(described, dead_letters=sink), ignored)
        (dead,) = rows(folder / "dead")
        found.append((sorted(dead), dead.get("content")))
    assert found == [(["error", "path"], None), (["content", "error"], NEWS[2][1])]


def test_limits_make_dead_letters(spark, folder):
    run(spark, pipeline(folder, stream="[limits]\ndepth = 1"), ignored)
    assert sorted(row["number"] for row in rows(folder / "dead")) == [1, 2, 3]


def test_a_stream_delivers_in_micro_batches_with_a_report_each(spark, folder):
    described = pipeline(folder, stream=STREAM)
    reports = run_to_end(spark, described)
    assert delivered(folder) == DELIVERED
    assert [(one.batch, one.documents, one.matches, one.dead_letters) for one in reports] == [
        (0, 2, 3, 0),
        (1, 2, 0, 1),
    ]
    assert {row["batch"] for row in rows(folder / "deliveries")} == {0}
    assert [row["number"] for row in rows(folder / "dead")] == [3]
    assert described.stream is not None
    assert reports_of(described.stream) == reports


def test_a_stream_goes_on_where_it_was_and_takes_up_a_new_version(spark, folder):
    described = pipeline(folder, stream=STREAM)
    run(spark, described, ignored)
    publish(matcher({"//other": "carl"}), folder / "index")
    write_news(folder / "news" / "2.parquet", [(5, b"<other/>")])
    reports = run_to_end(spark, described)
    assert [(one.batch, one.version) for one in reports] == [(2, 2)]
    assert delivered(folder) == [*DELIVERED, (5, "carl")]


def test_a_micro_batch_that_is_repeated_leaves_the_same_rows_of_the_same_version(spark, folder):
    described = pipeline(folder, stream=STREAM)
    batch = spark.createDataFrame(NEWS, "number long, xml binary")
    assert described.stream is not None
    begin(folder / "checkpoint", 7)
    micro_batch(batch, 7, described, described.stream)
    publish(matcher({"//other": "carl"}), folder / "index")
    micro_batch(batch, 7, described, described.stream)
    assert delivered(folder) == DELIVERED
    assert len(rows(folder / "dead")) == 1
    assert (pins_of(described.stream) / "pipeline" / "7").read_text() == "1"


def test_a_report_is_told_only_when_spark_has_noted_the_micro_batch(spark, folder):
    described = pipeline(folder, stream=STREAM)
    assert described.stream is not None
    begin(folder / "checkpoint", 0)
    micro_batch(spark.createDataFrame(NEWS, "number long, xml binary"), 0, described, described.stream)
    assert reports_of(described.stream) == []
    commits = folder / "checkpoint" / "commits"
    commits.mkdir()
    (commits / "0").write_text("v1\n{}")
    assert [one.batch for one in reports_of(described.stream)] == [0]


def test_reports_of_long_ago_are_taken_away(spark, folder):
    described = pipeline(folder, stream=STREAM)
    assert described.stream is not None
    kept = folder / "checkpoint" / "pathcast" / "reports"
    kept.mkdir(parents=True)
    for number in (0, 49, 50, 149):
        (kept / f"{number}.json").write_text("{}")
    begin(folder / "checkpoint", 150)
    micro_batch(spark.createDataFrame(NEWS[:1], "number long, xml binary"), 150, described, described.stream)
    assert sorted(int(file.stem) for file in kept.iterdir()) == [50, 149, 150]


def test_a_format_that_is_not_files_gets_the_number_as_a_column(spark, folder, monkeypatch):
    described = pipeline(folder)
    frame = deliveries(match(spark.createDataFrame(NEWS, "number long, xml binary"), described, 1), described)
    columns: list[list[str]] = []

    def writer(frame: DataFrame) -> Nothing:
        columns.append(frame.columns)
        return Nothing()

    monkeypatch.setattr(type(frame), "write", property(writer))
    write(frame, replace(described.deliveries, format="jdbc", path=None), 3)
    assert columns == [["number", "xml", "subscriber", "batch"]]


class Nothing:
    """A writer that takes every call."""

    def __getattr__(self, name):
        return lambda *_, **__: self


def test_a_stream_is_stopped(spark, folder):
    described = pipeline(folder, stream=STREAM.replace('"checkpoint"', '"checkpoint"\ntrigger = "0 seconds"'))
    stop = Event()
    reports: list[AnyReport] = []

    def tell(report: AnyReport) -> None:
        reports.append(report)
        stop.set()

    assert not run(spark, described, tell, stop)
    assert spark.streams.active == []
    assert isinstance(reports[0], Report) and reports[0].batch == 0


def test_a_stream_that_fails_says_in_which_micro_batch_and_why(spark, folder):
    (folder / "deliveries").write_text("in the way")
    with pytest.raises(PipelineError, match="the stream failed in micro-batch 0: .*deliveries"):
        run(spark, pipeline(folder, stream=STREAM), ignored)


def test_a_first_micro_batch_that_failed_half_way_is_repeated_and_other_streams_keep_off_its_rows(spark, folder):
    described = pipeline(folder, stream='[stream]\ncheckpoint = "checkpoint"')
    (folder / "dead").write_text("in the way")
    with pytest.raises(PipelineError, match="the stream failed in micro-batch 0: .*dead"):
        run(spark, described, ignored)
    assert delivered(folder) == DELIVERED
    (folder / "dead").unlink()
    assert run(spark, described, ignored)
    assert delivered(folder) == DELIVERED
    assert [row["number"] for row in rows(folder / "dead")] == [3]
    assert described.stream is not None
    other = replace(described, stream=replace(described.stream, checkpoint=str(folder / "other")))
    behind = [replace(described.deliveries, path=f"file://{folder}/{name}") for name in ("deliveries", "dead-too")]
    for one in (other, replace(other, deliveries=behind[0], dead_letters=behind[1])):
        with pytest.raises(PipelineError, match=r"deliveries.path: .*/deliveries holds rows .* or remove .*"):
            run(spark, one, ignored)
    assert not (folder / "other").exists()
    check_outputs(replace(other, deliveries=behind[1], dead_letters=None), spark)


def test_a_table_of_subscriptions_is_compiled_and_what_is_invalid_kept(spark, folder):
    (folder / "wanted.csv").write_text("id,subscriber,xpath\n1,ada,//title\n2,bob,//p/!=\n3,carl,//f:x\n")
    pq.write_table(
        pa.table(
            {"id": [3, 9], "subscriber": ["carl", "dora"], "xpath": ["", "//other"], "change": ["removed", "added"]}
        ),
        folder / "changes",
    )
    described = pipeline(
        folder, 'table = "wanted.csv"\nchanges = "changes"\ninvalid = "invalid"\nnamespaces = { f = "urn:f" }'
    )
    line = compile_table(spark, described)
    assert line.startswith("subscriptions: version 2: 2 subscriptions")
    run(spark, described, ignored)
    assert delivered(folder) == [(1, "ada"), (2, "ada"), (4, "dora")]
    assert [(row["id"], row["reason"]) for row in rows(folder / "invalid")] == [(2, "expected a step, got '!='")]


def test_a_pipeline_without_a_table_compiles_nothing(spark, folder):
    assert compile_table(spark, pipeline(folder)) == ""


def test_a_column_that_is_not_there_is_named(spark, folder):
    with pytest.raises(
        PipelineError, match="deliveries.columns: the source has no column 'numbr'; did you mean number?"
    ):
        run(spark, pipeline(folder, deliveries='columns = ["numbr"]'), ignored)


def test_a_source_with_a_column_batch_cannot_be_streamed(spark, folder):
    source = 'format = "parquet"\npath = "news"\nschema = "number long, xml binary, batch int"'
    with pytest.raises(PipelineError, match="has a column 'batch'"):
        run(spark, pipeline(folder, source=source, stream=STREAM), ignored)


def test_the_plan_says_what_would_happen(folder):
    found = dict(plan(pipeline(folder, stream=STREAM)))
    assert found["index"] == f"{folder}/index, version 1"
    assert found["documents"] == f"parquet {folder}/news: column xml"
    assert found["deliveries"].endswith("(a folder per micro-batch): a row per document and subscriber")
    assert found["trigger"] == "available-now, until all existing input is processed"
    assert found["checkpoint"].endswith("(new)")


def test_the_plan_names_what_is_not_there(folder):
    with pytest.raises(PipelineError, match="source.path: .*nowhere does not exist"):
        list(plan(pipeline(folder, source='format = "files"\npath = "nowhere"')))
    (folder / "index").rename(folder / "moved")
    with pytest.raises(PipelineError, match="subscriptions.index: no index at"):
        list(plan(pipeline(folder)))


def test_a_report_reads_well():
    report = Report(17, 3, 1_000, 17_204, 4, 0.999, 0.9)
    assert str(report) == (
        "batch 17: 1,000 documents, 17,204 matches, 4 dead letters, 0.9 s, 1,111 documents/s, memo 99.9 %, "
        "index version 3"
    )
    assert json.loads(json.dumps(report.__dict__)) == report.__dict__


def test_documents_of_several_schemas_become_messages_per_subscriber(spark, folder):
    mediator = Mediator(infer_tree(["<news><title>x</title></news>"]))
    mediator.register(
        "annex", infer_tree(["<item><head>x</head></item>"]), correspondence={"item": "news", "item/head": "news/title"}
    )
    mediator.save(folder / "mediator")
    rows = [("annex", b"<item><head>Rain</head></item>"), ("annex", b"<news/>"), ("none", b"<item/>")]
    schema = pa.schema([("publisher", pa.string()), ("xml", pa.binary())])
    news = [dict(zip(schema.names, row, strict=True)) for row in rows]
    pq.write_table(pa.Table.from_pylist(news, schema), folder / "items.parquet")
    given = pipeline(
        folder,
        '[mediation]\nmediator = "mediator"',
        source='format = "parquet"\npath = "items.parquet"',
        deliveries='per = "message"',
    )
    assert ("mediation", f"{folder}/mediator: schema in column publisher") in list(plan(given))
    matched = match(spark.read.parquet(str(folder / "items.parquet")), given, None)
    (row,) = deliveries(matched, given).collect()
    assert (row.subscriber, row.documents, [each.publisher for each in row.rows]) == ("ada", 1, ["annex"])
    assert RoXSum.decode(bytes(row.message)).documents() == [rows[0][1]]
    assert sorted(each.publisher for each in matched.where("error is not null").collect()) == ["annex", "none"]
