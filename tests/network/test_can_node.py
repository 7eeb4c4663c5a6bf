"""Content-addressable networks compared with the flat matcher, while nodes join, leave and fail."""

import pickle
import random
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from pathcast.errors import MessageError, TopologyError
from pathcast.joins import Client, JoinServer, Schema
from pathcast.messages import Between, Box, Filter, In, Interval, Message, Points, SomePoint, compare
from pathcast.network import Axis, ContentNetwork, Crash, Faults, PayloadLimits, Reading, Space
from pathcast.network.content_addressable.can_coordinate_space import staircase
from pathcast.network.content_addressable.can_node import merged
from pathcast.network.content_addressable.filter_bounding_hulls import Extent
from pathcast.network.content_addressable.filter_point_transformation import Probe
from pathcast.network.content_addressable.join_column_axes import join_space
from pathcast.network.content_addressable.zone_boxes import Box as Zone
from pathcast.network.content_addressable.zone_boxes import apart
from pathcast.transmission import Topology
from tests.network.world import World, addresses_of, draw_filter, draw_message

SPACE = Space.of(Axis("a", 0, 9), Axis("c", 0, 9, (Reading("s", axis="c"), Reading("b"))))


def build(count, seed=0, **options):
    topology = Topology.random(count, degree=min(3.0, count - 1), seed=seed, latency=0.02)
    return ContentNetwork.build(topology, kind="can", space=SPACE, seed=seed, **options)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_deliveries_are_the_flat_matchers_while_nodes_and_subscriptions_come_and_go(seed):
    draw = random.Random(seed)
    network = build(draw.randrange(1, 14), seed, payloads=draw.choice([False, True]))
    world, nodes, members = World(network), network.topology.nodes, addresses_of(network).members
    for step in range(40):
        here = [nodes[number] for number in sorted(members)]
        match draw.randrange(8):
            case 0 if world.registered:
                world.unregister(draw.randrange(len(world.registered)))
            case 1 if len(here) > 1:
                draw.choice([network.leave, network.fail])(draw.choice(here))
            case 2 if len(here) < len(nodes):
                network.join(draw.choice([node for node in nodes if node not in here]), draw.choice(here))
            case _:
                world.register(draw.choice(here), draw_filter(draw), draw.randrange(8))
        addresses_of(network).check()
        if step % 3 == 0:
            world.publish(draw_message(draw), nodes[draw.choice(sorted(members))])
            addresses_of(network).check()


def run_schedule(seed):
    draw = random.Random(seed)
    network = build(draw.randrange(2, 12), seed, payloads=draw.choice([False, PayloadLimits(None, 1)]))
    world, nodes = World(network), network.topology.nodes
    for _ in range(20):
        world.register(draw.choice(nodes), draw_filter(draw), draw.randrange(10))
    at = draw.choice(nodes)
    faults = Faults.drawn(seed, nodes)
    if draw.random() < 0.5:
        # A node fails permanently, perhaps the server's own, and crashes again when it is no longer a member.
        gone = draw.choice(nodes)
        crashes = [Crash(gone, draw.random() / 5, None), Crash(gone, draw.uniform(2, 4), 0.1)]
        faults = Faults(seed, faults.drop, faults.duplicate, faults.delay, 1.0, crashes)
    world.publish_all([draw_message(draw) for _ in range(3)], at, faults, 0.05)
    addresses_of(network).check()


@pytest.mark.slow
def test_every_schedule_of_faults_ends_in_the_same_deliveries(request):
    for seed in range(2_000 if request.config.getoption("--long") else 120):
        run_schedule(seed)


def test_zones_are_halved_where_filters_are_many():
    draw = random.Random(3)
    topology = Topology.random(60, seed=1)
    space = Space.of(Axis("a", 0, 1000))
    filters = [Filter((In("a", Interval(low := int(draw.gauss(200, 20)), low + 30)),)) for _ in range(900)]
    even = ContentNetwork.build(topology, kind="can", space=space, sample=filters)
    blind = ContentNetwork.build(topology, kind="can", space=space)
    for network in (even, blind):
        network.register_many(("r1", one, number) for number, one in enumerate(filters))
        addresses_of(network).check()
    most = [max(len(node.members) for node in addresses_of(network).nodes) for network in (even, blind)]
    assert most[0] < 60 < most[1]


