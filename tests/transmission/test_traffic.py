"""Ledgers count traffic; the simulation equals the closed form, and queues."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast import TopologyError
from pathcast.transmission import LaneTraffic, Ledger, Send, Simulation, Topology, Underlay, Work


def test_a_message_of_several_kinds_is_one_message():
    ledger = Ledger(Topology.tree(3))
    ledger.carry("r1", "r2", {"document": 7000, "annotations": 464})
    ledger.carry("r2", "r1", 100, "reply")
    ledger.carry("r1", "r2", 0, "document")
    assert ledger.kinds == ["document", "annotations", "reply"]
    assert ledger.bytes_between("r1", "r2") == 7464 and ledger.messages_between("r1", "r2") == 2
    assert ledger.total_bytes("annotations") == 464 and ledger.total_messages("annotations") == 0
    assert ledger.total_bytes() == 7564 and ledger.total_bytes("never") == 0
    assert list(ledger.rows()) == [
        LaneTraffic("r1", "r2", "document", 7000, 2),
        LaneTraffic("r1", "r2", "annotations", 464, 0),
        LaneTraffic("r2", "r1", "reply", 100, 1),
    ]
    assert ledger.node_bytes().tolist() == [7564, 7564, 0, 0, 0, 0, 0]
    assert repr(ledger) == "Ledger(3 messages, 7,564 bytes; document, annotations, reply)"


def test_ledgers_of_one_shape_are_added():
    one, other = Ledger(Topology.chain(3)), Ledger(Topology.chain(3, bandwidth="1GB/s"))
    one.carry_many([0, 0, 2], [5, 6, 7])
    other.carry_many([0, 2], [10, 10], "reply")
    one.add(other)
    assert one.bytes_of().tolist() == [21, 0, 17, 0] and one.messages_of().tolist() == [3, 0, 2, 0]
    with pytest.raises(TopologyError, match="cannot add a ledger of Topology"):
        one.add(Ledger(Topology.chain(4)))
    with pytest.raises(TopologyError, match="got -1"):
        one.carry(0, 1, -1)
    one.clear()
    assert one.total_bytes() == 0


def down(topology: Topology, size: int, work: float):
    """A handler that sends everything to all children."""
    rooted = topology.rooted()

    def handler(node, message, now):
        return Work(work, [Send(child, size, message) for child in rooted.children[topology.number(node)]])

    return handler


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 10**6), st.floats(0, 0.1))
def test_without_queues_times_are_those_of_the_closed_form(levels, fanout, size, work):
    tree = Topology.tree(levels, fanout, bandwidth="3MB/s", latency="7ms")
    ledger = Ledger(tree)
    simulation = Simulation(tree, down(tree, size, work), ledger=ledger)
    simulation.inject("r1", "news")
    simulation.run()
    depth = tree.rooted().depth
    assert sorted(one.node for one in simulation.handled) == sorted(tree.nodes)
    for one in simulation.handled:
        level = int(depth[tree.number(one.node)])
        assert one.arrived == pytest.approx(level * (work + 0.007 + size / 3e6))
    assert ledger.total_bytes() == size * (len(tree) - 1) and ledger.total_messages() == len(tree) - 1


def test_a_lane_sends_one_message_after_the_other_while_they_travel_together():
    chain = Topology.chain(2, bandwidth=1000, latency=5)
    simulation = Simulation(chain, down(chain, 1000, 0.0))
    for _ in range(3):
        simulation.inject("r1", "x")
    simulation.run()
    assert [one.arrived for one in simulation.handled if one.node == "r2"] == [6, 7, 8]
    assert simulation.longest_queue.max() == 2 and simulation.lane_seconds.tolist() == [3, 0]


@pytest.mark.parametrize(("processors", "ends"), [(1, [2, 4, 6]), (2, [2, 2, 4]), (3, [2, 2, 2])])
def test_a_message_waits_for_a_processor(processors, ends):
    single = Topology.chain(1)
    simulation = Simulation(single, lambda node, message, now: Work(2.0), processors=processors)
    for number in range(3):
        simulation.inject("r1", number)
    simulation.run()
    assert [one.ended for one in simulation.handled] == ends
    assert simulation.throughput(3) == 3 / (6 / processors)


def test_a_message_may_leave_before_the_work_ends():
    star = Topology.star(4, bandwidth=1000)

    def handler(node, message, now):
        eager = [Send("r2", 0, after=3.0), Send("r3", 0, after=1.0), Send("r4", 0)]
        return Work(4.0, eager) if node == "r1" else Work()

    simulation = Simulation(star, handler)
    simulation.inject("r1", None, at=10.0)
    assert simulation.run() == 14
    assert {one.node: one.arrived for one in simulation.handled} == {"r1": 10, "r3": 11, "r2": 13, "r4": 14}


def test_faults_lose_double_and_delay():
    chain = Topology.chain(2, bandwidth="unlimited", latency=1)
    fates = iter([[], [0.0, 2.0], [5.0]])
    simulation = Simulation(chain, down(chain, 10, 0.0), faults=lambda lane, send, now: next(fates))
    for name in "abc":
        simulation.inject("r1", name)
    simulation.run()
    arrived = [(one.message, one.arrived) for one in simulation.handled if one.node == "r2"]
    assert arrived == [
        ("b", 1),
        ("b", 3),
        ("c", 6),
    ]


def test_a_handler_may_set_a_timer_and_a_run_may_pause():
    single = Topology.chain(1)

    def handler(node, message, now):
        if message < 3:
            simulation.inject(node, message + 1, at=now + 2)
        return Work()

    simulation = Simulation(single, handler)
    simulation.inject("r1", 1)
    assert simulation.run(until=3.0) == 3 and len(simulation.handled) == 2
    assert simulation.run() == 4 and [one.message for one in simulation.handled] == [1, 2, 3]
    with pytest.raises(TopologyError, match="cannot arrive at 1 s"):
        simulation.inject("r1", 1, at=1)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (Work(-1.0), "at least 0, but the handler returned -1.0"),
        (
            Work(1.0, [Send("r2", 1, after=2.0)]),
            r"from 0 to Work.seconds \(1.0 s\), but the handler of 'r1' returned 2.0 s",
        ),
        (Work(1.0, [Send("r3", 1)]), "no link between 'r1' and 'r3'"),
    ],
)
def test_work_that_can_not_be_is_refused(work, said):
    simulation = Simulation(Topology.chain(3), lambda node, message, now: work)
    simulation.inject("r1", None)
    with pytest.raises(TopologyError, match=said):
        simulation.run()
    with pytest.raises(TopologyError, match="at least 1, got 0"):
        Simulation(Topology.chain(3), lambda node, message, now: work, processors=0)


def test_an_overlay_lies_upon_paths_and_its_traffic_upon_links():
    chain = Topology.chain(5)
    speeds = ["1MB/s", "2MB/s", "3MB/s", "4MB/s"]
    physical = Topology(chain.nodes, chain.ends, bandwidth=speeds, latency="1ms")
    underlay = Underlay(physical, ["r5", "r1", "r3"])
    overlay = underlay.tree(root="r3")
    assert overlay.root == "r3" and {frozenset(overlay.link_at(n).ends) for n in range(2)} == {
        frozenset(("r1", "r3")),
        frozenset(("r3", "r5")),
    }
    assert overlay.link("r1", "r3").bandwidth == 1e6 and overlay.link("r1", "r3").latency == pytest.approx(0.002)
    ledger = Ledger(overlay)
    ledger.carry("r3", "r1", 100, "document")
    ledger.carry("r3", "r5", 10)
    below = underlay.below(ledger)
    assert below.link_bytes().tolist() == [100, 100, 10, 10] and below.bytes_between("r2", "r1", "document") == 100
    assert below.total_messages() == 4


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.integers(0, 1000), st.integers(0, 5))
def test_a_mesh_connects_all_hosts(hosts, seed, degree):
    physical = Topology.internet(60, seed=seed)
    underlay = Underlay(physical, physical.sample(hosts, seed=seed))
    mesh = underlay.mesh(degree)
    assert mesh.is_connected and len(mesh) == hosts
    apart = underlay.latencies()
    for number, (a, b) in enumerate(mesh.ends):
        assert mesh.latency[number] == pytest.approx(apart[a, b])


def test_hosts_that_are_no_overlay_are_refused():
    with pytest.raises(TopologyError, match="'r1' twice; give each host once"):
        Underlay(Topology.chain(3), ["r1", "r1"])
    with pytest.raises(TopologyError, match="no path between the hosts"):
        Underlay(Topology(["a", "b"], []), ["a", "b"]).mesh()


def test_twenty_thousand_nodes_carry_an_overlay():
    physical = Topology.internet(20_000, seed=1)
    underlay = Underlay(physical, physical.sample(100, seed=1))
    mesh = underlay.mesh(3)
    assert mesh.is_connected and physical.is_connected
    assert mesh.spanning_tree().is_tree
