"""HTTP/1.1 as bytes: requests that are made before the clock starts, and one blocking connection for set-up."""

import base64
import json
import socket
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from .server_process import ServerError

BATCH = "application/cloudevents-batch+json"


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def batch_body(documents: Sequence[bytes], source: str, number: int) -> bytes:
    """A batch of CloudEvents in JSON; the number of the batch is part of their ids."""
    events = []
    for place, document in enumerate(documents):
        event: dict[str, Any] = {"specversion": "1.0", "id": f"{number}-{place}", "source": source, "type": "d"}
        try:
            event["data"] = document.decode()
        except UnicodeDecodeError:
            event["data_base64"] = base64.b64encode(document).decode()
        events.append(event)
    return json.dumps(events, ensure_ascii=False).encode()


class Connection:
    """One connection, for one request after the other."""

    def __init__(self, port: int, *, timeout: float = 600.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")

    def ask(self, data: bytes) -> tuple[int, bytes]:
        """Send a request; status and body of its answer."""
        self._socket.sendall(data)
        return self.answer()

    def answer(self) -> tuple[int, bytes]:
        """Status and body of the next answer."""
        status, size = self.head()
        return status, self._answers.read(size)

    def line(self) -> bytes:
        """The next line of a stream."""
        return self._answers.readline()

    def head(self) -> tuple[int, int]:
        """Status and length of the next answer."""
        first = self._answers.readline().split()
        if len(first) < 2:
            raise ServerError("the server closed the connection")
        size = 0
        while (line := self._answers.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        return int(first[1]), size

    def call(self, method: str, path: str, content: object = None) -> Any:
        """Send JSON; the answer's JSON. An error if the status is not 2xx."""
        body = b"" if content is None else json.dumps(content).encode()
        status, answer = self.ask(request(method, path, body))
        if status >= 300:
            raise ServerError(f"{method} {path} was answered with {status}: {answer[:400]!r}")
        return json.loads(answer)

    def close(self) -> None:
        """Close the connection."""
        self._answers.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()
