"""Which code a result was measured with: the version of the checkout, and a hash of the sources that were exercised.

`source_hash(module)` covers the file of the experiment, and every file of `pathcast` and `pathcast_lab` that it
imports, directly or not, inside functions too. Imports for type checkers do not count. Three ways of importing that a
plain import graph does not show are followed as well: names that a package loads on first use (its `.pyi` stub, or the
imports for type checkers in its `__init__`, say where a name comes from); attributes of an imported package
(`pathcast.Subscriptions`); and text that names a module, as the registry of engines has it.

What only explains a figure does not count: files of the harness that store or present results, docstrings, lines of
comments, blank lines, the reasons that claims give, and the errors that are raised. Nor do the names and places of
files: an import counts as the code that it loads, so a figure stays current when a module is renamed.

Invariant: the hash depends on texts of files alone, not on their names, Python's version or the checkout's place.
Cost: each file is parsed twice per process (a package without a stub three times), some 5 ms; an experiment reaches up
to some 500 files.
"""

import ast
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from .external_data_folder import CHECKOUT

PACKAGES = ("pathcast", "pathcast_lab")
PRESENTATION = tuple(
    f"pathcast_lab.harness.{name}" for name in ("experiment_result", "publishing", "result_archive", "source_version")
)


def code_version() -> str:
    """`git describe` of the checkout, or the version of the installed package."""
    if (CHECKOUT / ".git").exists():
        command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--tags", "--dirty"]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        if asked.stdout.strip():
            return asked.stdout.strip()
    from pathcast import __version__

    return __version__


def source_hash(module: str) -> str | None:
    """The hash of all sources that a module exercises, as 16 hexadecimal digits; None for a module without a file."""
    if _file(module) is None:
        return None
    digest = sha256()
    for code in sorted({_code_hash(name) + _imports_hash(name) for name in exercised(module)}):
        digest.update(code)
    return digest.hexdigest()[:16]


@cache
def _imports_hash(module: str) -> bytes:
    """The hash of the names that a module imports from ours, each with the code that it comes from."""
    digest = sha256()
    for each in _statements(_tree(module), module):
        digest.update(f"{each.name if _is_ours(each.module) else each}\n".encode())
        loaded = (name for name in _resolved(*each) if not name.startswith(PRESENTATION))
        for code in sorted(map(_code_hash, loaded)):
            digest.update(code)
    return digest.digest()


@cache
def _code_hash(module: str) -> bytes:
    """The hash of a module's text without its imports and what only explains it."""
    file = _file(module)
    assert file is not None
    source = file.read_bytes()
    tree = ast.parse(source)
    left_out = list(_left_out(tree))
    quoted = set(_continued(tree, left_out))
    lines = source.splitlines()
    for text in reversed(left_out):
        first, last = text.lineno - 1, (text.end_lineno or text.lineno) - 1
        lines[first : last + 1] = [
            lines[first][: text.col_offset] + lines[last][text.end_col_offset :],
            *[b""] * (last - first),
        ]
    kept = (line for at, line in enumerate(lines) if at in quoted or line.strip()[:1] not in (b"", b"#"))
    return sha256(b"\n".join(kept)).digest()


def _left_out(tree: ast.Module) -> Iterator[ast.stmt | ast.expr]:
    """Imports, text that names modules, and explanations, in the order of the text; none lies in another."""
    found: list[ast.stmt | ast.expr] = [*_explaining(tree)]
    for node in ast.walk(tree):
        names_modules = isinstance(node, ast.Constant) and _names_a_module(node.value)
        if names_modules or isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)  # type: ignore[arg-type]
    end = (0, 0)
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
        if (node.lineno, node.col_offset) >= end:
            yield node
            end = (node.end_lineno or node.lineno, node.end_col_offset or 0)


