"""YFilter's Java program as a rival: what it writes is read and compared. Here a stand-in for `java` runs."""

import shlex
import sys
from pathlib import Path

import pytest

from pathcast_lab.engine import matching_experiments
from pathcast_lab.engine.yfilter_program import run_yfilter
from pathcast_lab.harness import CheckError, RivalError, find, perform

PATHS = ["/a", "/a/b", "//b/c", "/a//d"]
DOCUMENTS = [b"<a/>", b"<a><b><c/></b></a>", b"<x>\n<b/></x>"]
MATCHES = [[1], [1, 2, 3], []]


@pytest.fixture
def classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of classes, and a Java that runs the stand-in."""
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    stand_in = Path(__file__).with_name("naive_yfilter.py")
    java.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(stand_in))} "$@"\n')
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "classes").mkdir()
    return tmp_path / "classes"


def test_its_answers_and_the_time_of_its_last_pass_are_read(classes: Path) -> None:
    found = run_yfilter(classes, PATHS, DOCUMENTS, passes=2)
    assert found.matches == MATCHES
    assert found.seconds == pytest.approx(3 * (0.001 + 0.004))


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("fails", "ended with status 1; it wrote: java.lang.OutOfMemoryError"),
        ("silent", "has not written result.txt; is it YFilter 1.0?"),
        ("skips", "has no result for document 1 in result.txt"),
        ("varies", "finds something else for document 1 each time"),
        ("untimed", "has not a time for each document in performance.txt"),
    ],
)
def test_a_program_that_goes_wrong_is_an_error(classes: Path, fault: str, reason: str) -> None:
    (classes / "fault").write_text(fault)
    with pytest.raises(RivalError, match=reason):
        run_yfilter(classes, PATHS, DOCUMENTS, passes=2)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RivalError, match="does not exist; give a folder of classes with --rival yfilter="):
        run_yfilter(tmp_path / "nowhere", PATHS, DOCUMENTS)


def test_without_java_it_cannot_run(classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "empty"))
    with pytest.raises(RivalError, match="rival 'yfilter' needs Java; set JAVA_HOME, or put java on the path"):
        run_yfilter(classes, PATHS, DOCUMENTS)


@pytest.fixture
def few_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The experiment on a few generated documents and paths; returns its changes."""
    monkeypatch.setenv("PATHCAST_DATA", str(tmp_path))
    monkeypatch.setattr(matching_experiments, "_DISTINCT", 40)
    return ["sizes=40,80", "selective=10", "documents=6", "rounds=1"]


def test_it_takes_part_in_the_experiment_on_the_engine(classes: Path, few_paths: list[str]) -> None:
    (experiment,) = find(["engine"])
    result = perform(experiment, changes=few_paths, rivals={"yfilter": str(classes)})
    rows = result.rows.where(series="YFilter 1.0")
    assert [(row["workload"], row["subscriptions"]) for row in rows] == [("paths", 40), ("selective paths", 10)]
    assert rows.numbers("us") == pytest.approx([5000, 5000])
    assert "YFilter 1.0 finds what ours finds" in result.checks


def test_a_wrong_answer_of_its_own_ends_the_experiment(classes: Path, few_paths: list[str]) -> None:
    (classes / "fault").write_text("misses")
    (experiment,) = find(["engine"])
    with pytest.raises(CheckError, match="YFilter 1.0 finds what ours finds: event "):
        perform(experiment, changes=few_paths, rivals={"yfilter": str(classes)})
