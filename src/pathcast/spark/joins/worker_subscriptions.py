"""Subscriptions to joins as workers find them: with the stage, or as versions in a folder that come while it runs.

Invariant: all tasks of a micro-batch, and of its replays, get the same version (join_versions.py, version_pins.py).
Cost: a worker builds the index of a version once: some 1 µs a subscription that came as arrays, 0.1 ms another.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pathcast.errors import PipelineError
from pathcast.joins.partition import StandingJoins, open_standing

from ..matching.worker_index import Index, find_index
from ..pipeline.stream_checkpoints import batch_at, query_id
from ..publishing.index_versions import AnyPath
from ..publishing.index_versions import versions as versions_in
from ..sessions.shipped_objects import Shipped

T = TypeVar("T")
# A worker keeps open what two versions are used for.
_KEPT = 6
# What this process has open, the least recently used first.
_opened: dict[tuple[Any, ...], Any] = {}


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Where workers find subscriptions: with the stage, or in an index.

    `checkpoint` is that of the stream, where tasks find their micro-batch in it by its time.
    """

    shipped: Shipped | None
    index: Index | None
    checkpoint: str | None = None

    def batch(self, time: int | None) -> tuple[str, int] | None:
        """The query and the micro-batch of this time; None where the task knows them by itself."""
        if self.checkpoint is None or time is None:
            return None
        return query_id(self.checkpoint), batch_at(self.checkpoint, time)

    def open(self, make: Callable[..., T], *more: Any, batch: tuple[str, int] | None = None) -> T:
        """What `make` makes of the subscriptions that the running task has to use; in each process made once."""
        if self.shipped is not None:
            return self.shipped.open(make, *more)
        assert self.index is not None
        if batch is None and self.index.unpinned():
            raise PipelineError(
                "the task does not know its micro-batch, so it can't be pinned to a version of the subscriptions "
                "(foreachBatch over Spark Connect hides it); give join_subscriptions the stream's checkpoint=…, and "
                "deliver_joins inside foreachBatch version=pin_version(versions, query_id(checkpoint), batch)"
            )
        folder, _ = self.index.choose(batch)
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
    checkpoint: AnyPath | None = None,
) -> Subscribed:
    """What to tell the workers: subscriptions themselves (many in a file of `folder`), or where versions lie."""
    where = None if checkpoint is None else str(Path(checkpoint).absolute())
    if versions is None:
        if pins is not None or version is not None:
            raise PipelineError("pins and version go with versions=…, a folder of subscriptions that come and go")
        assert standing is not None
        return Subscribed(Shipped.of(standing).lightened(folder, "the subscriptions"), None, where)
    if folder is not None:
        raise PipelineError("folder=… is for subscriptions that are given here; those of versions=… lie there")
    if not versions_in(versions):
        raise PipelineError(
            f"there is no version of subscriptions at {versions}; begin with publish_joins(folder, standing)"
        )
    return Subscribed(
        None,
        find_index(versions, version=version, pins=pins, streaming=streaming, remote=False, limits=None),
        where,
    )
