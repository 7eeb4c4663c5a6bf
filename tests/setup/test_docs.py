"""The documentation site: it builds without warnings, needs no other host, shows all that is public; notebooks run.

The site is built once for all tests here, without running its notebooks; those run by themselves, and print what the
repository has recorded.
"""

import importlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import typer.main

import pathcast
from pathcast.cli.app import app

PROJECT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((PROJECT / "docs" / "notebooks").glob("*.py"))
PACKAGES = sorted(path.stem for path in (PROJECT / "src" / "pathcast").iterdir() if (path / "README.md").exists())

pytestmark = pytest.mark.slow

# What a browser loads by itself: tag → attribute.
LOADED = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "object": "data",
    "script": "src",
    "source": "src",
    "video": "src",
}


IMAGE = re.compile(r"<img\b[^>]*>")

# Addresses that a style sheet loads.
ADDRESS = re.compile(r"(?:url\(\s*|@import\s+)['\"]?(?!url\()([^'\")\s]+)")


ADDRESS_OF_SITE = "https://pathcast.example/"


def build(project: Path, to: Path, address: str = ADDRESS_OF_SITE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(to)]
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PATHCAST_RUN_NOTEBOOKS": "false"}
    settings["PATHCAST_SITE_URL"] = address
    return subprocess.run(
        [*command, "--config-file", str(project / "mkdocs.yml")],
        cwd=project,
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    answer = build(PROJECT, folder)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return folder


def pages(site: Path) -> list[Path]:
    found = sorted(site.rglob("*.html"))
    assert len(found) > 50
    return found


class Loads(HTMLParser):
    """Addresses on a page that a browser loads without being asked."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") in {"canonical", "next", "prev"}:
            return
        self.found += [address for name, address in given.items() if address and name in {LOADED.get(tag), "srcset"}]
        self.found += re.findall(r"url\(([^)]+)\)", given.get("style") or "")


class Links(HTMLParser):
    """The links of a page, and the places that links can lead to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = {""}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places |= {place for place in (given.get("id"), given.get("name")) if place}
        if tag == "a" and given.get("href"):
            self.targets.append(given["href"] or "")


def test_links_within_the_site_lead_somewhere(site: Path) -> None:
    links = {page: Links(page.read_text(encoding="utf-8")) for page in pages(site) if page.name != "404.html"}
    broken = []
    for page, found in links.items():
        for link in found.targets:
            name, _, anchor = link.partition("#")
            if ":" in name:
                continue
            target = (page.parent / unquote(name)).resolve() if name else page
            known = links[target].places if target in links else {""}
            if not target.exists() or unquote(anchor) not in known:
                broken.append((page.relative_to(site), link))
    assert broken == []


def outside(address: str) -> bool:
    return re.match(r"\s*['\"]?(https?:)?//", address) is not None


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    loaded = {page: Loads(page.read_text(encoding="utf-8")).found for page in pages(site)}
    assert sum(map(len, loaded.values())) > 100
    assert {(page.name, one) for page, found in loaded.items() for one in found if outside(one)} == set()


def test_styles_load_nothing_from_other_hosts(site: Path) -> None:
    styles = [*site.rglob("*.css"), *site.rglob("*.svg"), *site.rglob("*.html")]
    texts = ((style, style.read_text(encoding="utf-8")) for style in styles)
    loaded = [(style.name, one) for style, text in texts for one in ADDRESS.findall(text)]
    assert loaded
    assert [one for one in loaded if outside(one[1])] == []


def test_every_command_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "cli.html").read_text(encoding="utf-8")

    def names(command: Any, words: str) -> list[str]:
        below = getattr(command, "commands", {}).items()
        return [words, *(name for word, one in below for name in names(one, f"{words} {word}"))]

    wanted = names(typer.main.get_command(app), "pathcast")[1:]
    assert len(wanted) > 10
    assert [name for name in wanted if f'id="{name.replace(" ", "-")}"' not in page] == []


