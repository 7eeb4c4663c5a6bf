"""`publish`, `latest` and pruning: versions appear complete, never change, and are removed when not needed."""

import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pathcast
from pathcast.errors import PipelineError
from pathcast.spark import open_joins
from pathcast.spark.publishing.index_versions import is_versioned, latest, pack_index, publish, version_folder, versions
from pathcast.spark.publishing.micro_batch_version_pins import pin, pinned, pins_of


def matcher(*xpaths: str) -> pathcast.Matcher:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(xpaths)
    return subscriptions.compile()


def test_versions_are_numbered_and_keep_what_they_were_published_with(tmp_path):
    assert [publish(matcher(xpath), tmp_path) for xpath in ("//a", "//b")] == [1, 2]
    assert versions(tmp_path) == [1, 2]
    assert latest(tmp_path) == 2
    found = [pathcast.open_index(version_folder(tmp_path, number)).match("<a/>").ids.tolist() for number in (1, 2)]
    assert found == [[1], []]


def test_only_the_newest_are_kept_once_they_have_stood_for_a_while(tmp_path):
    for _ in range(5):
        publish(matcher("//a"), tmp_path, keep=2)
    assert versions(tmp_path) == [1, 2, 3, 4, 5]
    publish(matcher("//a"), tmp_path, keep=2, grace=0)
    assert versions(tmp_path) == [5, 6]
    publish(matcher("//a"), tmp_path, keep=1, grace=0)
    assert versions(tmp_path) == [7]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_version_that_a_pin_names_is_kept_wherever_the_pin_lies(tmp_path, elsewhere):
    index, pins = tmp_path / "index", tmp_path / "pins" if elsewhere else None
    publish(matcher("//a"), index)
    assert pin(index, "query", 0, lambda: latest(index), pins) == 1
    for _ in range(3):
        publish(matcher("//a"), index, keep=1, grace=0)
    assert pinned(index) == {1}
    assert versions(index) == [1, 4]


def test_what_a_killed_publisher_left_is_no_version_and_goes(tmp_path):
    publish(matcher("//a"), tmp_path)
    left = tmp_path / "versions" / ".fresh-0123"
    left.mkdir()
    assert versions(tmp_path) == [1]
    publish(matcher("//a"), tmp_path)
    assert not left.exists()


def test_a_publisher_that_fails_leaves_nothing(tmp_path, monkeypatch):
    broken = matcher("//a")

    def save(folder: Path) -> None:
        folder.mkdir()
        raise ZeroDivisionError

    monkeypatch.setattr(broken, "save", save)
    with pytest.raises(ZeroDivisionError):
        publish(broken, tmp_path)
    assert list((tmp_path / "versions").iterdir()) == []


def test_publishers_take_turns(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(lambda index: publish(index, tmp_path), [matcher("//a") for _ in range(8)]))
    assert sorted(numbers) == versions(tmp_path) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_plain_index_is_not_versioned_and_not_published_over(tmp_path):
    matcher("//a").save(tmp_path / "plain")
    assert not is_versioned(tmp_path / "plain")
    with pytest.raises(PipelineError, match="an index without versions"):
        publish(matcher("//a"), tmp_path / "plain")
    with pytest.raises(PipelineError, match="no version of an index"):
        latest(tmp_path / "plain")
    with pytest.raises(PipelineError, match="publish the first version with publish_joins"):
        open_joins(tmp_path / "plain")


def test_the_newest_version_is_packed(tmp_path):
    publish(matcher("//a"), tmp_path / "index")
    publish(matcher("//b"), tmp_path / "index")
    packed = pack_index(tmp_path / "index", tmp_path / "news.zip")
    zipfile.ZipFile(packed).extractall(tmp_path / "unpacked")
    assert pathcast.open_index(tmp_path / "unpacked").match("<b/>").ids.tolist() == [1]
    with pytest.raises(PipelineError, match="no index"):
        pack_index(tmp_path / "nowhere", tmp_path / "x.zip")
    with pytest.raises(PipelineError, match=r"end with \.zip"):
        pack_index(tmp_path / "index", tmp_path / "x.tar")


def test_a_pin_is_made_once_and_stays(tmp_path):
    newest = iter([3, 4, 5])
    assert [pin(tmp_path, "query", 7, lambda: next(newest)) for _ in range(2)] == [3, 3]
    assert pin(tmp_path, "query", 8, lambda: next(newest)) == 4
    assert pin(tmp_path, "another", 7, lambda: next(newest)) == 5
    assert pins_of(tmp_path, "query") == {7: 3, 8: 4}


def test_of_many_that_pin_at_once_all_get_the_same(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        for batch in range(20):
            found = set(pool.map(lambda own, batch=batch: pin(tmp_path, "query", batch, lambda: own), range(1, 9)))
            assert found == {pins_of(tmp_path, "query")[batch]}
    assert [name for name in (tmp_path / "pins" / "query").iterdir() if name.name.startswith(".")] == []


def test_pins_of_batches_long_past_are_removed(tmp_path):
    for batch in (0, 1, 50, 101, 102):
        pin(tmp_path, "query", batch, lambda: 1)
    assert list(pins_of(tmp_path, "query")) == [50, 101, 102]


def test_a_folder_of_pins_belongs_to_one_index(tmp_path):
    pin(tmp_path / "one", "query", 0, lambda: 1, tmp_path / "pins")
    for batch in (0, 1):
        with pytest.raises(PipelineError, match="belong to the index .*one, not to .*two"):
            pin(tmp_path / "two", "query", batch, lambda: 1, tmp_path / "pins")


def test_a_damaged_pin_is_named(tmp_path):
    pin(tmp_path, "query", 0, lambda: 1)
    (tmp_path / "pins" / "query" / "0").write_text("one")
    with pytest.raises(PipelineError, match="query/0 is damaged: expected the number of the version .*got 'one'"):
        pin(tmp_path, "query", 0, lambda: 1)
