"""`disseminate`: deliveries, bytes and annotations are those of the overlay in one process, for every policy."""

import pickle
from random import Random

import pyarrow as pa
import pytest

from pathcast.errors import PathcastError, PipelineError
from pathcast.routing import Overlay, Policy
from pathcast.routing.description import OverlayDescription
from pathcast.routing.handling import Handling
from pathcast.routing.overlay import engine_for
from pathcast.routing.wire import split
from pathcast.spark import dead_letters, disseminate
from pathcast.spark.routed import hopping
from pathcast.spark.shipped import Shipped

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
    """What came to each router, and who got what, document by document."""
    came, delivered = [], []

    class Watched(Handling):
        def run(self, data):
            header = data[: len(data) - len(split(data)[1])]
            came.append((number, self.sender, self.router.name, header, len(data)))
            return super().run(data)

    monkeypatch.setattr("pathcast.routing.overlay.Handling", Watched)
    for number, document in enumerate(DOCUMENTS):
        report = overlay.publish(document, policy, at=at)
        delivered += [(number, delivery.router, delivery.subscriber) for delivery in report.deliveries]
    return sorted(came, key=str), sorted(delivered)


def hopped(overlay, policy, at=None, documents=None, cut=5):
    documents = DOCUMENTS if documents is None else documents
    batch = pa.RecordBatch.from_pydict({"number": range(len(documents)), "xml": pa.array(documents, pa.binary())})
    for name, kind in ADDED.items():
        batch = batch.append_column(name, pa.nulls(len(batch), kind))
    batch = batch.append_column("_open", pa.array([True] * len(batch)))
    rows = iter([batch.slice(begin, cut) for begin in range(0, len(batch), cut)])
    policy, source = Policy.read(policy), at or overlay.root
    shipped = Shipped.of(OverlayDescription.of(overlay))
    for _ in range(int(overlay.topology.rooted(source).depth.max()) + 1):
        rows = hopping(shipped, source, policy, engine_for(policy, None), "xml", links=True)(rows)
    return [row for found in rows for row in found.to_pylist()]


@pytest.mark.parametrize(
    ("policy", "at"), [*((policy, None) for policy in POLICIES), ("L+st-sd", "r4"), ("ES+sd", "r4")]
)
def test_rows_are_what_the_overlay_in_one_process_does(policy, at, monkeypatch):
    # Dictionaries of links are numbered by chance.
    monkeypatch.setattr("pathcast.routing.structure.os.urandom", lambda count: b"\1" * count)
    rows = hopped(made(), policy, at)
    came, delivered = in_process(made(), policy, at, monkeypatch)
    assert not any(row["_open"] or row["error"] for row in rows)
    links = [row for row in rows if row["subscriber"] is None]
    found = [(row["number"], row["sender"], row["router"], row["annotations"], row["bytes"]) for row in links]
    assert sorted(found, key=str) == came
    assert delivered
    assert sorted((row["number"], row["router"], row["subscriber"]) for row in rows if row["subscriber"]) == delivered
    assert all(row["xml"] == DOCUMENTS[row["number"]] for row in rows)


def test_a_document_that_cannot_be_read_is_one_row():
    rows = hopped(made(), "L+s-sd", documents=[b"<a", None, b"<e/>"])
    assert [(row["number"], bool(row["error"])) for row in rows if row["error"]] == [(0, True), (1, True)]
    assert {row["router"] for row in rows if row["error"]} == {"r1"}
    with pytest.raises(PathcastError):
        made().publish(b"<a")


def test_a_document_that_nobody_looks_at_is_still_found_to_be_unreadable():
    overlay = Overlay.tree(levels=2)
    (row,) = hopped(overlay, "L", documents=[b"<a"])
    assert row["error"] is not None


def test_an_overlay_travels_as_its_description():
    overlay = made(untrusted=[("r1", "r2")])
    overlay.unsubscribe(2)
    there = pickle.loads(pickle.dumps(OverlayDescription.of(overlay))).overlay()
    assert len(there) == len(overlay)
    assert there.routers == overlay.routers
    assert there.router("r2").untrusted == {"r1"}
    assert there.keep == 0.5
    for document in DOCUMENTS:
        ours, theirs = (
            {(each.router, each.subscriber) for each in one.publish(document).deliveries} for one in (overlay, there)
        )
        assert ours == theirs


def test_on_spark_documents_reach_their_subscribers(spark, monkeypatch):
    overlay = made()
    documents = spark.createDataFrame([*enumerate(DOCUMENTS), (99, b"<a")], "number int, xml binary").coalesce(1)
    routed = disseminate(documents, overlay, "L+s-sd", links=True)
    assert routed.columns == ["number", "xml", *ADDED]
    rows = routed.collect()
    came, delivered = in_process(made(), "L+s-sd", None, monkeypatch)
    good = [row for row in rows if row.error is None]
    links = [
        (row.number, row.sender, row.router, bytes(row.annotations), row.bytes)
        for row in good
        if row.subscriber is None
    ]
    assert sorted(links, key=str) == came
    assert sorted((row.number, row.router, row.subscriber) for row in good if row.subscriber) == delivered
    assert [row.number for row in rows if row.error] == [99]
    assert "error" in dead_letters(routed).columns


def test_what_is_asked_wrongly_is_said(spark):
    documents = spark.createDataFrame([(1, b"<a/>")], "router int, xml binary")
    with pytest.raises(PipelineError, match="'router' is taken"):
        disseminate(documents, made())
    with pytest.raises(ValueError, match="policy"):
        disseminate(documents.select("xml"), made(), "M")
