"""What came of publishing: who got what, when, over how many hops, and what it cost on which link."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pathcast.messages import Filter, Message

from .link_traffic import Traffic


@dataclass(frozen=True, slots=True)
class Registration:
    """A filter that somebody has registered at a node."""

    number: int
    node: str
    filter: Filter
    subscriber: Hashable


class Delivery(NamedTuple):
    """One message to one subscriber: from which node, after how many seconds and hops of the overlay."""

    subscriber: Hashable
    node: str
    seconds: float
    hops: int
    publication: int
    bare: Message
    payload: Message | None

    @property
    def message(self) -> Message:
        """The message as the subscriber gets it, with its payload."""
        return self.bare if self.payload is None else self.bare.with_payload(self.payload)


@dataclass(frozen=True)
class Trace:
    """One run: deliveries in the order in which they happened, and traffic."""

    deliveries: tuple[Delivery, ...]
    traffic: Traffic
    seconds: float

    @cached_property
    def subscribers(self) -> list[Hashable]:
        """Who got something, in order of their texts; somebody who got several messages, several times."""
        return sorted((one.subscriber for one in self.deliveries), key=str)

    @property
    def hops(self) -> int:
        """Messages between nodes of the overlay, acknowledgements left out."""
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
        """Seconds until the last subscriber had it; 0 without any."""
        return max((one.seconds for one in self.deliveries), default=0.0)

    @property
    def hop_latency(self) -> float:
        """Hops until a subscriber had it, on average; 0 without any."""
        return sum(one.hops for one in self.deliveries) / len(self.deliveries) if self.deliveries else 0.0

    def last_hop_bytes(self) -> int:
        """Bytes from nodes to subscribers, each sent the whole message."""
        sizes: dict[int, int] = {}
        for one in self.deliveries:
            if one.publication not in sizes:
                sizes[one.publication] = one.message.size
        return sum(sizes[one.publication] for one in self.deliveries)

    def __repr__(self) -> str:
        return f"Trace({len(self.deliveries):,} deliveries, {self.hops:,} hops, {self.bytes:,} bytes)"
