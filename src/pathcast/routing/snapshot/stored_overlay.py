"""An overlay on disk: a snapshot per router, opened when the first document reaches the router, memory-mapped.

    folder/manifest.json        the routers' names, the router where documents are published, each upstream router
    folder/routers/7/           the 7th router: its table, its engines, the advertisements that it made and received
    folder/whole/               all tables as one (`whole_overlay_table.py`), if requested

A process opens only the routers that it runs, and processes of one machine share one copy. State that is learnt from
documents (label paths, ends of links) is empty after opening.

Invariant: an opened router handles every message as the saved one would, with the same annotation bytes, if the message
comes from the router upstream of it, for the source that the overlay was saved for. It accepts no changes of
subscriptions.
Cost: opening maps files, and checks their content once. Patterns with predicates are read on access.
"""

import os
from collections.abc import Iterable
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pathcast.documents import Entities, Limits
from pathcast.errors import PathcastError, SnapshotError
from pathcast.kernels import AnyArray
from pathcast.matching import Engine, Learning, Limited, engine_class
from pathcast.matching.arrays import part_of
from pathcast.matching.table import PatternTable
from pathcast.patterns import Namespaces
from pathcast.store import MANIFEST, open_snapshot, reading_snapshot, write_snapshot

from ..advertising.subscription_advertisement import Advertisement
from ..annotations.data_pattern_occurrences import LabelMemory
from ..overlay import Overlay
from ..router import Router
from ..table.routing_table import RoutingTable, Target, View
from ..whole_overlay_table import Owners, WholeOverlay, whole_table
from .stored_subscription_advertisements import (
    StoredAdvertisements,
    made_arrays,
    received_arrays,
    restore_made,
    restore_received,
)

KIND, ROUTER_KIND, WHOLE_KIND = "overlay", "router", "whole overlay"
# The version of the facts and arrays of a stored overlay: increase it when they change.
LAYOUT = 5
_ROUTERS, _WHOLE = "routers", "whole"
_PATTERNS, _ENGINE, _MADE, _RECEIVED, _OWNERS = "patterns_", "engine_", "made_", "received_", "owners_"


def save_overlay(
    overlay: Overlay,
    folder: str | os.PathLike[str],
    *,
    at: str | None = None,
    engines: Iterable[str] = (),
    whole: bool = False,
) -> None:
    """Write an overlay, for documents that are published at router `at` (default: the root).

    The tables of `engines` are stored, too; other engines are built when a router is opened. With `whole`, the tables
    of all routers are also stored as one, for policies that forward late. The folder must be empty or not exist.
    """
    place = Path(folder)
    if place.exists() and any(place.iterdir()):
        raise SnapshotError(f"{place} is not empty; save the overlay to an empty or new folder")
    source = overlay.follow(at)
    rooted = overlay.topology.rooted(source)
    names = overlay.topology.nodes
    upstream = [None if number < 0 else names[number] for number in rooted.parent.tolist()]
    facts = {
        "layout": LAYOUT,
        "routers": list(names),
        "upstream": upstream,
        "source": source,
        "hops": int(rooted.depth.max()) + 1,
        "namespaces": overlay.namespaces,
        "limits": asdict(overlay.limits),
        "entities": overlay.entities,
        "subscriptions": len(overlay),
        "patterns": [overlay.router(name).table.view(up).busy for name, up in zip(names, upstream, strict=True)],
        "versions": [
            0 if up is None else overlay.router(up).received[names[at]].version for at, up in enumerate(upstream)
        ],
    }
    write_snapshot(place, KIND, facts, {})
    for number, name in enumerate(names):
        _save_router(overlay.router(name), upstream[number], place / _ROUTERS / str(number), list(engines))
    if whole:
        table, owners = whole_table(overlay, source)
        facts, arrays = _table_state(table, list(engines))
        arrays |= {_OWNERS + name: array for name, array in owners._asdict().items()}
        facts |= {"max_steps": table.patterns.max_steps, "order": [names[number] for number in rooted.order.tolist()]}
        write_snapshot(place / _WHOLE, WHOLE_KIND, facts, arrays)


