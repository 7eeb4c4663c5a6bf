"""Listing files: a path stands for the files that Spark would read in a batch, and a file's name is never a pattern."""

import os
from pathlib import Path
from typing import Any

import pytest

from pathcast.errors import PipelineError
from pathcast.spark.files.file_listing import list_files, roots

NAMES = ["a.xml", "c [x].xml", "d{a,b}.xml", "e*.xml", "f?.xml", "g%20.xml", "h#i.xml", "j:k.xml", "l\\m.xml", "ü.xml"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (*NAMES, "n\no.xml", "_hidden.xml", ".hidden.xml", "half.xml._COPYING_", "_k=1.xml"):
        (tmp_path / name).write_text(name)
    for place in ("sub", "day=1/hour=2", ".staging", "_staging"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "inner.xml").touch()
    return tmp_path


def names(folder: Path, pattern: str = "", **options) -> list[str]:
    found = [file.path for file in list_files(f"{folder}{pattern}", **options)]
    assert len(found) == len(set(found))
    return sorted(os.path.relpath(path, folder) for path in found)


def test_a_folder_has_its_files_and_those_of_its_partitions(folder):
    partition = "day=1/hour=2/inner.xml"
    assert names(folder) == sorted([*NAMES, "n\no.xml", "_k=1.xml", partition])
    assert names(folder, recursive=True) == sorted([*names(folder), "sub/inner.xml"])


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("/?.xml", ["a.xml", "ü.xml"]),
        ("/[a-b].xml", ["a.xml"]),
        ("/[^a].xml", ["ü.xml"]),
        ("/[!a].xml", ["ü.xml"]),
        ("/{a,c*,none}.xml", ["a.xml", "c [x].xml"]),
        ("/{sub,day=1/{hour=2,x}}", ["day=1/hour=2/inner.xml", "sub/inner.xml"]),
        ("/s*/*.xml", ["sub/inner.xml"]),
        (r"/c \[x\].xml", ["c [x].xml"]),
        (r"/e\*.xml", ["e*.xml"]),
        ("/*e*l", ["e*.xml"]),
        ("/a.xml", ["a.xml"]),
        ("/*.txt", []),
        ("/none/*", []),
    ],
)
def test_wildcards_are_those_of_hadoop(folder, pattern, expected):
    assert names(folder, pattern) == expected


def test_a_file_is_listed_once_however_many_alternatives_name_it(folder):
    assert names(folder, "/{a,a*,?}.xml") == ["a.xml", "ü.xml"]
    assert names(folder, "/{sub,sub/inner.xml,s*}") == ["sub/inner.xml"]
    assert names(folder, "/{day=1,day=1/hour=2}") == ["day=1/hour=2/inner.xml"]


def test_a_filter_is_for_names(folder):
    assert names(folder, name_filter="[a-d]*.xml", recursive=True) == ["a.xml", "c [x].xml", "d{a,b}.xml"]


def test_known_files_are_left_out_and_not_looked_at(folder, monkeypatch):
    known = {str(folder / "a.xml"), str(folder / "ü.xml")}
    looked_at: list[str] = []
    real = os.stat

    def stat(path: str, **more: Any) -> os.stat_result:
        looked_at.append(path)
        return real(path, **more)

    monkeypatch.setattr(os, "stat", stat)
    left = names(folder, known=known)
    assert "a.xml" not in left and "c [x].xml" in left
    assert not known & set(looked_at)


def test_links_are_followed_unless_they_lead_nowhere(folder):
    (folder / "linked.xml").symlink_to(folder / "a.xml")
    (folder / "dangling.xml").symlink_to(folder / "nowhere")
    (folder / "itself.xml").symlink_to(folder / "itself.xml")
    (folder / "elsewhere").symlink_to(folder / "day=1")
    os.mkfifo(folder / "pipe.xml")
    found = names(folder, recursive=True)
    assert "itself.xml" not in found
    assert "linked.xml" in found and "dangling.xml" not in found and "pipe.xml" not in found
    assert "elsewhere/hour=2/inner.xml" in found


@pytest.mark.parametrize(("place", "target"), [("sub", "sub"), ("sub", "."), ("day=1/hour=2", "day=1"), (".", ".")])
def test_a_link_to_a_folder_around_it_adds_no_files(folder, place, target):
    before = names(folder, recursive=True)
    (folder / place / "around").symlink_to(folder / target)
    assert names(folder, recursive=True) == before


def test_size_and_time_are_those_of_the_file(folder):
    os.utime(folder / "a.xml", ns=(5, 1_700_000_000_123_456_789))
    (file,) = list_files(f"{folder}/a.xml")
    assert (file.size, file.modified) == (5, 1_700_000_000_123_456_789)


@pytest.mark.parametrize("pattern", ["/{a", "/[a", "/[z-a]"])
def test_a_pattern_that_is_none_is_an_error(folder, pattern):
    with pytest.raises(PipelineError, match="the path"):
        list(list_files(f"{folder}{pattern}"))


def test_a_folder_that_does_not_exist_is_an_error_and_a_pattern_may_match_later(tmp_path):
    with pytest.raises(PipelineError, match="'.*/none' does not exist"):
        list(list_files(f"{tmp_path}/none"))
    assert roots(f"{tmp_path}/none/*.xml") == []
