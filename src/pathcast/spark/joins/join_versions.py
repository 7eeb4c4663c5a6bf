"""Versions of subscriptions to joins: a folder of descriptions that are published one after the other.

    subscriptions/versions/00000001/   a snapshot: the description of standing joins (joins/partition/stored_joins.py)
    subscriptions/pins/…               which version a micro-batch of a stream belongs to (replay_version_pins.py)

Invariant: in a version ids mean what they meant in those before. A version never changes.
Cost: publishing writes all subscriptions, and looks at the new ones alone. Needs no Spark.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pathcast.errors import PipelineError
from pathcast.joins import Selection
from pathcast.joins.partition import Queries, Ranges, StandingJoins, open_standing, save_standing

from ..publishing.index_versions import GRACE, KEEP, AnyPath, latest, publish_version, version_folder, versions


class JoinsVersion(NamedTuple):
    """A version that was published, and the ids of the subscriptions that came with it."""

    number: int
    added: range


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
    as arrays; `remove` are ids. Ids are never used again. Subscribers are text, whole numbers or None. Streams take the
    version up with their next micro-batch; `initial_contents` has what the new ones have at that moment.
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
    if version is None and not versions(folder):
        raise PipelineError(f"there are no subscriptions at {folder}; begin with publish_joins(folder, standing)")
    return open_standing(version_folder(folder, latest(folder) if version is None else version))
