"""Functions stay short enough to read: at most 10 parameters, except commands, and 80 lines without the docstring."""

import ast
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "pathcast"
MOST_LINES = 80
MOST_PARAMETERS = 10


def functions(source: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    count = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        assert docstring.end_lineno is not None
        count -= docstring.end_lineno - docstring.lineno + 1
    return count


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    named = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return sum(each.arg not in {"self", "cls"} for each in named)


@pytest.mark.parametrize("package", sorted(each.name for each in SOURCES.iterdir() if (each / "__init__.py").exists()))
def test_no_function_is_too_long_or_takes_too_much(package: str) -> None:
    too_large = []
    for path in sorted((SOURCES / package).rglob("*.py")):
        for function in functions(path.read_text(encoding="utf-8")):
            of = f"{path.relative_to(SOURCES)}: {function.name}"
            if (lines := lines_of(function)) > MOST_LINES:
                too_large.append(f"{of} has {lines} lines; split it")
            if package != "cli" and (parameters := parameters_of(function)) > MOST_PARAMETERS:
                too_large.append(f"{of} has {parameters} parameters; group those that belong together")
    assert not too_large, "\n".join(too_large)


def test_the_counts() -> None:
    (function,) = functions('def f(self, a, *, b):\n    """Do\n    it.\n    """\n    return a\n')
    assert (lines_of(function), parameters_of(function)) == (2, 2)
