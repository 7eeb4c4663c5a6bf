"""Subscriptions to joins as workers find them: with the stage, or as versions in a folder that come while it runs.

    subscriptions/versions/00000001/   a snapshot: the description of standing joins (`pathcast.joins.stored`)
    subscriptions/pins/…               which version a micro-batch of a stream belongs to (pins.py)

Invariant: all tasks of a micro-batch, and of its replays, get the same version. In a version ids mean what they
meant in those before.
Cost: a worker builds the index of a version once: some 1 µs a subscription that came as arrays, 0.1 ms another.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pathcast.errors import PipelineError
from pathcast.joins import Selection
from pathcast.joins.standing import Queries, Ranges, StandingJoins
from pathcast.joins.stored import open_standing, save_standing

from .opening import Index, find_index
from .shipped import Shipped
from .versions import GRACE, KEEP, AnyPath, latest, publish_version, version_folder, versions

T = TypeVar("T")
# A worker keeps open what two versions are used for.
_KEPT = 6
# What this process has open, the least recently used first.
_opened: dict[tuple[Any, ...], Any] = {}


class JoinsVersion(NamedTuple):
    """A version that was published, and the ids of the subscriptions that came with it."""

    number: int
    added: range


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Where workers find subscriptions: one of the two is there."""

    shipped: Shipped | None
    index: Index | None

    def open(self, make: Callable[..., T], *more: Any) -> T:
        """What `make` makes of the subscriptions that the running task has to use; in each process made once."""
        if self.shipped is not None:
            return self.shipped.open(make, *more)
        assert self.index is not None
        folder, _ = self.index.choose()
        key = str(folder), make, *more
        found = _opened.pop(key, None)
        if found is None:
            found = make(open_standing(folder), *more)
        _opened[key] = found
        while len(_opened) > _KEPT:
            del _opened[next(iter(_opened))]
        return found  # type: ignore[no-any-return]


def find_subscriptions(
    standing: StandingJoins | None,
    folder: AnyPath | None,
    versions: AnyPath | None,
    pins: AnyPath | None,
    *,
    streaming: bool,
    version: int | None = None,
) -> Subscribed:
    """What to tell the workers: subscriptions themselves (many in a file of `folder`), or where versions lie."""
    if versions is None:
        if pins is not None or version is not None:
            raise PipelineError("pins and version go with versions=…, a folder of subscriptions that come and go")
        assert standing is not None
        return Subscribed(Shipped.of(standing).lightened(folder, "the subscriptions"), None)
    if folder is not None:
        raise PipelineError("folder=… is for subscriptions that are given here; those of versions=… lie there")
    latest(versions)  # there must be one
    return Subscribed(
        None,
        find_index(versions, version=version, pins=pins, streaming=streaming, remote=False, limits=None),
    )


def publish_joins(
    folder: AnyPath,
    standing: StandingJoins | None = None,
    *,
    add: Queries = (),
    remove: Iterable[int] = (),
    batches: Iterable[tuple[Selection, Ranges]] = (),
    keep: int = KEEP,
    grace: float = GRACE,
) -> JoinsVersion:
    """Write the first version of subscriptions to a folder, or the next: the newest one with some more, without others.

    `standing` is the first version. After it, `add` are queries, or queries by subscriber; `batches` many with ranges
    as arrays; `remove` are ids. Ids are never used again. Streams take the version up with their next micro-batch;
    `initial_contents` has what the new ones have at that moment.
    """
    added = range(0)

    def save(place: Path) -> None:
        nonlocal added
        known = versions(folder)
        if standing is not None and (known or add or batches or remove):
            raise PipelineError(
                f"standing=… is the first version, and there is {'one' if known else 'nothing to add to'}; "
                "say what changes with add, remove and batches"
            )
        if standing is None and not known:
            raise PipelineError(f"there are no subscriptions at {folder}; begin with publish_joins(folder, standing)")
        newest = open_joins(folder) if standing is None else None
        whole = newest.changed(add, remove, batches) if newest is not None else standing
        assert whole is not None
        added = range(newest.next_id if newest is not None else 1, whole.next_id)
        save_standing(whole, place)

    number = publish_version(folder, save, keep=keep, grace=grace)
    return JoinsVersion(number, added)


def open_joins(folder: AnyPath, version: int | None = None) -> StandingJoins:
    """A version of subscriptions, the newest unless a number is given."""
    return open_standing(version_folder(folder, latest(folder) if version is None else version))