def test_a_node_needs_nothing_but_its_own_state_to_forward():
    draw = random.Random(1)
    world = World(build(12))
    for number in range(60):
        world.register("r1", draw_filter(draw), number)
    for node in world.network.substrate.nodes:
        alone = pickle.loads(pickle.dumps(node))
        assert not any(type(value).__name__ in {"AddressSpace", "ContentNetwork"} for value in vars(node).values())
        for _ in range(5):
            probe = Probe(draw_message(draw).bare())
            assert alone.step(probe, (SPACE.whole,), None) == node.step(probe, (SPACE.whole,), None)


@pytest.mark.slow
def test_a_message_visits_the_zones_of_its_region_and_few_others():
    draw = random.Random(5)
    topology = Topology.random(80, seed=2)
    space = Space.of(Axis("a", 0, 1000), Axis("c", 0, 1000, (Reading("s", axis="c"),), required=True))
    filters = []
    for _ in range(800):
        a, c = draw.randrange(1000), draw.randrange(1000)
        box = Box.of({"c": Interval(c, c + 60)})
        filters.append(Filter((In("a", Interval(a, a + 60)), SomePoint("s", box))))
    network = ContentNetwork.build(topology, kind="can", space=space, sample=filters)
    network.register_many(("r1", one, number) for number, one in enumerate(filters))
    for _ in range(15):
        a, c = draw.randrange(1000), draw.randrange(1000)
        skyline = Points.of(["c"], [(c, c), (c + 200, c + 150)], pairs=True)
        message = Message({"a": a, "s": skyline})
        trace = network.publish(message)
        assert trace.subscribers == sorted((at for at, one in enumerate(filters) if one.matches(message)), key=str)
        region = space.region(message)
        zones = [zone for node in addresses_of(network).nodes for zone in node.zones]
        assert trace.hops <= sum(any(zone.meets(part) for part in region) for zone in zones) + 5


def ranged(low, high):
    return Filter((In("a", Interval(low, high)),))


def test_a_message_goes_only_where_the_extents_of_filters_let_it_be_for_somebody():
    network = ContentNetwork.build(Topology.random(60, seed=2), kind="can", space=Space.of(Axis("a", 0, 1000)))
    assert network.publish(Message({"a": 500})).hops == 0
    made = [network.register("r1", ranged(at, at + 20), at) for at in range(0, 400, 2)]
    assert network.publish(Message({"a": 800})).hops == 0
    trace = network.publish(Message({"a": 201}))
    assert trace.subscribers == sorted(range(182, 202, 2), key=str)
    addresses = addresses_of(network)
    region, zones = addresses.space.region(Message({"a": 201})), [z for node in addresses.nodes for z in node.zones]
    assert trace.hops < sum(any(zone.meets(part) for part in region) for zone in zones) / 2
    for one in made[50:]:
        network.unregister(one)
    assert network.publish(Message({"a": 201})).hops == 0
    network.register("r1", ranged(900, 950), "far")
    assert network.publish(Message({"a": 910})).subscribers == ["far"]
    addresses.check()


def test_a_filter_within_the_extent_of_others_is_told_nobody():
    network = ContentNetwork.build(Topology.random(30, seed=2), kind="can", space=Space.of(Axis("a", 0, 1000)))
    network.register_many(("r1", ranged(at, at + width), at) for at in range(0, 900, 2) for width in (10, 30))
    network.publish(Message({"a": 5}))
    told = network.traffic.bytes("control")
    within = network.register("r1", ranged(401, 421), "within")
    network.publish(Message({"a": 5}))
    network.unregister(within)
    network.publish(Message({"a": 5}))
    assert network.traffic.bytes("control") == told
    network.register("r1", ranged(401, 481), "wider")
    network.publish(Message({"a": 5}))
    assert network.traffic.bytes("control") > told


def test_what_is_expected_of_filters_is_what_nodes_know_once_they_stand():
    draw = random.Random(9)
    network = build(20, 4)
    points = []
    for number in range(50):
        made = network.register("r1", draw_filter(draw), number)
        points.append(SPACE.point(made.filter))
    network.leave("r7")
    network.fail("r9")
    addresses = addresses_of(network)
    addresses.telling.tell()
    known = {number: dict(addresses.nodes[number].extents) for number in addresses.members}
    for one in list(network.registrations):
        network.unregister(one)
    addresses.telling.expect(np.array(points))
    addresses.header(min(addresses.members), Probe({}))
    assert known == {number: addresses.nodes[number].extents for number in addresses.members}
    addresses.telling.expect(np.empty((0, SPACE.dimensions), np.int64))
    addresses.check()


