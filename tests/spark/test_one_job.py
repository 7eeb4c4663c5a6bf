"""All stages in one file: documents of several schemas through an overlay to messages, and their rows to joins."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pathcast.joins import Client, JoinServer
from pathcast.joins.query.table_schema_file import read_schema_file
from pathcast.mediation import Mediator, infer_tree
from pathcast.messages import decode
from pathcast.routing import Overlay
from pathcast.roxsum import RoXSum
from pathcast.spark.pipeline.dry_run_plan import plan
from pathcast.spark.pipeline.pipeline_file import read_pipeline
from pathcast.spark.pipeline.run_pipeline import (
    AnyReport,
    JoinReport,
    Report,
    compile_table,
    join_reports_of,
    reports_of,
    run,
)

GLOBAL = "<shop><stock symbol='A'><per>1</per></stock><review symbol='A'><rating>1</rating></review></shop>"
ANNEX = "<shop><share symbol='A'><ratio>1</ratio></share></shop>"
DOCUMENTS = [
    (1, "main", b"<shop><stock symbol='A'><per>50</per></stock><review symbol='A'><rating>7</rating></review></shop>"),
    (2, "annex", b"<shop><share symbol='A'><ratio>60</ratio></share></shop>"),
    (3, "main", b"<shop><stock symbol='B'><per>much</per></stock></shop>"),
    (4, "main", b"<shop>"),
    (5, "none", b"<shop/>"),
    (6, "main", b"<shop><review symbol='A'><rating>2</rating></review></shop>"),
]
# What arrives: the last document declares an entity, which every stage has to expand.
DECLARED = b"<!DOCTYPE shop [<!ENTITY two '2'>]><shop><review symbol='A'><rating>&two;</rating></review></shop>"
ARRIVING = [*DOCUMENTS[:5], (6, "main", DECLARED)]
SUBSCRIPTIONS = [
    (1, "ada", "//stock", "r4"),
    (2, "bob", "//review[rating > 5]", "r7"),
    (3, "cyd", "/shop", "r1"),
    (4, "dan", "//none", "r2"),
    (5, "eve", "//stock", "r9"),
    (6, "fay", "//[", "r2"),
]
QUERIES = [("ada", "select * from Stocks natural join Reviews where per > 40 and rating >= 5")]
MARKET = """
joins = ["Stocks.symbol = Reviews.symbol"]
[tables]
Stocks = "symbol string, per float"
Reviews = "symbol string, rating float"
[rows.Stocks]
rows = "//stock"
columns = { symbol = "@symbol", per = "per" }
[rows.Reviews]
rows = "//review"
columns = { symbol = "@symbol", rating = "rating" }
"""
PIPELINE = """
[source]
format = "parquet"
path = "documents"
schema = "number long, publisher string, xml binary"
entities = "expand"
options = { maxFilesPerTrigger = 1 }

[mediation]
mediator = "mediator"

[overlay]
levels = 3
policy = "L+s-sd"
keep = 1.0
links = "links"

[subscriptions]
index = "overlay"
table = "subscriptions.csv"
invalid = "invalid"

[deliveries]
per = "message"
path = "deliveries"
columns = ["number"]

[dead_letters]
path = "dead"
columns = ["number"]

[joins]
schema = "market.toml"
subscriptions = "joins.csv"
key = "number"
path = "messages"
dead_letters = "dead-changes"

[stream]
checkpoint = "checkpoint"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """All files of the pipeline; the documents in two."""
    mediator = Mediator(infer_tree([GLOBAL]))
    mediator.register("main", infer_tree([GLOBAL]))
    same = {"shop/share": "shop/stock", "shop/share/ratio": "shop/stock/per"}
    mediator.register("annex", infer_tree([ANNEX]), correspondence=same)
    mediator.save(tmp_path / "mediator")
    (tmp_path / "documents").mkdir()
    for number, some in enumerate((ARRIVING[:3], ARRIVING[3:])):
        columns = [pa.array(column) for column in zip(*some, strict=True)]
        file = tmp_path / "documents" / f"{number}.parquet"
        pq.write_table(pa.table(columns, names=["number", "publisher", "xml"]), file)
        os.utime(file, (number, number))
    for name, head, rows in (
        ("subscriptions.csv", ("id", "subscriber", "xpath", "router"), SUBSCRIPTIONS),
        ("joins.csv", ("subscriber", "query"), QUERIES),
    ):
        with (tmp_path / name).open("w", newline="") as table:
            csv.writer(table).writerows([head, *rows])
    (tmp_path / "market.toml").write_text(MARKET)
    (tmp_path / "pipeline.toml").write_text(PIPELINE)
    return tmp_path


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return found


