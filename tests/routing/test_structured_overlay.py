"""With structure annotations routers match without parsing, and deliver as a flat matcher would."""

from functools import cache
from random import Random

import pytest

from pathcast.matching import engines
from pathcast.routing import Overlay, streaming_engines
from pathcast.routing.annotation_header_codec import MOST_STRUCTURE
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema

from .drawn import delivered, world_of


@cache
def advertised_world(seed):
    """A world that all policies share: its links keep what they have learnt under earlier policies."""
    world = world_of(1000 + seed)
    world.overlay.advertise(keep=0.25)
    return world


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ["L+t", "L+st-sd", "L+sdt", "ES+t", "ES+st"])
def test_deliveries_are_those_of_a_flat_matcher(policy, seed):
    world = advertised_world(seed)
    able = streaming_engines() if policy.startswith("ES") else engines()
    for number, document in enumerate(world.documents):
        report = world.overlay.publish(document, policy, able[(seed + number) % len(able)])
        assert delivered(report) == world.flat(document)


def chain(subscriptions: list[str], nodes: int = 4) -> Overlay:
    from pathcast.transmission import Topology

    overlay = Overlay(Topology.chain(nodes))
    for number, xpath in enumerate(subscriptions):
        overlay.subscribe(f"r{nodes - number % 2}", xpath, f"s{number}")
    overlay.advertise(keep=0.5)
    return overlay


def test_only_the_first_router_parses():
    overlay = chain(["/a/b", "//c[@x = '1']", "//d[. = 'red']"])
    document = b"<a><b><c x='1'/></b><d>r<e>e</e>d</d></a>"
    for _ in range(2):
        report = overlay.publish(document, "L+t")
        assert len(report.deliveries) == 3
        assert [each.parsed for each in report.per_router.values()] == [True, False, False, False]
        assert all(each.refused is None for each in report.per_router.values())
    assert report.per_router["r2"].annotations["+t"] < 80


def test_a_structure_that_is_too_large_for_a_header_is_left_out():
    """The structure contains the whole of a value with an entity reference."""
    overlay = chain(["/a/b", "//c", "//d[. = 'red']"])
    large = overlay.publish(b"<a><b/><c/><d>&amp;" + b"d" * MOST_STRUCTURE + b"</d></a>", "L+t")
    assert len(large.deliveries) == 2 and all(each.parsed for each in large.per_router.values())
    small = overlay.publish(b"<a><b/><d/></a>", "L+t").per_router
    assert [each.parsed for each in small.values()] == [True, False, False, False]


def test_a_router_that_forgot_parses_once_and_tells():
    overlay = chain(["/a/b", "//c"])
    document = b"<a><b/><c/></a>"
    overlay.publish(document, "L+t")
    overlay.router("r3").structures.forget()
    forgetful = overlay.publish(document, "L+t").per_router
    assert forgetful["r3"].parsed and "has not received its label paths" in (forgetful["r3"].refused or "")
    assert len(overlay.publish(document, "L+t").deliveries) == 2
    assert not overlay.publish(document, "L+t").per_router["r3"].parsed


def test_values_that_are_asked_for_later_travel_from_then_on():
    overlay = chain(["/a/b"])
    document = b"<a><b x='1'>red</b></a>"
    overlay.publish(document, "L+t")
    overlay.subscribe("r4", "//b[@x = '1' and . = 'red']", "late")
    report = overlay.publish(document, "L+t")
    assert "late" in {each.subscriber for each in report.deliveries}
    assert not report.per_router["r4"].parsed


def test_a_copy_that_leaves_at_once_has_its_structure():
    overlay = chain(["/a/b", "/a/c"])
    report = overlay.publish(b"<a><b/></a>", "L+st")
    assert [each.forwarding for each in report.per_router.values()][1:3] == ["annotations", "L"]
    assert [each.parsed for each in report.per_router.values()] == [True, False, False, False]
    assert "+t" in report.per_router["r3"].annotations


def test_an_untrusted_link_is_parsed_behind():
    overlay = chain(["/a/b"])
    overlay.distrust("r2", "r3")
    report = overlay.publish(b"<a><b/></a>", "L+t")
    assert [each.parsed for each in report.per_router.values()] == [True, False, True, False]
    assert len(report.deliveries) == 1


@cache
def news_overlay(levels, count, seed, **workload):
    """An overlay with subscriptions of the news schema, shared by the tests that ask for it."""
    random = Random(seed)
    overlay = Overlay.tree(levels=levels, fanout=2)
    for xpath in generate_subscriptions(news_schema(), count, SubscriptionOptions(**workload), seed=seed):
        overlay.subscribe(random.choice(overlay.routers), xpath, f"s{random.randrange(10**6)}")
    overlay.advertise()
    return overlay


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines())
def test_every_engine_takes_what_was_decoded(engine):
    overlay = news_overlay(3, 60, 5, predicate_probability=0.1, nested_probability=0.2)
    for document in generate_documents(news_schema(), 6, seed=5):
        plain, structured = overlay.publish(document, "L", engine), overlay.publish(document, "L+t", engine, repeats=2)
        assert delivered(plain) == delivered(structured)
        assert sum(each.parsed for each in structured.per_router.values()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["L+t", "L+st", "L+t-sd", "ES+t"])
def test_plain_paths_are_matched_and_passed_on_without_elements(policy):
    random = Random(7)
    overlay = news_overlay(4, 150, 7, max_depth=7)
    engine = "automaton" if policy.startswith("L") else None
    for number, document in enumerate(generate_documents(news_schema(), 12, seed=7)):
        if number % 5 == 3:
            overlay.router(random.choice(overlay.routers)).structures.forget()
        plain, told = overlay.publish(document, "L"), overlay.publish(document, policy, engine, repeats=2)
        assert delivered(plain) == delivered(told)
        again = overlay.publish(document, policy, engine)
        assert delivered(plain) == delivered(again)
        assert sum(each.parsed for each in again.per_router.values()) == 1
