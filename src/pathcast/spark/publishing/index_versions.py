"""Versions of an index: a folder of snapshots that are published one after the other and never changed.

    index/versions/00000001/      a snapshot, as `matcher.save` writes it
    index/versions/00000002/
    index/pins/…                  which version a micro-batch was matched with (micro_batch_version_pins.py)

A version is written under a name that readers ignore, and gets its number by a rename: readers see all of it or
nothing. A lock serialises publishers. A folder that is itself a snapshot works too: then there is one version, without
a number, and rewriting the snapshot replaces it for all readers at once.

A task that Spark runs twice publishes once: both attempts have one token, and before the rename the result is stored
under this token (`.told-…`). If that file exists and the folder to rename is gone, the version is published. Several
tasks that write one version write to `.parts-…`, each attempt to its own folder, until a last task publishes them.

Pruning removes a version only if there are `keep` newer ones, no pin names it, and its successor is at least `grace`
seconds old: readers that found the older version before have pinned or opened it by then.
"""

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from pathcast.errors import PipelineError
from pathcast.matching import Matcher
from pathcast.store import MANIFEST, flush, sole_writer

from .index_shards import save_shards
from .micro_batch_version_pins import pinned

KEEP = 3
GRACE = 600.0
_VERSIONS = "versions"
_FRESH, _GONE, _TOLD, _PARTS = ".fresh-", ".gone-", ".told-", ".parts-"
# The folder among the parts in which the version is assembled.
_WHOLE = "whole"
# Seconds after which no task of a killed program can still be running.
_FORGOTTEN = 86_400.0
_DIGITS = 8

AnyPath = str | os.PathLike[str]


def publish(
    matcher: Matcher, folder: AnyPath, *, keep: int = KEEP, grace: float = GRACE, shards: int | None = None
) -> int:
    """Write a matcher's index as the next version of a folder, prune old versions, and return the number.

    With `shards` it is written in this many pieces, for `match_documents(…, PublishedIndex(folder, shards=…))`.
    """

    def save(place: Path) -> None:
        if shards is None:
            matcher.save(place)
        else:
            save_shards(matcher, place, shards)

    return publish_version(folder, save, keep=keep, grace=grace)


def publish_version(folder: AnyPath, save: Callable[[Path], None], *, keep: int = KEEP, grace: float = GRACE) -> int:
    """Have `save` write the next version of a folder, prune old versions, and return the number.

    `save` is called while no other publisher is active.
    """
    with turn(folder, secrets.token_hex(8), keep=keep, grace=grace) as mine:
        return mine.publish(save)


class Turn:
    """A publisher's exclusive access to the versions of a folder."""

    def __init__(self, place: Path, token: str, keep: int, grace: float) -> None:
        self._place, self._keep, self._grace = place, keep, grace
        self._home = place / _VERSIONS
        self._fresh, self._told = self._home / (_FRESH + token), self._home / (_TOLD + token)
        self._parts = self._home / (_PARTS + token)

    def publish(self, save: Callable[[Path], None], tell: Callable[[int], bytes] | None = None) -> int:
        """Have `save` write the next version, and return its number; `earlier` can then read the result of `tell`."""
        try:
            save(self._fresh)
            return self._commit(self._fresh, tell)
        except BaseException:
            shutil.rmtree(self._fresh, ignore_errors=True)
            raise

    def publish_parts(self, parts: Mapping[str, str], tell: Callable[[int], bytes]) -> int:
        """Assemble the next version from parts, each under its name in the version; return its number.

        If it is killed, it can be repeated.
        """
        whole = self._parts / _WHOLE
        whole.mkdir(parents=True, exist_ok=True)
        for name, part in parts.items():
            if not (whole / name).exists():
                try:
                    (self._parts / part).rename(whole / name)
                except FileNotFoundError:
                    raise PipelineError(
                        f"{self._parts / part}, which another Spark worker wrote, does not exist; "
                        "publish to a folder that all workers share"
                    ) from None
        number = self._commit(whole, tell)
        self.drop_parts()
        return number

    def drop_parts(self) -> None:
        """Remove files that tasks wrote for this version and that are no longer needed."""
        shutil.rmtree(self._parts, ignore_errors=True)

    def earlier(self) -> bytes | None:
        """The stored result of an earlier attempt that published the version; None if there was none."""
        if self._fresh.exists() or (self._parts / _WHOLE).exists():
            return None
        try:
            return self._told.read_bytes()
        except FileNotFoundError:
            return None

    def _commit(self, fresh: Path, tell: Callable[[int], bytes] | None) -> int:
        number = max(versions(self._place), default=0) + 1
        if tell is not None:
            self._told.write_bytes(tell(number))
        try:
            fresh.rename(version_folder(self._place, number))
        except OSError:
            self._told.unlink(missing_ok=True)
            raise
        flush(self._home)
        _prune(self._place, self._keep, self._grace)
        return number


