"""Content-based networks compared with the flat matcher, and the content of their tables."""

import pickle
import random
from typing import Any

import pytest

from pathcast.errors import MessageError, TopologyError
from pathcast.messages import Filter, In, Interval, Message, compare
from pathcast.network import ContentNetwork, Crash, Faults, PayloadLimits
from pathcast.network.content_addressable.filter_point_transformation import Probe
from pathcast.network.tree.announcement_tree import ContentTree
from pathcast.transmission import Topology
from tests.network.world import World, draw_filter, draw_message, draw_tree


def tree_of(network: ContentNetwork) -> ContentTree:
    """The nodes of a content-based network."""
    assert isinstance(network.substrate, ContentTree)
    return network.substrate


def covered_on_every_lane(network):
    """Check the invariant of `forwarding_table_node.py` with a view of all nodes."""
    for node in network.substrate.nodes:
        for uplink, told in node.told.items():
            wanted = {
                node._filters[entry][0]: node._filters[entry][1].filter
                for entry in node.table.entries()
                if node.table.target(entry) != uplink
            }
            heard = network.substrate.nodes[uplink]
            there = {heard._filters[e][0] for e in heard.table.entries() if heard.table.target(e) == node.number}
            assert there == set(told.entries()) <= wanted.keys()
            for number, one in wanted.items():
                assert number in there or any(wanted[other].covers(one) for other in there), (str(one), there)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_deliveries_are_the_flat_matchers_while_subscriptions_come_and_go(seed):
    draw = random.Random(seed)
    topology = draw_tree(draw)
    world = World(ContentNetwork.build(topology))
    for step in range(40):
        if world.registered and draw.random() < 0.3:
            world.unregister(draw.randrange(len(world.registered)))
        else:
            world.register(draw.choice(topology.nodes), draw_filter(draw), draw.randrange(8))
        if step % 3 == 0:
            world.publish(draw_message(draw), draw.choice([None, None, draw.choice(topology.nodes)]))
    covered_on_every_lane(world.network)
    while world.registered:
        world.unregister(draw.randrange(len(world.registered)))
    covered_on_every_lane(world.network)
    assert all(not len(node.table) for node in tree_of(world.network).nodes)


@pytest.mark.slow
def test_many_registrations_at_once_are_the_same_as_one_after_the_other():
    draw = random.Random(5)
    topology = Topology.tree(4)
    rows = [(draw.choice(topology.nodes), draw_filter(draw), number) for number in range(200)]
    at_once, one_by_one = ContentNetwork.build(topology), ContentNetwork.build(topology)
    at_once.register_many(rows)
    for row in rows:
        one_by_one.register(*row)
    for _ in range(50):
        message = draw_message(draw)
        first, second = at_once.publish(message), one_by_one.publish(message)
        assert first.subscribers == second.subscribers
        assert first.links == second.links
    covered_on_every_lane(at_once)


def test_a_covered_filter_is_not_told_and_is_told_when_the_wide_one_goes():
    network = ContentNetwork.build(Topology.chain(3))
    network.publish(Message({"a": 1}))
    wide = network.register("r3", In("a", Interval(0, 9)), "wide")
    network.register("r3", In("a", Interval(2, 3)), "narrow")
    network.register("r3", Filter((In("a", Interval(4, 5)), compare("k", "=", 1))), "other terms too")
    first = tree_of(network).nodes[0].table
    assert [str(first.filter(entry)) for entry in first.entries()] == ["a in [0, 9]"]
    network.unregister(wide)
    assert sorted(str(first.filter(entry)) for entry in first.entries()) == ["a in [2, 3]", "a in [4, 5] and k = 1"]
    assert network.publish(Message({"a": 3})).subscribers == ["narrow"]


def test_a_filter_is_told_when_one_goes_that_only_in_turn_covered_it():
    network = ContentNetwork.build(Topology.chain(3))
    network.publish(Message({"a": 1}))
    middle = network.register("r3", In("a", Interval(5, 8)), "middle")
    network.register("r3", Filter((In("a", Interval(5, 9)), In("a", Interval(1, 7)))), "least")
    most = network.register("r3", Filter((In("a", Interval(0, 10)), In("a", Interval(5, 20)))), "most")
    network.unregister(middle)
    network.unregister(most)
    assert network.publish(Message({"a": 6})).subscribers == ["least"]


def test_a_message_passes_no_link_behind_which_nobody_wants_it():
    network = ContentNetwork.build(Topology.tree(3))
    network.register("r4", compare("a", ">", 5), "ada")
    trace = network.publish(Message({"a": 9}))
    assert set(trace.links) == {("r1", "r2"), ("r2", "r4")}
    assert network.publish(Message({"a": 1})).links == {}