def _table_state(table: RoutingTable, engines: list[str]) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    names = sorted({engine_class(engine).name for engine in engines})
    # Engines first: the gates of their patterns are nodes of the table's trie, and they may add some now.
    arrays: dict[str, AnyArray] = {}
    for name in names:
        arrays |= {f"{_ENGINE}{name}_{part}": array for part, array in _engine_arrays(table.engine(name)).items()}
    targets, columns = table.state()
    arrays |= columns | {_PATTERNS + name: array for name, array in table.patterns.arrays().items()}
    return {"targets": [(target.name, target.is_router) for target in targets], "engines": names}, arrays


def _save_router(router: Router, upstream: str | None, folder: Path, engines: list[str]) -> None:
    facts, arrays = _table_state(router.table, engines)
    senders = [neighbour for neighbour in router.made if neighbour == upstream]
    told = [neighbour for neighbour in router.received if neighbour != upstream]
    for number, neighbour in enumerate(senders):
        arrays |= {f"{_MADE}{number}_{part}": array for part, array in made_arrays(router.made[neighbour]).items()}
    for number, neighbour in enumerate(told):
        state = received_arrays(router.received[neighbour], router.entries_of(neighbour))
        arrays |= {f"{_RECEIVED}{number}_{part}": array for part, array in state.items()}
    facts |= {
        "name": router.name,
        "max_steps": router.max_steps,
        "untrusted": sorted(router.untrusted),
        "made": senders,
        "received": told,
    }
    write_snapshot(folder, ROUTER_KIND, facts, arrays)


def _engine_arrays(engine: Engine) -> dict[str, AnyArray]:
    return engine.compiled() if isinstance(engine, Learning) else engine.arrays()


class StoredTable(RoutingTable):
    """A routing table from disk; read-only."""

    def __init__(
        self,
        namespaces: Namespaces,
        limits: Limits,
        facts: dict[str, Any],
        arrays: dict[str, AnyArray],
        folder: Path,
    ) -> None:
        self._folder = folder
        super().__init__(namespaces, facts["max_steps"], limits)
        self.patterns = PatternTable.restore(namespaces, facts["max_steps"], part_of(arrays, _PATTERNS))
        self._stored = {name: part_of(arrays, f"{_ENGINE}{name}_") for name in facts["engines"]}
        targets = [Target(name, is_router) for name, is_router in facts["targets"]]
        edges = arrays["set_offsets"].tolist()
        members = arrays["set_members"].tolist()
        self._group = arrays["group"]
        self._sets = [
            frozenset(targets[member] for member in members[edges[number] : edges[number + 1]])
            for number in range(len(edges) - 1)
        ]

    def _view(self, sender: Target | None) -> View:
        numbers: dict[frozenset[Target], int] = {}
        moved = np.full(len(self._sets) + 1, -1, dtype=np.int32)  # the last place is for idle entries
        for number, targets in enumerate(self._sets):
            others = targets - {sender} if sender in targets else targets
            if others:
                moved[number] = numbers.setdefault(others, len(numbers))
        return View(moved[self._group], list(numbers))

    def engine(self, name: str | None) -> Engine:
        """The engine with this name: restored if it was stored, otherwise built now."""
        kind = engine_class(name)
        if kind.name in self._stored and kind.name not in self._engines:
            with reading_snapshot(self._folder):
                restored = self._engines[kind.name] = kind.restore(self.patterns, self._stored[kind.name])
            if isinstance(restored, Limited):
                restored.limits = self.limits
        return super().engine(name)

    def enter_each(self, patterns: Any, targets: Any) -> list[int]:
        """Raise `PathcastError`: a table on disk is read-only."""
        raise PathcastError(
            "a router loaded from disk is read-only; change the overlay, save the overlay again and load the "
            "router again"
        )

    def release(self, entries: Any, target: Any) -> None:
        """Raise `PathcastError`: a table on disk is read-only."""
        raise PathcastError(
            "a router loaded from disk is read-only; change the overlay, save the overlay again and load the "
            "router again"
        )


