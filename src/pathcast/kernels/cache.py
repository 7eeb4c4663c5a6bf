"""The kernel cache: compiled kernels on disk, in a folder that belongs to exactly this source.

Numba looks only at the file of a kernel itself: when a function or constant that the kernel uses from another module
changes, it runs the old machine code. So the folder's name holds a hash of all kernel sources, of the versions of
Numba and Python, and of the bounds-checking switch; within a folder nothing is ever stale. Kernel sources are the
files named `*_kernels.py` and this room; a test holds them to importing constants and parts from each other only.

The folder lies in `PATHCAST_CACHE`, or the user's cache folder, or (where that cannot be written) a temporary one of
the user's own. Processes may fill it at the same time: files are written aside and renamed.
"""

import hashlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache

PACKAGE = Path(__file__).resolve().parent.parent


def kernel_sources(package: Path = PACKAGE) -> list[Path]:
    """All files whose text decides what a kernel computes."""
    return sorted([*package.rglob("*_kernels.py"), *(package / "kernels").glob("*.py")])


def source_hash(package: Path = PACKAGE) -> str:
    """A hash of everything that compiled kernels depend on, but for the processor (Numba's own key has that)."""
    digest = hashlib.sha256()
    checked = os.environ.get("NUMBA_BOUNDSCHECK", "")
    digest.update(f"{numba.__version__} {sys.version} {checked}".encode())
    for path in kernel_sources(package):
        digest.update(f"\0{path.relative_to(package)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


@cache
def cache_folder() -> Path:
    """The folder of this source's compiled kernels, made if need be."""
    name = f"kernels-{source_hash()}"
    for root in _roots():
        folder = root / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="pathcast-")) / name


def _roots() -> list[Path]:
    given = os.environ.get("PATHCAST_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - Path.expanduser raises
    private = Path(tempfile.gettempdir()) / f"pathcast-{os.getuid()}"
    roots = [Path(given)] if given else [Path(home) / "pathcast"]
    if _is_mine(private):
        roots.append(private)
    return roots


def _is_mine(folder: Path) -> bool:
    """Machine code is loaded from here: nobody else may have made the folder."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
    except OSError:
        return False
    return folder.is_dir() and not folder.is_symlink() and state.st_uid == os.getuid() and not state.st_mode & 0o022


class _Locator:
    def get_cache_path(self) -> str:
        return str(cache_folder())

    def ensure_cache_path(self) -> None:
        cache_folder().mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        return ""  # the folder's name is the stamp


class _Implementation(CompileResultCacheImpl):
    def __init__(self, function: object) -> None:
        self._locator = _Locator()
        self._filename_base = f"{function.__module__}.{function.__qualname__}"  # type: ignore[attr-defined]


class KernelCache(FunctionCache):
    """Numba's cache of one function, in our folder."""

    _impl_class = _Implementation

    def holds_anything(self) -> bool:
        """Whether the function was compiled before by some process."""
        return Path(self._cache_file._index_path).exists()
