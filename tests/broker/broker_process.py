"""`pathcast serve` as a process of its own, which a test may kill and start again on the same folder and port."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class BrokerProcess:
    """A broker's process."""

    def __init__(
        self, folder: Path, port: int | None = None, settings: Path | None = None, files: int | None = None
    ) -> None:
        """`files`: how many the process may open."""
        self.folder, self._files = folder, files
        self._settings = [] if settings is None else [str(settings)]
        self.port = free_port() if port is None else port
        self.address = f"http://127.0.0.1:{self.port}"
        self._errors = (folder.parent / f"{folder.name}.stderr").open("a+")
        self._process: subprocess.Popen[str] | None = None

    def start(self, expected: str = "serving ") -> None:
        """Start, and wait until it accepts connections: until its first line, which begins as expected."""
        # On SIGABRT, Python writes where each thread stands: a test that fails on a broker without answers shows why.
        program = "import faulthandler; faulthandler.enable(); from pathcast.cli.app import main; main()"
        options = ["serve", *self._settings, "--data", str(self.folder), "--port", str(self.port)]
        command = [sys.executable, "-c", program, *options]
        if self._files is not None:
            command = ["prlimit", f"--nofile={self._files}", *command]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith(expected), (line, self.errors())

    def pause(self) -> None:
        """SIGSTOP: the process stands still, and its connections stay open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def resume(self) -> None:
        """Let a paused process continue."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def wait(self) -> int:
        """Wait until the process ends by itself; returns the exit status."""
        return self._end(None)

    def kill(self) -> None:
        """SIGKILL: the process gets no chance to do anything."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; returns the exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals | None) -> int:
        assert self._process is not None
        if how is not None:
            self._process.send_signal(how)
        status = self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return status

    def memory(self) -> int:
        """Bytes of memory that the process has now."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))

    def stacks(self) -> str:
        """Where each of its threads stands; ends the process."""
        self._end(signal.SIGABRT)
        return self.errors()

    def errors(self) -> str:
        """What it wrote to standard error so far."""
        self._errors.seek(0)
        return self._errors.read()

    def __enter__(self) -> "BrokerProcess":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()
        self._errors.close()
