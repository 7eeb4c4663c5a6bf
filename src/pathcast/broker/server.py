"""The server: a broker's application on an address, until a signal stops it.

On SIGTERM or Ctrl-C the server stops accepting connections, ends event streams, carries out what it has accepted, and
writes a checkpoint. SIGKILL loses nothing either; the next start reads more of the log.
"""

import asyncio
import gc
import logging
import math
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from pathcast.errors import PathcastError

from .api.application import application
from .api.middleware.active_broker_check import WhileActive
from .api.standby_application import standby_application
from .broker import Broker
from .feed_index import warm_up
from .retention import Retention
from .settings.broker_sections import BrokerSettings, ConnectionLimits
from .slow_client_limits import guarded_by, sweep_forever
from .snapshot_renewal import SnapshotRenewal
from .standby import Standby

# Connections that wait to be accepted; all may be accepted at once before those beyond the limit are closed.
_BACKLOG = 2048
# Files other than connections: those of the log, threads' pipes, libraries, and connections that are being rejected.
_OTHER_FILES = 512 + _BACKLOG
_LOGGER = logging.getLogger(__name__)


class SweptServer(uvicorn.Server):
    """A server that ends the connections of clients that are too slow."""

    def __init__(self, app: ASGIApp, settings: BrokerSettings, stopping: Callable[[], object] = lambda: None) -> None:
        """`stopping` is called before connections are ended."""
        super().__init__(_configuration(app, settings))
        self._stopping = stopping
        self._limits = settings.connections
        self._sweeper: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets)
        self._sweeper = asyncio.create_task(sweep_forever(self.server_state.connections, self._limits))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._stopping()
        await super().shutdown(sockets)


def serve(
    settings: BrokerSettings,
    started: Callable[[str], None],
    standing_by: Callable[[str, str], None] = lambda address, active: None,
) -> None:
    """Serve the broker that the settings describe; `started` is called with the address once it accepts connections.

    On a JetStream log with an active broker, `standing_by` is called before, with the address of this one and of the
    active one. Raises a `PathcastError` if this broker must stop because another one has taken over.
    """
    for name in ("uvicorn.error", "httpx", "httpcore"):  # httpx logs URLs of sinks, which may hold secrets
        logging.getLogger(name).setLevel(logging.WARNING)
    settings = replace(settings, connections=_allowed(settings.connections))
    host = settings.server.host
    with closing(_listening(host, settings.server.port)) as listener, ExitStack() as stack:
        scheme = "http" if settings.server.certificate is None else "https"
        address = f"{scheme}://{_shown(host)}:{listener.getsockname()[1]}"
        standby = None
        if settings.log.kind == "jetstream":
            standby = stack.enter_context(closing(Standby(settings, address)))
            stopped = True
            with _signals_ending_quietly():
                _stand_by(standby, settings, listener, lambda active: standing_by(address, active))
                stopped = False
            if stopped:
                return
        broker = stack.enter_context(closing(broker_of(settings) if standby is None else standby.broker()))
        server = server_of(broker, settings, standby)
        kept = Retention(broker, settings.log.keep_time, settings.log.keep_bytes)
        renewal = SnapshotRenewal(broker, settings)
        with closing(kept), closing(renewal), _signals_ending_quietly():
            warm_up()
            _exclude_from_collections()
            started(address)
            server.run(sockets=[listener])
        if standby is not None and standby.problem is not None:
            raise standby.problem


def _stand_by(
    standby: Standby, settings: BrokerSettings, listener: socket.socket, standing_by: Callable[[str], None]
) -> None:
    """Answer that another broker is active, until this one is, or a signal comes."""
    if standby.take():
        return
    warm_up()
    server = SweptServer(standby_application(lambda: standby.holder), settings)

    def ended() -> None:
        server.should_exit = True

    standing_by(standby.holder)
    end = standby.stand_by(ended)
    try:
        # The listening socket stays open: connections that come in between wait for the active broker.
        server.run(sockets=[listener.dup()])
    finally:
        end()


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
    leases = settings.log.leases_on(log)
    return Broker(
        log, limits=settings.limits, leases=leases, snapshot=settings.snapshot(), backfill=settings.backfill.above
    )


def server_of(broker: Broker, settings: BrokerSettings, standby: Standby | None = None) -> uvicorn.Server:
    """The HTTP server of a broker, ready to run. One that shares its log answers only while it is the active one."""
    gates = []
    if standby is not None:
        gates.append(Middleware(WhileActive, is_valid=standby.is_valid, active=lambda: standby.holder))
    app = application(broker, settings, gates)
    # Streams and pulls that wait would take all of the time that connections have to end.
    server = SweptServer(app, settings, lambda: app.state.wakeups.close())  # noqa: PLW0108 - made by the lifespan
    app.state.metrics.watch_connections(server.server_state.connections, settings.connections.count)

    def ended() -> None:
        server.should_exit = True

    if standby is not None:
        standby.watch(broker, ended)
    return server


def _configuration(app: ASGIApp, settings: BrokerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=guarded_by(settings.connections),
        backlog=_BACKLOG,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=math.ceil(settings.server.stop_time),
        lifespan="on" if isinstance(app, Starlette) else "off",
        ssl_certfile=settings.server.certificate,
        ssl_keyfile=settings.server.private_key,
    )


def _exclude_from_collections() -> None:
    """Exclude all objects that exist now from garbage collections: those of libraries, and the broker's state.

    They live as long as the process. Otherwise a full collection scans them all, which is a fifth of the time of the
    thread that handles requests.
    """
    gc.collect()
    gc.freeze()


def _allowed(limits: ConnectionLimits) -> ConnectionLimits:
    """Raise the limit on open files as far as the system allows, and accept no more connections than it leaves.

    A process without file descriptors can neither accept a connection to answer 503 nor open a file of the log.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.count + _OTHER_FILES
    if 0 <= soft < wanted:
        with suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard) if hard >= 0 else wanted, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 0:
        return limits
    count = max(1, soft - min(_OTHER_FILES, soft // 2))
    if count >= limits.count:
        return limits
    _LOGGER.warning(
        "the system allows %d open files per process, so the broker accepts %d connections instead of %d; raise the "
        "limit to %d (`ulimit -n`, or LimitNOFILE= of systemd) or lower connections.count",
        *(soft, count, limits.count, wanted),
    )
    return replace(limits, count=count)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens, so that a port in use is reported before the log is opened."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise PathcastError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another --port"
        ) from None


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
