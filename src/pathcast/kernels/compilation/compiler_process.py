"""A compiler process: it compiles kernels for another process, which then need not import Numba.

Numba leaves several hundred thousand Python objects in a process that compiles. Each full garbage collection scans
them and stops all threads of the process meanwhile, as long as the process lives. So a process that lacks a kernel
starts another Python, which imports the source of the kernel and returns its machine code.

    process ──module, name, file──▶ compiler process
            ◀────size, code────────

A compiler process that cannot compile a kernel returns nothing: the kernel is in `__main__`, or has an error. The
process then compiles the kernel itself, and raises the error.

Invariant: no data from the pipe is evaluated; the code is what this process would have compiled, from the same file.
Cost: about a second to start the compiler process. It ends with this process, or after ten seconds without work.
"""

import atexit
import importlib
import json
import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from . import kernel_compiler
from .machine_code import MachineCode

_IDLE = 10.0  # seconds
_SIZE = 8  # bytes of a number in an answer
# The program of the compiler process: it finds modules where this process finds them.
_PROGRAM = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import serve; serve()"


class CompilerProcess:
    """At most one compiler process of this process; started when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None

    def code_of(self, function: Callable[..., Any]) -> MachineCode | None:
        """The machine code of a kernel in a source file; None if the compiler process cannot compile it."""
        module = function.__module__
        if module == "__main__" or not _python():
            return None
        source = str(Path(function.__code__.co_filename).resolve())
        request = json.dumps([module, function.__qualname__, source]).encode() + b"\n"
        with self._lock:
            # A process that was idle may just have ended: try again with a new one.
            for running in (self._running, None):
                try:
                    data = _answer(running or self._start(), request)
                except OSError:
                    data = None
                if data is not None:
                    return MachineCode.from_bytes(data) if data else None
                self._stop()
        return None

    def _start(self) -> "subprocess.Popen[bytes]":
        self._running = subprocess.Popen(
            [_python(), "-P", "-c", _PROGRAM, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C ends this process, which then ends the other
        )
        return self._running

    def _stop(self) -> None:
        if self._running is not None:
            self._running.kill()
            with suppress(OSError):  # data for a process that has ended
                self._running.__exit__(None, None, None)
            self._running = None

    def end(self) -> None:
        """End the compiler process, if one is running."""
        with self._lock:
            self._stop()

    def forget(self) -> None:
        """In the child of a fork: the compiler process belongs to the parent."""
        if self._running is not None:
            self._running.returncode = 0  # nobody waits for it here
        self._lock, self._running = threading.Lock(), None


def _python() -> str:
    """The program that runs Python; empty if Python is part of another program."""
    program = sys.executable or ""
    return program if Path(program).name.startswith(("python", "pypy")) and not hasattr(sys, "frozen") else ""


def _answer(running: "subprocess.Popen[bytes]", request: bytes) -> bytes | None:
    """The answer to a request; None if the process has ended."""
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(request)
    running.stdin.flush()
    size = running.stdout.read(_SIZE)
    count = int.from_bytes(size, "little")
    data = running.stdout.read(count)
    return data if len(size) == _SIZE and len(data) == count else None


def serve() -> None:
    """Compile what is requested on standard input; the program of the compiler process."""
    kernel_compiler.ALL_LATE = True  # imports compile nothing
    with os.fdopen(os.dup(1), "wb") as answers, selectors.DefaultSelector() as selector:
        os.dup2(2, 1)  # what a module prints is no answer
        selector.register(sys.stdin, selectors.EVENT_READ)
        while selector.select(_IDLE) and (line := sys.stdin.buffer.readline()):
            _send(answers, _compiled(*json.loads(line)))


def _send(answers: IO[bytes], data: bytes) -> None:
    answers.write(len(data).to_bytes(_SIZE, "little") + data)
    answers.flush()


def _compiled(module: str, name: str, source: str) -> bytes:
    """The machine code of a kernel, or nothing."""
    try:
        kernel = getattr(importlib.import_module(module), name)
        if Path(kernel.py_func.__code__.co_filename).resolve() != Path(source):
            return b""
        return bytes(kernel.compiled().to_bytes())
    except Exception:  # noqa: BLE001 - the process that needs the kernel compiles it and raises the error
        return b""


_COMPILER = CompilerProcess()
code_of = _COMPILER.code_of
atexit.register(_COMPILER.end)
os.register_at_fork(after_in_child=_COMPILER.forget)
