"""Debian's Chromium, driven by Playwright: a page that reports every error and every request to another host."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.broker.served_broker import Served

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-software-rasterizer",
    "--disable-extensions",
    "--renderer-process-limit=1",
    "--disable-features=Translate,OptimizationHints,MediaRouter,InterestFeedContentSuggestions",
]
MISSING = "no browser: the tests of the workbench need Chromium; install it with: apt-get install chromium"
# Nothing is decided by the clock: what does not come within a minute does not come.
expect.set_options(timeout=60_000)
WIDE, NARROW = (1280, 800), (390, 800)


def browser_path() -> str | None:
    """Where Chromium is on this machine."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened_page(
    browser: Browser, served: Served, expected: tuple[str, ...] = (), size: tuple[int, int] = WIDE, **options: Any
) -> Iterator[Page]:
    """A page whose relative addresses are those of a broker.

    At its end there must have been no error on its console but those that contain an `expected` text, no exception, and
    no request to another host.
    """
    wrong: list[str] = []
    context = browser.new_context(
        base_url=served.address, viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce", **options
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("console", lambda each: wrong.append(each.text) if each.type in {"error", "warning"} else None)
    page.on("pageerror", lambda each: wrong.append(str(each)))
    page.on("request", lambda each: None if each.url.startswith(served.address) else wrong.append(each.url))
    try:
        yield page
        assert [each for each in wrong if not any(text in each for text in expected)] == []
    finally:
        context.close()


def ready(page: Page, path: str) -> Page:
    """Go to a page, and wait until it has asked for what it shows."""
    page.goto(path)
    page.wait_for_selector("main[data-ready=true]")
    return page
