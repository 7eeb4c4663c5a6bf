"""Forwarding at one node: send a publication on, with or without its payload, and acknowledge it.

Algorithm 1 (appendix G of the select-join paper): the payload is omitted for next hops that have acknowledged it
before, added from the repository for the others, and fetched if the repository lacks it: from `source`, then from the
server (at once if the server is at the source), which may forward the request (`payload_home_nodes.py`). Copies that
need no payload do not wait for it. A node that has requested a payload from the server already counts as a source: it
answers requests when its own request is answered. (A node that has asked another node does not: two might wait for each
other.)

In reliable networks, a node acknowledges a publication when all nodes behind it have it: a node has a *job* per
publication, which ends when every copy that it sent is acknowledged. A copy that is not acknowledged in time is sent
again, in the end by the server. A node that crashes loses its jobs; the sender sends again, and the nodes behind repeat
the work. So soft state suffices for at-least-once delivery; subscribers, which remember their messages, make it
exactly-once.

Locality: a forwarder reads its node's routing state, its own soft state and the packet.
Cost: one or two look-ups per copy in addition to matching.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from pathcast.messages import Message

from .content_addressable.filter_point_transformation import Probe
from .content_addressable.zone_boxes import Box, boxes_size
from .packets import ACKNOWLEDGEMENT, Deposit, Done, Fetch, Letter, Publication, Stored, Supply, Uid, unit_size
from .payload_cache_and_directory import PayloadLimits, PayloadState
from .simulated_packet_delivery import Transit
from .tree.forwarding_table_node import Step

_REMEMBERED = 4_096
_LONGEST = 6


class Routing(Protocol):
    """The routing state of one node."""

    def step(self, probe: Probe, header: tuple[Box, ...], came: int | None) -> Step: ...

    def reaches(self, target: int) -> bool: ...

    @property
    def outgoing(self) -> set[int]: ...

    @property
    def serves(self) -> bool: ...


Units = dict[bytes, Message]
Deliver = Callable[[int, list[int], Publication, Units], None]


@dataclass(slots=True, eq=False)
class _Job:
    """A publication in progress: copies that are not acknowledged, and parts that wait for its payload."""

    packet: Publication
    came: int | None
    copies: set[Uid] = field(default_factory=set)
    waiting: int = 0


@dataclass(eq=False)
class _Wait:
    """The part of a job that lacks units: its local recipients and neighbours; the hops of failed requests, and of all
    requests.
    """

    job: _Job
    step: Step
    known: Units
    missing: set[bytes]
    vain: int = 0
    hops: int = 0


class Forwarder:
    """The process at a node."""

    def __init__(
        self,
        number: int,
        routing: Routing,
        transit: Transit,
        deliver: Deliver,
        finished: Callable[[Letter], None],
        limits: PayloadLimits | None,
        *,
        starred_network: bool,
    ) -> None:
        self.number = number
        self.routing = routing
        self.payloads = PayloadState(limits) if limits is not None else None
        self.patience: float | None = None
        self.down = False
        self._transit = transit
        self._deliver = deliver
        self._finished = finished
        self._starred = starred_network
        self._incarnation = 0
        self._counter = 0
        self._forget()

    def _forget(self) -> None:
        self._jobs: dict[Uid, _Job] = {}
        self._pending: dict[Uid, tuple[_Job, int, Publication]] = {}
        self._done: OrderedDict[Uid, None] = OrderedDict()
        self._waits: dict[bytes, list[_Wait]] = {}
        # For payloads that are waited for: nodes that requested them in the meantime, if the server was asked; homes
        # that lack them.
        self._askers: dict[bytes, list[int]] = {}
        self._homeless: dict[bytes, int] = {}

    def crash(self) -> None:
        """Crash: lose soft state and jobs, and be down."""
        self.down = True
        self._incarnation += 1
        self._forget()
        if self.payloads is not None:
            self.payloads.clear()

    def receive(self, came: int | None, packet: object) -> None:
        """Process a packet from a neighbour, or from the server (None)."""
        if self.down:
            return
        match packet:
            case Publication():
                self._publication(came, packet)
            case Done(uid):
                self._acknowledged(uid)
            case Stored(units) if self.payloads is not None and came is not None:
                links, serves = self.routing.outgoing, self.routing.serves
                for id in units:
                    self.payloads.acknowledged(id, came, links, serves=serves)
            case Fetch() if self.payloads is not None and came is not None:
                self._asked(came, packet)
            case Supply():
                self._supplied(came, packet)
            case Deposit(id, content) if self.payloads is not None:
                self.payloads.hold(id, content)

    # Publications.

    def _publication(self, came: int | None, packet: Publication) -> None:
        if self.patience is not None:
            if packet.uid in self._done:
                self._acknowledge(came, packet)
                return
            if packet.uid in self._jobs:
                return
        job = _Job(packet, came)
        if self.patience is not None:
            self._jobs[packet.uid] = job
        known = self._known(came, packet)
        self._pass_on(job, self.routing.step(packet.letter.probe, packet.header, came), known)
        self._finish(job)

    def _known(self, came: int | None, packet: Publication) -> Units:
        """The units in the packet and in the repository; units in the packet are stored and acknowledged."""
        state = self.payloads
        if state is None or not packet.letter.units:
            return packet.carried
        known = dict(packet.carried)
        for id in packet.letter.units:
            if state.touch(id):
                state.trim(len(self.routing.outgoing))
            if id in known:
                state.keep(id, known[id])
        self._recall(packet, known)
        if packet.carried and came is not None:
            stored = Stored(tuple(packet.carried))
            self._transit.send(self.number, came, stored, stored.size, "control")
        return known

    def _recall(self, packet: Publication, known: Units) -> None:
        """Add units from the repository."""
        for id in packet.letter.units:
            if id not in known and self.payloads is not None and (unit := self.payloads.payload(id)) is not None:
                known[id] = unit

    def _pass_on(self, job: _Job, step: Step, known: Units) -> None:
        """Deliver and forward where all units are known; wait for the missing units of the rest."""
        units, state = job.packet.letter.units, self.payloads
        missing = {id for id in units if id not in known} if step.local else set()
        if step.local and not missing:
            self._deliver(self.number, step.local, job.packet, {id: known[id] for id in units})
            self._use(job.packet, units)
        waiting: list[tuple[int, tuple[Box, ...]]] = []
        ready: list[tuple[int, tuple[Box, ...], Iterable[bytes]]] = []
        for target, header in step.forwards:
            needed = units if state is None else [id for id in units if not state.sent(id, target)]
            lacking = [id for id in needed if id not in known]
            if lacking:
                missing.update(lacking)
                waiting.append((target, header))
            else:
                self._use(job.packet, needed)
                ready.append((target, header, needed))
        if missing:
            assert state is not None, "a node without CN* has received a payload reference"
            local = step.local if any(id not in known for id in units) else []
            self._wait(_Wait(job, Step(local, waiting), known, missing))
        for target, header, carried in ready:
            self._send(job, target, header, {id: known[id] for id in carried})

    def _use(self, packet: Publication, units: Iterable[bytes]) -> None:
        """Record that units which the packet did not carry were needed from the repository."""
        if self.payloads is not None:
            for id in units:
                if id not in packet.carried:
                    self.payloads.need(id)

    def _send(self, job: _Job, target: int, header: tuple[Box, ...], carried: Units) -> None:
        packet, state = job.packet, self.payloads
        source, units = packet.source, packet.letter.units
        if state is not None and units:
            if all(id in state or id in self._askers for id in units):
                source = self.number
            state.counts.references += len(units) - len(carried)
            state.counts.sent += len(carried)
            state.counts.sent_bytes += sum(map(unit_size, carried.values()))
        self._counter += 1
        uid = (self.number, self._incarnation, self._counter)
        self._launch(job, target, Publication(packet.letter, carried, source, header, packet.hops + 1, uid))

    def _launch(self, job: _Job, target: int, copy: Publication, attempt: int = 0) -> None:
        """Send a copy; in a reliable network, retry until it is acknowledged."""
        size = copy.size(self._transit.distances.topology.nodes, starred=self._starred)
        size += boxes_size(copy.header)
        self._transit.send(self.number, target, copy, size, "message")
        if self.patience is None:
            return
        job.copies.add(copy.uid)
        self._pending[copy.uid] = job, target, copy
        wait = self.patience * 2 ** min(attempt, _LONGEST)
        self._transit.after(wait, lambda: self._retry(copy.uid, attempt + 1, self._incarnation))

    def _retry(self, uid: Uid, attempt: int, incarnation: int) -> None:
        if incarnation != self._incarnation or uid not in self._pending:
            return
        job, target, copy = self._pending.pop(uid)
        job.copies.discard(uid)
        if self.routing.reaches(target):
            self._launch(job, target, copy, attempt)
        else:
            # Another node, perhaps this one, has taken the place of the target.
            known = dict(copy.carried)
            self._recall(copy, known)
            self._pass_on(job, self.routing.step(copy.letter.probe, copy.header, None), known)
        self._finish(job)

    def _acknowledged(self, uid: Uid) -> None:
        found = self._pending.pop(uid, None)
        if found is not None:
            found[0].copies.discard(uid)
            self._finish(found[0])

    def _finish(self, job: _Job) -> None:
        """In a reliable network, end a job that is complete."""
        if job.copies or job.waiting or self._jobs.get(job.packet.uid) is not job:
            return
        del self._jobs[job.packet.uid]
        self._done[job.packet.uid] = None
        if len(self._done) > _REMEMBERED:
            self._done.popitem(last=False)
        self._acknowledge(job.came, job.packet)

    def _acknowledge(self, came: int | None, packet: Publication) -> None:
        if came is None:
            self._finished(packet.letter)
        else:
            self._transit.send(self.number, came, Done(packet.uid), ACKNOWLEDGEMENT, "control")

    # Missing payloads.

    def _wait(self, wait: _Wait) -> None:
        wait.job.waiting += 1
        packet = wait.job.packet
        for id in sorted(wait.missing):
            if id in self._waits:
                self._waits[id].append(wait)
            else:
                self._waits[id] = [wait]
                served = packet.source in (None, self.number, packet.letter.origin)
                self._ask(id, packet.letter.origin, None if served else packet.source)

    def _ask(self, id: bytes, origin: int, source: int | None, *, again: bool = False) -> None:
        """Request a payload from a node or the server."""
        assert self.payloads is not None
        server = source is None
        if server and self.payloads.limits.keeps:
            self._askers.setdefault(id, [])
        fetch = Fetch(id, server, origin, again=again)
        self._transit.send(self.number, origin if source is None else source, fetch, fetch.size, "payload")
        if self.patience is not None:
            self._transit.after(self.patience, lambda: self._ask_again(id, origin, self._incarnation))

    def _ask_again(self, id: bytes, origin: int, incarnation: int) -> None:
        if incarnation == self._incarnation and id in self._waits:
            self._ask(id, origin, None, again=True)

    def _asked(self, came: int, fetch: Fetch) -> None:
        """Answer a request of another node; the server forwards it if this node is the payload's home."""
        assert self.payloads is not None
        id, asker = fetch.payload, came if fetch.asker is None else fetch.asker
        self.payloads.need(id)
        content = self.payloads.payload(id)
        if content is None and id in self._askers and fetch.asker is None:
            self._askers[id].append(asker)
            return
        passed = fetch.asker is not None
        home = passed and content is None and self.payloads.wants()
        supply = Supply(id, content, fetch.origin, server=False, passed=passed, home=home, hops=3 if passed else 2)
        self._answer(asker, supply)

    def _answer(self, asker: int, supply: Supply) -> None:
        self._transit.send(self.number, asker, supply, supply.size, "payload")

    def _supplied(self, came: int | None, supply: Supply) -> None:
        id, state = supply.payload, self.payloads
        if state is None or id not in self._waits:
            return
        if supply.content is None and supply.server:
            self._give_up(id, supply)
            return
        if supply.content is None:
            for wait in self._waits[id]:
                wait.vain = max(wait.vain, supply.hops)
            if supply.home and came is not None:
                self._homeless[id] = came
            self._ask(id, supply.origin, None, again=supply.passed)
            return
        state.counts.fetched += 1
        if supply.server and supply.home:
            state.hold(id, supply.content)
        else:
            state.keep(id, supply.content)
        waits = self._waits.pop(id)
        self._pass_to_others(supply, max(wait.vain for wait in waits) + supply.hops)
        for wait in waits:
            wait.known[id] = supply.content
            wait.missing.discard(id)
            wait.hops = max(wait.hops, wait.vain + supply.hops)
            if not wait.missing:
                # Add the hops of requests and their answers.
                wait.job.waiting -= 1
                wait.job.packet = wait.job.packet.delayed(wait.hops)
                self._pass_on(wait.job, wait.step, wait.known)
                self._finish(wait.job)

    def _pass_to_others(self, supply: Supply, hops: int) -> None:
        """Answer the nodes that requested the payload in the meantime, and send a copy to a home that lacked it."""
        id, content = supply.payload, supply.content
        for asker in self._askers.pop(id, ()):
            self._answer(asker, Supply(id, content, supply.origin, server=False, hops=hops))
        home = self._homeless.pop(id, None)
        if home is not None and content is not None:
            deposit = Deposit(id, content)
            self._transit.send(self.number, home, deposit, deposit.size, "payload")

    def _give_up(self, id: bytes, supply: Supply) -> None:
        """End waiting jobs: the server keeps a payload until all nodes have the publication, so they are duplicates."""
        waits = self._waits.pop(id)
        later = [wait for wait in waits if wait.job.packet.letter.number >= supply.everywhere]
        if later:
            self._waits[id] = later
            self._ask(id, supply.origin, None, again=True)
        else:
            # Nodes that requested the payload in the meantime ask the server.
            self._homeless.pop(id, None)
            self._pass_to_others(Supply(id, None, supply.origin, server=False), 2)
        for wait in waits:
            if wait in later:
                continue
            for other in wait.missing - {id}:
                self._waits[other].remove(wait)
                if not self._waits[other]:
                    del self._waits[other]
                    self._homeless.pop(other, None)
                    self._pass_to_others(Supply(other, None, supply.origin, server=False), 2)
            wait.job.waiting -= 1
            self._finish(wait.job)
