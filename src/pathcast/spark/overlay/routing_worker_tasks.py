"""Worker tasks: the work on documents on their way through an overlay, all hops or one at a time.

`routing` takes the documents of a partition through all hops and adds their visits (`router_visits.py`). `hopping`
takes messages, which are rows, through the router that each has reached, and passes deliveries on.

Invariant: a router is opened when its first message arrives. Messages to a router from one sender are handled
together, in the order of the rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pathcast.documents import Entities, Limits
from pathcast.errors import PathcastError, PipelineError
from pathcast.kernels import Int64s
from pathcast.routing import BulkRouting, Messages, Policy, ReadBatch, encode
from pathcast.routing.annotations import NOTHING

from ..matching.arrow_document_columns import ERROR_TYPE, Part, error_column, errors_of, parts_of_rows
from ..matching.document_batch_reader import PartReader
from ..matching.match_documents import with_structures
from ..matching.mediate_documents import Stage, row_by_row
from ..matching.row_groups_by_key import take_rows
from ..matching.worker_index import Index
from .published_overlays import open_overlay
from .router_visits import Visits

ROUTER, SENDER, SUBSCRIBER, ANNOTATIONS, BYTES, OPEN = "router", "sender", "subscriber", "annotations", "bytes", "_open"
VISITS = "visits"
# What a hop adds to a document's row.
ADDED_COLUMNS = pa.schema(
    [
        (ROUTER, pa.string()),
        (SENDER, pa.string()),
        (SUBSCRIBER, pa.string()),
        (ANNOTATIONS, pa.binary()),
        (BYTES, pa.int64()),
        ("error", ERROR_TYPE),
    ]
)
Batches = Iterator[pa.RecordBatch]
_Row = tuple[int, str | None, str | None, str | None, bytes | None, int | None, bool]


@dataclass(frozen=True, slots=True)
class Way:
    """How a worker takes documents through an overlay: its location, the policy and the engine."""

    overlay: Index
    policy: Policy
    engine: str
    document: str
    links: bool
    structure: str | None = None
    limits: Limits | None = None
    entities: Entities = "refuse"


def routing(way: Way) -> Callable[[Batches], Batches]:
    """The function that a worker runs on the rows of a partition."""

    def route(batches: Batches) -> Batches:
        bulk, reading = _opened(way)
        for part, rows in _parts(batches, way.document):
            if way.structure is not None:
                part, rows = with_structures(part, rows, way.structure)  # noqa: PLW2901
            yield rows.append_column(VISITS, routed_part(bulk, part, reading, links=way.links))

    return route


def routing_stage(way: Way) -> Callable[[], Stage]:
    """`routing` as a stage after another one in the same worker."""

    def open_stage() -> Stage:
        bulk, reading = _opened(way)

        def route(part: Part, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, Int64s]:
            return row_by_row(rows.append_column(VISITS, routed_part(bulk, part, reading, links=way.links)))

        return route

    return open_stage


def _opened(way: Way) -> tuple[BulkRouting, PartReader]:
    """The routing and the reader of documents of a task."""
    overlay, _ = open_overlay(way.overlay)
    overlay.forget()
    return BulkRouting(overlay, way.policy, way.engine), PartReader(way.limits or overlay.limits, way.entities)


def _parts(batches: Batches, document: str) -> Iterator[tuple[Part, pa.RecordBatch]]:
    """The documents of batches part by part, with their rows."""
    for batch in batches:
        for part in parts_of_rows(batch, document):
            yield part, batch.slice(part.begin, part.end - part.begin)


def routed_part(bulk: BulkRouting, part: Part, reading: PartReader, *, links: bool) -> pa.Array:
    """The visits of a part's documents."""
    batch = reading.read(part)
    sizes = batch.data_offsets[1:] - batch.data_offsets[:-1]
    visits = Visits(bulk.overlay.source, batch.errors, links=links)
    left = np.setdiff1d(np.arange(len(batch), dtype=np.int64), np.fromiter(batch.errors, dtype=np.int64))
    together = bulk.visits(batch, links=links, text=part.text)
    if together is not None:
        found, headers = together
        visits.add_all(found, [bulk.overlay.upstream(router) for router in found.order], headers, sizes)
        left = np.fromiter(found.errors, dtype=np.int64)
    waiting: list[Messages] = [bulk.first(left, text=part.text)] if len(left) else []
    read = ReadBatch(batch)
    while waiting:
        following: list[Messages] = []
        for messages in waiting:
            handled = bulk.handle(messages, read, text=part.text)
            visits.add(handled, sizes)
            following += handled.sent
        waiting = following
    return visits.column(len(batch))


