"""Versions of an index: a folder of snapshots that are published one after the other and never changed.

    index/versions/00000001/      a snapshot, as `matcher.save` writes it
    index/versions/00000002/
    index/pins/…                  which version a micro-batch of a stream has been matched with (pins.py)

A version is written beside the others under a name that no reader looks at, and gets its number by a rename: readers
see all of it or nothing. Publishers take turns by a lock. A folder that is itself a snapshot serves too: then there is
one version, without a number, and whoever writes it anew replaces it for everybody at once.

Pruning removes a version only when `keep` newer ones stand, no pin names it, and its successor has stood for `grace`
seconds: whoever looked for the latest version before that has pinned or opened it by then.
"""

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from pathcast.errors import PipelineError
from pathcast.matching import Matcher
from pathcast.store.snapshot import MANIFEST

from .pins import pinned
from .sharding import save_shards

KEEP = 3
GRACE = 600.0
_VERSIONS = "versions"
_FRESH, _GONE = ".fresh-", ".gone-"
_DIGITS = 8

AnyPath = str | os.PathLike[str]


def publish(
    matcher: Matcher, folder: AnyPath, *, keep: int = KEEP, grace: float = GRACE, shards: int | None = None
) -> int:
    """Write a matcher's index as the next version of a folder, remove what is too old, and return the number.

    With `shards` it is written in so many pieces, for `match_documents(…, shards=…)`.
    """

    def save(place: Path) -> None:
        if shards is None:
            matcher.save(place)
        else:
            save_shards(matcher, place, shards)

    return publish_version(folder, save, keep=keep, grace=grace)


def publish_version(folder: AnyPath, save: Callable[[Path], None], *, keep: int = KEEP, grace: float = GRACE) -> int:
    """Have `save` write the next version of a folder, remove what is too old, and return the number.

    `save` is called when no other publisher is at work.
    """
    if keep < 1:
        raise PipelineError(f"keep={keep}: at least the newest version must stay")
    place = Path(folder)
    if (place / MANIFEST).exists():
        raise PipelineError(f"{place} is one index without versions; publish to another folder")
    home = place / _VERSIONS
    home.mkdir(parents=True, exist_ok=True)
    with _alone(place):
        for left in (*home.glob(_FRESH + "*"), *home.glob(_GONE + "*")):  # by a publisher that was killed
            shutil.rmtree(left, ignore_errors=True)
        fresh = home / (_FRESH + secrets.token_hex(8))
        try:
            save(fresh)
            number = max(versions(place), default=0) + 1
            fresh.rename(version_folder(place, number))
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        _flush(home)
        _prune(place, keep, grace)
    return number


def versions(folder: AnyPath) -> list[int]:
    """The numbers of the versions that a folder holds, ascending; none for a plain index."""
    try:
        names = [entry.name for entry in (Path(folder) / _VERSIONS).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(name) for name in names if name.isdecimal())


def latest(folder: AnyPath) -> int:
    """The number of the newest version; `PipelineError` when there is none."""
    known = versions(folder)
    if not known:
        raise PipelineError(f"there is no version of an index at {folder}; to make one: publish(matcher, folder)")
    return known[-1]


def is_versioned(folder: AnyPath) -> bool:
    """Whether a folder holds versions, rather than one index."""
    return not (Path(folder) / MANIFEST).exists() and bool(versions(folder))


def version_folder(folder: AnyPath, version: int) -> Path:
    """Where a version lies."""
    return Path(folder) / _VERSIONS / f"{version:0{_DIGITS}}"


def pack_index(folder: AnyPath, archive: AnyPath) -> Path:
    """Pack an index (of a folder with versions, the newest) into a zip, to be sent to workers without a shared disk.

    Add it with `spark.addArtifacts("news.zip#news", archive=True)` and match with `index="artifact:news"`.
    """
    source = version_folder(folder, latest(folder)) if is_versioned(folder) else Path(folder)
    if not (source / MANIFEST).is_file():
        raise PipelineError(f"there is no index at {source}")
    target = Path(archive)
    if target.suffix != ".zip":
        raise PipelineError(f"{target}: the name of the archive must end with .zip")
    return Path(shutil.make_archive(str(target.absolute().with_suffix("")), "zip", source))


def _prune(place: Path, keep: int, grace: float) -> None:
    known = versions(place)
    needed = pinned(place)
    before = time.time() - grace
    for number, successor in list(pairwise(known))[: -(keep - 1) or None]:
        if number in needed or version_folder(place, successor).stat().st_ctime > before:
            continue
        gone = place / _VERSIONS / f"{_GONE}{number}"
        version_folder(place, number).rename(gone)  # nobody opens half of it
        shutil.rmtree(gone, ignore_errors=True)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Wait until no other publisher is at work; the lock goes with the process that holds it."""
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _flush(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
