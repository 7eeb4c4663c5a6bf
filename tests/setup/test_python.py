"""The search for a Python that can build the environment, in plain sh because no Python may be installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def machine(tmp_path):
    """A machine with the commands that the script needs and no Python; `machine.add` installs one."""
    return Machine(tmp_path)


class Machine:
    def __init__(self, folder: Path) -> None:
        self.commands = folder / "commands"
        self.scripts = folder / "scripts"
        self.commands.mkdir()
        self.scripts.mkdir()
        shutil.copy(ROOT / "scripts" / "setup.sh", self.scripts)
        for command in ("sh", "dirname"):
            place = shutil.which(command)
            assert place is not None
            (self.commands / command).symlink_to(place)

    def add(self, name: str, version: str, *, ensurepip: bool = True) -> Path:
        """A stand-in that answers the script's questions, and prints its name when it runs setup.py."""
        old = tuple(map(int, version.split("."))) < (3, 11)
        python = self.commands / name
        python.write_text(
            "#!/bin/sh\n"
            'case "$*" in\n'
            f"*print*) echo {version} ;;\n"
            f"*sys.exit*) exit {int(old)} ;;\n"
            f"*ensurepip*) exit {int(not ensurepip)} ;;\n"
            f'*setup.py) echo "{name} runs" ;;\n'
            "*) exit 9 ;;\n"
            "esac\n"
        )
        python.chmod(0o755)
        return python

    def run(self, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.commands), **variables}
        script = ["/bin/sh", str(self.scripts / "setup.sh")]
        return subprocess.run(script, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_python3_is_taken_if_it_is_new_enough(machine):
    machine.add("python3", "3.11")
    machine.add("python3.13", "3.13")
    assert machine.run().stdout == "python3 runs\n"


@pytest.mark.slow
def test_an_old_python3_gives_way_to_a_newer_one_beside_it(machine):
    machine.add("python3", "3.9")
    machine.add("python3.12", "3.12")
    assert machine.run().stdout == "python3.12 runs\n"


@pytest.mark.slow
def test_a_python_without_ensurepip_gives_way_to_one_with(machine):
    machine.add("python3", "3.12", ensurepip=False)
    machine.add("python3.11", "3.11")
    assert machine.run().stdout == "python3.11 runs\n"


@pytest.mark.slow
def test_a_python_that_is_asked_for_is_taken_even_with_spaces_in_its_path(machine, tmp_path):
    machine.add("python3", "3.11")
    other = tmp_path / "my python"
    shutil.move(machine.add("python3.12", "3.12"), other)
    assert machine.run(PYTHON=str(other)).stdout == "python3.12 runs\n"


@pytest.mark.slow
def test_a_python_that_is_asked_for_and_too_old_is_not_replaced_silently(machine):
    machine.add("python3", "3.12")
    old = machine.add("python3.9", "3.9")
    answer = machine.run(PYTHON=str(old))
    assert answer.returncode == 1
    assert f"{old} is Python 3.9, too old" in answer.stderr


@pytest.mark.slow
def test_without_any_python_the_need_is_said(machine):
    answer = machine.run()
    assert answer.returncode == 1
    assert "no usable Python; needed: 3.11 or newer with venv and ensurepip" in answer.stderr
    assert "make demo PYTHON=/path/to/python3" in answer.stderr


@pytest.mark.slow
def test_every_refused_python_is_named_with_its_fault(machine):
    machine.add("python3", "3.9")
    machine.add("python3.11", "3.11", ensurepip=False)
    answer = machine.run()
    assert answer.returncode == 1
    assert f"{machine.commands / 'python3'} is Python 3.9, too old" in answer.stderr
    assert "is Python 3.11, but lacks venv or ensurepip (Debian, Ubuntu: apt install python3.11-venv)" in answer.stderr


@pytest.mark.slow
def test_the_exit_status_of_the_setup_is_passed_on(machine):
    python = machine.add("python3", "3.12")
    python.write_text(python.read_text().replace('echo "python3 runs"', "exit 5"))
    assert machine.run().returncode == 5


@pytest.mark.slow
def test_the_script_is_plain_sh():
    assert os.access(ROOT / "scripts" / "setup.sh", os.R_OK)
    subprocess.run(["/bin/sh", "-n", ROOT / "scripts" / "setup.sh"], check=True)