@pytest.mark.parametrize("name", pathcast.__all__)
def test_every_public_name_is_in_the_reference(site: Path, name: str) -> None:
    if isinstance(getattr(pathcast, name), type(pathcast)):
        page = site / "reference" / "python" / f"{name}.html"
        names = [f"pathcast.{name}.{one}" for one in importlib.import_module(f"pathcast.{name}").__all__]
    else:
        page, names = site / "reference" / "python" / "index.html", [f"pathcast.{name}"]
    text = page.read_text(encoding="utf-8")
    assert [one for one in names if f'id="{one}"' not in text] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_its_page(site: Path, package: str) -> None:
    assert (site / "packages" / f"{package}.html").exists()


def test_diagrams_are_drawn_for_light_and_dark_pages(site: Path) -> None:
    page = (site / "concepts" / "engine.html").read_text(encoding="utf-8")
    images = re.findall(r'src="([^"]+\.svg)#only-(light|dark)"', page)
    assert {shade for _, shade in images} == {"light", "dark"}
    for image, _ in images:
        assert (site / "concepts" / image).resolve().read_text(encoding="utf-8").count("<svg") >= 1
    assert [path.name for path in pages(site) if "language-d2" in path.read_text(encoding="utf-8")] == []


def test_every_picture_has_a_text(site: Path) -> None:
    found = [(page.name, image) for page in pages(site) for image in IMAGE.findall(page.read_text(encoding="utf-8"))]
    assert len(found) > 50
    assert [(page, image) for page, image in found if not re.search(r'alt="[^"]{10,}"', image)] == []


def test_the_navigation_has_every_page_and_so_has_the_sitemap(site: Path) -> None:
    navigation = Links((site / "index.html").read_text(encoding="utf-8")).targets
    sitemap = (site / "sitemap.xml").read_text(encoding="utf-8")
    names = [page.relative_to(site).as_posix() for page in pages(site) if page.name != "404.html"]
    assert [name for name in names if name not in navigation] == []
    assert [name for name in names if f"<loc>{ADDRESS_OF_SITE}{name}</loc>" not in sitemap] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_its_outputs_without_being_run(site: Path, notebook: Path) -> None:
    page = (site / "notebooks" / f"{notebook.stem}.html").read_text(encoding="utf-8")
    assert page.count("jp-OutputArea-output") > 2


@pytest.mark.parametrize(
    ("link", "complaint"),
    [("[x](missing.md)", "missing.md"), ("[x](glossary.md#no-such-word)", "no-such-word")],
    ids=["page", "anchor"],
)
def test_a_broken_link_fails_the_build(tmp_path: Path, link: str, complaint: str) -> None:
    for name in ("mkdocs.yml", "scripts", "src", "lab", "tests", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        (tmp_path / name).symlink_to(PROJECT / name)
    copied = tmp_path / "docs"
    copied.mkdir()
    for page in (PROJECT / "docs").iterdir():
        (copied / page.name).symlink_to(page)
    (copied / "index.md").unlink()
    (copied / "index.md").write_text(f"# Pathcast\n\n{link}\n", encoding="utf-8")
    answer = build(tmp_path, tmp_path / "site")
    assert answer.returncode != 0
    assert complaint in answer.stdout + answer.stderr


@pytest.mark.parametrize(
    "notebook",
    [
        pytest.param(path, marks=pytest.mark.xdist_group("a Spark each") if "spark" in path.stem else ())
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs_and_prints_what_is_recorded(notebook: Path, tmp_path: Path) -> None:
    program = (
        "import json, sys; from pathlib import Path; from notebook_outputs import *; path = Path(sys.argv[1]); "
        "ran, recorded = run(path), notebook_with_outputs(path); "
        "print(json.dumps([[varies(cell) for cell in code_cells(ran)], outputs_of(ran), outputs_of(recorded)]))"
    )
    command = [sys.executable, "-c", program, str(notebook)]
    paths = [str(PROJECT / name) for name in ("src", "lab/src", "scripts")] + sys.path
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    answer = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr[-5000:]
    free, ran, recorded = json.loads(answer.stdout.splitlines()[-1])
    assert sum(map(len, ran)) > 2
    for vary, found, expected in zip(free, ran, recorded, strict=True):
        assert found == expected or (vary and len(found) == len(expected)), (
            f"run: python scripts/notebook_outputs.py {notebook.stem}"
        )
