"""Splitting files on Spark: rows of entries in batches and streams, dead letters, bounded memory."""

from pathlib import Path

import pyarrow as pa
import pytest

from pathcast import Limits
from pathcast.documents import parse_entry_path
from pathcast.errors import PipelineError
from pathcast.spark import split_documents
from pathcast.spark.matching.split_documents import splitting
from pathcast.spark.pipeline.dry_run_plan import plan
from pathcast.spark.pipeline.pipeline_file import PipelineFileError
from pathcast.spark.pipeline.run_pipeline import run
from tests.spark.test_pipeline_dataframes import folder, ignored, pipeline, rows

__all__ = ["folder"]


FEED = b"""<f:feed xmlns:f='urn:f'><news><title>Rain</title></news>
<news>&unknown;</news><news><title>%s</title></news>
<news><title>Sun</title><p/></news></f:feed>"""


@pytest.mark.parametrize("form", ["files", "binaryFile"])
@pytest.mark.parametrize("streams", [False, True])
def test_entries_of_files_are_documents_of_their_own(spark, folder, form, streams):
    (folder / "feed").mkdir()
    (folder / "feed" / "good.xml").write_bytes(FEED % (b"x" * 5000))
    (folder / "feed" / "cut.xml").write_bytes(b"<f:feed xmlns:f='urn:f'><news><title>Fog</title></news><news>")
    source = f'format = "{form}"\npath = "feed"\nsplit = "/f:feed/news"\nnamespaces = {{ f = "urn:f" }}'
    stream = '[stream]\ncheckpoint = "checkpoint"' if streams else ""
    run(spark, pipeline(folder, "[limits]\nsize = 5000", source=source, stream=stream), ignored)
    column = "xml" if form == "files" else "content"
    delivered = rows(folder / "deliveries")
    found = [(Path(row["path"]).name, row["entry"], row["subscriber"], row[column]) for row in delivered]
    rain = b'<news xmlns:f="urn:f"><title>Rain</title></news>'
    sun = b'<news xmlns:f="urn:f"><title>Sun</title><p/></news>'
    fog = b'<news xmlns:f="urn:f"><title>Fog</title></news>'
    good = [("good.xml", 1, "ada", rain), ("good.xml", 4, "ada", sun), ("good.xml", 4, "bob", sun)]
    assert sorted(found) == [("cut.xml", 1, "ada", fog), *good]
    assert {row["offset"] for row in delivered if row["entry"] == 1} == {24}
    assert "entry_error" not in delivered[0]
    letters = rows(folder / "dead")
    dead = sorted((Path(row["path"]).name, row["entry"], row[column], row["error"]["reason"]) for row in letters)
    assert [row[:3] for row in dead] == [
        ("cut.xml", 2, b"<news>"), ("good.xml", 2, b'<news xmlns:f="urn:f">&unknown;</news>'), ("good.xml", 3, None)
    ]  # fmt: skip
    for part, row in zip(("the file ends before", "unknown", "5,028 bytes"), dead, strict=True):
        assert part in row[3]


def test_a_large_file_is_split_in_the_memory_of_a_piece(tmp_path):
    """A file of 44 MB, read by a worker's function as Spark calls it: one Arrow batch at a time."""
    file = tmp_path / "feed.xml"
    with file.open("wb") as out:
        out.write(b"<feed>")
        for _ in range(40):
            out.write(b"<entry>" + b"word " * 200_000 + b"</entry>" + b"<entry><a/></entry>" * 5_000)
        out.write(b"</feed>")
    split = splitting("path", "xml", parse_entry_path("/feed/entry"), Limits(), "refuse", named=True)
    batches = split(iter([pa.RecordBatch.from_pydict({"path": [file.as_uri()]})]))
    count = largest = 0
    for batch in batches:
        count, largest = count + len(batch), max(largest, batch.nbytes, pa.total_allocated_bytes())
    assert count == 40 * 5_001
    assert largest < 6 << 20


def test_a_file_that_is_missing_is_one_dead_letter(tmp_path):
    split = splitting("path", "xml", parse_entry_path("/feed/entry"), Limits(), "refuse", named=True)
    names = [str(tmp_path / "none.xml"), None, "s3a://x/y"]
    batches = list(split(iter([pa.RecordBatch.from_pydict({"path": pa.array(names, pa.string())})])))
    reasons = [row["entry_error"]["reason"] for batch in batches for row in batch.to_pylist()]
    for part, reason in zip(("No such file", "null", "on a disk"), reasons, strict=True):
        assert part in reason


def test_a_column_of_files_is_replaced_by_its_entries(spark):
    files = spark.createDataFrame([(7, "<f><e>1</e><g/><e>2</e></f>"), (8, None)], "number long, xml string")
    found = split_documents(files, "/f/e").collect()
    assert [(row.number, row.entry, row.offset, row.xml) for row in found[:2]] == [
        (7, 1, 3, b"<e>1</e>"),
        (7, 2, 15, b"<e>2</e>"),
    ]
    assert found[2].xml is None and "null" in found[2].entry_error.reason
    with pytest.raises(PipelineError, match="'entry' already exists"):
        split_documents(files.withColumnRenamed("number", "entry"), "/f/e")


@pytest.mark.parametrize(
    ("keys", "key", "reason"),
    [
        ('split = "//news"', "source.split", "'//' is not supported"),
        ('split = "/f:feed/news"', "source.split", "prefix 'f' is not declared"),
        ('namespaces = { f = "urn:f" }', "source.namespaces", "needs source.split"),
    ],
)
def test_a_wrong_path_is_a_problem_of_the_pipeline_file(folder, keys, key, reason):
    with pytest.raises(PipelineFileError) as raised:
        pipeline(folder, source=f'format = "files"\npath = "feed"\n{keys}')
    (problem,) = raised.value.problems
    assert (problem.key, reason in problem.reason) == (key, True)


def test_the_plan_names_the_entries(folder):
    (folder / "feed").mkdir()
    described = dict(plan(pipeline(folder, source='format = "files"\npath = "feed"\nsplit = "/feed/news"')))
    assert "entries /feed/news of the files that column path names" in described["documents"]
