"""`disseminate`: deliveries, bytes and annotations are those of the overlay in one process, for every policy."""

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from pathcast.errors import PathcastError, PipelineError
from pathcast.mediation import Mediator, infer_tree
from pathcast.patterns import parse
from pathcast.routing import Overlay, Policy
from pathcast.routing.annotation_header_codec import split
from pathcast.routing.document_forwarding import DocumentForwarding
from pathcast.routing.overlay import engine_for
from pathcast.routing.snapshot.stored_overlay import StoredOverlay, save_overlay
from pathcast.spark import dead_letters, disseminate, publish_overlay
from pathcast.spark.matching.mediate_documents import mediating
from pathcast.spark.matching.parse_documents import parsing
from pathcast.spark.matching.worker_index import Index
from pathcast.spark.overlay.published_overlays import open_overlay
from pathcast.spark.overlay.routing_worker_tasks import Way, hopping, routing
from pathcast.spark.sessions.objects_sent_to_workers import ShippedObject

POLICIES = ["L", "L+s-sd", "L+t", "L+st-sd", "ES+sd", "ES+t", "adaptive"]
XPATHS = ["/a/b", "//c", "/a/*/c", "//b[@x = 1]", "/a//d", "//b/c[. = 'x']", "/a[b]/d", "//e"]
ADDED = {
    "router": pa.string(), "sender": pa.string(), "subscriber": pa.string(), "annotations": pa.binary(),
    "bytes": pa.int64(), "error": pa.struct([("reason", pa.string()), ("line", pa.int32()), ("column", pa.int32())]),
}  # fmt: skip


def drawn(random, depth=0):
    name = random.choice("abcde") if depth else "a"
    attribute = " x='1'" if random.random() < 0.3 else ""
    inner = "".join(drawn(random, depth + 1) for _ in range(random.randrange(3))) if depth < 4 else "x"
    return f"<{name}{attribute}>{inner}</{name}>"


def made(untrusted=()):
    random = Random(5)
    overlay = Overlay.tree(levels=3, fanout=2, untrusted=untrusted)
    for router in overlay.routers:
        xpaths = random.sample(XPATHS, 3)
        overlay.subscribe_many(router, xpaths, [f"{router}-{number}" for number in range(3)])
    overlay.advertise(keep=0.5)
    return overlay


DOCUMENTS = [drawn(Random(seed)).encode() for seed in range(12)]


def in_process(overlay, policy, at, monkeypatch):
    """The messages and deliveries of each router, per document."""
    came, delivered = [], []

    class Watched(DocumentForwarding):
        def run(self, data):
            header = data[: len(data) - len(split(data)[1])]
            came.append((number, self.sender, self.router.name, header, len(data)))
            return super().run(data)

    monkeypatch.setattr("pathcast.routing.overlay.DocumentForwarding", Watched)
    for number, document in enumerate(DOCUMENTS):
        report = overlay.publish(document, policy, at=at)
        delivered += [(number, delivery.router, delivery.subscriber) for delivery in report.deliveries]
    return sorted(came, key=str), sorted(delivered)


def routed(overlay, policy, folder, at=None, documents=None, cut=5, spread=False, whole=False):
    """The rows that workers produce, without Spark: all hops at once, or hop by hop."""
    documents = DOCUMENTS if documents is None else documents
    save_overlay(overlay, folder, at=at, engines=["automaton"], whole=whole)
    policy = Policy.read(policy)
    way = Way(Index(str(folder)), policy, engine_for(policy, None), "xml", links=True)
    batch = pa.RecordBatch.from_pydict({"number": range(len(documents)), "xml": pa.array(documents, pa.binary())})
    rows = iter([batch.slice(begin, cut) for begin in range(0, len(batch), cut)])
    if spread:
        return spread_rows(rows, replace(way, structure="structure"))
    found = [row for one in routing(way)(rows) for row in one.to_pylist()]
    return [
        {**row, **visit, "subscriber": name}
        for row in found
        for visit in row["visits"]
        for name in (None, *visit["subscribers"])
    ]


def spread_rows(rows, way):
    rows = parsing("xml")(rows)
    begin = list(map(with_columns, rows))
    hops = StoredOverlay(way.overlay.place).hops
    for number in range(hops):
        begin = list(hopping(way, last=number == hops - 1)(iter(begin)))
    found = [row for one in begin for row in one.to_pylist()]
    assert not any(row["_open"] or row["structure"] for row in found)
    return found


def with_columns(batch):
    for name, kind in ADDED.items():
        if name != "error":
            batch = batch.append_column(name, pa.nulls(len(batch), kind))
    return batch.append_column("_open", pa.array([True] * len(batch)))


CASES = [*((policy, None) for policy in POLICIES), ("L", "r4"), ("L+st-sd", "r4"), ("ES+sd", "r4")]


@pytest.mark.parametrize(
    ("policy", "at", "way"),
    [*((*case, way) for case in CASES for way in ("together", "spread")), ("L", None, "whole"), ("L", "r4", "whole")],
)
def test_rows_are_what_the_overlay_in_one_process_does(policy, at, way, monkeypatch, tmp_path):
    # Dictionaries of links are numbered by chance.
    monkeypatch.setattr("pathcast.routing.structure.structure_encoder.os.urandom", lambda count: b"\1" * count)
    rows = routed(made(), policy, tmp_path, at, spread=way == "spread", whole=way == "whole")
    came, delivered = in_process(made(), policy, at, monkeypatch)
    assert not any(row["error"] for row in rows)
    links = [row for row in rows if row["subscriber"] is None]
    found = [(row["number"], row["sender"], row["router"], row["annotations"], row["bytes"]) for row in links]
    assert sorted(found, key=str) == came
    assert delivered
    assert sorted((row["number"], row["router"], row["subscriber"]) for row in rows if row["subscriber"]) == delivered
    assert all(row["xml"] == DOCUMENTS[row["number"]] for row in rows)


