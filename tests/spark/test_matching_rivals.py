"""Rivals of matching on Spark: they get the same documents, and give the expected answers."""

import pytest

import pathcast
from pathcast.spark.publishing.index_versions import publish
from pathcast_lab.spark.matching_rivals import Stage

NEWS = [b"<news><title/></news>", b"<news><p/></news>", b"<other/>"]


@pytest.fixture
def stage(spark, tmp_path):
    return Stage(2, NEWS, tmp_path, spark)


def test_documents_are_repeated_to_the_number_that_is_wanted(stage):
    rows = stage.documents(7).orderBy("number").collect()
    assert [bytes(row["xml"]) for row in rows] == [NEWS[number % 3] for number in range(7)]


def test_answers_are_those_of_the_matcher_in_the_order_of_documents(stage, index):
    matcher = pathcast.open_index(index)
    assert stage.answers(index, "id", 3) == [matcher.match(xml).ids.tolist() for xml in NEWS]
    assert stage.answers(index, "subscriber", 3) == [["ada"], ["bob"], []]


def test_every_document_passes_the_rivals(stage, index, spark, monkeypatch):
    written = []
    monkeypatch.setattr("pathcast_lab.spark.matching_rivals._throw_away", lambda frame: written.append(frame.count()))
    stage.identity(5)
    stage.lxml(5)
    stage.match(index, "id", 5)
    assert written == [5, 5, 5]


def test_lxml_parses_each_document(spark, tmp_path):
    stage = Stage(2, [b"<not-closed>"], tmp_path, spark)
    with pytest.raises(Exception, match="XMLSyntaxError"):
        stage.lxml(1)


def test_spark_s_own_function_finds_the_same(stage):
    seconds, found = stage.xpath_boolean(["/news/title", "//p", "/news"], 6)
    assert seconds > 0
    assert found == 8


def test_micro_batches_are_timed_with_and_without_matching(stage, tmp_path):
    subscriptions = pathcast.Subscriptions()
    subscriptions.add("//p", subscriber="ada")
    publish(subscriptions.compile(), tmp_path / "versions")
    assert stage.micro_batches(None, rows=2, files=3) > 0
    assert stage.micro_batches(tmp_path / "versions", rows=2, files=3) > 0
    assert list((tmp_path / "versions" / "pins").glob("*/0"))


def test_the_workers_of_a_machine_hold_one_copy_of_the_index(stage, tmp_path):
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many([f"/news/p{number}" for number in range(30_000)])
    subscriptions.compile().save(tmp_path / "index")
    workers = stage.index_memory(tmp_path / "index", 8)
    size = sum(file.stat().st_size for file in (tmp_path / "index").rglob("*.bin"))
    pages = 4096 * 40  # a page is counted whole
    assert len(workers) >= 2
    for worker in workers:
        assert 0.5 * size < worker.mapped < size + pages
    assert sum(worker.share for worker in workers) < 1.1 * workers[0].mapped + pages
