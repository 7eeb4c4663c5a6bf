"""Snapshots: named arrays and some JSON on disk, opened memory-mapped, replaced atomically.

    index/manifest.json            format, version, the folder of the arrays, and the dtype, shape and checksum of each
    index/data-4f1c…/ids.bin       one file per array: its bytes and nothing else

A writer fills a new folder, flushes it, and only then replaces the manifest by a rename: a reader sees the old
snapshot or the new one, never a mixture, and a crash leaves at most a folder that the next writer removes. A lock on
`.lock` serializes writers. Readers map the large files, so all processes of a machine share one copy; the pages of a
replaced snapshot remain until the last reader closes them. Small files are read into memory.

Invariant: every byte of a snapshot is covered. The manifest is in canonical form and ends with a checksum of the rest.
Array files have no header: dtype and shape are in the manifest, the file's size is always checked against them, and
the content against its checksum unless `verify=False`. Reading a folder, whatever it holds, raises no exception other
than `SnapshotError`; code that builds something from facts and arrays runs in `reading_snapshot`.
Cost: opening takes about 30 µs per array, and 0.3 ms per MB for the checksums; a file descriptor per mapped array.
"""

import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from pathcast.errors import PathcastError, SnapshotError
from pathcast.kernels import AnyArray

from .folder_write_lock import flush, sole_writer

FORMAT = "pathcast-snapshot"
VERSION = 2
MANIFEST = "manifest.json"
_DATA, _ENDING = "data-", ".bin"
_MANIFEST_BYTES = 64 << 20
_DTYPES = {
    name: np.dtype(name) for name in ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
}
_DIMENSIONS = 64  # NumPy's limit
_FIELDS = {"dtype", "shape", "crc32"}
_PIECE = 1 << 24
# A mapped file costs its process a file descriptor; smaller arrays are read into memory.
MAPPED_BYTES = 64 << 10
_FLUSHES = 16
_NAME = re.compile(r"[^/\\\0]+")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The content of a folder: `kind` names the type of its content, `facts` is JSON, `arrays` are read-only."""

    kind: str
    facts: dict[str, Any]
    arrays: dict[str, AnyArray]
    generation: str


def write_snapshot(
    directory: str | os.PathLike[str], kind: str, facts: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> str:
    """Write a snapshot, replacing any snapshot in the folder; return its generation.

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
        with sole_writer(folder):
            _write(folder, fresh, {"kind": kind, "generation": generation, "facts": dict(facts)}, arrays)
    except Exception as error:
        shutil.rmtree(fresh, ignore_errors=True)
        if isinstance(error, OSError):
            raise SnapshotError(
                f"cannot write snapshot {folder}: {error.strerror or error}; give another folder"
            ) from error
        raise
    return generation


