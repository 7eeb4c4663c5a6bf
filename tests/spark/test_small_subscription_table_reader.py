"""Small tables are read and published without Spark, with the same result as with Spark."""

import bz2
import csv
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pathcast
from pathcast.spark.pipeline.pipeline_file import read_pipeline
from pathcast.spark.pipeline.run_pipeline import compile_table
from pathcast.spark.pipeline.sparkless_subscription_publishing import publish_small
from pathcast.spark.publishing.index_shards import shard_folder, shards_in
from pathcast.spark.publishing.index_versions import version_folder
from pathcast.spark.publishing.small_subscription_table_reader import NotSmallError, Small, read_small
from pathcast.spark.publishing.subscription_row_parser import read_table
from pathcast.store.snapshot import MANIFEST
from pathcast.workloads import generate_documents, news_schema

from .test_compiled_tables import drawn, drawn_changes

NEWS = [*generate_documents(news_schema(), 12, seed=3), b"<b xmlns='urn:n' k='1'/>"]
NAMES = ["id", "subscriber", "xpath", "change", "sequence"]
PIPELINE = """
[source]
format = "parquet"
path = "news"
[subscriptions]
index = "index"
namespaces = {{ n = "urn:n" }}
max_invalid = 1
{more}
[deliveries]
path = "deliveries"
"""


