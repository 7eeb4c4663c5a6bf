"""Fixtures: each test of the contract runs on every kind of log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pathcast.log import Log

from .nats_servers import NatsServer, free_ports
from .places import PLACE_NAMES, PLACES, Place, folder_in_memory


@pytest.fixture
def folder() -> Iterator[Path]:
    with folder_in_memory() as created:
        yield created


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    """A server that all tests share: each of their logs has a name of its own."""
    with folder_in_memory() as created:
        server = NatsServer(created, *free_ports(1))
        server.start()
        server.wait()
        yield server
        server.kill()


@pytest.fixture(params=PLACE_NAMES)
def place(request: pytest.FixtureRequest, folder: Path) -> Place:
    return PLACES[request.param](folder / "log", request)


@pytest.fixture
def log(place: Place) -> Iterator[Log]:
    opened = place.open()
    yield opened
    opened.close()
