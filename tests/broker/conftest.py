"""Fixtures: a NATS server for brokers whose log is on one."""

from collections.abc import Iterator

import pytest

from ..log.nats_servers import NatsServer, free_ports
from ..log.places import folder_in_memory
from .certificates import Certificates, certificates_in


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A certificate for this machine, and its private key."""
    return certificates_in(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    """A server that all tests share: each of their logs has a name of its own."""
    with folder_in_memory() as created:
        server = NatsServer(created, *free_ports(1))
        server.start()
        server.wait()
        yield server
        server.kill()
