"""Versions of subscriptions to joins: a folder of descriptions, published one after the other.

    subscriptions/versions/00000001/   written by joins/partition/join_server_specification_snapshot.py
    subscriptions/pins/…               which version a micro-batch of a stream belongs to (micro_batch_version_pins.py)

Invariant: an id means the same in all versions. A version never changes.
Cost: publishing writes all subscriptions, and reads only the new ones. Needs no Spark.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pathcast.errors import PipelineError
from pathcast.joins import Selection
from pathcast.joins.partition import Queries, Ranges, StandingJoins, open_standing, save_standing

from ..publishing.index_versions import GRACE, KEEP, AnyPath, latest, publish_version, version_folder, versions


class JoinsVersion(NamedTuple):
    """A published version, and the ids of its new subscriptions."""

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
    """Write the first version of subscriptions to a folder, or the next: the newest with additions and removals.

    `standing` is the first version. After it, `add` are queries, or queries by subscriber; `batches` many with ranges
    as arrays; `remove` are ids. Ids are never reused. Subscribers are text, whole numbers or None. Streams use the
    version from their next micro-batch on; `initial_contents` has the contents of the new subscriptions at that moment.
    """
    added = range(0)

    def save(place: Path) -> None:
        nonlocal added
        known = versions(folder)
        if standing is not None and known:
            raise PipelineError(
                f"standing=… is for the first version, but {folder} already has versions; give the changes with add=, "
                "remove= and batches="
            )
        if standing is not None and (add or batches or remove):
            raise PipelineError(
                "standing=… cannot be combined with add=, remove= or batches=; publish standing=… first, then changes"
            )
        if standing is None and not known:
            raise PipelineError(
                f"no subscriptions at {folder}; publish the first version with publish_joins(folder, standing)"
            )
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
        raise PipelineError(
            f"no subscriptions at {folder}; publish the first version with publish_joins(folder, standing)"
        )
    return open_standing(version_folder(folder, latest(folder) if version is None else version))
