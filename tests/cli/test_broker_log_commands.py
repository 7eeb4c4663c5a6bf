"""`pathcast log`: a log is verified, exported and imported; problems and wrong arguments have clear answers."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathcast.cli.app import app
from pathcast.errors import PathcastError
from pathcast.log import LogRecord, SqliteLog

PROGRAM = [sys.executable, "-c", "from pathcast.cli.app import main; main()", "log"]


class Outcome:
    def __init__(self, *arguments: object, stdin: bytes | None = None) -> None:
        result = CliRunner().invoke(app, ["log", *map(str, arguments)], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.status, self.out, self.err, self.bytes = (
            result.exit_code,
            result.stdout,
            result.stderr,
            result.stdout_bytes,
        )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    with closing(SqliteLog(folder, segment_bytes=1)) as filled:
        for number in range(1, 41):
            filled.append([LogRecord("document", b"{}", b"<n>%d</n>" % number)])
        filled.write_checkpoint(30, b"state")
        filled.trim(11)
    return folder


def bodies(folder: Path) -> list[bytes]:
    with closing(SqliteLog(folder)) as log:
        return [entry.body for entry in log.read(log.first)]


def test_a_whole_log_is_verified(log: Path) -> None:
    verified = Outcome("verify", log)
    assert (verified.status, verified.err) == (0, "")
    assert verified.out == f"{log}: records 11 to 40, 330 bytes, checkpoint of 30\nno problems\n"


def test_problems_are_listed_and_give_status_1(log: Path) -> None:
    for number in range(12, 41, 1):
        if number % 2:
            (log / f"segment-{number:020d}.sqlite").unlink()
    verified = Outcome("verify", log)
    assert verified.status == 1
    first, *lines = verified.out.splitlines()
    assert first == f"{log}: records 11 to 40, 176 bytes, checkpoint of 30"
    assert lines[0].startswith("  record 13: record 13 is missing in ")
    assert "no problems" not in verified.out
    for number in range(12, 41, 2):
        if number != 40:
            path = log / f"segment-{number:020d}.sqlite"
            path.write_bytes(b"")
    next(log.glob("checkpoint-*")).write_bytes(b"")
    assert Outcome("verify", log).out.splitlines()[1].startswith("  records 12 to 39: ")


def test_many_problems_are_cut_unless_all_are_asked_for(tmp_path: Path) -> None:
    with closing(SqliteLog(tmp_path / "log", segment_bytes=1)) as log:
        for _ in range(60):
            log.append([LogRecord("document", b"{}")])
    for number in range(2, 60, 2):
        (tmp_path / "log" / f"segment-{number:020d}.sqlite").unlink()
    cut = Outcome("verify", tmp_path / "log")
    assert cut.status == 1
    assert cut.out.splitlines()[21:] == ["  and 9 more; --all prints them"]
    assert len(Outcome("verify", tmp_path / "log", "--all").out.splitlines()) == 30


def test_a_log_is_exported_and_imported_through_a_file(log: Path, tmp_path: Path) -> None:
    file, copy = tmp_path / "log.export", tmp_path / "copy"
    exported = Outcome("export", log, "-o", file)
    assert (exported.status, exported.out) == (0, "")
    assert exported.err == "exported records 11 to 40, and the checkpoint of 30\n"
    imported = Outcome("import", file, copy)
    assert (imported.status, imported.out) == (0, "")
    assert imported.err == "imported records 11 to 40, and the checkpoint of 30\n"
    assert bodies(copy) == bodies(log)
    assert Outcome("verify", copy).status == 0
    assert sorted(tmp_path.iterdir()) == [copy, log, file]


def test_a_log_is_exported_and_imported_through_a_pipe(log: Path, tmp_path: Path) -> None:
    exported = Outcome("export", log)
    assert exported.bytes.startswith(b"pathcast log 1\n")
    (tmp_path / "copy").mkdir()  # an empty folder will do
    assert Outcome("import", "-", tmp_path / "copy", stdin=exported.bytes).status == 0
    assert bodies(tmp_path / "copy") == bodies(log)


def test_a_log_is_exported_and_verified_while_it_grows(log: Path, tmp_path: Path) -> None:
    with closing(SqliteLog(log, segment_bytes=1)) as growing:
        growing.append([LogRecord("document", b"{}", b"<new/>")])
        assert "records 11 to 41" in Outcome("verify", log).out
        assert Outcome("export", log, "-o", tmp_path / "export").status == 0
        growing.append([LogRecord("document", b"{}", b"<newer/>")])
    assert Outcome("import", tmp_path / "export", tmp_path / "copy").status == 0
    assert bodies(tmp_path / "copy")[-1] == b"<new/>"


def test_a_log_without_records_is_exported(tmp_path: Path) -> None:
    SqliteLog(tmp_path / "log").close()
    assert Outcome("verify", tmp_path / "log").out.startswith(
        f"{tmp_path / 'log'}: no records before 1, 0 bytes, no checkpoint"
    )
    exported = Outcome("export", tmp_path / "log")
    assert exported.err == "exported no records before 1, and no checkpoint\n"
    assert Outcome("import", "-", tmp_path / "copy", stdin=exported.bytes).status == 0


def test_a_damaged_export_leaves_no_log(log: Path, tmp_path: Path) -> None:
    content = Outcome("export", log).bytes
    for damaged in (content[:-1], content[:200] + b"?" + content[201:], b"", b"<xml/>"):
        with pytest.raises(PathcastError, match="export"):
            Outcome("import", "-", tmp_path / "copy", stdin=damaged)
        assert sorted(tmp_path.iterdir()) == [log]


def test_a_damaged_log_leaves_no_export(log: Path, tmp_path: Path) -> None:
    (log / f"segment-{20:020d}.sqlite").unlink()
    with pytest.raises(PathcastError, match="record 20 is missing"):
        Outcome("export", log, "-o", tmp_path / "export")
    assert not (tmp_path / "export").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["verify", "none"], "none: no such folder; check the path"),
        (["verify", "file"], "file: this is a file; give the folder of a log"),
        (["export", "none"], "none: no such folder; check the path"),
        (["export", "log", "-o", "file"], "file already exists; give another --output"),
        (
            ["export", "log", "-o", "none/file"],
            "cannot write none/file: No such file or directory; give another --output",
        ),
        (["import", "none", "new"], "none: no such file; check the path"),
        (["import", "log", "new"], "log: this is a folder; give a file"),
        (["import", "file", "log"], "log already exists; import into a new folder"),
        (["import", "file", "file"], "file already exists; import into a new folder"),
        (["import", "file", "file/new"], "cannot open a log in"),
    ],
)
def test_wrong_arguments_are_explained(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    try:
        answered = Outcome(*arguments)
        assert answered.status == 2
        said = answered.err
    except PathcastError as error:
        said = str(error)
    assert reason in said


def test_a_folder_that_holds_no_log_is_explained(tmp_path: Path) -> None:
    for command in ("verify", "export"):
        with pytest.raises(PathcastError, match=f"no log in {tmp_path}"):
            Outcome(command, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_import_is_explained(log: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.importing").mkdir()
    content = Outcome("export", log).bytes
    refused = Outcome("import", "-", tmp_path / "copy", stdin=content)
    assert refused.status == 2
    assert "copy.importing belongs to another import; wait until it ends, or remove it if" in refused.err
    assert (tmp_path / "copy.importing").exists()


@pytest.mark.slow
def test_an_export_goes_to_no_terminal(log: Path) -> None:
    reader, terminal = os.openpty()
    done = subprocess.run([*PROGRAM, "export", log], stdout=terminal, stderr=subprocess.PIPE, text=True, check=False)
    os.close(terminal)
    os.close(reader)
    assert done.returncode == 2
    assert "an export is binary; redirect the output, or give --output FILE" in done.stderr


@pytest.mark.slow
def test_an_export_to_a_full_disk_is_explained(log: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*PROGRAM, "export", log], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 74
    assert "cannot write the output: No space left on device" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["verify", "export", "import"])
def test_every_command_has_help(command: str) -> None:
    done = subprocess.run([*PROGRAM, command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Example: pathcast log" in done.stdout or "Example:" in done.stdout
