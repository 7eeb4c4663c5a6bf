"""Stages in streams: micro-batches give the same result as one process for all documents."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq

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
