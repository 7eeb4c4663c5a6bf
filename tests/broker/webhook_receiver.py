"""A receiver of webhooks, in threads of its own: it verifies, records, and answers as a test wants."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple

from pathcast.broker.webhooks.signatures import PREFIX

# Seconds that a test waits for a condition at most.
PATIENCE = 60


class Received(NamedTuple):
    """A request that arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def sequence(self) -> int:
        """The sequence of the delivered document."""
        return int(json.loads(self.body)["data"]["sequence"])

    def verify(self, secret: str) -> None:
        """Check the signature, written from the specification."""
        key = base64.b64decode(secret[len(PREFIX) :])
        content = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + self.body
        expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
        assert self.headers["webhook-signature"] == f"v1,{expected}"


class Answer(NamedTuple):
    """What a receiver answers."""

    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""


class Receiver:
    """What arrived at a server, in order. `answer` decides; it may wait."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.received: list[Received] = []
        self.answer: Callable[[Received], Answer] = lambda _: Answer()
        self._changed = threading.Condition()

    def take(self, received: Received) -> Answer:
        """A request arrived."""
        with self._changed:
            self.received.append(received)
            self._changed.notify_all()
        return self.answer(received)

    def wait(self, until: Callable[[], Any]) -> None:
        """Wait until a condition on what arrived holds."""
        with self._changed:
            assert self._changed.wait_for(until, PATIENCE), [(each.path, each.sequence) for each in self.received]

    def sequences(self) -> list[int]:
        """The sequences that arrived, in order."""
        return [each.sequence for each in self.received]


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """A receiver on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = self.rfile.read(length)
            if len(body) < length:  # the sender was killed before the end of its request
                self.close_connection = True
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = receiver.take(Received(self.path, headers, body))
            try:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)
            except OSError:  # the sender did not wait
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None:
            pass  # a sender that was killed

    with Server(("127.0.0.1", port), Handler) as server:
        receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}/hook")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
