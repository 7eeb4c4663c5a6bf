"""Power cuts: what the log asks of the disk, and in which order, so that a crash of the machine loses nothing.

A test cannot cut the power. It watches what reaches the disk for certain: a file's content after an fsync of the file,
names in a folder after an fsync of the folder.
"""

import os
from contextlib import closing
from pathlib import Path

import pytest

from pathcast.log import SqliteLog

from .places import records


class Disk:
    """What happens in a folder, in order: names that are on disk after each fsync, contents, renames, removals."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[tuple[str, str]] = []
        self.names: set[str] = set()  # surely in the folder after a power cut

    def fsync(self, path: Path) -> None:
        if path == self.folder:
            self.names = {each.name for each in self.folder.iterdir()}
            self.events.append(("folder", ""))
        elif path.parent == self.folder:
            self.events.append(("content", path.name))

    def of(self, *prefixes: str) -> list[tuple[str, str]]:
        """What concerns files with these prefixes, and the folder."""
        return [(kind, name) for kind, name in self.events if not name or name.startswith(prefixes)]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk(tmp_path / "log")
    fsync, replace, unlink = os.fsync, Path.replace, Path.unlink

    def watched_fsync(handle: int) -> None:
        fsync(handle)
        disk.fsync(Path(f"/proc/self/fd/{handle}").readlink())

    def watched_replace(path: Path, target: Path) -> Path:
        disk.events.append(("rename", target.name))
        return replace(path, target)

    def watched_unlink(path: Path, missing_ok: bool = False) -> None:
        disk.events.append(("remove", path.name))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    monkeypatch.setattr(Path, "unlink", watched_unlink)
    return disk


def test_a_segment_is_in_its_folder_on_disk_before_its_first_record_is_acknowledged(disk: Disk) -> None:
    with closing(SqliteLog(disk.folder, segment_bytes=1)) as log:
        for begin in range(1, 16, 5):
            log.append(records(5, begin))
            assert {each.name for each in disk.folder.glob("segment-*.sqlite")} <= disk.names
        assert log.segments == 3


def test_a_checkpoint_is_on_disk_before_it_has_its_name_and_before_the_earlier_one_is_removed(disk: Disk) -> None:
    with closing(SqliteLog(disk.folder)) as log:
        log.append(records(5))
        log.write_checkpoint(2, b"two")
        disk.events.clear()
        log.write_checkpoint(5, b"five")
    two, five = (f"checkpoint-{number:020}" for number in (2, 5))
    assert disk.of("checkpoint-") == [
        ("content", f"{five}.new"),
        ("rename", f"{five}.bin"),
        ("folder", ""),
        ("remove", f"{two}.bin"),
    ]


def test_segments_are_removed_on_disk_one_after_the_other(disk: Disk) -> None:
    with closing(SqliteLog(disk.folder, segment_bytes=1)) as log:
        for begin in range(1, 21, 5):
            log.append(records(5, begin))
        log.write_checkpoint(20, b"")
        disk.events.clear()
        assert log.trim(16) == 16
    removed = [("remove", f"segment-{begin:020}.sqlite") for begin in (1, 6, 11)]
    assert disk.of("segment-") == [each for one in removed for each in (one, ("folder", ""))]