@contextmanager
def turn(folder: AnyPath, token: str, *, keep: int = KEEP, grace: float = GRACE) -> Iterator[Turn]:
    """Wait until no other publisher is active; all attempts to publish the same version share one `token`."""
    check_keep(keep)
    place = Path(folder)
    home = check_home(place)
    with sole_writer(place):
        for left in home.glob(_FRESH + "*"):  # left by a publisher that was killed
            (home / (_TOLD + left.name.removeprefix(_FRESH))).unlink(missing_ok=True)  # it was never published
            shutil.rmtree(left, ignore_errors=True)
        for gone in home.glob(_GONE + "*"):
            shutil.rmtree(gone, ignore_errors=True)
        _forget(home)
        yield Turn(place, token, keep, grace)


def check_keep(keep: int) -> None:
    """Reject a `keep` below 1."""
    if keep < 1:
        raise PipelineError(f"keep must be at least 1, because the newest version is always kept, got {keep}")


def check_home(folder: AnyPath) -> Path:
    """The folder of versions, created if it does not exist; raises `PipelineError` for an index without versions."""
    place = Path(folder)
    if (place / MANIFEST).exists():
        raise PipelineError(
            f"{place} is an index without versions, which cannot get versions; publish to another folder"
        )
    home = place / _VERSIONS
    home.mkdir(parents=True, exist_ok=True)
    return home


def parts_folder(folder: AnyPath, token: str) -> Path:
    """The folder where tasks write the parts of a version before it is published."""
    return Path(folder) / _VERSIONS / (_PARTS + token)


def _forget(home: Path) -> None:
    """Remove files of attempts that are over."""
    before = time.time() - _FORGOTTEN
    for left in (*home.glob(_PARTS + "*"), *home.glob(_TOLD + "*")):
        try:
            if left.stat().st_mtime > before:
                continue
        except FileNotFoundError:  # its writer has just removed it
            continue
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def versions(folder: AnyPath) -> list[int]:
    """The numbers of the versions that a folder holds, ascending; none for a plain index."""
    try:
        names = [entry.name for entry in (Path(folder) / _VERSIONS).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(name) for name in names if name.isdecimal())


def latest(folder: AnyPath) -> int:
    """The number of the newest version; raises `PipelineError` if there is none."""
    known = versions(folder)
    if not known:
        raise PipelineError(f"no version of an index at {folder}; create an index with publish(matcher, folder)")
    return known[-1]


def is_versioned(folder: AnyPath) -> bool:
    """Whether a folder holds versions, rather than one index."""
    return not (Path(folder) / MANIFEST).exists() and bool(versions(folder))


def version_folder(folder: AnyPath, version: int) -> Path:
    """The folder of a version."""
    return Path(folder) / _VERSIONS / f"{version:0{_DIGITS}}"


def pack_index(folder: AnyPath, archive: AnyPath) -> Path:
    """Pack an index (of a folder with versions, the newest) into a zip, for workers without a shared disk.

    Add it with `spark.addArtifacts("news.zip#news", archive=True)` and match with `index="artifact:news"`.
    """
    source = version_folder(folder, latest(folder)) if is_versioned(folder) else Path(folder)
    if not (source / MANIFEST).is_file():
        raise PipelineError(f"no index at {source}; create an index with publish(matcher, folder)")
    target = Path(archive)
    if target.suffix != ".zip":
        raise PipelineError(f"the name of the archive must end with .zip, got {str(target)!r}")
    return Path(shutil.make_archive(str(target.absolute().with_suffix("")), "zip", source))


def _prune(place: Path, keep: int, grace: float) -> None:
    known = versions(place)
    needed = pinned(place)
    before = time.time() - grace
    for number, successor in list(pairwise(known))[: -(keep - 1) or None]:
        if number in needed or version_folder(place, successor).stat().st_ctime > before:
            continue
        gone = place / _VERSIONS / f"{_GONE}{number}"
        version_folder(place, number).rename(gone)  # no reader opens half of it
        shutil.rmtree(gone, ignore_errors=True)
