"""The server: a broker's application on an address, until a signal stops it.

On SIGTERM or Ctrl-C the server stops accepting connections, ends event streams, carries out what it has accepted, and
writes a checkpoint. SIGKILL loses nothing either; the next start reads more of the log.
"""

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress

import uvicorn

from pathcast.errors import PathcastError

from .api.application import application
from .broker import Broker
from .feed_index import warm_up
from .guarded_connection import guarded_by, sweep_forever
from .retention import Retention
from .settings.broker_sections import BrokerSettings

# Seconds that connections have to end after a signal.
_GRACE = 5
# Files other than connections: the log's segments, threads' pipes, libraries.
_OTHER_FILES = 512


class SweptServer(uvicorn.Server):
    """A server that ends the connections of clients that are too slow."""

    _sweeper: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets)
        self._sweeper = asyncio.create_task(sweep_forever(self.server_state.connections))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        await super().shutdown(sockets)


def serve(settings: BrokerSettings, started: Callable[[str], None]) -> None:
    """Serve the broker that the settings describe; `started` is called with the address once it accepts connections."""
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    _allow_connections(settings.connections.count)
    host = settings.server.host
    with (
        closing(_listening(host, settings.server.port)) as listener,
        closing(broker_of(settings)) as broker,
    ):
        server = server_of(broker, settings)
        scheme = "http" if settings.server.certificate is None else "https"
        keep = settings.log.keep_time
        with nullcontext() if keep is None else closing(Retention(broker, keep)), _signals_ending_quietly():
            warm_up()
            started(f"{scheme}://{_shown(host)}:{listener.getsockname()[1]}")
            server.run(sockets=[listener])


@contextmanager
def _signals_ending_quietly() -> Iterator[None]:
    """End on SIGTERM and Ctrl-C with status 0: uvicorn ends in good order on either, and raises it again afterwards."""

    def end(*_: object) -> None:
        raise SystemExit(0)

    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        with suppress(SystemExit):
            yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def broker_of(settings: BrokerSettings) -> Broker:
    """The broker that the settings describe."""
    log = settings.opened_log()
    return Broker(log, limits=settings.limits, leases=settings.log.leases_on(log))


def server_of(broker: Broker, settings: BrokerSettings) -> uvicorn.Server:
    """The HTTP server of a broker, ready to run."""
    app = application(broker, settings)
    server = SweptServer(
        uvicorn.Config(
            app,
            http=guarded_by(settings.connections),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE,
            lifespan="on",
            ssl_certfile=settings.server.certificate,
            ssl_keyfile=settings.server.private_key,
        )
    )
    app.state.metrics.watch_connections(server.server_state.connections, settings.connections.count)
    return server


def _allow_connections(count: int) -> None:
    """Raise the limit on open files, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _OTHER_FILES
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard) if hard >= 0 else wanted, hard))


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens, so that a port in use is reported before the log is opened."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise PathcastError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another --port"
        ) from None


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
