"""The keys of `broker.toml`, declared once: its kind of value, its meaning, its default.

The file is read by these declarations (broker_file.py), and the reference in docs/reference/broker-file.md is written
from them (`reference()`; a test holds the two together). Paths are absolute.
"""

from dataclasses import dataclass
from pathlib import Path

from pathcast.documents import Limits
from pathcast.log import Log, ReadLeases, SqliteLog
from pathcast.toml_files import DURATION, NAMES, NUMBER, PATH, PORT, SIZE, TEXT, choice, key, section
from pathcast.toml_files import reference as reference_of

from ..restart_snapshot import RestartSnapshot
from ..uploads.upload_settings import UploadsSection
from ..webhooks.webhook_settings import WebhooksSection
from .jetstream_section import JetStreamSection

_SEGMENT_BYTES = 256 << 20
SNAPSHOT = "restart-snapshot"


@dataclass(frozen=True, kw_only=True)
class ServerSection:
    """Where the server listens."""

    host: str = key(
        TEXT,
        "The address to listen on. Other addresses than loopback need `certificate`, `private_key` and `tokens.file`.",
        "127.0.0.1",
    )
    port: int = key(PORT, "The port to listen on; 0 chooses a free port.", 8_080, without="8080")
    certificate: str | None = key(PATH, "The TLS certificate and its chain, in PEM.", None)
    private_key: str | None = key(PATH, "The private key of the certificate, in PEM, without a passphrase.", None)
    hosts: tuple[str, ...] = key(
        NAMES,
        "Further host names that requests without tokens may use, such as the name of a reverse proxy on this machine.",
        (),
    )
    stop_time: float = key(
        DURATION,
        "The time that requests in progress have to end when the broker stops, in whole seconds; those that are left "
        "are cut.",
        5.0,
        without="`5 seconds`",
    )
    origins: tuple[str, ...] = key(
        NAMES,
        "Web origins, such as `https://desk.example.org`, whose pages may send requests without tokens or by session.",
        (),
    )


@dataclass(frozen=True, kw_only=True)
class LogSection:
    """The log: documents and subscriptions, durable."""

    kind: str = key(
        choice("sqlite", "jetstream"),
        "Where the log is: in a folder of this machine, or on the NATS servers of `[jetstream]`.",
        "sqlite",
    )
    folder: str | None = key(PATH, "The folder of the log.", None, without="`log` in the folder of `--data`")
    segment: int = key(SIZE, "The size at which the log begins a new file.", _SEGMENT_BYTES, without="`256 MiB`")
    keep_time: float | None = key(DURATION, "Trim documents that are older than this.", None)
    keep_bytes: int | None = key(
        SIZE, "Trim the oldest documents while the files of all newer ones have at least this size.", None
    )
    leases: int = key(NUMBER, "The largest number of concurrent readers of the log (`GET /v1/log` and its leases).", 64)
    lease_time: float = key(
        DURATION,
        "The time after which a read lease expires unless a reader extends it. After a start, the broker "
        "waits this long before it trims.",
        60.0,
        without="`1 minute`",
    )
    lease_longest: float = key(
        DURATION, "The longest time for which a read lease prevents trimming.", 3_600.0, without="`1 hour`"
    )

    def opened(self, data: Path) -> SqliteLog:
        """The log in the folder that this section describes."""
        return SqliteLog(self._folder(data), segment_bytes=self.segment)

    def followed(self, data: Path) -> SqliteLog:
        """The same, to be read while another process owns it."""
        return SqliteLog(self._folder(data), segment_bytes=self.segment, read_only=True)

    def _folder(self, data: Path) -> Path:
        return data / "log" if self.folder is None else Path(self.folder)

    def leases_on(self, log: Log) -> ReadLeases:
        """The read leases on a log that this section allows."""
        seconds = self.lease_time
        return ReadLeases(log, seconds=seconds, longest=self.lease_longest, most=self.leases, grace=seconds)