def test_documents_are_mediated_routed_and_summarised_and_their_rows_joined(spark, folder):
    pipeline = read_pipeline(folder / "pipeline.toml")
    said = dict(plan(pipeline))
    assert said["overlay"] == f"7 routers from r1, policy L+s-sd, traffic to {folder}/links"
    assert said["joins"].startswith("1 subscriptions (ref-sj-clu+) over rows of 2 tables")
    assert compile_table(spark, pipeline).startswith("subscriptions: version 1: 4 subscriptions, 4 added, 0 removed, ")
    assert sorted(row["reason"].split(" ")[0] for row in rows(folder / "invalid")) == ["expected", "invalid"]

    told: list[AnyReport] = []
    assert run(spark, pipeline, told.append)
    documents = [report for report in told if isinstance(report, Report)]
    assert [(one.documents, one.matches, one.dead_letters, one.version) for one in documents] == [
        (3, 7, 0, 1),
        (3, 1, 2, 1),
    ]
    assert pipeline.stream is not None
    assert documents == reports_of(pipeline.stream)
    joins = [report for report in told if isinstance(report, JoinReport)]
    assert joins == join_reports_of(pipeline.stream)
    assert [one.dead_letters for one in joins] == [1, 2]

    # The deliveries of the overlay in one process.
    assert pipeline.mediation is not None
    overlay = in_process(pipeline.mediation.mediator)
    expected = [
        (delivery.router, delivery.subscriber, number)
        for number, publisher, xml in DOCUMENTS
        if number not in (4, 5)
        for delivery in overlay.publish(xml, "L+s-sd", schema=publisher, with_mapping=False).deliveries
    ]
    messages = rows(folder / "deliveries")
    found = [(row["router"], row["subscriber"], one["number"]) for row in messages for one in row["rows"]]
    assert sorted(found) == sorted(expected)
    originals = {xml for _, _, xml in ARRIVING}
    sent = [xml for row in messages for xml in RoXSum.decode(row["message"], entities="expand").documents()]
    assert set(sent) <= originals
    assert DECLARED in sent
    assert sorted(row["number"] for row in rows(folder / "dead")) == [4, 5]
    links: dict[tuple[str, str], int] = {}
    for row in rows(folder / "links"):
        links[row["sender"], row["router"]] = links.get((row["sender"], row["router"]), 0) + row["messages"]
        assert 0 < row["annotations"] < row["bytes"]
    assert links == {("r1", "r2"): 3, ("r2", "r4"): 3, ("r1", "r3"): 1, ("r3", "r7"): 1}

    # The messages of joins give a client the same rows as those of one server.
    schema = read_schema_file(folder / "market.toml").schema
    server = JoinServer(schema)
    subscription = server.subscribe(QUERIES[0][1], "ada")
    alone = [
        *server.insert("Stocks", {"symbol": "A", "per": 50.0}),
        *server.insert("Reviews", {"symbol": "A", "rating": 7.0}),
        *server.insert("Stocks", {"symbol": "A", "per": 60.0}),
        *server.insert("Reviews", {"symbol": "A", "rating": 2.0}),
    ]
    here, there = Client(schema, subscription), Client(schema, subscription)
    for row in sorted(rows(folder / "messages"), key=lambda row: (row["sequence"], row["number"])):
        here.receive(decode(row["message"]))
    for message in alone:
        there.receive(message)
    assert sorted(here.rows()) == sorted(there.rows()) == [("A", 50.0, 7.0), ("A", 60.0, 7.0)]
    dead = rows(folder / "dead-changes")
    assert sorted(json.loads(row["row"])["number"] for row in dead) == [3, 4, 5]
    assert sum(one.messages for one in joins) == len(alone)


def in_process(mediator: str) -> Overlay:
    overlay = Overlay.tree(levels=3, mediator=Mediator.open(mediator))
    for _, subscriber, xpath, router in SUBSCRIPTIONS[:4]:
        overlay.subscribe(router, xpath, subscriber)
    overlay.advertise(1.0)
    return overlay
