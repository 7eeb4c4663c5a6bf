"""A broker behind a real server on a free loopback port, in a thread."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import httpx

from pathcast.broker import Broker, BrokerSettings
from pathcast.broker.server import server_of
from pathcast.broker.standby import Standby
from pathcast.log import SqliteLog


class Served(NamedTuple):
    """A served broker: its URL, a client for it, and the broker itself."""

    address: str
    http: httpx.Client
    broker: Broker
    port: int


@contextmanager
def served(
    folder: Path,
    settings: BrokerSettings | None = None,
    broker: Broker | None = None,
    standby: Standby | None = None,
    tracing: object = None,
) -> Iterator[Served]:
    """Serve a broker, or one whose log is in a folder. `tracing` records traces, whatever the settings are."""
    settings = settings or BrokerSettings()
    if settings.data == BrokerSettings().data:  # not the current folder
        settings = replace(settings, data=str(folder))
    broker = broker or Broker(SqliteLog(folder, segment_bytes=1 << 16), limits=settings.limits)
    try:
        server = server_of(broker, settings, standby)
        if tracing is not None:
            server.config.app.state.tracing = tracing  # type: ignore[union-attr]
        with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
            port = listener.getsockname()[1]
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="server")
            thread.start()
            try:
                url = f"http://127.0.0.1:{port}"
                with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
                    # The socket listens already: this waits until the server answers.
                    client.get("/healthz").raise_for_status()
                    yield Served(url, client, broker, port)
            finally:
                server.should_exit = True
                thread.join(30)
                assert not thread.is_alive(), "the server does not stop"
    finally:
        broker.close()


class Events:
    """A stream of server-sent events, event by event, as a dictionary of its fields."""

    def __init__(self, served: Served, path: str, after: int | None = None) -> None:
        headers = {} if after is None else {"last-event-id": str(after)}
        self._stream = served.http.stream("GET", path, headers=headers)
        self._response = self._stream.__enter__()
        assert self._response.status_code == 200, self._response.read()
        self._lines = self._response.iter_lines()

    def next(self) -> dict[str, str]:
        """The next event; heartbeats have no `event`."""
        found: dict[str, str] = {}
        for line in self._lines:
            if not line:
                return found
            name, _, value = line.partition(":")
            found[name or "comment"] = value.removeprefix(" ")
        raise EOFError

    def next_of_kind(self, kind: str) -> dict[str, str]:
        """The next event of a kind."""
        while (event := self.next()).get("event") != kind:
            pass
        return event

    def close(self) -> None:
        """End the stream."""
        self._stream.__exit__(None, None, None)
