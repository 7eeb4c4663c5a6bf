"""The kernel cache: compiled kernels on disk, keyed by a hash of their sources.

Numba's own cache checks only the file of the kernel: when a function or constant from another module changes, Numba
runs the old machine code. So the file name holds a hash of the kernel's source and of all kernel sources that it
imports, directly or indirectly; the folder name holds a hash of this package, the versions of Numba and Python, and the
bounds-checking switch. The cache is never stale, and a change recompiles only the kernels that depend on it. Kernel
sources are the files named `*_kernels.py`; a test checks that they import only NumPy, this package and each other.

The folder is in `PATHCAST_CACHE`, or the user's cache folder, or (if that is not writable) a temporary folder that
belongs to the user. A folder that `PATHCAST_CACHE` names and that holds kernels is used even if it is read-only, as in
a container image; missing kernels are then compiled for the process alone. Several processes may fill the folder at
the same time: files are written under another name and renamed, and a process that needs a kernel waits while another
process compiles that kernel.
"""

import fcntl
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache

PACKAGE = Path(__file__).resolve().parent.parent


# How kernel sources import each other: from the same folder, from folders above, or from another package.
_IMPORT = re.compile(rb"^from (\.+|pathcast\.)([\w.]+) import ", re.MULTILINE)


def kernel_sources(package: Path = PACKAGE) -> list[Path]:
    """All files whose text decides what a kernel computes."""
    return sorted([*package.rglob("*_kernels.py"), *_room(package)])


def _room(package: Path) -> list[Path]:
    """The files of this package, except its kernel sources: they are hashed where they are imported."""
    return sorted(path for path in (package / "kernels").glob("*.py") if not path.name.endswith("_kernels.py"))


@cache
def imported_sources(source: Path) -> frozenset[Path]:
    """The kernel sources that a kernel source imports directly."""
    found = set()
    for start, module in _IMPORT.findall(source.read_bytes()):
        folder = PACKAGE if start == b"pathcast." else source.parents[len(start) - 1]
        path = folder.joinpath(*module.decode().split(".")).with_suffix(".py")
        if path.name.endswith("_kernels.py"):
            found.add(path)
    return frozenset(found)


def needed_sources(source: Path) -> set[Path]:
    """A kernel source and all that it imports, directly or indirectly."""
    needed, waiting = {source}, [source]
    while waiting:
        more = imported_sources(waiting.pop()) - needed
        needed |= more
        waiting.extend(more)
    return needed


@cache
def source_hash(source: Path, package: Path = PACKAGE) -> str:
    """A hash of a kernel source and of all that it imports, directly or indirectly."""
    return _hash("", sorted(needed_sources(source)), package)


def room_hash(package: Path = PACKAGE) -> str:
    """A hash of everything that all kernels depend on, except the processor, which is in Numba's own key."""
    checked = os.environ.get("NUMBA_BOUNDSCHECK", "")
    return _hash(f"{numba.__version__} {sys.version} {checked}", _room(package), package)


def _hash(first: str, paths: list[Path], package: Path) -> str:
    digest = hashlib.sha256(first.encode())
    for path in paths:
        name = path.relative_to(package) if path.is_relative_to(package) else path.name
        digest.update(f"\0{name}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


@cache
def cache_folder() -> Path:
    """The folder of compiled kernels; created if it does not exist."""
    name = f"kernels-{room_hash()}"
    for root in _roots():
        folder = root / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK) or (root == _given() and any(folder.glob("*.nbi"))):
            return folder
    return Path(tempfile.mkdtemp(prefix="pathcast-")) / name


def _given() -> Path | None:
    given = os.environ.get("PATHCAST_CACHE")
    return Path(given) if given else None


def _roots() -> list[Path]:
    given = _given()
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - Path.expanduser raises
    private = Path(tempfile.gettempdir()) / f"pathcast-{os.getuid()}"
    roots = [given] if given else [Path(home) / "pathcast"]
    if _is_mine(private):
        roots.append(private)
    return roots


def _is_mine(folder: Path) -> bool:
    """Whether the folder belongs to the user: machine code is loaded from it, so no other user may have created it."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
    except OSError:
        return False
    return folder.is_dir() and not folder.is_symlink() and state.st_uid == os.getuid() and not state.st_mode & 0o022


def file_name(kernel: str, source: Path) -> str:
    """The prefix of the file names of a compiled kernel."""
    return f"{kernel}-{source_hash(source)}"


class _Locator:
    def get_cache_path(self) -> str:
        return str(cache_folder())

    def ensure_cache_path(self) -> None:
        cache_folder().mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        return ""  # the names of folder and file are the stamp


class _Implementation(CompileResultCacheImpl):
    def __init__(self, function: FunctionType) -> None:
        self._locator = _Locator()
        source = Path(function.__code__.co_filename).resolve()
        self._filename_base = file_name(f"{function.__module__}.{function.__qualname__}", source)


class KernelCache(FunctionCache):
    """Numba's cache of one function, in our folder."""

    _impl_class = _Implementation

    def holds_anything(self) -> bool:
        """Whether any process has compiled the function."""
        return Path(self._cache_file._index_path).exists()

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store the compiled code, unless the folder is read-only."""
        if os.access(cache_folder(), os.W_OK):
            super().save_overload(signature, result)  # type: ignore[no-untyped-call]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock on compiling this function, so that other processes wait.

        The lock is released when its process ends. On a file system without locks, no process waits.
        """
        path = Path(self._cache_file._index_path).with_suffix(".lock")
        try:
            file = path.open("w")
        except OSError:
            yield
            return
        with file:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            yield
            path.unlink(missing_ok=True)  # waiting processes have it open, and will find the kernel
