"""Fixtures: folders in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..log.places import folder_in_memory


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory."""
    with folder_in_memory() as created:
        yield created
