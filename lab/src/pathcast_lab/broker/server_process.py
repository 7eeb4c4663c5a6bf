"""Servers as processes of their own, on loopback ports: started, watched, and ended with the process that started them.

CPU time and memory are those that Linux reports for the process, all its threads included.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pathcast.errors import PathcastError

_SECONDS: Final = 120.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class ServerError(PathcastError):
    """A server did not start, or ended."""


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class ServerProcess:
    """A server that listens on a port; a context manager that ends it."""

    def __init__(self, command: Sequence[str], port: int, output: Path) -> None:
        self.port = port
        self._command = list(command)
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it accepts connections."""
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdout=output,
                stderr=output,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 (no thread of ours holds a lock then)
            )
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                self._check(deadline)
                time.sleep(0.01)
            else:
                return

    def _check(self, deadline: float) -> None:
        assert self._process is not None
        if self._process.poll() is not None or time.monotonic() > deadline:
            self.end(signal.SIGKILL)
            wrote = " ".join(self._output.read_text(errors="replace").split())[-400:]
            raise ServerError(f"{self._command[0]} does not listen on port {self.port}; it wrote: {wrote}")

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process is not None
        return self._process.pid

    def cpu_seconds(self) -> float:
        """The CPU time that the process has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self) -> int:
        """The resident memory of the process, in bytes."""
        for line in Path(f"/proc/{self.pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process by a signal, and wait for it."""
        if self._process is not None:
            self._process.send_signal(how)
            try:
                self._process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.end(signal.SIGKILL)


def _end_with_parent() -> None:
    """In the new process: ask Linux for a kill when the process that started it ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def pathcast_server(folder: Path, port: int | None = None) -> ServerProcess:
    """`pathcast serve` on a folder."""
    port = free_port() if port is None else port
    program = "from pathcast.cli.app import main; main()"
    command = [sys.executable, "-c", program, "serve", "--data", str(folder), "--port", str(port)]
    return ServerProcess(command, port, folder.with_suffix(".output"))


def bare_server(folder: Path) -> ServerProcess:
    """The least that a Starlette application on uvicorn does (bare_web_server.py)."""
    port = free_port()
    command = [sys.executable, "-m", f"{__package__}.bare_web_server", str(port), str(folder / "bare_server.documents")]
    return ServerProcess(command, port, folder / "bare_server.output")
