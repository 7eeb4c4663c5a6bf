"""A process that lacks kernels lets another process compile them, and does not import Numba."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pathcast.documents import expanded_name_table_kernels as kernels
from pathcast.kernels.compilation import compiler_process
from pathcast.kernels.compilation.compiler_process import CompilerProcess
from tests.kernels.tiny import RUN, Tiny

ALL = "tiny.caller_kernels.answer tiny.caller_kernels.total"
SHOW = "import sys; print('numba' in sys.modules)"
FUNCTION = vars(kernels)["index_names"].py_func
PROCESS = "from tiny.kernels.compilation.compiler_process import _COMPILER as compiler"


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny.make(tmp_path)


@pytest.fixture
def compiler() -> Iterator[CompilerProcess]:
    compiler = CompilerProcess()
    yield compiler
    compiler.end()


@pytest.mark.slow
def test_a_process_that_lacks_kernels_gets_them_without_numba(tiny: Tiny) -> None:
    code = f"{RUN}; {SHOW}; {PROCESS}; print(compiler._running.poll())"
    assert tiny.run(code).splitlines() == [f"42 {ALL}", "False", "None"]
    assert tiny.run(f"{RUN}; {SHOW}").splitlines() == ["42", "False"]


@pytest.mark.slow
def test_what_a_module_prints_does_not_disturb_the_answer(tiny: Tiny) -> None:
    tiny.replace("callee_kernels.py", "FACTOR = 2", "import os\nos.write(1, b'printed')\nFACTOR = 2")
    process = subprocess.run(
        [sys.executable, "-c", f"{RUN}; {SHOW}"], capture_output=True, text=True, env=tiny.environment(), check=True
    )
    assert process.stdout == f"printed42 {ALL}\nFalse\n"


@pytest.mark.slow
def test_a_kernel_of_the_main_module_is_compiled_by_its_own_process(tiny: Tiny) -> None:
    source = "from tiny.kernels import kernel\n@kernel('int64(int64)')\ndef more(number):\n    return number + 1\n"
    path = tiny.folder / "main_kernels.py"
    path.write_text(f"{source}\nprint(more(1))\n{SHOW}\n")
    assert tiny.run(f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')").splitlines() == ["2", "True"]


@pytest.mark.slow
def test_a_kernel_that_cannot_be_compiled_is_reported_by_the_process_that_needs_it(tiny: Tiny) -> None:
    tiny.replace("caller_kernels.py", "found += values[index]", "found += no_such_name")
    done = subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, env=tiny.environment(), check=False
    )
    assert done.returncode == 1
    assert "NameError: name 'no_such_name' is not defined" in done.stderr
    assert done.stderr.count("Traceback") == 1


@pytest.mark.slow
def test_a_compiler_process_that_was_killed_is_replaced(compiler: CompilerProcess) -> None:
    assert compiler.code_of(FUNCTION) is not None
    before = compiler._running
    assert before is not None
    assert compiler.code_of(FUNCTION) is not None and compiler._running is before
    before.kill()
    before.wait()
    assert compiler.code_of(FUNCTION) is not None and compiler._running is not before
    compiler.end()
    assert compiler._running is None


@pytest.mark.slow
def test_the_child_of_a_fork_has_a_compiler_process_of_its_own(tiny: Tiny) -> None:
    fork = (
        f"{RUN}; {PROCESS}; import os; ours = compiler._running.pid\n"
        "if os.fork() == 0:\n"
        "    from tiny.caller_kernels import total\n"
        "    print(compiler.code_of(total.py_func) is not None, compiler._running.pid != ours, flush=True)\n"
        "    compiler.end()\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print(compiler._running.pid == ours, compiler._running.poll())"
    )
    assert tiny.run(fork).splitlines() == [f"42 {ALL}", "True True", "True None"]


@pytest.mark.slow
def test_the_compiler_process_ends_with_a_process_that_is_killed(tiny: Tiny) -> None:
    code = f"{RUN}; {PROCESS}; print(compiler._running.pid, flush=True); import sys; sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, env=tiny.environment()) as process:
        assert process.stdout is not None
        process.stdout.readline()
        compiler = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    end = time.monotonic() + 60
    while is_running(compiler) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_running(compiler)


def is_running(number: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.parametrize("program", ["", "/usr/sbin/uwsgi", None])
def test_a_program_that_is_not_python_is_not_started(
    program: str | None, compiler: CompilerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    assert compiler.code_of(FUNCTION) is None
    assert compiler._running is None


def test_a_kernel_that_is_not_what_its_module_has_is_not_compiled_elsewhere() -> None:
    place = os.path.realpath(FUNCTION.__code__.co_filename)
    assert compiler_process._compiled(FUNCTION.__module__, "no_such_kernel", place) == b""
    assert compiler_process._compiled(FUNCTION.__module__, FUNCTION.__name__, "/elsewhere.py") == b""
    assert compiler_process._compiled("no_such_module", "kernel", place) == b""
