"""Homes of payloads, and nodes that answer when they get their answer: the server answers few requests."""

from collections.abc import Callable
from typing import Any

from pathcast.messages import Message, compare
from pathcast.network import ContentNetwork, PayloadLimits
from pathcast.network.packets import Fetch, Supply
from pathcast.network.payload_cache_and_directory import PayloadState
from pathcast.network.payload_home_nodes import Homes
from pathcast.transmission import Topology
from tests.network.world import payloads_of


def news(per, number):
    return Message({"per": per, "photo": bytes([number]) * 1_000}, ["photo"])


def ids(count):
    return [news(1, number).payload_id() for number in range(count)]


def test_what_a_node_has_forgotten_comes_from_homes():
    sent: dict[bool, int] = {}
    for homes in (False, True):
        limits = PayloadLimits(repository_entries=12, homes=homes)
        network = ContentNetwork.build(Topology.tree(4), payloads=limits)
        network.register("r15", compare("per", ">", 45), "ada")
        for turn in range(8):
            for number in range(24):
                trace = network.publish(news(50, number))
                assert trace.deliveries[0].message == news(50, number)
                if turn == 7:
                    sizes = trace.traffic.links("payload")
                    sent[homes] = sent.get(homes, 0) + sum(size for (one, _), size in sizes.items() if one == "r1")
    # 14 homes hold 3 each, which is usually enough; a forwarded request has 23 bytes.
    assert sent[True] < sent[False] / 3
    assert sent[True] >= 12 * 23


def test_a_question_is_passed_on_once_and_a_home_gets_a_copy():
    network = ContentNetwork.build(Topology.tree(3), payloads=PayloadLimits(repository_entries=40))
    network.register("r7", compare("per", ">", 45), "ada")
    number, id = next((number, id) for number, id in enumerate(ids(99)) if network._homes.of_payload(id, 0) == 3)
    network.publish(news(50, number))

    def forgotten():
        payloads_of(network, 6)._drop(id)
        return network.publish(news(51, number))

    first, second = forgotten(), forgotten()
    assert first.hop_latency == 2 + 3 + 2
    assert {("r7", "r1"), ("r1", "r4"), ("r4", "r7"), ("r1", "r7"), ("r7", "r4")} == set(first.traffic.links("payload"))
    assert first.traffic.links("payload")["r7", "r4"] > 1_000
    assert second.hop_latency == 2 + 3
    assert {("r7", "r1"), ("r1", "r4"), ("r4", "r7")} == set(second.traffic.links("payload"))
    assert second.traffic.links("payload")["r1", "r4"] == 23
    # A payload whose home has gone is fetched as without homes.
    network._homes.discard(3)
    third = forgotten()
    assert third.subscribers == ["ada"] and ("r1", "r4") not in third.traffic.links("payload")


