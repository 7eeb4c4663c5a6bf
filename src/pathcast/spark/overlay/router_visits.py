"""Visits: the routers that a document reached, as a column: a list per document, with the subscribers served there.

A document reaches many routers and many subscribers; a list next to the document returns them to Spark with one copy of
the document, and Spark turns the list into rows.

Invariant: a document's visits are in the order of hops; each has its subscribers by name, ascending.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pathcast.errors import PathcastError
from pathcast.kernels import Int64s
from pathcast.routing import HandledMessages, Headers, MessageHeaders, RouterVisits
from pathcast.store import offsets_of

from ..matching.arrow_document_columns import ERROR_TYPE, error_column

_NAMES = pa.list_(pa.field("element", pa.string(), nullable=False))
_VISIT = pa.struct(
    [
        ("router", pa.string()),
        ("sender", pa.string()),
        ("annotations", pa.binary()),
        ("bytes", pa.int64()),
        ("error", ERROR_TYPE),
        ("patterns", pa.int64()),
        ("skipped", pa.int64()),
        ("subscribers", _NAMES),
    ]
)
VISITS_TYPE = pa.list_(pa.field("element", _VISIT, nullable=False))
# Subscribers' names as Arrow arrays, by their list; at most this many lists.
_KEPT = 256
_arrow: dict[int, tuple[list[str], pa.Array]] = {}


class Visits:
    """Collects the visits of documents, numbered from 0."""

    def __init__(self, source: str, unreadable: Mapping[int, PathcastError], *, links: bool) -> None:
        """Unreadable documents have one visit, with the reason; with `links` visits without deliveries count."""
        self._links = links
        self._documents: list[Int64s] = []
        self._ends: list[tuple[str, str | None]] = []
        self._end_of: list[Int64s] = []
        self._headers: list[pa.Array] = []
        self._header_count = 0
        self._header_of: list[Int64s] = []
        self._sizes: list[Int64s] = []
        self._patterns: list[Int64s] = []
        self._skipped: list[Int64s] = []
        self._counts: list[Int64s] = []
        self._names: list[pa.Array] = []
        self._errors: dict[int, PathcastError] = {}
        self._count = 0
        if unreadable:
            numbers = np.fromiter(unreadable, dtype=np.int64)
            self._errors |= dict(enumerate(unreadable.values()))
            nothing = np.zeros(len(numbers), dtype=np.int64)
            self._add_headers([None])
            self._ends.append((source, None))
            self._add(numbers, nothing, nothing, nothing - 1, nothing, (nothing, nothing))

    def add(self, handled: HandledMessages, sizes: Int64s) -> None:
        """Add the work of one router; `sizes` are the documents' bytes."""
        messages, counts = handled.messages, np.diff(handled.offsets)
        kept = np.ones(len(counts), dtype=np.bool_) if self._links else counts > 0
        kept[list(handled.errors)] = True
        places = np.flatnonzero(kept)
        if not len(places):
            return
        for at, place in enumerate(places.tolist()) if handled.errors else ():
            if place in handled.errors:
                self._errors[self._count + at] = handled.errors[place]
        documents = messages.documents[places]
        first = self._add_headers(messages.headers)
        alike = len(messages.headers) == 1
        headers = np.full(len(places), first) if alike else first + places
        lengths = np.array([len(header) for header in messages.headers], dtype=np.int64)
        size = sizes[documents] + (lengths[0] if alike else lengths[places])
        if len(handled.subscribers):
            self._names.append(_names(handled.names).take(pa.array(handled.subscribers)))
        self._ends.append((messages.router, messages.sender))
        end = np.full(len(places), len(self._ends) - 1)
        patterns = np.full(len(places), handled.patterns)
        self._add(documents, end, headers, size, counts[places], (patterns, handled.skipped[places]))

    def add_all(
        self, visited: RouterVisits, senders: Sequence[str | None], messages: MessageHeaders, sizes: Int64s
    ) -> None:
        """Add the work of all routers; `senders` are by the routers' numbers."""
        first, header = len(self._ends), self._add_headers(messages.headers)
        self._ends += zip(visited.order, senders, strict=True)
        lengths = pc.binary_length(self._headers[-1]).to_numpy(zero_copy_only=False)
        if len(visited.subscribers):
            self._names.append(_names(visited.names).take(pa.array(visited.subscribers)))
        size = sizes[visited.documents] + lengths[messages.number]
        counts = np.diff(visited.offsets)
        saved = messages.patterns, messages.skipped
        self._add(visited.documents, first + visited.routers, header + messages.number, size, counts, saved)

    def _add_headers(self, headers: Sequence[bytes | None] | Headers) -> int:
        """Add headers; return the number of the first."""
        if isinstance(headers, Headers):
            buffers = [None, pa.py_buffer(headers.offsets), pa.py_buffer(headers.data)]
            column = pa.Array.from_buffers(pa.large_binary(), len(headers.offsets) - 1, buffers)
        else:
            column = pa.array(headers, pa.large_binary())
        self._headers.append(column)
        self._header_count += len(column)
        return self._header_count - len(column)

    def _add(
        self,
        documents: Int64s,
        ends: Int64s,
        headers: Int64s,
        sizes: Int64s,
        counts: Int64s,
        saved: tuple[Int64s, Int64s],
    ) -> None:
        self._patterns.append(saved[0])
        self._skipped.append(saved[1])
        self._end_of.append(ends)
        self._count += len(documents)
        self._documents.append(documents)
        self._header_of.append(headers)
        self._sizes.append(sizes)
        self._counts.append(counts)

    def column(self, documents: int) -> pa.Array:
        """The visits of all documents."""
        if not self._count:
            return pa.ListArray.from_arrays(
                pa.array([0] * (documents + 1), pa.int32()), pa.nulls(0, _VISIT), type=VISITS_TYPE
            )
        numbers = np.concatenate(self._documents)
        place_of = pa.array(np.concatenate(self._end_of))
        sizes = np.concatenate(self._sizes)
        names = pa.concat_arrays(self._names) if self._names else pa.array([], pa.string())
        edges = offsets_of(np.concatenate(self._counts)).astype(np.int32)
        columns = [
            pa.array([router for router, _ in self._ends], pa.string()).take(place_of),
            pa.array([sender for _, sender in self._ends], pa.string()).take(place_of),
            pa.concat_arrays(self._headers).take(pa.array(np.concatenate(self._header_of))).cast(pa.binary()),
            pa.array(sizes, pa.int64(), mask=sizes < 0),
            error_column(self._count, self._errors),
            pa.array(np.concatenate(self._patterns), pa.int64()),
            pa.array(np.concatenate(self._skipped), pa.int64()),
            pa.ListArray.from_arrays(pa.array(edges), names, type=_NAMES),
        ]
        ordered = pa.StructArray.from_arrays(columns, fields=list(_VISIT))
        if (numbers[1:] < numbers[:-1]).any():
            ordered = ordered.take(pa.array(np.argsort(numbers, kind="stable")))
        begins = offsets_of(np.bincount(numbers, minlength=documents)).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(begins), ordered, type=VISITS_TYPE)


def _names(names: list[str]) -> pa.Array:
    known = _arrow.get(id(names))
    if known is None or known[0] is not names:
        known = _arrow[id(names)] = names, pa.array(names, pa.string())
        while len(_arrow) > _KEPT:
            del _arrow[next(iter(_arrow))]
    return known[1]
