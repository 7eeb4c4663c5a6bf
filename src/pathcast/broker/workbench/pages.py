"""The pages: which path shows which page, the files that they load, and the headers that browsers enforce.

A page is a shell of HTML with a script; the script asks the public API and shows the answers as text nodes. So a page
holds no data, is the same for everybody, and needs no token: what it may show is decided by the API.

The content security policy allows scripts and styles of this server only, no inline script or style, no frame, no form
that leaves the page, and, with Trusted Types, no assignment of text as HTML in any script.

A page names its files below a version, which is a hash of all files, and names all scripts that its own script imports:

    GET /subscriptions                      ──▶ the page; 304 if the browser has it
    GET /workbench/VERSION/dom.js, …        ──▶ its files, all at the same time; the browser keeps them
    GET /v1/session, /v1/subscriptions, …   ──▶ what it shows, at the same time

Invariant: a file is served exactly if it is in the folder `static`.
Cost: all files are in memory, some 100 KB.
"""

import hashlib
import re
from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from posixpath import dirname, join, normpath
from string import Template
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Page(NamedTuple):
    """A page: its title, and the name of its script."""

    title: str
    script: str


PAGES: Final = {
    "/": Page("Overview", "overview"),
    "/playground": Page("Playground", "playground"),
    "/subscriptions": Page("Subscriptions", "subscriptions"),
    "/feeds": Page("Feeds", "feeds"),
    "/dead-letters": Page("Dead letters", "dead_letters"),
    "/overlay": Page("Overlay", "overlay"),
    "/login": Page("Log in", "login"),
}
# In the order of the navigation.
NAVIGATION: Final = ("/", "/playground", "/subscriptions", "/feeds", "/dead-letters", "/overlay")
FILES: Final = "/workbench/"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-cache",
}
_MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_SHELL: Final = "shell.html"
_IMPORTS: Final = re.compile(r'^import .*? from "(\.[^"]*)";$', re.MULTILINE)
_KEPT: Final = {"cache-control": "public, max-age=31536000, immutable"}


class StaticFile(NamedTuple):
    """A file as it is sent."""

    body: bytes
    media_type: str
    etag: str


def is_page(path: str) -> bool:
    """Whether a path is that of a page, or of a file that pages load."""
    return path in PAGES or path.startswith(FILES)


def workbench_routes() -> list[Route]:
    """The routes of the pages and their files."""
    pages = [Route(path, show_page, methods=["GET"]) for path in PAGES]
    return [*pages, Route(FILES + "{version}/{name:path}", show_file, methods=["GET"])]


async def show_page(request: Request) -> Response:
    """A page."""
    return _answer(request, page_of(request.url.path), {})


async def show_file(request: Request) -> Response:
    """A file that pages load. A page that an upgrade has left open asks for another version, and gets this one."""
    found = static_files().get(request.path_params["name"])
    if found is None:
        return Response("unknown file\n", 404, _HEADERS, "text/plain")
    return _answer(request, found, _KEPT if request.path_params["version"] == version() else {})


def _answer(request: Request, found: StaticFile, more: dict[str, str]) -> Response:
    headers = {**_HEADERS, "etag": found.etag, **more}
    if request.headers.get("if-none-match") == found.etag:
        return Response(status_code=304, headers=headers)
    return Response(found.body, 200, headers, found.media_type)


@cache
def static_files() -> dict[str, StaticFile]:
    """The files of the folder `static`, by their path in it."""
    return dict(_files_in(files(__package__) / "static", ""))


def _files_in(folder: Traversable, prefix: str) -> list[tuple[str, StaticFile]]:
    found: list[tuple[str, StaticFile]] = []
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        media_type = _MEDIA_TYPES.get(each.name.rpartition(".")[2])
        if each.is_dir():
            found += _files_in(each, f"{prefix}{each.name}/")
        elif media_type is not None:
            found.append((prefix + each.name, _file(each.read_bytes(), media_type)))
    return found


@cache
def version() -> str:
    """Names the content of all files."""
    every = "".join(name + found.etag for name, found in static_files().items())
    return hashlib.sha256(every.encode()).hexdigest()[:16]


def imports(script: str) -> list[str]:
    """The scripts that a script imports, and those that they import."""
    found: list[str] = []
    waiting = [script]
    while waiting:
        name = waiting.pop()
        for each in _IMPORTS.findall(static_files()[name].body.decode()):
            imported = normpath(join(dirname(name), each))
            if imported not in found:
                found.append(imported)
                waiting.append(imported)
    return sorted(found)


@cache
def page_of(path: str) -> StaticFile:
    """The HTML of a page."""
    page = PAGES[path]
    links = "\n        ".join(
        f'<li><a href="{each}"{" aria-current=page" if each == path else ""}>{escape(PAGES[each].title)}</a></li>'
        for each in NAVIGATION
    )
    shell = Template((files(__package__) / _SHELL).read_text(encoding="utf-8"))
    files_of_version, script = f"{FILES}{version()}/", f"pages/{page.script}.js"
    preloads = "\n    ".join(f'<link rel="modulepreload" href="{files_of_version}{each}">' for each in imports(script))
    html = shell.substitute(
        title=escape(page.title), script=script, links=links, files=files_of_version, preloads=preloads
    )
    return _file(html.encode(), "text/html; charset=utf-8")


def _file(body: bytes, media_type: str) -> StaticFile:
    return StaticFile(body, media_type, f'"{hashlib.sha256(body).hexdigest()[:24]}"')
