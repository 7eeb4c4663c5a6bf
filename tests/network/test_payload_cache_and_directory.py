"""CN*: payloads are not sent twice; the cost of losing soft state."""

import random
from typing import Any

import pytest

from pathcast.messages import Filter, In, Interval, Message, compare
from pathcast.network import ContentNetwork, Faults, PayloadLimits
from pathcast.network.packets import Letter, Publication, Supply, unit_size, units_of
from pathcast.network.payload_cache_and_directory import PayloadState
from pathcast.transmission import Topology
from tests.network.world import World, draw_filter, draw_message, draw_tree, payloads_of

PHOTO = b"x" * 1_000


def news(per, photo=PHOTO):
    return Message({"per": per, "photo": photo}, ["photo"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_deliveries_are_whole_whatever_nodes_remember(seed):
    draw = random.Random(seed)
    topology = draw_tree(draw)
    limits = PayloadLimits(draw.choice([None, 0, 40, 200]), draw.choice([0, 1, 2, 4, None]), draw.choice([300, None]))
    plain = [node for node in topology.nodes if draw.random() < 0.25]
    world = World(ContentNetwork.build(topology, payloads=limits, plain=plain))
    for step in range(40):
        if world.registered and draw.random() < 0.3:
            world.unregister(draw.randrange(len(world.registered)))
        else:
            world.register(draw.choice(topology.nodes), draw_filter(draw), draw.randrange(8))
        if draw.random() < 0.1:
            forwarder = draw.choice(world.network.forwarders)
            if forwarder.payloads is not None:
                forwarder.payloads.clear()
        if step % 2 == 0:
            world.publish(draw_message(draw), draw.choice([None, None, draw.choice(topology.nodes)]))


def test_a_payload_passes_each_link_once():
    network = ContentNetwork.build(Topology.tree(3), payloads=True)
    network.register("r4", compare("per", ">", 45), "ada")
    network.register("r7", compare("per", ">", 50), "bob")
    first, second, third = (network.publish(news(per)) for per in (46, 47, 55))
    assert min(first.traffic.links("message").values()) > 1_000
    assert max(second.traffic.links("message").values()) < 60
    heavy = {link for link, size in third.traffic.links("message").items() if size > 1_000}
    assert heavy == {("r1", "r3"), ("r3", "r7")}
    assert network.publish(news(55, b"y" * 1_000)).bytes > 4_000


def test_a_network_with_payloads_costs_no_more_than_its_headers():
    draw = random.Random(2)
    topology = Topology.tree(4)
    plain, starred = ContentNetwork.build(topology), ContentNetwork.build(topology, payloads=True)
    for number in range(50):
        wanted = Filter((In("per", Interval(low := draw.randrange(90), low + 15)),))
        node = draw.choice(topology.nodes)
        plain.register(node, wanted, number)
        starred.register(node, wanted, number)
    for _ in range(60):
        message = news(draw.randrange(100), bytes([draw.randrange(5)]) * 300)
        one, other = plain.publish(message), starred.publish(message)
        assert one.subscribers == other.subscribers
        headers = (28 + 2 + 17) * one.hops
        assert other.bytes <= one.bytes + headers
    assert starred.traffic.bytes("message") < plain.traffic.bytes("message") / 2


def test_a_directory_alone_lets_only_who_needs_it_fetch():
    network = ContentNetwork.build(Topology.chain(5), payloads=PayloadLimits(repository_entries=0))
    network.register("r5", compare("per", ">", 45), "ada")
    network.publish(news(50))
    trace = network.publish(news(51))
    assert max(trace.traffic.links("message").values()) < 60
    assert set(trace.traffic.links("payload")) == {("r5", "r1"), ("r1", "r5")}
    assert trace.hop_latency == 4 + 2


def test_a_payload_is_fetched_from_the_last_node_that_has_it():
    network = ContentNetwork.build(Topology.chain(5), payloads=True)
    network.register("r5", compare("per", ">", 45), "ada")
    network.register("r3", compare("per", ">", 45), "bob")
    network.publish(news(50))
    for node in (3, 4):
        payloads_of(network, node).clear()
    trace = network.publish(news(51))
    assert trace.subscribers == ["ada", "bob"]
    # r4 has lost its directory too, so it fetches for its link; r5 then gets the payload with the message.
    assert set(trace.traffic.links("payload")) == {("r4", "r3"), ("r3", "r4")}


def test_a_source_that_has_dropped_the_payload_sends_to_the_server(monkeypatch):
    network = ContentNetwork.build(Topology.chain(4), payloads=PayloadLimits(homes=False))
    network.register("r4", compare("per", ">", 45), "ada")
    network.publish(news(50))
    late, held = network.forwarders[2], payloads_of(network, 2)
    send = late._send

    def send_and_drop(*arguments):
        send(*arguments)
        for id in [*held._once, *held._again]:
            held._drop(id)

    monkeypatch.setattr(late, "_send", send_and_drop)
    payloads_of(network, 3).clear()
    held.keep(news(50).payload_id(), news(50).payload_message())
    trace = network.publish(news(51))
    assert trace.subscribers == ["ada"]
    assert {("r4", "r3"), ("r3", "r4"), ("r4", "r1"), ("r1", "r4")} == set(trace.traffic.links("payload"))
    assert trace.hop_latency == 3 + 4


def test_plain_nodes_are_never_sent_a_reference():
    network = ContentNetwork.build(Topology.chain(5), payloads=True, plain=["r3"])
    network.register("r5", compare("per", ">", 45), "ada")
    network.register("r3", compare("per", ">", 45), "bob")
    network.publish(news(50))
    again = network.publish(news(51)).traffic.links("message")
    assert again["r1", "r2"] < 60
    assert again["r2", "r3"] > 1_000
    assert again["r3", "r4"] > 1_000
    assert again["r4", "r5"] < 60


def test_each_attribute_of_a_payload_is_sent_once():
    network = ContentNetwork.build(Topology.chain(3), payloads=True)
    network.register("r3", compare("per", ">", 45), "ada")

    def row(photo, text):
        return Message({"per": 50, "photo": photo * 1_000, "text": text * 500}, ["photo", "text"])

    sizes = [network.publish(row(*parts)).traffic.links("message")["r1", "r2"] for parts in ((b"x", "a"), (b"x", "b"))]
    assert sizes[0] > 1_500
    assert 500 < sizes[1] < 600
    again = network.publish(row(b"x", "a"))
    assert again.traffic.links("message")["r1", "r2"] < 80
    assert again.deliveries[0].message == row(b"x", "a")


def test_nodes_count_the_bytes_of_payloads_that_messages_carry():
    network = ContentNetwork.build(Topology.chain(3), payloads=True)
    network.register("r3", compare("per", ">", 45), "ada")
    size = unit_size(*units_of(news(50)).values())
    for publications in (1, 2):
        network.publish(news(50))
        assert [payloads_of(network, node).counts.sent_bytes for node in range(3)] == [size, size, 0], publications
    network.publish(news(50, b"y"))
    assert payloads_of(network, 0).counts.sent_bytes == size + unit_size(*units_of(news(50, b"y")).values())


def test_a_payload_that_all_links_have_is_purged_where_nobody_subscribes():
    network = ContentNetwork.build(Topology.chain(3), payloads=True)
    network.register("r3", compare("per", ">", 45), "ada")
    network.publish(news(50))
    assert [len(payloads_of(network, node)) for node in range(3)] == [0, 0, 1]
    assert payloads_of(network, 1).counts.purged == 1


def test_repositories_are_capped_by_entries_and_bytes_and_forget_the_oldest_use():
    payloads = {bytes([number]): Message({"p": bytes(50)}, ["p"]) for number in range(4)}
    size = payloads[b"\0"].size
    for limits in (PayloadLimits(repository_entries=2), PayloadLimits(repository_bytes=2 * size)):
        state = PayloadState(limits)
        state.keep(b"\0", payloads[b"\0"])
        state.keep(b"\1", payloads[b"\1"])
        assert state.need(b"\0")
        state.keep(b"\2", payloads[b"\2"])
        assert state.payload(b"\1") is None
        assert state.payload(b"\0") is not None
        assert state.counts.evicted == 1
    # A payload that cannot stay evicts no other.
    large = Message({"p": bytes(2 * size)}, ["p"])
    for put in (state.keep, state.hold):
        put(b"large", large)
        assert b"large" not in state and state.payload(b"\0") is not None and state.payload(b"\2") is not None
    state = PayloadState(PayloadLimits(directory_bytes=2 * (16 + 1)))
    for id in (b"\0", b"\1", b"\0", b"\2"):
        if state.touch(id):
            state.trim(3)
        state.acknowledged(id, 7, {7, 8}, serves=True)
    assert [state.sent(id, 7) for id in (b"\0", b"\1", b"\2")] == [True, False, True]


def test_sizes_are_those_of_the_encoded_message():
    for message in (news(5), news(5, b""), Message({"per": 5}), Message({"a": "ü", "b": b"12", "c": None}, ["a", "b"])):
        units = units_of(message)
        letter = Letter.of(0, 0, message, units)
        names = ("server", "node")
        # The source is omitted if it is the sending node, here the server's, or the server.
        for carried, source in (({}, None), (units, 0), (units, 1)):
            whole = message if carried else message.bare()
            extra: dict[str, Any] = {
                **({} if carried else {"*i": b"".join(units)}),
                **({"*o": "node"} if source else {}),
            }
            encoded = Message({**whole, **(extra if message.payload else {})}, whole.payload).size
            packet = Publication(letter, carried, source, (), 0, (0, 0, 0))
            assert packet.size(names, starred=True) == encoded
            assert packet.size(names, starred=False) == whole.size
    # One of two attributes is omitted.
    (first, unit), (other, _) = units.items()
    half = Message({**message.bare(), **unit, "*i": other}, unit.payload)
    assert Publication(letter, {first: unit}, 0, (), 0, (0, 0, 0)).size(names, starred=True) == half.size


def test_the_server_keeps_payloads_only_while_publications_with_them_are_under_way():
    network = ContentNetwork.build(Topology.chain(3, latency=0.1), payloads=PayloadLimits(repository_entries=0))
    network.register("r3", compare("per", ">", 45), "ada")
    kept: list[int] = []
    deliver = network.forwarders[2]._deliver

    def count_and_deliver(*given: Any) -> None:
        kept.append(len(network._payloads))
        deliver(*given)

    network.forwarders[2]._deliver = count_and_deliver
    for faults in (None, Faults(seed=1, drop=0.3)):
        for number in range(20):
            message = news(50 + number % 2, bytes([number % 10]) * 300)
            trace = network.publish(message, faults=faults)
            assert [one.message for one in trace.deliveries] == [message]
            assert len(network._payloads) == 0
    assert set(kept) == {1}
    both = network.publish_all([news(50), news(51)], gap=0.05)
    assert len(both.deliveries) == 2 and len(network._payloads) == 0


def test_a_copy_of_what_all_have_is_given_up_and_a_later_publication_of_the_payload_is_not():
    network = ContentNetwork.build(Topology.chain(2, latency=0.1), payloads=PayloadLimits(repository_entries=0))
    network.register("r2", compare("per", ">", 45), "ada")
    network.publish(news(50))
    (id,) = units_of(news(50))
    end = network.forwarders[1]
    # A late copy of the first publication, which has reached all nodes, without its payload: the node requests it.
    end.receive(0, Publication(Letter.of(0, 0, news(50), [id]), {}, None, (), 1, (0, 0, 98)))
    # A copy of the next publication of the same payload waits, too; then an answer from before that one arrives.
    network._begun[1] = network._transit.now
    network._payloads.begin(units_of(news(60)))
    end.receive(0, Publication(Letter.of(1, 0, news(60), [id]), {}, None, (), 1, (0, 0, 99)))
    end.receive(0, Supply(id, None, 0, server=True, everywhere=1))
    trace = network.publish_all([])
    assert [(one.publication, one.message) for one in trace.deliveries] == [(1, news(60))]
    assert not end._waits and not end._jobs


def test_messages_published_together_come_in_order_along_a_tree():
    network = ContentNetwork.build(Topology.chain(3, latency=0.1, bandwidth="8kb/s"), payloads=True)
    network.register("r3", compare("per", ">", 45), "ada")
    sizes = (900, 1, 500, 2, 1)
    trace = network.publish_all([news(50 + at, bytes([at]) * size) for at, size in enumerate(sizes)])
    assert [one.publication for one in trace.deliveries] == [0, 1, 2, 3, 4]


def test_payloads_that_pass_once_do_not_drive_out_those_that_come_again():
    state = PayloadState(PayloadLimits(repository_entries=8, repository_bytes=None))
    often = [bytes([number]) * 16 for number in range(6)]
    for _ in range(2):
        for id in often:
            state.keep(id, news(1).payload_message())
    for number in range(50):
        state.keep(bytes([100 + number]) * 16, news(1).payload_message())
        assert len(state) <= 8
    assert all(id in state for id in often)
    # The newest stays for a while: it may be needed again.
    new = bytes([99]) * 16
    for _ in range(2):
        state.keep(new, news(1).payload_message())
    assert new in state and state.payload(new) is not None
    assert state._bytes == len(state) * news(1).payload_message().size


def test_a_payload_whose_reference_only_passes_gives_way_to_those_that_are_needed():
    network = ContentNetwork.build(Topology.chain(3), payloads=PayloadLimits(repository_entries=2))
    network.register("r2", compare("per", "<", 10), "bob")
    network.register("r3", compare("per", ">", 45), "ada")
    needed, passing, new = (bytes([number]) * 300 for number in range(3))
    for per, photo in ((50, passing), (5, needed), (5, needed), (50, passing), (5, new), (50, passing), (5, needed)):
        trace = network.publish(news(per, photo))
        assert not trace.traffic.messages("payload")
    assert [(news(1, photo).payload_id() in payloads_of(network, 1)) for photo in (needed, passing, new)] == [
        True,
        False,
        True,
    ]
