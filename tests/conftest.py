"""Shared by all tests: the option for longer runs, and imports of `tests.…` from any working directory."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.log.nats_servers import NatsServer

# Timings never decide a test: machines are shared, and a first call may compile. Nor does the time that Hypothesis
# takes to draw examples, which it otherwise reports as an error on a busy machine.
settings.register_profile("pathcast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", settings.get_profile("pathcast"), max_examples=10)
settings.load_profile("pathcast")

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long",
        action="store_true",
        help="run the differential tests on a million pairs of pattern and document instead of a hundred thousand, the "
        "scanner on a million mutated documents instead of twelve thousand, and what takes minutes or gigabytes",
    )
    parser.addoption(
        "--fast",
        action="store_true",
        help="skip Spark, the laboratory, tests marked slow and tests that start a process: under a minute",
    )


@pytest.hookimpl(tryfirst=True)  # before pytest-timeout reads its option
def pytest_configure(config: pytest.Config) -> None:
    """Long runs have no time limit; fast ones draw fewer examples."""
    if config.getoption("--long"):
        config.option.timeout = 0
    if config.getoption("--fast"):
        settings.load_profile("fast")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A fast run does not import the tests that it skips."""
    return True if config.getoption("--fast") and collection_path in (HERE / "spark", HERE / "lab") else None


@pytest.fixture(autouse=True, scope="session")
def no_process_in_a_fast_run(request: pytest.FixtureRequest) -> Iterator[None]:
    """A fast run starts no process: a test that needs one is marked slow."""
    if not request.config.getoption("--fast"):
        yield
        return

    def refused(*_: object, **__: object) -> None:
        pytest.fail("this test starts a process: mark it with @pytest.mark.slow")

    from pathcast.kernels.compilation import compiler_process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", refused)
        patch.setattr(compiler_process, "_python", str)  # kernels that are missing are compiled here
        yield


@pytest.fixture(autouse=True, scope="module")
def no_replacement_stays() -> Iterator[None]:
    """Check that names which a test replaced are restored, also in packages, which cache names of their modules.

    A package that looks up a name while a test has replaced it in the module keeps the replacement permanently: such
    a test must replace the name in the package.
    """
    yield
    packages = [module for name, module in sys.modules.items() if name.startswith(("pathcast.", "pathcast_lab."))]
    left = [
        f"{package.__name__}.{name}"
        for package in packages
        for name in getattr(package, "__all__", ())
        if getattr(vars(package).get(name), "__module__", "pathcast").startswith("tests.")
    ]
    assert not left, f"replaced by a test and not put back: {', '.join(left)}"


@pytest.fixture(scope="session")
def nats_server() -> "Iterator[NatsServer]":
    """A NATS server that all tests share: each of their logs has a name of its own."""
    from tests.log.nats_servers import NatsServer, free_ports
    from tests.log.places import folder_in_memory

    with folder_in_memory() as created:
        server = NatsServer(created, *free_ports(1))
        server.start()
        server.wait()
        yield server
        server.kill()


# Packages with slow test files go first, so that no test process waits for another at the end.
FIRST = (
    "spark", "lab", "matching", "joins", "routing", "mediation", "hostile", "kernels", "workloads",
    "test_readme.py",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several test processes, one gets all tests of a file, so that what its tests share is made once.

    Kernels are no reason to stay together: no two processes compile the same one. `tests/spark` says for itself what
    stays together.
    """
    if config.getoption("--fast"):
        slow = [item for item in items if item.get_closest_marker("slow") is not None]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item.get_closest_marker("slow") is None]
    for item in items:
        if item.get_closest_marker("xdist_group") is None and item.path.relative_to(HERE).parts[0] != "spark":
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(HERE))))

    def turn(item: pytest.Item) -> int:
        room = item.path.relative_to(HERE).parts[0]
        mark = item.get_closest_marker("xdist_group")
        if mark is not None and mark.args == ("a Spark each",):
            return -1
        return FIRST.index(room) if room in FIRST else len(FIRST)

    items.sort(key=turn)
