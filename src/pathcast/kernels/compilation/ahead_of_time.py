"""Ahead-of-time compilation: compile all kernels, or the kernels of some packages, before they are needed.

For container images, the workers of a cluster and tests: compile once, and ship the folder (`cache_folder()`). Kernels
are found by parsing their sources, so checking that all are compiled imports none of them.

Invariant: the compiled kernels are the same as those of a process that just imports them.
Cost: about two minutes of processor time for the whole package, spread over processes kernel by kernel.
"""

import ast
import importlib
import multiprocessing
import os
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from . import kernel_compiler as compiling
from .kernel_cache import PACKAGE, cache_folder, file_name, kernel_sources, needed_sources


@dataclass(frozen=True)
class Source:
    """A kernel and its source file."""

    module: str
    name: str
    path: Path

    @property
    def compiled(self) -> bool:
        """Whether the cache holds the compiled kernel."""
        return (cache_folder() / file_name(f"{self.module}.{self.name}", self.path)).exists()

    @property
    def weight(self) -> int:
        """An estimate of the compile time: bytes of the source and of all kernel sources that it imports."""
        return sum(path.stat().st_size for path in needed_sources(self.path))


def kernels_of(rooms: Collection[str] = (), package: Path = PACKAGE) -> list[Source]:
    """The kernels of some packages, or of all; `ValueError` for a package without kernels."""
    found: list[Source] = []
    known: set[str] = set()
    for path in kernel_sources(package):
        place = path.relative_to(package)
        if not path.name.endswith("_kernels.py"):
            continue
        known.add(place.parts[0])
        if not rooms or place.parts[0] in rooms:
            module = ".".join((package.name, *place.with_suffix("").parts))
            found.extend(Source(module, name, path) for name in _kernels_in(path))
    if missing := set(rooms) - {source.module.split(".")[1] for source in found}:
        raise ValueError(
            f"package {min(missing)!r} does not exist or has no kernels; use one of {', '.join(sorted(known))}"
        )
    return found


def _kernels_in(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.FunctionDef):
            made_by = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
            if any(isinstance(each, ast.Name) and each.id == "kernel" for each in made_by):
                yield node.name


def compile_ahead(sources: Iterable[Source], processes: int | None = None) -> Iterator[tuple[Source, float]]:
    """Compile the missing kernels, the largest first; yield each with its seconds. Default: a process per processor."""
    waiting = sorted((source for source in sources if not source.compiled), key=lambda source: -source.weight)
    if not waiting:
        return
    count = min(processes or os.cpu_count() or 1, len(waiting))
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_put_off) as pool:
        tasks = {pool.submit(_compile, source): source for source in waiting}
        try:
            for task in as_completed(tasks):
                yield tasks[task], task.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _put_off() -> None:
    """Make imports in this process compile nothing."""
    compiling.ALL_LATE = True


def _compile(source: Source) -> float:
    kernel = getattr(importlib.import_module(source.module), source.name)
    start = perf_counter()
    kernel.ready()
    return perf_counter() - start
