"""Overlays from shapes, graphs and files; subscriptions that change; errors for invalid arguments."""

from pathlib import Path

import networkx
import pytest

import pathcast
from pathcast.errors import DocumentError, PatternError, TopologyError
from pathcast.matching import Tuning
from pathcast.routing import Overlay
from pathcast.transmission import Topology
from tests.routing.drawn import delivered


def test_the_example_of_the_documentation() -> None:
    overlay = pathcast.routing.Overlay.tree(levels=4, fanout=2, bandwidth="10MB/s", latency="0ms")
    assert overlay.routers == [f"r{number}" for number in range(1, 16)]
    overlay.subscribe(router="r7", xpath="/nitf//p", subscriber="ada")
    overlay.advertise(keep=0.25)
    report = overlay.publish("<nitf><body><p/></body></nitf>", policy="L+s-sd")
    assert [(each.subscriber, each.router) for each in report.deliveries] == [("ada", "r7")]
    assert list(report.per_router) == ["r1", "r3", "r7"]
    assert report.bytes == sum(each.sent for each in report.per_router.values()) > 0
    assert report.throughput == 1 / max(each.processing for each in report.per_router.values())


def test_routers_of_a_graph_with_cycles_form_a_spanning_tree() -> None:
    graph = networkx.cycle_graph(5)
    overlay = Overlay.from_graph(graph, bandwidth="1MB/s", root=2)
    assert overlay.routers[0] == "2"
    for router in overlay.routers:
        overlay.subscribe(router, "//a", "ada")
    for policy in ("ES", "L+s-sd"):
        assert delivered(overlay.publish("<a/>", policy, "yfilter")) == {("ada", router) for router in overlay.routers}


ENTITIES = """<!DOCTYPE a [<!ENTITY word "rain"><!ENTITY part "<b><c>&word;</c></b>">]>
<a>&part;<d>&word;</d>&part;</a>"""


@pytest.mark.parametrize("policy", ["L", "ES", "adaptive", "ES+s", "L+s-sd", "L+st-sd"])
@pytest.mark.parametrize("untrusted", [(), [("r1", "r2")]], ids=["trusted", "untrusted"])
def test_documents_with_entities_reach_their_subscribers_where_these_are_expanded(
    policy: str, untrusted: list[tuple[str, str]]
) -> None:
    overlay = Overlay(Topology.chain(3), entities="expand", untrusted=untrusted)
    for number, xpath in enumerate(["//c[. = 'rain']", "/a/d[contains(., 'ain')]", "//c[. = 'snow']", "//d"]):
        overlay.subscribe(f"r{number % 3 + 1}", xpath, f"s{number}")
    overlay.advertise(keep=0.5)
    received: list[bytes] = []
    report = overlay.publish(ENTITIES, policy, receive=lambda _, data: received.append(data))
    assert delivered(report) == {("s0", "r1"), ("s1", "r2"), ("s3", "r1")}
    assert received == [ENTITIES.encode()] * 3


def test_documents_with_entities_are_refused_unless_an_overlay_expands_them() -> None:
    overlay = Overlay(Topology.chain(2))
    with pytest.raises(DocumentError, match="entities='expand' allows internal entities"):
        overlay.publish(ENTITIES)
    with pytest.raises(ValueError, match="entities must be 'refuse' or 'expand', got 'fetch'"):
        Overlay(Topology.chain(2), entities="fetch")  # type: ignore[arg-type]
    external = "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>"
    with pytest.raises(DocumentError, match="external entity"):
        Overlay.tree(2, entities="expand").publish(external)


def test_a_topology_in_pieces_is_refused() -> None:
    with pytest.raises(TopologyError, match="cannot be reached"):
        Overlay(Topology(["a", "b"], []))


def test_a_topology_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "overlay.toml"
    file.write_text('kind = "star"\nnodes = 4\nbandwidth = "1GB/s"\n')
    overlay = Overlay.from_file(file, namespaces={"n": "urn:n"})
    overlay.subscribe("r4", "//n:a", "ada")
    assert delivered(overlay.publish('<a xmlns="urn:n"/>', "L+s-sd")) == {("ada", "r4")}


def test_subscribers_at_several_routers_get_a_copy_at_each() -> None:
    overlay = Overlay(Topology.chain(3))
    overlay.subscribe("r1", "//a", "ada")
    overlay.subscribe("r1", "/a", "ada")
    overlay.subscribe("r3", "//a", "ada")
    assert delivered(overlay.publish("<a/>")) == {("ada", "r1"), ("ada", "r3")}


