"""Files of documents: compressed ones within the limits, and the documents of a folder."""

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest

import pathcast
from pathcast.documents import read
from pathcast.documents.document_files import content_bound, list_folder, read_file
from pathcast.errors import DocumentError, LimitError
from pathcast.matching.matcher import _groups


@pytest.mark.parametrize("name", ["a.xml.gz", "a.gz", "A.XML.GZ"])
def test_a_file_whose_name_ends_in_gz_is_decompressed(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(gzip.compress(b"<a>") + gzip.compress(b"<b/></a>"))
    assert read(file).data == b"<a><b/></a>"
    subscriptions = pathcast.Subscriptions()
    subscriptions.add("/a/b")
    assert [len(matches) for matches in subscriptions.compile().match_many([file, file])] == [1, 1]


def test_the_size_limit_counts_decompressed_bytes(tmp_path: Path) -> None:
    file = tmp_path / "a.xml.gz"
    file.write_bytes(gzip.compress(b"<a>" + b" " * 100 + b"</a>"))
    assert read(file, limits=pathcast.Limits(size=107)).data.endswith(b"</a>")
    with pytest.raises(LimitError, match=r"a\.xml\.gz' has too many bytes; the limit is 106"):
        read(file, limits=pathcast.Limits(size=106))


@pytest.mark.slow
def test_a_small_file_cannot_fill_the_memory(tmp_path: Path) -> None:
    file = tmp_path / "bomb.xml.gz"
    file.write_bytes(gzip.compress(bytes(64 << 20)))
    tracemalloc.start()
    try:
        assert len(read_file(file, 100_001)) == 100_001
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<a/>", "Not a gzipped file (b'<a')"),
        (gzip.compress(b"<a/>")[:-9], "Compressed file ended before the end-of-stream marker was reached"),
        (gzip.compress(b"<a/>")[:10] + b"\xff" * 20, "Error -3 while decompressing data: invalid block type"),
    ],
    ids=["plain", "truncated", "damaged"],
)
def test_a_compressed_file_that_is_damaged_says_why(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "a.xml.gz"
    file.write_bytes(content)
    with pytest.raises(DocumentError) as raised:
        read(file)
    assert str(raised.value) == (
        f"cannot read the file {str(file)!r}: {reason}; "
        "compress the document again, or rename the file if it is not gzip"
    )


def test_files_are_read_in_groups_by_what_they_may_decompress_to(tmp_path: Path) -> None:
    file = tmp_path / "a.xml.gz"
    file.write_bytes(gzip.compress(b" " * 10_000_000))
    assert 10_000_000 <= content_bound(file, 128 << 20) <= 1032 * file.stat().st_size
    assert content_bound(file, 1000) == 1000
    assert content_bound(tmp_path / "absent.xml", 1000) == 0
    with os.scandir(os.fsencode(tmp_path)) as entries:
        assert all(content_bound(entry, 1000) == 1000 for entry in entries)  # type: ignore[arg-type]
    assert [len(group) for group in _groups([file, file, file], 128 << 20)] == [1, 1, 1]


def test_a_folder_is_listed_with_its_subfolders_in_order(tmp_path: Path) -> None:
    wanted = ["a/1.xml", "a/b/2.XML", "a/b/3.xml.gz", "a.xml", "z.Xml.GZ"]
    for name in [*wanted, "notes.txt", "a/more.txt", "a/data.gz", "README", ".hidden.xml", ".git/x.xml", "a/._1.xml"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("<a/>")
    found = list_folder(tmp_path)
    assert [str(file.relative_to(tmp_path)) for file in found.documents] == wanted
    assert found.others == {"*.txt": 2, "*.gz": 1, "without an ending": 1, "hidden": 3}
    assert found.unreadable == []


def test_links_to_folders_are_followed_and_no_folder_is_listed_twice(tmp_path: Path) -> None:
    feed, elsewhere = tmp_path / "feed", tmp_path / "elsewhere"
    feed.mkdir()
    elsewhere.mkdir()
    (elsewhere / "a.xml").write_text("<a/>")
    (feed / "link").symlink_to(elsewhere, target_is_directory=True)
    (feed / "loop").symlink_to(feed, target_is_directory=True)
    (feed / "broken.xml").symlink_to(tmp_path / "absent.xml")
    os.mkfifo(feed / "pipe.xml")
    assert list_folder(feed).documents == [feed / "broken.xml", feed / "link" / "a.xml"]


def test_a_subfolder_that_cannot_be_listed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.xml").write_text("<a/>")
    listed = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = list_folder(tmp_path)
    assert found.documents == [tmp_path / "a.xml"]
    assert [(error.filename, error.strerror) for error in found.unreadable] == [
        (str(tmp_path / "closed"), "Permission denied")
    ]
