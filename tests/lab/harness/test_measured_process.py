import os

import pytest

from pathcast.errors import DocumentError
from pathcast_lab.harness.measured_process import in_fresh_process, resident_bytes

MEGABYTE = 1 << 20


def test_a_call_runs_elsewhere_and_its_value_comes_back() -> None:
    outcome = in_fresh_process(os.getpid)
    assert outcome.value != os.getpid()
    assert outcome.seconds >= 0


def test_peak_memory_is_that_of_the_call_and_not_of_the_caller() -> None:
    ballast = bytearray(200 * MEGABYTE)
    small, large = in_fresh_process(bytes, 1), in_fresh_process(len_of_zeros, 100 * MEGABYTE)
    assert resident_bytes() > len(ballast)
    assert small.growth < 20 * MEGABYTE
    assert 98 * MEGABYTE <= large.growth < 130 * MEGABYTE
    assert small.peak < 200 * MEGABYTE


def len_of_zeros(count: int) -> int:
    return len(bytearray(b"\1") * count)


def test_what_the_call_raises_is_raised_here() -> None:
    with pytest.raises(DocumentError, match="line 3: no"):
        in_fresh_process(fail)


def fail() -> None:
    raise DocumentError("no", line=3)


def test_a_process_that_dies_is_an_error_and_not_a_wait_for_ever() -> None:
    with pytest.raises(RuntimeError, match="the process that ran _exit ended with status 7"):
        in_fresh_process(os._exit, 7)
