"""Snapshots: named arrays and a little text on disk, memory-mapped back, replaced in one step.

    index/manifest.json            what is here: format, version, checksums, and the folder of the arrays
    index/data-4f1c…/ids.npy       one plain .npy file an array

A writer fills a fresh folder, flushes it, and only then replaces the manifest by a rename: a reader sees the old
snapshot or the new one, never a mixture, and a crash leaves at most a folder that the next writer removes. Writers
take turns by a lock on `.lock`. Readers map the files, so that all processes of a machine share one copy; pages that
a replaced snapshot still holds live on until the last reader lets go.

Checked on opening: format, version, the manifest's own checksum, each file's size and, unless `verify=False`, content.
"""

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import SnapshotError

FORMAT = "pathcast-snapshot"
VERSION = 1
MANIFEST = "manifest.json"
_DATA = "data-"
_PIECE = 1 << 24
_FLUSHES = 16
_NAME = re.compile(r"[^/\\\0]+")

AnyArray = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a folder holds: `kind` tells what it is a snapshot of, `facts` is JSON, `arrays` are read-only maps."""

    kind: str
    facts: dict[str, Any]
    arrays: dict[str, AnyArray]
    generation: str


def write_snapshot(
    directory: str | os.PathLike[str], kind: str, facts: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> str:
    """Write a snapshot, replacing the one that the folder holds; return its generation.

    >>> import numpy as np
    >>> from tempfile import mkdtemp
    >>> folder = mkdtemp()
    >>> generation = pathcast.store.write_snapshot(folder, "squares", {"of": 3}, {"squares": np.arange(3) ** 2})
    >>> pathcast.store.open_snapshot(folder, "squares").arrays["squares"].tolist()
    [0, 1, 4]
    """
    folder = Path(directory)
    generation = secrets.token_hex(8)
    fresh = folder / (_DATA + generation)
    try:
        _refuse_strangers(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            _write(folder, fresh, {"kind": kind, "generation": generation, "facts": dict(facts)}, arrays)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise SnapshotError(f"cannot write the snapshot {folder}: {error.strerror or error}") from error
    return generation


def _write(folder: Path, fresh: Path, manifest: dict[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    fresh.mkdir()
    described = {name: _write_array(fresh / f"{name}.npy", array) for name, array in arrays.items()}
    # Many at a time: a file system does together what it is asked for at once, in a tenth of the time.
    with ThreadPoolExecutor(_FLUSHES) as pool:
        list(pool.map(_flush, [fresh / f"{name}.npy" for name in arrays]))
    _flush(fresh)
    manifest = {"format": FORMAT, "version": VERSION, **manifest, "arrays": described}
    manifest["checksum"] = _checksum(manifest)
    _replace(folder / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False))
    for other in folder.glob(_DATA + "*"):
        if other != fresh:
            shutil.rmtree(other, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other writer is at work in the folder; the lock goes with the process that holds it."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def open_snapshot(directory: str | os.PathLike[str], kind: str, *, verify: bool = True) -> Snapshot:
    """Open the snapshot that a folder holds."""
    folder = Path(directory)
    while True:
        manifest = read_manifest(folder)
        if manifest["kind"] != kind:
            raise SnapshotError(f"{folder} is a snapshot of kind '{manifest['kind']}', not '{kind}'")
        generation = manifest["generation"]
        try:
            arrays = _open_arrays(folder / (_DATA + generation), manifest["arrays"], verify)
        except SnapshotError:
            # A writer may have replaced the snapshot since the manifest was read: then there is a newer one to open.
            if read_manifest(folder)["generation"] == generation:
                raise
        else:
            return Snapshot(kind, manifest["facts"], arrays, generation)


def read_manifest(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """The manifest of a snapshot, checked."""
    folder = Path(directory)
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except FileNotFoundError:
        what = "it holds no manifest.json" if folder.is_dir() else "there is no such folder"
        raise SnapshotError(f"{folder} is not a snapshot: {what}") from None
    except NotADirectoryError:
        raise SnapshotError(f"{folder} is a file; a snapshot is a folder") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SnapshotError(f"cannot read the snapshot {folder}: {error}") from None
    try:
        manifest = json.loads(text)
    except ValueError:
        raise SnapshotError(f"the snapshot {folder} is damaged: manifest.json is not JSON; write it anew") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise SnapshotError(f"{folder} is not a Pathcast snapshot")
    version = manifest.get("version")
    if version != VERSION:
        advice = "update Pathcast" if isinstance(version, int) and version > VERSION else "write it anew"
        raise SnapshotError(f"the snapshot {folder} has version {version}, this Pathcast reads {VERSION}; {advice}")
    if manifest.pop("checksum", None) != _checksum(manifest):
        raise SnapshotError(f"the snapshot {folder} is damaged: manifest.json was changed; write it anew")
    if not _is_whole(manifest):
        raise SnapshotError(f"the snapshot {folder} is damaged: manifest.json lacks what it should say; write it anew")
    return manifest


def _is_whole(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest has all that is read of it; names in it stand for files of the folder, and for no others."""
    kind, generation, facts, arrays = (manifest.get(name) for name in ("kind", "generation", "facts", "arrays"))
    return (
        isinstance(kind, str)
        and isinstance(generation, str)
        and isinstance(facts, dict)
        and isinstance(arrays, dict)
        and all(_NAME.fullmatch(name) for name in (generation, *arrays))
        and all(isinstance(one, dict) and {"bytes", "crc32"} <= one.keys() for one in arrays.values())
    )


def _refuse_strangers(folder: Path) -> None:
    """A folder with other things in it is never written to: it may be there by mistake."""
    if folder.exists() and not folder.is_dir():
        raise SnapshotError(f"{folder} is a file; a snapshot is a folder")
    if folder.is_dir() and not (folder / MANIFEST).exists():
        # A manifest may have come meanwhile, from another writer.
        strangers = [entry.name for entry in folder.iterdir() if not entry.name.startswith((_DATA, ".", MANIFEST))]
        if strangers:
            raise SnapshotError(f"{folder} holds other files ({strangers[0]}, …); give an empty or new folder")


def _write_array(path: Path, array: AnyArray) -> dict[str, Any]:
    array = np.ascontiguousarray(array)
    with open(path, "wb") as file:
        np.save(file, array, allow_pickle=False)
    return {"bytes": path.stat().st_size, "crc32": _crc32(array)}


def _open_arrays(data: Path, described: Mapping[str, Any], verify: bool) -> dict[str, AnyArray]:
    return {name: _open_array(data / f"{name}.npy", facts, verify) for name, facts in described.items()}


def _open_array(path: Path, facts: Mapping[str, Any], verify: bool) -> AnyArray:
    try:
        if path.stat().st_size != facts["bytes"]:
            raise SnapshotError(f"the snapshot is damaged: {path} has another size than written; write it anew")
        array: AnyArray = np.load(path, mmap_mode="r", allow_pickle=False)
        changed = verify and _crc32(array) != facts["crc32"]
    except (OSError, ValueError, TypeError) as error:
        raise SnapshotError(f"the snapshot is damaged: {path} cannot be read ({error}); write it anew") from None
    if changed:
        raise SnapshotError(f"the snapshot is damaged: {path} has other content than written; write it anew")
    return array


def _crc32(array: AnyArray) -> int:
    if array.size == 0:
        return 0
    view = array.reshape(-1).view(np.uint8).data
    value = 0
    for begin in range(0, len(view), _PIECE):
        value = zlib.crc32(view[begin : begin + _PIECE], value)
    return value


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    with open(fresh, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    _flush(path.parent)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
