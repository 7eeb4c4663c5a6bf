"""Compiled kernels run without Numba, and no two processes compile one kernel at the same time."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import pathcast
from pathcast.kernels.compilation import kernel_cache as cache
from pathcast.kernels.compilation.argument_checks import reference_to, referred, require_array
from pathcast.kernels.compilation.machine_code import MachineCode, linker
from tests.kernels.tiny import RUN, Tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    made = Tiny.make(tmp_path_factory.mktemp("tiny"))
    made.run()
    return made


ALONE = """
import sys
import numpy as np
from tiny.caller_kernels import answer, total
np.save("numbers.npy", np.arange(5, dtype=np.int32))
print(answer(4), total(np.load("numbers.npy", mmap_mode="r")))
try:
    total([1])
except TypeError as error:
    print(error)
print("numba" in sys.modules)
"""


@pytest.mark.slow
def test_loaded_kernels_check_their_arguments_without_numba(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = "the argument must be a C-contiguous 1-dimensional array of int32, got list"
    assert tiny.run(ALONE).splitlines() == ["42 10", refused, "False"]


NUMBA = """
import numba
import numpy as np
print(numba.njit(lambda numbers: numbers.sum())(np.arange(4)), numba.njit(lambda text: text + "b")("a"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", ["kernels", "numba"])
def test_programs_use_numba_themselves_beside_loaded_kernels(tiny: Tiny, first: str) -> None:
    parts = [RUN, NUMBA] if first == "kernels" else [NUMBA, RUN]
    answers = tiny.run("\n".join(parts)).split("\n")
    assert sorted(answers) == ["42", "6 ab"]


def test_code_that_needs_what_does_not_exist_is_not_linked() -> None:
    code = MachineCode("entry", "environment", ["memset", "no_such_function"], b"")
    with pytest.raises(ImportError, match=r"kernel some\(\) needs no_such_function, which this version of Numba lacks"):
        linker().function(code, "some")


def test_code_is_stored_with_the_names_that_it_needs() -> None:
    code = MachineCode("entry", "environment", ["one", "two"], b"\x7fELF\n\n{}\x00")
    assert MachineCode.from_bytes(code.to_bytes()) == code


def test_machine_code_refers_to_python_objects_by_name() -> None:
    import numpy as np

    dtype = np.dtype(np.int32)
    assert referred(reference_to(require_array)) is require_array
    assert referred(reference_to(MachineCode)) is MachineCode
    assert referred(reference_to(dtype)) is np.zeros(1, dtype=np.int32).dtype
    assert referred(reference_to((dtype, 2, True))) == (dtype, 2, True)


def test_one_at_a_time_compiles_a_kernel_although_those_before_stored_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that waits finds the lock of its predecessor removed: it must not mistake it for the lock."""
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    inside, most, done = 0, 0, 0

    def compile_one() -> None:
        nonlocal inside, most, done
        for _ in range(3):
            with cache.KernelFile(test_code_is_stored_with_the_names_that_it_needs).alone():
                inside += 1
                most = max(most, inside)
                time.sleep(0.002)
                inside, done = inside - 1, done + 1

    threads = [threading.Thread(target=compile_one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, done) == (1, 24)
    assert not list(tmp_path.iterdir())


HOLD = """
import sys
from tiny.kernels.compilation.kernel_cache import KernelFile
def answer(): ...
with KernelFile(answer).alone():
    print("holding", flush=True)
    sys.stdin.read()
"""
WAIT = HOLD.replace("sys.stdin.read()", "")


@pytest.mark.slow
@pytest.mark.parametrize("end", ["finished", "killed"])
def test_a_process_waits_until_another_is_done_or_dead(tiny: Tiny, tmp_path: Path, end: str) -> None:
    (tmp_path / "hold.py").write_text(HOLD)
    (tmp_path / "wait.py").write_text(WAIT)

    def start(name: str) -> "subprocess.Popen[str]":
        # The same file stands for the same kernel.
        code = f"exec(compile(open({str(tmp_path / name)!r}).read(), {str(tmp_path / 'hold.py')!r}, 'exec'))"
        command = [sys.executable, "-c", code]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=tiny.environment())

    with start("hold.py") as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "holding\n"
        with start("wait.py") as waiting:
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(2)
            if end == "killed":
                holder.kill()
            else:
                assert holder.stdin is not None
                holder.stdin.close()
            assert waiting.communicate(timeout=60)[0] == "holding\n"


MATCH = """
import sys, pathcast
print(pathcast.open_index(sys.argv[1]).match("<a><b c='1'>x</b></a>").ids.tolist(), "numba" in sys.modules)
"""


@pytest.mark.slow
def test_a_document_is_matched_without_numba(tmp_path: Path) -> None:
    subscriptions = pathcast.Subscriptions()
    for expression in ("//b", "/a[b]/b", "//b[@c = 1]", "//b[. = 'x' or @d]"):
        subscriptions.add(expression)
    matcher = subscriptions.compile()
    matcher.match("<a><b c='1'>x</b></a>")
    matcher.save(tmp_path / "index")
    command = [sys.executable, "-c", MATCH, str(tmp_path / "index")]
    for _ in range(2):  # the first one may have to compile
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert found == "[1, 2, 3, 4] False"