def test_a_node_needs_nothing_but_its_own_state_to_forward():
    draw = random.Random(1)
    topology = Topology.tree(4)
    world = World(ContentNetwork.build(topology))
    for number in range(60):
        world.register(draw.choice(topology.nodes), draw_filter(draw), number)
    world.publish(draw_message(draw))
    for node in world.network.substrate.nodes:
        alone = pickle.loads(pickle.dumps(node))
        assert not any(type(value).__name__ in {"ContentTree", "ContentNetwork"} for value in vars(node).values())
        for _ in range(5):
            probe = Probe(draw_message(draw).bare())
            assert alone.step(probe, (), None) == node.step(probe, (), None)


def test_messages_published_anywhere_reach_all():
    topology = Topology.random(9, degree=3, seed=4)
    network = ContentNetwork.build(topology)
    for node in topology.nodes:
        network.register(node, compare("a", ">", 0), node)
    for node in topology.nodes:
        assert network.publish(Message({"a": 1}), node).subscribers == sorted(topology.nodes)


def test_bytes_hops_and_times_are_those_of_the_path():
    network = ContentNetwork.build(Topology.chain(4, bandwidth=1000.0, latency=0.5))
    network.register("r4", compare("a", "=", 1), "ada")
    message = Message({"a": 1})
    trace = network.publish(message)
    assert (trace.hops, trace.bytes, trace.hop_latency) == (3, 3 * message.size, 3.0)
    assert trace.latency == pytest.approx(3 * (0.5 + message.size / 1000))
    assert trace.traffic.ledger().total_bytes() == trace.bytes
    assert trace.last_hop_bytes() == message.size


def test_what_cannot_be_is_refused_by_name():
    with pytest.raises(TopologyError, match="unknown network kind 'dht'"):
        ContentNetwork.build(Topology.chain(2), kind="dht")
    network = ContentNetwork.build(Topology.chain(2))
    with pytest.raises(TopologyError, match="unknown node 'r9'"):
        network.register("r9", compare("a", "=", 1), "ada")
    with pytest.raises(TopologyError, match="unknown registration 5"):
        network.unregister(5)
    mine = network.register("r2", compare("a", "=", 1), "ada")
    other = ContentNetwork.build(Topology.chain(2)).register("r2", compare("a", "=", 2), "ada")
    with pytest.raises(TopologyError, match="registration 0 belongs to another network"):
        network.unregister(other)
    with pytest.raises(TopologyError, match=r"subscriber must be hashable, such as a string, got \['ada'\]"):
        network.register("r2", compare("a", "=", 1), ["ada"])  # type: ignore[arg-type]
    assert network.registrations == {0: mine}
    for options, reason in (
        ({"payloads": 400}, "payloads must be True"),
        ({"sample": [Filter()]}, "kind 'cbn' does not support sample; omit"),
    ):
        with pytest.raises(TopologyError, match=reason):
            ContentNetwork.build(Topology.chain(2), **options)
    with pytest.raises(TopologyError, match="repository_entries must be a whole number of at least 0"):
        PayloadLimits(repository_entries=-1)


def test_what_is_not_published_does_not_come_with_the_next_message():
    network = ContentNetwork.build(Topology.chain(3), payloads=True)
    network.register("r3", compare("a", ">", 0), "ada")
    good, crash = Message({"a": 1, "p": b"payload"}, ["p"]), Crash("r2", 0.0, 9.0)
    broken = iter([good, 1 / 2])
    refused: list[tuple[Any, Faults | None, str]] = [
        ([good, {"a": 1}], None, "a publication must be a Message"),
        (broken, None, "got 0.5"),
        ([good], Faults(crashes=[crash, Crash("r9", 0, 1)]), "unknown node 'r9'"),
        ([good], Faults(crashes=[crash, Crash("r3", 0, None)]), "need a CAN"),
    ]
    for messages, faults, reason in refused:
        with pytest.raises((MessageError, TopologyError), match=reason):
            network.publish_all(messages, faults=faults)
        assert len(network.publish(good).deliveries) == 1
    deliver = network.forwarders[2]._deliver

    def interrupted(*_):
        raise KeyboardInterrupt

    network.forwarders[2]._deliver = interrupted
    with pytest.raises(KeyboardInterrupt):
        network.publish_all([good, good], faults=Faults(crashes=[crash]), gap=1.0)
    network.forwarders[2]._deliver = deliver
    assert [one.message for one in network.publish(good).deliveries] == [good]
