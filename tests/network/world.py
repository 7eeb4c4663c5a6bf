"""A network and the flat matcher, which evaluates every registered filter on the message without its payload."""

import random
from collections.abc import Hashable
from typing import Any

from pathcast.messages import (
    Between,
    Box,
    Covers,
    Differs,
    Filter,
    In,
    Interval,
    Message,
    NoPoint,
    Points,
    SomePoint,
    Term,
    compare,
)
from pathcast.network import ContentNetwork, Faults, Registration, Trace
from pathcast.network.content_addressable.can_membership import AddressSpace
from pathcast.network.payload_cache_and_directory import PayloadState
from pathcast.transmission import Topology


def draw_interval(draw: random.Random) -> Interval:
    low, high = draw.choice([None, draw.randrange(10)]), draw.choice([None, draw.randrange(10)])
    if low is not None and high is not None and draw.random() < 0.9:
        low, high = min(low, high), max(low, high)
    return Interval(low, high, draw.random() < 0.2, draw.random() < 0.2)


def draw_term(draw: random.Random) -> Term:
    kind = draw.randrange(9)
    if kind < 3:
        return In(draw.choice("ab"), draw_interval(draw))
    if kind == 3:
        return compare(draw.choice("ak"), "=", draw.randrange(4))
    if kind == 4:
        return SomePoint("s", Box.of({"c": draw_interval(draw)}))
    if kind == 5:
        return NoPoint("s", Box.of({"c": draw_interval(draw)}))
    if kind == 6:
        return Between("l", "h", draw_interval(draw))
    return Differs("k", draw.randrange(4)) if kind == 7 else Covers("l", "h", draw_interval(draw))


def draw_filter(draw: random.Random) -> Filter:
    return Filter(tuple(draw_term(draw) for _ in range(draw.choice([0, 1, 1, 2, 2, 2, 3]))))


def draw_message(draw: random.Random, payloads: int = 3) -> Message:
    values: dict[str, Any] = {name: draw.randrange(10) for name in "abk" if draw.random() < 0.8}
    if draw.random() < 0.7:
        values["s"] = Points.of(["c"], [(draw.randrange(10), draw.randrange(10)) for _ in range(3)], pairs=True)
    if draw.random() < 0.7:
        values |= {"l": draw.choice([None, draw.randrange(10)]), "h": draw.choice([None, draw.randrange(10)])}
    if not payloads or draw.random() < 0.2:
        return Message(values)
    values["photo"] = bytes([draw.randrange(payloads)]) * 200
    if draw.random() < 0.5:
        return Message(values, ["photo"])
    return Message({**values, "text": draw.choice("xyz") * 100}, ["photo", "text"])


def draw_tree(draw: random.Random) -> Topology:
    count = draw.randrange(1, 12)
    ends = [(draw.randrange(node), node) for node in range(1, count)]
    names = [f"n{node}" for node in range(count)]
    return Topology(names, ends, latency=[draw.choice([0.001, 0.02, 0.1]) for _ in ends])


def addresses_of(network: ContentNetwork) -> AddressSpace:
    """The nodes of a content-addressable network."""
    assert isinstance(network.substrate, AddressSpace)
    return network.substrate


def payloads_of(network: ContentNetwork, node: int) -> PayloadState:
    """The payload state of a CN* node."""
    found = network.forwarders[node].payloads
    assert found is not None
    return found


class World:
    """A network and its registrations."""

    def __init__(self, network: ContentNetwork) -> None:
        self.network = network
        self.registered: list[Registration] = []

    def register(self, node: str, wanted: Filter, subscriber: Hashable) -> None:
        self.registered.append(self.network.register(node, wanted, subscriber))

    def unregister(self, place: int) -> None:
        self.network.unregister(self.registered.pop(place))

    def wanted(self, message: Message) -> list[Hashable]:
        """The expected recipients of a message, by the flat matcher."""
        bare = message.bare()
        return sorted({one.subscriber for one in self.registered if one.filter.matches(bare)}, key=str)

    def publish(self, message: Message, at: str | None = None, faults: Faults | None = None) -> Trace:
        """Publish, and compare the deliveries with the flat matcher."""
        trace = self.network.publish(message, at, faults=faults)
        assert trace.subscribers == self.wanted(message)
        assert all(one.message == message for one in trace.deliveries)
        return trace

    def publish_all(self, messages: list[Message], at: str | None, faults: Faults | None, gap: float) -> Trace:
        first = self.network._published
        trace = self.network.publish_all(messages, at, faults=faults, gap=gap)
        for number, message in enumerate(messages):
            got = [one for one in trace.deliveries if one.publication == first + number]
            assert sorted((one.subscriber for one in got), key=str) == self.wanted(message)
            assert all(one.message == message for one in got)
        return trace
