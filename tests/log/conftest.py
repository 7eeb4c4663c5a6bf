"""Fixtures: each test of the contract runs on every kind of log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pathcast.log import Log

from .places import PLACE_NAMES, PLACES, Place, folder_in_memory


@pytest.fixture
def folder() -> Iterator[Path]:
    with folder_in_memory() as created:
        yield created


@pytest.fixture(params=PLACE_NAMES)
def place(request: pytest.FixtureRequest, folder: Path) -> Place:
    return PLACES[request.param](folder / "log", request)


@pytest.fixture
def log(place: Place) -> Iterator[Log]:
    opened = place.open()
    yield opened
    opened.close()
