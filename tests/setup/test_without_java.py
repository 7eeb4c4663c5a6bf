"""`scripts/without-java`: a command finds everything but Java."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = str(Path(__file__).parents[2] / "scripts" / "without-java")


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """A machine with a Java on its PATH, next to another command, and with a JAVA_HOME."""
    commands = tmp_path / "java and others"
    commands.mkdir()
    for name in ("java", "greet", "python9"):
        (commands / name).write_text(f'#!/bin/sh\necho "{name} $0 $1"\n')
        (commands / name).chmod(0o755)
    return os.environ | {
        "PATH": f"{commands}:{os.environ['PATH']}",
        "JAVA_HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }


def hidden(machine: dict[str, str], *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([SCRIPT, *command], env=machine, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_java_is_hidden_and_the_commands_beside_it_are_found(machine):
    answer = hidden(machine, "sh", "-c", 'command -v java; greet "a  b"; echo "${JAVA_HOME-none}"')
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("greet ") and lines[0].endswith(" a  b")
    assert lines[1:] == ["none"], answer


@pytest.mark.slow
def test_a_python_is_called_by_its_own_path(machine, tmp_path):
    assert hidden(machine, "python9", "x").stdout == f"python9 {tmp_path}/java and others/python9 x\n"


@pytest.mark.slow
def test_the_status_is_the_commands_and_no_folder_stays(machine, tmp_path):
    assert hidden(machine, "sh", "-c", "exit 7").returncode == 7
    assert [path.name for path in tmp_path.iterdir()] == ["java and others"]


@pytest.mark.slow
def test_without_a_command_the_usage_is_printed(machine):
    answer = hidden(machine)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("usage: scripts/without-java COMMAND")
