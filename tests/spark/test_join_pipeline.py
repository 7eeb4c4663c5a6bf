"""Joins in a pipeline file: messages by subscription, and subscriptions that come and go while the stream runs.

The rows of clients in the end are compared with DuckDB, and the deliveries with the clients' own filters.
"""

import re
from collections import Counter, defaultdict
from pathlib import Path
from threading import Event
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pathcast.cli.app import app
from pathcast.errors import PipelineError
from pathcast.joins import Client, Schema, select
from pathcast.joins.partition.join_server_specification import StandingJoins
from pathcast.joins.query.table_schema_file import read_schema_file
from pathcast.messages import decode
from pathcast.spark import open_joins, publish, publish_joins
from pathcast.spark.joins.join_definition_files import check_joins, publish_file, read_join_subscriptions
from pathcast.spark.joins.table_change_fan_out import fanning
from pathcast.spark.joins.worker_join_subscriptions import find_subscriptions
from pathcast.spark.pipeline.dry_run_plan import plan
from pathcast.spark.pipeline.pipeline_file import Pipeline, read_pipeline
from pathcast.spark.pipeline.run_pipeline import JoinReport, join_reports_of, run
from pathcast.spark.publishing.index_versions import versions
from pathcast.spark.publishing.micro_batch_version_pins import pins_of
from tests.spark.test_output_folder_owners import begin
from tests.spark.test_pipeline_dataframes import matcher, write_news

from .test_one_job import MARKET
from .test_pipeline_file import DOCS

ADA = "select * from Stocks natural join Reviews where per > 40 and rating >= 5"
BOB = "select * from Reviews where rating < 5"
CYD = "select * from Stocks natural join Reviews where per between 30 and 60 and rating >= 2"
STOCKS = [[("A", 50.0), ("B", 30.0)], [("A", 70.0), ("B", 45.0), ("C", 90.0)]]
REVIEWS = [[("A", 7.0), ("A", 3.0), ("B", 4.0)], [("B", 6.0), ("A", 5.0), ("C", 1.0)]]
PIPELINE = """
[source]
format = "parquet"
path = "documents"
schema = "number long, xml binary"
[subscriptions]
index = "index"
[deliveries]
path = "documents-delivered"
[joins]
schema = "market.toml"
subscriptions = "joins.csv"
key = "number"
path = "messages"
deliveries = "join-deliveries"
"""
VERSIONS = 'versions = "join-versions"\n'
STREAM = 'contents = "join-contents"\n[stream]\ncheckpoint = "checkpoint"\ntrigger = "0 seconds"\n'


def documents(part: int) -> list[tuple[int, bytes]]:
    """A document with stocks and one with reviews."""
    stocks = "".join(f"<stock symbol='{symbol}'><per>{per}</per></stock>" for symbol, per in STOCKS[part])
    reviews = "".join(f"<review symbol='{symbol}'><rating>{one}</rating></review>" for symbol, one in REVIEWS[part])
    return [(2 * part + 1, f"<shop>{stocks}</shop>".encode()), (2 * part + 2, f"<shop>{reviews}</shop>".encode())]