def test_an_extent_holds_boxes_with_a_point_between_its_bounds():
    draw = random.Random(11)
    for _ in range(200):
        points = np.array([sorted(draw.sample(range(9), 2)) for _ in range(draw.randrange(1, 4))])
        extent, widths = Extent.of(points), points[:, 1] - points[:, 0]
        assert extent is not None
        corners = [sorted(draw.sample(range(10), 2)) for _ in range(2)]
        box = Zone(tuple(c[0] for c in corners), tuple(c[1] for c in corners))
        between = [
            (low, high)
            for low in range(points[:, 0].min(), points[:, 0].max() + 1)
            for high in range(points[:, 1].min(), points[:, 1].max() + 1)
            if widths.min() <= high - low <= widths.max()
        ]
        assert extent.holds(box) == any(point in box for point in between)
        for at, point in enumerate(points.tolist()):
            if extent.inside(tuple(point)):
                assert Extent.of(np.delete(points, at, axis=0)) == extent


def test_ranges_between_neighbours_and_values_that_depend_on_others_are_read():
    at = Reading("at", gap=("lo", "hi"), given={"f": 2})
    space = Space.of(Axis("a", 0, 100, (Reading("a", given={"f": 1}), at), required=True))
    one, two = Interval(20, 30), Interval(40, 50)
    plain = Filter((compare("f", "=", 1), In("a", one)))
    gap = Filter((compare("f", "=", 2), In("at", two), Between("lo", "hi", two)))
    assert space.point(plain) < space.point(gap)
    network = ContentNetwork.build(Topology.chain(9), kind="can", space=space)
    network.register_many([("r1", plain, "plain"), ("r1", gap, "gap")])
    assert network.publish(Message({"f": 1, "a": 25})).subscribers == ["plain"]
    assert network.publish(Message({"f": 2, "at": 45, "lo": 39, "hi": None})).subscribers == ["gap"]
    assert network.publish(Message({"f": 2, "at": 45, "lo": 41, "hi": None})).subscribers == []
    with pytest.raises(MessageError, match="no range on 'a'"):
        network.register("r1", Filter((compare("g", "=", 3),)), "nowhere")
    with pytest.raises(MessageError, match="different ranges on 'a', so they share no point"):
        network.register_together("r1", [plain, gap], "both")
    with pytest.raises(MessageError, match=r"no Between\('lo', 'hi', …\) for the gap"):
        network.register("r1", Filter((compare("f", "=", 2), In("at", two))), "half")


def test_a_staircase_holds_the_ranges_that_cover_a_point():
    draw = random.Random(4)
    for _ in range(50):
        points = [(draw.randrange(12), draw.randrange(12)) for _ in range(draw.randrange(5))]
        steps = staircase(iter(points))
        for low in range(12):
            for high in range(12):
                covers = any(low <= x and high >= y for x, y in points)
                assert covers == (sum(a <= low < b and c <= high < d for a, b, c, d in steps) == 1)
                assert sum(a <= low < b and c <= high < d for a, b, c, d in steps) <= 1


def test_boxes_are_cut_and_joined_exactly():
    draw = random.Random(6)
    for _ in range(60):
        boxes = []
        for _ in range(3):
            corners = [sorted(draw.sample(range(7), 2)) for _ in range(2)]
            boxes.append(Zone(tuple(c[0] for c in corners), tuple(c[1] for c in corners)))
        one, other, _ = boxes
        points = [(x, y) for x in range(7) for y in range(7)]
        assert all(sum(p in part for part in one.minus(other)) == (p in one and p not in other) for p in points)
        assert all(sum(p in part for part in apart(boxes)) == any(p in box for box in boxes) for p in points)
        halves = one.split(0, one.low[0] + 1) if one.high[0] - one.low[0] > 1 else (one,)
        assert merged(halves) == (one,)
        assert (one.distance(other) == 0) == one.meets(other)


