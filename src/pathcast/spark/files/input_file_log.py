"""The input log of a stream over files: which files the stream reads, in order; on disk before any of them is read.

    checkpoint/pathcast/files.jsonl     {"files": [["/feed/a.xml", 812, 1794841623540123456], …]}

Files are numbered in the order of the log. A micro-batch is a range of numbers, and Spark's checkpoint holds the two
ends of the range. Each trigger that finds new files adds a line.

Invariant: a file is in the log once. Lines are only appended, under a lock, and are on disk when `append` returns. A
last line that a crash truncated belongs to no micro-batch; the next `append` removes it.
Cost: an append writes the new files only. Opening reads the whole log (a second per million files); the paths stay in
memory, some 200 bytes each.
"""

import fcntl
import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path

from pathcast.errors import PipelineError

from .file_listing import FoundFile


class FileLog:
    """A log of files; several processes may have it open."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._paths: set[str] = set()
        self._counts = [0]  # files up to the start of each line, and to the end of the last
        self._edges = [0]  # bytes up to there
        self.refresh()

    def __len__(self) -> int:
        return self._counts[-1]

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    def refresh(self) -> None:
        """Read what other processes have appended."""
        try:
            with self._place.open("rb") as file:
                file.seek(self._edges[-1])
                lines = file.readlines()
        except FileNotFoundError:
            return
        for number, line in enumerate(lines):
            try:
                files = _files(line)
            except ValueError:
                if number == len(lines) - 1:
                    return  # being written, or cut short by a crash
                raise PipelineError(
                    f"{self._place} is damaged at byte {self._edges[-1]}; restore the checkpoint from a backup, or "
                    "start with a new checkpoint and new output folders"
                ) from None
            self._paths.update(file.path for file in files)
            self._counts.append(self._counts[-1] + len(files))
            self._edges.append(self._edges[-1] + len(line))

    def append(self, files: Iterable[FoundFile]) -> None:
        """Add the files that the log does not have, as one line."""
        self._place.parent.mkdir(parents=True, exist_ok=True)
        with self._place.open("ab") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            self.refresh()
            fresh = [file for file in files if file.path not in self._paths]
            if not fresh:
                return
            log.truncate(self._edges[-1])
            log.write(_line(fresh))
            log.flush()
            os.fsync(log.fileno())
            if len(self._edges) == 1:
                _sync_folder(self._place.parent)
            self.refresh()

    def begin(self, lines: Iterable[Sequence[FoundFile]]) -> None:
        """Create the log with these lines, atomically; keep a log that already exists."""
        self._place.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._place.with_suffix(".fresh")
        with fresh.open("wb") as file:
            file.writelines(map(_line, lines))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, self._place)
        except FileExistsError:
            pass
        finally:
            fresh.unlink(missing_ok=True)
        _sync_folder(self._place.parent)
        self.refresh()

    def up_to_line(self, number: int) -> int:
        """The number of files up to the end of a line, counted from 0."""
        if number + 1 >= len(self._counts):
            raise self._cut(f"{len(self._counts) - 1} lines", f"line {number + 1}")
        return self._counts[number + 1]

    def between(self, begin: int, end: int) -> list[FoundFile]:
        """The files from one number up to another, in order."""
        if end > len(self):
            self.refresh()
        if end > len(self):
            raise self._cut(f"{len(self)} files", f"file {end}")
        if begin >= end:
            return []
        line = bisect_right(self._counts, begin) - 1
        found: list[FoundFile] = []
        first = self._counts[line]
        with self._place.open("rb") as file:
            file.seek(self._edges[line])
            while first + len(found) < end:
                found += _files(file.readline())
        return found[begin - first : end - first]

    def _cut(self, has: str, needed: str) -> PipelineError:
        return PipelineError(
            f"{self._place} has {has}, but the stream's checkpoint is at {needed}: the log was removed or truncated; "
            "restore the log from a backup, or start with a new checkpoint and new output folders"
        )


def _line(files: Sequence[FoundFile]) -> bytes:
    return json.dumps({"files": files}).encode("ascii") + b"\n"


def _files(line: bytes) -> list[FoundFile]:
    if not line.endswith(b"\n"):
        raise ValueError("the line is incomplete")
    try:
        return [FoundFile(*facts) for facts in json.loads(line)["files"]]
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
