"""Compiled kernels are cached, and the cache is never stale."""

import os
import pty
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pathcast.kernels.compilation import kernel_cache as cache
from tests.kernels.tiny import RUN, Tiny

COMPILED_ALL = "tiny.caller_kernels.answer tiny.caller_kernels.total"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """The package with its kernels compiled by one process."""
    tiny = Tiny.make(tmp_path_factory.mktemp("tiny"))
    assert tiny.run() == f"42 {COMPILED_ALL}"
    return tiny


@pytest.fixture
def tiny(compiled: Tiny, tmp_path: Path) -> Tiny:
    """A copy of the package that a test may change."""
    shutil.copytree(compiled.folder, tmp_path, dirs_exist_ok=True)
    return Tiny(tmp_path, tmp_path / "cache")


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tiny: Tiny) -> None:
    before = sorted(path.name for path in tiny.cache.rglob("*"))
    assert tiny.run() == "42"
    assert sorted(path.name for path in tiny.cache.rglob("*")) == before


@pytest.mark.slow
def test_a_changed_callee_in_another_file_gives_the_new_answer(tiny: Tiny) -> None:
    tiny.replace("callee_kernels.py", "number * 10", "number * 20")
    assert tiny.run() == f"82 {COMPILED_ALL}"


@pytest.mark.slow
def test_a_changed_constant_in_another_file_gives_the_new_answer(tiny: Tiny) -> None:
    tiny.replace("callee_kernels.py", "FACTOR = 2", "FACTOR = 3")
    assert tiny.run() == f"43 {COMPILED_ALL}"


@pytest.mark.slow
def test_a_change_compiles_only_the_kernels_that_it_touches(tiny: Tiny) -> None:
    alone = "from .kernels import kernel\n\n\n@kernel('int64(int64)')\ndef other(number):\n    return number + 1\n"
    (tiny.folder / "tiny" / "alone_kernels.py").write_text(alone)
    run = f"from tiny.alone_kernels import other; {RUN}"
    assert tiny.run(run) == "42 tiny.alone_kernels.other"
    tiny.replace("alone_kernels.py", "number + 1", "number + 2")
    assert tiny.run(run) == "42 tiny.alone_kernels.other"
    tiny.replace("callee_kernels.py", "FACTOR = 2", "FACTOR = 3")
    assert tiny.run(run) == f"43 {COMPILED_ALL}"


@pytest.mark.slow
def test_the_hash_covers_a_kernel_source_with_all_that_it_imports_and_nothing_else(tiny: Tiny) -> None:
    package = tiny.folder / "tiny"
    caller = package / "caller_kernels.py"

    def hashed() -> str:
        cache.imported_sources.cache_clear()
        cache.source_hash.cache_clear()
        return cache.source_hash(caller, package)

    hashes = [hashed()]
    (package / "other.py").write_text("FACTOR = 2")
    (package / "deeper").mkdir()
    deeper = package / "deeper" / "more_kernels.py"
    deeper.write_text("MORE = 1")
    assert hashed() == hashes[0]
    tiny.replace("callee_kernels.py", "FACTOR = 2", "from .deeper.more_kernels import MORE\n\nFACTOR = 2")
    hashes.append(hashed())
    deeper.write_text("from ..callee_kernels import FACTOR\n\nMORE = 2")  # circular imports terminate
    hashes.append(hashed())
    deeper.write_text("MORE = 3")
    hashes.append(hashed())
    tiny.replace("caller_kernels.py", "found = 0", "found = 1")
    hashes.append(hashed())
    assert len(set(hashes)) == len(hashes)


