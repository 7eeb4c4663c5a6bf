"""What holds for every page: no serious accessibility violation, light and dark; keyboard; files of the wheel."""

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from setuptools import find_namespace_packages

from pathcast.broker.workbench import pages
from tests.broker.served_broker import Served

from .browser import NARROW, opened_page, ready

# The paths of what a page has loaded; how many bytes came over the network.
LOADED = "performance.getEntriesByType('resource').map(each => new URL(each.name).pathname)"
TRANSFERRED = """Object.fromEntries(
    performance.getEntriesByType('resource').map(each => [new URL(each.name).pathname, each.transferSize]))"""
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def content(broker: Served) -> None:
    """Something for every page to show."""
    broker.http.put("/v1/subscriptions/titles", json={"xpath": "//title", "config": {"max_deliver": 1}})
    for number in range(3):
        broker.http.post("/v1/feeds/news/documents", content=f"<nitf><title>Rain {number}</title></nitf>")
    broker.http.post("/v1/feeds/news/documents?invalid=keep", content="<a>\n<b></a>")
    pulled = broker.http.post("/v1/subscriptions/titles:pull?wait=5&limit=1").json()["deliveries"]
    broker.http.post("/v1/subscriptions/titles:nack", json={"sequences": [each["sequence"] for each in pulled]})


def _violations(page: Page) -> list[str]:
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['html'][:120]}: {node['failureSummary']}"
        for each in found
        if each["impact"] in {"serious", "critical"}
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("path", pages.PAGES)
def test_a_page_has_no_serious_accessibility_violation_light_or_dark(
    browser: Browser, broker: Served, path: str
) -> None:
    with opened_page(browser, broker, bypass_csp=True, color_scheme="light") as page:
        ready(page, path)
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert _violations(page) == []
        page.emulate_media(color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        assert _violations(page) == []


@pytest.mark.parametrize("path", pages.PAGES)
def test_a_page_fits_a_telephone(browser: Browser, broker: Served, path: str) -> None:
    with opened_page(browser, broker, size=NARROW) as page:
        ready(page, path)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]


def test_the_keyboard_reaches_the_content_first_and_the_navigation(page: Page) -> None:
    ready(page, "/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    ready(page, "/")
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.get_by_role("navigation").get_by_role("link").first).to_be_focused()


def test_a_person_chooses_dark_pages_and_the_choice_stays(page: Page) -> None:
    ready(page, "/")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark pages").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    ready(page, "/")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.get_by_role("button", name="Light pages").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light


def test_the_browser_rejects_text_as_html_inline_scripts_and_other_hosts(browser: Browser, broker: Served) -> None:
    refused = ("TrustedHTML", "Content Security Policy", "violates the following")
    with opened_page(browser, broker, refused) as page:
        ready(page, "/")
        tried = page.evaluate("try { document.body.innerHTML = '<b>x</b>'; 'done' } catch (error) { error.name }")
        assert tried == "TypeError"
        page.evaluate("document.body.append(Object.assign(document.createElement('img'), {src: 'data:,x'}))")
        assert page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"


@pytest.mark.parametrize("path", pages.PAGES)
def test_a_page_loads_all_its_files_at_the_same_time_and_keeps_them(
    browser: Browser, broker: Served, path: str
) -> None:
    with opened_page(browser, broker) as page:
        ready(page, path)
        loaded = {each for each in page.evaluate(LOADED) if each.startswith(pages.FILES)}
        html = broker.http.get(path).text
        assert loaded == {each for each in re.findall(r'(?:href|src)="([^"]+)"', html) if each.startswith(pages.FILES)}
        ready(page, path)
        transferred = page.evaluate(TRANSFERRED)
        assert {name: size for name, size in transferred.items() if name in loaded and size} == {}


def test_a_file_of_another_version_is_the_one_of_this_version_and_not_kept(broker: Served) -> None:
    kept, other = (broker.http.get(f"/workbench/{each}/dom.js") for each in (pages.version(), "0123456789abcdef"))
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert other.headers["cache-control"] == "no-cache"
    assert other.content == kept.content


def test_the_wheel_has_every_file_of_the_pages() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert settings["packages"]["find"] == {"where": ["src"]}  # which finds folders without __init__.py, too
    packages = set(find_namespace_packages(str(ROOT / "src")))
    patterns = settings["package-data"]["*"]
    place = Path(pages.__file__).parent
    files = [place / "shell.html", *(place / "static" / name for name in pages.static_files())]
    left_out = [
        file.name
        for file in files
        if ".".join(file.parent.relative_to(ROOT / "src").parts) not in packages
        or not any(fnmatch(file.name, pattern) for pattern in patterns)
    ]
    assert len(files) > 5
    assert left_out == []
