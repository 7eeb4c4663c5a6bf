"""Rewriting between reader and engine (NDDR, §3.1): element arrays of local documents become those of global ones.

The paper rewrites events, and caches trees of elements that an operator must hold back. Here the reader's events are
arrays, and so are the engine's: nothing is parsed again, no bytes are written, and values stay positions in the
original bytes. The elements that a stream would have held back are counted (`Rewritten.held`).

Invariant: engines return the same matches as on the document that `object_tree_rewriter.py` makes. A document of
another schema, or one that would become too large, has its own error; the others are unaffected.
Cost: two walks, of some dozens of ns per element where elements move and of 10 where none does; memory for all elements
of a batch again. Where elements are only renamed, all arrays but one are those of the original.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch, Names
from pathcast.errors import LimitError, MappingError, PathcastError
from pathcast.kernels import AnyArray, Int32s, Int64s

from ..mappings.object_tree_rewriter import LIMIT
from ..mappings.operators_by_schema_node import Plan
from . import rewritten_element_output_kernels as rows
from .operator_plan_arrays import Tables, tables_of
from .rewriting_table_layout_kernels import (
    C_ATTRIBUTES,
    C_BYTES,
    C_ELEMENTS,
    C_PEAK,
    C_TEXTS,
    C_THINGS,
    COUNTS,
    FRAME,
    N_NAME,
    NONE,
    OUT_COLUMNS,
    TOO_LARGE,
    TOO_MANY_ROOTS,
)
from .rewritten_element_order_kernels import LinkedDocuments, LinkRoom, link
from .rewritten_element_output_kernels import ELEMENT_ROWS, RewrittenDocuments, SourceDocuments, ValuePlaces, emit
from .schema_node_lookup_kernels import place_elements


class Rewritten(NamedTuple):
    """A rewritten batch, and the most elements that a stream over any of its documents would have held back."""

    batch: DocumentBatch
    held: int


class _Room:
    """Buffers of `link`, larger when they were too small, and of `emit`, as large as `link` says."""

    def __init__(self, things: int = 1024, depth: int = 64) -> None:
        self.linking = LinkRoom(
            things=np.empty((things, OUT_COLUMNS), dtype=np.int32),
            frames=np.empty((depth, FRAME), dtype=np.int32),
            tails=np.empty((3, depth), dtype=np.int32),
            slots=np.empty((3, 4 * depth), dtype=np.int32),
            hold=np.empty(4 * depth, dtype=np.int32),
        )
        self._of_kind: dict[str, AnyArray] = {}

    def double(self) -> None:
        """Double the room, keeping the linked things."""
        things, frames = self.linking.things, self.linking.frames
        _Room.__init__(self, 2 * len(things), 2 * len(frames))
        self.linking.things[: len(things)] = things

    def array(self, kind: str, size: int, dtype: type[np.generic]) -> AnyArray:
        """An array of this many values of a type."""
        found = self._of_kind.get(kind)
        if found is None or len(found) < size:
            found = self._of_kind[kind] = np.empty(size + size // 4 + 64, dtype=dtype)
        return found[:size]


class _Naming(NamedTuple):
    """The ids that the names of batches have in another table, as both were at some moment."""

    names: Names
    size: int  # of that table
    numbers: Int32s  # names that the table lacks have ids after it
    own: tuple[str, ...]

    @classmethod
    def of(cls, batch: DocumentBatch, names: Names) -> "_Naming":
        size = len(names)
        numbers = batch.known.onto(names)[: batch.known_count].copy()
        missing = np.flatnonzero((numbers < 0) | (numbers >= size))
        numbers[missing] = np.arange(size, size + len(missing), dtype=np.int32)
        return cls(names, size, numbers, tuple(batch.known[number] for number in missing.tolist()))

    def is_for(self, batch: DocumentBatch, names: Names) -> bool:
        return names is self.names and len(names) == self.size and len(self.numbers) == batch.known_count


class EventRewriter:
    """Rewrites batches by one plan. `names` is the table that the batches were read with."""

    def __init__(self, plan: Plan, names: Names, *, limit: int = LIMIT) -> None:
        self.plan = plan
        self.names = names
        self.limit = limit
        self.tables: Tables = tables_of(plan, names)
        self._naming: _Naming | None = None
        self._rooms: list[_Room] = []  # free buffers; a thread takes one, and returns it

    def rewrite(self, batch: DocumentBatch) -> Rewritten:
        """The documents in the global schema; names are those of `names`, then the batch's own."""
        return self._rewrite(batch, _Room())

    @contextmanager
    def lent(self, batch: DocumentBatch, names: Names) -> Iterator[Rewritten]:
        """As `rewrite`, but in reused buffers: the result is valid only until the block ends.

        Names are numbered as in `names`, those of an engine, so that it need not translate them.
        """
        try:
            room = self._rooms.pop()
        except IndexError:
            room = _Room()
        yield self._rewrite(batch, room, names)
        self._rooms.append(room)

    def _replaced(self, batch: DocumentBatch, names: Names | None, changes: dict[str, Any]) -> DocumentBatch:
        """A batch with other arrays and, if wanted, the names of another table.

        Names that this lacks come first among the batch's own.
        """
        if names is None:
            return replace(batch, **changes)
        naming = self._naming
        if naming is None or not naming.is_for(batch, names):
            naming = self._naming = _Naming.of(batch, names)
        numbers, own = naming.numbers, naming.own
        if batch.own_names:
            known = [names.get(name) for name in batch.own_names]
            first = naming.size + len(own)
            found = [
                first + place if number is None or number >= naming.size else number
                for place, number in enumerate(known)
            ]
            numbers = np.append(numbers, np.array(found, dtype=np.int32))
            own = (*own, *batch.own_names)
        changes |= {
            "name": numbers[changes["name"]],
            "attribute_name": numbers[changes.get("attribute_name", batch.attribute_name)],
            "known": names,
            "known_count": naming.size,
            "own_names": own,
        }
        return replace(batch, **changes)

    def _rewrite(self, batch: DocumentBatch, room: _Room, names: Names | None = None) -> Rewritten:
        if batch.known is not self.names:
            raise ValueError(
                "the batch was not read with the names of this EventRewriter; read the documents with "
                "names=rewriter.names"
            )
        tables = self.tables
        nodes: Int32s = room.array("node", len(batch.name), np.int32)
        is_split = place_elements(batch.elements, batch.values.texts, tables.schema(batch.known_count), nodes)
        if tables.renames and not is_split and not batch.errors and not nodes[batch.offsets[:-1]].any():
            renamed = {"name": _renamed(batch.name, nodes, tables)}
            return Rewritten(self._replaced(batch, names, renamed), 0)
        tops, counts = self._link(batch, nodes, not is_split, room)
        errors = dict(batch.errors)
        if tops.min(initial=0) < 0:
            for index in np.flatnonzero(tops < 0).tolist():
                if index not in errors:
                    errors[index] = self.refusal(batch, index, int(tops[index]))
        changes = {**self._emit(batch, nodes, tops, room, counts), "errors": errors}
        return Rewritten(self._replaced(batch, names, changes), int(counts[C_PEAK]))

    def _link(self, batch: DocumentBatch, nodes: Int32s, whole: bool, room: _Room) -> tuple[Int32s, Int64s]:
        """The list of each document, or why it has none; and what was counted."""
        tables = self.tables
        attributes, texts = batch.values.attributes, batch.values.texts
        document = LinkedDocuments(
            nodes=nodes,
            ends=batch.end,
            attribute_begins=attributes.begins,
            attribute_names=attributes.names,
            text_begins=texts.begins,
            text_ends=texts.ends,
            text_lengths=texts.lengths,
            names=batch.name,
        )
        plan, offsets = tables.plan, batch.offsets
        counts = np.zeros(2 * COUNTS, dtype=np.int64)
        tops = np.full(len(batch), NONE, dtype=np.int32)
        done = 0
        while True:
            done = link(done, offsets, tables.most, whole, self.limit, document, plan, room.linking, counts, tops)
            if done == len(batch):
                return tops, counts
            room.double()

    def refusal(self, batch: DocumentBatch, index: int, why: int) -> PathcastError:
        """Why a document cannot be rewritten, for an error message."""
        if why == TOO_LARGE:
            return LimitError(
                f"the rewritten document has more than {self.limit:,} elements; split the document, or raise limit=…"
            )
        root = self.plan.tree.root.name
        if why == TOO_MANY_ROOTS:
            name = self.plan.nodes[root].exchange
            return MappingError(
                f"the document's root has several children '{name}', but the mapping needs one, "
                "which becomes the root; split the document"
            )
        found = batch.name_of(int(batch.name[batch.offsets[index]]))
        return MappingError(
            f"the document's root element is '{found}', but its schema has the root '{root}'; give the schema that the "
            "document follows"
        )

    def _emit(
        self,
        batch: DocumentBatch,
        nodes: Int32s,
        tops: Int32s,
        room: _Room,
        counts: Int64s,
    ) -> dict[str, Any]:
        """The arrays of what was linked, by the names that a batch has for them."""
        count = int(counts[C_ELEMENTS])
        elements = room.array("element", ELEMENT_ROWS * (count + 1), np.int32).reshape(ELEMENT_ROWS, count + 1)
        attributes = _values(room, "attribute", int(counts[C_ATTRIBUTES]))
        texts = _values(room, "text", int(counts[C_TEXTS]))
        copied = room.array("byte", int(counts[C_BYTES]), np.uint8)
        written, offsets = np.zeros(4, dtype=np.int64), np.zeros(len(batch) + 1, dtype=np.int64)
        stack = room.array("stack", int(counts[C_THINGS]) + 1, np.int32)
        read = SourceDocuments(nodes, batch.position, batch.elements, batch.values)
        to = RewrittenDocuments(elements, attributes, texts, copied, written, offsets)
        emit(tops, room.linking.things, stack, read, self.tables.plan, to)
        _, kept, text_count, used = written.tolist()
        elements[rows.E_ATTRIBUTES, count] = kept
        return {
            "offsets": offsets,
            "name": elements[rows.E_NAME, :count],
            "parent": elements[rows.E_PARENT, :count],
            "depth": elements[rows.E_DEPTH, :count],
            "end": elements[rows.E_END, :count],
            "position": elements[rows.E_POSITION, :count],
            "attribute_begin": elements[rows.E_ATTRIBUTES],
            "attribute_name": attributes.of[:kept],
            "attribute_start": attributes.starts[:kept],
            "attribute_length": attributes.lengths[:kept],
            "text_begin": elements[rows.E_TEXT, :count],
            "text_end": elements[rows.E_TEXT_END, :count],
            "text_parent": texts.of[:text_count],
            "text_start": texts.starts[:text_count],
            "text_length": texts.lengths[:text_count],
            "arena": np.concatenate([batch.arena, copied[:used]]) if used else batch.arena,
        }


def _values(room: _Room, kind: str, count: int) -> ValuePlaces:
    """Room for attributes or text nodes."""
    of, lengths = room.array(f"{kind} of", count, np.int32), room.array(f"{kind} length", count, np.int32)
    return ValuePlaces(of, room.array(f"{kind} start", count, np.int64), lengths)


def _renamed(name: Int32s, nodes: Int32s, tables: Tables) -> Int32s:
    """The names of elements where nothing else changes."""
    return np.where(nodes >= 0, tables.nodes[N_NAME][nodes], name)
