"""Opening an index in a Spark worker: by folder, version or artifact, once per process and version.

An `Index` is sent to the workers: the location of an index, not its content. A task gets its matcher from it:

- `artifact:NAME` is an archive in the session (`spark.addArtifacts("news.zip#NAME", archive=True)`);
- a plain folder is the index itself; a rewritten index is detected by its manifest;
- of a folder with versions, the task uses the given version, or in a stream the one that its batch is pinned to.

Invariant: in a stream over a folder with versions, all tasks of a batch and of its replays get the same version.
Cost: opening maps the files and checks their content once; a repeated call reads the pin or the manifest.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkFiles, TaskContext

from pathcast.documents import Entities, Limits
from pathcast.errors import PipelineError
from pathcast.matching import Matcher, open_index
from pathcast.store import MANIFEST

from ..publishing.index_shards import SHARD, shard_folder, shards_in
from ..publishing.index_versions import is_versioned, latest, version_folder, versions
from ..publishing.micro_batch_version_pins import pin
from .input_column_checks import check_entities

ARTIFACT = "artifact:"
# The number of matchers that stay open in a worker: two versions of two indexes.
_OPEN = 4

_Stamp = tuple[int, int]
# Open matchers of this process, the least recently used first: modification time and inode of the manifest, the
# matcher.
_opened: dict[tuple[str, Limits | None, Entities], tuple[_Stamp, Matcher]] = {}


@dataclass(frozen=True, slots=True)
class PublishedIndex:
    """An index as `publish` writes it, for more than the newest version of a folder.

    `version`: this one instead of the newest. `pins`: the folder that records which version each micro-batch uses,
    instead of one inside the index. `shards`: the index is in this many pieces.
    """

    folder: str | os.PathLike[str]
    version: int | None = None
    pins: str | os.PathLike[str] | None = None
    shards: int | None = None


@dataclass(frozen=True, slots=True)
class Index:
    """Where workers find an index, and how they choose its version."""

    place: str
    version: int | None = None  # given: used by all tasks
    newest: int | None = None  # as seen by the driver: one for all tasks of a batch query
    pins: str | None = None
    streaming: bool = False
    limits: Limits | None = None
    entities: Entities = "refuse"

    def open(self, shard: int | None = None) -> tuple[Matcher, int | None]:
        """The matcher for the running task, and its version; None for an index without versions.

        Of an index in shards, one shard; other open shards of this process are closed.
        """
        folder, version = self.choose()
        if shard is None:
            return opened(str(folder), self.limits, self.entities), version
        place = str(shard_folder(folder, shard))
        for known in [key for key in _opened if Path(key[0]).name.startswith(SHARD) and key[0] != place]:
            del _opened[known]
        return opened(place, self.limits, self.entities), version

    def unpinned(self) -> bool:
        """Whether this is for a stream, and the running task does not know its micro-batch."""
        return self.streaming and self.version is None and _batch_of_task() is None

    def choose(self, batch: tuple[str, int] | None = None) -> tuple[Path, int | None]:
        """The folder of the snapshot for the running task, and its version.

        `batch`: the query and the micro-batch that the task belongs to, if the task itself cannot know them.
        """
        if self.place.startswith(ARTIFACT):
            return _artifact(self.place.removeprefix(ARTIFACT)), None
        folder = Path(self.place)
        if not is_versioned(folder):
            return folder, None
        batch = batch or _batch_of_task()
        if self.version is not None:
            version = self.version
        elif batch is not None:
            version = pin(self.place, *batch, lambda: latest(folder), self.pins)
        elif self.streaming:
            raise PipelineError(
                "the Spark task does not know its micro-batch (foreachBatch over Spark Connect hides it), so the "
                "micro-batch cannot be pinned to a version of the index; match inside foreachBatch, with "
                "PublishedIndex(index, version=pin_version(index, name, batch_id))"
            )
        else:
            version = self.newest or latest(folder)
        return version_folder(folder, version), version


def find_index(
    chosen: PublishedIndex,
    *,
    streaming: bool,
    remote: bool,
    limits: Limits | None = None,
    entities: Entities = "refuse",
) -> Index:
    """The `Index` for the workers. If the driver may see other disks (`remote`), only the workers check it."""
    Limits.given(limits)
    check_entities(entities)
    index, version, pins, shards = chosen.folder, chosen.version, chosen.pins, chosen.shards
    if isinstance(index, str) and index.startswith(ARTIFACT):
        if shards is not None:
            raise PipelineError(
                f"the artifact {index!r} cannot be in shards; omit shards=, or put the index in a folder that "
                "every worker "
                "can read"
            )
        if version is not None or pins is not None:
            raise PipelineError(
                f"the artifact {index!r} has no versions: it does not change during a session; omit version= and pins="
            )
        return Index(index, streaming=streaming, limits=limits, entities=entities)
    folder = Path(index).absolute()
    where = None if pins is None else str(Path(pins).absolute())
    newest = None
    if not remote:
        _check_shards(folder, version, shards)
    if not remote and not is_versioned(folder):
        if shards is None and not (folder / MANIFEST).is_file():
            raise PipelineError(f"no index at {folder}; create it with subscriptions.compile().save({str(index)!r})")
        if version is not None:
            raise PipelineError(
                f"the index {folder} has no versions, but version={version} was given; omit version=, or create an "
                "index with versions in another folder with publish(matcher, folder)"
            )
    elif not remote:
        if version is not None and version not in versions(folder):
            raise PipelineError(
                f"the index {folder} has no version {version}; use one of {', '.join(map(str, versions(folder)))}"
            )
        newest = latest(folder)
    return Index(str(folder), version, newest, where, streaming, limits, entities)


def _check_shards(folder: Path, version: int | None, shards: int | None) -> None:
    """Reject an index in shards that is requested as a whole, or the other way round."""
    known = versions(folder)
    place = version_folder(folder, version if version in known else known[-1]) if is_versioned(folder) else folder
    found = shards_in(place)
    if found and shards != found:
        raise PipelineError(
            f"the index {folder} has {found} shards, got shards={shards}; use PublishedIndex(…, shards={found})"
        )
    if shards is not None and not found:
        raise PipelineError(
            f"the index {folder} has no shards; omit shards=, or create them with publish(matcher, folder, "
            f"shards={shards})"
        )


def opened(folder: str, limits: Limits | None = None, entities: Entities = "refuse") -> Matcher:
    """The matcher of a snapshot, opened at most once per process and state of the snapshot."""
    try:
        manifest = (Path(folder) / MANIFEST).stat()
    except OSError as error:
        raise PipelineError(
            f"a Spark worker cannot read the index {folder} ({error.strerror}); put it in a folder "
            "that every worker can read"
        ) from None
    stamp = (manifest.st_mtime_ns, manifest.st_ino)
    known = _opened.pop((folder, limits, entities), None)
    if known is None or known[0] != stamp:
        known = stamp, open_index(folder, limits=limits, entities=entities)
    _opened[folder, limits, entities] = known
    while len(_opened) > _OPEN:
        del _opened[next(iter(_opened))]
    return known[1]


def pin_version(
    index: str | os.PathLike[str], query: str, batch: int, pins: str | os.PathLike[str] | None = None
) -> int:
    """Pin a batch to the newest version of an index, or return its pinned version; `query` names the stream."""
    folder = Path(index).absolute()
    return pin(folder, query, batch, lambda: latest(folder), None if pins is None else Path(pins).absolute())


def _batch_of_task() -> tuple[str, int] | None:
    """Query id and batch id of the running task; None outside of streams."""
    task = TaskContext.get()
    if task is None:
        return None
    query, batch = task.getLocalProperty("sql.streaming.queryId"), task.getLocalProperty("streaming.sql.batchId")
    return None if query is None or batch is None else (query, int(batch))


def _artifact(name: str) -> Path:
    """The folder into which Spark has unpacked an archive, or the only folder in it."""
    folder = Path(SparkFiles.get(name))
    if (folder / MANIFEST).is_file():
        return folder
    inside = [entry.parent for entry in folder.glob(f"*/{MANIFEST}")]
    if len(inside) == 1:
        return inside[0]
    raise PipelineError(
        f"no index in the artifact '{name}'; to add one: pack_index(folder, '{name}.zip'), then "
        f"spark.addArtifacts('{name}.zip#{name}', archive=True)"
    )
