"""Subscriptions to joins in workers: sent with the stage, or as versions in a folder that change while it runs.

Large sets of a stage are in a folder that every worker can read, named by a digest of their content.

Invariant: all tasks of a micro-batch, and of its replays, get the same version (join_version_folder.py,
micro_batch_version_pins.py).
Cost: a worker builds the index of a version once: some 1 µs per subscription given as arrays, 0.1 ms per other
subscription.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pathcast.errors import PipelineError, SnapshotError
from pathcast.joins.partition import StandingJoins, open_standing, save_standing_under

from ..matching.worker_index import Index, PublishedIndex, find_index
from ..pipeline.checkpoint_reader import batch_at, query_id
from ..publishing.index_versions import AnyPath
from ..publishing.index_versions import versions as versions_in
from ..sessions.objects_sent_to_workers import ShippedObject

T = TypeVar("T")
# The most bytes of subscriptions that travel with a function: PySpark broadcasts a function of a million bytes, and its
# state functions cannot open a broadcast.
MOST_BYTES = 256 << 10
# Open objects that a worker keeps: enough for two versions.
_KEPT = 6
# Open objects of this process, the least recently used first.
_opened: dict[tuple[Any, ...], Any] = {}


@dataclass(frozen=True, slots=True)
class StoredJoins:
    """Subscriptions in a folder: a version, or a set with a digest, written for a stage."""

    folder: str
    digest: str | None = None

    def open(self) -> StandingJoins:
        """The subscriptions; raises `PipelineError` if a worker does not find those of its stage."""
        try:
            return open_standing(self.folder, self.digest)
        except SnapshotError as error:
            if self.digest is None:
                raise
            raise PipelineError(
                f"a Spark worker cannot read the subscriptions: {error.reason}; choose a folder that every worker can "
                "read, and restart the query"
            ) from None


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Where workers find subscriptions: with the stage, in a folder that belongs to it, or in an index.

    `checkpoint` is that of the stream, if tasks find their micro-batch in it by time.
    """

    shipped: ShippedObject | StoredJoins | None
    index: Index | None
    checkpoint: str | None = None

    def batch(self, time: int | None) -> tuple[str, int] | None:
        """The query and the micro-batch of this time; None if the task itself knows them."""
        if self.checkpoint is None or time is None:
            return None
        return query_id(self.checkpoint), batch_at(self.checkpoint, time)

    def open(self, make: Callable[..., T], *more: Any, batch: tuple[str, int] | None = None) -> T:
        """The result of `make` for the subscriptions of the running task, computed once per process."""
        if isinstance(self.shipped, ShippedObject):
            return self.shipped.open(make, *more)
        stored = self._stored(batch) if self.shipped is None else self.shipped
        key = stored, make, *more
        found = _opened.pop(key, None)
        if found is None:
            found = make(stored.open(), *more)
        _opened[key] = found
        while len(_opened) > _KEPT:
            del _opened[next(iter(_opened))]
        return found  # type: ignore[no-any-return]

    def _stored(self, batch: tuple[str, int] | None) -> StoredJoins:
        """The version in the index that a micro-batch must use."""
        assert self.index is not None
        if batch is None and self.index.unpinned():
            raise PipelineError(
                "the Spark task does not know its micro-batch (foreachBatch over Spark Connect hides it), which "
                "selects the "
                "version of the subscriptions; give join_subscriptions the stream's checkpoint=…, and deliver_joins "
                "inside foreachBatch version=pin_version(versions, query_id(checkpoint), batch)"
            )
        return StoredJoins(str(self.index.choose(batch)[0]))


def find_subscriptions(
    standing: StandingJoins | None,
    folder: AnyPath | None,
    versions: AnyPath | None,
    pins: AnyPath | None,
    *,
    streaming: bool,
    version: int | None = None,
    checkpoint: AnyPath | None = None,
    most_bytes: int = MOST_BYTES,
) -> Subscribed:
    """The description for workers: the subscriptions themselves, or the folder of versions.

    Subscriptions of more than `most_bytes` bytes go to a folder below `folder`.
    """
    where = None if checkpoint is None else str(Path(checkpoint).absolute())
    if versions is None:
        if pins is not None or version is not None:
            raise PipelineError(
                "pins= and version= need versions=, the folder of published subscriptions; give versions= instead of "
                "subscriptions, or omit pins= and version="
            )
        assert standing is not None
        return Subscribed(ship(standing, folder, most_bytes), None, where)
    if folder is not None:
        raise PipelineError("folder= cannot be combined with versions=…, which already names a folder; omit folder=")
    if not versions_in(versions):
        raise PipelineError(
            f"no version of subscriptions at {versions}; publish the first version with publish_joins(folder, standing)"
        )
    return Subscribed(
        None,
        find_index(PublishedIndex(versions, version, pins), streaming=streaming, remote=False),
        where,
    )


def ship(standing: StandingJoins, folder: AnyPath | None, most_bytes: int = MOST_BYTES) -> ShippedObject | StoredJoins:
    """Subscriptions to send with a stage; more than `most_bytes` bytes of them go to a folder in `folder`."""
    shipped = ShippedObject.of(standing)
    if len(shipped.data) <= most_bytes:
        return shipped
    if folder is None:
        raise PipelineError(
            f"the subscriptions take {len(shipped.data):,} bytes; at most {most_bytes:,} can be sent with the "
            "stage; give folder=…, a folder that every worker can read (in a pipeline file: joins.versions)"
        )
    place, digest = save_standing_under(standing, folder)
    return StoredJoins(str(place), digest)
