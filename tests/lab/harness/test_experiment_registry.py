import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pathcast_lab.harness import Row, Run, UnknownExperimentError, experiment, experiments, find
from pathcast_lab.harness import experiment_registry as registry


@dataclass(frozen=True)
class Nothing:
    """No parameters."""


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    experiments()  # imports the room's own, which then stay out of the way
    monkeypatch.setattr(registry, "_registry", {})
    for name in ("gpx-distinct", "gpx-wildcards", "engine"):
        register(name)


def register(name: str) -> None:
    @experiment(name, title=f"About {name}", small=Nothing(), paper=Nothing())
    def measure(run: Run, parameters: Nothing) -> Iterator[Row]:
        """Nothing is measured."""
        yield {}


def test_the_decorator_registers_and_leaves_the_function_callable() -> None:
    [found] = find(["engine"])
    assert (found.name, found.title, found.method) == ("engine", "About engine", "Nothing is measured.")
    assert found.parameters == {"small": Nothing(), "paper": Nothing()}


def test_the_rooms_own_experiments_are_found_without_being_named_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert "reading" in [one.name for one in experiments()]


def test_every_file_that_has_an_experiment_is_one_that_the_registry_imports() -> None:
    having = [
        file.relative_to(registry.LABORATORY)
        for file in registry.LABORATORY.glob("**/*.py")
        if re.search(r"^@?( {4})?experiment\(", file.read_text(), re.MULTILINE)
    ]
    assert having
    assert [file for file in having if not file.match("*/*_experiments.py")] == []


def test_listing_imports_no_heavy_package() -> None:
    heavy = ("numba", "numpy", "pyarrow", "pyspark", "matplotlib", "duckdb", "lxml", "networkx", "sqlglot", "zstandard")
    script = f"""
import contextlib, io, json, sys
from pathcast_lab.command import app

with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
    app(["list"])
assert "--scale paper" in out.getvalue()
print(json.dumps([name for name in {heavy!r} if name in sys.modules]))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_experiments_are_listed_by_name() -> None:
    assert [one.name for one in experiments()] == ["engine", "gpx-distinct", "gpx-wildcards"]


def test_names_may_hold_wildcards_and_each_experiment_runs_once() -> None:
    names = [one.name for one in find(["gpx-w*", "engine", "gpx-*"])]
    assert names == ["gpx-wildcards", "engine", "gpx-distinct"]


def test_an_unknown_name_gives_the_near_ones() -> None:
    with pytest.raises(UnknownExperimentError, match="unknown experiment 'gpx-distnct'; did you mean gpx-distinct"):
        find(["engine", "gpx-distnct"])


def test_a_name_that_resembles_nothing_gives_all() -> None:
    with pytest.raises(UnknownExperimentError, match="the experiments are engine, gpx-distinct, gpx-wildcards"):
        find(["zzz"])


def test_two_experiments_cannot_share_a_name() -> None:
    with pytest.raises(ValueError, match="two experiments are named 'engine'"):
        register("engine")
