"""Complete files: a stream reads a file when its size and modification time show that its writer has finished.

A file is settled when its modification time is at least `settle` ago by this machine's clock, or when two listings at
least `settle` apart found the same size and time (for file servers whose clock runs ahead of ours). Other files are
deferred: counted, and checked again by the next listing.

    checkpoint/pathcast/deferred.json     {"deferred": 2, "files": ["/feed/a.xml", "/feed/b.xml"]}

Not done: detect a writer that pauses for longer than `settle`, or that sets an old modification time before it has
finished. A file that is written elsewhere on the same file system and then moved is always complete.
"""

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .file_listing import FoundFile

# How many deferred files reports name.
NAMED = 10
_DEFERRED = "pathcast/deferred.json"


def sleep_beside_parent(seconds: float) -> None:
    """Sleep, but return early if the parent process ends: then no process waits for an answer."""
    parent, end = os.getppid(), time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and os.getppid() == parent:
        time.sleep(min(left, 1))


@dataclass(frozen=True)
class Clock:
    """Wall-clock and monotonic time in nanoseconds, and a way to sleep; tests supply their own."""

    now: Callable[[], int] = time.time_ns
    steady: Callable[[], int] = time.monotonic_ns
    sleep: Callable[[float], None] = sleep_beside_parent


class Settling:
    """Separates settled from deferred files, listing by listing."""

    def __init__(self, settle: int, clock: Clock) -> None:
        """`settle` is in nanoseconds."""
        self._settle = settle
        self._clock = clock
        self._deferred: dict[
            str, tuple[FoundFile, int]
        ] = {}  # with the monotonic time of the first listing that found the file so

    @property
    def deferred(self) -> list[str]:
        """The paths of the deferred files, sorted."""
        return sorted(self._deferred)

    def settled(self, listed: Iterable[FoundFile]) -> list[FoundFile]:
        """Return the settled files of a listing, and defer the others."""
        steady = self._clock.steady()
        before, self._deferred = self._deferred, {}
        found = []
        for file in listed:
            known, since = before.get(file.path, (None, steady))
            since = since if known == file else steady
            if self._wait(file, since) > 0:
                self._deferred[file.path] = file, since
            else:
                found.append(file)
        return found

    def defer(self, file: FoundFile) -> None:
        """Defer a file that was settled and has changed since."""
        self._deferred[file.path] = file, self._clock.steady()

    def wait(self) -> None:
        """Sleep until the deferred files are settled, unless they change meanwhile."""
        longest = max((self._wait(file, since) for file, since in self._deferred.values()), default=0)
        self._clock.sleep(longest / 1e9)

    def _wait(self, file: FoundFile, since: int) -> int:
        """The nanoseconds until a file is settled."""
        return self._settle - max(self._clock.now() - file.modified, self._clock.steady() - since)


def keep_deferred(checkpoint: Path, paths: list[str]) -> None:
    """Write the deferred files beside the checkpoint, for reports."""
    place = checkpoint / _DEFERRED
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_suffix(".fresh")
    fresh.write_text(json.dumps({"deferred": len(paths), "files": paths[:NAMED]}), encoding="ascii")
    fresh.replace(place)


def deferred_in(checkpoint: str | Path) -> tuple[int, list[str]] | None:
    """The number of files that a stream's last listing deferred, and the first of their paths.

    None if the stream's source does not defer files.
    """
    try:
        facts = json.loads((Path(checkpoint) / _DEFERRED).read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    return facts["deferred"], facts["files"]
