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


HERE = Path(__file__).resolve().parent
# What takes longest goes first, so that no test process waits for another in the end.
FIRST = ("spark", "experiments", "matching", "joins", "routing", "documents")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several test processes, one gets all tests of a room, so that kernels that are new are compiled once.

    The largest rooms are dealt out by their parts. `tests/spark` says for itself what stays together.
    """
    for item in items:
        room, *rest = item.path.relative_to(HERE).parts
        if room != "spark" and item.get_closest_marker("xdist_group") is None:
            name = f"{room}/{rest[0]}" if room in ("matching", "documents", "experiments") else room
            item.add_marker(pytest.mark.xdist_group(name))

    def turn(item: pytest.Item) -> int:
        room = item.path.relative_to(HERE).parts[0]
        mark = item.get_closest_marker("xdist_group")
        if mark is not None and mark.args == ("without java",):
            return -1
        return FIRST.index(room) if room in FIRST else len(FIRST)

    items.sort(key=turn)
