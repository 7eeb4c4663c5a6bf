"""What a document's way through the overlay came to.

Times are seconds from the moment of publishing: measured processing plus modelled transmission (`processing_clock.py`,
the transmission room). Processing consists of steps of these kinds:

    take        reading annotations, finding who is known to want the document and which entries need no matching
    read        bytes to element arrays
    match       the engine's work, up to who wants the document
    make        annotations for a neighbour
    encode      their bytes
    structure   structure annotations: taking them in, making them, passing them on
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

Step = Literal["take", "read", "match", "make", "encode", "structure"]
STEPS: tuple[Step, ...] = get_args(Step)
Spent = dict[Step, float]


class Delivery(NamedTuple):
    """A document at a subscriber, at the router where it subscribed."""

    subscriber: str
    router: str
    time: float


@dataclass(slots=True)
class RouterReport:
    """What one router did with the document.

    `received` and `sent` are bytes with annotations; `annotations` the bytes of each kind that came, by letter (`+s`,
    `+d`, `-s`, `-d`, `+t`, and `header` for what frames them). `skipped` counts entries of the routing table that were
    not matched, by the kind of annotation that spared them, of `wanted` in all. `forwarding` is what the router did:
    `ES`, `L`, or `annotations` when it never looked at the document. `spent` are the seconds of each kind of step in
    all, `moments` those spent by the time of each delivery and of each copy in `forwarded`.
    """

    arrived: float
    received: int
    sent: int = 0
    annotations: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    wanted: int = 0
    parsed: bool = False
    read: int = 0
    forwarding: str = "annotations"
    spent: Spent = field(default_factory=dict)
    forwarded: dict[str, float] = field(default_factory=dict)
    moments: dict[float, Spent] = field(default_factory=dict)
    refused: str | None = None

    @property
    def processing(self) -> float:
        """The router's own time, in seconds."""
        return sum(self.spent.values())


@dataclass(frozen=True, slots=True)
class Report:
    """Who got the document and when; what each router did, in the order in which the document reached them."""

    policy: str
    engine: str
    deliveries: tuple[Delivery, ...]
    per_router: Mapping[str, RouterReport]

    @property
    def response_time(self) -> float:
        """The mean time from publishing to a delivery (§6.1); 0 when nobody got the document."""
        return sum(each.time for each in self.deliveries) / len(self.deliveries) if self.deliveries else 0.0

    @property
    def last_time(self) -> float:
        """When the last subscriber had the document."""
        return max((each.time for each in self.deliveries), default=0.0)

    @property
    def processing(self) -> float:
        """The processing of all routers together."""
        return sum(each.processing for each in self.per_router.values())

    @property
    def throughput(self) -> float:
        """Documents like this one a second that the slowest router can take (§6.2)."""
        slowest = max((each.processing for each in self.per_router.values()), default=0.0)
        return 1.0 / slowest if slowest else float("inf")

    @property
    def bytes(self) -> int:
        """What all links carried together."""
        return sum(each.sent for each in self.per_router.values())
