"""The command line as a whole: sufficient help, fast start, errors without a traceback."""

import os
import subprocess
import sys

import pytest

from pathcast import __version__
from pathcast.cli import app as app_file
from pathcast.cli.output_errors import READER_GONE
from pathcast.errors import PatternError

COMMANDS = ("match", "explain", "generate", "log", "experiment", "demo", "doctor")


def pathcast(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from pathcast.cli.app import main; main()", *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_help_names_every_command():
    answer = pathcast("--help")
    assert answer.returncode == 0
    for command in COMMANDS:
        assert f" {command} " in answer.stdout


@pytest.mark.slow
def test_no_argument_gives_the_help():
    assert "Usage" in pathcast().stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_of_its_own(command):
    answer = pathcast(command, "--help")
    assert answer.returncode == 0
    assert "Usage" in answer.stdout


@pytest.mark.slow
def test_the_version_is_told():
    answer = pathcast("--version")
    assert (answer.returncode, answer.stdout) == (0, f"pathcast {__version__}\n")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["unknown"], ["doctor", "--unknown"], ["doctor", "--format", "xml"]])
def test_bad_arguments_give_exit_status_2(arguments):
    answer = pathcast(*arguments)
    assert answer.returncode == 2
    assert "Traceback" not in answer.stderr


FULL = (
    "error: cannot write the output: No space left on device; the output is incomplete: free disk space or use another "
    "disk, and run the command again\n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("explain s.txt 1 d.xml > /dev/full", 74, FULL),
        ("--version > /dev/full", 74, FULL),
        ("explain s.txt 1 d.xml <&- >&-", 1, ""),
    ],
    ids=["full", "full for the version", "closed"],
)
def test_output_that_can_not_be_written_is_no_answer(tmp_path, command, status, said):
    (tmp_path / "s.txt").write_text("/b")
    (tmp_path / "d.xml").write_text("<a/>")
    program = f'"{sys.executable}" -c "from pathcast.cli.app import main; main()"'
    answer = subprocess.run(
        ["sh", "-c", f"exec {program} {command}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (status, said)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["--help", "experiment list", "run nowhere.toml 1>&2"])
def test_a_reader_that_has_gone_is_no_error(command):
    program = f'"{sys.executable}" -c "from pathcast.cli.app import main; main()"'
    reading, writing = os.pipe()
    os.close(reading)
    errors = writing if "1>&2" in command else subprocess.PIPE
    answer = subprocess.run(["sh", "-c", f"exec {program} {command}"], stdout=writing, stderr=errors, check=False)
    os.close(writing)
    assert (answer.returncode, answer.stderr or b"") == (READER_GONE, b"")


def test_an_error_of_ours_is_a_message_with_exit_status_2(monkeypatch, capsys):
    def fail():
        raise PatternError("not supported", column=3, expression="/a~b", offending="~")

    monkeypatch.setattr(app_file, "app", fail)
    with pytest.raises(SystemExit) as left:
        app_file.main()
    assert left.value.code == 2
    assert capsys.readouterr().err == "error: column 3: not supported\n    /a~b\n      ^\n"


def test_a_fault_of_ours_is_not_hidden(monkeypatch):
    def fail():
        raise ZeroDivisionError

    monkeypatch.setattr(app_file, "app", fail)
    with pytest.raises(ZeroDivisionError):
        app_file.main()


@pytest.mark.slow
def test_loading_the_commands_loads_none_of_their_work():
    heavy = ["numpy", "numba", "pyarrow", "lxml", "pyspark", "pandas", "matplotlib", "rich"]
    heavy += [f"pathcast.{room}" for room in ("documents", "matching", "spark", "workloads")]
    heavy.append("pathcast_lab.harness")
    program = f"import sys, pathcast.cli.app; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"
