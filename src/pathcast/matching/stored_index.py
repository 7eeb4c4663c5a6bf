"""The index on disk: subscriptions and engine as one snapshot."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathcast.documents import Entities, Limits
from pathcast.errors import SnapshotError
from pathcast.kernels import AnyArray
from pathcast.store import open_snapshot, reading_snapshot, write_snapshot

from .arrays.ragged_arrays import part_of
from .engine_contract import Engine, Learning
from .engine_registry import engine_class, engines
from .subscriptions.subscriptions import Subscriptions
from .subscriptions_of_untrusted_index import read_distrusting

if TYPE_CHECKING:
    from .matcher import Matcher

KIND = "index"
# The version of the arrays' names, shapes and meaning: increase it when any of these change.
LAYOUT = 13
_SUBSCRIPTIONS, _ENGINE = "subscriptions_", "engine_"


def index_state(matcher: "Matcher", *, memo: bool) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """A matcher's subscriptions and engine as facts and arrays; `memo`: with what the engine has learnt."""
    # The engine first: its patterns' gates are nodes of the table's trie, and it may add some now.
    engine = matcher.engine
    compiled: dict[str, AnyArray] = {}
    if memo:
        compiled = engine.arrays()
    elif isinstance(engine, Learning):
        compiled = engine.compiled()
    facts, columns = matcher.subscriptions.state()
    arrays = {_SUBSCRIPTIONS + name: array for name, array in columns.items()}
    arrays |= {_ENGINE + name: array for name, array in compiled.items()}
    return {"engine": matcher.engine_name, "layout": LAYOUT, **facts}, arrays


def write_index(directory: str | os.PathLike[str], facts: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
    """Write the result of `index_state` to a folder."""
    write_snapshot(directory, KIND, facts, arrays)


def open_index(
    directory: str | os.PathLike[str],
    *,
    limits: Limits | None = None,
    entities: Entities = "refuse",
    verify: bool = True,
    trusted: bool = True,
) -> "Matcher":
    """Open an index that `matcher.save` wrote; `SnapshotError` if the folder holds anything else.

    `verify=False` skips the checksums of the arrays' content, but not those of the manifest, nor the files' sizes.
    `trusted=False` is for a folder from an untrusted source: only the subscriptions are read, always with their
    checksums, and compiled again (`subscriptions_of_untrusted_index.py`), which takes seconds for a million instead of
    milliseconds.

    >>> from tempfile import mkdtemp
    >>> folder, subscriptions = mkdtemp(), pathcast.Subscriptions()
    >>> subscriptions.add("//a")
    1
    >>> subscriptions.compile().save(folder)
    >>> pathcast.open_index(folder).match("<a/>").ids.tolist()
    [1]
    """
    from .matcher import Matcher

    folder = Path(directory)
    with reading_snapshot(folder):
        subscriptions, engine = _read(folder, verify, trusted)
    return Matcher(subscriptions, engine, limits=limits, entities=entities)


def _read(folder: Path, verify: bool, trusted: bool) -> tuple[Subscriptions, Engine]:
    snapshot = open_snapshot(folder, KIND, verify=verify or not trusted)
    name = snapshot.facts.get("engine")
    if name not in engines():
        raise SnapshotError(f"the index {folder} needs the unknown engine {name!r}; compile the subscriptions again")
    layout = snapshot.facts.get("layout", 1)
    if layout != LAYOUT:
        newer = type(layout) is int and layout > LAYOUT
        advice = "update Pathcast" if newer else "compile the subscriptions again"
        raise SnapshotError(
            f"the index {folder} has layout {layout!r}, but this version of Pathcast reads layout {LAYOUT}; {advice}"
        )
    if not trusted:
        subscriptions = read_distrusting(snapshot.facts, part_of(snapshot.arrays, _SUBSCRIPTIONS))
        return subscriptions, engine_class(name).build(subscriptions.table)
    return _restored(snapshot.facts, snapshot.arrays)


def _restored(facts: dict[str, Any], arrays: dict[str, AnyArray]) -> tuple[Subscriptions, Engine]:
    subscriptions = Subscriptions.restore(facts, part_of(arrays, _SUBSCRIPTIONS))
    engine = engine_class(facts["engine"]).restore(subscriptions.table, part_of(arrays, _ENGINE))
    return subscriptions, engine


def restored_matcher(facts: dict[str, Any], arrays: dict[str, AnyArray]) -> "Matcher":
    """The matcher whose `arrays` these are, from a trusted snapshot that its caller checked; nothing is copied."""
    from .matcher import Matcher

    if facts["layout"] != LAYOUT:
        raise SnapshotError(
            f"the index has layout {facts['layout']!r}, but this version of Pathcast reads layout {LAYOUT}; "
            "write the index again"
        )
    return Matcher(*_restored(facts, arrays))
