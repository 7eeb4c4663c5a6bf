"""Overlays for Spark's workers: versions in a folder, or an artifact of the session; routers opened on demand.

    folder/versions/00000001/manifest.json, routers/0, routers/1, …        as the routing room writes them

A worker opens the routers that its documents come to, memory-mapped, and keeps them for all tasks that it runs; what it
has of an older version is let go. An overlay that is given as an object is sent to the workers as an artifact.

Invariant: all tasks of a micro-batch, and of its replays, use one version (replay_version_pins.py).
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
# So many overlays stay open in a worker: two versions of one.
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
    """Write an overlay as the next version of a folder, for documents that are published at a router; the number.

    The engine that the policy runs with is written along, and for `L` one table for all routers; under other policies
    and engines workers build what they need.
    """
    policy = Policy.read(policy)
    return publish_version(folder, lambda fresh: save_for(overlay, fresh, at, policy, engine), keep=keep, grace=grace)


def save_for(overlay: Overlay, folder: Path, at: str | None, policy: Policy, engine: str | None = None) -> None:
    """Write an overlay with the engine that a policy runs with."""
    save_overlay(overlay, folder, at=at, engines=[engine_for(policy, engine)], whole=policy == Policy("L"))


def ship_overlay(spark: SparkSession, overlay: Overlay, *, at: str | None, policy: Policy, engine: str) -> str:
    """Send an overlay to a session's workers; what to open there."""
    home = Path(tempfile.mkdtemp(prefix="pathcast-overlay-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)  # workers fetch it when they first need it
    save_overlay(overlay, home / "overlay", at=at, engines=[engine], whole=policy == Policy("L"))
    generation = read_manifest(home / "overlay")["generation"]
    archive = shutil.make_archive(str(home / f"overlay-{generation}"), "zip", home / "overlay")
    shutil.rmtree(home / "overlay")
    spark.addArtifacts(f"{archive}#overlay-{generation}", archive=True)
    return f"{ARTIFACT}overlay-{generation}"


def check_overlay(folder: AnyPath, version: int | None, at: str | None) -> StoredOverlay:
    """What the driver can tell of an overlay on a disk that it sees; `PipelineError` when there is none."""
    home = Path(folder)
    place = version_folder(home, version or latest(home)) if is_versioned(home) else home
    if not (place / MANIFEST).is_file():
        raise PipelineError(f"there is no overlay at {home}; to make one: publish_overlay(overlay, {str(folder)!r})")
    if read_manifest(place)["kind"] != KIND:
        raise PipelineError(f"{home} is an index, not an overlay; publish_overlay(overlay, folder) makes one")
    found = StoredOverlay(place)
    if at is not None and at != found.source:
        raise PipelineError(
            f"the overlay {home} is for documents that are published at {found.source}, not at {at}; "
            f"publish_overlay(overlay, folder, at='{at}')"
        )
    return found


def open_overlay(index: Index) -> tuple[StoredOverlay, int | None]:
    """The overlay that the running task has to use, opened at most once per process, and its version."""
    folder, version = index.choose()
    try:
        manifest = (folder / MANIFEST).stat()
    except OSError as error:
        raise PipelineError(
            f"a Spark worker can't read the overlay {folder} ({error.strerror}); put it where every worker has it"
        ) from None
    stamp = (manifest.st_mtime_ns, manifest.st_ino)
    known = _opened.pop(str(folder), None)
    if known is None or known[0] != stamp:
        known = stamp, StoredOverlay(folder)
    _opened[str(folder)] = known
    while len(_opened) > _OPEN:
        del _opened[next(iter(_opened))]
    return known[1], version
