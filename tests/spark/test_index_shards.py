"""Shards: an index in pieces gives the same matches as a whole one; documents are parsed once."""

import pyarrow as pa
import pytest

import pathcast
from pathcast.errors import PipelineError
from pathcast.matching import open_index
from pathcast.spark import PublishedIndex, dead_letters, deliver, match_documents, parse_documents, publish
from pathcast.spark.matching.match_documents import matching
from pathcast.spark.matching.parse_documents import parsing
from pathcast.spark.matching.worker_index import Index, _opened
from pathcast.spark.publishing.index_shards import save_shards, shard_folder, shard_of, shards_in
from pathcast.spark.publishing.index_versions import version_folder

XPATHS = ["/a", "//b", "//b[@x = 1]", "/a/b/c", "//c[. = 'é']", "//d", "/a[b]/d"]
DOCUMENTS = [
    b"<a><b x='1'/><d/></a>", "<a><b><c>é</c></b></a>".encode(), b"<b/>", b"<none/>", b"<a>", None,
]  # fmt: skip


@pytest.fixture(scope="module")
def matcher():
    subscriptions = pathcast.Subscriptions()
    for number, xpath in enumerate(XPATHS * 3):
        subscriptions.add(xpath, subscriber=f"s{number % 8}" if number % 5 else None)
    subscriptions.remove(4)
    return subscriptions.compile()


def test_every_subscription_is_in_one_shard_under_its_id(matcher, tmp_path):
    save_shards(matcher, tmp_path / "index", 3)
    assert shards_in(tmp_path / "index") == 3
    shards = [list(open_index(shard_folder(tmp_path / "index", number)).subscriptions) for number in range(3)]
    assert sorted(each for shard in shards for each in shard) == sorted(matcher.subscriptions)
    owners = [{each.subscriber for each in shard if each.subscriber} for shard in shards]
    assert sum(map(len, owners)) == len(set().union(*owners))
    assert all(shard_of(each.subscriber, each.id, 3) == number for number, mine in enumerate(shards) for each in mine)


def test_structures_match_each_shard_as_documents_match_the_whole(matcher, tmp_path):
    save_shards(matcher, tmp_path / "index", 2)
    batch = pa.RecordBatch.from_pydict({"number": range(6), "xml": pa.array(DOCUMENTS, pa.binary())})
    structured = list(parsing("xml")(iter([batch.slice(0, 4), batch.slice(4)])))
    found: dict[int, list[int]] = {number: [] for number in range(6)}
    for shard in range(2):
        rows = [each.append_column("shard", pa.array([shard] * len(each), pa.int32())) for each in structured]
        function = matching(Index(str(tmp_path / "index")), "xml", "id", structure="structure", sharded=True)
        for row in (row for each in function(iter(rows)) for row in each.to_pylist()):
            assert (row["error"] is not None) == (row["number"] > 3)
            found[row["number"]] += row["matches"] or []
        assert sum("shard-" in folder for folder, *_ in _opened) == 1  # a worker holds one
    expected = [matcher.match(each).ids.tolist() for each in DOCUMENTS[:4]]
    assert [sorted(found[number]) for number in range(4)] == expected


def test_a_version_may_be_in_shards(matcher, tmp_path):
    assert publish(matcher, tmp_path / "index", shards=2) == 1
    assert shards_in(version_folder(tmp_path / "index", 1)) == 2


def test_shards_go_to_a_folder_of_their_own(matcher, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match="is not empty"):
        save_shards(matcher, tmp_path, 2)
    with pytest.raises(PipelineError, match="shards must be a whole number of at least 1, got 0"):
        save_shards(matcher, tmp_path / "index", 0)


def test_on_spark_deliveries_are_those_of_the_whole_index(spark, matcher, tmp_path):
    publish(matcher, tmp_path / "whole")
    publish(matcher, tmp_path / "shards", shards=3)
    documents = spark.createDataFrame(list(enumerate(DOCUMENTS)), "number int, xml binary")
    matched = match_documents(documents, PublishedIndex(tmp_path / "shards", shards=3), by="subscriber").persist()
    assert matched.columns == ["number", "xml", "shard", "subscribers", "error"]
    found = sorted((row.number, row.subscriber) for row in deliver(matched).collect())
    assert found == sorted(
        (number, name) for number, each in enumerate(DOCUMENTS[:4]) for name in matcher.match(each).subscribers
    )
    assert sorted(row.number for row in dead_letters(matched).collect()) == [4, 5]
    assert sorted(row.number for row in matched.where("shard = 0").collect()) == list(range(6))
    matched.unpersist()
    with pytest.raises(PipelineError, match=r"has 3 shards, got shards=None; use PublishedIndex\(…, shards=3\)"):
        match_documents(documents, tmp_path / "shards")
    with pytest.raises(
        PipelineError, match=r"has no shards; omit shards=, or create them with publish\(matcher, folder, shards=2\)"
    ):
        match_documents(documents, PublishedIndex(tmp_path / "whole", shards=2))
    with pytest.raises(PipelineError, match="would be read once per shard"):
        match_documents(documents, PublishedIndex(tmp_path / "shards", shards=3), document_path="number")
    assert parse_documents(documents).columns == ["number", "xml", "structure", "error"]
