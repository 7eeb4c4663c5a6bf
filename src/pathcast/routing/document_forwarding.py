"""One document at one router: process its annotations, match the document, send copies (§5 of the paper).

    message ──▶ annotations: targets that are known to want it, entries that need no matching
                    │ forwarded at once, without reading the document              (§5.1, steps 1 to 3)
                    ▼
                document read, matched as a stream (ES) or to its end (L)           (step 4, §5.2)
                    │ or decoded from its structure annotation, without parsing
                    │
                    ▼
                annotations for each neighbour that gets it                         (§4, §5.3)

Every step is timed, by kind (`document_route_report.STEPS`); `Outcome` has the time, in seconds of this router's work,
when each copy leaves. Work that only the simulation does (building engines, writing reports) is not timed.

Invariant: a document leaves for a target at most once, and for every target with an entry that matches.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TypeVar, cast

import numpy as np

from pathcast.documents import Document, DocumentBatch
from pathcast.matching import Engine, Entries, Expiring, Mask, Skipping, Streaming

from .annotation_header_codec import MOST_STRUCTURE, Encoded, Message, decode, encode
from .annotations.document_annotations import Annotations
from .annotations.incoming_annotations import AnnotationFacts, take
from .annotations.outgoing_annotations import AnnotationMaker, Reading, mask_of
from .document_route_report import RouterReport, Spent, Step
from .forwarding_policy import Policy
from .router import Router
from .router_processing_time import Clock, Stream, run_stream
from .structure.structure_coders_by_neighbour import ReceivedStructure, Structures
from .structure.structure_encoder import Refused
from .structure.structure_matcher import StructureMatcher
from .table.needed_document_values import Needs

T = TypeVar("T")
F = TypeVar("F", DocumentBatch, Entries, ReceivedStructure)


@dataclass(frozen=True, slots=True)
class Sending:
    """A copy for a neighbour: its header, and the time when it leaves."""

    neighbour: str
    header: Encoded
    after: float


@dataclass(slots=True)
class Outcome:
    """The result of a router for a document; times are seconds of its work, `spent` on each kind of step so far.

    `moments` has a copy of `spent` for each time when something left.
    """

    sendings: list[Sending] = field(default_factory=list)
    deliveries: list[tuple[str, float]] = field(default_factory=list)
    spent: Spent = field(default_factory=dict)
    moments: dict[float, Spent] = field(default_factory=dict)
    signal: bytes | None = None  # for the sender, whose structure annotation could not be decoded

    def leave(self) -> float:
        """Record that something leaves now; return the time."""
        now = sum(self.spent.values())
        self.moments.setdefault(now, dict(self.spent))
        return now


def router_evaluates(router: Router) -> bool:
    """Whether a router has opaque patterns."""
    return router.table.patterns.opaque is not None


class DocumentForwarding:
    """Handles one message at a router; `run` fills `outcome` and the report."""

    def __init__(
        self,
        router: Router,
        sender: str | None,
        policy: Policy,
        engine: str | None,
        clock: Clock,
        report: RouterReport,
    ) -> None:
        self.router, self.sender, self.policy, self.clock = router, sender, policy, clock
        self.engine: Engine = router.table.engine(engine)
        self.view = router.table.view(sender)
        self.report = report
        self.outcome = Outcome()
        self._decided = self.view.nobody()
        self._came: ReceivedStructure | None = None  # the structure annotation, if it can be used
        self._decoded: DocumentBatch | None = None
        self._structured = "t" in policy.positive

    def run(self, data: bytes) -> Outcome:
        """Handle a message."""
        message = self._timed("take", lambda: decode(data))
        self._text = message.text
        taken = self._timed("take", lambda: self._take(message))
        self._making = AnnotationMaker(self.router, self.policy, taken, len(message.document))
        report = self.report
        report.wanted, report.annotations = self.view.busy, message.sizes
        report.refused = message.refused or taken.refused
        if report.refused is None and message.annotations.structure is not None:
            self._came = self._take_structure(message.annotations.structure, message.document)
            if router_evaluates(self.router):
                self._came = None  # an expression may look at any value, so the document is parsed
        if self._came is not None and not self._is_quick():
            self._decoded = self._decode()
        self._forward_at_once(taken)
        skip, left, report.skipped = self._timed("take", lambda: self._left_out(taken))
        report.needed = left
        if left:
            expiry = None if taken.believed.last_places is None else self._timed("take", taken.expiry)
            self._process(message.document, skip, expiry)
        report.spent = self.outcome.spent
        return self.outcome

    def _timed(self, kind: Step, step: Callable[[], T]) -> T:
        result, seconds = self.clock.timed(step)
        self._spend(kind, seconds)
        return result

    def _spend(self, kind: Step, seconds: float) -> None:
        self.outcome.spent[kind] = self.outcome.spent.get(kind, 0.0) + seconds

    # Incoming annotations.

    def _take(self, message: Message) -> AnnotationFacts:
        made = None if self.sender is None else self.router.made.get(self.sender)
        return take(message.annotations, made, self.view, trusted=self.sender not in self.router.untrusted)

    def _left_out(self, taken: AnnotationFacts) -> tuple[Mask, int, dict[str, int]]:
        """The entries that need no matching, how many are left, and how many each kind of annotation saved."""
        if taken.made is None and not taken.wanting.any():
            return self.view.idle, self.view.busy, {}
        failing, skipped = taken.failing(self.view.entries)
        return *self.view.left_out(failing, self._decided), skipped

    def _is_quick(self) -> bool:
        """Whether the document is matched from its structure annotation alone, without its elements."""
        asks = set(self.policy.positive + self.policy.negative) - {"t"}
        return self.policy.forwarding == "L" and not asks and StructureMatcher.takes(self.engine)

    def _take_structure(self, structure: bytes, document: bytes) -> ReceivedStructure | None:
        router, sender = self.router, self.sender
        if sender is None:
            return None
        needs, table = router.made[sender].needs, router.table.patterns
        return self._unless_refused(
            self._timed("structure", lambda: router.structures.take_in(sender, needs, table, structure, document))
        )

    def _decode(self) -> DocumentBatch | None:
        """The document from its structure annotation, if that can be used."""
        came = self._came
        return None if came is None else self._unless_refused(self._timed("structure", lambda: Structures.decode(came)))

    def _match_quickly(self, came: ReceivedStructure) -> Entries | None:
        """The entries that the document matches, from its structure annotation, if that can be used."""
        found = self._timed("match", lambda: self.router.structures.match(came, self.engine))
        return self._unless_refused(found)

    def _unless_refused(self, found: F | Refused) -> F | None:
        if isinstance(found, Refused):
            self._came = None
            self.report.refused = found.reason
            self.outcome.signal = found.encode() if found.resend else None
            return None
        return found

    def _forward_at_once(self, taken: AnnotationFacts) -> None:
        """Send the document to targets that want it by the annotations, for any policy (§5.1, step 1)."""
        self._deliver(taken.wanting)
        for number in np.flatnonzero(taken.wanting[: self.view.routers]).tolist():
            at_once = self._timed("make", partial(self._making.at_once, self.view.targets[number].name))
            self._send(number, at_once, None if self._decoded is None else self._decoded[0])

    # The document.

    def _process(self, data: bytes, skip: Mask, expiry: Entries | None) -> None:
        entries = self._match_quickly(self._came) if self._came is not None and self._decoded is None else None
        if entries is not None:
            self.report.forwarding = "L"
            self._pass_on(entries, skip, None)
            return
        batch, reading = self._decoded, 0.0
        if batch is None:
            parsed, reading = self.clock.timed(lambda: self._read(data))
            batch, self.report.parsed = parsed, True
        if 0 in batch.errors:
            raise batch.errors[0]
        if self.policy.forwarding == "ES" or (self.policy.forwarding == "adaptive" and self._is_early(batch[0], skip)):
            self._forward_early(batch[0], reading, skip)
        else:
            self._forward_late(batch, reading, skip, expiry)

    def _read(self, data: bytes) -> DocumentBatch:
        return self.router.read(data, text=self._text)

    def _is_early(self, document: Document, skip: Mask) -> bool:
        """Whether the first match for a neighbour comes within the policy's threshold.

        A real router runs one stream and decides at the match; here a separate run decides, which is not timed.
        """
        assert isinstance(self.engine, Streaming)
        assert self.policy.early is not None
        waited_for = np.where(self.view.for_router[self.view.group] & ~skip, 0, -1).astype(np.int32)
        if not (waited_for == 0).any():
            return True
        matches = self.engine.match_stream(document, skip=skip, link=waited_for)
        first = matches.positions[waited_for[matches.entries] == 0]
        if not len(first):
            return False
        place = int(first.min())
        size = len(document.utf8)
        begins = int(document.batch.position[document.first + place]) if place < len(document) else size
        return begins <= self.policy.early * size

    def _forward_late(self, batch: DocumentBatch, reading: float, skip: Mask, expiry: Entries | None) -> None:
        """`L`: read the whole document first, then send all copies."""
        self.report.forwarding, self.report.read = "L", int(batch.offsets[-1])
        self._spend("read", reading)
        entries = self._timed("match", lambda: self._match(batch, skip, expiry))
        self._pass_on(entries, skip, batch)

    def _pass_on(self, entries: Entries, skip: Mask, batch: DocumentBatch | None) -> None:
        """Deliver and forward by the matches of the whole document; without a batch, annotate only the structure."""
        wanting = self._timed("match", lambda: self.view.undecided(entries, skip, self._decided))
        self._deliver(wanting)
        routers = np.flatnonzero(wanting[: self.view.routers]).tolist()
        if routers and batch is not None and self.policy.tells:
            matched, reading = self._timed("make", lambda: self._known_of(batch, entries, skip))
            for number in routers:
                late = partial(self._making.late, self.view.targets[number].name, reading, matched)
                self._send(number, self._timed("make", late), batch[0])
        else:
            for number in routers:
                nothing = Annotations(self.router.received[self.view.targets[number].name].version)
                self._send(number, nothing, None if batch is None else batch[0])

    def _known_of(self, batch: DocumentBatch, entries: Entries, skip: Mask) -> tuple[Mask, Reading]:
        """The input for annotations, after the whole document was read."""
        matched = mask_of(entries, len(skip))
        if not _can(type(self.engine), Skipping):  # it may have found some of the skipped entries
            matched &= ~skip
        return matched, Reading(batch, len(batch.name), self.router, self.policy)

    def _match(self, batch: DocumentBatch, skip: Mask, expiry: Entries | None) -> Entries:
        engine, kind = self.engine, type(self.engine)
        if expiry is not None and _can(kind, Expiring):
            _, entries = cast(Expiring, engine).match_until(batch, skip, expiry)
        elif _can(kind, Skipping) and skip.any():
            _, entries = cast(Skipping, engine).match_except(batch, skip)
        else:
            _, entries = engine.match_batch(batch)
        if 0 in batch.errors:
            raise batch.errors[0]
        return entries

    def _forward_early(self, document: Document, reading: float, skip: Mask) -> None:
        """`ES`: a copy leaves when the stream has its first match."""
        self.report.forwarding = "ES"
        assert isinstance(self.engine, Streaming)
        stream = run_stream(
            self.clock,
            self.engine,
            None if self._structured else self._read,
            document,
            reading,
            skip=skip,
            group=self.view.group,
            urgent=self._leaving_places,
        )
        self.report.read = stream.matches.read
        spent = self.outcome.spent
        for place, numbers in self._first_places(stream).items():
            spent["read"], spent["match"] = stream.seconds[place]
            wanting = self.view.nobody()
            wanting[numbers] = True
            self._deliver(wanting)
            for number in np.flatnonzero(wanting[: self.view.routers]).tolist():
                self._send_early(number, document, place, stream)
        spent["read"], spent["match"] = stream.total

    def _send_early(self, number: int, document: Document, place: int, stream: Stream) -> None:
        found = stream.matches.entries[stream.matches.positions <= place]
        batch, matched = document.alone(), mask_of(found, len(self.view.group))
        reading = self._timed("make", lambda: Reading(batch, place, self.router, self.policy))
        name = self.view.targets[number].name
        self._send(number, self._timed("make", lambda: self._making.early(name, reading, matched)), document)

    def _first_matches(self, decided: dict[int, int]) -> dict[int, int]:
        """The place of the first match of each target that gets the document, given the places of groups."""
        first: dict[int, int] = {}
        for group, place in decided.items():
            for number in self.view.members(group):
                if not self._decided[number]:
                    first[number] = min(place, first.get(number, place))
        return first

    def _leaving_places(self, decided: dict[int, int]) -> set[int]:
        """The places where a copy leaves for a neighbour."""
        return {place for number, place in self._first_matches(decided).items() if number < self.view.routers}

    def _first_places(self, stream: Stream) -> dict[int, list[int]]:
        """The places of first matches, ascending, and the targets that get the document there."""
        first = self._first_matches(stream.decided)
        places: dict[int, list[int]] = {place: [] for place in sorted(set(first.values()))}
        for number, place in first.items():
            places[place].append(number)
        return places

    # Copies.

    def _send(self, number: int, annotations: Annotations, document: Document | None = None) -> None:
        """Send a copy as soon as its header is written; with the structure, if the policy includes it."""
        self._decided[number] = True
        if self._structured:
            annotations = self._with_structure(self.view.targets[number].name, annotations, document)
        header = self._timed("encode", lambda: encode(annotations, text=self._text))
        self.outcome.sendings.append(Sending(self.view.targets[number].name, header, self.outcome.leave()))

    def _with_structure(self, neighbour: str, annotations: Annotations, document: Document | None) -> Annotations:
        """The annotations with the document's structure, relayed or made from the elements, unless it is too large."""
        needs, structures = self.router.received[neighbour].needs, self.router.structures
        structure = self._timed("structure", lambda: self._structure_for(neighbour, needs))
        if structure is None:
            if document is None and (decoded := self._decode()) is not None:
                document = decoded[0]
            if document is None:
                return annotations
            known = document
            structure = self._timed("structure", lambda: structures.encode(neighbour, needs, known))
        if structure is None or len(structure) > MOST_STRUCTURE:
            return annotations
        structures.left(neighbour)
        return replace(annotations, structure=structure)

    def _structure_for(self, neighbour: str, needs: Needs) -> bytes | None:
        """The incoming structure annotation, relayed for a neighbour; None if there is none or elements are needed."""
        return None if self._came is None else self.router.structures.pass_on(self._came, neighbour, needs)

    def _deliver(self, wanting: Mask) -> None:
        """Deliver the document to the local subscribers among these targets."""
        local = self.view.routers + np.flatnonzero(wanting[self.view.routers :])
        if len(local):
            self._decided[local] = True
            after = self.outcome.leave()
            self.outcome.deliveries += [(self.view.targets[number].name, after) for number in local.tolist()]


@cache
def _can(engine: type, capability: type) -> bool:
    """Whether engines of a class have a capability; cached, since `isinstance` would take longer than matching."""
    return issubclass(engine, capability)
