"""Fixtures: folders in memory; certificates for brokers and NATS servers that use TLS."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..log.places import folder_in_memory
from .certificates import Certificates, certificates_in


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory."""
    with folder_in_memory() as created:
        yield created


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A certificate for this machine, and its private key."""
    return certificates_in(tmp_path_factory.mktemp("certificates"))
