"""A proxy before a broker that lets a test act when a commit comes: before it is passed on, or before its answer is."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import httpx

# Called with the number of the commit, from 0; True drops the connection without an answer.
Hook = Callable[[int], bool]


def nothing(_: int) -> bool:
    """Let everything pass."""
    return False


class CommitProxy:
    """Passes requests on to a broker. `answers` are those to commits that reached the broker and were answered."""

    def __init__(self, target: str, before: Hook = nothing, after: Hook = nothing) -> None:
        self.answers: list[dict[str, Any]] = []
        self.commits = 0
        self._counting = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                number = proxy._number() if self.path.endswith(":commit") else None
                if number is not None and before(number):
                    self.close_connection = True
                    return
                try:
                    with httpx.Client(base_url=target, timeout=60) as http:
                        answer = http.request(self.command, self.path, content=body)
                except httpx.TransportError:
                    self.close_connection = True
                    return
                if number is not None:
                    proxy.answers.append(answer.json())
                    if after(number):
                        self.close_connection = True
                        return
                self.send_response(answer.status_code)
                self.send_header("content-type", answer.headers.get("content-type", ""))
                self.send_header("content-length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            do_POST = do_DELETE = do_GET = _pass  # noqa: N815 - the names of http.server

            def log_message(self, *_: Any) -> None:
                """Nothing on standard error."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def _number(self) -> int:
        with self._counting:
            self.commits += 1
            return self.commits - 1

    def __enter__(self) -> "CommitProxy":
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
