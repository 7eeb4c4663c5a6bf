"""`extract_rows`: documents become changes of a table, each the same as in one process."""

import json

import pyarrow as pa
import pytest

from pathcast.documents import read_batch
from pathcast.errors import PipelineError
from pathcast.joins import Extraction
from pathcast.joins.query.row_extraction import Extractor
from pathcast.mediation import Mediator, infer_tree
from pathcast.spark import dead_letters, extract_rows
from pathcast.spark.joins.extract_rows import extracting
from pathcast.spark.matching.mediate_documents import mediating
from pathcast.spark.sessions.objects_sent_to_workers import ShippedObject

STOCKS = Extraction("Stocks", "//stock", {"symbol": "@symbol", "per": "per float"}, required=["symbol"], change="@do")
FEEDS = [
    (1, b"<f><stock symbol='A' do='insert'><per>1</per></stock><stock do='insert'/></f>"),
    (2, b"<f/>"),
    (3, b"<f>"),
    (4, None),
    (5, "<f><stock symbol='é' do='delete'><per> 2.5 </per></stock></f>".encode()),
]
SCHEMA = pa.schema([("number", pa.int64()), ("xml", pa.binary())])


def arrow(rows=FEEDS, cut=2):
    made = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    return [pa.RecordBatch.from_pylist(made[at : at + cut], SCHEMA) for at in range(0, len(made), cut)]


def changes_of(batches, **options):
    found = extracting(ShippedObject.of(STOCKS), "xml", **options)(iter(batches))
    return [row for batch in found for row in batch.to_pylist()]


def test_changes_are_the_rows_that_one_process_cuts_out():
    rows = changes_of(arrow(), key="number")
    alone = Extractor(STOCKS).extract(read_batch([xml or b"" for _, xml in FEEDS], errors="return"))
    good = [at for at in range(len(alone.rows)) if at not in alone.errors]
    assert [(row["change"], json.loads(row["row"])) for row in rows if row["error"] is None] == [
        (alone.changes[at], alone.rows[at]) for at in good
    ]
    assert [row["sequence"] for row in rows] == [1 << 20, None, None, None, 5 << 20]
    assert [row["number"] for row in rows] == [1, 1, 3, 4, 5]
    assert {row["table"] for row in rows} == {"Stocks"}


def test_what_cannot_be_a_row_is_an_error_with_its_document():
    rows = [row for row in changes_of(arrow()) if row["error"]]
    assert [(row["number"], row["xml"]) for row in rows] == [(1, FEEDS[0][1]), (3, b"<f>"), (4, None)]
    assert rows[0]["error"] == {
        "reason": "column 'symbol' is required but has no value; add the value, or omit the column from `required`",
        "line": 1,
        "column": 54,
    }
    assert all(row["row"] is None for row in rows)
    assert all(row["xml"] is None for row in changes_of(arrow()) if row["error"] is None)


def test_without_a_key_changes_have_no_numbers():
    assert {row["sequence"] for row in changes_of(arrow())} == {None}


def test_rows_are_cut_out_of_structures_in_the_global_schema():
    mediator = Mediator(infer_tree(["<f><stock symbol='A' do='insert'><per>1</per></stock></f>"]))
    theirs = infer_tree(["<f><share symbol='A' do='insert'><ratio>1</ratio></share></f>"])
    same = {"f/share": "f/stock", "f/share/ratio": "f/stock/per"}
    mediator.register("annex", theirs, correspondence=same)
    xml = [b"<f><share symbol='A' do='insert'><ratio>3</ratio></share></f>", b"<f/>"]
    batch = pa.RecordBatch.from_pydict({"publisher": ["annex", "none"], "xml": xml})
    structured = list(mediating(ShippedObject.of(mediator), "xml", "publisher")(iter([batch])))
    rows = changes_of(structured, structure="structure")
    assert [row["row"] and json.loads(row["row"]) for row in rows] == [{"symbol": "A", "per": 3.0}, None]
    assert "schema 'none' is not registered" in rows[1]["error"]["reason"]
    assert rows[1]["xml"] == b"<f/>"


def test_on_spark_rows_become_changes(spark):
    documents = spark.createDataFrame(FEEDS, "number long, xml binary")
    changes = extract_rows(documents, STOCKS, key="number")
    assert changes.columns == ["number", "table", "change", "row", "sequence", "error", "xml"]
    rows = changes.collect()
    expected = changes_of(arrow(), key="number")
    found = [(row.number, row.change, row.row, row.sequence) for row in sorted(rows, key=lambda row: row.number)]
    assert found == [(row["number"], row["change"], row["row"], row["sequence"]) for row in expected]
    assert sorted(row.number for row in dead_letters(changes).collect()) == [1, 3, 4]


def test_what_is_asked_wrongly_is_said(spark):
    documents = spark.createDataFrame(FEEDS, "number long, xml binary")
    with pytest.raises(PipelineError, match="the documents have no column 'id'"):
        extract_rows(documents, STOCKS, key="id")
    with pytest.raises(PipelineError, match="keys must be whole numbers"):
        extract_rows(documents.selectExpr("string(number) as number", "xml"), STOCKS, key="number")
    with pytest.raises(PipelineError, match="'table' already exists"):
        extract_rows(documents.withColumnRenamed("number", "table"), STOCKS)
    with pytest.raises(PipelineError, match="no binary column 'structure'"):
        extract_rows(documents, STOCKS, structure="structure")
