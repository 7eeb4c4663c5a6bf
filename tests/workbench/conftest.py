"""Fixtures: one browser for all tests, and a broker per file."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.broker.served_broker import Served, served

from .browser import MISSING, browser_path, opened_page, running_browser


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without a browser, skip with one line for all tests that says what to install; in CI, fail."""
    if "browser" in getattr(item, "fixturenames", ()) and browser_path() is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser."""
    with running_browser() as found:
        yield found


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A broker on the loopback address, without tokens."""
    with served(tmp_path_factory.mktemp("broker")) as found:
        yield found


@pytest.fixture
def page(browser: Browser, broker: Served) -> Iterator[Page]:
    """A page of the broker."""
    with opened_page(browser, broker) as found:
        yield found
