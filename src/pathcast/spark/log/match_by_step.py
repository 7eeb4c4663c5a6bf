"""Match rows of a broker's log with the subscriptions that are valid at each row's sequence: the workers' side.

    rows of documents ──by feed, 512 documents──▶ LogMatcher.match ──▶ `subscriptions`: tenant, subscription, subscriber

A `MatchingStep` is sent to the workers (subscription_steps.py). A worker opens a base once, and adds the patterns of
later spans to it as steps bring them.

Invariant: a row's subscriptions are the broker's deliveries of the document, or its `error` says why there are none.
Cost: that of matching; the names of subscriptions are taken from an Arrow table, without an object per match.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
from msgspec import msgpack
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from pathcast import Subscriptions
from pathcast.broker_log import GuardSpans, LoggedDocuments, LogMatcher, MediatorSpans, SubscriptionSpan, Validity
from pathcast.errors import PathcastError, PipelineError
from pathcast.kernels import Int64s
from pathcast.matching import open_index
from pathcast.store import offsets_of

from ..arrow_to_spark_types import spark_type
from ..matching.arrow_document_columns import error_column, lists
from ..matching.input_column_checks import ERROR, check_columns
from ..matching.match_documents import SUBSCRIPTIONS
from ..sessions.objects_sent_to_workers import ShippedObject

NAMES: Final = pa.schema(
    [pa.field(name, pa.string(), nullable=False) for name in ("tenant", "subscription", "subscriber")]
)
_LIST: Final = pa.list_(pa.field("element", pa.struct(NAMES), nullable=False))
_DOCUMENTS, _BYTES = 512, 4 << 20
_KEPT = 4


@dataclass(frozen=True)
class MatchingStep:
    """What is valid for the documents `begin` to `end`: the spans of a base, with some `ends`, and then `rows`.

    `history`: the rows that also concern documents before `begin`, from `history_begin` on. `expired`: per feed, the
    first document that is delivered.
    """

    base: str | None
    rows: tuple[SubscriptionSpan, ...]
    ends: Mapping[int, int]
    guards: Mapping[str, GuardSpans]
    mediators: Mapping[str, MediatorSpans]
    expired: Mapping[str, int]
    begin: int
    end: int
    history: tuple[int, ...]
    history_begin: int


class _Base(NamedTuple):
    """An open base. Its matcher also has the patterns of the rows that steps brought so far."""

    matcher: LogMatcher
    validity: Validity
    names: pa.Table


class _Opened(NamedTuple):
    """A step, open in a worker."""

    step: MatchingStep
    matcher: LogMatcher
    validity: Validity
    names: pa.Table


def names_of(rows: Sequence[SubscriptionSpan]) -> pa.Table:
    """The names of spans as a table."""
    return pa.table(
        [
            pa.array([row.tenant for row in rows], pa.string()),
            pa.array([row.id for row in rows], pa.string()),
            pa.array([row.subscriber for row in rows], pa.string()),
        ],
        schema=NAMES,
    )


def match_by_step(documents: DataFrame, step: MatchingStep, *, history: bool = False) -> DataFrame:
    """Rows of format `pathcast` with their `subscriptions`, or an `error`.

    `history`: the rows are documents before the step, for the subscriptions that begin there.
    """
    added = [t.StructField(SUBSCRIPTIONS, spark_type(_LIST)), t.StructField("error", ERROR)]
    check_columns(documents.schema, "body", None, [field.name for field in added])
    return documents.mapInArrow(_matching(ShippedObject.of(step), history), t.StructType([*documents.schema, *added]))


def _matching(shipped: ShippedObject, history: bool) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def match_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        opened = shipped.open(_open, history)
        for batch in batches:
            for rows in pieces(batch):
                yield _matched(rows, opened)

    return match_batches


def _open(step: MatchingStep, history: bool) -> _Opened:
    base = _fresh_base() if step.base is None else _base_in(step.base)
    known = len(base.validity.begin)
    base.matcher.add([row.pattern for row in step.rows[len(base.matcher) - known :]])
    validity = base.validity.ended(step.ends).followed_by(Validity.of(step.rows))
    if history:
        validity = validity.only(step.history)
    return _Opened(step, base.matcher, validity, pa.concat_tables([base.names, names_of(step.rows)]))


def _fresh_base() -> _Base:
    return _Base(LogMatcher(Subscriptions().compile(), 0), Validity.of(()), names_of(()))


def _base_in(folder: str) -> _Base:
    """The base in a folder, opened once per process."""
    try:
        found = Path(folder, "rows").stat()
    except OSError as error:
        raise PipelineError(
            f"a Spark worker cannot read the subscriptions in {folder} ({error.strerror}); put the checkpoint in a "
            "folder that every worker can read"
        ) from None
    return _opened_base(folder, found.st_mtime_ns, found.st_ino)


@lru_cache(_KEPT)
def _opened_base(folder: str, _time: int, _inode: int) -> _Base:
    home = Path(folder)
    rows = msgpack.decode((home / "rows").read_bytes(), type=list[SubscriptionSpan])
    matcher = LogMatcher(open_index(home / "index"), len(rows))
    with pa.memory_map(str(home / "names.arrow")) as file:
        names = pa.ipc.open_file(file).read_all()
    return _Base(matcher, Validity.of(rows), names)


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Rows in pieces of bounded size."""
    lengths = pa.compute.binary_length(batch.column("body")).to_numpy(zero_copy_only=False)
    edges = offsets_of(lengths.astype(np.int64))
    begin = 0
    while begin < len(batch):
        end = int(np.searchsorted(edges, edges[begin] + _BYTES, side="right")) - 1
        end = min(max(end, begin + 1), begin + _DOCUMENTS, len(batch))
        yield batch.slice(begin, end - begin)
        begin = end


