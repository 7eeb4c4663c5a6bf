"""The trace of a publication: deliveries with time and hops, and the traffic on each link."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pathcast.messages import Filter, Message

from .link_traffic import Traffic


@dataclass(frozen=True, slots=True)
class Registration:
    """A filter that a subscriber has registered at a node."""

    number: int
    node: str
    filter: Filter
    subscriber: Hashable


class Delivery(NamedTuple):
    """The delivery of one message to one subscriber: the node, and the seconds and overlay hops since publication."""

    subscriber: Hashable
    node: str
    seconds: float
    hops: int
    publication: int
    bare: Message
    payload: Message | None

    @property
    def message(self) -> Message:
        """The delivered message, with its payload."""
        return self.bare if self.payload is None else self.bare.with_payload(self.payload)


@dataclass(frozen=True)
class Trace:
    """One run: deliveries in order of time, and traffic."""

    deliveries: tuple[Delivery, ...]
    traffic: Traffic
    seconds: float

    @cached_property
    def subscribers(self) -> list[Hashable]:
        """The subscribers of all deliveries, sorted by their text; with duplicates if one got several messages."""
        return sorted((one.subscriber for one in self.deliveries), key=str)

    @property
    def hops(self) -> int:
        """Messages between nodes of the overlay, without acknowledgements."""
        return self.traffic.messages("message", "payload")

    @property
    def bytes(self) -> int:
        """Bytes between nodes of the overlay, all kinds."""
        return self.traffic.bytes()

    @property
    def links(self) -> dict[tuple[str, str], int]:
        """Bytes by link."""
        return self.traffic.links()

    @property
    def latency(self) -> float:
        """Seconds until the last delivery; 0 without deliveries."""
        return max((one.seconds for one in self.deliveries), default=0.0)

    @property
    def hop_latency(self) -> float:
        """The average number of hops of a delivery; 0 without deliveries."""
        return sum(one.hops for one in self.deliveries) / len(self.deliveries) if self.deliveries else 0.0

    def last_hop_bytes(self) -> int:
        """Bytes from nodes to subscribers, with the whole message per delivery."""
        sizes: dict[int, int] = {}
        for one in self.deliveries:
            if one.publication not in sizes:
                sizes[one.publication] = one.message.size
        return sum(sizes[one.publication] for one in self.deliveries)

    def __repr__(self) -> str:
        return f"Trace({len(self.deliveries):,} deliveries, {self.hops:,} hops, {self.bytes:,} bytes)"