def _explaining(tree: ast.Module) -> list[ast.expr]:
    """Docstrings, reasons of claims and the errors of `raise`."""
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found += [first.value for first in node.body[:1] if isinstance(first, ast.Expr)]
        elif isinstance(node, ast.Call):
            found += [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
            if isinstance(node.func, ast.Name) and node.func.id == "Claim":
                found += node.args[4:5]
    texts = [each for each in found if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return [*texts, *(node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None)]


def _continued(tree: ast.Module, left_out: Iterable[ast.AST]) -> Iterator[int]:
    """The lines, counted from 0, that continue other text from an earlier line."""
    gone = {part for node in left_out for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node not in gone:
            yield from range(node.lineno, node.end_lineno or node.lineno)


def exercised(module: str) -> set[str]:
    """The module and all modules of our packages that it imports, directly or not, but for those of presentation."""
    found: set[str] = set()
    coming = [module]
    while coming:
        name = coming.pop()
        if name in found or name.startswith(PRESENTATION):
            continue
        found.add(name)
        coming.extend(_imported(name))
    return found


class _Import(NamedTuple):
    """`from module import name`; the name `*` stands for all names, an empty one for the module alone."""

    module: str
    name: str


@cache
def _imported(module: str) -> frozenset[str]:
    """The modules that a module imports itself, with the packages that they lie in."""
    found: set[str] = set()
    for each in _statements(_tree(module), module):
        found.update(_resolved(*each))
    return frozenset(_with_packages(found))


def _with_packages(modules: Iterable[str]) -> Iterator[str]:
    for module in modules:
        parts = module.split(".")
        yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


@cache
def _resolved(module: str, name: str) -> frozenset[str]:
    """The modules that `from module import name` loads."""
    if not _is_ours(module) or _file(module) is None:
        return frozenset()
    if name and _file(f"{module}.{name}") is not None:
        return frozenset({f"{module}.{name}"})
    found = {module}
    for asked, origin in _lazy_names(module):
        if name in {asked, "*"}:
            found |= _resolved(origin.module, origin.name)
    return frozenset(found)


@cache
def _lazy_names(package: str) -> tuple[tuple[str, _Import], ...]:
    """The names that a package loads on first use, and where each comes from."""
    file = _file(package)
    if file is None or file.name != "__init__.py":
        return ()
    stub = file.with_suffix(".pyi")
    tree = ast.parse(stub.read_bytes()) if stub.is_file() else _for_type_checkers(_tree(package))
    return tuple(
        (alias.asname or alias.name, _Import(_absolute(node, package, is_package=True), alias.name))
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    )


def _for_type_checkers(tree: ast.Module) -> ast.Module:
    body = [one for node in ast.walk(tree) if _is_type_checking(node) for one in node.body]  # type: ignore[attr-defined]
    return ast.Module(body=body, type_ignores=[])


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _statements(tree: ast.Module, module: str) -> Iterator[_Import]:
    """The imports of a module, anywhere in the file."""
    file = _file(module)
    is_package = file is not None and file.name == "__init__.py"
    aliases: dict[str, str] = {}
    attributes: list[tuple[str, str]] = []
    for node in _executed(tree):
        if isinstance(node, ast.ImportFrom):
            origin = _absolute(node, module, is_package=is_package)
            for alias in node.names:
                yield _Import(origin, alias.name)
                aliases[alias.asname or alias.name] = f"{origin}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield _Import(alias.name, "")
                aliases[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            attributes.append((node.value.id, node.attr))
        elif isinstance(node, ast.Constant) and _names_a_module(node.value):
            yield _Import(str(node.value), "*")
    for alias_name, attribute in attributes:
        if _is_ours(origin := aliases.get(alias_name, "")):
            yield _Import(origin, attribute)


def _names_a_module(value: object) -> bool:
    return isinstance(value, str) and "." in value and _is_ours(value)


def _executed(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of a tree without imports for type checkers."""
    coming: list[ast.AST] = [tree]
    while coming:
        node = coming.pop()
        yield node
        coming.extend(child for child in ast.iter_child_nodes(node) if not _is_type_checking(child))


def _absolute(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in PACKAGES and " " not in module


def _tree(module: str) -> ast.Module:
    """The syntax tree of a module; not kept, since Python's collector would scan its nodes during the experiment."""
    file = _file(module)
    assert file is not None
    return ast.parse(file.read_bytes())


@cache
def _roots() -> dict[str, Path]:
    specs = {package: find_spec(package) for package in PACKAGES}
    return {package: Path(spec.origin).parent for package, spec in specs.items() if spec and spec.origin}


@cache
def _file(module: str) -> Path | None:
    """The file of one of our modules, without importing it."""
    package, _, rest = module.partition(".")
    root = _roots().get(package)
    if root is None or not all(part.isidentifier() for part in module.split(".")):
        return None
    place = root.joinpath(*rest.split(".")) if rest else root
    for file in (place / "__init__.py", place.with_suffix(".py")):
        if file.is_file():
            return file
    return None