@pytest.mark.parametrize("spread", [False, True], ids=["together", "spread"])
def test_a_document_that_cannot_be_read_is_one_row(spread, tmp_path):
    rows = routed(made(), "L+s-sd", tmp_path, documents=[b"<a", None, b"<e/>"], spread=spread)
    assert [(row["number"], bool(row["error"])) for row in rows if row["error"]] == [(0, True), (1, True)]
    assert {row["router"] for row in rows if row["error"]} == {"r1"}
    with pytest.raises(PathcastError):
        made().publish(b"<a")


def test_a_document_that_nobody_looks_at_is_still_found_to_be_unreadable(tmp_path):
    (row,) = routed(Overlay.tree(levels=2), "L", tmp_path, documents=[b"<a"])
    assert row["error"] is not None


def test_a_worker_opens_the_routers_that_its_documents_come_to(tmp_path):
    overlay = Overlay.tree(levels=3, fanout=2)
    overlay.subscribe("r4", "/a", "ada")
    overlay.subscribe("r7", "/b", "bob")
    rows = routed(overlay, "L", tmp_path, documents=[b"<a/>"])
    assert [row["router"] for row in rows] == ["r1", "r2", "r4", "r4"]
    stored, _ = open_overlay(Index(str(tmp_path)))
    assert stored.opened == ["r1", "r2", "r4"]


def test_documents_of_other_schemas_are_routed_by_their_structure(tmp_path):
    mediator = Mediator(infer_tree(["<a><b><c>1</c></b></a>"]))
    mediator.register("annex", infer_tree(["<a><x><y>1</y></x></a>"]), correspondence={"a/x": "a/b", "a/x/y": "a/b/c"})
    documents = [b"<a><x><y>x</y></x></a>", b"<a/>", b"<other/>"]
    batch = pa.RecordBatch.from_pydict({"publisher": ["annex"] * 3, "xml": pa.array(documents, pa.binary())})
    structured = mediating(ShippedObject.of(mediator), "xml", "publisher")(iter([batch]))
    overlay = made()
    overlay.mediator = mediator
    for name in overlay.routers:
        overlay.router(name).mediated.mediator = mediator
    expected = [overlay.publish(each, "L+s-sd", schema="annex").deliveries for each in documents[:2]]
    assert expected[0]
    save_overlay(made(), tmp_path)
    way = Way(Index(str(tmp_path)), Policy.read("L+s-sd"), "automaton", "xml", links=False, structure="structure")
    rows = [row["visits"] for one in routing(way)(structured) for row in one.to_pylist()]
    found = [[(visit["router"], name) for visit in row for name in visit["subscribers"]] for row in rows]
    assert [sorted(each) for each in found[:2]] == [sorted((d.router, d.subscriber) for d in each) for each in expected]
    assert [visit["error"] is not None for visit in rows[2]] == [True]


def test_on_spark_documents_reach_their_subscribers(spark, monkeypatch, tmp_path):
    documents = spark.createDataFrame([*enumerate(DOCUMENTS), (99, b"<a")], "number int, xml binary").coalesce(1)
    publish_overlay(made(), tmp_path / "overlay", policy="L+s-sd")
    came, delivered = in_process(made(), "L+s-sd", None, monkeypatch)
    for overlay, spread in ((made(), False), (tmp_path / "overlay", True)):
        found = disseminate(documents, overlay, "L+s-sd", links=True, spread=spread)
        assert found.columns == ["number", "xml", *ADDED]
        rows = found.collect()
        good = [row for row in rows if row.error is None]
        links = [
            (row.number, row.sender, row.router, bytes(row.annotations), row.bytes)
            for row in good
            if row.subscriber is None
        ]
        assert sorted(links, key=str) == came
        assert sorted((row.number, row.router, row.subscriber) for row in good if row.subscriber) == delivered
        assert [(row.number, row.router) for row in rows if row.error] == [(99, "r1")]
    assert "error" in dead_letters(found).columns


def test_what_is_asked_wrongly_is_said(spark, tmp_path, index):
    documents = spark.createDataFrame([(1, b"<a/>")], "router int, xml binary")
    with pytest.raises(PipelineError, match="'router' already exists"):
        disseminate(documents, made())
    documents = documents.select("xml")
    with pytest.raises(ValueError, match="policy"):
        disseminate(documents, made(), "M")
    with pytest.raises(PipelineError, match="no overlay at"):
        disseminate(documents, tmp_path)
    with pytest.raises(PipelineError, match="holds a snapshot of kind 'index', not an overlay"):
        disseminate(documents, index)
    publish_overlay(made(), tmp_path / "overlay")
    with pytest.raises(PipelineError, match="published at r1, not at r4"):
        disseminate(documents, tmp_path / "overlay", at="r4")
    with pytest.raises(PathcastError, match="is read-only"):
        StoredOverlay(tmp_path / "overlay" / "versions" / "00000001").router("r2").subscribe(1, parse("/a"), "ada")
