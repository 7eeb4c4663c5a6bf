"""Packages import each other only through their `__init__`."""

import ast
from pathlib import Path

import pytest

import pathcast

ROOT = Path(pathcast.__file__).parent
FILES = {str(path.relative_to(ROOT)): path for path in ROOT.rglob("*.py") if not path.name.endswith("_kernels.py")}
ALONE = {"errors", "extras"}


def inner_files(path: Path) -> list[str]:
    """The files of other packages that a file imports by name."""
    own = path.relative_to(ROOT).parts[0]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("pathcast."):
            parts = (node.module or "").split(".")[1:]
            if parts[0] != own and parts[0] not in ALONE and not parts[-1].endswith("_kernels"):
                place = ROOT.joinpath(*parts)
                offered = [place.joinpath(f"{alias.name}.py").exists() for alias in node.names]
                if not place.is_dir() or any(offered):
                    found.append(node.module or "")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FILES))
def test_other_packages_are_imported_as_packages(name: str) -> None:
    assert inner_files(FILES[name]) == []


@pytest.mark.parametrize("stub", sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("__init__.pyi")))
def test_a_package_offers_nothing_under_the_name_of_one_of_its_files(stub: str) -> None:
    """An import would then find the file instead of the name that the package exports."""
    place = ROOT / stub
    beside = {path.stem for path in place.parent.iterdir()}
    names = [
        alias.name
        for node in ast.walk(ast.parse(place.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    ]
    assert not beside.intersection(names)
