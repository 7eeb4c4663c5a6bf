"""The index on disk: subscriptions and engine as one snapshot."""

import os
from typing import TYPE_CHECKING

from ..documents import Limits
from ..documents.expat_reader import Entities
from ..errors import SnapshotError
from ..store import open_snapshot, write_snapshot
from ..store.snapshot import AnyArray
from .registry import engine_class, engines
from .subscriptions import Subscriptions

if TYPE_CHECKING:
    from .matcher import Matcher

KIND = "index"
_SUBSCRIPTIONS, _ENGINE = "subscriptions_", "engine_"


def save_index(matcher: "Matcher", directory: str | os.PathLike[str], *, memo: bool) -> None:
    """Write a matcher's subscriptions and engine to a folder; `memo`: with what the engine has learnt."""
    facts, columns = matcher.subscriptions.state()
    arrays = {_SUBSCRIPTIONS + name: array for name, array in columns.items()}
    if memo:
        arrays.update({_ENGINE + name: array for name, array in matcher.engine.arrays().items()})
    write_snapshot(directory, KIND, {"engine": matcher.engine_name, **facts}, arrays)


def open_index(
    directory: str | os.PathLike[str],
    *,
    limits: Limits | None = None,
    entities: Entities = "refuse",
    verify: bool = True,
) -> "Matcher":
    """Open an index that `matcher.save` wrote; `SnapshotError` when it is damaged, foreign or too new.

    `verify=False` trusts the files' content and checks names, sizes and versions only.
    """
    from .matcher import Matcher

    snapshot = open_snapshot(directory, KIND, verify=verify)
    name = snapshot.facts["engine"]
    if name not in engines():
        raise SnapshotError(f"the index was written for the engine '{name}', which this Pathcast lacks")
    subscriptions = Subscriptions.restore(snapshot.facts, _part(snapshot.arrays, _SUBSCRIPTIONS))
    engine = engine_class(name).restore(subscriptions.table, _part(snapshot.arrays, _ENGINE))
    return Matcher(subscriptions, engine, limits=limits, entities=entities)


def _part(arrays: dict[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