def write_subscriptions(folder: Path, *rows: tuple[str, str]) -> None:
    lines = [f'{subscriber},"{query}"' for subscriber, query in rows]
    (folder / "joins.csv").write_text("\n".join(["subscriber,query", *lines]) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    publish(matcher({"//stock": "eve"}), tmp_path / "index")
    (tmp_path / "documents").mkdir()
    write_news(tmp_path / "documents" / "0.parquet", documents(0))
    (tmp_path / "market.toml").write_text(MARKET)
    write_subscriptions(tmp_path, ("ada", ADA), ("bob", BOB))
    return tmp_path


def pipeline(folder: Path, more: str) -> Pipeline:
    (folder / "pipeline.toml").write_text(PIPELINE + more)
    return read_pipeline(folder / "pipeline.toml")


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return found


def answers(parts: int, query: str, columns: tuple[str, ...]) -> Counter:
    """DuckDB's answer to a query over the rows of the first parts."""
    database = duckdb.connect()
    for table, second, given in (("Stocks", "per", STOCKS), ("Reviews", "rating", REVIEWS)):
        database.execute(f"create table {table} (symbol varchar, {second} double)")
        database.executemany(
            f"insert into {table} values (?, ?)", [list(row) for part in given[:parts] for row in part]
        )
    return Counter(database.execute(query.replace("*", ", ".join(columns))).fetchall())


def test_subscriptions_come_and_go_between_micro_batches_with_their_contents(spark, folder, monkeypatch):
    made = pipeline(folder, VERSIONS + "shards = 2\n" + STREAM)
    assert made.joins is not None and made.joins.versions is not None
    assert publish_file(made.joins) == "joins: version 1: 2 subscriptions, 2 added, 0 removed"
    first = open_joins(made.joins.versions).server().subscriptions
    stop = Event()

    def tell(report: object) -> None:
        if isinstance(report, JoinReport) and report.batch == 0:
            write_subscriptions(folder, ("ada", ADA), ("cyd", CYD))
            answer = CliRunner().invoke(app, ["run", str(folder / "pipeline.toml"), "--publish"])
            assert answer.stderr == "joins: version 2: 2 subscriptions, 1 added, 1 removed\n"
            write_news(folder / ".1", documents(1))
            (folder / ".1").rename(folder / "documents" / "1.parquet")
        elif isinstance(report, JoinReport):
            stop.set()

    assert not run(spark, made, tell, stop)  # it was stopped
    standing = open_joins(made.joins.versions)
    assert [(one.id, one.subscriber) for one in standing.asked] == [(1, "ada"), (3, "cyd")]
    there = [{id: first[id] for id in (1, 2)}, dict(standing.server().subscriptions)]
    clients = {id: Client(standing.schema, one) for id, one in {**there[1], **there[0]}.items()}
    told, contents = rows(folder / "messages"), rows(folder / "join-contents")
    assert {(row["batch"], row["subscription"], row["subscriber"]) for row in contents} == {(1, 3, "cyd")}
    for row in contents:
        assert clients[3].receive(decode(row["message"]))
    expected: dict[tuple, str] = {}
    names = {1: "ada", 2: "bob", 3: "cyd"}
    for row in sorted(told, key=lambda row: (row["batch"], row["sequence"], row["number"])):
        for id in there[row["batch"]]:
            if clients[id].receive(decode(row["message"])):
                expected[row["edge"], row["join_value"], row["sequence"], row["number"], id] = names[id]
    delivered = rows(folder / "join-deliveries")
    found = {
        (row["edge"], row["join_value"], row["sequence"], row["number"], row["subscription"]): row["subscriber"]
        for row in delivered
    }
    assert found == expected
    for id, query, parts in ((1, ADA, 2), (2, BOB, 1), (3, CYD, 2)):
        assert Counter(clients[id].rows()) == answers(parts, query, clients[id].columns), id
    names_in_docs: dict[str, Any] = {}
    exec(  # noqa: S102
        re.findall(r"```python\n(import pyarrow.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)[0], names_in_docs
    )
    monkeypatch.chdir(folder)
    assert Counter(names_in_docs["rows_of"](3)) == Counter(clients[3].rows())
    assert made.stream is not None
    reports = join_reports_of(made.stream)
    assert [(one.version, one.contents) for one in reports] == [(1, 0), (2, len(contents))]
    assert sum(one.deliveries or 0 for one in reports) == len(delivered)
    assert "deliveries, 2 initial contents, 0 dead letters, " in str(reports[1])
    assert str(reports[1]).endswith(", subscriptions version 2")


def test_a_batch_has_deliveries_by_message(spark, folder):
    made = pipeline(folder, 'per = "message"\n')
    told: list[object] = []
    assert run(spark, made, told.append)
    (report,) = (one for one in told if isinstance(one, JoinReport))
    delivered = rows(folder / "join-deliveries")
    schema = read_schema_file(folder / "market.toml").schema
    subscriptions = StandingJoins(schema, {"ada": ADA, "bob": BOB}).server().subscriptions
    clients = {id: Client(schema, one) for id, one in subscriptions.items()}
    wanted: dict[tuple, list[int]] = defaultdict(list)
    for row in sorted(rows(folder / "messages"), key=lambda row: (row["sequence"], row["number"])):
        for id, client in clients.items():
            if client.receive(decode(row["message"])):
                wanted[row["sequence"], row["number"]].append(id)
    assert {(row["sequence"], row["number"]): row["subscriptions"] for row in delivered} == wanted
    assert report.deliveries == sum(map(len, wanted.values()))
    assert (report.version, report.contents) == (None, None)
    assert Counter(clients[1].rows()) == answers(1, ADA, clients[1].columns)


# Without Spark.


def test_what_changed_in_the_file_is_published_and_the_rest_keeps_its_ids(folder):
    made = pipeline(folder, VERSIONS).joins
    assert made is not None and made.versions is not None
    write_subscriptions(folder, ("ada", ADA), ("ada", ADA), ("", BOB))
    assert publish_file(made) == "joins: version 1: 3 subscriptions, 3 added, 0 removed"
    assert publish_file(made) == "joins: version 1: 3 subscriptions, 0 added, 0 removed"
    assert versions(made.versions) == [1]
    publish_joins(made.versions, batches=[(select("Stocks"), {"per": ([1, 2], [3, 4])})])  # by a program: it stays
    write_subscriptions(folder, ("", BOB), ("cyd", CYD), ("ada", ADA))
    assert publish_file(made) == "joins: version 3: 5 subscriptions, 1 added, 1 removed"
    standing = open_joins(made.versions)
    assert [(one.id, one.subscriber) for one in standing.asked] == [(1, "ada"), (3, None), (6, "cyd")]
    assert [*standing] == [1, 3, 6, 4, 5]
    without = pipeline(folder, "").joins
    assert without is not None
    assert publish_file(without) == ""


def test_a_plan_says_what_would_be_published(folder):
    made = pipeline(folder, VERSIONS + "shards = 3\n" + STREAM)
    said = dict(plan(made))
    assert said["joins"].startswith("2 subscriptions (ref-sj-clu+) over rows of 2 tables")
    assert said["join versions"] == f"{folder}/join-versions, new; 2 added, 0 removed when the run starts"
    assert (
        said["join deliveries"] == f"parquet {folder}/join-deliveries: a row per message and subscription, in 3 shards"
    )
    assert said["initial contents"] == f"parquet {folder}/join-contents"
    assert made.joins is not None
    publish_file(made.joins)
    assert dict(plan(made))["join versions"] == f"{folder}/join-versions, version 1"
    assert "initial contents" not in dict(plan(pipeline(folder, VERSIONS + 'per = "message"\n')))


def test_versions_of_other_tables_or_schemes_are_refused(folder):
    made = pipeline(folder, VERSIONS)
    assert made.joins is not None and made.joins.versions is not None
    publish_file(made.joins)
    other = pipeline(folder, VERSIONS + 'scheme = "enum-sj"\n').joins
    assert other is not None
    with pytest.raises(
        PipelineError, match=r"joins.scheme: .* are for ref-sj-clu\+, not enum-sj; set joins.scheme = .*, or choose"
    ):
        check_joins(other)
    (folder / "market.toml").write_text(MARKET.replace("per float", "per int"))
    with pytest.raises(PipelineError, match=r"joins.schema: the tables or joins of .*market.toml differ from those of"):
        check_joins(made.joins)
    write_subscriptions(folder, ("ada", "select * from Nothing"))
    (folder / "market.toml").write_text(MARKET)
    answer = CliRunner().invoke(app, ["run", str(folder / "pipeline.toml"), "--publish"])
    assert answer.exit_code != 0
    assert versions(made.joins.versions) == [1]


def test_a_task_that_does_not_know_its_micro_batch_finds_it_by_its_time(tmp_path):
    publish_joins(tmp_path / "joins", StandingJoins(Schema({"A": "k int"}), ["select * from A"]))
    begin(tmp_path / "checkpoint", 0)
    for number, time in ((7, 1_700), (8, 1_800)):
        note = f'v1\n{{"batchTimestampMs":{time}}}\n{{}}'
        (tmp_path / "checkpoint" / "offsets" / str(number)).write_text(note)
    (tmp_path / "checkpoint" / "offsets" / "0").unlink()
    columns = {"table": ["A"], "change": ["insert"], "row": ['{"k": 1}'], "sequence": [1]}

    def fanned(time: list[int] | None) -> pa.RecordBatch:
        given = columns if time is None else {**columns, "time": time}
        place = None if time is None else tmp_path / "checkpoint"
        subscribed = find_subscriptions(None, None, tmp_path / "joins", None, streaming=True, checkpoint=place)
        (rows,) = fanning(subscribed)(iter([pa.RecordBatch.from_pydict(given)]))
        return rows

    assert fanned([1_700])["time"].to_pylist() == [1_700]
    assert pins_of(tmp_path / "joins", "ours") == {7: 1}
    with pytest.raises(PipelineError, match="finds no micro-batch with timestamp 1750 ms"):
        fanned([1_750])
    with pytest.raises(PipelineError, match=r"does not know its micro-batch.*give join_subscriptions the stream's"):
        fanned(None)


def test_a_folder_without_versions_says_how_to_begin(folder):
    text = PIPELINE.replace('subscriptions = "joins.csv"\n', "") + VERSIONS
    (folder / "pipeline.toml").write_text(text)
    made = read_pipeline(folder / "pipeline.toml").joins
    assert made is not None and made.versions is not None
    with pytest.raises(
        PipelineError,
        match="no subscriptions at .*; set joins.subscriptions to .* or publish the first version with publish",
    ):
        check_joins(made)
    schema = read_schema_file(folder / "market.toml").schema
    publish_joins(made.versions, StandingJoins(Schema({"A": "k int"}), ["select * from A"]))
    with pytest.raises(PipelineError, match=r"joins.schema: "):
        check_joins(made)
    (folder / "join-versions").rename(folder / "others")
    publish_joins(made.versions, StandingJoins(schema, [ADA]))
    assert check_joins(made).subscriptions == 1


def test_a_query_may_take_several_lines_of_its_file(tmp_path):
    (tmp_path / "joins.csv").write_text('subscriber,query\nada,"select *\nfrom Stocks"\n,select * from Reviews\n')
    found = read_join_subscriptions(str(tmp_path / "joins.csv"))
    assert found == {"ada": ["select *\nfrom Stocks"], None: ["select * from Reviews"]}


def test_a_text_file_of_queries_may_have_comments(tmp_path):
    (tmp_path / "joins.sql").write_text("-- stocks\nselect * from Stocks\n\n  -- reviews\n")
    assert read_join_subscriptions(str(tmp_path / "joins.sql")) == {None: ["select * from Stocks"]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('subscriber,query\nada,"select * from Stocks\nbob,select * from Reviews\n', "line 3: invalid CSV"),
        (
            "subscriber,query\nada,select * from Stocks, Reviews\n",
            "line 2: too many columns; put a query that contains a comma in quotes",
        ),
        ("", "got none"),
    ],
    ids=["quote", "comma", "empty"],
)
def test_a_file_of_joins_that_is_no_table_says_where(tmp_path, text, reason):
    (tmp_path / "joins.csv").write_text(text)
    with pytest.raises(PipelineError, match=reason):
        read_join_subscriptions(str(tmp_path / "joins.csv"))
