"""The hash of the cache covers everything that kernels depend on."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from pathcast.kernels.compilation.kernel_cache import PACKAGE, imported_sources, kernel_sources

ROOM = PACKAGE / "kernels"
SOURCES = {str(path.relative_to(PACKAGE)): path for path in kernel_sources()}


def imports(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The modules that a file imports (modules of this package as paths from its root) and the imported names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            module = node.module or ""
            if module.startswith("pathcast."):
                yield "./" + module.removeprefix("pathcast.").replace(".", "/"), names
            elif node.level:
                folder = path.parents[node.level - 1]
                yield f"./{folder.joinpath(*module.split('.')).relative_to(PACKAGE)}", names
            else:
                yield module, names


def test_there_are_kernels() -> None:
    assert {
        "documents/expanded_name_table_kernels.py",
        "matching/table/path_trie_kernels.py",
        "kernels/compilation/kernel_compiler.py",
    } <= SOURCES.keys()


@pytest.mark.parametrize("name", [name for name in SOURCES if name.endswith("_kernels.py")])
def test_a_kernel_source_imports_only_numpy_kernels_and_other_kernel_sources(name: str) -> None:
    for module, _ in imports(SOURCES[name]):
        ours = module == "./kernels" or (module.startswith("./") and f"{module[2:]}.py" in SOURCES)
        assert ours or module in {"numpy", "typing"}, f"{name} imports {module}"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SOURCES if name.endswith("_kernels.py")])
def test_the_cache_sees_every_import_of_a_kernel_source(name: str) -> None:
    """The cache finds imports with a regular expression, which is faster than Python's parser."""
    ours = {f"{module[2:]}.py" for module, _ in imports(SOURCES[name]) if module.startswith("./")}
    known = {str(path.relative_to(PACKAGE)) for path in imported_sources(SOURCES[name])}
    assert known == ours & SOURCES.keys()


@pytest.mark.parametrize("name", [name for name in SOURCES if name.startswith("kernels/")])
def test_the_kernels_room_imports_nothing_of_the_other_rooms(name: str) -> None:
    for module, _ in imports(SOURCES[name]):
        assert not module.startswith("pathcast")
        assert not module.startswith("./") or module.startswith("./kernels")


@pytest.mark.slow
def test_kernels_and_their_parts_are_written_in_kernel_sources_only() -> None:
    makers = {"kernel", "part", "rare", "leading", "jit", "njit", "vectorize", "guvectorize", "cfunc", "intrinsic"}
    for path in PACKAGE.rglob("*.py"):
        if path not in SOURCES.values():
            for module, names in imports(path):
                room = module.startswith("./kernels") or module.partition(".")[0] == "numba"
                assert not (room and makers.intersection(names)), path
