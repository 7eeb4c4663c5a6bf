"""The report of a document's way through the overlay.

Times are seconds since publication: measured processing plus modelled transmission (`router_processing_time.py`, the
transmission package). Processing consists of steps of these kinds:

    take        reading annotations, finding targets that are known to want the document and entries to skip
    read        bytes to element arrays
    match       the engine's work, up to the targets that want the document
    make        annotations for a neighbour
    encode      their bytes
    structure   structure annotations: decoding, making and relaying them
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

Step = Literal["take", "read", "match", "make", "encode", "structure"]
STEPS: tuple[Step, ...] = get_args(Step)
Spent = dict[Step, float]


class Delivery(NamedTuple):
    """The delivery of a document to a subscriber, at the router where it subscribed."""

    subscriber: str
    router: str
    time: float


@dataclass(slots=True)
class RouterReport:
    """The work of one router on the document.

    `received` and `sent` are bytes with annotations; `annotations` the incoming bytes of each kind, by letter (`+s`,
    `+d`, `-s`, `-d`, `+t`, and `header` for the framing). `skipped` counts entries of the routing table that were not
    matched, by the kind of annotation that ruled them out, of `wanted` in total; `needed` were left, since annotations
    had not decided all their targets either. `forwarding` is what the router did:
    `ES`, `L`, or `annotations` if it did not read the document. `spent` has the total seconds of each kind of step,
    `moments` those at the time of each delivery and of each copy in `forwarded`.
    """

    arrived: float
    received: int
    sent: int = 0
    annotations: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    wanted: int = 0
    needed: int = 0
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
    """The deliveries with their times, and the reports of the routers, in the order in which they got the document."""

    policy: str
    engine: str
    deliveries: tuple[Delivery, ...]
    per_router: Mapping[str, RouterReport]

    @property
    def response_time(self) -> float:
        """The mean time from publication to delivery (§6.1); 0 without deliveries."""
        return sum(each.time for each in self.deliveries) / len(self.deliveries) if self.deliveries else 0.0

    @property
    def last_time(self) -> float:
        """The time of the last delivery."""
        return max((each.time for each in self.deliveries), default=0.0)

    @property
    def processing(self) -> float:
        """The total processing time of all routers."""
        return sum(each.processing for each in self.per_router.values())

    @property
    def throughput(self) -> float:
        """Documents like this one per second that the slowest router can process (§6.2)."""
        slowest = max((each.processing for each in self.per_router.values()), default=0.0)
        return 1.0 / slowest if slowest else float("inf")

    @property
    def bytes(self) -> int:
        """The bytes on all links together."""
        return sum(each.sent for each in self.per_router.values())