def test_what_cannot_be_is_refused_by_name():
    with pytest.raises(TopologyError, match="space must be a Space for kind 'can'"):
        ContentNetwork.build(Topology.chain(2), kind="can")
    with pytest.raises(TopologyError, match="kind 'cbn' does not support space"):
        ContentNetwork.build(Topology.chain(2), space=SPACE)
    with pytest.raises(TopologyError, match="need a CAN, but this network has kind 'cbn'"):
        ContentNetwork.build(Topology.chain(2)).leave("r1")
    network = build(2)
    with pytest.raises(TopologyError, match="'r1' is already a member"):
        network.join("r1")
    network.leave("r2")
    with pytest.raises(TopologyError, match="is the last member and cannot leave"):
        network.leave("r1")
    with pytest.raises(TopologyError, match="'r2' is not a member of the network; call join first"):
        network.publish(Message({"a": 1}), "r2")
    for low, high in ((5, 5), (0, float("inf"))):
        with pytest.raises(MessageError, match=f"axis 'a' must have finite low < high, got low={low}, high={high}"):
            Axis("a", low, high)


def test_registrations_of_which_one_is_refused_are_none():
    space = Space.of(Axis("a", 0, 9, required=True))
    network = ContentNetwork.build(Topology.chain(3), kind="can", space=space, members=["r1", "r2"])
    refused: list[tuple[str, Any, str]] = [
        ("r2", compare("b", ">", 5), "no range on 'a'"),
        ("r3", compare("a", ">", 5), "'r3' is not a member"),
        ("r9", compare("a", ">", 5), "unknown node 'r9'"),
        ("r2", "a > 5", r"filter must be Filter\(\(…,\)\) or a term"),
        ("r2", Filter(("a > 5",)), "filter must be"),  # type: ignore[arg-type]
    ]
    for node, wanted, reason in refused:
        with pytest.raises((MessageError, TopologyError), match=reason):
            network.register_many([("r1", compare("a", ">", 3), "ada"), (node, wanted, "bob")])
        assert not network.registrations
        assert network.publish(Message({"a": 7, "b": 7})).subscribers == []
    addresses_of(network).check()


@pytest.mark.slow
def test_the_filters_of_a_standing_join_stand_at_one_point_and_keep_its_clients_right():
    draw = random.Random(8)
    schema = Schema({"R": "b int, a float", "S": "b int, c float, s bytes"}, joins=["R.b = S.b"])
    server = JoinServer(schema, "ref-sj-clu+")
    filters: list[list[Filter]] = []
    clients: dict[Hashable, Client] = {}
    for number in range(40):
        low, other = draw.uniform(0, 90), draw.uniform(0, 90)
        asked = f"a between {low} and {low + 20} and c between {other} and {other + 20}"
        subscription = server.subscribe(f"select * from R natural join S where {asked}")
        clients[number] = Client(schema, subscription)
        filters.append([one for one in subscription.filters if "#to" not in str(one)])
    forms = server.subscriptions[1].forms
    space = join_space(forms, {("R", "a"): (0, 110), ("S", "c"): (0, 110)})
    for kind in ("can", "cbn"):
        network = ContentNetwork.build(Topology.random(15, seed=3), kind=kind, space=space if kind == "can" else None)
        for number, mine in enumerate(filters):
            network.register_together("r1", mine, number)
        if kind == "can":
            network.fail("r4")
            addresses_of(network).check()
        rows: list[tuple[str, dict[str, Any]]] = []
        for _ in range(25):
            table = draw.choice("RRS")
            row = {"b": draw.randrange(3), "a" if table == "R" else "c": draw.uniform(0, 110)}
            rows.append((table, row | ({"s": b"x"} if table == "S" else {})))
            messages = server.insert(*rows[-1])
            if draw.random() < 0.4:
                messages += server.delete(*rows.pop(draw.randrange(len(rows))))
            for message in messages:
                trace = network.publish(message)
                assert trace.subscribers == sorted(
                    (n for n, mine in enumerate(filters) if any(f.matches(message.bare()) for f in mine)), key=str
                )
                for one in trace.deliveries:
                    assert clients[one.subscriber].receive(one.message)
        for number in range(40):
            assert clients[number].content("S") == server.contents(server.subscriptions[number + 1])["S"]
        for table, row in rows:
            for message in server.delete(table, row):
                for one in network.publish(message).deliveries:
                    clients[one.subscriber].receive(one.message)
