"""Every package that the project installs is pinned at the installed version, and direct ones are explained."""

import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECTS = [
    tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"] for folder in ("", "lab")
]
GROUPS = [
    group
    for project in PROJECTS
    for group in (project["dependencies"], *project.get("optional-dependencies", {}).values())
]
DIRECT = [wanted for group in GROUPS for wanted in map(Requirement, group) if wanted.name != "pathcast"]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


def brought() -> set[str]:
    """All packages, direct or not, that the project installs on this machine."""
    waiting, found = list(DIRECT), set()
    while waiting:
        wanted = waiting.pop()
        key = (canonicalize_name(wanted.name), *sorted(wanted.extras))
        if key in found:
            continue
        found.add(key)
        for text in distribution(wanted.name).requires or []:
            needed = Requirement(text)
            extras = [{"extra": extra} for extra in ("", *wanted.extras)]
            if needed.marker is None or any(needed.marker.evaluate(extra) for extra in extras):
                waiting.append(needed)
    return {name for name, *_ in found}


def test_every_package_that_is_brought_is_pinned():
    assert brought() - set(pins()) == set()


def test_no_pin_is_left_over():
    assert set(pins()) - brought() == {"setuptools"}  # what the project itself is built with


def test_what_is_installed_is_what_is_pinned():
    installed = {name: distribution(name).version for name in brought()}
    assert installed == {name: version for name, version in pins().items() if name in installed}


def test_every_direct_dependency_is_explained():
    explained = (ROOT / "docs" / "reference" / "dependencies.md").read_text(encoding="utf-8")
    assert [wanted.name for wanted in DIRECT if f"| `{wanted.name}" not in explained] == []
