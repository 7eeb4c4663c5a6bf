"""The set-up script: runs once, continues after an interruption or a change, fails early if it cannot succeed."""

import importlib.util
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def setup():
    spec = importlib.util.spec_from_file_location("setup_script", ROOT / "scripts" / "setup.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path):
    """A project with all files that the script reads."""
    for name in ("pyproject.toml", "lab/pyproject.toml", "constraints.txt", "src/pathcast/cli/machine_resources.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".tmp").mkdir()
    return tmp_path


@pytest.fixture
def steps(setup, monkeypatch):
    """The steps of the script, with environments and packages that install at once."""
    done: list[str] = []

    def create(environment):
        done.append("create")
        shutil.rmtree(environment, ignore_errors=True)
        fake_environment(environment)

    monkeypatch.setattr(setup, "create", create)
    monkeypatch.setattr(setup, "install", lambda project, environment: done.append("install"))
    return done


def fake_environment(environment: Path, script: str | None = None) -> None:
    """An environment whose python answers like this one, or runs `script`."""
    commands = environment / "bin"
    commands.mkdir(parents=True)
    (commands / "pip").write_text(f"#!{commands}/python\n")
    answer = f"cat <<'END'\n{sys.version}\n{sys.base_prefix}\nEND"
    (commands / "python").write_text(f"#!/bin/sh\n{script or answer}\n")
    (commands / "python").chmod(0o755)


@contextmanager
def failing(setup, monkeypatch, error):
    """Inside the block, packages cannot be installed."""

    def install(project, environment):
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(setup, "install", install)
        yield


@pytest.mark.slow
def test_a_finished_setup_is_not_done_again(setup, project, steps):
    setup.set_up(project)
    assert steps == ["create", "install"]
    setup.set_up(project)
    assert steps == ["create", "install"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_other_packages_are_installed_when_they_are_asked_for(setup, project, steps, name):
    setup.set_up(project)
    with (project / name).open("a") as file:
        file.write("\n# changed\n")
    setup.set_up(project)
    assert steps == ["create", "install", "install"]


@pytest.mark.slow
def test_an_interrupted_install_goes_on_in_the_same_environment(setup, project, steps, monkeypatch):
    with failing(setup, monkeypatch, KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        setup.set_up(project)
    setup.set_up(project)
    assert steps == ["create", "install"]


@pytest.mark.slow
def test_an_update_that_was_interrupted_is_not_taken_for_finished(setup, project, steps, monkeypatch):
    before = (project / "constraints.txt").read_text()
    setup.set_up(project)
    (project / "constraints.txt").write_text(before + "# changed\n")
    with failing(setup, monkeypatch, setup.SetupError), pytest.raises(setup.SetupError):
        setup.set_up(project)
    (project / "constraints.txt").write_text(before)
    setup.set_up(project)
    assert steps == ["create", "install", "install"]


@pytest.mark.slow
@pytest.mark.parametrize("script", ["exit 1", "echo 3.8.1 /usr", "no-such-command"])
def test_an_environment_that_is_broken_or_of_another_python_is_built_anew(setup, project, steps, script):
    fake_environment(project / ".venv", script)
    setup.set_up(project)
    assert steps == ["create", "install"]


@pytest.mark.slow
def test_a_project_that_was_moved_gets_a_new_environment(setup, project, steps):
    setup.set_up(project)
    moved = project.with_name("moved")
    project.rename(moved)
    setup.set_up(moved)
    assert steps == ["create", "install", "create", "install"]


@pytest.mark.slow
def test_a_real_environment_is_created_and_found_to_work(setup, tmp_path):
    setup.create(tmp_path / ".venv")
    assert setup.works(tmp_path / ".venv")
    (tmp_path / ".venv").rename(tmp_path / "elsewhere")
    assert not setup.works(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("disk", "memory", "reason"),
    [
        (2_000_000_000, 8_000_000_000, r"too little disk: 2\.0 GB free at .*, 4\.5 GB needed"),
        (9_000_000_000, 1_000_000_000, r"too little memory: 1\.0 GB, 2\.0 GB needed"),
    ],
)
def test_too_little_room_is_said_before_anything_is_done(setup, project, steps, monkeypatch, disk, memory, reason):
    resources = SimpleNamespace(
        free_disk=lambda folder: disk, memory=lambda: memory, gigabytes=lambda size: f"{size / 1e9:.1f} GB"
    )
    monkeypatch.setattr(setup, "load_resources", lambda project: resources)
    with pytest.raises(setup.SetupError, match=reason):
        setup.set_up(project)
    assert steps == []


@pytest.mark.slow
def test_a_memory_that_the_system_does_not_tell_is_no_obstacle(setup, project, steps, monkeypatch):
    resources = SimpleNamespace(free_disk=lambda folder: 9e9, memory=lambda: 0, gigabytes=str)
    monkeypatch.setattr(setup, "load_resources", lambda project: resources)
    setup.set_up(project)
    assert steps == ["create", "install"]


@pytest.mark.slow
def test_pip_works_inside_the_project_with_the_pins_and_without_our_surroundings(setup, project, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("PIP_USER", "1")
    fake_environment(project / ".venv", 'printf "%s\\n" "$@" > called; env > surroundings; ls -d "$TMPDIR" >> called')
    setup.install(project, project / ".venv")
    called = (project / "called").read_text().splitlines()
    assert called[:3] == ["-m", "pip", "install"]
    assert called[called.index("--constraint") + 1] == "constraints.txt"
    editable = [called[index + 1] for index, word in enumerate(called) if word == "--editable"]
    assert editable == [".[all,dev]", "lab"]
    assert called[-1] == str(project / ".tmp" / "build")
    surroundings = dict(
        line.split("=", 1) for line in (project / "surroundings").read_text().splitlines() if "=" in line
    )
    assert "PYTHONPATH" not in surroundings
    assert surroundings["PIP_USER"] == "0"
    assert surroundings["PIP_CONSTRAINT"] == surroundings["PIP_BUILD_CONSTRAINT"] == "constraints.txt"
    assert not (project / ".tmp" / "build").exists()


@pytest.mark.slow
def test_when_pip_fails_its_last_words_are_shown(setup, project):
    fake_environment(project / ".venv", 'echo "ERROR: no matching distribution" >&2; exit 1')
    with pytest.raises(setup.SetupError, match=r"(?s)ERROR: no matching distribution.*\.tmp/install\.log.*make again"):
        setup.install(project, project / ".venv")


def test_an_error_is_printed_plainly(setup, project, monkeypatch, capsys):
    resources = SimpleNamespace(free_disk=lambda folder: 0, memory=lambda: 0, gigabytes=str)
    monkeypatch.setattr(setup, "load_resources", lambda project: resources)
    assert setup.main(project) == 1
    assert capsys.readouterr().err.startswith("set-up: too little disk: ")


def test_a_second_setup_waits_for_the_first(setup, tmp_path):
    import fcntl

    with setup.one_at_a_time(tmp_path), (tmp_path / "lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (tmp_path / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_ci_calls_may_be_run():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
