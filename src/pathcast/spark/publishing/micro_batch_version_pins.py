"""Pins: which version of an index a micro-batch was matched with, so that a replay of it gives the same rows.

    index/pins/<query id>/17          "4": batch 17 of this query belongs to version 4
    index/pins/<query id>.elsewhere   the folder that has this query's pins, if another one was chosen

The first task of a batch that needs the index takes the newest version and records it; the file is complete before it
gets its name, and only one task can create it (a hard link fails if the name exists). Every other task of the batch,
every retry, and every replay after a crash reads it.

Invariant: no task matches before the pin of its batch is on disk. A pin never changes.
Spark replays only the last batch, so creating a pin removes much older ones.
"""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from pathcast.errors import PipelineError

# The number of batches that Spark keeps in a checkpoint (spark.sql.streaming.minBatchesToRetain).
RETAINED = 100
_PINS = "pins"
_ELSEWHERE = ".elsewhere"
_OWNER = "index"

AnyPath = str | os.PathLike[str]


def pin(folder: AnyPath, query: str, batch: int, newest: Callable[[], int], pins: AnyPath | None = None) -> int:
    """The version that a batch of a query belongs to: the pinned one, or the newest, which is then pinned.

    `pins` is the folder that holds the pins of queries, instead of the one in the index.
    """
    home = (Path(folder) / _PINS if pins is None else Path(pins)) / query
    place = home / str(batch)
    known = _read(place)
    if known is not None:
        _check_owner(home, folder)
        return known
    try:
        home.mkdir(parents=True, exist_ok=True)
        _create(home / _OWNER, str(folder))
        _check_owner(home, folder)
        if pins is not None:
            _tell_where(Path(folder) / _PINS, query, home)
        _create(place, str(newest()))
        _forget(home, batch - RETAINED)
    except OSError as error:
        raise PipelineError(
            f"cannot pin micro-batch {batch} to a version of the index: {error}; choose another folder with pins=…"
        ) from error
    known = _read(place)
    assert known is not None
    return known


def pinned(folder: AnyPath) -> set[int]:
    """The versions of an index that pins name, wherever the pins lie."""
    found: set[int] = set()
    for entry in _entries(Path(folder) / _PINS):
        home = Path(entry.read_text(encoding="utf-8")) if entry.name.endswith(_ELSEWHERE) else entry
        numbers = (_read(place) for place in _entries(home) if place.name.isdecimal())
        found.update(number for number in numbers if number is not None)
    return found


def pins_of(folder: AnyPath, query: str, pins: AnyPath | None = None) -> dict[int, int]:
    """The version of each batch of a query that still has a pin."""
    home = (Path(folder) / _PINS if pins is None else Path(pins)) / query
    numbers = {int(place.name): _read(place) for place in _entries(home) if place.name.isdecimal()}
    return {batch: number for batch, number in sorted(numbers.items()) if number is not None}


def _entries(home: Path) -> list[Path]:
    try:
        return [entry for entry in home.iterdir() if not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read(place: Path) -> int | None:
    try:
        text = place.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    if not text.strip().isdecimal():
        raise PipelineError(
            f"{place} is damaged: expected the number of the version that its micro-batch used, got {text[:40]!r}; "
            "restore the file from a backup"
        )
    return int(text)


def _create(place: Path, text: str) -> None:
    """Write a file, complete and on disk before it gets its name, unless the name exists."""
    if place.exists():
        return
    fresh = place.with_name(f".{place.name}-{secrets.token_hex(8)}")
    try:
        with fresh.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, place)
        except FileExistsError:
            return
    finally:
        fresh.unlink(missing_ok=True)
    handle = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _check_owner(home: Path, folder: AnyPath) -> None:
    try:
        owner = (home / _OWNER).read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    if owner != str(folder):
        raise PipelineError(
            f"the pins in {home} belong to the index {owner}, not to {folder}; give each index its own folder with "
            f"pins=…, or, if the index was moved, write its new path to {home / _OWNER}"
        )


def _tell_where(home: Path, query: str, elsewhere: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    _create(home / (query + _ELSEWHERE), str(elsewhere.absolute()))


def _forget(home: Path, before: int) -> None:
    for place in _entries(home):
        if place.name.isdecimal() and int(place.name) < before:
            place.unlink(missing_ok=True)
