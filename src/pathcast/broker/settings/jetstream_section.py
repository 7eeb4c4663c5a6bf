"""The keys of `[jetstream]`: the NATS servers that keep the log, and how this broker shares it with its standbys."""

import re
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pathcast.log import JetStreamLog, LogLease
from pathcast.toml_files import DURATION, NAMES, NUMBER, PATH, TEXT, key

_NAME = re.compile(r"[A-Za-z0-9_-]{1,190}")


@dataclass(frozen=True, kw_only=True)
class JetStreamSection:
    """The NATS servers of a log of kind "jetstream"."""

    servers: tuple[str, ...] = key(NAMES, "The NATS servers, such as `nats://n1.example.org:4222`.", ())
    stream: str = key(TEXT, "The name of the log: letters, digits, `-` and `_`.", "pathcast")
    replicas: int = key(
        NUMBER, "The number of servers that keep each record: 1, 3 or 5. The key has no effect on an existing log.", 1
    )
    timeout: float = key(
        DURATION,
        "The time for which the broker waits for an answer of the servers, also while they elect a leader.",
        30.0,
        without="`30 seconds`",
    )
    credentials: str | None = key(PATH, "The NATS credentials file (`.creds`) of the broker.", None)
    ca: str | None = key(
        PATH, "The certificates of the authority (CA) that signed the servers' certificates, in PEM. Enables TLS.", None
    )
    certificate: str | None = key(PATH, "The broker's TLS certificate, in PEM, for servers that require one.", None)
    private_key: str | None = key(PATH, "The private key of this certificate, in PEM, without a passphrase.", None)

    lease_time: float = key(
        DURATION,
        "The time without a sign of life from the active broker after which a standby takes over.",
        5.0,
        without="`5 seconds`",
    )
    address: str | None = key(
        TEXT,
        "The address of this broker that standbys name to clients, such as `https://a.example.org:8443`.",
        None,
        without="`server.host` and the port",
    )

    def options(self) -> dict[str, Any]:
        """What `nats.connect` needs beside the servers."""
        found: dict[str, Any] = {}
        if self.credentials is not None:
            found["user_credentials"] = self.credentials
        if self.ca is not None:
            context = ssl.create_default_context(cafile=self.ca)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.private_key, password=lambda: "")
            found["tls"] = context
        return found

    def opened(self) -> JetStreamLog:
        """The log, taken over from the broker that wrote to it."""
        return JetStreamLog.open(
            self.servers, self.stream, replicas=self.replicas, timeout=self.timeout, options=self.options()
        )

    def followed(self) -> JetStreamLog:
        """The log, to follow it and perhaps to take it over."""
        return JetStreamLog.follow(
            self.servers, self.stream, replicas=self.replicas, timeout=self.timeout, options=self.options()
        )

    def lease(self, address: str, clock: Callable[[], float]) -> LogLease:
        """The lease on the log, for the broker at an address."""
        return LogLease.open(
            self.servers,
            self.stream,
            self.address or address,
            seconds=self.lease_time,
            replicas=self.replicas,
            timeout=self.timeout,
            options=self.options(),
            clock=clock,
        )

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong with these settings together: the key, and why."""
        if not self.servers:
            yield "jetstream.servers", 'is missing: a log of kind "jetstream" needs NATS servers; list their addresses'
        for place, server in enumerate(self.servers):
            parts = urlsplit(server)
            if parts.scheme not in {"nats", "tls"} or not parts.hostname:
                yield (
                    f"jetstream.servers[{place}]",
                    f'must be an address such as nats://n1.example.org:4222, got "{server}"',
                )
            elif parts.username is not None:
                yield f"jetstream.servers[{place}]", "has a user or password; set jetstream.credentials instead"
        if _NAME.fullmatch(self.stream) is None:
            yield "jetstream.stream", f"must consist of up to 190 letters, digits, '-' and '_', got {self.stream!r}"
        if (self.certificate is None) != (self.private_key is None):
            missing = "certificate" if self.certificate is None else "private_key"
            yield (
                f"jetstream.{missing}",
                "is missing: a certificate and its private key go together; give both keys, or neither",
            )
        elif self.certificate is not None and self.ca is None:
            yield (
                "jetstream.ca",
                "is missing, but certificate is given; set ca, the certificates of the servers' authority",
            )
        if self.address is not None and urlsplit(self.address).scheme not in {"http", "https"}:
            yield "jetstream.address", f'must be an address such as https://a.example.org:8443, got "{self.address}"'
        yield from self._files()

    def _files(self) -> Iterator[tuple[str, str]]:
        """Whether the files can be read."""
        readable = True
        for name in ("credentials", "ca", "certificate", "private_key"):
            path = getattr(self, name)
            try:
                if path is not None:
                    open(path, "rb").close()
            except OSError as error:
                readable = False
                yield (
                    f"jetstream.{name}",
                    f"cannot be read: {path}: {error.strerror}; check the path and the permissions",
                )
        try:
            if readable and (self.certificate is None) == (self.private_key is None):
                self.options()
        except (ssl.SSLError, ValueError):
            yield (
                "jetstream.ca",
                "ca, certificate and private_key cannot be loaded; they must be PEM, without passphrase",
            )
