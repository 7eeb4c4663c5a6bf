"""Times are measured where a stream stops: they increase with the place, and are less than a whole pass."""

from itertools import count
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.documents import Limits, read
from pathcast.matching.engine_contract import Engine, Streaming
from pathcast.patterns import parse
from pathcast.routing import Overlay, streaming_engines
from pathcast.routing.router import Router
from pathcast.routing.router_processing_time import MOST_PLACES, Clock, run_stream
from pathcast.routing.well_formed_document_truncation import cut
from pathcast.transmission import Topology
from tests.generators import random_document
from tests.roxsum.drawn import ODD


def documents(seed: int) -> bytes:
    random = Random(seed)
    while (document := random_document(random, size=12)).prolog:
        pass
    return document.data


@settings(max_examples=80)
@given(st.integers(0, 1 << 16).map(documents) | st.sampled_from([each for each in ODD if isinstance(each, bytes)]))
def test_a_document_cut_short_is_its_beginning(data: bytes) -> None:
    whole = read(data)
    for place in range(1, len(whole) + 1):
        part = read(cut(whole, place))
        if len(part) == len(whole):
            continue
        assert len(part) == place
        assert [part.name(each) for each in range(place)] == [whole.name(each) for each in range(place)]
        assert [part.parent(each) for each in range(place)] == [whole.parent(each) for each in range(place)]
        assert [part.attributes(each) for each in range(place)] == [whole.attributes(each) for each in range(place)]


def test_ascii_documents_are_really_cut() -> None:
    whole = read(b"<a><b>x</b><n:c xmlns:n='u' ><d/></n:c></a>")
    assert cut(whole, 3) == b"<a><b>x</b><n:c xmlns:n='u' ></n:c></a>"


class Recording:
    """An engine that records how far its streams ran."""

    def __init__(self, engine: Engine) -> None:
        assert isinstance(engine, Streaming)
        self.engine = engine
        self.read: list[int] = []

    def match_stream(self, document, *, skip=None, link=None):
        matches = self.engine.match_stream(document, skip=skip, link=link)
        self.read.append(matches.read)
        return matches


@pytest.mark.parametrize("name", streaming_engines())
def test_each_decision_is_timed_by_a_stream_that_stops_there(name: str) -> None:
    router = Router("r", None, 100, Limits())
    for number, label in enumerate("bcde", 1):
        router.subscribe(number, parse(f"//{label}"), label)
    data = b"<a>" + b"".join(b"<%s/>" % label.encode() + b"<x/>" * 20 for label in "bcd") + b"</a>"
    document = router.read(data, text=False)[0]
    engine, view = Recording(router.table.engine(name)), router.table.view(None)
    lengths: list[int] = []

    def read_part(part: bytes):
        lengths.append(len(part))
        return router.read(part, text=False)

    stream = run_stream(
        Clock(), engine, read_part, document, 1e-9, skip=view.idle, group=view.group,
        urgent=lambda decided: set(decided.values()),
    )  # fmt: skip
    assert sorted(stream.decided.values()) == [2, 23, 44]
    assert engine.read == [len(document), 2, 23, 44]
    assert lengths == sorted(lengths) and lengths[-1] < len(data)
    for times in zip(*(stream.seconds[place] for place in (2, 23, 44)), strict=True):
        assert list(times) == sorted(times)
    assert stream.seconds[44].earlier(stream.total) == stream.seconds[44]


def test_a_stream_stops_when_everybody_has_the_document() -> None:
    overlay = Overlay(Topology.chain(3))
    overlay.subscribe("r3", "/a/b", "ada")
    document = b"<a><b/>" + b"<c/>" * 500 + b"</a>"
    early = overlay.publish(document, "ES", "yfilter").per_router
    assert [each.read for each in early.values()] == [2, 2, 2]
    late = overlay.publish(document, "L", "yfilter").per_router
    assert [each.read for each in late.values()] == [502, 502, 502]


def test_many_local_places_are_timed_by_a_few_runs() -> None:
    router = Router("r", None, 100, Limits())
    labels = [f"n{number}" for number in range(100)]
    for number, label in enumerate(labels):
        router.subscribe(number, parse(f"//{label}"), label)
    document = router.read(b"<a>" + b"".join(f"<{label}/>".encode() for label in labels) + b"</a>", text=False)[0]
    engine, view = Recording(router.table.engine("yfilter")), router.table.view(None)
    stream = run_stream(
        Clock(), engine, lambda part: router.read(part, text=False), document, 1e-9,
        skip=view.idle, group=view.group, urgent=lambda decided: set(),
    )  # fmt: skip
    assert len(stream.decided) == 100
    assert len(engine.read) <= MOST_PLACES + 1
    assert set(stream.seconds) == set(stream.decided.values())
    times = np.array([stream.seconds[place] for place in sorted(stream.seconds)])
    assert np.all(np.diff(times, axis=0) >= 0)


def test_the_quickest_of_several_runs_counts() -> None:
    clock, calls = Clock(5), count(1)
    result, seconds = clock.timed(lambda: next(calls))
    assert (result, next(calls)) == (5, 6)
    assert seconds >= 0


def test_transmission_is_part_of_the_time() -> None:
    slow = Overlay(Topology.chain(2, bandwidth="1kB/s", latency="2s"))
    slow.subscribe("r2", "//b", "ada")
    document = b"<a><b/>" + b" " * 1000 + b"</a>"
    (delivery,) = slow.publish(document, "L").deliveries
    assert 3.0 < delivery.time < 3.5
