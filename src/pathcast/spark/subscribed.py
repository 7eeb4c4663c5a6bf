"""Subscriptions to joins as workers find them: with the stage, or as versions in a folder that come while it runs.

Invariant: all tasks of a micro-batch, and of its replays, get the same version (join_versions.py, pins.py).
Cost: a worker builds the index of a version once: some 1 µs a subscription that came as arrays, 0.1 ms another.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pathcast.errors import PipelineError
from pathcast.joins.standing import StandingJoins
from pathcast.joins.stored import open_standing

from .opening import Index, find_index
from .shipped import Shipped
from .versions import AnyPath
from .versions import versions as versions_in

T = TypeVar("T")
# A worker keeps open what two versions are used for.
_KEPT = 6
# What this process has open, the least recently used first.
_opened: dict[tuple[Any, ...], Any] = {}


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
    if not versions_in(versions):
        raise PipelineError(
            f"there is no version of subscriptions at {versions}; begin with publish_joins(folder, standing)"
        )
    return Subscribed(
        None,
        find_index(versions, version=version, pins=pins, streaming=streaming, remote=False, limits=None),
    )