class StoredOverlay:
    """The routers of an overlay on disk, opened on demand; `verify=False` does not check the content of their files."""

    def __init__(self, folder: str | os.PathLike[str], *, verify: bool = True) -> None:
        self._folder, self._verify = Path(folder), verify
        with reading_snapshot(self._folder):
            self._read(open_snapshot(self._folder, KIND).facts)
        self._opened: dict[str, Router] = {}
        self.labels = LabelMemory(self._namespaces)

    def _read(self, facts: dict[str, Any]) -> None:
        layout = facts["layout"]
        if layout != LAYOUT:
            advice = "update Pathcast" if layout > LAYOUT else "save the overlay again"
            raise SnapshotError(
                f"snapshot {self._folder} has layout {layout!r}, but this version of Pathcast reads layout "
                f"{LAYOUT}; {advice}"
            )
        self.routers: list[str] = facts["routers"]
        self.source: str = facts["source"]
        self.hops: int = facts["hops"]
        self.subscriptions: int = facts["subscriptions"]
        self._namespaces: Namespaces = facts["namespaces"]
        self.limits = Limits(**facts["limits"])
        self._entities: Entities = facts["entities"]
        self._numbers = {name: number for number, name in enumerate(self.routers)}
        self._upstream: list[str | None] = facts["upstream"]
        self._versions: list[int] = facts["versions"]
        self._patterns: list[int] = facts["patterns"]

    @property
    def opened(self) -> list[str]:
        """The routers that are open."""
        return list(self._opened)

    def upstream(self, router: str) -> str | None:
        """The router that sends documents to this one; None for the source."""
        return self._upstream[self._numbers[router]]

    def router(self, name: str) -> Router:
        """A router, opened on first use."""
        found = self._opened.get(name)
        if found is None:
            if name not in self._numbers:
                raise PathcastError(f"unknown router '{name}'; use one of {', '.join(self.routers)}")
            folder = self._folder / _ROUTERS / str(self._numbers[name])
            with reading_snapshot(folder):
                found = self._opened[name] = self._open(name, folder)
        return found

    @cached_property
    def whole(self) -> WholeOverlay | None:
        """The tables of all routers as one; None if they were not stored as one."""
        folder = self._folder / _WHOLE
        if not (folder / MANIFEST).exists():
            return None
        with reading_snapshot(folder):
            snapshot = open_snapshot(folder, WHOLE_KIND, verify=self._verify)
            table = StoredTable(self._namespaces, self.limits, snapshot.facts, snapshot.arrays, folder)
            return WholeOverlay(table, snapshot.facts["order"], Owners(**part_of(snapshot.arrays, _OWNERS)))

    def version(self, router: str) -> int:
        """The version of the advertisement of a router to its upstream router; 0 for the source."""
        return self._versions[self._numbers[router]]

    def patterns(self, router: str) -> int:
        """The number of patterns that a router matches documents of its upstream router with."""
        return self._patterns[self._numbers[router]]

    def forget(self) -> None:
        """Reset all links: discard the dictionaries that were learnt over them."""
        for router in self._opened.values():
            router.structures.forget()

    def _open(self, name: str, folder: Path) -> Router:
        snapshot = open_snapshot(folder, ROUTER_KIND, verify=self._verify)
        facts, arrays = snapshot.facts, snapshot.arrays
        table = StoredTable(self._namespaces, self.limits, facts, arrays, folder)
        router = Router(name, self._namespaces, facts["max_steps"], self.limits, table, entities=self._entities)
        router.untrusted = set(facts["untrusted"])
        router.labels = self.labels  # all routers read the same documents
        made = {neighbour: part_of(arrays, f"{_MADE}{number}_") for number, neighbour in enumerate(facts["made"])}
        told = {
            neighbour: part_of(arrays, f"{_RECEIVED}{number}_") for number, neighbour in enumerate(facts["received"])
        }

        def made_to(upstream: str) -> Advertisement:
            with reading_snapshot(folder):
                return restore_made((upstream, name), made[upstream], self._namespaces)

        def received_from(downstream: str) -> Advertisement:
            with reading_snapshot(folder):
                return restore_received((name, downstream), told[downstream], table)

        router.made = StoredAdvertisements(list(made), made_to)
        router.received = StoredAdvertisements(list(told), received_from)
        for neighbour, state in told.items():
            router.know_entries(neighbour, state["entries"])
        return router
