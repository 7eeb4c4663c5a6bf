"""What all tests share: the option for longer runs, and imports of `tests.…` from wherever pytest is started."""

import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Timings never decide a test: machines are shared, and a first call may compile.
settings.register_profile("pathcast", deadline=None)
settings.load_profile("pathcast")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long",
        action="store_true",
        help="run the differential tests on a million pairs of pattern and document instead of a hundred thousand, the "
        "scanner on a million mutated documents instead of twelve thousand, and what takes minutes or gigabytes",
    )
