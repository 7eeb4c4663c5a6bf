"""False, outdated or malformed annotations cost time, never a delivery."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.errors import TopologyError
from pathcast.routing import Overlay
from pathcast.routing import document_forwarding as handling
from pathcast.routing.annotation_header_codec import Encoded
from pathcast.routing.annotations.document_annotations import Annotations, Bound, LastPlaces
from pathcast.routing.annotations.outgoing_annotations import AnnotationMaker
from pathcast.transmission import Topology
from tests.routing.drawn import NAMES, World, delivered, world_of

POLICIES = ("L", "L+s-sd", "L+sd-sd", "ES", "ES+s", "adaptive(0.5)")
seeds = st.integers(0, 1 << 20)


def lie(random: Random, making: AnnotationMaker, neighbour: str, version: int = 0) -> Annotations:
    """Random well-formed annotations."""
    received = making.router.received[neighbour]
    count, patterns = len(received.aggregates), len(received.data)
    bindings = tuple(
        Bound(each.aggregate, tuple((number, tuple(random.choices(NAMES, k=1))) for number in each.wildcards))
        for each in received.simple
        if random.random() < 0.7
    )
    last_places = LastPlaces.of((number, random.randrange(3)) for number in range(min(patterns, 5)))
    return Annotations(
        received.version + version,
        bindings,
        last_places,
        failed := np.array([random.random() < 0.7 for _ in range(count)], dtype=np.bool_),
        np.array([random.random() < 0.7 for _ in range(patterns)], dtype=np.bool_),
        holding=~failed,
    )


def tell_lies(patch: pytest.MonkeyPatch, seed: int, version: int = 0) -> None:
    random = Random(seed)
    for name in ("late", "early", "at_once"):
        patch.setattr(AnnotationMaker, name, lambda making, neighbour, *_: lie(random, making, neighbour, version))


def distrusted(world: World) -> World:
    for router in world.overlay.routers:
        for neighbour in world.overlay.topology.neighbours(router):
            world.overlay.distrust(neighbour, router)
    return world


@pytest.mark.slow
@settings(max_examples=12)
@given(seeds)
def test_over_untrusted_links_lies_cost_no_delivery(seed: int) -> None:
    world = distrusted(world_of(seed))
    world.overlay.advertise(0.5)
    with pytest.MonkeyPatch.context() as patch:
        tell_lies(patch, seed)
        for document in world.documents:
            for policy in Random(seed).sample(POLICIES, 2):
                assert delivered(world.overlay.publish(document, policy, "yfilter")) == world.flat(document)


@pytest.mark.slow
def test_over_trusted_links_lies_are_believed() -> None:
    """Show that the test above can fail."""
    wrong = 0
    for seed in range(0, 20, 2):
        world = world_of(seed)
        with pytest.MonkeyPatch.context() as patch:
            tell_lies(patch, seed)
            for document in world.documents:
                wrong += delivered(world.overlay.publish(document, "L+s-sd", "yfilter")) != world.flat(document)
    assert wrong > 3


@pytest.mark.slow
@settings(max_examples=10)
@given(seeds, st.sampled_from([-1, 1, 7]))
def test_annotations_for_another_version_are_not_looked_at(seed: int, version: int) -> None:
    world = world_of(seed)
    world.overlay.advertise(0.5)
    world.overlay.advertise(0.5)
    with pytest.MonkeyPatch.context() as patch:
        tell_lies(patch, seed, version)
        for document in world.documents:
            report = world.overlay.publish(document, "L+s-sd", "yfilter")
            assert delivered(report) == world.flat(document)
            later = list(report.per_router.values())[1:]
            assert all("made for version" in (each.refused or "") for each in later if each.annotations)


@pytest.mark.slow
@settings(max_examples=10)
@given(seeds)
def test_headers_that_are_noise_are_not_looked_at(seed: int) -> None:
    world, random = world_of(seed), Random(seed)

    def noise(annotations: Annotations, *, text: bool = False) -> Encoded:
        body = bytes([text | 2 * random.randrange(128)]) + random.randbytes(random.randrange(20))
        return Encoded(bytes([len(body)]) + body)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handling, "encode", noise)
        for router in world.overlay.routers:
            for neighbour in world.overlay.topology.neighbours(router):
                world.overlay.distrust(neighbour, router)
        for document in world.documents:
            assert delivered(world.overlay.publish(document, "L+s-sd", "yfilter")) == world.flat(document)


def test_nothing_that_came_over_an_untrusted_link_is_passed_on() -> None:
    overlay = Overlay(Topology.chain(4), untrusted=[("r1", "r2")])
    for xpath in ("/a/b/c", "/a/b/d", "/a/x/c"):
        overlay.subscribe("r4", xpath, xpath)
    overlay.advertise(0.5)
    with pytest.MonkeyPatch.context() as patch:
        honest, random = AnnotationMaker.late, Random(1)

        def late(making: AnnotationMaker, neighbour: str, *rest: Any) -> Annotations:
            if making.router.name == "r1":
                return lie(random, making, neighbour)
            return honest(making, neighbour, *rest)

        patch.setattr(AnnotationMaker, "late", late)
        for _ in range(10):
            report = overlay.publish("<a><b><c/></b></a>", "L+s-sd", "yfilter")
            assert delivered(report) == {("/a/b/c", "r4")}
            assert "untrusted" in (report.per_router["r2"].refused or "")


def test_only_links_can_be_distrusted() -> None:
    with pytest.raises(TopologyError, match="no link"):
        Overlay(Topology.chain(3), untrusted=[("r1", "r3")])
