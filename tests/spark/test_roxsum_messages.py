"""`summarize` and `expand`: RoXSum messages per target and back, byte for byte; unreadable documents are rows."""

from typing import Any

import pyarrow as pa
import pytest

from pathcast.errors import PipelineError
from pathcast.roxsum import MessageLimits, RoXSum
from pathcast.spark import dead_letters, expand, summarize
from pathcast.spark.matching.roxsum_messages import expanding, summarizing

NEWS = [
    ("east", 1, b"<news><title>Rain</title></news>"),
    ("west", 2, b"<?xml version='1.0' encoding='ISO-8859-1'?>\n<news><p>\xe9</p></news>"),
    ("east", 3, b"<news><title>Sun &amp; wind</title>\r\n</news>"),
    ("east", 4, b"<news>"),
    ("west", 5, None),
    ("west", 6, b"<!DOCTYPE news [<!ELEMENT news ANY>]><news/>"),
    ("east", 7, b"<news><p/><p/></news>"),
]
SCHEMA = pa.schema([("target", pa.string()), ("number", pa.int64()), ("xml", pa.binary())])


def arrow(rows=NEWS, cut=3):
    made = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    return [pa.RecordBatch.from_pylist(made[at : at + cut], SCHEMA) for at in range(0, len(made), cut)]


def summarised(rows=NEWS, by=("target",), most=100, most_bytes=10_000):
    found = summarizing(list(by), "xml", most, most_bytes)(iter(arrow(rows)))
    return [row for batch in found for row in batch.to_pylist()]


def there_and_back(rows=NEWS, **options):
    messages = list(summarizing(["target"], "xml", 100, 10_000)(iter(arrow(rows))))
    return [row for batch in expanding("xml", **options)(iter(messages)) for row in batch.to_pylist()]


def test_messages_are_those_that_one_process_makes():
    messages = {row["target"]: row for row in summarised() if row["error"] is None}
    for target, row in messages.items():
        mine = [xml for to, number, xml in NEWS if to == target and number not in (4, 5) and xml is not None]
        batch = RoXSum.build(mine)
        assert RoXSum.decode(row["message"]).documents() == mine
        assert row["documents"] == len(mine)
        assert row["bytes"] == batch.size == sum(map(len, mine))
        assert len(row["message"]) <= len(batch.encode()) + 4  # ids of the documents that are left out


def test_documents_come_back_byte_for_byte_with_their_columns():
    found = {row["number"]: row for row in there_and_back()}
    assert {number: (row["target"], row["xml"]) for number, row in found.items()} == {
        number: (target, xml) for target, number, xml in NEWS
    }
    assert sorted(number for number, row in found.items() if row["error"]) == [4, 5]
    assert all(row["message"] is None for row in found.values())


def test_a_document_that_cannot_be_read_is_a_row_with_its_reason():
    dead = {row["rows"][0]["number"]: row for row in summarised() if row["error"]}
    assert sorted(dead) == [4, 5]
    assert dead[4]["xml"] == b"<news>"
    assert dead[4]["error"]["line"] == 1
    assert "null" in dead[5]["error"]["reason"]
    assert dead[4]["message"] is None


def test_documents_are_read_once_for_all_messages_that_are_made_together(monkeypatch):
    build = RoXSum.build
    read: list[bytes] = []

    def reading(given: list[bytes], **options: Any) -> RoXSum:
        read.extend(given)
        return build(given, **options)

    monkeypatch.setattr(RoXSum, "build", reading)
    rows = [(target, number, NEWS[number % 2 * 2][2]) for target in ("east", "west", "north") for number in range(4)]
    messages = summarised(rows)
    assert sorted(read) == sorted({xml for _, _, xml in rows if xml is not None})
    assert {row["target"]: RoXSum.decode(row["message"]).documents() for row in messages} == {
        target: [xml for to, _, xml in rows if to == target] for target in ("east", "west", "north")
    }


def test_limits_close_messages():
    good = [row for row in NEWS if row[1] in (1, 3, 7)]
    assert [row["documents"] for row in summarised(good, most=2)] == [2, 1]
    assert [row["documents"] for row in summarised(good, most_bytes=40)] == [1, 1, 1]


@pytest.mark.parametrize("trusted", [False, True])
def test_a_bad_message_is_one_row_and_its_neighbours_go_on(trusted):
    (good,) = [row for row in summarised() if row["target"] == "east" and row["error"] is None]
    messages = [
        good["message"][:40],
        good["message"],
        None,
        b"",
        good["message"][:-1] + bytes([good["message"][-1] ^ 1]),
    ]
    batch = pa.RecordBatch.from_pydict({"n": [1, 2, 3, 4, 5], "message": pa.array(messages, pa.binary())})
    rows = [row for found in expanding("xml", trusted=trusted)(iter([batch])) for row in found.to_pylist()]
    assert [(row["n"], row["error"] is None) for row in rows] == [
        (1, False), (2, True), (2, True), (2, True), (3, False), (4, False), (5, False),
    ]  # fmt: skip
    assert [row["xml"] for row in rows if row["n"] == 2] == [NEWS[0][2], NEWS[2][2], NEWS[6][2]]
    assert rows[0]["message"] == messages[0]
    assert rows[0]["xml"] is None