def test_few_payloads_change_their_home_when_nodes_come_and_go():
    homes, few = (
        Homes(range(20), PayloadLimits()),
        Homes((number for number in range(20) if number != 7), PayloadLimits()),
    )
    payloads = [bytes([number % 256, number // 256] * 8) for number in range(0, 65_536, 61)]
    before = [homes.of_payload(id, 3) for id in payloads]
    assert 3 not in before
    assert all(30 < before.count(node) < 110 for node in range(20) if node != 3)
    homes.discard(7)
    after = [homes.of_payload(id, 3) for id in payloads]
    assert [one for one in before if one != 7] == [new for old, new in zip(before, after, strict=True) if old != 7]
    assert after == [few.of_payload(id, 3) for id in payloads]
    homes.add(7)
    assert before == [homes.of_payload(id, 3) for id in payloads]


def test_a_server_without_homes_answers_itself():
    (id,) = ids(1)
    fetch = Fetch(id, True, 0)
    for homes in (
        Homes(range(9), PayloadLimits(homes=False)), Homes(range(9), PayloadLimits(repository_entries=0)),
        Homes(range(9), None), Homes([0], PayloadLimits()),
    ):  # fmt: skip
        assert homes.answer(fetch, 5, news(1, 0), 1) == (5, Supply(id, news(1, 0), 0, server=True, everywhere=1))
    homes = Homes(range(9), PayloadLimits())
    home = homes.of_payload(id, 0)
    assert home is not None
    asker = 1 if home != 1 else 2
    assert homes.answer(fetch, asker, news(1, 0), 1) == (home, Fetch(id, False, 0, asker=asker))
    supply = homes.answer(fetch, home, news(1, 0), 1)[1]
    assert isinstance(supply, Supply) and supply.home
    assert isinstance(homes.answer(Fetch(id, True, 0, again=True), asker, news(1, 0), 1)[1], Supply)
    supply = homes.answer(fetch, asker, None, 1)[1]
    assert isinstance(supply, Supply) and supply.content is None


def test_a_quarter_of_a_repository_is_for_others_and_goes_last():
    state = PayloadState(PayloadLimits(repository_entries=8, repository_bytes=None))
    payload = news(1, 0).payload_message()
    held, many = [bytes([number]) * 16 for number in range(3)], [bytes([9, number]) * 8 for number in range(40)]
    for id in held[:2]:
        assert state.wants()
        state.hold(id, payload)
    assert not state.wants()
    for id in many:
        state.keep(id, payload)
        state.keep(id, payload)
        assert len(state) <= 8
    assert all(id in state for id in held[:2])
    state.touch(held[0])
    state.acknowledged(held[0], 1, {1}, serves=False)
    assert held[0] in state
    state.need(held[0])
    state.hold(held[2], payload)
    assert [id in state for id in held] == [True, False, True]
    assert sum(state.wants() for _ in range(64)) == 4
    assert state._bytes == len(state) * payload.size and state._held_bytes == 2 * payload.size
    state.clear()
    assert len(state) == state._bytes == state._held_bytes == 0


def test_a_node_that_has_asked_the_server_answers_when_it_is_answered():
    topology = Topology.chain(4, latency=0.1, bandwidth="8kb/s")
    network = ContentNetwork.build(topology, payloads=PayloadLimits(homes=False))
    network.register("r2", compare("per", ">", 45), "bob")
    network.register("r4", compare("per", ">", 45), "ada")
    network.publish(news(50, 0))
    (id,) = ids(1)
    for node in (1, 3):
        payloads_of(network, node)._drop(id)
    trace = network.publish(news(51, 0))
    assert [(one.subscriber, one.hops) for one in trace.deliveries] == [("bob", 1 + 2), ("ada", 3 + 2)]
    assert {("r2", "r1"), ("r1", "r2"), ("r4", "r2"), ("r2", "r4")} == set(trace.traffic.links("payload"))
    assert all(not one._askers and not one._waits and not one._homeless for one in network.forwarders)


def test_nodes_that_ask_each_other_do_not_wait_for_each_other(monkeypatch):
    network = ContentNetwork.build(Topology.chain(4, latency=0.1), payloads=PayloadLimits(homes=False))
    for node in ("r2", "r3"):
        network.register(node, compare("per", ">", 45), node)
    for at in ("r1", "r4"):
        network.publish(news(50, 0), at)
    (id,) = ids(1)

    def forgetting(number: int) -> Callable[..., None]:
        send, held = network.forwarders[number]._send, payloads_of(network, number)

        def send_and_forget(*arguments: Any) -> None:
            send(*arguments)
            if id in held:
                held._drop(id)

        return send_and_forget

    for number in (1, 2):
        monkeypatch.setattr(network.forwarders[number], "_send", forgetting(number))
    # From both ends at once: each tells the other that it has the payload, and has evicted it when it is asked.
    network._inject(0, news(51, 0))
    network._inject(3, news(52, 0))
    trace = network.publish_all([])
    assert trace.traffic.messages("payload") == 8
    assert sorted(str(one.subscriber) for one in trace.deliveries) == ["r2", "r2", "r3", "r3"]
