"""ActiveMQ on loopback: the broker of Debian's package `activemq`, with XPath selectors over STOMP.

It runs with a configuration of ours: STOMP only, no storage, so it need not wait for a disk. Subscriptions are on one
topic, each with the selector `XPATH '…'`, and come over one connection; a message arrives once per subscription that
matches it.
"""

import os
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from .server_process import ServerError, ServerProcess, free_port

HOME: Final = Path("/usr/share/activemq")
ADVICE: Final = "ActiveMQ is not on this machine; run: apt-get install activemq"


def java() -> str | None:
    """The Java of JAVA_HOME, or else that on the path."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home) / "bin") if home else None)


def is_installed() -> bool:
    """Whether ActiveMQ can be started."""
    return (HOME / "bin" / "activemq.jar").is_file() and java() is not None


def activemq_server(folder: Path) -> ServerProcess:
    """ActiveMQ with STOMP on a free port."""
    program = java()
    if program is None or not is_installed():
        raise ServerError(ADVICE)
    port = free_port()
    jars = [HOME / "bin" / "activemq.jar", *HOME.glob("lib/*.jar"), *HOME.glob("lib/optional/*.jar")]
    command = [
        program,
        "-Xmx2g",
        f"-Dactivemq.home={HOME}",
        f"-Dactivemq.base={folder}",
        f"-Dactivemq.data={folder}/activemq",
        "-cp",
        ":".join(map(str, jars)),
        "org.apache.activemq.console.Main",
        "start",
        f"broker:(stomp://127.0.0.1:{port})?persistent=false&useJmx=false",
    ]
    return ServerProcess(command, port, folder / "activemq.output")


class StompConnection:
    """A STOMP 1.2 connection: subscriptions with selectors, messages sent and received."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 600)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._socket.sendall(_frame("CONNECT", {"accept-version": "1.2", "host": "localhost"}))
        if not self._next().startswith(b"CONNECTED"):
            raise ServerError("ActiveMQ rejected the connection")

    def subscribe(self, topic: str, xpaths: Sequence[str]) -> None:
        """Subscribe once per expression; their places are the ids of the subscriptions."""
        frames = [
            _frame("SUBSCRIBE", {"id": str(place), "destination": topic, "selector": f"XPATH '{xpath}'"})
            for place, xpath in enumerate(xpaths)
        ]
        # The answer to the last frame comes after all before it were carried out.
        frames.append(_frame("SUBSCRIBE", {"id": "last", "destination": f"{topic}.end", "receipt": "all"}))
        self._socket.sendall(b"".join(frames))
        if not self._next().startswith(b"RECEIPT"):
            raise ServerError("ActiveMQ rejected a subscription")

    def deliveries(self, topic: str, documents: Sequence[bytes], count: int) -> list[tuple[int, int]]:
        """Send documents and receive `count` messages: pairs of the document's place and the subscription's."""
        sent = [
            _frame("SEND", {"destination": topic, "place": str(place)}, document)
            for place, document in enumerate(documents)
        ]
        self._socket.sendall(b"".join(sent))
        found: list[tuple[int, int]] = []
        while len(found) < count:
            head, _, _ = self._next().partition(b"\n\n")
            fields = dict(line.split(b":", 1) for line in head.splitlines()[1:])
            found.append((int(fields[b"place"]), int(fields[b"subscription"])))
        return found

    def _next(self) -> bytes:
        while (end := self._received.find(b"\0")) < 0:
            data = self._socket.recv(1 << 20)
            if not data:
                raise ServerError("ActiveMQ closed the connection")
            self._received += data
        frame, self._received = self._received[:end].lstrip(b"\n"), self._received[end + 1 :]
        if frame.startswith(b"ERROR"):
            raise ServerError(f"ActiveMQ answered: {frame[:300]!r}")
        return frame

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._socket.close()


def _frame(command: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    lines = [command, *(f"{name}:{_escaped(value)}" for name, value in headers.items()), "", ""]
    return "\n".join(lines).encode() + body + b"\0\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(":", "\\c").replace("\n", "\\n")
