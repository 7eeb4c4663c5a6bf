"""Policies as text: accepted texts, printing, and the errors for invalid texts."""

import itertools

import pytest

from pathcast.matching import engines
from pathcast.routing import Overlay, Policy, streaming_engines
from pathcast.transmission import Topology


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("ES", "ES"),
        ("L", "L"),
        ("L+s-sd", "L+s-sd"),
        ("L-d+s-s", "L+s-sd"),
        ("L+t+s", "L+st"),
        ("ES+ds", "ES+sd"),
        ("adaptive", "adaptive"),
        ("adaptive(0.5)", "adaptive(0.5)"),
    ],
)
def test_a_policy_prints_in_canonical_order(text: str, printed: str) -> None:
    assert str(Policy.read(text)) == printed
    assert Policy.read(printed) == Policy.read(text)
    assert Policy.read(Policy.read(text)) == Policy.read(text)


def test_every_combination_can_be_read() -> None:
    sets = ["".join(some) for count in range(4) for some in itertools.combinations("sdt", count)]
    for positive, negative in itertools.product(sets, ("", "s", "d", "sd")):
        text = "L" + (f"+{positive}" if positive else "") + (f"-{negative}" if negative else "")
        assert str(Policy.read(text)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ES-s", "before reading all of it"),
        ("ES+s-d", "'ES' does not support negative annotations"),
        ("L+x", r"unknown annotation '\+x'; use \+s \+d \+t"),
        ("L-t", "unknown annotation '-t'; use -s -d"),
        ("L+ss", "duplicate"),
        ("l", "use 'ES', 'L' or 'adaptive'"),
        ("", "use 'ES', 'L' or 'adaptive'"),
        ("L+", "use 'ES', 'L' or 'adaptive'"),
        ("adaptive+s", "use 'ES', 'L' or 'adaptive'"),
        ("adaptive(1.5)", "0 to 1"),
        ("adaptive(.)", "0 to 1"),
    ],
)
def test_others_are_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Policy.read(text)


def test_forwarding_early_needs_an_engine_that_runs_as_a_stream() -> None:
    overlay = Overlay(Topology.chain(2))
    for engine in set(engines()) - set(streaming_engines()):
        with pytest.raises(ValueError, match="use one of .*yfilter"):
            overlay.publish("<a/>", "ES", engine)
    with pytest.raises(ValueError, match="unknown engine"):
        overlay.publish("<a/>", "L", "nonesuch")
