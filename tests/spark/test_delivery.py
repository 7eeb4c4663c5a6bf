"""`deliver` and `dead_letters`: each matched document to its subscribers, each unreadable one aside."""

import pytest

from pathcast.errors import PipelineError
from pathcast.spark import dead_letters, deliver, match_documents

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
    with pytest.raises(PipelineError, match="'subscriber' is taken"):
        deliver(matched)


def test_dead_letters_say_which_frame_they_need(news):
    with pytest.raises(PipelineError, match="no column 'error'"):
        dead_letters(news)
