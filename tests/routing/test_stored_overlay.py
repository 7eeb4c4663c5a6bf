"""An overlay on disk: whatever is missing from it, the error is a `SnapshotError`."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from pathcast import SnapshotError
from pathcast.documents import Entities
from pathcast.routing import Overlay
from pathcast.routing.snapshot.stored_overlay import StoredOverlay, save_overlay
from pathcast.transmission import Topology
from tests.store.forged import forge, manifest_of


def opened(folder: Path) -> int:
    """Open everything in an overlay; the number of advertisements."""
    overlay = StoredOverlay(folder)
    assert overlay.whole is not None
    overlay.whole.table.engine("automaton")
    found = 0
    for name in overlay.routers:
        router = overlay.router(name)
        router.table.engine("automaton")
        found += len([*router.made.values(), *router.received.values()])
    return found


@pytest.mark.parametrize("entities", ["refuse", "expand"])
def test_a_router_that_was_opened_reads_entities_as_the_saved_one_did(tmp_path: Path, entities: Entities) -> None:
    overlay = Overlay(Topology.chain(2), entities=entities)
    overlay.subscribe("r2", "//b", "ada")
    save_overlay(overlay, tmp_path / "overlay")
    document = b"<!DOCTYPE a [<!ENTITY e '<b/>'>]><a>&e;</a>"
    saved, opened = overlay.router("r2"), StoredOverlay(tmp_path / "overlay").router("r2")
    assert opened.read(document, text=False).errors == saved.read(document, text=False).errors
    assert len(opened.read(document, text=False).name) == (2 if entities == "expand" else 0)


@pytest.mark.slow
def test_an_overlay_that_lacks_a_fact_or_an_array_is_an_error_of_the_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    overlay = Overlay(Topology.chain(2))
    overlay.subscribe("r2", "/a[b = 'x']", "ada")
    overlay.advertise(keep=0.5)
    save_overlay(overlay, tmp_path / "overlay", engines=["automaton"], whole=True)
    assert opened(tmp_path / "overlay") == 2
    for folder in sorted(file.parent for file in (tmp_path / "overlay").rglob("manifest.json")):
        manifest = manifest_of(folder)
        for part, some in (("facts", 1), ("arrays", 8)):
            for name in list(manifest[part])[::some]:
                forge(folder, manifest | {part: {key: value for key, value in manifest[part].items() if key != name}})
                with suppress(SnapshotError):
                    opened(tmp_path / "overlay")
        forge(folder, manifest)
    assert opened(tmp_path / "overlay") == 2
