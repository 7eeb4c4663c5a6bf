"""The kernel cache: compiled kernels on disk, keyed by a hash of their sources.

Numba's own cache checks only the file of the kernel: when a function or constant from another module changes, Numba
runs the old machine code. So the file name holds a hash of the kernel's source and of all kernel sources that it
imports, directly or indirectly; the folder name holds a hash of this package, the versions of Numba and Python, the
bounds-checking switch and the processor. The cache is never stale, and a change recompiles only the kernels that depend
on it. Kernel sources are the files named `*_kernels.py`; a test checks that they import only NumPy, this package and
each other.

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
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from .machine_code import MachineCode, processor

PACKAGE = Path(__file__).resolve().parents[2]
# Settings of Numba that change the machine code.
_SETTINGS = ("NUMBA_BOUNDSCHECK", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT")

# How kernel sources import each other: from the same folder, from folders above, or from another package.
_IMPORT = re.compile(rb"^from (\.+|pathcast\.)([\w.]+) import ", re.MULTILINE)


def kernel_sources(package: Path = PACKAGE) -> list[Path]:
    """All files whose text decides what a kernel computes."""
    return sorted([*package.rglob("*_kernels.py"), *_room(package)])


def _room(package: Path) -> list[Path]:
    """The files of this package, except its kernel sources: they are hashed where they are imported."""
    return sorted(path for path in (package / "kernels").rglob("*.py") if not path.name.endswith("_kernels.py"))


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
    """A hash of everything that all kernels depend on, except the processor."""
    settings = [os.environ.get(name, "") for name in _SETTINGS]
    compilers = [path for name in ("llvmlite", "numba") for path in _versions(name)]
    return _hash(f"{sys.version} {settings}", [*_room(package), *compilers], package)


def _versions(package: str) -> Iterator[Path]:
    """The file with the version of a package, which is not imported for it."""
    found = find_spec(package)
    for folder in (found and found.submodule_search_locations) or ():
        yield Path(folder) / "_version.py"


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
    name = f"kernels-{room_hash()}-{processor()}"
    for root in _roots():
        folder = root / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK) or (root == _given() and any(folder.glob("*.code"))):
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
    """The name of the file of a compiled kernel."""
    return f"{kernel}-{source_hash(source)}.code"


class KernelFile:
    """The file of one kernel's machine code."""

    def __init__(self, function: Callable[..., Any]) -> None:
        source = Path(function.__code__.co_filename).resolve()
        self._path = cache_folder() / file_name(f"{function.__module__}.{function.__qualname__}", source)

    def load(self) -> MachineCode | None:
        """The code, if a process has compiled the kernel."""
        try:
            return MachineCode.from_bytes(self._path.read_bytes())
        except FileNotFoundError:
            return None

    def save(self, code: MachineCode) -> None:
        """Store the code, unless the folder is read-only; other processes see all of it or nothing."""
        folder = self._path.parent
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}-{threading.get_ident()}")
        try:
            part.write_bytes(code.to_bytes())
            part.replace(self._path)
        finally:
            part.unlink(missing_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock on compiling this kernel, so that other processes wait.

        The lock is released when its process ends. On a file system without locks, no process waits.
        """
        path = self._path.with_suffix(".lock")
        while True:
            try:
                file = path.open("w")
            except OSError:
                yield
                return
            with file:
                with suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_EX)
                if not _is_open(path, file):
                    continue  # its holder has removed it: a third process may hold a new one
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
                return


def _is_open(path: Path, file: IO[str]) -> bool:
    """Whether the file still has this name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
