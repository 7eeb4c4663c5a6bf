import ast
import gc
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from pathcast_lab.engine.subscription_change_experiments import engine_changes
from pathcast_lab.harness import source_version
from pathcast_lab.harness.source_version import code_version, exercised, source_hash

FILES = {
    "pathcast/__init__.py": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from pathcast.lazy import Thing
    from . import unused
def __getattr__(name): ...
""",
    "pathcast/lazy/__init__.py": "import lazy_loader",
    "pathcast/lazy/__init__.pyi": "from .thing import Thing as Thing\nfrom .other import Other as Other",
    "pathcast/lazy/thing.py": "class Thing: ...",
    "pathcast/lazy/other.py": "class Other: ...",
    "pathcast/unused.py": "",
    "pathcast/engine.py": "ENGINES = {'fast': ('pathcast.named', 'Fast')}",
    "pathcast/named.py": "",
    "pathcast/typed.py": "",
    "pathcast_lab/__init__.py": "",
    "pathcast_lab/harness/__init__.py": (
        "from .publishing.markdown_report import render\nfrom .rival_timing import race"
    ),
    "pathcast_lab/harness/publishing/__init__.py": "",
    "pathcast_lab/harness/publishing/markdown_report.py": "",
    "pathcast_lab/harness/rival_timing.py": "",
    "pathcast_lab/toy.py": """
from typing import TYPE_CHECKING
from .harness import race
if TYPE_CHECKING:
    from pathcast import typed
def measure():
    import pathcast
    from pathcast import engine
    pathcast.Thing()
""",
}
TOY = "pathcast_lab.toy"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(source_version, "_roots", lambda: {name: tmp_path / name for name in source_version.PACKAGES})
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    for function in ("_file", "_imported", "_resolved", "_lazy_names", "_code_hash", "_imports_hash"):
        getattr(source_version, function).cache_clear()


def test_what_functions_stubs_attributes_and_text_name_is_exercised(tree: Path) -> None:
    assert exercised(TOY) == {
        "pathcast", "pathcast.engine", "pathcast.named", "pathcast.lazy", "pathcast.lazy.thing",
        "pathcast_lab", TOY, "pathcast_lab.harness", "pathcast_lab.harness.rival_timing",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("pathcast_lab/toy.py", True),
        ("pathcast/lazy/thing.py", True),
        ("pathcast/named.py", True),
        ("pathcast_lab/harness/rival_timing.py", True),
        ("pathcast/lazy/other.py", False),
        ("pathcast/typed.py", False),
        ("pathcast/unused.py", False),
        ("pathcast_lab/harness/publishing/markdown_report.py", False),
    ],
)
def test_the_hash_changes_with_the_sources_that_are_exercised_alone(tree: Path, file: str, changes: bool) -> None:
    before = source_hash(TOY)
    with (tree / file).open("a") as text:
        text.write("\nanother = 1\n")
    forget()
    assert (source_hash(TOY) != before) is changes


SOURCE = '''
"""What it is."""

# a remark
SQL = """
# not a remark

"""
CLAIM = Claim("fast", judge, reason="It is not.")
OTHER = Claim("small", "target", judge, "1 MB", "Names are long.")


def measure():
    """How it is measured."""
    if not CLAIM:
        raise ValueError(
            f"no claim in {OTHER}; "
            "add one"
        )
    return "fast"
'''


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("What it is.", "What it is,\nin many\n\nwords.", False),
        ("# a remark\n", "", False),
        ("# a remark", "# a remark\n# of two lines\n", False),
        ("How it is measured.", "How we measure.\n    ", False),
        ("It is not.", "It is slower.", False),
        ('"It is not."', '"It is "\n  "slower."', False),
        ("Names are long.", "Paths are long.", False),
        ("no claim in {", "the claim is missing from {", False),
        ('; "\n            "add one"\n        ', '; add it"', False),
        ("if not CLAIM", "if CLAIM", True),
        ("1 MB", "2 MB", True),
        ("# not a remark", "# a line of text", True),
        ('remark\n\n"', 'remark\n"', True),
        ('"fast", judge', '"slow", judge', True),
        ('return "fast"', 'return "slow"', True),
    ],
)
def test_texts_that_explain_leave_the_hash_alone(tree: Path, before: str, after: str, changes: bool) -> None:
    assert before in SOURCE
    (tree / "pathcast_lab/toy.py").write_text(SOURCE)
    hashed = source_hash(TOY)
    (tree / "pathcast_lab/toy.py").write_text(SOURCE.replace(before, after))
    forget()
    assert (source_hash(TOY) != hashed) is changes


RENAMED = {
    "pathcast/lazy/thing.py": (
        "pathcast/lazy/deep/object.py",
        "pathcast/lazy/__init__.pyi",
        ".thing ",
        ".deep.object ",
    ),
    "pathcast/named.py": ("pathcast/called.py", "pathcast/engine.py", "pathcast.named", "pathcast.called"),
    "pathcast/engine.py": ("pathcast/motor.py", "pathcast_lab/toy.py", "import engine", "import motor"),
}


@pytest.mark.parametrize("file", RENAMED)
def test_a_module_that_is_renamed_leaves_the_hash_alone_if_its_name_is_not_used(tree: Path, file: str) -> None:
    renamed, user, before, after = RENAMED[file]
    for text in RENAMED:
        with (tree / text).open("a") as code:
            code.write(f"\nNUMBER = {len(text)}\n")
    hashed = source_hash(TOY)
    (tree / renamed).parent.mkdir(exist_ok=True)
    (tree / renamed).parent.joinpath("__init__.py").touch()
    (tree / file).rename(tree / renamed)
    text = (tree / user).read_text()
    assert before in text
    (tree / user).write_text(text.replace(before, after))
    forget()
    assert (source_hash(TOY) != hashed) is ("import" in after)


def test_the_code_that_an_import_loads_counts(tree: Path) -> None:
    """Even if both modules are exercised before and after."""
    (tree / "pathcast/quick.py").write_text("def match(): return 1")
    (tree / "pathcast/slow.py").write_text("def match(): return 2")
    both = "from pathcast import quick, slow\n"
    (tree / "pathcast_lab/toy.py").write_text(both + "from pathcast.quick import match")
    quick = source_hash(TOY)
    (tree / "pathcast_lab/toy.py").write_text(both + "from pathcast.slow import match")
    forget()
    assert source_hash(TOY) != quick


def test_a_module_that_is_not_ours_has_no_hash() -> None:
    assert source_hash("tests.lab.conftest") is None


def test_an_experiment_exercises_the_engines_that_it_names_as_text() -> None:
    found = exercised("pathcast_lab.gpx.gpx_figure_experiments")
    assert {"pathcast.literature.gpx", "pathcast.literature.yfilter", "pathcast_lab.gpx.gpx_workloads"} <= found
    assert not [name for name in found if name.startswith(("pathcast.spark", "pathcast_lab.harness.publishing"))]


def test_the_version_is_that_of_the_checkout_or_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_version, "CHECKOUT", tmp_path)
    from pathcast import __version__

    assert code_version() == __version__


def test_no_syntax_tree_stays_for_the_collector_to_scan() -> None:
    forget()
    assert source_hash("pathcast_lab.engine.subscription_change_experiments")
    trees = [each for each in gc.get_objects() if isinstance(each, ast.Module)]
    assert inspect.getdoc(engine_changes) not in [ast.get_docstring(each) for tree in trees for each in functions(tree)]


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [each for each in tree.body if isinstance(each, ast.FunctionDef)]
