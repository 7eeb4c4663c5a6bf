"""Versions of an index: a folder of snapshots that are published one after the other and never changed.

    index/versions/00000001/      a snapshot, as `matcher.save` writes it
    index/versions/00000002/
    index/pins/…                  which version a micro-batch of a stream has been matched with (replay_version_pins.py)

A version is written beside the others under a name that no reader looks at, and gets its number by a rename: readers
see all of it or nothing. Publishers take turns by a lock. A folder that is itself a snapshot serves too: then there is
one version, without a number, and whoever writes it anew replaces it for everybody at once.

A task that Spark runs twice publishes once: both attempts have one token, and before the rename what there is to tell
is left under it (`.told-…`). Where that stands and what was to be renamed is gone, the version is out. What several
tasks write for one version lies in `.parts-…`, each attempt in a folder of its own, until a last task takes its turn.

Pruning removes a version only when `keep` newer ones stand, no pin names it, and its successor has stood for `grace`
seconds: whoever looked for the latest version before that has pinned or opened it by then.
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
from .replay_version_pins import pinned

KEEP = 3
GRACE = 600.0
_VERSIONS = "versions"
_FRESH, _GONE, _TOLD, _PARTS = ".fresh-", ".gone-", ".told-", ".parts-"
# Among the parts: the version that is made of them.
_WHOLE = "whole"
# Seconds after which no task of a program that may have been killed goes on with what it began.
_FORGOTTEN = 86_400.0
_DIGITS = 8

AnyPath = str | os.PathLike[str]


def publish(
    matcher: Matcher, folder: AnyPath, *, keep: int = KEEP, grace: float = GRACE, shards: int | None = None
) -> int:
    """Write a matcher's index as the next version of a folder, remove what is too old, and return the number.

    With `shards` it is written in so many pieces, for `match_documents(…, PublishedIndex(folder, shards=…))`.
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
    with turn(folder, secrets.token_hex(8), keep=keep, grace=grace) as mine:
        return mine.publish(save)


class Turn:
    """The turn of a publisher, who is alone with a folder's versions for as long as it has it."""

    def __init__(self, place: Path, token: str, keep: int, grace: float) -> None:
        self._place, self._keep, self._grace = place, keep, grace
        self._home = place / _VERSIONS
        self._fresh, self._told = self._home / (_FRESH + token), self._home / (_TOLD + token)
        self._parts = self._home / (_PARTS + token)

    def publish(self, save: Callable[[Path], None], tell: Callable[[int], bytes] | None = None) -> int:
        """Have `save` write the next version, and return its number; what it tells then can be read by `earlier`."""
        try:
            save(self._fresh)
            return self._commit(self._fresh, tell)
        except BaseException:
            shutil.rmtree(self._fresh, ignore_errors=True)
            raise

    def publish_parts(self, parts: Mapping[str, str], tell: Callable[[int], bytes]) -> int:
        """Make the next version of folders among the parts, each under the name that it has there; its number.

        Whoever was killed at that can begin again.
        """
        whole = self._parts / _WHOLE
        whole.mkdir(parents=True, exist_ok=True)
        for name, part in parts.items():
            if not (whole / name).exists():
                try:
                    (self._parts / part).rename(whole / name)
                except FileNotFoundError:
                    raise PipelineError(
                        f"{self._parts / part}, which another Spark worker wrote, is not there; "
                        "publish to a folder that all workers share"
                    ) from None
        number = self._commit(whole, tell)
        self.drop_parts()
        return number

    def drop_parts(self) -> None:
        """Remove what tasks wrote for this version and nobody needs any more."""
        shutil.rmtree(self._parts, ignore_errors=True)

    def earlier(self) -> bytes | None:
        """What was told of the version that an earlier attempt published; None if there was none."""
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
    """Wait until no other publisher is at work; `token` is one for all attempts to publish the same."""
    check_keep(keep)
    place = Path(folder)
    home = check_home(place)
    with sole_writer(place):
        for left in home.glob(_FRESH + "*"):  # by a publisher that was killed
            (home / (_TOLD + left.name.removeprefix(_FRESH))).unlink(missing_ok=True)  # it was never published
            shutil.rmtree(left, ignore_errors=True)
        for gone in home.glob(_GONE + "*"):
            shutil.rmtree(gone, ignore_errors=True)
        _forget(home)
        yield Turn(place, token, keep, grace)


def check_keep(keep: int) -> None:
    """Refuse to keep no version."""
    if keep < 1:
        raise PipelineError(f"keep={keep}: at least the newest version must stay")


def check_home(folder: AnyPath) -> Path:
    """Where versions of a folder lie, made now if it is not there; `PipelineError` when it is one plain index."""
    place = Path(folder)
    if (place / MANIFEST).exists():
        raise PipelineError(f"{place} is one index without versions; publish to another folder")
    home = place / _VERSIONS
    home.mkdir(parents=True, exist_ok=True)
    return home


def parts_folder(folder: AnyPath, token: str) -> Path:
    """Where tasks write what belongs to a version that is yet to be published."""
    return Path(folder) / _VERSIONS / (_PARTS + token)


def _forget(home: Path) -> None:
    """Remove what was left for attempts that nobody makes any more."""
    before = time.time() - _FORGOTTEN
    for left in (*home.glob(_PARTS + "*"), *home.glob(_TOLD + "*")):
        try:
            if left.stat().st_mtime > before:
                continue
        except FileNotFoundError:  # whoever wrote it has removed it just now
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
