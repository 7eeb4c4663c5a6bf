"""`broker.toml`: TOML in, checked `BrokerSettings` out, or all of its problems, each with its line and key.

The declaration of a key checks its value (broker_sections.py); this module checks which keys go together. The same
checks apply to settings that come from the command line.
"""

import ipaddress
import os
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pathcast.documents import Limits
from pathcast.errors import PathcastError
from pathcast.toml_files import Problem, TomlFile

from .broker_sections import BrokerSettings, ServerSection

_TOKENS: Final = (
    "needs tokens to listen on {!r}, which other machines can reach; create a token file with "
    "`pathcast token add NAME --file tokens.json`, and set tokens.file"
)
_TLS: Final = (
    "needs TLS to listen on {!r}, which other machines can reach; set server.certificate and server.private_key, "
    "or listen on 127.0.0.1 behind a proxy that ends TLS"
)


class BrokerFileError(PathcastError):
    """Settings that a broker cannot run with; `problems` lists all problems, by line."""

    def __init__(self, reason: str, *, report: str = "", problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(reason, line=problems[0].line if problems else None)
        self.report = report
        self.problems = problems

    def __str__(self) -> str:
        return self.report or super().__str__()

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.reason, self.report, self.problems)


def _restored(reason: str, report: str, problems: tuple[Problem, ...]) -> BrokerFileError:
    return BrokerFileError(reason, report=report, problems=problems)


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_settings(
    file: str | os.PathLike[str] | None = None,
    *,
    data: Path | None = None,
    host: str | None = None,
    port: int | None = None,
) -> BrokerSettings:
    """The settings of a file, or the default settings; arguments replace settings of the file.

    Raises a `BrokerFileError` that lists all problems.
    """
    given = None if file is None else TomlFile(file)
    settings = BrokerSettings() if given is None else given.read(BrokerSettings)
    wrong: list[tuple[str, str]] = []
    if settings is not None:
        settings = _replaced(settings, data, host, port)
        wrong = list(_together(settings))
    if given is None:
        if wrong:
            report = "\n".join(f"the server {reason}" for _, reason in wrong)
            raise BrokerFileError(wrong[0][1], report=report, problems=tuple(Problem(None, *each) for each in wrong))
    else:
        for name, reason in wrong:
            given.wrong(name, reason)
        if given.problems:
            raise BrokerFileError(given.problems[0].reason, report=given.told(), problems=given.problems)
    assert settings is not None
    return settings


def _replaced(settings: BrokerSettings, data: Path | None, host: str | None, port: int | None) -> BrokerSettings:
    server = settings.server
    server = replace(server, host=host or server.host, port=server.port if port is None else port)
    return replace(settings, server=server, data=settings.data if data is None else str(data))


def _together(settings: BrokerSettings) -> Iterator[tuple[str, str]]:
    """Problems that involve several keys, or the files they name."""
    server = settings.server
    if not is_loopback(server.host):
        if settings.tokens.file is None:
            yield "tokens.file", _TOKENS.format(server.host)
        if server.certificate is None and server.private_key is None:
            yield "server.certificate", _TLS.format(server.host)
    if (server.certificate is None) != (server.private_key is None):
        missing = "certificate" if server.certificate is None else "private_key"
        yield (
            f"server.{missing}",
            "is missing: a certificate and its private key go together; give both keys, or neither",
        )
    elif server.certificate is not None:
        yield from _certificate(server)
    for place, origin in enumerate(server.origins):
        parts = urlsplit(origin)
        if parts.scheme not in ("http", "https") or not parts.netloc or origin != f"{parts.scheme}://{parts.netloc}":
            yield f"server.origins[{place}]", f'must be an origin such as "https://desk.example.org", got "{origin}"'
    if settings.limits.evaluation != Limits().evaluation:
        yield (
            "limits.evaluation",
            "does not apply to a broker, where an expression that takes too many steps only matches nothing; omit it",
        )
    if settings.log.kind == "jetstream":
        yield from settings.jetstream.problems()
        if settings.log.folder is not None:
            yield (
                "log.folder",
                'needs kind = "sqlite" in [log], whose kind is "jetstream"; omit the key, or change the kind',
            )
        if settings.log.keep_bytes is not None:
            yield "log.keep_bytes", 'needs kind = "sqlite" in [log], whose kind is "jetstream"; use keep_time instead'
    elif settings.jetstream.servers:
        yield (
            "jetstream.servers",
            'needs kind = "jetstream" in [log], whose kind is "sqlite"; set kind, or remove this section',
        )


def _certificate(server: ServerSection) -> Iterator[tuple[str, str]]:
    """Whether certificate and key can be loaded."""
    assert server.certificate is not None
    for name, path in (("certificate", server.certificate), ("private_key", server.private_key)):
        if not os.access(str(path), os.R_OK):
            yield f"server.{name}", f"cannot be read: {path}; check the path and the permissions"
            return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            server.certificate, server.private_key, password=lambda: ""
        )
    except (ssl.SSLError, OSError, ValueError):
        yield (
            "server.certificate",
            "certificate and private key cannot be loaded; both must be PEM, belong together, and have no passphrase",
        )
