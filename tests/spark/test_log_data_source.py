"""`format("pathcast")`: the documents of a broker's log as rows, in batches and streams."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pathcast.broker import Broker, Publication
from pathcast.broker_log import ExpiryRecord
from pathcast.log import ReadLeases, SqliteLog

from ..broker.served_broker import Served, served

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    # Small segments: most records are in closed ones.
    log = SqliteLog(tmp_path / "log", segment_bytes=4_096)
    with served(tmp_path, broker=Broker(log, leases=ReadLeases(log))) as found:
        yield found


def publish(server: Served, feed: str, *numbers: int) -> list[int]:
    documents = [Publication(body(number), f"id-{number}", attributes={"type": "t"}) for number in numbers]
    found = [server.broker.publish(feed, [each]).result()[0] for each in documents]
    return [each.sequence for each in found]  # type: ignore[union-attr]


def body(number: int) -> bytes:
    return f"<n k='{number}'>{'x' * 300}</n>".encode()


def loaded(spark: SparkSession, **options: object) -> DataFrame:
    return spark.read.format("pathcast").options(**{key.rstrip("_"): str(each) for key, each in options.items()}).load()


def rows_of(frame: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in frame.select("sequence", "feed", "id", "body").orderBy("sequence").collect()]


def test_a_batch_has_each_document_once_with_its_columns(spark: SparkSession, server: Served) -> None:
    sequences = publish(server, "news", *range(30))
    server.http.put("/v1/subscriptions/s", json={"xpath": "//n"}).raise_for_status()
    server.broker.publish("news", [Publication(b"<broken")], keep_invalid=True).result()
    (other,) = publish(server, "mail", 77)
    expected = [
        (sequence, "news", f"id-{number}", bytearray(body(number))) for number, sequence in enumerate(sequences)
    ]
    frame = loaded(spark, url=server.address, sequencesPerTask=7)
    assert rows_of(frame) == [*expected, (other, "mail", "id-77", bytearray(body(77)))]
    assert rows_of(loaded(spark, url=server.address, feeds="news")) == expected
    assert rows_of(loaded(spark, url=server.address, from_=sequences[3], to=sequences[5])) == expected[3:6]
    assert rows_of(loaded(spark, url=server.address, from_="now")) == []
    first = frame.orderBy("sequence").first()
    assert first is not None
    assert first["headers"] == {"type": "t", "content-type": "application/xml"}
    entry = next(iter(server.broker.log.read(sequences[0])))
    assert round(first["time"].timestamp() * 1_000_000) == entry.time


def test_headers_name_the_schema_that_a_mediator_maps(spark: SparkSession, server: Served) -> None:
    settings = {"mediator": {"schema": "n", "mappings": {"annex": 'name = "annex"\nschema = "n @k #text"'}}}
    server.http.put("/v1/feeds/news", json=settings).raise_for_status()
    publish(server, "news", 1)
    first = loaded(spark, url=server.address).first()
    assert first is not None
    assert first["headers"] == {"type": "t", "content-type": "application/xml", "pathcast-schema": "annex"}


def test_closed_segments_are_read_from_the_folder(spark: SparkSession, server: Served, tmp_path: Path) -> None:
    sequences = publish(server, "news", *range(40))
    both = rows_of(loaded(spark, url=server.address, folder=tmp_path / "log", sequencesPerTask=11))
    assert [row[0] for row in both] == sequences
    # On the broker's machine the folder alone has the same rows.
    assert rows_of(loaded(spark, folder=tmp_path / "log")) == both


def test_a_stream_reads_each_document_once_and_resumes(spark: SparkSession, server: Served, tmp_path: Path) -> None:
    def run(most: int | None = None) -> None:
        options = {"url": server.address} | ({} if most is None else {"maxDocumentsPerTrigger": str(most)})
        stream = spark.readStream.format("pathcast").options(**options).load()
        query = (
            stream.select("sequence", "body")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
        )
        assert query.awaitTermination(120)
        batches.append(len([each for each in query.recentProgress if each["numInputRows"]]))

    batches: list[int] = []
    sequences = publish(server, "news", *range(10))
    run(most=4)
    assert batches[0] >= 3
    sequences += publish(server, "news", *range(10, 15))
    run()
    found = spark.read.schema("sequence long, body binary").parquet(str(tmp_path / "rows"))
    assert sorted(row.sequence for row in found.collect()) == sequences
    # The stream has ended, so it holds nothing back.
    assert server.broker.leases.held() == []


def test_real_time_mode_takes_no_source_in_python(spark: SparkSession, server: Served, tmp_path: Path) -> None:
    """If this fails, Spark allows it: the guide says that it does not."""
    writer = spark.readStream.format("pathcast").option("url", server.address).load().writeStream.format("console")
    writer = writer.outputMode("update").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(realTime="5 seconds").start()  # type: ignore[call-overload]  # PySpark's overloads lack it
    with pytest.raises(PySparkException, match="STREAMING_REAL_TIME_MODE.INPUT_STREAM_NOT_SUPPORTED"):
        query.awaitTermination(120)


def test_trimmed_records_are_an_error_and_leave_no_hole(spark: SparkSession, server: Served) -> None:
    sequences = publish(server, "news", *range(40))
    first = server.broker.trim(sequences[20])
    assert first > 1
    with pytest.raises(PySparkException, match="has trimmed records .*; read from"):
        loaded(spark, url=server.address, from_=1).count()
    assert [row[0] for row in rows_of(loaded(spark, url=server.address))] == [
        each for each in sequences if each >= first
    ]


def test_expired_documents_are_left_out_unless_the_query_wants_them(
    spark: SparkSession, server: Served, tmp_path: Path
) -> None:
    news, mail = publish(server, "news", *range(20)), publish(server, "mail", *range(20, 40))
    server.broker.change([ExpiryRecord("news", news[15])]).result()
    for place in ({"url": server.address}, {"folder": tmp_path / "log"}):
        found = {each: loaded(spark, **place, sequencesPerTask=7, expired=each) for each in ("omit", "keep", "fail")}
        assert [row[0] for row in rows_of(found["omit"])] == [*news[15:], *mail]
        assert [row[0] for row in rows_of(found["keep"])] == [*news, *mail]
        with pytest.raises(
            PySparkException, match=f"documents of some feeds have expired: 'news' before record {news[15]}"
        ):
            found["fail"].count()
        assert loaded(spark, **place, feeds="mail", expired="fail").count() == 20
        assert loaded(spark, **place, from_=news[15], expired="fail").count() == 25


def test_a_lease_keeps_what_a_planned_query_reads(spark: SparkSession, server: Served) -> None:
    sequences = publish(server, "news", *range(40))
    frame = loaded(spark, url=server.address)
    assert frame.count() == 40
    (lease,) = server.broker.leases.held()
    assert lease.begin == 1
    assert server.broker.trim(sequences[20]) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option 'url' (the address of a broker) or 'folder'"),
        ({"url": "http://127.0.0.1:1", "feed": "news"}, "unknown option 'feed' of format pathcast; use one of url"),
        (
            {"url": "http://127.0.0.1:1", "from_": "yesterday"},
            "option 'from' must be a number of at least 1, 'first' or 'now', got 'yesterday'",
        ),
        (
            {"url": "http://127.0.0.1:1", "maxDocumentsPerTrigger": 5},
            "'maxDocumentsPerTrigger' does not apply to a batch",
        ),
        ({"url": "http://127.0.0.1:1", "patience": 0}, "cannot reach the broker at http://127.0.0.1:1"),
        ({"url": "nowhere"}, "'nowhere' is not a broker address"),
        ({"folder": "/nowhere"}, "no log in /nowhere"),
    ],
)
def test_a_wrong_option_is_explained(spark: SparkSession, options: dict[str, object], message: str) -> None:
    with pytest.raises(PySparkException) as error:
        loaded(spark, **options).count()
    assert message in str(error.value)


def test_the_examples_of_the_guide_do_what_they_say(
    spark: SparkSession,
    server: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number, title in enumerate(("Rain", "Sun"), 1):
        document = Publication(f"<nitf><title>{title}</title></nitf>".encode(), f"story-{number}")
        server.broker.publish("news", [document]).result()
    page = (Path(__file__).parents[2] / "docs" / "guides" / "log-on-spark.md").read_text(encoding="utf-8")
    page = page.replace("http://127.0.0.1:8080", server.address)
    page = re.sub('"(checkpoint|archive|stories|stories-checkpoint)"', rf'"{tmp_path}/\1"', page)
    batch, stream, write, write_stream = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    shown, *commands = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert all(command.startswith(("pathcast ", "curl ")) for command in commands)
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {}
    exec(batch, known)  # noqa: S102
    assert capsys.readouterr().out == shown
    exec(stream, known)  # noqa: S102
    assert spark.read.parquet(str(tmp_path / "archive")).count() == 2
    exec(write, known)  # noqa: S102
    story = spark.createDataFrame([("n-2", "<nitf/>")], "id string, body string")
    story.write.parquet(str(tmp_path / "stories"))
    exec(write_stream, known)  # noqa: S102
    assert loaded(spark, url=server.address).count() == 4
