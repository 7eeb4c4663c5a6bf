"""`pathcast run`: as a user or a script runs it, with exit status, on a master of choice and behind Spark Connect."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import pathcast
from pathcast.cli.app import app, main
from pathcast.spark.java import find_java
from pathcast.spark.versions import publish
from tests.spark.machines import short_lived

# Each starts a Spark of its own: beside the shared one, not after it.
pytestmark = pytest.mark.xdist_group("a Spark each")

PROGRAM = [
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = 'pathcast'; from pathcast.cli.app import main; main()",
    "run",
]
BATCH = """
[source]
format = "parquet"
path = "news"
schema = "number long, xml binary"
[subscriptions]
index = "index"
[deliveries]
path = "deliveries"
columns = ["number"]
[dead_letters]
path = "dead"
"""
STREAM = BATCH + '[stream]\ncheckpoint = "checkpoint"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add("//title", subscriber="ada")
    publish(subscriptions.compile(), tmp_path / "index")
    (tmp_path / "news").mkdir()
    table = pa.table(
        {"number": pa.array([1, 2], pa.int64()), "xml": pa.array([b"<a><title/></a>", b"<a>"], pa.binary())}
    )
    pq.write_table(table, tmp_path / "news" / "1.parquet")
    (tmp_path / "batch.toml").write_text(BATCH)
    (tmp_path / "stream.toml").write_text(STREAM)
    (tmp_path / "endless.toml").write_text(STREAM + 'trigger = "1 second"\n')
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    return os.environ | short_lived(folder / "settings")


def delivered(folder: Path) -> list[tuple[int, str]]:
    return [(row["number"], row["subscriber"]) for row in pq.read_table(folder / "deliveries").to_pylist()]


def test_it_runs_behind_connect(folder):
    command = [*PROGRAM, "stream.toml", "--remote", "local[2]"]
    answer = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False, timeout=150
    )
    assert answer.returncode == 0, answer.stderr
    assert delivered(folder) == [(1, "ada")]
    assert [row["number"] for row in pq.read_table(folder / "dead").to_pylist()] == [2]
    lines = answer.stdout.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("batch 0:")
    assert "1 matches, 1 dead letters" in lines[0]
    assert "Traceback" not in answer.stderr
    assert "Failed to set" not in answer.stderr


def test_spark_submit_runs_it_with_its_exit_status(folder, request):
    if not request.config.getoption("--long"):
        pytest.skip("two more Sparks: --long")
    text = (Path(__file__).parents[2] / "docs" / "pipeline.md").read_text(encoding="utf-8")
    (folder / "run.py").write_text(text.partition("`run.py` is\n\n```python\n")[2].partition("```")[0])
    settings = environment(folder)
    submit = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]", "run.py"]

    def submitted(file: str) -> subprocess.CompletedProcess[str]:
        named = settings | {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(find_java().home)}
        return subprocess.run(
            [*submit, file], cwd=folder, env=named, capture_output=True, text=True, check=False, timeout=100
        )

    answer = submitted("stream.toml")
    assert answer.returncode == 0, answer.stderr[-5000:]
    assert answer.stdout.startswith("batch 0: 2 documents, 1 matches, 1 dead letters")
    assert delivered(folder) == [(1, "ada")]
    (folder / "stream.toml").write_text(STREAM.replace("schema", "shema"))
    assert submitted("stream.toml").returncode == 2


def test_it_runs_on_a_master_and_ctrl_c_stops_a_stream_cleanly(folder):
    with subprocess.Popen(
        [*PROGRAM, "endless.toml", "--master", "local[2]"],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as running:
        try:
            assert first_line(running, 150).startswith("batch 0:")
            os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to every process of the group
            out, errors = (text.decode() for text in running.communicate(timeout=60))
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 130, errors
    assert out == ""
    assert "stopped; run it again to go on" in errors
    assert "Traceback" not in errors
    assert nobody_left(running.pid)
    assert delivered(folder) == [(1, "ada")]


def first_line(running: "subprocess.Popen[bytes]", seconds: float) -> str:
    """The first line of a program's output; what it printed until then if none comes in time."""
    assert running.stdout is not None
    deadline = time.monotonic() + seconds
    said = b""
    while b"\n" not in said:
        ready, _, _ = select.select([running.stdout], [], [], max(0, deadline - time.monotonic()))
        more = os.read(running.stdout.fileno(), 4096) if ready else b""
        if not more:
            break
        said += more
    return said.decode()