@dataclass(frozen=True, kw_only=True)
class Quotas:
    """What each tenant may use; None means no quota."""

    subscriptions: int | None = key(NUMBER, "Subscriptions per tenant.", None)
    expression: int = key(SIZE, "Bytes per expression, with its namespaces.", 64 << 10, without="`64 KiB`")
    publish_rate: int | None = key(SIZE, "Bytes per second that a tenant may publish.", None)
    feeds: int = key(
        NUMBER,
        "Feeds per tenant: those that it created and did not delete, and those that only its subscriptions name. A "
        "feed takes some 0.5 MB of memory.",
        1_000,
    )
    sinks: int = key(NUMBER, "Distinct webhook addresses per tenant.", 1_000)
    versions: int = key(
        NUMBER,
        "Earlier versions per subscription. A change of its expression or feeds ends a version, which is kept while "
        "the log has documents from its time.",
        1_000,
    )


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """What a connection may hold, and for how long."""

    count: int = key(NUMBER, "The largest number of connections; further connections get status 503.", 20_000)
    headers: int = key(SIZE, "The largest size of the headers of a request.", 64 << 10, without="`64 KiB`")
    header_time: float = key(
        DURATION, "The time within which a client must send the headers of a request.", 10.0, without="`10 seconds`"
    )
    body_time: float = key(
        DURATION,
        "The time within which a client must send a body, plus one second per `rate` bytes.",
        30.0,
        without="`30 seconds`",
    )
    rate: int = key(
        SIZE, "The bytes per second at which a client must send a body and read an answer.", 1 << 10, without="`1 KiB`"
    )
    stall_time: float = key(
        DURATION,
        "The broker closes a connection whose client reads more slowly than `rate` for this time.",
        60.0,
        without="`1 minute`",
    )
    bodies: int = key(
        SIZE,
        "Memory for the bodies of all requests in progress; further bodies get status 503.",
        1 << 30,
        without="`1 GiB`",
    )


@dataclass(frozen=True, kw_only=True)
class TokensSection:
    """The file of access tokens. With it, every request needs a token."""

    file: str | None = key(
        PATH,
        "The file that `pathcast token` writes. The server notices changes.",
        None,
        without="no tokens: the server listens on a loopback address only",
    )


@dataclass(frozen=True, kw_only=True)
class TelemetrySection:
    """Where traces go."""

    endpoint: str = key(
        TEXT, "The address of a collector for OTLP over HTTP, with its path.", "http://127.0.0.1:4318/v1/traces"
    )
    service: str = key(TEXT, "The name of this broker in traces.", "pathcast")


@dataclass(frozen=True, kw_only=True)
class BackfillSection:
    """Which histories the broker leaves to `pathcast backfill`."""

    above: int | None = key(
        NUMBER,
        "Leave the history of a subscription to [Spark](../guides/log-on-spark.md#backfill) if it has more sequences "
        "than this. Its deliveries begin once Spark has matched it.",
        None,
        without="the broker reads all histories itself",
    )


@dataclass(frozen=True, kw_only=True)
class BrokerSettings:
    """The checked settings of a broker."""

    data: str = key(
        PATH, "The folder of the broker's data.", "pathcast-data", without="`pathcast-data` in the current folder"
    )
    server: ServerSection = section(ServerSection, "The server's address, TLS and host names.", filled=True)
    tokens: TokensSection = section(TokensSection, "Access tokens. `pathcast token add` makes them.", filled=True)
    log: LogSection = section(LogSection, "The log of documents and subscriptions.", filled=True)
    jetstream: JetStreamSection = section(
        JetStreamSection, 'The NATS servers of a log of kind "jetstream".', filled=True
    )
    limits: Limits = section(
        Limits,
        "Limits per document; a document beyond a limit is rejected or becomes a dead letter. `evaluation` cannot be "
        "set here: a subscription beyond it only does not match.",
        filled=True,
    )
    quotas: Quotas = section(Quotas, "Quotas per tenant. A request that exceeds a quota gets status 429.", filled=True)
    connections: ConnectionLimits = section(
        ConnectionLimits, "Limits on connections, so that slow clients cannot exhaust the server.", filled=True
    )
    webhooks: WebhooksSection = section(
        WebhooksSection, "Webhooks: requests that deliver documents to sinks.", filled=True
    )
    backfill: BackfillSection = section(
        BackfillSection, "Histories of subscriptions with `from` in the past that Spark matches.", filled=True
    )
    uploads: UploadsSection = section(
        UploadsSection, "Documents that are uploaded first and published later, as a batch.", filled=True
    )

    def log_place(self) -> str:
        """Where the log is, for people."""
        if self.log.kind == "jetstream":
            return f"stream {self.jetstream.stream!r} on {', '.join(self.jetstream.servers)}"
        return str(Path(self.data) / "log") if self.log.folder is None else self.log.folder

    def opened_log(self) -> Log:
        """The log of the broker, which this process then owns."""
        return self.jetstream.opened() if self.log.kind == "jetstream" else self.log.opened(Path(self.data))

    def followed_log(self) -> Log:
        """The log of a broker that another process owns, as of now, to be read."""
        if self.log.kind != "jetstream":
            return self.log.followed(Path(self.data))
        log = self.jetstream.followed()
        log.refresh()
        return log

    def snapshot(self) -> RestartSnapshot:
        """The snapshot for restarts, on this machine wherever the log is."""
        return RestartSnapshot(Path(self.data) / SNAPSHOT)

    telemetry: TelemetrySection | None = section(
        TelemetrySection,
        "Traces with OpenTelemetry. Without this section the broker sends none. Needs the extra `telemetry`.",
    )


def reference() -> str:
    """The reference of all keys, in Markdown: a table per section."""
    return reference_of(BrokerSettings, "The broker as a whole.", "##")
