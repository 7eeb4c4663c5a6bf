"""The annotations of a batch of documents on all links of a stored overlay, from one match of each document.

    matches of the whole table ──▶ entries at each router ──▶ per link: aggregates that match, that are not ruled out,
                                                              data patterns that do not occur ──▶ headers

A router passes on what it knows to a neighbour: after reading the document, everything; if its own incoming annotations
prove that the neighbour wants the document, only what follows from them (`annotations/outgoing_annotations.py`). Both
follow from the document's matches and the annotations on the link before, so routers are taken from the source down,
each with all of its documents. Matches and failures are lists of numbers, data patterns masks; bindings are made
message by message.

Policies with `t` and policies that forward early are processed document by document (`document_batch_forwarding.py`).

Invariant: headers, byte by byte, and entries left to match are those of `DocumentForwarding`.
Cost: some nanoseconds per match and byte of a header; about 50 µs per message with bindings.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import Bools, Int32s, Int64s, Matrix, UInt8s
from pathcast.store import offsets_of

from ..annotation_header_codec import HOLDING, ND, NS, PD, PS, TEXT, bindings_section, encode
from ..annotation_wire_kernels import LONGEST_NUMBER
from ..annotations.data_pattern_occurrences import SeenByEach
from ..annotations.data_pattern_occurrences_kernels import Places
from ..annotations.document_annotations import NOTHING, Bound
from ..annotations.incoming_annotations import AnnotationFacts
from ..annotations.outgoing_annotations import LEAST, SHARE, AnnotationMaker
from ..forwarding_policy import Policy
from ..snapshot.stored_overlay import StoredOverlay
from ..whole_overlay_table import OverlayMatches
from .header_kernels import Format, Written, write_headers
from .link_annotations_kernels import (
    Facts,
    Found,
    Lists,
    Neighbours,
    Rows,
    Stamps,
    annotate_rows,
    by_neighbour,
    entries_at_routers,
)
from .router_links import RouterLinks

_NUMBERS: Int32s = np.zeros(0, dtype=np.int32)
Bindings = dict[int, tuple[Bound, ...]]


class Headers(NamedTuple):
    """Headers as bytes: header `i` is `data[offsets[i] : offsets[i + 1]]`."""

    offsets: Int64s
    data: UInt8s


class AnnotatedVisits(NamedTuple):
    """The header of each document at each router that it reached, by number; and the entries left to match there."""

    headers: Headers
    number: Matrix[Int64s]
    needed: Matrix[Int64s]


@dataclass(frozen=True, slots=True)
class Incoming:
    """The annotations of the documents at a router, by row; bindings for rows that have some."""

    has_failed: Bools
    open: Lists
    holding: Lists
    has_absent: Bools
    absent: Matrix[Bools]
    bindings: Bindings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Batch:
    """The documents, what they match and where they go, with the label paths if data patterns are sent."""

    documents: DocumentBatch
    found: OverlayMatches
    text: bool
    seen: SeenByEach | None


class LinkAnnotations:
    """Makes the annotations of batches under one policy."""

    def __init__(self, overlay: StoredOverlay, policy: Policy) -> None:
        self.overlay, self.policy = overlay, policy
        whole = overlay.whole
        assert whole is not None
        self._routers = whole.routers
        self._owners = Neighbours(*whole.owners)
        self._number = {name: number for number, name in enumerate(self._routers)}
        self._links: dict[str, RouterLinks] = {}

    def visits(self, documents: DocumentBatch, found: OverlayMatches, *, text: bool) -> AnnotatedVisits | None:
        """The headers of all visits; None if the documents have too many label paths to be processed at once."""
        seen = None
        if "d" in self.policy.negative + self.policy.positive:
            seen = self.overlay.labels.seen_by_each(documents)
            if seen is None:
                return None
        batch = Batch(documents, found, text, seen)
        number, needed = np.zeros((2, *found.reached.shape), dtype=np.int64)
        first = np.frombuffer(encode(NOTHING, text=text).header, dtype=np.uint8)
        made, lengths, count = [first], [np.array([len(first)])], 1
        begins, entries = self._entries(found)
        incoming = {self._routers[0]: _nothing(int(np.count_nonzero(found.reached[0])))}
        for at, name in enumerate(self._routers):
            rows = np.flatnonzero(found.reached[at])
            came = incoming.pop(name, None)
            if came is None or not len(rows):
                continue
            links = self._of(name)
            places = at * len(documents) + rows
            matched = Lists(begins[places], begins[places + 1], entries)
            step = _Step(links, came, batch, rows, self.policy)
            step.run(matched)
            needed[at, rows] = step.needed
            for place, neighbour in enumerate(links.neighbours):
                to = self._number[neighbour]
                crossing = np.flatnonzero(found.reached[to, rows])
                if len(crossing):
                    written, incoming[neighbour] = step.send(place, neighbour, crossing)
                    made.append(written.data)
                    lengths.append(np.diff(written.offsets))
                    number[to, rows[crossing]] = np.arange(count, count + len(crossing))
                    count += len(crossing)
        return AnnotatedVisits(Headers(offsets_of(np.concatenate(lengths)), np.concatenate(made)), number, needed)

    def _of(self, name: str) -> RouterLinks:
        if name not in self._links:
            self._links[name] = RouterLinks(self.overlay.router(name), self.overlay.upstream(name))
        return self._links[name]

    def _entries(self, found: OverlayMatches) -> tuple[Int64s, Int32s]:
        """The entries that each document matches at each router (`entries_at_routers`)."""
        inner = np.zeros(len(self._routers), dtype=np.bool_)
        inner[[self._number[up] for name in self._routers if (up := self.overlay.upstream(name)) is not None]] = True
        begins = np.zeros(found.reached.size + 1, dtype=np.int64)
        out = np.empty(4 * len(found.entries), dtype=np.int32)
        arguments = found.offsets, found.entries, self._owners, found.reached, inner
        total = entries_at_routers(*arguments, begins, out)
        if total > len(out):
            begins[:], out = 0, np.empty(total, dtype=np.int32)
            entries_at_routers(*arguments, begins, out)
        return begins, out


class _Step:
    """The documents at one router: its incoming annotations, and those for each neighbour."""

    def __init__(self, links: RouterLinks, came: Incoming, batch: Batch, rows: Int64s, policy: Policy) -> None:
        self.links, self.came, self.batch, self.rows, self.policy = links, came, batch, rows, policy
        self._sizes = np.diff(batch.documents.data_offsets)[rows]
        self._rooms = np.maximum(LEAST, (SHARE * self._sizes).astype(np.int64))
        self._proofs: dict[int, list[tuple[Bound, Int32s]]] = {}
        if links.made is not None:
            known = links.made.known
            self._proofs = {
                row: [(bound, known.entries(bound)) for bound in bindings] for row, bindings in came.bindings.items()
            }

    def run(self, matched: Lists) -> None:
        """Find the aggregates of all neighbours that match and that are not ruled out, by row."""
        links, count = self.links, len(self.rows)
        came, group = self.came, links.view.group
        facts = Facts(
            came.has_failed, came.open, came.holding, self._proven(), came.has_absent, came.absent, links.trusted
        )
        self.early = np.zeros((len(links.neighbours), count), dtype=np.bool_)
        self.needed = np.empty(count, dtype=np.int64)
        rows = Rows(self.early, self.needed, np.zeros(2, dtype=np.int64))
        room = 256 + 2 * int((matched.ends - matched.begins).sum())
        while True:
            stamps = Stamps(
                np.zeros((2, len(group)), dtype=np.int32),
                np.zeros(len(links.view.targets), dtype=np.int32),
                np.zeros(links.aggregates, dtype=np.int32),
                np.empty(len(group), dtype=np.int32),
            )
            found, opened = (Found(*np.empty((3, room), dtype=np.int32)) for _ in range(2))
            if annotate_rows(
                matched,
                facts,
                links.advertised,
                links.table,
                links.aggregates_of,
                stamps,
                found,
                opened,
                rows,
            ):
                break
            room *= 4
        self._matching = _sorted(found, int(rows.filled[0]), len(links.neighbours), count)
        self._opened = _sorted(opened, int(rows.filled[1]), len(links.neighbours), count)

    def _proven(self) -> Lists:
        """The entries that bindings prove to match, by row."""
        lengths = np.zeros(len(self.rows), dtype=np.int64)
        columns = [_NUMBERS]
        for row in sorted(self._proofs):
            columns += [entries for _, entries in self._proofs[row]]
            lengths[row] = sum(len(entries) for _, entries in self._proofs[row])
        offsets = offsets_of(lengths)
        return Lists(offsets[:-1], offsets[1:], np.concatenate(columns).astype(np.int32))

    def send(self, place: int, neighbour: str, crossing: Int64s) -> tuple[Headers, Incoming]:
        """The headers of the rows that cross a link, and what they tell the neighbour."""
        policy, came = self.policy, self.came
        received = self.links.router.received[neighbour]
        early = self.early[place, crossing]
        at = place * len(self.rows) + crossing
        matching, opened = _at(self._matching, at), _at(self._opened, at)
        aggregates = len(self.links.router.entries_of(neighbour))
        has_failed = np.zeros(len(crossing), dtype=np.bool_)
        if "s" in policy.negative:
            ruled_out = came.has_failed[crossing] & (opened.ends - opened.begins < aggregates)
            has_failed = np.where(early, ruled_out & self.links.trusted, True)
        beyond = len(matching.numbers)
        left_open = Lists(
            np.where(early, opened.begins + beyond, matching.begins),
            np.where(early, opened.ends + beyond, matching.ends),
            np.concatenate([matching.numbers, opened.numbers]),
        )
        has_holding = matching.ends > matching.begins
        if "s" not in policy.positive:
            has_holding &= False
            matching = matching._replace(ends=matching.begins)
        has_absent, absent = self._absent(neighbour, crossing, early)
        bindings = self._bindings(neighbour, crossing, early, matching, aggregates)
        sections = [bindings_section(bindings.get(row, ())) for row in range(len(crossing))]
        written = Written(
            matching,
            has_holding,
            left_open,
            has_failed,
            absent,
            has_absent,
            self._last_places(neighbour, crossing, early),
            offsets_of([len(section) for section in sections]),
            np.frombuffer(b"".join(sections), dtype=np.uint8),
        )
        form = Format(
            TEXT if self.batch.text else 0, NS, HOLDING, ND, PD, PS, aggregates, absent.shape[1], received.version
        )
        headers = _headers(written, form)
        return headers, Incoming(has_failed, left_open, matching, has_absent, absent, bindings)

    def _absent(self, neighbour: str, crossing: Int64s, early: Bools) -> tuple[Bools, Matrix[Bools]]:
        """The data patterns that do not occur, by row."""
        seen, links = self.batch.seen, self.links
        if seen is None or "d" not in self.policy.negative:
            return np.zeros(len(crossing), dtype=np.bool_), np.zeros((len(crossing), 0), dtype=np.bool_)
        data = links.router.received[neighbour].data
        absent = data.absent_in_each(links.router.labels, seen, self.rows[crossing])
        if not early.any():
            return ~early, absent
        came = self.came.has_absent[crossing] & early & links.trusted
        absent[early] = False
        if links.made is not None and came.any():
            absent[came] = data.inherited_by_each(self.came.absent[crossing[came]], links.made.data)
        return ~early | (came & absent.any(axis=1)), absent

    def _last_places(self, neighbour: str, crossing: Int64s, early: Bools) -> Places:
        """The most beneficial last places of data patterns, for rows that were read."""
        seen, received = self.batch.seen, self.links.router.received[neighbour]
        rooms = np.zeros(len(crossing), dtype=np.int64)
        if seen is not None and "d" in self.policy.positive:
            rooms[~early] = self._rooms[crossing[~early]] // 3
        if seen is None or not rooms.any():
            return Places.none(len(crossing))
        labels, documents = self.links.router.labels, self.rows[crossing]
        return received.data.last_places_in_each(
            labels, seen, self.batch.documents, documents, received.frequencies, rooms
        )

    def _bindings(self, neighbour: str, crossing: Int64s, early: Bools, matching: Lists, aggregates: int) -> Bindings:
        """The bindings of the rows that have some."""
        if "s" not in self.policy.positive:
            return {}
        router = self.links.router
        chosen = set(np.flatnonzero(~early & router.binder(neighbour).may_bind(*matching)).tolist())
        if self._proofs:
            chosen |= {row for row, at in enumerate(crossing.tolist()) if early[row] and at in self._proofs}
        found: Bindings = {}
        for row in sorted(chosen):
            at = int(crossing[row])
            facts = AnnotationFacts(self.links.view, self.links.view.nobody(), np.zeros(0, dtype=np.bool_))
            facts.made = self.links.made if self.links.trusted else None
            facts.proofs = self._proofs.get(at, [])
            making = AnnotationMaker(router, self.policy, facts, int(self._sizes[at]))
            if early[row]:
                bindings = making.passed_on(neighbour)
            else:
                alone = self.batch.documents[int(self.rows[at])].alone()
                holding = np.zeros(aggregates, dtype=np.bool_)
                holding[matching.numbers[matching.begins[row] : matching.ends[row]]] = True
                bindings = router.binder(neighbour).bind(alone, len(alone.name), holding, making.room)
            if bindings:
                found[row] = bindings
        return found


def _nothing(rows: int) -> Incoming:
    """No annotations."""
    no, begins = np.zeros(rows, dtype=np.bool_), np.zeros(rows, dtype=np.int64)
    return Incoming(no, Lists(begins, begins, _NUMBERS), Lists(begins, begins, _NUMBERS), no, no.reshape(-1, 1))


def _sorted(found: Found, filled: int, neighbours: int, rows: int) -> Lists:
    """Triples as lists: of row `r` for neighbour `n` at `n * rows + r`."""
    begins, out = np.zeros(neighbours * rows + 1, dtype=np.int64), np.empty(filled, dtype=np.int32)
    by_neighbour(*(column[:filled] for column in found), rows, begins, out)
    return Lists(begins[:-1], begins[1:], out)


def _at(lists: Lists, rows: Int64s) -> Lists:
    return Lists(lists.begins[rows], lists.ends[rows], lists.numbers)


def _headers(written: Written, form: Format) -> Headers:
    rows = len(written.has_failed)
    per_row = 32 + (form.patterns + 7 >> 3)
    open_bits = written.open.ends - written.open.begins
    bits = written.has_failed * form.aggregates + written.has_holding * np.where(
        written.has_failed, open_bits, form.aggregates
    )
    places = 2 * LONGEST_NUMBER * len(written.last_places.patterns)
    out = np.empty(per_row * rows + int((bits // 8 + 2).sum()) + places + len(written.bindings), dtype=np.uint8)
    offsets = np.empty(rows + 1, dtype=np.int64)
    stamps = np.zeros(form.aggregates, dtype=np.int32)
    return Headers(offsets, out[: write_headers(written, form, stamps, out, offsets)])