@pytest.mark.slow
def test_all_kernels_are_compiled_anew_for_another_room_of_kernels_or_with_bounds_checked(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tiny.folder / "tiny"
    monkeypatch.delenv("NUMBA_BOUNDSCHECK", raising=False)
    hashes = [cache.room_hash(package)]
    tiny.replace("caller_kernels.py", "found = 0", "found = 1")
    assert cache.room_hash(package) == hashes[0]
    tiny.replace("kernels/compilation/numba_compilation.py", '"nogil": True', '"nogil": False')
    hashes.append(cache.room_hash(package))
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    hashes.append(cache.room_hash(package))
    assert len(set(hashes)) == len(hashes)


@pytest.mark.slow
def test_a_cache_folder_that_cannot_be_made_is_replaced_by_a_temporary_one(tiny: Tiny) -> None:
    (tiny.folder / "file").write_text("")
    (tiny.folder / "tmp").mkdir()
    elsewhere = {"PATHCAST_CACHE": str(tiny.folder / "file"), "TMPDIR": str(tiny.folder / "tmp")}
    assert tiny.run(**elsewhere) == f"42 {COMPILED_ALL}"
    assert len(list((tiny.folder / "tmp").rglob("*.code"))) == 2


def terminal(tiny: Tiny) -> str:
    """The output of a process on its terminal, without its result."""
    ours, its = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", RUN], stdout=subprocess.PIPE, stderr=its, env=tiny.environment()
    ) as it:
        os.close(its)
        answer = it.stdout.read().decode() if it.stdout else ""
    assert answer.startswith("42")
    try:
        return os.read(ours, 10_000).decode()
    except OSError:  # the terminal closed without further output
        return ""
    finally:
        os.close(ours)


@pytest.mark.slow
def test_compiling_is_announced_once_and_on_a_terminal_only(tiny: Tiny) -> None:
    assert terminal(tiny) == "", "nothing is compiled"
    shutil.rmtree(tiny.cache)
    said = terminal(tiny)
    assert said.count("Pathcast is compiling its kernels") == 1
    # `Tiny.run` checks on every compilation that nothing is printed if stderr is not a terminal.


def cache_folder() -> Path:
    """The folder that a new process would find."""
    return cache.cache_folder.__wrapped__()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, a home, and no PATHCAST_CACHE."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("PATHCAST_CACHE", raising=False)
    return tmp_path


def test_the_folder_lies_where_users_keep_caches(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder().parent == temporary / "home" / ".cache" / "pathcast"
    monkeypatch.setenv("XDG_CACHE_HOME", str(temporary / "xdg"))
    assert cache_folder().parent == temporary / "xdg" / "pathcast"
    monkeypatch.setenv("PATHCAST_CACHE", str(temporary / "own"))
    assert cache_folder().parent == temporary / "own"


def test_a_folder_that_cannot_be_written_is_not_used(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: "home" not in str(path))
    assert cache_folder().parent == temporary / "tmp" / f"pathcast-{os.getuid()}"


def test_a_folder_that_came_with_an_image_is_used_though_it_can_only_be_read(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATHCAST_CACHE", str(temporary / "own"))
    folder = cache_folder()
    monkeypatch.setattr(os, "access", lambda path, mode: "own" not in str(path))
    assert cache_folder().parent == temporary / "tmp" / f"pathcast-{os.getuid()}", "nothing is in it"
    (folder / "kernel.code").touch()
    assert cache_folder() == folder


READ_ONLY = f"""
import os
os.access = lambda path, mode: False
{RUN}
"""


@pytest.mark.slow
def test_what_a_folder_that_can_only_be_read_lacks_is_compiled_and_not_kept(tiny: Tiny) -> None:
    tiny.replace("callee_kernels.py", "FACTOR = 2", "FACTOR = 3")
    assert tiny.run(READ_ONLY) == f"43 {COMPILED_ALL}"
    assert tiny.run(READ_ONLY) == f"43 {COMPILED_ALL}"
    assert tiny.run() == f"43 {COMPILED_ALL}"
    assert tiny.run(READ_ONLY) == "43"


def test_machine_code_is_not_loaded_from_a_folder_that_others_could_write(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary / "home").write_text("no folder")
    private = temporary / "tmp" / f"pathcast-{os.getuid()}"
    private.mkdir()
    private.chmod(0o777)
    assert private not in cache_folder().parents
    private.rmdir()
    (temporary / "theirs").mkdir()
    private.symlink_to(temporary / "theirs")
    assert cache_folder().parent.parent == temporary / "tmp"
    assert private not in cache_folder().parents
    private.unlink()
    assert cache_folder().parent == private
    assert private.stat().st_mode & 0o777 == 0o700
