"""The examples of docs/guides/spark.md run, one after the other, and do what the text says."""

import json
import logging
import os
import re
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQueryManager

from pathcast.spark.publishing.index_versions import versions

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "spark.md"


@pytest.fixture
def listeners(spark, monkeypatch):
    """The listeners that an example adds, removed at the end."""
    added: list[StreamingQueryListener] = []
    add = StreamingQueryManager.addListener

    def add_listener(streams: StreamingQueryManager, listener: StreamingQueryListener) -> None:
        added.append(listener)
        add(streams, listener)

    monkeypatch.setattr(StreamingQueryManager, "addListener", add_listener)
    yield added
    for one in added:
        spark.streams.removeListener(one)


def placed(text: str, folder: Path) -> str:
    """An example whose files are in a folder: the JVM does not follow when Python's working directory changes."""
    names = "index|documents|deliveries|dead-letters|subscriptions|versions-of-the-index|invalid-subscriptions|expanded"
    names += "|joins|joins-checkpoint|changes-of-tables|feed|feed-checkpoint|feed-deliveries"
    return re.sub(rf'"({names}|checkpoint|changes)"', rf'"{folder}/\1"', text)


def test_the_examples_do_what_they_say(spark, tmp_path, monkeypatch, listeners, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "documents").mkdir()
    news = [b"<news><head><title/></head></news>", b"<news>"]
    pq.write_table(pa.table({"xml": pa.array(news, pa.binary())}), "documents/1.parquet")
    wanted = {"id": [1, 2], "subscriber": ["ada", "bob"], "xpath": ["//title", "//["]}
    pq.write_table(pa.table(wanted), "subscriptions")
    change = {"id": [3], "subscriber": ["cyd"], "xpath": ["//title"], "change": ["added"]}
    pq.write_table(pa.table(change), "changes")
    page = placed(PAGE.read_text(encoding="utf-8"), tmp_path)
    batch, stream, files, stages, joins, watching = re.findall(r"```python\n(.*?)```", page, re.DOTALL)

    known: dict = {}
    exec(batch, known)  # noqa: S102
    assert [row["subscriber"] for row in pq.read_table("deliveries").to_pylist()] == ["ada"]
    assert len(pq.read_table("dead-letters")) == 1

    exec(stages, known)  # noqa: S102
    assert [row["xml"] for row in pq.read_table("expanded").to_pylist()] == news[:1]

    (tmp_path / "changes-of-tables").mkdir()
    exec(joins, known)  # noqa: S102
    assert (known["version"], known["added"], known["query"].isActive) == (2, range(2, 3), True)
    known["query"].stop()

    root = logging.getLogger("pathcast")
    handlers, level = list(root.handlers), root.level
    try:
        exec(watching, known)  # noqa: S102
        exec(stream.replace('deliveries"', 'delivered"').replace('dead-letters"', 'dead"'), known)  # noqa: S102
        known["query"].processAllAvailable()
        known["query"].stop()
        said, deadline = "", time.monotonic() + 20
        while '"dead_letters"' not in said and time.monotonic() < deadline:  # listeners hear of a batch a little later
            time.sleep(0.05)
            said += capsys.readouterr().err
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    (tmp_path / "feed").mkdir()
    (tmp_path / "feed" / "a [x].xml").write_bytes(news[0])
    os.utime(tmp_path / "feed" / "a [x].xml", (0, 0))
    exec(files, known)  # noqa: S102
    known["query"].processAllAvailable()
    known["query"].stop()
    assert [row["path"].rpartition("/")[2] for row in pq.read_table("feed-deliveries").to_pylist()] == ["a [x].xml"]
    assert len(listeners) == 1
    # The stream may begin before the changes are published or after.
    assert [row["subscriber"] for row in pq.read_table("delivered").to_pylist()] in (["ada"], ["ada", "cyd"])
    assert [row["id"] for row in pq.read_table("invalid-subscriptions").to_pylist()] == [2]
    assert versions("versions-of-the-index") == [1, 2]
    reports = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert any(report.get("dead_letters") == 1 and report.get("deliveries") in (1, 2) for report in reports)
