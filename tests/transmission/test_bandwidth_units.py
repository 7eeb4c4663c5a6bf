"""Speeds are read from text; the error for invalid text states what is missing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast import TopologyError
from pathcast.transmission import bandwidth, latency, shown_bandwidth, shown_bytes, shown_seconds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10MB/s", 10e6),
        ("1 GB/s", 1e9),
        ("100Mb/s", 12.5e6),
        ("100 Mbps", 12.5e6),
        ("100Mbit/s", 12.5e6),
        ("10MBps", 10e6),
        ("512KiB/s", 512 * 1024),
        ("1.5kB/sec", 1500),
        ("5 bytes/s", 5),
        ("unlimited", math.inf),
        (2_000_000, 2e6),
        (math.inf, math.inf),
    ],
)
def test_bandwidth_is_bytes_a_second(text, value):
    assert bandwidth(text) == value


@pytest.mark.parametrize(
    ("text", "value"), [("0ms", 0), ("20 ms", 0.02), ("1.5s", 1.5), ("3us", 3e-6), ("3µs", 3e-6), ("2min", 120), (0, 0)]
)
def test_latency_is_seconds(text, value):
    assert latency(text) == pytest.approx(value, abs=0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("10MB", "the unit of time is missing"),
        ("10", "the unit of time is missing"),
        ("fast", "expected a positive number and a unit"),
        ("-1MB/s", "expected a positive number and a unit"),
        ("٣MB/s", "expected a positive number and a unit"),
        ("1_0MB/s", "expected a positive number and a unit"),
        ("0MB/s", "more than 0 bytes"),
        ("", "expected a positive number and a unit"),
        (0, "more than 0 bytes"),
        (-5, "more than 0 bytes"),
        (math.nan, "more than 0 bytes"),
        (None, "must be text"),
        (True, "must be text"),
    ],
)
def test_a_bandwidth_that_is_none_is_refused(text, said):
    with pytest.raises(TopologyError, match=said):
        bandwidth(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("20", "expected a number of at least 0 and a unit"),
        ("٣ms", "expected a number of at least 0 and a unit"),
        ("20 hours", "unknown unit 'hours'"),
        (-1, "at least 0 seconds"),
        (math.inf, "at least 0 seconds"),
        ([], "must be text"),
    ],
)
def test_a_latency_that_is_none_is_refused(text, said):
    with pytest.raises(TopologyError, match=said):
        latency(text)


@given(st.floats(1e-3, 1e15))
def test_what_is_shown_is_read_again(value):
    assert bandwidth(shown_bandwidth(value)) == pytest.approx(value, rel=0.006)
    assert latency(shown_seconds(value)) == pytest.approx(value, rel=0.006)


def test_bytes_are_shown_short():
    assert [shown_bytes(size) for size in (0, 7_150, 2_000_000)] == ["0 B", "7.15 kB", "2 MB"]
