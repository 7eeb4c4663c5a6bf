"""`deliver` and `dead_letters`: matched documents go to their subscribers, unreadable ones are kept apart."""

import pytest

from pathcast.errors import PipelineError
from pathcast.spark import dead_letters, deliver, match_documents, with_source, write_once

NEWS = [
    (1, b"<news lang='en'><title>Rain</title><p/></news>"),
    (2, b"<news><title>Sun</title></news>"),
    (3, b"<news>"),
    (4, None),
    (5, b"<other/>"),
]


@pytest.fixture(scope="module")
def news(spark):
    return spark.createDataFrame(NEWS, "id int, xml binary")


def test_a_document_is_delivered_once_to_each_subscriber(news, index):
    rows = deliver(match_documents(news, index, by="subscriber"))
    assert rows.columns == ["id", "xml", "subscriber"]
    assert sorted((row.id, row.subscriber) for row in rows.collect()) == [(1, "ada"), (1, "bob"), (2, "ada")]


def test_the_original_bytes_are_delivered(news, index):
    rows = deliver(match_documents(news, index, by="subscriber")).collect()
    assert {bytes(row.xml) for row in rows if row.id == 1} == {NEWS[0][1]}


@pytest.mark.parametrize("by", ["id", "subscriber"])
def test_dead_letters_are_the_documents_that_could_not_be_read(news, index, by):
    rows = dead_letters(match_documents(news, index, by=by))
    assert rows.columns == ["id", "xml", "error"]
    assert sorted(row.id for row in rows.collect()) == [3, 4]
    assert all(row.error.reason for row in rows.collect())


def test_every_document_is_delivered_dead_or_wanted_by_nobody(news, index):
    matched = match_documents(news, index, by="subscriber")
    delivered = {row.id for row in deliver(matched).collect()}
    dead = {row.id for row in dead_letters(matched).collect()}
    unwanted = {row.id for row in matched.collect() if row.subscribers == []}
    assert sorted([*delivered, *dead, *unwanted]) == [1, 2, 3, 4, 5]


def test_deliver_says_which_frame_it_needs(news, index):
    with pytest.raises(PipelineError, match=r"no column 'subscribers', which match_documents\(…, by=\"subscriber\"\)"):
        deliver(match_documents(news, index))


def test_deliver_does_not_overwrite_a_column(news, index):
    matched = match_documents(news.withColumnRenamed("id", "subscriber"), index, by="subscriber")
    with pytest.raises(PipelineError, match="'subscriber' already exists"):
        deliver(matched)


def test_dead_letters_say_which_frame_they_need(news):
    with pytest.raises(PipelineError, match="no column 'error'"):
        dead_letters(news)


def test_measurements_are_not_delivered(news, index):
    matched = match_documents(news, index, by="subscriber", measure=True)
    assert deliver(matched).columns == ["id", "xml", "subscriber"]
    assert dead_letters(matched).columns == ["id", "xml", "error"]


def test_a_dead_letter_says_from_which_file_it_came(spark, news, index, tmp_path):
    news.coalesce(1).write.parquet(str(tmp_path / "news"))
    rows = dead_letters(match_documents(with_source(spark.read.parquet(str(tmp_path / "news"))), index)).collect()
    assert {row.id: row.source_offset for row in rows} == {3: 2, 4: 3}
    assert all(row.source_file.startswith("file:") and row.source_file.endswith(".parquet") for row in rows)
    assert {row.id: row.xml and bytes(row.xml) for row in rows} == {3: b"<news>", 4: None}


@pytest.mark.parametrize("kind", ["binaryFile", "text"])
def test_files_of_other_kinds_have_a_source_too(spark, index, tmp_path, kind):
    (tmp_path / "bad.xml").write_bytes(b"<news>")
    (tmp_path / "good.xml").write_bytes(b"<p/>")
    files = with_source(spark.read.format(kind).load(str(tmp_path)))
    column = "content" if kind == "binaryFile" else "value"
    [row] = dead_letters(match_documents(files, index, document=column)).collect()
    assert row.source_file.endswith("/bad.xml")
    assert row.source_offset == 0


def test_rows_that_come_from_no_file_have_no_source(news):
    with pytest.raises(PipelineError, match="do not come from files"):
        with_source(news)
    with pytest.raises(PipelineError, match="'source_file' already exists"):
        with_source(news.withColumnRenamed("id", "source_file"))


def test_a_batch_that_is_written_again_replaces_what_was_there(spark, news, tmp_path):
    write_once(news, 4, tmp_path)
    write_once(news.where("id < 3"), 5, tmp_path)
    (tmp_path / "_batch-5-left").mkdir()
    target = write_once(news.where("id > 3"), 5, tmp_path)
    assert target == tmp_path / "batch=5"
    rows = spark.read.parquet(str(tmp_path)).collect()
    assert sorted((row.batch, row.id) for row in rows) == [(4, 1), (4, 2), (4, 3), (4, 4), (4, 5), (5, 4), (5, 5)]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["batch=4", "batch=5"]


def test_a_batch_that_fails_leaves_what_was_there(spark, news, tmp_path):
    write_once(news, 4, tmp_path)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        write_once(news.selectExpr("1 / (id - 3) as id"), 4, tmp_path)
    assert spark.read.parquet(str(tmp_path / "batch=4")).count() == 5
