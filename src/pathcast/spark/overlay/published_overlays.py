"""Overlays for Spark's workers: versions in a folder, or an artifact of the session; routers opened on demand.

    folder/versions/00000001/manifest.json, routers/0, routers/1, …        as package routing writes them

A worker opens the routers that its documents reach, memory-mapped, and keeps them for all tasks that it runs; it closes
those of older versions. An overlay that is given as an object is sent to the workers as an artifact.

Invariant: all tasks of a micro-batch, and of its replays, use one version (micro_batch_version_pins.py).
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from pathcast.errors import PipelineError
from pathcast.routing import Overlay, Policy, engine_for
from pathcast.routing.snapshot import KIND, StoredOverlay, save_overlay
from pathcast.store import MANIFEST, read_manifest

from ..matching.worker_index import ARTIFACT, Index
from ..publishing.index_versions import GRACE, KEEP, is_versioned, latest, publish_version, version_folder

AnyPath = str | os.PathLike[str]
# Overlays that stay open in a worker: two versions of one.
_OPEN = 2
_opened: dict[str, tuple[tuple[int, int], StoredOverlay]] = {}


def publish_overlay(
    overlay: Overlay,
    folder: AnyPath,
    *,
    at: str | None = None,
    policy: str | Policy = "L",
    engine: str | None = None,
    keep: int = KEEP,
    grace: float = GRACE,
) -> int:
    """Write an overlay as the next version of a folder, for documents published at a router; return the number.

    Also writes the engine that the policy runs with, and for policies `L…` without `t` one table for all routers; for
    other policies and engines workers build what they need.
    """
    policy = Policy.read(policy)
    return publish_version(folder, lambda fresh: save_for(overlay, fresh, at, policy, engine), keep=keep, grace=grace)


def save_for(overlay: Overlay, folder: Path, at: str | None, policy: Policy, engine: str | None = None) -> None:
    """Write an overlay with the engine that a policy runs with."""
    save_overlay(overlay, folder, at=at, engines=[engine_for(policy, engine)], whole=policy.in_batches)


def ship_overlay(spark: SparkSession, overlay: Overlay, *, at: str | None, policy: Policy, engine: str) -> str:
    """Send an overlay to a session's workers; return what they open."""
    home = Path(tempfile.mkdtemp(prefix="pathcast-overlay-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)  # workers fetch it when they first need it
    save_overlay(overlay, home / "overlay", at=at, engines=[engine], whole=policy.in_batches)
    generation = read_manifest(home / "overlay")["generation"]
    archive = shutil.make_archive(str(home / f"overlay-{generation}"), "zip", home / "overlay")
    shutil.rmtree(home / "overlay")
    spark.addArtifacts(f"{archive}#overlay-{generation}", archive=True)
    return f"{ARTIFACT}overlay-{generation}"


def check_overlay(folder: AnyPath, version: int | None, at: str | None) -> StoredOverlay:
    """Open an overlay on a disk that the driver sees; raises `PipelineError` if there is none."""
    home = Path(folder)
    place = version_folder(home, version or latest(home)) if is_versioned(home) else home
    if not (place / MANIFEST).is_file():
        raise PipelineError(f"no overlay at {home}; create an overlay with publish_overlay(overlay, {str(folder)!r})")
    if (kind := read_manifest(place)["kind"]) != KIND:
        raise PipelineError(
            f"{home} holds a snapshot of kind '{kind}', not an overlay; create an overlay with "
            "publish_overlay(overlay, folder)"
        )
    found = StoredOverlay(place)
    if at is not None and at != found.source:
        raise PipelineError(
            f"the overlay {home} is for documents that are published at {found.source}, not at {at}; "
            f"use publish_overlay(overlay, folder, at='{at}')"
        )
    return found


def open_overlay(index: Index) -> tuple[StoredOverlay, int | None]:
    """The overlay for the running task, opened at most once per process, and its version."""
    folder, version = index.choose()
    try:
        manifest = (folder / MANIFEST).stat()
    except OSError as error:
        raise PipelineError(
            f"a Spark worker cannot read the overlay {folder} ({error.strerror}); put it in a folder "
            "that every worker can read"
        ) from None
    stamp = (manifest.st_mtime_ns, manifest.st_ino)
    known = _opened.pop(str(folder), None)
    if known is None or known[0] != stamp:
        known = stamp, StoredOverlay(folder)
    _opened[str(folder)] = known
    while len(_opened) > _OPEN:
        del _opened[next(iter(_opened))]
    return known[1], version
