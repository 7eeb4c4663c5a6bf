"""Ahead-of-time compilation: several processes compile kernels in parallel, each kernel once."""

import subprocess
import sys
from pathlib import Path

import pytest

from pathcast.kernels.compilation.ahead_of_time import kernels_of
from tests.kernels.tiny import RUN, Tiny

ALL = {"tiny.caller_kernels.answer", "tiny.caller_kernels.total"}


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny.make(tmp_path)


def start(tiny: Tiny, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=tiny.environment()
    )


def said(process: "subprocess.Popen[str]", status: int = 0) -> str:
    output = process.communicate()[0]
    assert process.returncode == status, output
    return output.strip()


@pytest.mark.slow
def test_processes_that_start_together_compile_each_kernel_once(tiny: Tiny) -> None:
    both = [start(tiny, "-c", RUN) for _ in range(2)]
    compiled = []
    for process in both:
        answer, *names = said(process).split()
        assert answer == "42"
        compiled += names
    assert sorted(compiled) == sorted(ALL)
    assert not list(tiny.cache.rglob("*.lock"))


@pytest.mark.slow
def test_what_was_compiled_ahead_is_compiled_no_more(tiny: Tiny) -> None:
    done = said(start(tiny, "-m", "tiny.kernels", "--processes", "1"))
    assert done.startswith(f"2 kernels in {tiny.cache}")
    assert ", 2 of them compiled in" in done
    assert tiny.run() == "42"
    assert said(start(tiny, "-m", "tiny.kernels")).endswith("none missing")


@pytest.mark.slow
def test_a_room_without_kernels_is_refused(tiny: Tiny) -> None:
    found = said(start(tiny, "-m", "tiny.kernels", "attic"), status=2)
    assert "package 'attic' does not exist or has no kernels; use one of " in found
    assert "at least 1" in said(start(tiny, "-m", "tiny.kernels", "--processes", "0"), status=2)


@pytest.mark.slow
def test_kernels_are_found_in_their_sources() -> None:
    found = {f"{source.module}.{source.name}" for source in kernels_of(["documents"])}
    assert "pathcast.documents.scanner.scanner_kernels.scan" in found
    assert all(name.startswith("pathcast.documents.") for name in found)
    assert found < {f"{source.module}.{source.name}" for source in kernels_of()}


REFUSED = """
from tiny.caller_kernels import answer
from tiny.callee_kernels import scaled
from tiny.kernels import apart, rare
for each in (scaled, rare(scaled.py_func), apart(scaled.py_func)):
    try:
        each(4)
    except TypeError as error:
        print(error)
print(answer(4), scaled.py_func(4))
"""


@pytest.mark.slow
def test_what_only_kernels_can_call_says_so_to_python(tiny: Tiny) -> None:
    refusal = "scaled() can only be called by kernels; in Python, call scaled.py_func()"
    assert tiny.run(REFUSED).splitlines() == [refusal, refusal, refusal, "42 40"]
