"""Fixtures: certificates for brokers and NATS servers that use TLS."""

import pytest

from .certificates import Certificates, certificates_in


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A certificate for this machine, and its private key."""
    return certificates_in(tmp_path_factory.mktemp("certificates"))