def _write(folder: Path, fresh: Path, manifest: dict[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    fresh.mkdir()
    described = {name: _write_array(fresh / (name + _ENDING), array) for name, array in arrays.items()}
    text = _text({"format": FORMAT, "version": VERSION, **manifest, "arrays": described})
    if len(text) > _MANIFEST_BYTES:
        raise SnapshotError(
            f"the manifest has {len(text):,} bytes; at most {_MANIFEST_BYTES:,} are allowed; store large "
            "facts as arrays"
        )
    # Flush in parallel: the file system combines concurrent requests, which takes a tenth of the time.
    with ThreadPoolExecutor(_FLUSHES) as pool:
        list(pool.map(flush, [fresh / (name + _ENDING) for name in arrays]))
    flush(fresh)
    _replace(folder / MANIFEST, text)
    for other in folder.glob(_DATA + "*"):
        if other != fresh:
            shutil.rmtree(other, ignore_errors=True)


def open_snapshot(directory: str | os.PathLike[str], kind: str, *, verify: bool = True) -> Snapshot:
    """Open the snapshot in a folder."""
    folder = Path(directory)
    while True:
        manifest = read_manifest(folder)
        if manifest["kind"] != kind:
            raise SnapshotError(
                f"{folder} is a snapshot of kind {manifest['kind']!r}, expected {kind!r}; give another folder"
            )
        generation = manifest["generation"]
        try:
            arrays = _open_arrays(folder / (_DATA + generation), manifest["arrays"], verify)
        except SnapshotError:
            # A writer may have replaced the snapshot since the manifest was read: then open the newer one.
            if read_manifest(folder)["generation"] == generation:
                raise
        else:
            return Snapshot(kind, manifest["facts"], arrays, generation)


@contextmanager
def reading_snapshot(directory: str | os.PathLike[str]) -> Iterator[None]:
    """Convert every error to a `SnapshotError` while the block builds something from a snapshot's facts and arrays.

    This is the only place that converts such errors: a builder need not anticipate how damaged content fails.
    """
    try:
        yield
    except (SnapshotError, MemoryError):
        raise
    except Exception as error:
        reason = error.reason if isinstance(error, PathcastError) else f"{type(error).__name__}: {error}"
        raise SnapshotError(f"snapshot {directory} is damaged: {reason}; write the snapshot again") from error


def read_manifest(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """The manifest of a snapshot, checked."""
    folder = Path(directory)
    text = _manifest_bytes(folder)
    try:
        manifest = json.loads(text.decode())
        whole = isinstance(manifest, dict) and text == _text(manifest)
    except (ValueError, RecursionError):
        raise SnapshotError(
            f"snapshot {folder} is damaged: manifest.json is not JSON; write the snapshot again"
        ) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise SnapshotError(
            f"{folder} is not a Pathcast snapshot: its manifest.json was not written by Pathcast; give the "
            "folder of a snapshot"
        )
    version = manifest.get("version")
    if version != VERSION:
        newer = type(version) is int and version > VERSION
        advice = "update Pathcast" if newer else "write the snapshot again with this version"
        raise SnapshotError(
            f"snapshot {folder} has version {version!r}, but this version of Pathcast reads version {VERSION}; {advice}"
        )
    if not whole:
        raise SnapshotError(
            f"snapshot {folder} is damaged: manifest.json was changed after it was written; write the snapshot again"
        )
    if not _is_complete(manifest):
        raise SnapshotError(f"snapshot {folder} is damaged: manifest.json is incomplete; write the snapshot again")
    return manifest


def _manifest_bytes(folder: Path) -> bytes:
    try:
        with _opened(folder / MANIFEST) as file:
            text = file.read(_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        what = (
            "no manifest.json; give the folder of a snapshot"
            if folder.is_dir()
            else "the folder does not exist; check the path"
        )
        raise SnapshotError(f"{folder} is not a snapshot: {what}") from None
    except NotADirectoryError:
        raise SnapshotError(f"{folder} is a file, not a snapshot; give the folder of a snapshot") from None
    except (OSError, ValueError) as error:  # a path may be invalid, such as one with a null character
        raise SnapshotError(f"cannot read snapshot {folder}: {error}; check the path and its permissions") from None
    if len(text) > _MANIFEST_BYTES:
        raise SnapshotError(
            f"snapshot {folder} is damaged: manifest.json exceeds {_MANIFEST_BYTES:,} bytes; write the snapshot again"
        )
    return text


def _is_complete(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest has all required fields, and names only files of the folder."""
    kind, generation, facts, arrays = (manifest.get(name) for name in ("kind", "generation", "facts", "arrays"))
    return (
        isinstance(kind, str)
        and isinstance(generation, str)
        and isinstance(facts, dict)
        and isinstance(arrays, dict)
        and all(_NAME.fullmatch(name) for name in (generation, *arrays))
        and all(map(_is_described, arrays.values()))
    )


def _is_described(facts: Any) -> bool:
    """Whether dtype, shape and checksum of an array are given."""
    return (
        isinstance(facts, dict)
        and facts.keys() == _FIELDS
        and isinstance(facts["dtype"], str)
        and facts["dtype"] in _DTYPES
        and isinstance(facts["shape"], list)
        and len(facts["shape"]) <= _DIMENSIONS  # multiplying millions of sizes takes hours
        and all(type(size) is int and 0 <= size < 1 << 63 for size in facts["shape"])
        and type(facts["crc32"]) is int
    )


def _refuse_strangers(folder: Path) -> None:
    """Reject a folder that holds other files: the user may have given it by mistake."""
    if folder.exists() and not folder.is_dir():
        raise SnapshotError(f"{folder} is a file, but a snapshot is a folder; use an empty or new folder")
    if folder.is_dir() and not (folder / MANIFEST).exists():
        # Another writer may have written a manifest in the meantime.
        strangers = [entry.name for entry in folder.iterdir() if not entry.name.startswith((_DATA, ".", MANIFEST))]
        if strangers:
            raise SnapshotError(f"{folder} contains other files ({strangers[0]}, …); use an empty or new folder")


def _write_array(path: Path, array: AnyArray) -> dict[str, Any]:
    array = np.ascontiguousarray(array)
    if array.dtype.str not in _DTYPES:
        raise TypeError(f"array {path.stem!r} has dtype {array.dtype}; use numbers or booleans")
    with open(path, "wb") as file:
        file.write(_bytes_of(array))
    return {"dtype": array.dtype.str, "shape": list(array.shape), "crc32": _crc32(array)}


def _open_arrays(data: Path, described: Mapping[str, Any], verify: bool) -> dict[str, AnyArray]:
    return {name: _open_array(data / (name + _ENDING), facts, verify) for name, facts in described.items()}


def _open_array(path: Path, facts: Mapping[str, Any], verify: bool) -> AnyArray:
    dtype, shape = _DTYPES[facts["dtype"]], tuple(facts["shape"])
    array: AnyArray
    try:
        with _opened(path) as file:
            size = math.prod(shape) * dtype.itemsize
            if (found := os.fstat(file.fileno()).st_size) != size:
                raise SnapshotError(
                    f"snapshot file {path} is damaged: it has {found:,} bytes, expected {size:,}; "
                    "write the snapshot again"
                )
            if size < MAPPED_BYTES:
                array = np.frombuffer(file.read(size), dtype).reshape(shape)
            else:
                array = np.memmap(file, dtype, "r", shape=shape)
        changed = verify and _crc32(array) != facts["crc32"]
    except (OSError, ValueError, OverflowError) as error:
        raise SnapshotError(
            f"cannot read snapshot file {path}: {error}; check its permissions, or write the snapshot again"
        ) from None
    if changed:
        raise SnapshotError(
            f"snapshot file {path} is damaged: its content does not match its checksum; write the snapshot again"
        )
    return array


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """A file, open for reading; `OSError` for a pipe or a device, which could block the reader forever."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path.name} is not a regular file")
        yield file


def _bytes_of(array: AnyArray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _crc32(array: AnyArray) -> int:
    view = _bytes_of(array)
    value = 0
    for begin in range(0, len(view), _PIECE):
        value = zlib.crc32(view[begin : begin + _PIECE], value)
    return value


def _text(manifest: Mapping[str, Any]) -> bytes:
    """The canonical text of a manifest: a line per field, then a checksum of the lines; a given checksum is ignored."""
    lines = [
        f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in manifest.items()
        if name != "checksum"
    ]
    body = ("{\n" + ",\n".join(lines) + ",\n").encode()
    return body + f' "checksum": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()


def _replace(path: Path, text: bytes) -> None:
    fresh = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    with open(fresh, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    flush(path.parent)
