"""Measurements in a separate process: of memory, and of costs on first use.

Memory is measured in a fresh interpreter, because a used one keeps freed memory for later, and a peak never goes down.
First use (compiling, loading, empty caches) happens once per process. The function and its arguments are pickled, so
the function must be at the top level of a module.

`peak` is the process's high-water mark after the call, `before` its resident memory when the call began; their
difference is the most memory that the call needed, including imports inside it.
"""

import multiprocessing
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """The result of a call in a fresh process, its time, and the memory (bytes) before and after."""

    value: T
    seconds: float
    before: int
    peak: int

    @property
    def growth(self) -> int:
        """The most memory that the call needed beyond that before it."""
        return max(0, self.peak - self.before)


def in_fresh_process(function: Callable[..., T], *arguments: Any) -> Outcome[T]:
    """Call the function in a fresh interpreter; its exceptions are raised here."""
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(sending, function, arguments), daemon=True)
    process.start()
    sending.close()
    try:
        outcome = receiving.recv()
    except EOFError:
        process.join()
        what = f"the process that ran {function.__name__} ended with status {process.exitcode}"
        advice = "see its output above, and check that memory suffices"
        raise RuntimeError(f"{what} before it returned a result; {advice}") from None
    finally:
        receiving.close()
        process.terminate()
        process.join()
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome  # type: ignore[no-any-return]


def resident_bytes() -> int:
    """The resident memory of this process; its peak so far if the system reports nothing else."""
    return _status("VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """The peak memory of this process."""
    if found := _status("VmHWM"):
        return found
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def _status(key: str) -> int | None:
    """A figure of /proc, in bytes. (Not getrusage: there a child begins with the peak of its parent.)"""
    if not _STATUS.is_file():
        return None
    for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
        name, _, rest = line.partition(":")
        if name == key:
            return int(rest.split()[0]) * 1024
    return None


def _call(sending: Connection, function: Callable[..., T], arguments: tuple[Any, ...]) -> None:
    before = resident_bytes()
    begin = perf_counter()
    try:
        value = function(*arguments)
    except Exception as error:  # noqa: BLE001 (it is raised again where the caller waits)
        sending.send(error)
        return
    sending.send(Outcome(value, perf_counter() - begin, before, peak_bytes()))