def hopping(way: Way, *, last: bool) -> Callable[[Batches], Batches]:
    """The function that a worker runs on rows: one hop of all pending messages."""

    def hop(batches: Batches) -> Batches:
        bulk, reading = _opened(way)
        for part, rows in _parts(batches, way.document):
            yield hopped_part(bulk, part, rows, reading, way, last=last)

    return hop


def hopped_part(
    bulk: BulkRouting, part: Part, rows: pa.RecordBatch, reading: PartReader, way: Way, *, last: bool
) -> pa.RecordBatch:
    """The rows of a part after one more hop: deliveries, and messages for the next routers."""
    assert way.structure is not None
    batch = reading.read(with_structures(part, rows, way.structure)[0])
    came = {name: rows.column(name).to_pylist() for name in (ROUTER, SENDER, SUBSCRIBER, ANNOTATIONS, BYTES, OPEN)}
    failed = errors_of(rows.column("error"))
    made: list[tuple[_Row, PathcastError | None]] = []
    groups: dict[tuple[str, str | None], list[int]] = {}
    for place, is_open in enumerate(came[OPEN]):
        router, sender = came[ROUTER][place] or bulk.overlay.source, came[SENDER][place]
        if not is_open:
            kept = [came[name][place] for name in (ROUTER, SENDER, SUBSCRIBER, ANNOTATIONS, BYTES)]
            made.append(((place, *kept, False), failed.get(place)))
        elif place in batch.errors:
            made.append(((place, router, sender, None, None, None, False), batch.errors[place]))
        else:
            groups.setdefault((router, sender), []).append(place)
    first = encode(NOTHING, text=part.text).header
    read = ReadBatch(batch)
    for (router, sender), places in groups.items():
        headers = [came[ANNOTATIONS][place] or first for place in places]
        messages = Messages(router, sender, np.array(places, dtype=np.int64), headers)
        made += _handled(bulk, messages, read, links=way.links, text=part.text, last=last)
    made.sort(key=lambda each: each[0][0])
    return _frame(rows, made, way.structure)


def _handled(
    bulk: BulkRouting, messages: Messages, read: ReadBatch, *, links: bool, text: bool, last: bool
) -> Iterator[tuple[_Row, PathcastError | None]]:
    """The rows that a router makes from messages."""
    handled = bulk.handle(messages, read, text=text)
    sizes = np.diff(read.batch.data_offsets).tolist()
    offsets, subscribers = handled.offsets.tolist(), handled.subscribers.tolist()
    for at, place in enumerate(messages.documents.tolist()):
        if at in handled.errors:
            yield (place, messages.router, messages.sender, None, None, None, False), handled.errors[at]
            continue
        header = messages.header(at)
        mine = (header, len(header) + sizes[place], False)
        if links:
            yield (place, messages.router, messages.sender, None, *mine), None
        for number in subscribers[offsets[at] : offsets[at + 1]]:
            yield (place, messages.router, messages.sender, handled.names[number], *mine), None
    more = PipelineError(
        "the overlay has more hops now than when this query started, so this document was not forwarded; restart "
        "the query"
    )
    for sent in handled.sent:
        for at, place in enumerate(sent.documents.tolist()):
            header = sent.header(at)
            size = len(header) + sizes[place]
            row: _Row = (place, sent.router, sent.sender, None, header, size, not last)
            yield row, more if last else None


def _frame(rows: pa.RecordBatch, made: list[tuple[_Row, PathcastError | None]], structure: str) -> pa.RecordBatch:
    """Rows with their new columns; rows at their destination need no structure."""
    kinds = {column.name: column.type for column in ADDED_COLUMNS if column.name != "error"}
    kinds[OPEN] = pa.bool_()
    taken = take_rows(rows, [row[0] for row, _ in made])
    new: dict[str, Any] = {
        name: pa.array([row[at] for row, _ in made], kind) for at, (name, kind) in enumerate(kinds.items(), 1)
    }
    new["error"] = error_column(len(made), {at: error for at, (_, error) in enumerate(made) if error is not None})
    places = pa.array([at if row[-1] else None for at, (row, _) in enumerate(made)], pa.int64())
    new[structure] = taken.column(structure).take(places)
    return pa.RecordBatch.from_arrays(
        [new.get(name, taken.column(name)) for name in taken.schema.names], names=taken.schema.names
    )
