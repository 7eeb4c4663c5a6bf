"""`pathcast run`: as a user or a script runs it, with exit status, on a chosen master and through Spark Connect."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import pathcast
from pathcast.cli.app import app, main
from pathcast.spark.publishing.index_versions import publish
from pathcast.spark.sessions.java_installation import find_java
from tests.spark.machines import CTRL_C_WORKS, MINUTES, short_lived

# Each starts its own Spark: in parallel to the shared one, not after it.
pytestmark = pytest.mark.xdist_group("a Spark each")

PROGRAM = [sys.executable, "-c", f"{CTRL_C_WORKS}; from pathcast.cli.app import main; main()", "run"]
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
    write_news(tmp_path, {1: b"<a><title/></a>", 2: b"<a>"})
    (tmp_path / "batch.toml").write_text(BATCH)
    (tmp_path / "stream.toml").write_text(STREAM)
    (tmp_path / "endless.toml").write_text(STREAM + 'trigger = "1 second"\n')
    return tmp_path


def write_news(folder: Path, documents: dict[int, bytes]) -> None:
    table = pa.table(
        {"number": pa.array(documents, pa.int64()), "xml": pa.array(list(documents.values()), pa.binary())}
    )
    pq.write_table(table, folder / "news" / f"{min(documents)}.parquet")


def environment(folder: Path) -> dict[str, str]:
    return os.environ | short_lived(folder / "settings")


def delivered(folder: Path) -> list[tuple[int, str]]:
    return sorted((row["number"], row["subscriber"]) for row in pq.read_table(folder / "deliveries").to_pylist())


@pytest.mark.slow
def test_it_runs_behind_connect(folder):
    command = [*PROGRAM, "stream.toml", "--remote", "local[2]"]
    answer = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False, timeout=MINUTES
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
    text = (Path(__file__).parents[2] / "docs" / "guides" / "pipeline.md").read_text(encoding="utf-8")
    (folder / "run.py").write_text(text.partition("`run.py` is\n\n```python\n")[2].partition("```")[0])
    settings = environment(folder)
    submit = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]", "run.py"]

    def submitted(file: str) -> subprocess.CompletedProcess[str]:
        named = settings | {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(find_java().home)}
        return subprocess.run(
            [*submit, file], cwd=folder, env=named, capture_output=True, text=True, check=False, timeout=MINUTES
        )

    answer = submitted("stream.toml")
    assert answer.returncode == 0, answer.stderr[-5000:]
    # spark-submit writes what the script sends to standard error to standard output.
    starting, batch = answer.stdout.splitlines()
    assert starting == "starting Spark …"
    assert batch.startswith("batch 0: 2 documents, 1 matches, 1 dead letters")
    assert delivered(folder) == [(1, "ada")]
    (folder / "stream.toml").write_text(STREAM.replace("schema", "shema"))
    assert submitted("stream.toml").returncode == 2


@pytest.mark.slow
def test_whatever_ends_a_stream_is_told_in_a_line_and_the_next_run_goes_on(folder):
    settings = environment(folder)
    checkpoint = folder / "checkpoint"
    with started(folder, settings) as running:
        wait_for((checkpoint / "offsets" / "0").exists, running)
        for _ in range(2):  # as `timeout` does: to the command, then to its group
            os.killpg(running.pid, signal.SIGTERM)
        errors = errors_of(running, folder)
        assert running.returncode == 143, errors
        assert own_lines(errors)[-2:] == ["stopping …", "stopped; run the pipeline again to continue"], errors
        assert "Traceback" not in errors and " ERROR " not in errors
        assert nobody_left(running.pid)

    write_news(folder, {3: b"<a><title/></a>"})
    with started(folder, settings) as running:
        wait_for((checkpoint / "offsets" / "1").exists, running)
        os.kill(java_of(running.pid), signal.SIGKILL)
        errors = errors_of(running, folder)
        assert running.returncode == 1, errors
        told = "error: Spark's JVM ended unexpectedly (killed by SIGKILL); the checkpoint is intact: run the pipeline"
        assert own_lines(errors)[-1].startswith(told), errors
        assert "Traceback" not in errors
        assert nobody_left(running.pid)

    with started(folder, settings) as running:
        wait_for((checkpoint / "commits" / "1").exists, running)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to every process of the group
        errors = errors_of(running, folder)
        assert running.returncode == 130, errors
        assert own_lines(errors)[-2:] == ["stopping …", "stopped; run the pipeline again to continue"], errors
        assert "Traceback" not in errors
        assert nobody_left(running.pid)
    assert delivered(folder) == [(1, "ada"), (3, "ada")]
    assert [row["number"] for row in pq.read_table(folder / "dead").to_pylist()] == [2]


@pytest.mark.slow
def test_sigterm_while_spark_starts_is_heeded_when_it_is_up(folder):
    with started(folder, environment(folder)) as running:
        wait_for(lambda: "starting Spark …" in (folder / "errors").read_text(encoding="utf-8"), running)
        os.killpg(running.pid, signal.SIGTERM)
        errors = errors_of(running, folder)
        assert running.returncode == 143, errors
        assert own_lines(errors)[-1] == "stopped; run the pipeline again to continue", errors
        assert "Traceback" not in errors
        assert nobody_left(running.pid)
    assert not (folder / "checkpoint").exists()


@contextmanager
def started(folder: Path, settings: dict[str, str]) -> "Iterator[subprocess.Popen[bytes]]":
    """An endless stream in its own process group, which ends with the block."""
    command = [*PROGRAM, "endless.toml", "--master", "local[2]"]
    with (folder / "output").open("wb") as output, (folder / "errors").open("wb") as errors:
        running = subprocess.Popen(
            command, cwd=folder, env=settings, stdout=output, stderr=errors, start_new_session=True
        )
        try:
            yield running
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()


def wait_for(condition: Callable[[], bool], running: "subprocess.Popen[bytes]") -> None:
    """Wait for an action of a program; far longer than it takes on a busy machine."""
    deadline = time.monotonic() + MINUTES
    while not condition():
        assert running.poll() is None, f"ended with status {running.returncode}"
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def errors_of(running: "subprocess.Popen[bytes]", folder: Path) -> str:
    """Everything that a program has printed on stderr when it has ended."""
    running.wait(MINUTES)
    return (folder / "errors").read_text(encoding="utf-8")


def own_lines(errors: str) -> list[str]:
    """Without Spark's warning that a batch took longer than the trigger's interval, which comes on a busy machine."""
    return [line for line in errors.splitlines() if "WARN ProcessingTimeExecutor: Current batch is falling" not in line]


def java_of(pid: int) -> int:
    """The Java that a process has started."""
    table = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout
    rows = (line.split(maxsplit=2) for line in table.splitlines())
    (java,) = (int(child) for child, parent, name in rows if int(parent) == pid and name.endswith("java"))
    return java


def nobody_left(group: int) -> bool:
    """Whether all processes of a group end."""
    deadline = time.monotonic() + MINUTES
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_spark_starts_where_pyspark_installs_no_handler_of_its_own(folder, monkeypatch, capsys):
    threads: list[bool] = []

    def session(*_: object, **__: object) -> None:
        threads.append(threading.current_thread() is threading.main_thread())
        raise pathcast.PipelineError("Spark did not start: no reason")

    monkeypatch.setattr("pathcast.spark.session", session)
    monkeypatch.setattr("pathcast.spark.sessions.running", lambda: None)
    monkeypatch.setattr(sys, "argv", ["pathcast", "run", str(folder / "stream.toml")])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert capsys.readouterr().err == "starting Spark …\nerror: Spark did not start: no reason\n"
    assert threads == [False]


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
    expected = f"error: {folder}/batch.toml, line 5: source.shema: unknown key; did you mean schema?\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("place", ["deliveries", "dead"])
def test_a_batch_that_would_find_something_where_it_writes_is_told_before_anything_starts(folder, place, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    (folder / place).mkdir()
    answer = CliRunner().invoke(app, ["run", str(folder / "batch.toml"), "--dry-run"])
    assert isinstance(answer.exception, pathcast.PipelineError)
    assert f"{folder / place} already exists; remove it, or set" in str(answer.exception)
    kept = BATCH.replace('columns = ["number"]\n', 'columns = ["number"]\nmode = "append"\n') + 'mode = "append"\n'
    (folder / "batch.toml").write_text(kept)
    assert CliRunner().invoke(app, ["run", str(folder / "batch.toml"), "--dry-run"]).exit_code == 0
    assert CliRunner().invoke(app, ["run", str(folder / "stream.toml"), "--dry-run"]).exit_code == 0


def test_a_master_and_a_remote_are_one_too_many(folder):
    answer = CliRunner().invoke(app, ["run", str(folder / "batch.toml"), "--master", "a", "--remote", "b"])
    assert answer.exit_code == 2
    assert "--master a and --remote b cannot be combined; give only one of them" in answer.output


def test_a_connect_server_that_nobody_runs_is_told_at_once(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    answer = CliRunner().invoke(app, ["run", str(folder / "batch.toml"), "--remote", f"sc://127.0.0.1:{port}"])
    assert answer.exit_code == 1
    assert f"no Spark Connect server answers at 127.0.0.1:{port}: Connection refused" in answer.output


def test_a_connect_server_has_a_port_that_is_a_number(folder):
    answer = CliRunner().invoke(app, ["run", str(folder / "batch.toml"), "--remote", "sc://here:there"])
    assert answer.exit_code == 2
    assert "error: invalid --remote sc://here:there: Port could not be cast to integer value" in answer.output


@pytest.mark.parametrize(
    ("option", "url"), [("--master", "here"), ("--master", "local[4"), ("--remote", "here:15002")], ids=str
)
def test_a_url_of_no_spark_is_refused_before_anything_starts(folder, option, url):
    answer = CliRunner().invoke(app, ["run", str(folder / "batch.toml"), option, url])
    assert answer.exit_code == 2
    assert f"error: {option} {url} is not a Spark " in answer.output
