"""Stages in streams: micro-batches give the same result as one process for all documents."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pathcast
from pathcast.joins import Extraction
from pathcast.mediation import Mediator, infer_tree
from pathcast.routing import Overlay
from pathcast.spark import (
    Mediating,
    PublishedIndex,
    dead_letters,
    deliver,
    disseminate,
    extract_rows,
    match_documents,
    mediate,
    publish,
    publish_overlay,
)
from pathcast.spark.pipeline.pipeline_sections import Stream
from pathcast.spark.pipeline.start_stream import start_stream
from pathcast.spark.sessions.spark_session import EMPTY_CHECKPOINT_CHECK

SAME = {"shop/share": "shop/stock", "shop/share/ratio": "shop/stock/per"}
DOCUMENTS = [
    (1, "annex", b"<shop><share symbol='A'><ratio>5</ratio></share></shop>"),
    (2, "annex", b"<shop><share symbol='B'><ratio>9</ratio></share><share symbol='C'><ratio>x</ratio></share></shop>"),
    (3, "annex", b"<shop>"),
    (4, "none", b"<shop/>"),
    (5, "annex", b"<shop/>"),
]
XPATHS = {"//stock": "r2", "//stock[per = 5]": "r3", "/shop": "r1", "//share": "r2"}
STOCKS = Extraction("Stocks", "//stock", {"symbol": "@symbol", "per": "per float"})


def test_stages_give_in_micro_batches_what_one_process_says(spark, tmp_path):
    mediator = Mediator(infer_tree(["<shop><stock symbol='A'><per>1</per></stock></shop>"]))
    mediator.register(
        "annex", infer_tree(["<shop><share symbol='A'><ratio>1</ratio></share></shop>"]), correspondence=SAME
    )
    subscriptions, overlay = pathcast.Subscriptions(), Overlay.tree(levels=2)
    for number, (xpath, router) in enumerate(XPATHS.items()):
        subscriptions.add(xpath, subscriber=f"s{number}")
        overlay.subscribe(router, xpath, f"s{number}")
    overlay.advertise(1.0)
    publish(subscriptions.compile(), tmp_path / "index", shards=2)
    publish_overlay(overlay, tmp_path / "overlay")
    (tmp_path / "documents").mkdir()
    for number, some in enumerate((DOCUMENTS[:2], DOCUMENTS[2:])):
        file = tmp_path / "documents" / f"{number}.parquet"
        pq.write_table(pa.table([*zip(*some, strict=True)], names=["number", "publisher", "xml"]), file)
        os.utime(file, (number, number))
    stream = spark.readStream.schema("number long, publisher string, xml binary").option("maxFilesPerTrigger", 1)
    documents = stream.parquet(str(tmp_path / "documents"))
    mediated = mediate(documents, mediator)
    matched = match_documents(
        mediated, PublishedIndex(tmp_path / "index", shards=2), structure="structure", by="subscriber"
    )
    frames = {
        "matched": matched.drop("xml"),
        "routed": disseminate(documents, tmp_path / "overlay", "L", mediation=Mediating(mediator), links=True),
        "rows": extract_rows(mediated, STOCKS, structure="structure", key="number"),
    }
    queries = [
        frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / f"checkpoint-{name}"))
        .trigger(availableNow=True).start(str(tmp_path / name))
        for name, frame in frames.items()
    ]  # fmt: skip
    assert all(query.awaitTermination(240) for query in queries)
    assert all(sum(bool(one.numInputRows) for one in query.recentProgress) == 2 for query in queries)

    matcher = mediator.compile(subscriptions)
    expected = sorted(
        (number, name)
        for number, who, xml in DOCUMENTS
        if number not in (3, 4)
        for name in matcher.match(xml, who).subscribers
    )
    found = spark.read.parquet(str(tmp_path / "matched"))
    assert sorted((row.number, row.subscriber) for row in deliver(found).collect()) == expected
    assert sorted(row.number for row in dead_letters(found).collect()) == [3, 4]

    rows = pq.read_table(tmp_path / "routed").to_pylist()
    assert sorted((row["number"], row["subscriber"]) for row in rows if row["subscriber"]) == expected
    assert all(row["router"] == XPATHS[list(XPATHS)[int(row["subscriber"][1:])]] for row in rows if row["subscriber"])
    assert sorted(row["number"] for row in rows if row["error"]) == [3, 4]
    there = Overlay.tree(levels=2, mediator=mediator)
    for number, (xpath, router) in enumerate(XPATHS.items()):
        there.subscribe(router, xpath, f"s{number}")
    there.advertise(1.0)
    messages = []
    for number, who, xml in DOCUMENTS:
        if number not in (3, 4):
            report = there.publish(xml, "L", schema=who, with_mapping=False)
            extra = len(mediator.pack(xml, who, with_mapping=False)) - len(xml)
            messages += [(number, name, one.received - extra) for name, one in report.per_router.items()]
    links = [(row["number"], row["router"], row["bytes"]) for row in rows if not row["subscriber"] and not row["error"]]
    assert sorted(links) == sorted(messages)

    changes = pq.read_table(tmp_path / "rows").to_pylist()
    good = sorted((row["sequence"], json.loads(row["row"])["symbol"]) for row in changes if not row["error"])
    assert good == [(1 << 20, "A"), (2 << 20, "B")]
    assert sorted(row["number"] for row in changes if row["error"]) == [2, 3, 4]


@pytest.fixture
def interrupted(spark, tmp_path):
    """A stream of one line, and a checkpoint that a kill left while its first offsets were written."""
    (tmp_path / "in").mkdir()
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    (tmp_path / "in" / "a.txt").write_text("one\n")
    # Spark writes a file of this name and renames it; a kill in between leaves it.
    (tmp_path / "checkpoint" / "offsets" / ".0.7f0c8a52-0d0e-4c3e-9a53-3a7d44ad4f0e.tmp").write_text("v1\n{")
    return spark.readStream.text(str(tmp_path / "in")), str(tmp_path / "checkpoint")


def test_a_stream_that_was_killed_while_it_wrote_its_first_offsets_starts_again(spark, interrupted, tmp_path):
    frame, checkpoint = interrupted
    writer = frame.writeStream.format("parquet").trigger(availableNow=True).option("checkpointLocation", checkpoint)
    assert writer.start(str(tmp_path / "out")).awaitTermination(240)
    assert [row.value for row in spark.read.parquet(str(tmp_path / "out")).collect()] == ["one"]


def test_a_pipeline_that_was_killed_while_it_wrote_its_first_offsets_starts_again(spark, interrupted):
    frame, checkpoint = interrupted
    before = spark.conf.get(EMPTY_CHECKPOINT_CHECK)
    spark.conf.set(EMPTY_CHECKPOINT_CHECK, "true")  # as in a session that was started elsewhere
    seen = []
    try:
        stream = Stream(checkpoint=checkpoint, trigger="available-now")
        query = start_stream(frame, lambda rows, batch: seen.append((batch, rows.collect()[0].value)), "lines", stream)
        assert query.awaitTermination(240)
    finally:
        spark.conf.set(EMPTY_CHECKPOINT_CHECK, before)
    assert seen == [(0, "one")]