def _matched(rows: pa.RecordBatch, opened: _Opened) -> pa.RecordBatch:
    """Rows with their subscriptions."""
    places: list[Int64s] = []
    found: list[Int64s] = []
    errors: dict[int, PathcastError] = {}
    for feed, of_feed, documents in by_feed(rows, opened.step.expired, opened.step.mediators):
        mediators = opened.step.mediators.get(feed, ())
        matched = opened.matcher.match(feed, documents, opened.validity, opened.step.guards, mediators)
        places.append(of_feed[matched.documents])
        found.append(matched.rows)
        errors |= {int(of_feed[place]): error for place, error in matched.errors.items()}
    in_rows = np.concatenate([np.empty(0, dtype=np.int64), *places])
    chosen = np.concatenate([np.empty(0, dtype=np.int64), *found])
    order = np.argsort(in_rows, kind="stable")
    names = opened.names.take(pa.array(chosen[order])).combine_chunks()
    columns = [names.column(name) for name in NAMES.names]
    values = pa.StructArray.from_arrays(
        [column.chunk(0) if column.num_chunks else pa.array([], pa.string()) for column in columns], fields=list(NAMES)
    )
    offsets = offsets_of(np.bincount(in_rows, minlength=len(rows)).astype(np.int64))
    rows = rows.append_column(SUBSCRIPTIONS, lists(_LIST, offsets, values, errors))
    return rows.append_column("error", error_column(len(rows), errors))


def by_feed(
    rows: pa.RecordBatch, expired: Mapping[str, int], mediators: Mapping[str, MediatorSpans]
) -> Iterator[tuple[str, Int64s, LoggedDocuments]]:
    """The documents of rows that have not expired, by feed, and the places of their rows."""
    sequences = rows.column("sequence").to_pylist()
    feeds = rows.column("feed").to_pylist()
    by_feed: dict[str, list[int]] = {}
    for place, (feed, sequence) in enumerate(zip(feeds, sequences, strict=True)):
        if sequence >= expired.get(feed, 0):
            by_feed.setdefault(feed, []).append(place)
    bodies, headers = rows.column("body"), rows.column("headers")
    for feed, places in by_feed.items():
        schemas: dict[int, str] = {}
        if mediators.get(feed):
            named = (dict(headers[place].as_py()).get("pathcast-schema") for place in places)
            schemas = {at: name for at, name in enumerate(named) if name is not None}
        chosen = bodies.take(pa.array(places, pa.int64())).to_pylist()
        documents = LoggedDocuments([sequences[place] for place in places], chosen, schemas)
        yield feed, np.array(places, dtype=np.int64), documents
