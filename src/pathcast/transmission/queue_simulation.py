"""Queueing by discrete events: messages wait for lanes and processors, first come, first served.

A lane sends one message after another: each occupies the lane for size / bandwidth, then travels for the latency while
the next is being sent. A node has some processors; an arriving message waits for one, then the handler returns the
processing time and the messages to send, each at the end of the work or a given time into it (eager forwarding).

Without queues, times are those of the closed form, latency + size / bandwidth per hop. Simultaneous events occur in the
order in which they were caused, so the same input gives the same run.
Cost: about 40 µs per message and hop (simpy's events), regardless of the sizes.
"""

import heapq
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pathcast.errors import TopologyError
from pathcast.extras import extra

from .topology import Node, Topology
from .traffic_ledger import Ledger

if TYPE_CHECKING:
    import simpy


@dataclass(frozen=True, slots=True)
class Send:
    """A message to a neighbour: its bytes (or bytes by kind), and the seconds into the work when it leaves (None: at
    the end).
    """

    target: Node
    size: int | dict[str, int]
    message: Any = None
    kind: str = "message"
    after: float | None = None

    @property
    def bytes(self) -> int:
        """The bytes of all kinds."""
        return sum(self.size.values()) if isinstance(self.size, dict) else self.size


@dataclass(frozen=True, slots=True)
class Work:
    """The result of a handler: seconds of a processor, and messages to send."""

    seconds: float = 0.0
    sends: Sequence[Send] = ()


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """One message at one node: the times when it arrived, when work on it began and when the work ended."""

    node: str
    message: Any
    arrived: float
    begun: float
    ended: float


Handler = Callable[[str, Any, float], Work]
Faults = Callable[[int, Send, float], Sequence[float]]


@dataclass
class Simulation:
    """A simulation of messages on a topology.

    `handler(node, message, now)` is called when a processor takes the message. `faults(lane, send, now)`, if given,
    returns an extra delay for each copy of a sent message that arrives: `[0.0]` is no fault, `[]` loses the message,
    two delays duplicate it, and a delay may let other messages overtake it.
    """

    topology: Topology
    handler: Handler
    processors: int = 1
    ledger: Ledger | None = None
    faults: Faults | None = None
    handled: list[ServiceTimes] = field(default_factory=list)

    def __post_init__(self) -> None:
        with extra("routing"):
            import simpy

        if self.processors < 1:
            raise TopologyError(f"processors must be at least 1, got {self.processors}")
        self._world: simpy.Environment = simpy.Environment()
        self._busy_lanes: dict[int, simpy.Resource] = {}
        self._busy_nodes: dict[int, simpy.Resource] = {}
        self.lane_seconds = np.zeros(2 * len(self.topology.ends))
        self.node_seconds = np.zeros(len(self.topology.nodes))
        self.longest_queue = np.zeros(2 * len(self.topology.ends), np.int64)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return float(self._world.now)

    def inject(self, node: Node, message: Any, *, at: float | None = None) -> None:
        """Make a message arrive at a node, now or later: a publication, or a timer that a handler sets."""
        number = self.topology.number(node)
        wait = 0.0 if at is None else at - self.now
        if wait < 0:
            raise TopologyError(
                f"a message cannot arrive at {at} s: the simulation is already at {self.now} s; give a later at=, "
                "or omit at="
            )
        self._world.process(self._arrive(number, message, wait))

    def run(self, until: float | None = None) -> float:
        """Run until no events are left, or until a time; return the time at the end."""
        self._world.run(until)
        return self.now

    def throughput(self, messages: int) -> float:
        """Messages per second that the busiest node or lane could process, if all were like those of this run."""
        node, lane = self.node_seconds.max(initial=0.0) / self.processors, self.lane_seconds.max(initial=0.0)
        busiest = float(max(node, lane))
        return messages / busiest if busiest else float("inf")

    def _arrive(self, number: int, message: Any, wait: float) -> Generator["simpy.Event", Any, None]:
        import simpy

        if wait:
            yield self._world.timeout(wait)
        if number not in self._busy_nodes:
            self._busy_nodes[number] = simpy.Resource(self._world, self.processors)
        arrived = self.now
        with self._busy_nodes[number].request() as turn:
            yield turn
            begun = self.now
            work = self.handler(self.topology.nodes[number], message, begun)
            yield from self._work(number, work)
            self.node_seconds[number] += work.seconds
            self.handled.append(ServiceTimes(self.topology.nodes[number], message, arrived, begun, self.now))

    def _work(self, number: int, work: Work) -> Generator["simpy.Event", Any, None]:
        """Simulate the processing time, and send each message when it is due."""
        if work.seconds < 0:
            name = self.topology.nodes[number]
            raise TopologyError(f"Work.seconds must be at least 0, but the handler returned {work.seconds} at '{name}'")
        due = [(work.seconds if send.after is None else send.after, at) for at, send in enumerate(work.sends)]
        heapq.heapify(due)
        spent = 0.0
        while due:
            when, at = heapq.heappop(due)
            if not 0 <= when <= work.seconds:
                raise TopologyError(
                    f"Send.after must be from 0 to Work.seconds ({work.seconds} s), but the handler of "
                    f"'{self.topology.nodes[number]}' returned {when} s"
                )
            if when > spent:
                yield self._world.timeout(when - spent)
                spent = when
            self._world.process(self._carry(number, work.sends[at]))
        if work.seconds > spent:
            yield self._world.timeout(work.seconds - spent)

    def _carry(self, number: int, send: Send) -> Generator["simpy.Event", Any, None]:
        import simpy

        lane = self.topology.lane(number, send.target)
        if lane not in self._busy_lanes:
            self._busy_lanes[lane] = simpy.Resource(self._world, 1)
        queue = self._busy_lanes[lane]
        seconds = send.bytes / self.topology.bandwidth[lane >> 1]
        with queue.request() as turn:
            self.longest_queue[lane] = max(self.longest_queue[lane], len(queue.queue))
            yield turn
            if seconds:
                yield self._world.timeout(seconds)
        self.lane_seconds[lane] += seconds
        if self.ledger is not None:
            self.ledger.carry_on(lane, send.size, send.kind)
        latency = float(self.topology.latency[lane >> 1])
        for delay in (0.0,) if self.faults is None else self.faults(lane, send, self.now):
            self._world.process(self._arrive(self.topology.number(send.target), send.message, latency + delay))
