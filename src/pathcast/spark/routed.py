"""An overlay on Spark: documents go from router to router, a stage a hop, to the subscribers that want them.

    documents ── hop 0: the source ──▶ rows for its neighbours, rows delivered ── hop 1 ──▶ … ──▶ rows delivered

A row on its way is a message: a document, the router that it has come to, the one that sent it, and what that one has
worked out (`annotations`, with the document's structure under policies with `t`). A hop handles the messages of its
routers as the routing room does (Chan, Ni: Efficient XML Data Dissemination with Piggybacking, SIGMOD 2007) and lets
pass what is delivered already.

Invariant: deliveries, bytes and annotations are those of the overlay in one process. With `t`, the ends of links begin
anew in every task, so that what they have to define is sent once for each partition.
Cost: a router's work a message, and the way of all rows through one Python worker a hop. Every worker has all routers.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pathcast.errors import PathcastError, PipelineError
from pathcast.routing import Overlay, Policy
from pathcast.routing.annotations import NOTHING
from pathcast.routing.clock import Clock
from pathcast.routing.description import OverlayDescription
from pathcast.routing.handling import Handling
from pathcast.routing.overlay import engine_for
from pathcast.routing.report import RouterReport
from pathcast.routing.wire import encode

from .checks import ERROR, check_columns
from .columns import error_column, errors_of
from .gathering import take_rows
from .shipped import Shipped

ROUTER, SENDER, SUBSCRIBER, ANNOTATIONS, BYTES, OPEN = "router", "sender", "subscriber", "annotations", "bytes", "_open"
_ADDED = [
    t.StructField(ROUTER, t.StringType()),
    t.StructField(SENDER, t.StringType()),
    t.StructField(SUBSCRIBER, t.StringType()),
    t.StructField(ANNOTATIONS, t.BinaryType()),
    t.StructField(BYTES, t.LongType()),
    t.StructField("error", ERROR),
]
Batches = Iterator[pa.RecordBatch]


def disseminate(
    documents: DataFrame,
    overlay: Overlay,
    policy: str | Policy = "L+s-sd",
    *,
    document: str = "xml",
    at: str | None = None,
    engine: str | None = None,
    links: bool = False,
) -> DataFrame:
    """Send documents through an overlay, from a router (the root, unless `at` names another) to their subscribers.

    A row per document and subscriber: the document's columns, the `router` where it subscribed, the `sender` that the
    router had the document from (null at the source), `subscriber`, the `annotations` that came along and the `bytes`
    of the message. With `links`, also a row for each message that came to a router, whose `subscriber` is null. A
    document that can't be read is one row with `error`.

    Works on streams too; routers are those of the overlay when the stage is made.
    """
    check_columns(documents.schema, document, None, [*(field.name for field in _ADDED), OPEN])
    policy = Policy.read(policy)
    name = engine_for(policy, engine)
    source = overlay.router(overlay.root if at is None else at).name
    shipped = Shipped.of(OverlayDescription.of(overlay))
    hops = int(overlay.topology.rooted(source).depth.max()) + 1
    schema = t.StructType([*documents.schema.fields, *_ADDED, t.StructField(OPEN, t.BooleanType())])
    begin = [f.lit(None).cast(field.dataType).alias(field.name) for field in _ADDED]
    rows = documents.select("*", *begin, f.lit(True).alias(OPEN))
    for _ in range(hops):
        rows = rows.mapInArrow(hopping(shipped, source, policy, name, document, links), schema)
    return rows.drop(OPEN)


def hopping(
    overlay: Shipped, source: str, policy: Policy, engine: str, document: str, links: bool
) -> Callable[[Batches], Batches]:
    """The function that a worker runs on the rows of a partition: one hop of all messages that are on their way."""

    def hop(batches: Batches) -> Batches:
        routers = overlay.open(Routers, source)
        routers.begin()
        for batch in batches:
            yield routers.hop(batch, policy, engine, document, links=links)

    return hop


class Routers:
    """The routers of an overlay in a worker."""

    def __init__(self, description: OverlayDescription, source: str) -> None:
        self._overlay = description.overlay()
        self._source = self._overlay.follow(source)

    def begin(self) -> None:
        """Begin all links anew: what another task has told over them, nobody here has heard."""
        for name in self._overlay.routers:
            self._overlay.router(name).structures.forget()

    def hop(self, batch: pa.RecordBatch, policy: Policy, engine: str, document: str, *, links: bool) -> pa.RecordBatch:
        """The rows of a batch after one more hop, in their order."""
        text = pa.types.is_string(batch.schema.field(document).type)
        values, opened = batch.column(document).to_pylist(), batch.column(OPEN).to_pylist()
        came = {name: batch.column(name).to_pylist() for name in (ROUTER, SENDER, SUBSCRIBER, ANNOTATIONS, BYTES)}
        errors = errors_of(batch.column("error"))
        places: list[int] = []
        rows: list[tuple[Any, ...]] = []
        failed: dict[int, PathcastError] = {}
        for place, value in enumerate(values):
            mine = tuple(came[name][place] for name in came)
            if not opened[place]:
                if place in errors:
                    failed[len(rows)] = errors[place]
                made = [(*mine, False)]
            else:
                try:
                    made = self._handled(value, mine[0], mine[1], mine[3], policy, engine, text=text, links=links)
                except PathcastError as error:
                    failed[len(rows)] = error
                    made = [(mine[0] or self._source, mine[1], None, None, None, False)]
            places += [place] * len(made)
            rows += made
        return _frame(take_rows(batch, places), rows, failed)

    def _handled(
        self,
        value: bytes | str | None,
        router: str | None,
        sender: str | None,
        annotations: bytes | None,
        policy: Policy,
        engine: str,
        *,
        text: bool,
        links: bool,
    ) -> list[tuple[Any, ...]]:
        """What becomes of one message: rows delivered, and rows for the next routers."""
        if value is None:
            raise PipelineError("there is no document: the column is null")
        data = value.encode() if isinstance(value, str) else value
        name = router or self._source
        header = encode(NOTHING, text=text).header if annotations is None else annotations
        message = header + data
        at = self._overlay.router(name)
        report = RouterReport(0.0, len(message))
        outcome = Handling(at, sender, policy, engine, Clock(1), report).run(message)
        if router is None and not report.parsed:  # then nobody has looked yet whether it can be read
            for error in at.read(data, text=text).errors.values():
                raise error
        rows: list[tuple[Any, ...]] = [(name, sender, None, header, len(message), False)] if links else []
        rows += [(name, sender, each, header, len(message), False) for each, _ in sorted(outcome.deliveries)]
        for sending in outcome.sendings:
            copy = sending.header.header
            rows.append((sending.neighbour, name, None, copy, len(copy) + len(data), True))
        return rows


def _frame(rows: pa.RecordBatch, made: list[tuple[Any, ...]], failed: dict[int, PathcastError]) -> pa.RecordBatch:
    """Rows with their new columns."""
    kinds = {ROUTER: pa.string(), SENDER: pa.string(), SUBSCRIBER: pa.string(), ANNOTATIONS: pa.binary()}
    kinds |= {BYTES: pa.int64(), OPEN: pa.bool_()}
    new = {name: pa.array([each[at] for each in made], kind) for at, (name, kind) in enumerate(kinds.items())}
    new["error"] = error_column(len(made), failed)
    columns = [new.get(name, rows.column(name)) for name in rows.schema.names]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