def nobody_left(group: int) -> bool:
    """Whether all processes of a group end within a few seconds."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_a_dry_run_prints_the_plan_and_starts_nothing(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    answer = CliRunner().invoke(app, ["run", str(folder / "stream.toml"), "--dry-run"])
    assert answer.exit_code == 0
    assert f"index         {folder}/index, version 1\n" in answer.output
    assert not (folder / "checkpoint").exists()


def test_folders_with_rows_of_others_are_refused_before_spark_starts(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    (folder / "deliveries").mkdir()
    (folder / "deliveries" / "part-0.parquet").touch()
    for more in ([], ["--dry-run"]):
        monkeypatch.setattr(sys, "argv", ["pathcast", "run", str(folder / "stream.toml"), *more])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 2
        assert f"deliveries.path: {folder}/deliveries holds rows" in capsys.readouterr().err
    assert not (folder / "checkpoint").exists()


def test_a_file_that_is_wrong_has_status_2_and_is_told_with_its_line(folder, monkeypatch, capsys):
    (folder / "batch.toml").write_text(BATCH.replace("schema", "shema"))
    monkeypatch.setattr(sys, "argv", ["pathcast", "run", str(folder / "batch.toml")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    expected = f"error: {folder}/batch.toml, line 5: source.shema: there is no such key; did you mean schema?\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("place", ["deliveries", "dead"])
def test_a_batch_that_would_find_something_where_it_writes_is_told_before_anything_starts(folder, place, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    (folder / place).mkdir()
    answer = CliRunner().invoke(app, ["run", str(folder / "batch.toml"), "--dry-run"])
    assert isinstance(answer.exception, pathcast.PipelineError)
    assert f"there is something at {folder / place} already; remove it, or give" in str(answer.exception)
    kept = BATCH.replace('columns = ["number"]\n', 'columns = ["number"]\nmode = "append"\n') + 'mode = "append"\n'
    (folder / "batch.toml").write_text(kept)
    assert CliRunner().invoke(app, ["run", str(folder / "batch.toml"), "--dry-run"]).exit_code == 0
    assert CliRunner().invoke(app, ["run", str(folder / "stream.toml"), "--dry-run"]).exit_code == 0


def test_a_master_and_a_remote_are_one_too_many(folder):
    answer = CliRunner().invoke(app, ["run", str(folder / "batch.toml"), "--master", "a", "--remote", "b"])
    assert answer.exit_code == 2
    assert "--master or --remote" in answer.output


def test_a_connect_server_that_nobody_runs_is_told_at_once(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    answer = CliRunner().invoke(app, ["run", str(folder / "batch.toml"), "--remote", f"sc://127.0.0.1:{port}"])
    assert answer.exit_code == 1
    assert f"no Spark Connect server answers at 127.0.0.1:{port}: Connection refused" in answer.output


def test_a_connect_server_has_a_port_that_is_a_number(folder):
    answer = CliRunner().invoke(app, ["run", str(folder / "batch.toml"), "--remote", "sc://here:there"])
    assert answer.exit_code == 2
    assert "error: --remote sc://here:there: Port could not be cast to integer value" in answer.output


@pytest.mark.parametrize(
    ("option", "url"), [("--master", "here"), ("--master", "local[4"), ("--remote", "here:15002")], ids=str
)
def test_a_url_of_no_spark_is_refused_before_anything_starts(folder, option, url):
    answer = CliRunner().invoke(app, ["run", str(folder / "batch.toml"), option, url])
    assert answer.exit_code == 2
    assert f"error: {option} {url}: give " in answer.output