def test_subscriptions_after_advertising_are_heard_of_and_those_given_up_forgotten() -> None:
    overlay = Overlay(Topology.chain(3))
    overlay.subscribe("r3", "/a/b", "ada")
    overlay.advertise(keep=0.5)
    before = overlay.router("r3").made["r2"].version
    id = overlay.subscribe("r3", "/x//y", "bob")
    assert delivered(overlay.publish("<x><z><y/></z></x>")) == {("bob", "r3")}
    assert overlay.router("r3").made["r2"].version == before + 1
    overlay.unsubscribe(id)
    report = overlay.publish("<x><z><y/></z></x>")
    assert (report.deliveries, list(report.per_router)) == ((), ["r1"])
    with pytest.raises(KeyError, match="unknown subscription id"):
        overlay.unsubscribe(id)


def test_changes_do_not_make_advertisements_anew() -> None:
    overlay = Overlay(Topology.chain(2))
    overlay.subscribe_many("r2", [f"/a/b{number}/c" for number in range(200)], "ada")
    overlay.advertise(keep=0.2)
    made = overlay.router("r2").made["r1"]
    overlay.subscribe("r2", "/a/b7/c[d]", "bob")
    overlay.publish("<a/>")
    after = overlay.router("r2").made["r1"]
    assert after.aggregates == made.aggregates
    assert after.known.derived is made.known.derived
    overlay.subscribe("r2", "/q", "bob")
    assert delivered(overlay.publish("<q/>")) == {("bob", "r2")}
    assert overlay.router("r2").made["r1"].aggregates[:-1] == made.aggregates


def test_a_table_of_mostly_unused_entries_is_made_anew() -> None:
    overlay = Overlay(Topology.chain(3))
    for name in ("r1", "r2", "r3"):
        overlay.router(name).table.patterns.tuning = Tuning(unused_entries=4)
    kept = [overlay.subscribe("r2", xpath, xpath) for xpath in ("/a/b/c", "/a/b/d", "//e")]
    ids = overlay.subscribe_many("r2", [f"//x{number}" for number in range(30)], "ada")
    overlay.subscribe("r3", "//c", "bob")
    overlay.advertise(keep=0.9)
    first = overlay.router("r2").table
    for number, id in enumerate(ids):
        overlay.unsubscribe(id)
        for policy in ("L+s-sd", "L+sdt-sd"):
            report = overlay.publish("<a><b><c/></b></a>", policy, "yfilter")
            assert delivered(report) == {("/a/b/c", "r2"), ("bob", "r3")}, number
    assert overlay.router("r2").table is not first
    assert len(overlay.router("r2").table) < 15
    overlay.unsubscribe(kept[0])
    assert delivered(overlay.publish("<a><b><c/></b></a>", "L+s-sd")) == {("bob", "r3")}


def test_subscribing_many_is_all_or_nothing() -> None:
    overlay = Overlay(Topology.chain(1))
    with pytest.raises(PatternError) as caught:
        overlay.subscribe_many("r1", ["/a", "/b[", "/c"], "ada")
    assert caught.value.index == 1
    assert len(overlay) == 0
    with pytest.raises(ValueError, match="2 expressions but 1 subscribers"):
        overlay.subscribe_many("r1", ["/a", "/b"], ["ada"])
    with pytest.raises(TypeError, match="use subscribe"):
        overlay.subscribe_many("r1", "/a", "ada")
    assert overlay.subscribe_many("r1", ["/a", "/b"], ["ada", "bob"]) == [1, 2]
    assert delivered(overlay.publish("<b/>")) == {("bob", "r1")}


def test_what_can_not_be_is_refused() -> None:
    overlay = Overlay(Topology.chain(2))
    with pytest.raises(TopologyError, match="did you mean 'r2'"):
        overlay.subscribe("r22", "/a", "ada")
    with pytest.raises(DocumentError):
        overlay.publish("<a>")
    with pytest.raises(ValueError, match="keep must be above 0"):
        overlay.advertise(keep=0)
    with pytest.raises(ValueError, match="repeats must be at least 1, got 0"):
        overlay.publish("<a/>", repeats=0)
    with pytest.raises(TopologyError, match="unknown node"):
        overlay.publish("<a/>", at="nowhere")


def test_a_document_that_was_read_can_be_published() -> None:
    overlay = Overlay(Topology.chain(2))
    overlay.subscribe("r2", "//b", "ada")
    assert len(overlay.publish(pathcast.documents.read(b"<a><b/></a>")).deliveries) == 1


def test_nobody_wants_it() -> None:
    overlay = Overlay(Topology.chain(2))
    report = overlay.publish("<a/>", "ES", "yfilter")
    assert report.deliveries == ()
    assert report.response_time == report.last_time == 0.0
    assert not report.per_router["r1"].parsed
