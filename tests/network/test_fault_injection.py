"""Links that drop, delay, reorder and duplicate, nodes that crash: every subscriber gets every message once."""

import random

import pytest

from pathcast.messages import Message, compare
from pathcast.network import ContentNetwork, Crash, Faults, PayloadLimits
from pathcast.transmission import Topology
from tests.network.world import World, draw_filter, draw_message, draw_tree


def run_schedule(seed):
    """A network, its subscriptions, some messages in flight at once, and a schedule of faults, all from one seed."""
    draw = random.Random(seed)
    topology = draw_tree(draw)
    limits = PayloadLimits(draw.choice([None, 60]), draw.choice([0, 1, 4, None]))
    plain = [node for node in topology.nodes if draw.random() < 0.2]
    choices: list[bool | PayloadLimits] = [False, limits]
    world = World(ContentNetwork.build(topology, payloads=draw.choice(choices), plain=plain))
    for _ in range(20):
        world.register(draw.choice(topology.nodes), draw_filter(draw), draw.randrange(10))
    at = draw.choice([None, draw.choice(topology.nodes)])
    world.publish(draw_message(draw), at)
    messages = [draw_message(draw) for _ in range(draw.randrange(1, 6))]
    faults = Faults.drawn(seed, topology.nodes)
    trace = world.publish_all(messages, at, faults, draw.choice([0.0, 0.1]))
    assert not world.network._outbox
    return trace


@pytest.mark.slow
def test_every_schedule_of_faults_ends_in_the_same_deliveries(request):
    for seed in range(4_000 if request.config.getoption("--long") else 300):
        run_schedule(seed)


def test_a_schedule_replays():
    one, other = (run_schedule(11) for _ in range(2))
    assert one.links == other.links
    faults, runs = Faults(seed=3, drop=0.4, delay=0.4), []
    for _ in range(2):
        network = ContentNetwork.build(Topology.chain(6, latency=0.1))
        network.register("r6", compare("a", ">", 0), "ada")
        runs.append(network.publish(Message({"a": 1}), faults=faults))
    assert runs[0].links == runs[1].links and runs[0].latency == runs[1].latency
    assert [(d.subscriber, d.seconds) for d in one.deliveries] == [(d.subscriber, d.seconds) for d in other.deliveries]


def test_a_node_that_crashes_with_a_message_in_its_hands_gets_it_again():
    network = ContentNetwork.build(Topology.chain(4, latency=0.1), payloads=True)
    network.register("r4", compare("a", ">", 0), "ada")
    network.register("r2", compare("a", ">", 0), "bob")
    message = Message({"a": 1, "p": b"payload"}, ["p"])
    trace = network.publish(message, faults=Faults(crashes=[Crash("r3", at=0.15, down=1.0)]))
    assert trace.subscribers == ["ada", "bob"]
    assert trace.latency > 1.0
    assert all(one.message == message for one in trace.deliveries)


def test_the_servers_own_node_may_crash():
    network = ContentNetwork.build(Topology.chain(2, latency=0.1))
    network.register("r2", compare("a", ">", 0), "ada")
    trace = network.publish(Message({"a": 1}), faults=Faults(crashes=[Crash("r1", at=0.0, down=3.0)], drop=0.5))
    assert trace.subscribers == ["ada"]


def test_without_faults_nothing_is_acknowledged():
    network = ContentNetwork.build(Topology.chain(3))
    network.register("r3", compare("a", ">", 0), "ada")
    assert network.publish(Message({"a": 1})).traffic.messages("control") == 0
    assert network.publish(Message({"a": 1}), faults=Faults()).traffic.messages("control") == 2


def test_probabilities_are_checked():
    with pytest.raises(Exception, match="drop must be a probability of at least 0 and below 1, got 1"):
        Faults(drop=1)
    with pytest.raises(Exception, match="longest must be at least 0 seconds, got -1"):
        Faults(longest=-1)
    with pytest.raises(Exception, match="times of a crash must be at least 0 seconds, got at=-1"):
        Crash("r1", -1, None)