def test_a_message_beyond_the_limits_is_refused():
    rows = there_and_back(message_limits=MessageLimits(documents=2))
    refused = [row for row in rows if row["message"] is not None]
    assert [row["target"] for row in refused] == ["east"]
    assert "at most 2" in refused[0]["error"]["reason"]


def test_a_list_of_rows_that_does_not_fit_the_message_is_an_error():
    message = RoXSum.build(["<a/>", "<b/>"]).encode()
    batch = pa.RecordBatch.from_pydict({"message": [message], "rows": [[{"n": 1}]]})
    (row,) = [row for found in expanding("xml")(iter([batch])) for row in found.to_pylist()]
    assert "2 documents, but its column 'rows' lists 1" in row["error"]["reason"]
    assert row["n"] is None


def test_a_document_that_breaks_pathcast_costs_its_neighbours_nothing(monkeypatch):
    build = RoXSum.build

    def broken(documents, **options):
        if any(b"wind" in each for each in documents):
            raise ZeroDivisionError("in a kernel")
        return build(documents, **options)

    monkeypatch.setattr(RoXSum, "build", broken)
    rows = there_and_back([row for row in NEWS if row[0] == "east"])
    assert sorted(row["number"] for row in rows if row["error"] is None) == [1, 7]
    (reason,) = [row["error"]["reason"] for row in rows if row["number"] == 3]
    assert "ZeroDivisionError: in a kernel" in reason


def test_a_fault_that_no_document_is_to_blame_for_is_raised(monkeypatch):
    """Messages could still be made group by group, but the failure would go unnoticed."""

    def broken(*_, **__):
        raise ZeroDivisionError("in a kernel")

    with monkeypatch.context() as patch:
        patch.setattr(RoXSum, "renumbered", broken)
        with pytest.raises(ZeroDivisionError):
            summarised(NEWS)
    build, calls = RoXSum.build, []

    def first_broken(documents, **options):
        calls.append(documents)
        return build(documents, **options) if len(calls) > 1 else broken()

    monkeypatch.setattr(RoXSum, "build", first_broken)
    with pytest.raises(ZeroDivisionError):
        summarised(NEWS)


def test_on_spark_documents_come_back_as_they_went(spark):
    documents = spark.createDataFrame(NEWS, "target string, number long, xml binary")
    batched = summarize(documents, by=["target"])
    assert batched.columns == ["target", "message", "documents", "bytes", "rows", "xml", "error"]
    rows = batched.collect()
    assert sorted((row.target, row.documents) for row in rows if row.error is None) == [("east", 3), ("west", 2)]
    back = expand(batched)
    assert back.columns == ["target", "number", "xml", "error", "message"]
    found = {row.number: (row.target, row.number, row.xml and bytes(row.xml)) for row in back.collect()}
    assert [found[number] for number in sorted(found)] == NEWS
    assert sorted(row.number for row in dead_letters(back).collect()) == [4, 5]


def test_a_stream_of_text_is_summarised_batch_by_batch(spark, tmp_path):
    texts = [("east", "<a>é</a>"), ("east", "<?xml version='1.0' encoding='UTF-16'?><b/>"), ("west", "<c")]
    spark.createDataFrame(texts, "target string, xml string").coalesce(1).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("target string, xml string").parquet(str(tmp_path / "in"))
    back = expand(summarize(stream, by=["target"]))
    query = back.writeStream.format("memory").queryName("summarised").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination(60)
    rows = spark.table("summarised").collect()
    assert sorted((row.target, row.xml) for row in rows) == sorted(texts)
    assert [row.target for row in rows if row.error] == ["west"]


def test_what_is_asked_wrongly_is_said(spark):
    documents = spark.createDataFrame(NEWS, "target string, number long, xml binary")
    with pytest.raises(PipelineError, match=r"must be a list of columns, such as \['target'\]"):
        summarize(documents, by="target")
    with pytest.raises(PipelineError, match="'to', which is not a column"):
        summarize(documents, by=["to"])
    with pytest.raises(PipelineError, match="max_documents must be a whole number of at least 1, got 0"):
        summarize(documents, max_documents=0)
    with pytest.raises(PipelineError, match="group by columns of plain values"):
        summarize(documents.selectExpr("array(target) as target", "xml"), by=["target"])
    with pytest.raises(PipelineError, match="no binary column 'message'"):
        expand(documents)
    with pytest.raises(PipelineError, match="two columns of the result would be named 'target'"):
        expand(documents.selectExpr("target", "xml as message", "array(struct(target)) as rows"))