def write(file: Path, rows: list[tuple], names: list[str]) -> None:
    """Rows as a table in the format of the file's suffix."""
    if file.suffix == ".parquet":
        columns = zip(*rows, strict=True)
        pq.write_table(pa.table(dict(zip(names, map(pa.array, columns), strict=True))), file)
        return
    with gzip.open(file, "wt", newline="") if file.suffix == ".gz" else file.open("w", newline="") as out:
        if ".json" in file.suffixes:
            out.writelines(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
        else:
            csv.writer(out).writerows([names, *rows])


def relative(file: Path, folder: Path) -> str:
    """A file of a version by its path, without the number that each snapshot draws."""
    return re.sub(r"data-[0-9a-f]+", "data", str(file.relative_to(folder)))


def described(folder: Path, invalid: Path) -> tuple:
    """An index by its files, its subscriptions and what they match; and the rejected rows."""
    place = version_folder(folder, 1)
    parts = [shard_folder(place, number) for number in range(shards_in(place))] or [place]
    matchers = [pathcast.open_index(part) for part in parts]
    refused = sorted(pq.read_table(invalid).to_pylist(), key=repr)
    return (
        sorted(relative(file, place) for file in place.rglob("*")),
        [list(matcher.subscriptions) for matcher in matchers],
        [[(found.ids.tolist(), found.subscribers) for found in matcher.match_many(NEWS)] for matcher in matchers],
        refused,
    )


@pytest.mark.parametrize(
    ("form", "more"), [("csv", ""), ("parquet", ""), ("json.gz", "shards = 2")], ids=["csv", "parquet", "json-shards"]
)
def test_a_small_table_is_published_as_spark_publishes_it(spark, tmp_path, form, more):
    rows = drawn(80, 4)
    write(tmp_path / f"wanted.{form}", rows, NAMES[:3])
    write(tmp_path / f"changes.{form}", drawn_changes(rows, 40, 4), NAMES)
    more += f'\ntable = "wanted.{form}"\nchanges = "changes.{form}"\ninvalid = "invalid"'
    (tmp_path / "pipeline.toml").write_text(PIPELINE.format(more=more))
    pipeline = read_pipeline(tmp_path / "pipeline.toml")
    here = replace(pipeline.subscriptions, index=str(tmp_path / "here"), invalid=str(tmp_path / "wrong"))
    report = publish_small(replace(pipeline, subscriptions=here))
    assert report is not None
    assert report.splitlines()[0] == compile_table(spark, pipeline).splitlines()[0]
    found = described(tmp_path / "here", tmp_path / "wrong")
    assert found == described(tmp_path / "index", tmp_path / "invalid")
    assert any(ids for part in found[2] for ids, _ in part) and len(found[3]) > 10
    # What one has published is unchanged for the other.
    assert "version 1, unchanged" in (publish_small(pipeline) or "")


def test_a_small_table_of_an_overlay_is_published_as_spark_publishes_it(spark, tmp_path):
    rows = [("1", "ada", "//a", "r2"), ("2", "bob", "//b[c]", "r3"), ("3", "", "//a", "r2"), ("4", "eve", "//a", "r9")]
    write(tmp_path / "wanted.csv", rows, [*NAMES[:3], "router"])
    (tmp_path / "pipeline.toml").write_text(
        PIPELINE.format(more='table = "wanted.csv"\n[overlay]\nlevels = 2\npolicy = "L+t"')
    )
    pipeline = read_pipeline(tmp_path / "pipeline.toml")
    report = publish_small(pipeline)
    assert report is not None and report.startswith("subscriptions: version 1: 2 subscriptions, 2 added, ")
    assert "1 × subscriber is missing" in report
    assert "version 1, unchanged: 2 subscriptions, 2 invalid" in compile_table(spark, pipeline)
    other = replace(pipeline.subscriptions, index=str(tmp_path / "spark"))
    compile_table(spark, replace(pipeline, subscriptions=other))
    ours, theirs = (
        {
            relative(file, folder): file.read_bytes()
            for file in folder.rglob("*")
            if file.is_file() and file.name != MANIFEST
        }
        for folder in (version_folder(tmp_path / "index", 1), version_folder(tmp_path / "spark", 1))
    )
    assert ours == theirs and len(ours) > 10


def test_csv_is_read_as_spark_reads_it(spark, tmp_path):
    lines = [
        "id,subscriber,xpath,other",
        "1,ada,//a,//b,//c",
        '2,"b,ob",//c,',
        '3,eve,"//d[. = ""x,y""]",z',
        "",
        "4,,//e",
        "5",
        ' +6 , spaced ," //f ",',
        '7,eve,"//g[\n. = 1]",z',
        "8_0,eve,//h,",
        "٣,eve,//h,",
        "1.0,eve,//h,",
        "99999999999999999999,eve,//h,",
        "9,é𝄞,//ü,",
        "10,eve,//i,,",
        f"11,eve,//{'j' * 140_000},",
        "12,eve,//k,",
    ]
    (tmp_path / "table.csv").write_bytes("\r\n".join(lines).encode())
    frame = read_table(spark, tmp_path / "table.csv")
    spark_ids = [row[0] for row in frame.selectExpr("try_cast(id as bigint)").collect()]
    theirs = [tuple(row) for row in frame.select("subscriber", "xpath").collect()]
    table = read_small(str(tmp_path / "table.csv"), "csv")
    rows = list(table.rows(1))
    assert [row["id"] for row in rows] == spark_ids
    assert [(row["subscriber"], row["xpath"]) for row in rows] == [(name, xpath or "") for name, xpath in theirs]
    assert table.names == frame.columns


def test_what_is_large_or_unusual_is_left_to_spark(tmp_path):
    rows = [(number, "ada", f"//a{number}") for number in range(100)]
    for name in ("table.csv", "table.json", "table.parquet", "table.csv.gz"):
        write(tmp_path / name, rows, NAMES[:3])
    forms = [("table.csv", "csv"), ("table.csv.gz", "csv"), ("table.json", "json"), ("table.parquet", "parquet")]
    for name, form in forms:
        assert len(list(read_small(str(tmp_path / name), form, Small(rows=101)).rows(1))) == 100
        with pytest.raises(NotSmallError, match="100 rows"):
            read_small(str(tmp_path / name), form, Small(rows=100))
        with pytest.raises(NotSmallError, match=r"bytes; at most 1,000 are|unpacks to more than 1,000 bytes"):
            read_small(str(tmp_path / name), form, Small(bytes=1000))
    pq.write_table(pa.table({"id": [1.5], "xpath": ["//a"]}), tmp_path / "float.parquet")
    (tmp_path / "open.csv").write_text('id,xpath\n1,"//a')
    (tmp_path / "broken.json").write_text('{"id": 1, "xpath": "//a"}\n{"id": ')
    (tmp_path / "twice.csv").write_text("id,xpath,xpath\n1,//a,//b\n")
    (tmp_path / "case.json").write_text('{"id": 1, "ID": 2, "xpath": "//a"}\n')
    (tmp_path / "deep.json").write_text('{"xpath": ' + 100_000 * "[")
    (tmp_path / "huge.json").write_text('{"id": 99999999999999999999, "xpath": "//a"}\n')
    (tmp_path / "half.json").write_text('{"id": 1, "xpath": "\\ud800"}\n')
    (tmp_path / "packed.csv.bz2").write_bytes(bz2.compress((tmp_path / "table.csv").read_bytes()))
    for name, form, why in (
        ("float.parquet", "parquet", "column 'id' has values of type float, which need Spark"),
        ("open.csv", "csv", "open.csv cannot be read without Spark: unexpected end of data"),
        ("broken.json", "json", "broken.json cannot be read without Spark: Expecting value"),
        ("twice.csv", "csv", "two columns of twice.csv have the same name"),
        ("case.json", "json", "two columns of case.json have the same name"),
        ("deep.json", "json", "deep.json cannot be read without Spark: maximum recursion depth"),
        ("huge.json", "json", "column 'id': Python int too large"),
        ("half.json", "json", "column 'xpath': .* surrogates not allowed"),
        ("packed.csv.bz2", "csv", "files with the suffix '.bz2' need Spark"),
        ("table.csv", "orc", "format 'orc'"),
        ("nothing.csv", "csv", "not a file or folder"),
    ):
        with pytest.raises(NotSmallError, match=why):
            read_small(str(tmp_path / name), form)


@pytest.mark.parametrize(
    ("xpaths", "small"),
    [
        pytest.param(["//a"] * 1000, Small(rows=1000), id="rows"),
        pytest.param([f"//{'a' * 100_000}"], Small(bytes=20_000), id="a long text"),
    ],
)
def test_a_parquet_file_that_unpacks_to_much_is_left_to_spark_before_a_column_is_read(
    tmp_path, monkeypatch, xpaths, small
):
    pq.write_table(pa.table({"xpath": xpaths}), tmp_path / "table.parquet", compression="zstd")
    assert (tmp_path / "table.parquet").stat().st_size < 10_000
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: pytest.fail("a column is read"))
    with pytest.raises(NotSmallError, match=r"[\d,]+ rows and 0 MiB"):
        read_small(str(tmp_path / "table.parquet"), "parquet", small)


def test_a_folder_of_several_files_is_read_and_left_to_spark_to_publish(tmp_path):
    (tmp_path / "wanted").mkdir()
    for number in (1, 2):
        write(tmp_path / "wanted" / f"part-{number}.parquet", [(number, "ada", "//a")], NAMES[:3])
    (tmp_path / "wanted" / "_SUCCESS").touch()
    assert [row["id"] for row in read_small(str(tmp_path / "wanted"), "parquet").rows(1)] == [1, 2]
    (tmp_path / "pipeline.toml").write_text(PIPELINE.format(more='table = "wanted"'))
    assert publish_small(read_pipeline(tmp_path / "pipeline.toml")) is None
    (tmp_path / "wanted" / "part-2.parquet").unlink()
    assert "version 1: 1 subscriptions" in (publish_small(read_pipeline(tmp_path / "pipeline.toml")) or "")
